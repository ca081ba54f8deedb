//! `proofload run` with a latency as metric, on a real service that answers later in one of its variants.

use std::fs;

use crate::place::{Place, SERVICE, proofload, stderr, stdout};
use serde_json::Value;

/// Delays far above what a busy machine adds; connections for many more requests than are under way at once.
fn experiment(place: &Place) -> std::path::PathBuf {
    let text = format!(
        r#"name = "latency"
[services.api]
command = ["node", "{SERVICE}"]
ready = "/healthz"
env = {{ PORT = "{{port}}", MODE = "delay" }}
[factors.delay]
short = {{ api.env.DELAY_MS = 20 }}
long = {{ api.env.DELAY_MS = 60 }}
[load]
connections = 64
[design]
drop_disturbed = false
metric = "p50"
rate = "10%"
budget = "90s"
warmup = "300ms"
slices = 2
blocks = 6
"#
    );
    let path = place.path("latency.toml");
    fs::write(&path, text).expect("the experiment is written");
    path
}

#[test]
#[ignore = "slow: make check-slow"]
fn a_service_that_answers_later_is_found_slower_at_a_common_rate() {
    let place = Place::new();
    let experiment = experiment(&place);
    let check = proofload().arg("check").arg(&experiment).output().expect("proofload starts");
    assert!(
        stdout(&check).contains("open loop: 10 % of what the slowest variant can do"),
        "{}",
        stdout(&check)
    );

    let Some(output) = place.run_well(&experiment, "SLOWER") else { return };
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    assert!(stdout(&output).contains("SLOWER"), "{}", stdout(&output));
    let words: Vec<String> = stdout(&output).split_whitespace().map(str::to_owned).collect();
    assert!(words.join(" ").contains("(10 % of the slowest capacity: long "), "{}", stdout(&output));

    let record = record::open(&place.record()).expect("the record opens");
    assert_eq!(record.damage, Vec::<String>::new());
    let rate = record.rate.as_ref().expect("the rate was settled");
    // 64 connections, one answer each 20 or 60 ms: at most 3,200 and 1,067 a second, far enough apart for a busy machine.
    assert!(rate.capacities_per_s[1] < rate.capacities_per_s[0], "{rate:?}");
    for slice in record.complete_blocks().flat_map(|block| &block.trials).flat_map(|trial| trial.measured()) {
        let open = slice.counts.open.as_ref().expect("measured slices are in open loop");
        assert_eq!(open.intended, slice.counts.sent + open.unsent);
        assert_eq!(open.response.count(), open.intended);
    }
    assert_eq!(place.left_running(), Vec::<String>::new());

    let report = proofload().arg("report").arg(place.record()).args(["--format", "json"]).output();
    let json: Value = serde_json::from_str(&stdout(&report.expect("proofload starts"))).expect("it is JSON");
    let ratio = json["comparisons"][0]["estimate"]["ratio"].as_f64().expect("an estimate");
    assert!((2.0..3.5).contains(&ratio), "{ratio}");
}
