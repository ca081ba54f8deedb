//! A network that is cut for good: no end of a connection tells the other machine, and its TCP would find out after a quarter of an hour
//! at the earliest. Whoever is merely waited with for as long stays.

use std::time::{Duration, Instant};

use load::{LoadSpec, Until};
use remote::generators::Fleet;

use super::{generator, own};
use crate::hosts::{CONTROLLER, Hosts};
use crate::server::Server;
use crate::{NEVER, begun, within};

/// A generator ends after a minute without a word.
const LEASE: Duration = Duration::from_secs(60);
const A_LITTLE: Duration = Duration::from_secs(8);

/// A fleet of one.
fn fleet(host: u32, spec: &LoadSpec) -> Fleet {
    begun(vec![generator(&format!("h{host}"), &own()).expect("it is reached").0], vec![spec.clone()])
}

/// Generators on a host, as they were started.
fn generators(hosts: &Hosts, host: u32) -> Vec<String> {
    let mut processes = hosts.processes(host);
    processes.retain(|command| command.contains("/proofload-") && command.contains("remote-agent"));
    processes
}

#[test]
#[ignore = "wants hosts of its own: make test-cluster"]
fn a_generator_whose_network_is_cut_for_good_is_gone_after_a_minute_whether_it_waits_or_loads() {
    let Some(hosts) = Hosts::up(3) else { return };
    let (server, waits, mut loads, mut stays) = hosts.within(|| {
        let server = Server::start(CONTROLLER);
        let spec = server.spec(4);
        let [waits, loads, stays] = [1, 2, 3].map(|host| fleet(host, &spec));
        (server, waits, loads, stays)
    });
    let (ran, cut) = hosts.within(|| {
        let (hosts, loads) = (&hosts, &mut loads);
        std::thread::scope(|scope| {
            let window = scope.spawn(|| loads.run(Until::Elapsed(Duration::from_secs(600)), NEVER));
            assert!(within(A_LITTLE, || server.requests() > 100), "nothing is loaded");
            [1, 2].into_iter().for_each(|host| hosts.cable(host, false));
            let cut = Instant::now();
            (window.join().expect("a window"), cut)
        })
    });
    assert_eq!(ran.lost.len(), 1, "{:?}", ran.lost);
    // Here they are given up by now; there nobody has heard of it.
    drop((waits, loads));
    std::thread::sleep(Duration::from_secs(30).saturating_sub(cut.elapsed()));
    for host in [1, 2] {
        assert_eq!(generators(&hosts, host).len(), 1, "h{host}: {:?}", hosts.processes(host));
    }
    for host in [1, 2] {
        let left = (LEASE + A_LITTLE).saturating_sub(cut.elapsed());
        assert!(within(left, || generators(&hosts, host).is_empty()), "h{host}: {:?}", hosts.processes(host));
    }
    let over = (LEASE + A_LITTLE).saturating_sub(cut.elapsed());
    std::thread::sleep(over);
    let ran = hosts.within(|| stays.run(Until::Requests(20), NEVER));
    assert!(ran.lost.is_empty() && ran.counts.sent == 20, "{ran:?}");
    drop(stays);
    hosts.is_quiet(3);
}
