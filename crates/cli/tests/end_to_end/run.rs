//! `proofload run` on real services: verdicts, counts, failures, interruption; and nothing left behind.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::place::{Place, proofload, signal, stderr, stdout};
use serde_json::Value;

#[test]
fn a_slower_service_is_found_slower_and_every_request_is_accounted_for() {
    let place = Place::new();
    let experiment = place.experiment("api.env.SPIN_MS = 1", "api.env.SPIN_MS = 3", "");
    let Some(output) = place.run_well(&experiment, "SLOWER") else { return };
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    assert!(stdout(&output).contains("SLOWER"), "{}", stdout(&output));
    assert!(stdout(&output).contains("candidate"), "{}", stdout(&output));

    // Our count against the server's own, trial by trial.
    let record = record::open(&place.record()).expect("the record opens");
    let logs: BTreeMap<String, String> = place.logs().into_iter().collect();
    let mut trials = 0;
    for block in record.complete_blocks() {
        for trial in &block.trials {
            let name = &record.header.plan.variants[trial.variant()].name;
            let log = &logs[&format!("block-{:02}-{name}-api.log", block.number)];
            let sent: u64 = trial.slices.iter().map(|slice| slice.counts.sent).sum();
            let counted = log.lines().find_map(|line| line.strip_prefix("requests ")?.parse::<u64>().ok());
            // Beside the load there are at most two looks at a response before it.
            let looks = counted.and_then(|counted| counted.checked_sub(sent));
            assert!(looks.is_some_and(|looks| looks <= 2), "we sent {sent}, the service said: {log}");
            if trial.started.witnesses.iter().any(|witness| witness.repeats) {
                assert_eq!(looks, Some(2), "{log}");
            }
            assert!(sent > 0);
            trials += 1;
        }
    }
    assert_eq!(trials, 12);
    assert_eq!(place.left_running(), Vec::<String>::new());

    // Every form of the report is drawn from the record alone.
    fs::remove_file(&experiment).expect("the experiment is not needed any more");
    let report = |form: &str| {
        let output = proofload().arg("report").arg(place.record()).args(["--format", form]).output();
        let output = output.expect("proofload starts");
        assert_eq!(output.status.code(), Some(0));
        stdout(&output)
    };
    assert_eq!(report("text"), stdout(&output));
    assert!(report("markdown").contains("- **slower**: candidate against baseline"));
    let json: Value = serde_json::from_str(&report("json")).expect("it is JSON");
    assert_eq!(json["comparisons"][0]["outcome"], "worse");
    assert_eq!(json["blocks"], 6);
    let page = fs::read_to_string(place.record().join("report.html")).expect("the run left its page");
    assert!(
        page.contains("candidate has a lower throughput than baseline") && page.contains("</html>"),
        "{page}"
    );
    assert_eq!(report("html"), page);
    let written = place.record().join("again.md");
    let mut command = proofload();
    let output = command.arg("report").arg(place.record()).args(["--format", "md", "--out"]).arg(&written);
    assert_eq!(output.output().map(|output| stdout(&output)).expect("proofload starts"), "");
    assert_eq!(fs::read_to_string(&written).expect("the report"), report("markdown"));
}

#[test]
fn a_service_that_fails_is_told_with_its_last_words() {
    for (mode, said) in [
        ("exit", "cannot find the configuration: giving up"),
        ("hang", "not ready"),
        ("die", "out of luck after many requests"),
    ] {
        let place = Place::new();
        let experiment = place.experiment("", &format!("api.env.MODE = \"{mode}\""), "");
        if mode == "hang" {
            let text = fs::read_to_string(&experiment).expect("the file");
            fs::write(&experiment, text.replace("ready_timeout = \"20s\"", "ready_timeout = \"2s\""))
                .expect("the file");
        }
        let output = place.run(&experiment);
        assert_eq!(output.status.code(), Some(3), "{mode}: {}", stderr(&output));
        assert!(stderr(&output).contains(said), "{mode}: {}", stderr(&output));
        assert_eq!(place.left_running(), Vec::<String>::new(), "{mode}");
        let report = proofload().arg("report").arg(place.record()).output().expect("proofload starts");
        assert_eq!(report.status.code(), Some(3), "{mode}: {}", stderr(&report));
    }
}

