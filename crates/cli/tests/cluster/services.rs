//! Services on other machines by SSH: measured from here, with their output. When a machine, a network or
//! Proofload fails during a run, no process of them stays.

use std::fs;
use std::time::Duration;

use crate::hosts::Hosts;
use crate::place::{Draft, ended, signal};
use crate::{SERVICE, accounted_for, within};

/// An experiment whose api runs on h1 and needs a service on `db_host`.
fn experiment(hosts: &Hosts, db_host: &str, design: &str) -> String {
    for host in ["h1", "h2"] {
        let home = hosts.path(host).join("root");
        if home.is_dir() {
            fs::create_dir_all(home.join("shop")).expect("a folder there");
            fs::copy(SERVICE, home.join("shop/service.js")).expect("the service is there");
        }
    }
    let service = "command = [\"node\", \"service.js\", \"{db.address}:{db.port}\"]\ndirectory = \"~/shop\"\n\
                   host = \"ssh://h1\"\nneeds = [\"db\"]";
    let more = format!(
        "[services.db]\ncommand = [\"node\", \"service.js\"]\ndirectory = \"~/shop\"\nhost = \"ssh://{db_host}\"\n\
         ready = \"/healthz\"\nenv = {{ PORT = \"{{port}}\", HOST = \"{{address}}\" }}\n\
         [factors.spin]\none = {{ api.env.SPIN_MS = 1 }}\nthree = {{ api.env.SPIN_MS = 3 }}"
    );
    let text = Draft { service, more: &more, design, ..Draft::default() }.text();
    text.replace("name = \"test\"", "name = \"elsewhere\"\nentry = \"api\"")
}

const SHORT: &str = "budget = \"90s\"";
/// Long enough for all events of a test.
const LONG: &str = "budget = \"10m\"\nslice = \"500ms\"\nslices = 20\nblocks = 100";

/// Processes of a host that are services or supervise them.
fn ours(hosts: &Hosts, host: u32) -> Vec<String> {
    let is_ours = |process: &String| process.contains("service.js") || process.contains("proofload");
    hosts.processes(host).into_iter().filter(is_ours).collect()
}

#[test]
#[ignore = "wants hosts of its own: make test-cluster"]
fn services_on_two_hosts_are_measured_from_here_and_gone_afterwards() {
    let Some(hosts) = Hosts::up(2) else { return };
    hosts.ran(&experiment(&hosts, "h2", SHORT)).ends(0).says(&["SLOWER"]);
    let record = hosts.record();
    let machines: Vec<&str> = record.header.environment.hosts.keys().map(String::as_str).collect();
    assert_eq!(machines, ["ssh://h1", "ssh://h2"]);
    for trial in record.complete_trials() {
        let [db, api] = &trial.started.services[..] else { panic!("two services") };
        assert_eq!((db.host.as_deref(), api.host.as_deref()), (Some("ssh://h2"), Some("ssh://h1")));
        assert!(api.processes[0].command.ends_with(&format!("10.77.0.12:{}", db.port)), "{api:?}");
        assert!(trial.slices.iter().all(|slice| slice.machine.hosts.len() == 2));
    }
    assert_eq!(accounted_for(&record), record.complete_trials().count(), "and logs came back");
    hosts.all_quiet(2);
}

#[test]
#[ignore = "wants hosts of its own: make test-cluster"]
fn a_service_on_one_host_is_loaded_from_another() {
    let Some(hosts) = Hosts::up(2) else { return };
    let text = experiment(&hosts, "h1", SHORT);
    hosts.ran(&format!("{text}[generators]\nlocal = 0\nssh = [\"h2\"]\n")).ends(0).says(&["SLOWER"]);
    let record = hosts.record();
    for trial in record.complete_trials() {
        assert!(trial.slices.iter().all(|slice| slice.counts.successful > 0));
        assert!(trial.started.services.iter().all(|of| of.host.as_deref() == Some("ssh://h1")));
    }
    hosts.all_quiet(2);
}

#[test]
#[ignore = "wants hosts of its own: make test-cluster"]
fn a_host_that_crashes_in_the_middle_ends_the_run_with_its_name_and_the_record_is_whole() {
    let Some(hosts) = Hosts::up(2) else { return };
    let run = hosts.loading(&experiment(&hosts, "h2", LONG));
    hosts.crash(1);
    let parts = ["ssh://h1: the connection is lost", "service api, which ran there, ends by itself"];
    ended(run).ends(3).says(&parts);
    let record = hosts.record();
    assert!(record.damage.is_empty() && record.ended.is_some(), "{:?}", record.damage);
    hosts.is_quiet(2);
}

#[test]
#[ignore = "wants hosts of its own: make test-cluster"]
fn a_cable_that_is_pulled_ends_the_run_here_and_the_services_there() {
    let Some(hosts) = Hosts::up(1) else { return };
    let run = hosts.loading(&experiment(&hosts, "h1", LONG));
    assert!(!ours(&hosts, 1).is_empty());
    hosts.cable(1, false);
    ended(run).ends(3);
    // Without a notice, they end after a minute without a message.
    let gone = || ours(&hosts, 1).is_empty();
    assert!(within(Duration::from_secs(100), gone), "on h1: {:?}", hosts.processes(1));
}

#[test]
#[ignore = "wants hosts of its own: make test-cluster"]
fn nothing_stays_on_a_host_when_proofload_is_killed() {
    let Some(hosts) = Hosts::up(1) else { return };
    let mut run = hosts.loading(&experiment(&hosts, "h1", LONG));
    assert!(ours(&hosts, 1).iter().any(|process| process.contains("service.js")));
    run.kill().expect("it is there");
    run.wait().expect("it ends");
    hosts.is_quiet(1);
}

#[test]
#[ignore = "wants hosts of its own: make test-cluster"]
fn an_interrupt_stops_services_there_in_good_order_and_fetches_what_they_said() {
    let Some(hosts) = Hosts::up(1) else { return };
    let run = hosts.loading(&experiment(&hosts, "h1", LONG));
    signal(run.id(), "-INT");
    ended(run).ends(130);
    let logs: Vec<_> = fs::read_dir(hosts.path("record/logs")).expect("logs").flatten().collect();
    let last = |log: &fs::DirEntry| fs::read_to_string(log.path()).expect("a log").contains("requests ");
    assert!(!logs.is_empty() && logs.iter().all(last), "{logs:?}");
    hosts.is_quiet(1);
}

#[test]
#[ignore = "wants hosts of its own: make test-cluster"]
fn what_is_not_there_is_told_before_anything_is_measured() {
    let Some(hosts) = Hosts::up(1) else { return };
    let said = hosts.ran(&experiment(&hosts, "h1", SHORT).replace("~/shop", "~/no-such-shop"));
    said.ends(3).says(&["on ssh://h1: service db: no such directory: /root/no-such-shop"]);
    assert!(!hosts.path("record").exists(), "{said}");
    hosts.is_quiet(1);
}
