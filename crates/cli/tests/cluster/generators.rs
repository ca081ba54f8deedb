//! A run whose load comes from hosts by SSH: every request is accounted for, also when a host crashes.

use crate::accounted_for;
use crate::hosts::Hosts;
use crate::place::{Draft, ended};

const SHORT: &str = "budget = \"90s\"\nslice = \"500ms\"";
/// Long enough for all events of a test.
const LONG: &str = "budget = \"10m\"\nslice = \"2s\"\nslices = 10\nblocks = 100";

/// A service beside Proofload, which these hosts load.
fn experiment(ssh: &[&str], design: &str) -> String {
    let more = format!("[generators]\nlocal = 0\nssh = {ssh:?}\naddress = \"10.77.0.1\"");
    Draft {
        more: &more,
        load: "connections = 5",
        design,
        ..Draft::default()
    }
    .text()
}

#[test]
#[ignore = "wants hosts of its own: make test-cluster"]
fn two_hosts_whose_clocks_are_an_hour_apart_load_a_service_and_each_request_is_accounted_for() {
    let Some(hosts) = Hosts::with_clocks(2, "2=3600") else {
        return;
    };
    let said = hosts.ran(&experiment(&["h1", "root@h2"], SHORT));
    said.ends(0).says(&["ssh://h1", "ssh://root@h2"]);
    let record = hosts.record();
    assert_eq!(accounted_for(&record), 6);
    for slice in record.complete_trials().flat_map(|trial| &trial.slices) {
        let [one, other] = &slice.generators[..] else {
            panic!("{:?}", slice.generators)
        };
        assert_eq!(
            (one.name.as_str(), other.name.as_str()),
            ("ssh://h1", "ssh://root@h2")
        );
        assert!(
            one.sent > 0 && other.sent > 0 && one.sent + other.sent == slice.counts.sent,
            "{slice:?}"
        );
        assert!(
            !one.here && one.late_ns.max(other.late_ns) < 1_000_000_000,
            "{one:?} {other:?}"
        );
    }
    hosts.all_quiet(2);
}

#[test]
#[ignore = "wants hosts of its own: make test-cluster"]
fn a_host_that_crashes_and_stays_away_ends_the_run_with_its_name_and_the_record_is_whole() {
    let Some(hosts) = Hosts::up(2) else { return };
    let run = hosts.loading(&experiment(&["h1", "h2"], LONG));
    hosts.crash(2);
    ended(run).ends(6).says(&["V48", "ssh://h2"]);
    let record = hosts.record();
    assert!(
        record.damage.is_empty() && record.ended.is_some(),
        "{:?}",
        record.damage
    );
    hosts.all_quiet(1);
}
