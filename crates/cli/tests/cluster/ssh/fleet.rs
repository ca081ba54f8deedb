//! Generators on hosts as one fleet: exact counts, clocks, and hosts and networks that fail while they load.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use load::{Arrivals, LoadSpec, Process, Rate, Until};
use remote::generators::{Fleet, FleetError, Ran};

use super::server::Server;
use super::{generator, own};
use crate::begun;
use crate::hosts::Hosts;

const NEVER: &dyn Fn() -> bool = &|| false;

/// A fleet on all hosts.
fn fleet(number: u32, spec: &LoadSpec) -> Fleet {
    let program = own();
    let channels =
        (1..=number).map(|host| generator(&format!("h{host}"), &program).expect("it is reached").0);
    begun(channels.collect(), spec.divided(number, 1))
}

fn evenly(spec: LoadSpec, per_s: f64) -> LoadSpec {
    let arrivals = Arrivals::Open { rate: Rate::Constant(per_s), process: Process::Constant, seed: 1 };
    LoadSpec { arrivals, ..spec }
}

#[test]
#[ignore = "wants hosts of its own: make test-cluster"]
fn two_hosts_load_one_server_which_has_seen_each_request_and_their_clocks_do_not_matter() {
    let Some(hosts) = Hosts::with_clocks(2, "2=3600") else { return };
    hosts.within(|| {
        let server = Server::start();
        let mut fleet = fleet(2, &evenly(server.spec(), 301.0));
        let Ran { counts, parts, lost } = fleet.run(Until::Elapsed(Duration::from_secs(1)), NEVER);
        assert!(lost.is_empty(), "{lost:?}");
        // ⌈1 s · 301/s⌉ whatever the machine does meanwhile, because arrivals are due and not paced.
        assert_eq!(
            (counts.due(), counts.sent + counts.open.as_ref().map_or(0, |open| open.unsent)),
            (301, 301)
        );
        assert_eq!(server.requests(), counts.sent);
        assert_eq!(parts.iter().map(|part| part.host.as_str()).collect::<Vec<_>>(), ["h1", "h2"]);
        // Had an hour between their clocks been missed, one would have been waited for, or its window would be elsewhere.
        assert!(counts.window_ns < 2_000_000_000, "{} ns", counts.window_ns);
        assert!(parts.iter().all(|part| part.late_ns < 1_000_000_000), "{parts:?}");
        let again = fleet.run(Until::Requests(50), NEVER);
        assert_eq!((again.counts.sent, server.requests()), (100, 401));
        drop(fleet);
    });
    for host in [1, 2] {
        assert!(hosts.is_quiet_within(host, Duration::from_secs(5)), "h{host}: {:?}", hosts.processes(host));
    }
}

/// Runs a window of so many seconds, has something happen one second into it, and tells what came of it, and when.
fn window(hosts: &Hosts, fleet: &mut Fleet, seconds: u64, happens: impl FnOnce() + Send) -> (Ran, Duration) {
    std::thread::scope(|scope| {
        let misfortune = scope.spawn(|| {
            std::thread::sleep(Duration::from_secs(1));
            happens();
        });
        let begun = Instant::now();
        let ran = hosts.within(|| fleet.run(Until::Elapsed(Duration::from_secs(seconds)), NEVER));
        let took = begun.elapsed();
        misfortune.join().expect("it happens");
        (ran, took)
    })
}

fn is_named(ran: &Ran, name: &str) -> String {
    let [error] = &ran.lost[..] else { panic!("{:?}", ran.lost) };
    assert_eq!(error.generator(), name);
    let [part] = &ran.parts[..] else { panic!("{:?}", ran.parts) };
    assert!(part.sent > 0, "the other one has loaded all the same");
    error.to_string()
}

#[test]
#[ignore = "wants hosts of its own: make test-cluster"]
fn a_host_that_crashes_in_a_window_is_named_and_the_others_count() {
    let Some(hosts) = Hosts::up(3) else { return };
    let (server, mut fleet) = hosts.within(|| {
        let server = Server::start();
        let fleet = fleet(3, &evenly(server.spec(), 300.0));
        (server, fleet)
    });
    // Its kernel still says goodbye.
    let (ran, took) = window(&hosts, &mut fleet, 4, || hosts.crash(3));
    assert_eq!(ran.lost.len(), 1, "{:?}", ran.lost);
    let said = ran.lost[0].to_string();
    assert!(
        said.starts_with("generator ssh://h3: the connection ended: ")
            && said.contains("closed by remote host"),
        "{said}"
    );
    assert!(took < Duration::from_secs(12) && ran.parts.len() == 2, "{took:?}");
    // Power cut: nothing is heard any more, neither from its kernel.
    let (ran, took) = window(&hosts, &mut fleet, 3, || {
        hosts.cable(2, false);
        hosts.crash(2);
    });
    let said = is_named(&ran, "ssh://h2");
    assert!(took < Duration::from_secs(15), "{took:?}");
    assert!(said.contains("not responding") || said.contains("did not answer"), "{said}");
    let before = server.requests();
    let ran = hosts.within(|| fleet.run(Until::Requests(20), NEVER));
    assert!(ran.lost.is_empty() && ran.counts.sent == 20, "{ran:?}");
    assert_eq!(server.requests() - before, 20);
    drop(fleet);
    assert!(hosts.is_quiet_within(1, Duration::from_secs(5)), "{:?}", hosts.processes(1));
}

#[test]
#[ignore = "wants hosts of its own: make test-cluster"]
fn a_network_that_is_gone_for_5_s_is_survived_and_for_20_s_is_named() {
    let Some(hosts) = Hosts::up(2) else { return };
    let (_server, mut fleet) = hosts.within(|| {
        let server = Server::start();
        let fleet = fleet(2, &evenly(server.spec(), 300.0));
        (server, fleet)
    });
    let cut = |seconds: u64| {
        hosts.cable(2, false);
        std::thread::sleep(Duration::from_secs(seconds));
        hosts.cable(2, true);
    };
    let (ran, _) = window(&hosts, &mut fleet, 8, || cut(5));
    assert!(ran.lost.is_empty(), "{:?}", ran.lost);
    assert_eq!(ran.parts.len(), 2);
    let ran = hosts.within(|| fleet.run(Until::Requests(10), NEVER));
    assert_eq!((ran.lost.len(), ran.counts.sent), (0, 20), "{:?}", ran.lost);

    let named = AtomicBool::new(false);
    let (ran, took) = window(&hosts, &mut fleet, 4, || {
        cut(20);
        named.store(true, Ordering::SeqCst);
    });
    let said = is_named(&ran, "ssh://h2");
    assert!(took < Duration::from_secs(15), "named after {took:?}: {said}");
    assert!(matches!(ran.lost[..], [FleetError::Channel { .. } | FleetError::TimedOut { .. }]), "{said}");
    drop(fleet);
    for host in [1, 2] {
        assert!(hosts.is_quiet_within(host, Duration::from_secs(60)), "h{host}: {:?}", hosts.processes(host));
    }
}
