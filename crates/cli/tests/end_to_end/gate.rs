//! `proofload run --gate` and `proofload gate`: exit codes on real services, and what GitHub Actions is told.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::place::{Place, proofload, stderr, stdout};
use serde_json::Value;

fn gate(record: &Path, flags: &[&str]) -> Output {
    let mut command = proofload();
    command.arg("gate").arg(record).args(flags);
    quiet(&mut command).output().expect("proofload starts")
}

/// A test may itself run where GitHub Actions runs it.
fn quiet(command: &mut Command) -> &mut Command {
    command.env_remove("GITHUB_ACTIONS").env_remove("GITHUB_STEP_SUMMARY").env_remove("GITHUB_WORKSPACE")
}

/// The exit code and the outcome in JSON.
fn outcome(record: &Path, flags: &[&str]) -> (Option<i32>, String) {
    let output = gate(record, &[flags, &["--json"]].concat());
    let json: Value =
        serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    (output.status.code(), json["outcome"].as_str().unwrap_or_default().to_owned())
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("a folder");
    for file in ["record.json", "events.jsonl"] {
        fs::copy(from.join(file), to.join(file)).expect("a file of the record");
    }
}

#[test]
fn a_slower_service_breaks_the_gate_and_the_runner_is_told_where() {
    let place = Place::new();
    let limits = "[gate]\nthroughput = \"> -3%\"\nfailed = \"< 20%\"";
    let experiment = place.experiment("api.env.SPIN_MS = 1", "api.env.SPIN_MS = 3", limits);
    let summary = place.path("summary.md");
    fs::write(&summary, "before\n").expect("the summary");
    let run = || {
        let mut command = place.command(&experiment);
        command.arg("--gate").env("GITHUB_ACTIONS", "true").env("GITHUB_STEP_SUMMARY", &summary);
        command.env("GITHUB_WORKSPACE", place.path(""));
        command.output().expect("proofload starts")
    };
    let mut output = run();
    // On a machine that is taken away from us six blocks may not tell a factor of nearly three.
    for _ in 0..2 {
        if output.status.code() == Some(1) {
            break;
        }
        eprintln!("again, after\n{}{}", stdout(&output), stderr(&output));
        fs::remove_dir_all(place.record()).expect("the record goes");
        fs::write(&summary, "before\n").expect("the summary");
        output = run();
    }
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{said}{}", stderr(&output));
    assert_eq!(place.left_running(), Vec::<String>::new());
    assert!(said.contains("SLOWER") && said.contains("FAIL  1 of 2 limits fails"), "{said}");
    let text = fs::read_to_string(&experiment).expect("the file");
    let line = text.lines().position(|line| line.starts_with("throughput =")).expect("the limit") + 1;
    let annotation = format!(
        "::error file=experiment.toml,line={line},title=throughput > -3%25%3A fail::candidate against"
    );
    assert!(said.contains(&annotation), "{said}");
    let summary = fs::read_to_string(&summary).expect("the summary");
    assert!(summary.starts_with("before\n### "), "{summary}");
    assert!(summary.contains("- **slower**: candidate") && summary.contains("### Gate: fail"), "{summary}");

    // The record has the limits, and is judged again by others without another run.
    let record = place.record();
    assert_eq!(outcome(&record, &[]), (Some(1), "broken".into()));
    fs::remove_file(&experiment).expect("the experiment is not needed any more");
    let json: Value = serde_json::from_str(&stdout(&gate(&record, &["--json"]))).expect("JSON");
    assert_eq!((&json["limits"][0]["line"], &json["limits"][1]["ruling"]), (&line.into(), &"kept".into()));
    let report = proofload().arg("report").arg(&record).arg("--json").output().expect("proofload starts");
    let report: Value = serde_json::from_str(&stdout(&report)).expect("JSON");
    let ratio = report["comparisons"][0]["estimate"]["ratio"].as_f64().expect("an estimate");

    // The same figures without the file's limits: generous ones are kept, one of impossible precision stays open.
    let free = place.path("free");
    copy(&record, &free);
    let header = fs::read_to_string(free.join("record.json")).expect("the header");
    let mut header: Value = serde_json::from_str(&header).expect("JSON");
    header["plan"].as_object_mut().expect("a plan").remove("gate");
    fs::write(free.join("record.json"), header.to_string()).expect("the header");
    let precise = format!("throughput > {:+.4}%", (ratio - 1.0) * 100.0);
    assert_eq!(
        outcome(&free, &["--limit", "throughput > -99%", "--limit", "failed < 20%"]),
        (Some(0), "kept".into())
    );
    assert_eq!(outcome(&free, &["--max-regression", "3%"]), (Some(1), "broken".into()));
    assert_eq!(outcome(&free, &["--limit", &precise]), (Some(5), "open".into()));
    assert_eq!(outcome(&free, &["--limit", &precise, "--allow-open"]), (Some(0), "open".into()));
    assert!(
        stdout(&gate(&free, &["--limit", &precise, "--allow-open"])).contains("let pass by --allow-open")
    );
    for (flags, said) in [
        (&[][..], "there is no limit to judge by"),
        (&["--limit", "p99 < 50ms"], "never measures p99"),
        (&["--limit", "p99 <= 50ms"], "has a relation other than"),
        (&["--max-regression", "3"], "is not a percentage"),
    ] {
        let output = gate(&free, flags);
        assert_eq!(output.status.code(), Some(2), "{flags:?}");
        assert!(stderr(&output).contains(said), "{flags:?}: {}", stderr(&output));
    }

    // A record that broke off is judged by nothing, and neither is a void one; with --allow-open neither.
    let events = fs::read_to_string(free.join("events.jsonl")).expect("the events");
    let cut = events.lines().count() - 1;
    let unfinished: Vec<&str> = events.lines().take(cut).collect();
    fs::write(free.join("events.jsonl"), unfinished.join("\n") + "\n").expect("the events");
    let allowed = ["--limit", "throughput > -99%", "--allow-open"];
    assert_eq!(outcome(&free, &allowed), (Some(4), "not_judged".into()));
    // Of five blocks there is no conclusion.
    let few: Vec<&str> =
        events.lines().filter(|line| !line.starts_with("{\"block_ended\":{\"block\":6,")).collect();
    fs::write(free.join("events.jsonl"), few.join("\n") + "\n").expect("the events");
    assert_eq!(outcome(&free, &allowed), (Some(4), "not_judged".into()));
    assert!(stdout(&gate(&free, &allowed)).contains("NOT JUDGED  the measurement is void: V"));
}

#[test]
fn limits_that_cannot_be_judged_are_told_before_anything_starts() {
    let place = Place::new();
    let experiment = place.experiment("api.env.SPIN_MS = 1", "api.env.SPIN_MS = 3", "");
    for (flags, said) in [
        (&["--gate"][..], "there is no limit to judge by"),
        (&["--gate", "--limit", "p99 < 50ms"], "never measures p99"),
        (&["--max-regression", "3%"], "--max-regression goes with --gate"),
    ] {
        let output = quiet(place.command(&experiment).args(flags)).output().expect("proofload starts");
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {}", stdout(&output));
        assert!(stderr(&output).contains(said), "{flags:?}: {}", stderr(&output));
        assert!(!place.record().exists(), "{flags:?}");
    }
}
