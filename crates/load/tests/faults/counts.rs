//! Where nothing goes wrong, the server has read as many requests as the engine says it sent.

use std::time::Duration;

use proofload_load::Until;

use crate::peer::{self, Peer};
use crate::{Load, LoadSpec, for_both_drivers, spec};

#[test]
fn the_servers_own_count_is_ours() {
    for_both_drivers(|driver| {
        for (connections, threads) in [(1, 1), (3, 1), (3, 2), (64, 1), (64, 2)] {
            let shape = format!("{connections} connections, {threads} threads");
            let peer = Peer::well(peer::listen());
            let mut load = Load::start(LoadSpec { threads, ..spec(peer.address, connections, driver) });
            let mut sent = 0;
            for until in [
                Until::Requests(257),
                Until::Elapsed(Duration::from_millis(60)),
                Until::Requests(1),
                Until::Elapsed(Duration::from_millis(60)),
            ] {
                let slice = load.run(until);
                sent += slice.sent;
                assert_eq!(
                    (slice.successful, peer.requests(), slice.errors.len()),
                    (slice.sent, sent, 0),
                    "{shape}"
                );
                assert!(!matches!(until, Until::Requests(asked) if slice.sent != asked), "{shape}");
            }
            assert!(sent > 258, "{shape}: nothing was sent while time was the limit");
            assert_eq!(peer.accepted(), u64::from(connections), "{shape}");
        }
    });
}
