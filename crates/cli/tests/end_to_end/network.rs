//! `load.network` from the experiment file to the report: a link that is felt, and one that cannot be made.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;

use crate::place::{Draft, Place, Said, counted, has_links};

/// One variant over loopback, one over a link of 40 ms each way.
fn experiment(place: &Place) -> PathBuf {
    place.experiment(&Draft {
        more: "[factors.link]\nnone = {}\nfar = { load.network = { rate = \"20mbit\", delay = \"40ms\" } }",
        load: "timeout = \"5s\"",
        design: "warmup = \"400ms\"\nslice = \"1s\"",
        ..Draft::default()
    })
}

#[test]
#[ignore = "slow: make check-slow"]
fn a_link_is_made_for_each_trial_and_its_delay_is_in_every_answer() {
    if !has_links() {
        return;
    }
    let place = Place::new();
    let file = experiment(&place);
    place
        .said(&["run", "--dry-run", "experiment.toml"])
        .prints(&["over a link of 20 Mbit/s, 40 ms each way"]);
    let Some(_) = place.run_well(&file, "SLOWER") else { return };
    let record = place.opened();
    for trial in counted(&record) {
        let far = record.header.plan.variants[trial.variant()].name == "far";
        for slice in trial.measured().filter(|_| far) {
            let fastest_ns = slice.counts.latency.bounds(0.0).map_or(0, |(low, _)| low);
            assert!(fastest_ns >= 79_000_000, "{fastest_ns} ns");
            assert!(slice.counts.successful > 0);
        }
    }
}

#[test]
fn who_may_not_make_a_link_is_told_before_anything_starts() {
    let place = Place::new();
    let file = experiment(&place);
    let mut command = place.command(&file);
    if rustix::process::geteuid().is_root() {
        // A user without rights, who must reach the experiment and the binary all the same.
        fs::set_permissions(place.path(""), std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .expect("it is ours");
        command.uid(65534);
    }
    let Ok(output) = command.output() else {
        // The binary lies where nobody else may go.
        return;
    };
    let said = Said::from(output);
    said.ends(6).tells(&["`load.network` takes root", "leave `load.network` out"]);
    assert!(!place.record().exists());
}
