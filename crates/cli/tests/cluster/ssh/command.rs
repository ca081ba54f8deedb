//! `proofload hosts` as people see it.

use std::process::Output;

use serde_json::Value;

use super::{folder, names, own};
use crate::hosts::Hosts;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", text(&output.stdout)))
}

#[test]
#[ignore = "wants hosts of its own: make test-cluster"]
fn hosts_are_shown_prepared_and_left_as_they_were() {
    let Some(hosts) = Hosts::with_clocks(2, "2=3600") else { return };
    let looked = hosts.proofload(&["hosts", "h1", "root@h2", "no-such-host.invalid"]);
    let (shown, told) = (text(&looked.stdout), text(&looked.stderr));
    assert_eq!(looked.status.code(), Some(6), "{shown}{told}");
    for part in ["h1 ", "root@h2 (h2) ", "absent", "see below"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(told.contains("ssh://no-such-host.invalid: no such host: ") && told.contains("hint: "), "{told}");
    assert_eq!(names(&hosts.path("h1/root")), Vec::<String>::new(), "looking has changed something");

    let put = hosts.proofload(&["hosts", "--put", "--json", "h1", "h2"]);
    assert_eq!(put.status.code(), Some(0), "{}{}", text(&put.stdout), text(&put.stderr));
    let again = json(&hosts.proofload(&["hosts", "--put", "--json", "h1", "h2"]));
    let put = json(&put);
    for (at, ahead_s) in [(0, 0), (1, 3600)] {
        let (one, again) = (&put["hosts"][at], &again["hosts"][at]);
        assert_eq!(
            (&one["program"], &one["copied"], &again["copied"]),
            (&"there".into(), &true.into(), &false.into())
        );
        assert_eq!((&one["user"], &one["host"]), (&"root".into(), &format!("h{}", at + 1).into()));
        let (ahead_ns, error_ns) = (one["clock"]["ahead_ns"].as_i64(), one["clock"]["error_ns"].as_i64());
        let (ahead_ns, error_ns) = ahead_ns.zip(error_ns).unwrap_or_else(|| panic!("{one}"));
        // Both clocks are this machine's, so that the truth is known.
        assert!((ahead_ns - ahead_s * 1_000_000_000).abs() <= error_ns + 1, "{one}");
        assert!((1..1_000_000_000).contains(&error_ns), "{one}");
    }
    assert_eq!(put["program"]["sha256"], own().sha256());

    let removed = hosts.proofload(&["hosts", "--remove", "h1", "h2"]);
    let shown = text(&removed.stdout);
    assert_eq!(removed.status.code(), Some(0), "{shown}{}", text(&removed.stderr));
    let file = format!("/root/.cache/proofload/bin/{}", own().file_name());
    for host in ["h1", "h2"] {
        assert!(shown.contains(&format!("{host}: removed {file}, ")), "{shown}");
    }
    assert!(
        !folder(&hosts, 1).exists() && !hosts.path("h1/root/.cache/proofload").exists(),
        "an empty folder is left"
    );
    let nothing = text(&hosts.proofload(&["hosts", "--remove", "h1"]).stdout);
    assert!(nothing.contains("h1: nothing of ours in /root/.cache/proofload/bin"), "{nothing}");
}

#[test]
#[ignore = "wants hosts of its own: make test-cluster"]
fn a_program_that_runs_is_left_and_named() {
    let Some(hosts) = Hosts::up(1) else { return };
    let running = hosts.within(|| super::generator("h1", &own()).expect("h1 is reached").0);
    let shown = text(&hosts.proofload(&["hosts", "--remove", "h1"]).stdout);
    assert!(
        shown.contains(&format!("left /root/.cache/proofload/bin/{}: it runs", own().file_name())),
        "{shown}"
    );
    drop(running);
    assert!(hosts.is_quiet_within(1, std::time::Duration::from_secs(5)), "{:?}", hosts.processes(1));
    let shown = text(&hosts.proofload(&["hosts", "--remove", "h1"]).stdout);
    assert!(shown.contains("h1: removed "), "{shown}");
}
