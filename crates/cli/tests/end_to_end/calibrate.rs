//! `proofload doctor calibrate` on a real service: figures of two copies, their use by `check`, and nothing
//! left behind.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::place::{Draft, Place};

/// Enough slices in each trial for a spread, and enough time for a service on a busy machine to start and to
/// respond.
fn patient(place: &Place, levels: &str) -> PathBuf {
    let more = format!("[factors.setting]\n{levels}");
    let (load, design) = ("timeout = \"20s\"", "slices = 3");
    place.experiment(&Draft {
        more: &more,
        load,
        design,
        ..Draft::default()
    })
}

#[test]
fn two_copies_are_measured_and_check_says_how_long_the_margin_takes() {
    let place = Place::new();
    patient(
        &place,
        "baseline = { api.env.SPIN_MS = 1 }\ncandidate = { api.env.SPIN_MS = 3 }",
    );
    let said = |words: &[&str]| {
        place.said(
            &[
                &["doctor", "calibrate", "experiment.toml", "--variant"],
                words,
            ]
            .concat(),
        )
    };
    said(&["nobody"])
        .ends(2)
        .tells(&["`baseline`, `candidate`"]);

    let json = said(&["candidate", "--budget", "60s", "--seed", "1", "--json"])
        .ends(0)
        .json();
    place.is_quiet();
    assert_eq!(json["variant"], "candidate");
    let calibration = &json["calibration"];
    assert_eq!(calibration["blocks"], 6);
    assert!(
        calibration["block_s"].as_f64().is_some_and(|s| s > 1.0),
        "{json:#}"
    );
    let metrics = calibration["metrics"].as_array().expect("metrics");
    let throughput = metrics
        .iter()
        .find(|noise| noise["metric"] == "throughput")
        .expect("throughput");
    let figure = |name: &str| throughput[name].as_f64();
    assert!(
        figure("sd_log").is_some_and(|sd| sd > 0.0 && sd < 1.0),
        "{json:#}"
    );
    assert!(
        figure("processes_sd").is_some() && figure("slices_sd").is_some(),
        "{json:#}"
    );
    let copies = |end: &str| throughput["copies"][end].as_f64().expect("a figure");
    assert!(
        copies("low") < copies("ratio") && copies("ratio") < copies("high"),
        "{json:#}"
    );
    // Copies of a service that works for 3 ms do not differ by a factor of two.
    assert!((0.5..2.0).contains(&copies("ratio")), "{json:#}");
    let found = throughput["found"].as_array().expect("three budgets");
    assert!(
        found.len() == 3 && found[1]["blocks"].as_u64() > found[0]["blocks"].as_u64(),
        "{json:#}"
    );

    // The record is in the folder of records, opens, and provides the spread for `check`.
    let record = json["record"].as_str().expect("a folder");
    assert!(record.contains("records/test-calibration-"), "{record}");
    let mode = fs::metadata(place.path(record))
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700, "it is for nobody else");
    place
        .said(&["report", record])
        .prints(&["candidate vs itself"]);
    let check = place.said(&["run", "--dry-run", "experiment.toml"]);
    check.prints(&[
        "as in records/test-calibration-",
        "is found in 8 of 10 runs",
    ]);
}

#[test]
fn a_calibration_that_is_void_shows_no_figure() {
    let place = Place::new();
    patient(
        &place,
        "baseline = { api.env.MODE = \"500\" }\ncandidate = {}",
    );
    let said = place.said(&["doctor", "calibrate", "experiment.toml", "--out", "record"]);
    said.ends(4).prints(&["invalid V"]);
    assert!(
        !said.out.contains("ALIKE") && !said.out.contains("noise"),
        "{said}"
    );
}
