//! `proofload run` with several requests of which one is judged, on processors that generator and service
//! share. Also with responses that take longer than a slice.

use crate::place::{Draft, Place, service};

#[test]
fn a_log_becomes_a_mix_that_is_sent_and_no_value_of_it_is_kept_unasked() {
    let place = Place::new();
    let line =
        |what: &str| format!("h - - [25/Nov/2026:13:27:25 +0000] \"{what} HTTP/1.1\" 200 5\n");
    let lines = [
        "GET /item/7?q=me%40a.b",
        "GET /item/8?q=it&page=2",
        "POST /item",
        "GET /{env.HOME}",
        "\\x16",
    ];
    place.write("access.log", lines.map(line).concat() + "\u{7}\n");
    let said = place.said(&["mix", "access.log"]);
    said.ends(0).tells(&[
        "no requests: 2 entries",
        "1 POST (--unsafe)",
        "masked in queries, as x: q",
    ]);
    let (text, rows) = (place.read("mix.toml"), place.read("mix-1.csv"));
    assert!(
        text.contains("path = \"/%7Benv.HOME%7D\"") && !(text + &rows).contains("a.b"),
        "{rows}"
    );
    place
        .said(&["mix", "access.log"])
        .ends(2)
        .tells(&["it is there already"]);
    place
        .said(&["mix", "mix.toml", "--out", "b.toml"])
        .ends(2)
        .tells(&["neither an access log"]);
    place.write(
        "two.log",
        ["GET /item/7", "GET /item/8", "GET /order/7", "GET /order/8"]
            .map(line)
            .concat(),
    );
    place.write("b-2.csv", "");
    place
        .said(&["mix", "two.log", "--out", "b.toml"])
        .ends(2)
        .tells(&["b-2.csv: it is there already"]);
    assert!(
        !place.path("b-1.csv").exists() && !place.path("b.toml").exists(),
        "nothing is left behind"
    );
    let (_service, address) = service(&[]);
    let url = format!("http://{address}");
    let words = [
        "load", &url, "--mix", "mix.toml", "-d", "300ms", "-c", "4", "--json",
    ];
    let report = place.said(&words).ends(0).json();
    let endpoints = report["steps"][0]["endpoints"]
        .as_array()
        .or(report["endpoints"].as_array());
    assert_eq!(endpoints.map(Vec::len), Some(3), "{report:#}");
}

#[test]
#[ignore = "slow: make check-slow"]
fn the_latency_of_a_rare_request_is_judged_by_that_request_alone() {
    let place = Place::new();
    let experiment = place.experiment(&Draft {
        more: "[factors.delay]\nshort = { api.env = { MODE = \"mix\", DELAY_MS = 20 } }\n\
               long = { api.env = { MODE = \"mix\", DELAY_MS = 60 } }",
        load: "connections = 64\ntimeout = \"5s\"\n\
               requests = [{ name = \"fast\", path = \"/\", weight = 4 }, { name = \"slow\", path = \"/slow\" }]",
        design: "metric = \"p50\"\nendpoint = \"slow\"\nrate = \"10%\"\nslice = \"500ms\"\nslices = 4\n\
                 cpus = \"shared\"\nwarmup = \"300ms\"\nbudget = \"120s\"",
        ..Draft::default()
    });
    let check = place.said(&["run", "--dry-run", "experiment.toml"]);
    check.prints(&[
        "80 % fast, 20 % slow",
        "p50 response time of slow",
        "open loop: 10 % of what the slowest variant can do",
    ]);
    let Some(said) = place.run_well(&experiment, "SLOWER") else {
        return;
    };
    said.prints(&[
        "p50 response time of slow",
        "By request",
        "generator and services shared processors",
    ]);
    said.prints(&["(10 % of the slowest in closed loop: "]);
    let record = place.opened();
    assert_eq!(record.damage, Vec::<String>::new());
    // Four in five of all requests are fast, so the median of all would show nothing.
    let conclusion = analysis::conclude(&record);
    let ratio = conclusion.comparisons[0]
        .estimate
        .as_ref()
        .expect("an estimate")
        .ratio;
    assert!((2.0..3.5).contains(&ratio), "{ratio}");
    for trial in record.complete_trials() {
        assert!(trial.started.cpus_shared);
        let services = &trial.started.services[0].cpus;
        assert!(
            trial
                .started
                .generator_cpus
                .iter()
                .all(|cpu| services.contains(cpu)),
            "{:?}",
            trial.started
        );
        assert!(
            trial
                .ended
                .as_ref()
                .is_some_and(|ended| ended.peak_rss_bytes_by_service["api"] > 10 << 20)
        );
        for slice in trial.measured() {
            let [fast, slow] = &slice.counts.endpoints[..] else {
                panic!("two requests: {slice:?}")
            };
            assert_eq!(
                (fast.sent + slow.sent, fast.failed(), slow.failed()),
                (slice.counts.sent, 0, 0)
            );
            let open = slice.counts.open.as_ref().expect("it is at a rate");
            assert_eq!(
                (open.response.count(), open.intended),
                (slow.sent, slice.counts.sent + open.unsent)
            );
            let busiest = slice.services[0]
                .cpu_by_process_ns
                .first()
                .expect("it worked");
            let most_ns = slice.services[0].cpu_ns + 30_000_000;
            assert!((1..=most_ns).contains(busiest), "{:?}", slice.services);
        }
    }
    // All variants of a block get the same requests in the same order, so the same number of each.
    for block in record.complete_blocks() {
        let sent = |trial: &record::Trial| {
            trial
                .measured()
                .map(|slice| slice.counts.endpoints[1].sent)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            sent(&block.trials[0]),
            sent(&block.trials[1]),
            "block {}",
            block.number
        );
    }
}

#[test]
#[ignore = "slow: make check-slow"]
fn responses_that_take_longer_than_a_slice_are_measured_all_the_same() {
    let design = "warmup = \"300ms\"\nbudget = \"120s\"\n";
    let place = Place::new();
    let short = place.experiment(&Draft {
        more: "[factors.delay]\nshort = { api.env = { MODE = \"delay\", DELAY_MS = 50 } }\n\
               long = { api.env = { MODE = \"delay\", DELAY_MS = 600 } }",
        load: "timeout = \"20s\"",
        design: &format!("{design}slice = \"300ms\""),
        ..Draft::default()
    });
    // Both wait: their throughput follows from the response times, including those of the drains.
    place
        .run(&short)
        .ends(0)
        .prints(&["SLOWER  long vs short", "×0.08"]);
    let place = Place::new();
    let long = place.experiment(&Draft {
        service: "env = { PORT = \"{port}\", MODE = \"delay\", DELAY_MS = 600 }",
        load: "timeout = \"20s\"",
        design: &format!("{design}slice = \"1500ms\""),
        ..Draft::default()
    });
    let Some(_) = place.run_well(&long, "") else {
        return;
    };
    let record = place.opened();
    let slices: Vec<_> = record
        .complete_trials()
        .flat_map(|trial| trial.measured())
        .collect();
    let well = |slice: &&record::Slice| {
        slice.counts.successful_in_window > 0 && slice.counts.successful == slice.counts.sent
    };
    assert!(slices.len() == 6 && slices.iter().all(well));
}
