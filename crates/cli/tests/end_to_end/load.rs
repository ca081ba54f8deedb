//! `proofload load --rate` on a real service: steps, ramps and shares of capacity; what is reported of them, and that Ctrl-C
//! keeps what there is. Nothing is asserted of latencies or verdicts, which a busy machine decides.

use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::place::{SERVICE, proofload, signal, stderr, stdout};

/// `service.js` in a mode of its, stopped when dropped.
struct Service {
    process: Child,
    port: u16,
}

impl Service {
    fn start(mode: &str) -> Service {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port");
        let mut command = Command::new("node");
        command.arg(SERVICE).env("PORT", free.port().to_string()).env("MODE", mode).env("SPIN_MS", "1");
        let process = command.stdout(Stdio::null()).spawn().expect("node starts");
        let service = Service { process, port: free.port() };
        let deadline = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(("127.0.0.1", service.port)).is_err() {
            assert!(Instant::now() < deadline, "waited 20 s for the service");
            thread::sleep(Duration::from_millis(20));
        }
        service
    }

    fn load(&self, flags: &[&str]) -> Command {
        let mut command = proofload();
        command.arg("load").arg(format!("http://127.0.0.1:{}/", self.port)).args(["-c", "8"]).args(flags);
        command
    }

    fn run(&self, flags: &[&str]) -> Output {
        self.load(flags).output().expect("proofload starts")
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.process.kill().expect("it can be killed");
        self.process.wait().expect("it ends");
    }
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(output)))
}

#[test]
fn steps_are_slices_of_their_own() {
    let service = Service::start("ok");
    let output = service.run(&["--rate", "50,100", "--duration", "1s", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let document = json(&output);
    assert_eq!((&document["version"], &document["asked_steps"]), (&1.into(), &2.into()));
    assert!(document["capacity"].is_null() && document["void"].is_null());
    let steps = document["steps"].as_array().expect("steps");
    for (step, per_s) in steps.iter().zip([50.0, 100.0]) {
        assert_eq!((&step["loop"], &step["open"]["rate_per_s"]), (&"open".into(), &per_s.into()));
        assert_eq!(step["open"]["intended"], per_s as u64, "one second of it");
        assert_eq!(step["response"]["count"], step["open"]["intended"]);
        assert!(step["open"]["verdict"].is_string() && step["open"]["ramp"].is_null());
        assert!(step["version"].is_null(), "the document has one");
    }
    assert_eq!(steps.len(), 2);

    let text = stdout(&service.run(&["--rate", "50,100", "--duration", "500ms"]));
    for part in ["2 steps of 0.5 s", "verdict\n", "\n 50/s ", "\n100/s "] {
        assert!(text.contains(part), "{part:?}: {text}");
    }
}

#[test]
fn a_ramp_has_its_tenths() {
    let service = Service::start("ok");
    let output = service.run(&["--rate", "50..250", "--duration", "2s", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let document = json(&output);
    let (open, ramp) = (&document["open"], &document["open"]["ramp"]);
    assert_eq!(open["intended"], 300, "two seconds of 150 on average");
    assert!(open["rate_per_s"].is_null() && open["verdict"].is_null());
    assert_eq!(
        (&ramp["from_per_s"], &ramp["to_per_s"], &ramp["over_s"]),
        (&50.0.into(), &250.0.into(), &2.0.into())
    );
    let stretches = ramp["stretches"].as_array().expect("stretches");
    let due = stretches.iter().map(|stretch| stretch["due_per_s"].as_f64().expect("a rate") * 0.2);
    assert_eq!((stretches.len(), due.sum::<f64>().round()), (10, 300.0));
    let ok: f64 = stretches.iter().map(|stretch| stretch["ok_per_s"].as_f64().expect("a rate") * 0.2).sum();
    assert_eq!(Some(ok.round() as u64), document["requests"]["ok_in_window"].as_u64());

    let text = stdout(&service.run(&["--rate", "50..250", "--duration", "1s"]));
    assert!(text.contains("open loop from 50.0/s to 250/s") && text.contains("\nRamp "), "{text}");
    let refused = service.run(&["--rate", "50..250", "--requests", "5"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("--duration"), "{}", stderr(&refused));
}

#[test]
fn a_share_is_of_a_capacity_that_was_measured() {
    let service = Service::start("ok");
    let output = service.run(&["--rate", "60%", "--duration", "1s", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for part in ["measuring capacity: closed loop, 8 connections", "\ncapacity: "] {
        assert!(stderr(&output).contains(part), "{}", stderr(&output));
    }
    let document = json(&output);
    let capacity = &document["capacity"];
    assert_eq!((&capacity["loop"], &capacity["warmup_s"]), (&"closed".into(), &1.0.into()));
    assert!(capacity["window_s"].as_f64().is_some_and(|window_s| (2.9..3.5).contains(&window_s)));
    let per_s = capacity["throughput_per_s"].as_f64().expect("a capacity");
    let rate = document["open"]["rate_per_s"].as_f64().expect("a rate");
    assert!(per_s > 0.0 && (rate / per_s - 0.6).abs() < 1e-9, "{rate} of {per_s}");
    assert_eq!((&document["open"]["share_of_capacity"], &document["loop"]), (&0.6.into(), &"open".into()));
}

#[test]
fn without_a_good_answer_there_is_no_capacity_and_no_share_of_it() {
    let service = Service::start("500");
    let output = service.run(&["--rate", "25%,50%", "--duration", "1s", "--json"]);
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    let document = json(&output);
    assert_eq!(document["steps"], Value::Array(vec![]));
    assert!(document["void"].is_string(), "{document}");
    assert!(document["capacity"]["status"]["500"].as_u64().is_some_and(|answers| answers > 0));
}

#[test]
fn ctrl_c_ends_all_steps_and_keeps_what_there_is() {
    let service = Service::start("ok");
    let mut command = service.load(&["--rate", "50,60,70", "--duration", "1s", "--json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("proofload starts");
    let mut talk = BufReader::new(child.stderr.take().expect("stderr is piped"));
    let mut first = String::new();
    talk.read_line(&mut first).expect("stderr is readable");
    assert!(first.starts_with("step 1 of 3, 50/s: "), "{first}");
    signal(&child, "-INT");
    let mut rest = String::new();
    talk.read_to_string(&mut rest).expect("stderr is readable");
    let output = child.wait_with_output().expect("proofload ends");
    assert_eq!(output.status.code(), Some(130), "{rest}");
    let document = json(&output);
    assert_eq!((&document["interrupted"], &document["asked_steps"]), (&true.into(), &3.into()));
    let steps = document["steps"].as_array().expect("steps");
    assert!((1..3).contains(&steps.len()), "{} steps", steps.len());
    assert_eq!((&steps[0]["interrupted"], &steps[0]["open"]["intended"]), (&false.into(), &50.into()));
}
