//! Generators on hosts as one fleet: hosts and networks that fail under load.

use std::time::Duration;

use load::{LoadSpec, Until};
use remote::generators::{Fleet, FleetWindow};

use super::{generator, own};
use crate::hosts::{CONTROLLER, Hosts};
use crate::server::Server;
use crate::{NEVER, begun, window};

fn fleet(number: u32, spec: &LoadSpec) -> Fleet {
    let program = own();
    let channels = (1..=number).map(|host| {
        generator(&format!("h{host}"), &program)
            .expect("it is reached")
            .0
    });
    begun(channels.collect(), spec.divided(number, 1))
}

fn is_named(ran: &FleetWindow, name: &str) -> String {
    let [error] = &ran.lost[..] else {
        panic!("{:?}", ran.lost)
    };
    assert_eq!(error.generator, name);
    let [part] = &ran.parts[..] else {
        panic!("{:?}", ran.parts)
    };
    assert!(part.sent > 0, "the other one has loaded all the same");
    error.to_string()
}

#[test]
#[ignore = "wants hosts of its own: make test-cluster"]
fn a_network_that_is_gone_for_5_s_is_survived_and_for_20_s_is_named() {
    let Some(hosts) = Hosts::up(2) else { return };
    let (_server, mut fleet) = hosts.within(|| {
        let server = Server::start(CONTROLLER);
        let fleet = fleet(2, &server.evenly(4, 300.0));
        (server, fleet)
    });
    let cut = |seconds: u64| {
        hosts.cable(2, false);
        std::thread::sleep(Duration::from_secs(seconds));
        hosts.cable(2, true);
    };
    let (ran, _) = hosts.within(|| window(&mut fleet, 8, || cut(5)));
    assert!(ran.lost.is_empty(), "{:?}", ran.lost);
    assert_eq!(ran.parts.len(), 2);
    let ran = hosts.within(|| fleet.run(Until::Requests(10), NEVER));
    assert_eq!((ran.lost.len(), ran.counts.sent), (0, 10), "{:?}", ran.lost);

    let (ran, took) = hosts.within(|| window(&mut fleet, 4, || cut(20)));
    let said = is_named(&ran, "ssh://h2");
    assert!(
        took < Duration::from_secs(15),
        "named after {took:?}: {said}"
    );
    assert!(!ran.lost[0].is_refusal, "{said}");
    drop(fleet);
    for host in [1, 2] {
        assert!(
            hosts.is_quiet_within(host, Duration::from_secs(60)),
            "h{host}: {:?}",
            hosts.processes(host)
        );
    }
}
