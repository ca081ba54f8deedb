//! Output of `proofload doctor hosts`.

use super::{folder, names, own};
use crate::hosts::Hosts;

#[test]
#[ignore = "wants hosts of its own: make test-cluster"]
fn hosts_are_shown_prepared_and_left_as_they_were() {
    let Some(hosts) = Hosts::with_clocks(2, "2=3600") else { return };
    let looked = hosts.proofload(&["doctor", "hosts", "h1", "root@h2", "no-such-host.invalid"]);
    let parts = ["h1 ", "root@h2 (h2) ", "absent", "see below"];
    looked.ends(6).says(&parts).says(&["ssh://no-such-host.invalid: no such host: ", "hint: "]);
    assert_eq!(names(&hosts.path("h1/root")), Vec::<String>::new(), "looking has changed something");

    let put = hosts.proofload(&["doctor", "hosts", "--put", "--json", "h1", "h2"]);
    let put = put.ends(0).json();
    let again = hosts.proofload(&["doctor", "hosts", "--put", "--json", "h1", "h2"]).json();
    for (at, ahead_s) in [(0, 0), (1, 3600)] {
        let (one, again) = (&put["hosts"][at], &again["hosts"][at]);
        assert_eq!([&one["program"], &one["user"], &one["host"]], ["there", "root", &format!("h{}", at + 1)]);
        assert_eq!([&one["copied"], &again["copied"]], [true, false]);
        let (ahead_ns, error_ns) = (one["clock"]["ahead_ns"].as_i64(), one["clock"]["error_ns"].as_i64());
        let (ahead_ns, error_ns) = ahead_ns.zip(error_ns).unwrap_or_else(|| panic!("{one}"));
        // Both clocks are this machine's, so that the truth is known.
        assert!((ahead_ns - ahead_s * 1_000_000_000).abs() <= error_ns + 1, "{one}");
        assert!((1..1_000_000_000).contains(&error_ns), "{one}");
    }
    assert_eq!(put["program"]["sha256"], own().sha256);

    let removed = hosts.proofload(&["doctor", "hosts", "--remove", "h1", "h2"]);
    let file = format!("/root/.cache/proofload/bin/{}", own().file_name());
    removed.ends(0).says(&[&format!("h1: removed {file}, "), &format!("h2: removed {file}, ")]);
    assert!(
        !folder(&hosts, 1).exists() && !hosts.path("h1/root/.cache/proofload").exists(),
        "an empty folder is left"
    );
    let nothing = hosts.proofload(&["doctor", "hosts", "--remove", "h1"]);
    nothing.ends(0).says(&["h1: nothing of ours in /root/.cache/proofload/bin"]);
}

#[test]
#[ignore = "wants hosts of its own: make test-cluster"]
fn a_program_that_runs_is_left_and_named() {
    let Some(hosts) = Hosts::up(1) else { return };
    let running = hosts.within(|| super::generator("h1", &own()).expect("h1 is reached").0);
    let left = format!("left /root/.cache/proofload/bin/{}: it runs", own().file_name());
    let remove = || hosts.proofload(&["doctor", "hosts", "--remove", "h1"]);
    remove().ends(0).says(&[&left]);
    drop(running);
    hosts.is_quiet(1);
    remove().ends(0).says(&["h1: removed "]);
}
