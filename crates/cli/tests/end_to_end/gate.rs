//! `proofload run --gate` and `proofload gate`: exit codes on real services, and the output for GitHub
//! Actions.

use std::fs;
use std::process::Command;

use record::Event;

use crate::place::{Draft, Place, Run, Said};
use crate::rewritten;

/// `proofload gate` for a record in this place.
fn gate(place: &Place, record: &str, flags: &[&str]) -> Said {
    quiet(&mut place.proofload(&[&["gate", record], flags].concat())).said()
}

/// The test itself may run in GitHub Actions.
fn quiet(command: &mut Command) -> &mut Command {
    command
        .env_remove("GITHUB_ACTIONS")
        .env_remove("GITHUB_STEP_SUMMARY")
        .env_remove("GITHUB_WORKSPACE")
}

/// Asserts the exit code and the JSON outcome of a record's gate.
fn judges(place: &Place, record: &str, flags: &[&str], code: i32, outcome: &str) {
    let said = gate(place, record, &[flags, &["--json"]].concat());
    assert_eq!(
        said.ends(code).json()["outcome"],
        outcome,
        "{flags:?}: {said}"
    );
}

#[test]
fn a_slower_service_breaks_the_gate_and_the_runner_is_told_where() {
    let place = Place::new();
    let limits = "[gate]\nthroughput = \"> -3%\"\nfailed = \"< 20%\"";
    let experiment = place.two("api.env.SPIN_MS = 1", "api.env.SPIN_MS = 3", limits);
    let run = || {
        let summary = place.write("summary.md", "before\n");
        let mut command = place.command(&experiment);
        command
            .arg("--gate")
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_STEP_SUMMARY", &summary);
        command.env("GITHUB_WORKSPACE", place.path(""));
        command
    };
    let Some(said) = place.run_well_as(run, 1, "SLOWER") else {
        return;
    };
    let text = fs::read_to_string(&experiment).expect("the file");
    let line = text
        .lines()
        .position(|line| line.starts_with("throughput ="))
        .expect("the limit")
        + 1;
    let annotation = format!(
        "::error file=experiment.toml,line={line},title=throughput > -3%25%3A fail::candidate vs"
    );
    said.prints(&["FAIL  1 of 2 limits fails", &annotation]);
    let summary = place.read("summary.md");
    assert!(summary.starts_with("before\n### "), "{summary}");
    assert!(
        summary.contains("- **slower**: candidate") && summary.contains("### Gate: fail"),
        "{summary}"
    );

    // The record contains the limits, and can be judged by others without another run.
    judges(&place, "record", &[], 1, "fail");
    fs::remove_file(&experiment).expect("the experiment is not needed any more");
    let json = gate(&place, "record", &["--json"]).json();
    assert_eq!(
        (&json["limits"][0]["line"], &json["limits"][1]["outcome"]),
        (&line.into(), &"pass".into())
    );
    let cases = [
        "failures=\"1\" errors=\"0\"",
        "<testcase name=\"throughput &gt; -3%\"",
        "<failure message=\"fail: ",
    ];
    gate(&place, "record", &["--format", "junit"])
        .ends(1)
        .prints(&cases);
    let report = place.said(&["report", "record", "--json"]).json();
    let ratio = report["comparisons"][0]["estimate"]["ratio"]
        .as_f64()
        .expect("an estimate");

    // The same figures without the file's limits: generous limits pass, one of impossible precision stays
    // inconclusive.
    let mut header = place.opened().header;
    header.plan.gate.clear();
    let free = |events: &[Event]| {
        let _ = fs::remove_dir_all(place.path("free"));
        rewritten::write(&place.path("free"), header.clone(), events.to_vec());
    };
    let events = rewritten::events(&place.record());
    free(&events);
    let precise = format!("throughput > {:+.4}%", (ratio - 1.0) * 100.0);
    for (flags, code, outcome) in [
        (
            &["--limit", "throughput > -99%", "--limit", "failed < 20%"][..],
            0,
            "pass",
        ),
        (&["--max-regression", "3%"], 1, "fail"),
        (&[], 1, "fail"),
        (&["--limit", &precise], 5, "inconclusive"),
        (&["--limit", &precise, "--allow-open"], 0, "inconclusive"),
    ] {
        judges(&place, "free", flags, code, outcome);
    }
    gate(&place, "free", &["--limit", &precise, "--allow-open"])
        .prints(&["let pass by --allow-open"]);
    for (flags, part) in [
        (&["--limit", "p99 < 50ms"][..], "never measures p99"),
        (&["--limit", "p99 <= 50ms"], "has a relation other than"),
        (&["--max-regression", "3"], "is not a percentage"),
    ] {
        gate(&place, "free", flags).ends(2).tells(&[part]);
    }

    // A truncated record cannot be judged, and neither can a void one, not even with --allow-open.
    let allowed = ["--limit", "throughput > -99%", "--allow-open"];
    free(&events[..events.len() - 1]);
    judges(&place, "free", &allowed, 4, "not_judged");
    // Three blocks permit no conclusion.
    let few = events
        .iter()
        .filter(|event| !matches!(event, Event::BlockEnded { block: 4.., .. }));
    free(&few.cloned().collect::<Vec<_>>());
    judges(&place, "free", &allowed, 5, "not_judged");
    gate(&place, "free", &allowed).prints(&["NOT JUDGED  3 complete blocks; "]);
}

#[test]
fn limits_that_cannot_be_judged_are_told_before_anything_starts() {
    let place = Place::new();
    let experiment = place.two("api.env.SPIN_MS = 1", "api.env.SPIN_MS = 3", "");
    for (flags, said) in [
        (
            &["--gate", "--limit", "p99 < 50ms"][..],
            "`gate.p99` is never measured",
        ),
        (
            &["--gate", "--limit", "capacity > 5/s"],
            "`design.slo` says them",
        ),
        (
            &["--max-regression", "3%"],
            "--max-regression goes with --gate",
        ),
    ] {
        quiet(place.command(&experiment).args(flags))
            .said()
            .ends(2)
            .tells(&[said]);
        assert!(!place.record().exists(), "{flags:?}");
    }
    let one = place.experiment(&Draft::default());
    quiet(place.command(&one).arg("--gate"))
        .said()
        .ends(2)
        .tells(&["there is no limit to judge by"]);
}

#[test]
fn a_service_that_never_starts_is_told_in_every_form() {
    let place = Place::new();
    let text = "name = \"x\"\n[services.api]\ncommand = [\"sh\", \"-c\", \"exit 7\"]\n[factors.way]\none = {}\ntwo = { api.env.X = \"1\" }\n";
    place.write("never.toml", text);
    for (form, expected) in [
        (
            "json",
            "\"service_failed\": \"service api ended with status 7",
        ),
        ("junit", "<error message=\"service api ended with status 7"),
        (
            "markdown",
            "### A service failed: service api ended with status 7",
        ),
    ] {
        let words = [
            "run",
            "never.toml",
            "--gate",
            "--max-regression",
            "3%",
            "--format",
            form,
            "--out",
            form,
        ];
        let mut command = place.proofload(&words);
        let said = quiet(command.current_dir(place.path(""))).said();
        said.ends(3);
        assert!(said.out.contains(expected), "{form}: {said}");
    }
}