#[test]
#[ignore = "slow: make check-slow"]
fn services_that_only_answer_wrongly_are_told_so_instead_of_any_number_and_others_are_judged() {
    let modes = [
        ("500", "succeeded: status 500"),
        ("garbage", "succeeded: head malformed"),
        ("short", "succeeded: body closed-early"),
        ("silent", "silent: no answer within 1 s (0 of "),
    ];
    let place = Place::new();
    let experiment = place.experiment("api.env.SPIN_MS = 1", "api.env.SPIN_MS = 3", "");
    let levels = modes.map(|(mode, _)| format!("\"{mode}\" = {{ api.env.MODE = \"{mode}\" }}\n")).concat();
    let text =
        fs::read_to_string(&experiment).expect("the file").replace("[load]\n", &format!("{levels}[load]\n"));
    fs::write(&experiment, text).expect("the file");
    let Some(output) = place.run_well(&experiment, "SLOWER") else { return };
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    let words: Vec<String> = stdout(&output).split_whitespace().map(str::to_owned).collect();
    let words = words.join(" ");
    assert!(words.contains("SLOWER candidate against baseline"), "{words}");
    for (mode, said) in modes {
        assert!(words.contains(&format!("NO SUCCESS {mode} against baseline {mode}: ")), "{mode}: {words}");
        assert!(words.contains(said), "{mode}: {words}");
    }
    assert_eq!(place.left_running(), Vec::<String>::new());
}

#[test]
fn an_experiment_in_which_nothing_succeeds_is_void_at_once() {
    let place = Place::new();
    let experiment = place.experiment("api.env.MODE = \"500\"", "api.env.MODE = \"silent\"", "");
    let output = place.run(&experiment);
    assert_eq!(output.status.code(), Some(4), "{}{}", stdout(&output), stderr(&output));
    let record = record::open(&place.record()).expect("the record opens");
    assert_eq!(record.complete_blocks().count(), 0);
    let words: Vec<String> = stdout(&output).split_whitespace().map(str::to_owned).collect();
    let words = words.join(" ");
    assert!(words.contains("succeeded: status 500; candidate: no answer within 1 s"), "{words}");
}

#[test]
fn a_treatment_that_is_not_applied_ends_the_run_with_what_came_and_what_to_do() {
    let place = Place::new();
    let experiment = place.experiment("", "expect.headers.content-encoding = \"gzip\"", "");
    let output = place.run(&experiment);
    assert_eq!(output.status.code(), Some(4), "{}{}", stdout(&output), stderr(&output));
    let record = record::open(&place.record()).expect("the record opens");
    assert_eq!(record.complete_blocks().count(), 0);
    assert!(
        stderr(&output).contains("stopped, because going on is pointless: candidate: level candidate of "),
        "{}",
        stderr(&output)
    );
    let words: Vec<String> = stdout(&output).split_whitespace().map(str::to_owned).collect();
    let words = words.join(" ");
    assert!(words.contains("declares content-encoding gzip, and "), "{words}");
    assert!(words.contains("set load.headers.accept-encoding"), "{words}");
    assert_eq!(place.left_running(), Vec::<String>::new());
}

#[test]
fn a_service_that_closes_or_floods_is_measured_all_the_same() {
    for mode in ["close", "flood"] {
        let place = Place::new();
        let experiment = place.experiment("", &format!("api.env.MODE = \"{mode}\""), "");
        let Some(output) = place.run_well(&experiment, "") else { continue };
        assert_eq!(output.status.code(), Some(0), "{mode}: {}{}", stdout(&output), stderr(&output));
        let largest = fs::read_dir(place.record().join("logs")).expect("logs").flatten();
        let largest = largest.filter_map(|log| Some(log.metadata().ok()?.len())).max();
        assert!(largest.is_some_and(|bytes| bytes < 3 << 20), "{mode}: a log of {largest:?} bytes");
        assert_eq!(place.left_running(), Vec::<String>::new(), "{mode}");
    }
}

