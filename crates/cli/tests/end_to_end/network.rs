//! `load.network` from the experiment file to the report: a link that is felt, and one that cannot be made.

use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;

use crate::place::{Place, SERVICE, proofload, stderr, stdout};

/// One variant over loopback, one over a link of 40 ms each way.
fn experiment(place: &Place) -> PathBuf {
    let text = format!(
        r#"name = "link"
[services.api]
command = ["node", "{SERVICE}"]
ready = "/healthz"
env = {{ PORT = "{{port}}", HOST = "{{address}}" }}
[factors.link]
none = {{}}
far = {{ load.network = {{ rate = "20mbit", delay = "40ms" }} }}
[load]
connections = 4
[design]
drop_disturbed = false
budget = "60s"
warmup = "400ms"
slice = "1s"
slices = 1
blocks = 6
"#
    );
    let path = place.path("link.toml");
    fs::write(&path, text).expect("the experiment is written");
    path
}

#[test]
#[ignore = "slow: make check-slow"]
fn a_link_is_made_for_each_trial_and_its_delay_is_in_every_answer() {
    if !rustix::process::geteuid().is_root() {
        // Not by a macro: the test runner would keep to itself what a passing test prints.
        let _ = writeln!(std::io::stderr(), "skipped: a link is made for each trial: networks take root");
        return;
    }
    let place = Place::new();
    let file = experiment(&place);
    let check = proofload().arg("check").arg(&file).output().expect("proofload starts");
    assert!(stdout(&check).contains("over a link of 20 Mbit/s, 40 ms each way"), "{}", stdout(&check));
    let Some(output) = place.run_well(&file, "SLOWER") else { return };
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    assert!(stdout(&output).contains("SLOWER"), "{}", stdout(&output));
    let record = record::open(&place.record()).expect("the record opens");
    for trial in record.complete_blocks().flat_map(|block| &block.trials) {
        let far = record.header.plan.variants[trial.variant()].name == "far";
        for slice in trial.measured().filter(|_| far) {
            let fastest_ns = slice.counts.latency.bounds(0.0).map_or(0, |(low, _)| low);
            assert!(fastest_ns >= 79_000_000, "{fastest_ns} ns");
            assert!(slice.counts.successful > 0);
        }
    }
    assert_eq!(place.left_running(), Vec::<String>::new());
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
    assert_eq!(output.status.code(), Some(6), "{}{}", stdout(&output), stderr(&output));
    assert!(stderr(&output).contains("`load.network` takes root"), "{}", stderr(&output));
    assert!(stderr(&output).contains("leave `load.network` out"), "{}", stderr(&output));
    assert!(!place.record().exists());
}
