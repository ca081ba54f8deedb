//! `proofload calibrate` on a real service: figures of two copies, what `check` makes of them, and nothing left behind.

use std::fs;
use std::path::Path;

use crate::place::{Place, proofload, stderr, stdout};
use serde_json::Value;

/// Gives each trial slices enough for a spread within it, and a service on a busy machine time to start and to answer.
fn patient(experiment: &Path) {
    let text = fs::read_to_string(experiment).expect("the file");
    let text = text.replace("slices = 1\n", "slices = 3\n");
    let text = text.replace("timeout = \"1s\"\n[design]", "timeout = \"20s\"\n[design]");
    fs::write(experiment, text).expect("the file");
}

#[test]
fn two_copies_are_measured_and_check_says_how_long_the_margin_takes() {
    let place = Place::new();
    let experiment = place.experiment("api.env.SPIN_MS = 1", "api.env.SPIN_MS = 3", "");
    patient(&experiment);
    let verb = |verb: &str, more: &[&str]| {
        let mut command = proofload();
        command.arg(verb).arg(&experiment).args(more).current_dir(place.path(""));
        command.env("PROOFLOAD_TEST_PLACE", place.record().parent().expect("the place's folder"));
        command.output().expect("proofload starts")
    };
    let unknown = verb("calibrate", &["--variant", "nobody"]);
    assert_eq!(unknown.status.code(), Some(2), "{}", stderr(&unknown));
    assert!(stderr(&unknown).contains("`baseline`, `candidate`"), "{}", stderr(&unknown));

    let output = verb("calibrate", &["--variant", "candidate", "--budget", "60s", "--seed", "1", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    assert_eq!(place.left_running(), Vec::<String>::new());
    let json: Value = serde_json::from_str(&stdout(&output)).expect("it is JSON");
    assert_eq!(json["variant"], "candidate");
    let calibration = &json["calibration"];
    assert_eq!(calibration["blocks"], 6);
    assert!(calibration["block_s"].as_f64().is_some_and(|s| s > 1.0), "{json:#}");
    let metrics = calibration["metrics"].as_array().expect("metrics");
    let throughput = metrics.iter().find(|noise| noise["metric"] == "throughput").expect("throughput");
    let figure = |name: &str| throughput[name].as_f64();
    assert!(figure("sd_log").is_some_and(|sd| sd > 0.0 && sd < 1.0), "{json:#}");
    assert!(figure("processes_sd").is_some() && figure("slices_sd").is_some(), "{json:#}");
    let copies = |end: &str| throughput["copies"][end].as_f64().expect("a figure");
    assert!(copies("low") < copies("ratio") && copies("ratio") < copies("high"), "{json:#}");
    // Copies of a service that works for 3 ms are no factor of two apart.
    assert!((0.5..2.0).contains(&copies("ratio")), "{json:#}");
    let found = throughput["found"].as_array().expect("three budgets");
    assert!(found.len() == 3 && found[1]["blocks"].as_u64() > found[0]["blocks"].as_u64(), "{json:#}");

    // The record lies where records lie, opens as one, and tells `check` the spread.
    let record = json["record"].as_str().expect("a folder");
    assert!(record.contains("records/test-calibration-"), "{record}");
    let report = proofload().arg("report").arg(place.path(record)).output().expect("proofload starts");
    assert!(stdout(&report).contains("candidate against itself"), "{}", stderr(&report));
    let check = verb("check", &[]);
    let said = stdout(&check);
    assert!(said.contains("as in records/test-calibration-"), "{said}");
    assert!(said.contains("is found in 8 of 10 runs"), "{said}");
}

#[test]
fn a_calibration_that_is_void_shows_no_figure() {
    let place = Place::new();
    let experiment = place.experiment("api.env.MODE = \"500\"", "", "");
    patient(&experiment);
    let mut command = proofload();
    command.arg("calibrate").arg(&experiment).arg("--out").arg(place.record());
    let output = command.output().expect("proofload starts");
    assert_eq!(output.status.code(), Some(4), "{}{}", stdout(&output), stderr(&output));
    let said = stdout(&output);
    assert!(said.contains("invalid V") && !said.contains("ALIKE") && !said.contains("noise"), "{said}");
}