#[test]
fn a_port_that_is_taken_and_a_command_that_is_missing_are_named() {
    let holder = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = holder.local_addr().expect("its address").port();
    let place = Place::new();
    let experiment = place.experiment("", "api.env.X = 1", &format!("[services.api2]\ncommand=[\"x\"]\n[factors.p]\na={{ api.port = {port} }}\nb={{ api.port = {port}, api.env.Y = 1 }}"));
    let text = fs::read_to_string(&experiment)
        .expect("the file")
        .replace("name = \"test\"", "name = \"test\"\nentry = \"api\"");
    fs::write(&experiment, text).expect("the file");
    let output = place.run(&experiment);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains(&port.to_string()), "{}", stderr(&output));
    assert!(
        stderr(&output).contains(&std::process::id().to_string()),
        "the owner is named: {}",
        stderr(&output)
    );

    let place = Place::new();
    let experiment = place.experiment("", "api.command = [\"no-such-program\"]", "");
    let output = place.run(&experiment);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("no-such-program"), "{}", stderr(&output));
}

/// Starts a long run and waits until a service of it lives.
fn under_way(place: &Place) -> std::process::Child {
    let experiment = place.experiment("", "api.env.X = 1", "");
    let text = fs::read_to_string(&experiment).expect("the file").replace("slices = 1\n", "slices = 20\n");
    fs::write(&experiment, text).expect("the file");
    let mut command = place.command(&experiment);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("proofload starts");
    let events = place.record().join("events.jsonl");
    wait_until("a slice is in the record", || {
        fs::read_to_string(&events).is_ok_and(|text| text.contains(r#""kind":"measured""#))
    });
    child
}

fn wait_until(what: &str, done: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < deadline, "waited 20 s until {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn ctrl_c_ends_cleanly_with_what_there_is() {
    let place = Place::new();
    let child = under_way(&place);
    signal(&child, "-INT");
    let output = child.wait_with_output().expect("proofload ends");
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stdout(&output).contains("interrupted"), "{}", stdout(&output));
    assert_eq!(place.left_running(), Vec::<String>::new());
}

#[test]
fn a_kill_leaves_no_process_and_a_record_that_opens() {
    let place = Place::new();
    let mut child = under_way(&place);
    assert!(place.left_running().len() >= 3, "proofload, a warden and a service");
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    wait_until("nothing is left", || place.left_running().is_empty());
    let report = proofload().arg("report").arg(place.record()).output().expect("proofload starts");
    assert!(stdout(&report).contains("did not end by itself"), "{}{}", stdout(&report), stderr(&report));
}

#[test]
fn a_full_disk_ends_the_run_and_the_record_still_opens() {
    let namespaces = Command::new("unshare").args(["--map-root-user", "--mount", "true"]).status();
    if !namespaces.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: this system gives no mount namespace in which a disk could be full");
        return;
    }
    let place = Place::new();
    let experiment = place.experiment("", "api.env.X = 1", "");
    fs::create_dir(place.path("small")).expect("a folder");
    // A file system of 64 KiB in a mount namespace of its own.
    let script = r#"mount -t tmpfs -o size=64k tmpfs "$1" && shift && "$@"; code=$?
        proof=$1; "$proof" report "$small/record" >&2; exit $code"#;
    let output = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", &format!("small=$1; {script}"), "sh"])
        .arg(place.path("small"))
        .arg(env!("CARGO_BIN_EXE_proofload"))
        .arg("run")
        .arg(&experiment)
        .arg("--out")
        .arg(place.path("small/record"))
        .env("PROOFLOAD_TEST_PLACE", place.path("").parent().expect("a folder"))
        .output()
        .expect("unshare starts");
    assert_eq!(output.status.code(), Some(6), "{}{}", stdout(&output), stderr(&output));
    assert!(stderr(&output).contains("the disk is full"), "{}", stderr(&output));
    assert!(stderr(&output).contains("cut off") || stderr(&output).contains("blocks"), "{}", stderr(&output));
}
