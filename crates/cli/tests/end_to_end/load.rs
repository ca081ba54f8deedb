//! `proofload load --rate` on a real service: steps, ramps and shares of capacity, their reports, and that
//! Ctrl-C keeps the results so far. Latencies and verdicts are not checked, because they depend on a busy
//! machine.

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};

use crate::place::{Place, Run, Running, Said, ended, proofload, service, signal};

/// `service.js` in one of its modes, stopped on drop.
pub struct Service {
    address: SocketAddr,
    _process: Running,
}

impl Service {
    pub fn start(mode: &str) -> Service {
        let (_process, address) = service(&[("MODE", mode), ("SPIN_MS", "1")]);
        Service { address, _process }
    }

    pub fn load(&self, flags: &[&str]) -> Command {
        let mut command = proofload();
        command
            .arg("load")
            .arg(format!("http://{}/", self.address))
            .args(["-v", "-c", "8"])
            .args(flags);
        // So that each window has exactly the requests of its rate.
        command.args(flags.contains(&"--rate").then_some("--arrivals=constant"));
        command
    }

    fn run(&self, flags: &[&str]) -> Said {
        self.load(flags).said()
    }
}

#[test]
fn what_came_of_a_load_fits_a_screen_and_the_rest_is_there_when_asked_for() {
    let service = Service::start("ok");
    let said = |more: &[&str]| {
        let url = format!("http://{}/", service.address);
        proofload()
            .args(["load", &url, "-q", "-c", "2", "-n", "300"])
            .args(more)
            .said()
    };
    let (short, whole) = (said(&[]), said(&["-v"]));
    short.ends(0).prints(&[
        "2 connections, 1 thread, 300 requests",
        "300 successful",
        " complete ",
    ]);
    assert!(
        short.out.lines().count() <= 20 && short.err.is_empty(),
        "{short}"
    );
    whole
        .ends(0)
        .prints(&["300 successful", "transfer", "errors  none"]);
    let junit = said(&["--limit", "failed < 50%", "--format", "junit"]);
    assert!(junit.ends(0).out.starts_with("<?xml"), "{junit}");
    let html = service.run(&["-n", "300", "--limit", "failed < 50%", "--format", "html"]);
    assert!(
        html.ends(0).tells(&["failed < 50%"]).out.starts_with("<!"),
        "{html}"
    );
    assert!(
        !short.out.contains("transfer") && whole.out.lines().count() > short.out.lines().count()
    );
}

#[test]
fn steps_are_slices_of_their_own() {
    let service = Service::start("ok");
    let document = service
        .run(&["--rate", "50,100", "--duration", "1s", "--json"])
        .ends(0)
        .json();
    assert_eq!(
        (&document["format"], &document["asked_steps"]),
        (&1.into(), &2.into())
    );
    assert!(document["capacity"].is_null() && document["invalid"].is_null());
    let steps = document["steps"].as_array().expect("steps");
    for (step, per_s) in steps.iter().zip([50.0, 100.0]) {
        assert_eq!(
            (&step["loop"], &step["open"]["rate_per_s"]),
            (&"open".into(), &per_s.into())
        );
        assert_eq!(step["requests"], per_s as u64, "one second of it");
        assert_eq!(step["response_time"]["count"], step["requests"]);
        assert!(step["open"]["result"].is_string() && step["open"]["ramp"].is_null());
        assert!(step["format"].is_null(), "the document has one");
    }
    assert_eq!(steps.len(), 2);

    let said = service.run(&["--rate", "50,100", "--duration", "500ms"]);
    said.prints(&["2 steps of 500ms", "result\n", "\n  50/s ", "\n 100/s "]);
}

#[test]
fn a_ramp_has_its_tenths() {
    let service = Service::start("ok");
    let document = service
        .run(&["--rate", "50..250", "--duration", "2s", "--json"])
        .ends(0)
        .json();
    let (open, ramp) = (&document["open"], &document["open"]["ramp"]);
    assert_eq!(document["requests"], 300, "two seconds of 150 on average");
    assert!(open["rate_per_s"].is_null() && open["result"].is_null());
    assert_eq!(
        [&ramp["from_per_s"], &ramp["to_per_s"], &ramp["over_s"]],
        [50.0, 250.0, 2.0]
    );
    let stretches = ramp["stretches"].as_array().expect("stretches");
    let due = stretches
        .iter()
        .map(|stretch| stretch["due_per_s"].as_f64().expect("a rate") * 0.2);
    assert_eq!((stretches.len(), due.sum::<f64>().round()), (10, 300.0));
    let ok: f64 = stretches
        .iter()
        .map(|stretch| stretch["throughput_per_s"].as_f64().expect("a rate") * 0.2)
        .sum();
    assert_eq!(
        Some(ok.round() as u64),
        document["successful_in_window"].as_u64()
    );

    let said = service.run(&["--rate", "50..250", "--duration", "1s"]);
    said.prints(&["open loop from 50.0/s to 250/s", "\n ramp at "]);
    service
        .run(&["--rate", "50..250", "--requests", "5"])
        .ends(2)
        .tells(&["--rate 50..250", "`duration`"]);
}

