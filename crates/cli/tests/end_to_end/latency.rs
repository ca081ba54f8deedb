//! `proofload run` with a latency as metric, on a real service that answers later in one of its variants.

use crate::place::{Draft, Place, counted};

#[test]
#[ignore = "slow: make check-slow"]
fn a_service_that_answers_later_is_found_slower_at_a_common_rate() {
    let place = Place::new();
    // Delays far above what a busy machine adds; connections for many more requests than are under way at once.
    let experiment = place.experiment(&Draft {
        service: "env = { PORT = \"{port}\", MODE = \"delay\" }",
        more: "[factors.delay]\nshort = { api.env.DELAY_MS = 20 }\nlong = { api.env.DELAY_MS = 60 }",
        load: "connections = 64\ntimeout = \"5s\"",
        design: "metric = \"p50\"\nrate = \"10%\"\nbudget = \"90s\"\nwarmup = \"300ms\"\nslice = \"500ms\"\nslices = 2",
    });
    place
        .said(&["run", "--dry-run", "experiment.toml"])
        .prints(&["open loop: 10 % of what the slowest variant can do"]);
    let Some(said) = place.run_well(&experiment, "SLOWER") else { return };
    said.prints(&["(10 % of the slowest capacity: long "]);

    let record = place.opened();
    assert_eq!(record.damage, Vec::<String>::new());
    let rate = record.rate.as_ref().expect("the rate was settled");
    // 64 connections, one answer each 20 or 60 ms: at most 3,200 and 1,067 a second, far enough apart for a busy machine.
    assert!(rate.capacities_per_s[1] < rate.capacities_per_s[0], "{rate:?}");
    for slice in counted(&record).flat_map(|trial| trial.measured()) {
        let open = slice.counts.open.as_ref().expect("measured slices are in open loop");
        assert_eq!(open.intended, slice.counts.sent + open.unsent);
        assert_eq!(open.response.count(), open.intended);
    }
    let json = place.report("json").json();
    let ratio = json["comparisons"][0]["estimate"]["ratio"].as_f64().expect("an estimate");
    assert!((2.0..3.5).contains(&ratio), "{ratio}");
}
