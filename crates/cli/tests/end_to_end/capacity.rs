//! `proofload capacity`: rejected input, the equivalent file, and the capacity of a real queue with known
//! capacity.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::place::{Place, Run, SERVICE};

const QUEUE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../targets/queue");

#[test]
fn what_cannot_be_borne_or_loaded_is_told_before_anything_starts() {
    let place = Place::new();
    for (words, told) in [
        (&["node x.js", "--slo", "p99 < 5"][..], "has no unit"),
        (&["node x.js", "--slo", "p99 < +5%"], "is a change"),
        (
            &["node x.js", "--slo", "throughput > 5/s"],
            "which users do not feel",
        ),
        (
            &["x.toml", "--slo", "throughput > 5/s"],
            "which users do not feel",
        ),
        (&["--slo", "p99 < 50ms"], "no service is named"),
        (
            &["x.toml", "--slo", "p99 < 50ms", "--path", "/a"],
            "--path: x.toml is an experiment file",
        ),
        (
            &["x.toml", "--slo", "p99 < 50ms", "--port", "80"],
            "--port: x.toml is an experiment file",
        ),
        (&["node x.js"], "--slo <LIMIT>"),
        (
            &["x --in a.toml", "--slo", "p99 < 9ms", "--rate", "9"],
            "capacity finds the rate by itself",
        ),
        (
            &["node x.js", "--slo", "p99 < 50ms", "--rate", "100"],
            "capacity finds the rate by itself",
        ),
    ] {
        place
            .said(&[&["capacity"], words].concat())
            .ends(2)
            .tells(&[told]);
    }
    let file = "name = \"x\"\n[services.api]\ncommand = [\"true\"]\n\
                [load]\nrequests = [{ path = \"/a\" }, { path = \"/b\" }]\n\
                [measure]\nduration = \"1s\"\n[gate]\nthroughput = \"> 5/s\"\n";
    place.write("x.toml", file);
    let words = [
        "capacity",
        "x.toml",
        "--slo",
        "p99 < 50ms",
        "--limit",
        "capacity > 5/s",
    ];
    let said = place.said(&[&words[..], &["--dry-run", "--json"]].concat());
    let plan = said
        .ends(0)
        .tells(&["the file's limit throughput > 5/s is not judged"])
        .json();
    assert_eq!(plan["gate"][0]["limit"], "capacity > 5/s");
    let design = [
        &plan["measure"],
        &plan["design"]["endpoint"],
        &plan["design"]["budget"]["secs"],
    ];
    assert_eq!(
        design,
        [&Value::Null, &Value::Null, &Value::from(180)],
        "what the file measures is no part"
    );
    for (budget, told) in [
        ("9s", "at least 10s"),
        ("20s", "--budget: the experiment has [measure]"),
    ] {
        place
            .said(&["run", "x.toml", "--budget", budget])
            .ends(2)
            .tells(&[told]);
    }
    assert!(!place.path("records").exists());
}

#[test]
fn the_saved_file_asks_the_same_and_a_budget_that_is_too_small_names_one_that_is_not() {
    let place = Place::new();
    let words = [
        "capacity",
        "--out",
        "record",
        "--save",
        "saved.toml",
        "--slo",
        "p50 < 20ms",
        "--budget",
        "10s",
    ];
    let command = format!("SPIN_MS=3 node {SERVICE}");
    let said = place.said(&[&words[..], &[command.as_str()]].concat());
    said.prints(&[
        "How many requests a second within p50 < 20ms?",
        "an interval takes four blocks of fresh processes: --budget",
    ]);
    let saved = place
        .said(&["run", "--dry-run", "saved.toml", "--json"])
        .json();
    assert_eq!(
        [&saved["design"]["metric"], &saved["design"]["slo"][0]],
        ["capacity", "p50 < 20ms"]
    );
    assert_eq!(
        saved["variants"][0]["load"]["connections_typed"],
        Value::Null,
        "the run chooses them"
    );
    place.is_quiet();
}

#[test]
#[ignore = "slow: make check-slow"]
fn the_capacity_of_a_queue_is_what_queueing_theory_says() {
    let place = Place::new();
    let mut build = Command::new("go");
    build
        .args(["build", "-o"])
        .arg(place.path("queue"))
        .arg(".")
        .current_dir(QUEUE)
        .stdin(Stdio::null());
    build.said().ends(0);
    let said = place.said(&[
        "capacity",
        "./queue",
        "--slo",
        "p99 < 50ms",
        "--budget",
        "80s",
        "--format",
        "json",
    ]);
    let report = said.ends(0).json();
    let found = &report["capacities"][0];
    // µ − ln(100) / 50 ms for a service of 1 ms. This machine is not idle.
    let per_s = found["reached_per_s"].as_f64().expect("a capacity");
    assert!((650.0..1050.0).contains(&per_s), "{said}");
    assert!(
        found["capacity_per_s"].as_f64().expect("a capacity") < 907.9,
        "{said}"
    );
    place.is_quiet();
}

/// A server that waits 20 ms has many requests in flight: the initial number of connections would limit it.
/// It freezes once a second if configured, so that its p99 does not depend on the rate.
const WAITING: &str = "const http = require('node:http');\n\
    http.createServer((_, response) => setTimeout(() => response.end('x'), Number(process.env.WAIT_MS))).listen(process.env.PORT);\n\
    const freeze = Number(process.env.FREEZE_MS || 0);\n\
    if (freeze) setInterval(() => { const end = Date.now() + freeze; while (Date.now() < end); }, 1000);\n";

#[test]
#[ignore = "slow: make check-slow"]
fn connections_are_raised_to_what_the_limit_has_use_for() {
    let place = Place::new();
    place.write("waiting.js", WAITING);
    let words = [
        "capacity",
        "WAIT_MS=100 node waiting.js",
        "--slo",
        "p90 < 300ms",
        "--budget",
        "60s",
    ];
    let report = place
        .said(&[&words[..], &["--format", "json"]].concat())
        .json();
    let connections = report["capacities"][0]["connections"]
        .as_u64()
        .expect("they are told");
    assert!(connections > 512, "{connections}");
    place.is_quiet();
}

#[test]
#[ignore = "slow: make check-slow"]
fn a_service_that_freezes_at_any_rate_holds_none() {
    let place = Place::new();
    place.write("waiting.js", WAITING);
    let words = [
        "capacity",
        "WAIT_MS=1 FREEZE_MS=60 node waiting.js",
        "--slo",
        "p99 < 20ms",
        "--budget",
        "40s",
    ];
    let words = [
        &words[..],
        &["--limit", "capacity > 10/s", "--out", "record"],
    ]
    .concat();
    let said = place.said(&words);
    assert!(
        !said.out.contains("HOLDS") && !said.out.contains("PASS"),
        "{said}"
    );
    place.is_quiet();
}