#[test]
fn a_share_is_of_a_capacity_that_was_measured() {
    let service = Service::start("ok");
    let said = service.run(&["--rate", "60%", "--duration", "1s", "--json"]);
    said.ends(0).tells(&[
        "measuring saturation: closed loop, 8 connections",
        "\nsaturation: ",
    ]);
    let document = said.json();
    let capacity = &document["capacity"];
    assert_eq!(
        (&capacity["loop"], &capacity["warmup_s"]),
        (&"closed".into(), &1.0.into())
    );
    assert!(
        capacity["window_s"]
            .as_f64()
            .is_some_and(|window_s| (2.9..3.5).contains(&window_s))
    );
    let per_s = capacity["throughput_per_s"].as_f64().expect("a capacity");
    let rate = document["open"]["rate_per_s"].as_f64().expect("a rate");
    assert!(
        per_s > 0.0 && (rate / per_s - 0.6).abs() < 1e-9,
        "{rate} of {per_s}"
    );
    assert_eq!(
        (&document["open"]["capacity_share"], &document["loop"]),
        (&0.6.into(), &"open".into())
    );
}

#[test]
fn a_refused_load_prints_no_report() {
    let service = Service::start("ok");
    for form in ["text", "json", "csv"] {
        let said = service.run(&[
            "-n",
            "10",
            "-b",
            "abc",
            "-H",
            "Content-Length: 5",
            "--format",
            form,
        ]);
        assert_eq!(
            said.ends(2)
                .tells(&["does not agree with the body of 3 bytes"])
                .out,
            "",
            "{form}"
        );
    }
}

/// The first line on stderr, and a reader for the rest.
fn first_line(child: &mut Child) -> (String, impl Read + use<>) {
    let mut talk = BufReader::new(child.stderr.take().expect("stderr is piped"));
    let mut first = String::new();
    talk.read_line(&mut first).expect("stderr is readable");
    (first, talk)
}

#[test]
fn ctrl_c_ends_all_steps_and_keeps_what_there_is() {
    let (service, temporary) = (Service::start("ok"), Place::new());
    let kept = Place::new();
    let out = kept.path("record").display().to_string();
    let mut load = service.load(&[
        "--rate",
        "50,60,70",
        "--duration",
        "1s",
        "--json",
        "--out",
        &out,
    ]);
    let mut child = load.env("TMPDIR", temporary.path("")).begun();
    let (first, mut talk) = first_line(&mut child);
    assert!(first.starts_with("step 1 of 3, 50/s: "), "{first}");
    let mut made = std::fs::read_dir(temporary.path("")).expect("a folder");
    assert!(
        made.next().is_none(),
        "a second Ctrl-C, which waits for nothing, would leave it there"
    );
    signal(child.id(), "-INT");
    std::io::copy(&mut talk, &mut std::io::sink()).expect("stderr is readable");
    let document = ended(child).ends(130).json();
    assert_eq!(
        (&document["interrupted"], &document["asked_steps"]),
        (&true.into(), &3.into())
    );
    let steps = document["steps"].as_array().expect("steps");
    assert!((1..3).contains(&steps.len()), "{} steps", steps.len());
    assert_eq!(
        (&steps[0]["interrupted"], &steps[0]["requests"]),
        (&false.into(), &50.into())
    );
    let page = page_of(&kept);
    let answer = page["answer"].as_str().expect("an answer");
    assert_eq!(page["state"], "broken");
    assert!(
        answer.starts_with("Stopped early: at 50/s: ")
            && answer.contains("of 3 steps did not begin"),
        "{answer}"
    );
}

fn page_of(place: &Place) -> serde_json::Value {
    let page = place.read("record/report.html");
    let (_, rest) = page.split_once("id=\"data\">").expect("the page has data");
    let (data, _) = rest.split_once("</script>").expect("the data end");
    serde_json::from_str(data).expect("JSON")
}

#[test]
fn the_page_of_a_ladder_keeps_its_steps_apart() {
    let (service, place) = (Service::start("ok"), Place::new());
    let out = place.path("record").display().to_string();
    service
        .run(&["--rate", "50,100", "--duration", "500ms", "--out", &out])
        .ends(0);
    let page = page_of(&place);
    let answer = page["answer"].as_str().expect("an answer");
    assert!(
        answer.starts_with("At 50/s: ") && answer.contains("; at 100/s: "),
        "{answer}"
    );
    let kinds: Vec<&str> = page["latencies"]
        .as_array()
        .expect("times")
        .iter()
        .filter_map(|of| of["kind"].as_str())
        .collect();
    let expected = [
        "response time at 50/s",
        "service time at 50/s",
        "response time at 100/s",
        "service time at 100/s",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(page["figures"]["rows"].as_array().map(Vec::len), Some(2));
    let method = page["method"].to_string();
    assert!(
        method.contains("open loop at 50/s, 100/s") && !method.contains("\"closed loop"),
        "{method}"
    );
}

#[test]
fn a_closed_terminal_ends_nothing_below_nohup() {
    let service = Service::start("ok");
    let load = service.load(&["--rate", "50,60", "--duration", "1s", "--json"]);
    let mut nohup = Command::new("nohup");
    let mut child = nohup
        .arg(load.get_program())
        .args(load.get_args())
        .stdin(Stdio::null())
        .begun();
    let (first, mut talk) = first_line(&mut child);
    assert!(first.starts_with("step 1 of 2"), "{first}");
    signal(child.id(), "-HUP");
    std::io::copy(&mut talk, &mut std::io::sink()).expect("stderr is readable");
    assert_eq!(
        ended(child).json()["steps"].as_array().map(Vec::len),
        Some(2)
    );
}

#[test]
fn a_url_that_is_waited_for_is_told_by_its_url() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    // One connection waits to be accepted, that of the first check. There is no room for another.
    rustix::net::listen(&listener, 0).expect("it listens");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let mut child = proofload()
        .arg("load")
        .arg(&url)
        .args(["--duration", "100ms"])
        .begun();
    let (first, _) = first_line(&mut child);
    assert_eq!(
        first,
        format!("waiting for {url} to be ready, for up to 30s\n")
    );
    signal(child.id(), "-INT");
    ended(child).ends(130);
}
