//! Networks that lose packets or have no route: silence if there is no response, and an error if one is
//! reported.

use std::time::Duration;

use model::{Cause, OsError, Phase};
use proofload_load::Until;

use crate::network::{Network, with_hosts};
use crate::server::Server;
use crate::{Load, LoadSpec, only, spec};

#[test]
fn who_answers_no_syn_is_given_up() {
    with_hosts("who_answers_no_syn_is_given_up", |driver| {
        let network = Network::new();
        let peer = Server::well(network.listen());
        network.lose_packets();
        let connect_timeout = Duration::from_millis(100);
        let there = LoadSpec {
            connect_timeout,
            ..spec(peer.address, 2, driver)
        };
        network.client.run(|| {
            let mut load = Load::start(there);
            let slice = load.run(Until::Elapsed(Duration::from_millis(300)));
            assert_eq!(
                (
                    slice.sent,
                    slice.connections_opened,
                    slice.connections_alive
                ),
                (0, 0, 0)
            );
            // On each connection, as many consecutive attempts time out as fit into the time.
            let timeouts = only(&slice, Phase::Connect, Cause::Timeout);
            let most =
                load.connections * (load.took.as_nanos() / connect_timeout.as_nanos()) as u64;
            assert!(
                (load.connections..=most).contains(&timeouts),
                "{timeouts} of {most}: {slice:?}"
            );
            load.assert_backed_off(&slice);
            // A number of requests cannot be waited for, so the slice ends when no connection opens within
            // the timeout.
            let slice = load.run(Until::Requests(10));
            assert_eq!(
                (
                    slice.sent,
                    slice.connections_opened,
                    slice.connections_alive
                ),
                (0, 0, 0)
            );

            network.carry_packets();
            let well = load.well(10);
            assert_eq!((well.connections_opened, well.reconnects), (2, 0));
        });
    });
}

#[test]
fn no_way_is_an_error_of_its_own() {
    with_hosts("no_way_is_an_error_of_its_own", |driver| {
        let network = Network::new();
        let peer = Server::well(network.listen());
        let (address, connect_timeout) = (peer.address, Duration::from_millis(100));
        network.client.run(|| {
            let mut load = Load::start(LoadSpec {
                connect_timeout,
                ..spec(address, 2, driver)
            });
            for (route, cause) in [
                ("unreachable", Cause::Unreachable),
                (
                    "prohibit",
                    Cause::OsError(OsError(rustix::io::Errno::ACCESS.raw_os_error())),
                ),
            ] {
                network
                    .client
                    .ip(&format!("route add {route} {}/32", address.ip()));
                let slice = load.run(Until::Elapsed(connect_timeout));
                assert_eq!((slice.sent, slice.connections_opened), (0, 0));
                assert!(only(&slice, Phase::Connect, cause) >= 4, "{slice:?}");
                load.assert_backed_off(&slice);
                network
                    .client
                    .ip(&format!("route delete {route} {}/32", address.ip()));
            }
            assert_eq!(load.well(10).connections_opened, 2);
        });
    });
}
