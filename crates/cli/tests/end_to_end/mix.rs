//! `proofload run` with several requests of which one is judged, on processors that generator and service share; and with responses
//! that take longer than a slice.

use std::fs;

use crate::place::{Place, SERVICE, proofload, stderr, stdout};

fn experiment(place: &Place, load: &str, design: &str) -> std::path::PathBuf {
    let text = format!(
        r#"name = "mix"
[services.api]
command = ["node", "{SERVICE}"]
ready = "/healthz"
env = {{ PORT = "{{port}}" }}
{load}
[design]
drop_disturbed = false
warmup = "300ms"
blocks = 6
budget = "120s"
{design}
"#
    );
    let path = place.path("mix.toml");
    fs::write(&path, text).expect("the experiment is written");
    path
}

#[test]
#[ignore = "slow: make check-slow"]
fn the_latency_of_a_rare_request_is_judged_by_that_request_alone() {
    let place = Place::new();
    let load = r#"
[factors.delay]
short = { api.env = { MODE = "mix", DELAY_MS = 20 } }
long = { api.env = { MODE = "mix", DELAY_MS = 60 } }
[load]
connections = 64
requests = [{ name = "fast", path = "/", weight = 4 }, { name = "slow", path = "/slow" }]
"#;
    let design = "metric = \"p50\"\nendpoint = \"slow\"\nrate = 200\nslices = 2\ncpus = \"shared\"";
    let experiment = experiment(&place, load, design);
    let check = proofload().arg("check").arg(&experiment).output().expect("proofload starts");
    assert!(stdout(&check).contains("80 % fast, 20 % slow"), "{}{}", stdout(&check), stderr(&check));
    assert!(stdout(&check).contains("p50 of the response time of slow"), "{}", stdout(&check));

    let Some(output) = place.run_well(&experiment, "SLOWER") else { return };
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    let said = stdout(&output);
    for part in
        ["SLOWER", "p50 response time of slow", "By request", "generator and services shared processors"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    let record = record::open(&place.record()).expect("the record opens");
    // Four in five of all requests are fast, so the median of all would show nothing.
    let conclusion = analysis::conclude(&record);
    let ratio = conclusion.comparisons[0].estimate.as_ref().expect("an estimate").ratio;
    assert!((2.0..3.5).contains(&ratio), "{ratio}");
    for trial in record.complete_blocks().flat_map(|block| &block.trials) {
        assert!(trial.started.cpus_shared);
        let services = &trial.started.services[0].cpus;
        assert!(trial.started.generator_cpus.iter().all(|cpu| services.contains(cpu)), "{:?}", trial.started);
        assert!(trial.ended.as_ref().is_some_and(|ended| ended.peak_rss_bytes_by_service["api"] > 10 << 20));
        for slice in trial.measured() {
            let [fast, slow] = &slice.counts.endpoints[..] else {
                panic!("two requests: {:?}", slice.counts.endpoints)
            };
            assert_eq!((fast.sent + slow.sent, fast.failed(), slow.failed()), (slice.counts.sent, 0, 0));
            assert_eq!(slice.counts.open.as_ref().expect("it is at a rate").response.count(), slow.sent);
            let busiest = slice.services[0].cpu_by_process_ns.first().expect("it worked");
            assert!(
                *busiest > 0 && *busiest <= slice.services[0].cpu_ns + 30_000_000,
                "{:?}",
                slice.services
            );
        }
    }
    // All variants of a block get the same requests in the same order, so the same number of each.
    for block in record.complete_blocks() {
        let sent = |trial: &record::Trial| {
            trial.measured().map(|slice| slice.counts.endpoints[1].sent).collect::<Vec<_>>()
        };
        assert_eq!(sent(&block.trials[0]), sent(&block.trials[1]), "block {}", block.number);
    }
    assert_eq!(place.left_running(), Vec::<String>::new());
}

#[test]
#[ignore = "slow: make check-slow"]
fn responses_that_take_longer_than_a_slice_are_told_and_longer_slices_measure_them() {
    let load = "[load]\nconnections = 4\ntimeout = \"20s\"\n";
    let factors = r#"
[factors.delay]
short = { api.env = { MODE = "delay", DELAY_MS = 50 } }
long = { api.env = { MODE = "delay", DELAY_MS = 600 } }
"#;
    let place = Place::new();
    let short = experiment(&place, &format!("{factors}{load}"), "slice = \"300ms\"\nslices = 1");
    let output = place.run(&short);
    assert_eq!(output.status.code(), Some(4), "{}{}", stdout(&output), stderr(&output));
    let words: Vec<String> = stdout(&output).split_whitespace().map(str::to_owned).collect();
    let words = words.join(" ");
    let told = "long: in 6 of 6 trials no response came within a window of 300 ms; half of them took 6";
    assert!(words.contains(told) && words.contains("set design.slice"), "{words}");

    let place = Place::new();
    let alone = format!("[services.api.env]\nMODE = \"delay\"\nDELAY_MS = 600\n{load}");
    let long = experiment(&place, &alone, "slice = \"1500ms\"\nslices = 1");
    let text = fs::read_to_string(&long).expect("the file");
    let text =
        text.replace("env = { PORT = \"{port}\" }\n", "").replace("MODE =", "PORT = \"{port}\"\nMODE =");
    fs::write(&long, text).expect("the file");
    let Some(output) = place.run_well(&long, "") else { return };
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    let record = record::open(&place.record()).expect("the record opens");
    let slices =
        || record.complete_blocks().flat_map(|block| &block.trials).flat_map(|trial| trial.measured());
    assert!(
        slices().count() == 6
            && slices()
                .all(|slice| slice.counts.successful_in_window > 0
                    && slice.counts.successful == slice.counts.sent)
    );
}
