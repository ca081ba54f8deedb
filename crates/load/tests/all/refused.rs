//! Ports without a listener, and servers that accept and never answer.

use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::time::Duration;

use model::{Cause, Counts, OsError, Phase};
use proofload_load::{
    Address, ArrivalProcess, Arrivals, DriverChoice, LoadSpec, Protocol, Rate, TlsSpec, Trust,
    Until,
};

use crate::network::{Host, with_hosts};
use crate::server::{Port, Server, listen, wait_until};
use crate::{Load, errors, for_both_drivers, only, spec};

const LATE: Duration = Duration::from_millis(300);

#[test]
fn a_listener_that_is_late_is_waited_for() {
    for_both_drivers(|driver| {
        let port = Port::keep();
        let mut load = Load::start(spec(port.address, 2, driver));
        let (slice, peer) = std::thread::scope(|scope| {
            let late = scope.spawn(|| {
                std::thread::sleep(LATE);
                Server::well(port.listen())
            });
            (load.run(Until::Requests(10)), late.join().unwrap())
        });
        assert_eq!(
            (slice.sent, slice.successful, peer.requests()),
            (10, 10, 10)
        );
        // The connect phase waited for it, so the window had all its connections, and none of them was there
        // before.
        assert_eq!(
            (
                slice.connections_alive_at_start,
                slice.connections_opened,
                slice.reconnects
            ),
            (2, 2, 0)
        );
        assert!(only(&slice, Phase::Connect, Cause::Refused) >= 2);
        load.assert_backed_off(&slice);
    });
}

#[test]
fn a_service_that_goes_away_between_slices_and_comes_back() {
    for_both_drivers(|driver| {
        let port = Port::keep();
        let peer = Server::well(port.listen());
        let connect_timeout = Duration::from_millis(100);
        let mut load = Load::start(LoadSpec {
            connect_timeout,
            ..spec(port.address, 2, driver)
        });
        let _ = load.well(10);

        drop(peer);
        let away = load.run(Until::Elapsed(Duration::from_millis(100)));
        let [
            (Phase::Connect, Cause::Refused, refused),
            (Phase::Idle, Cause::Closed, 2),
        ] = errors(&away)[..]
        else {
            panic!("{:?}", away.errors)
        };
        assert_eq!(
            (away.sent, away.connections_opened, away.connections_alive),
            (0, 0, 0)
        );
        assert!(
            refused >= 4,
            "{refused} attempts in two connect phases and a window"
        );
        load.assert_backed_off(&away);

        let peer = Server::well(port.listen());
        let back = load.well(10);
        assert_eq!(
            (back.connections_opened, back.reconnects, peer.requests()),
            (2, 2, 10)
        );
    });
}

/// The service dies under load and restarts on the same port, all within one window.
#[test]
fn a_service_that_restarts_under_load() {
    let open = Arrivals::Open {
        rate: Rate::Constant(500.0),
        process: ArrivalProcess::Poisson,
        seed: 1,
    };
    for_both_drivers(|driver| {
        for arrivals in [Arrivals::Closed, open] {
            let port = Port::keep();
            let first = Server::well(port.listen());
            let mut load = Load::start(LoadSpec {
                arrivals,
                ..spec(port.address, 2, driver)
            });
            let slice = restarted(&mut load, &port, first);
            assert_eq!(
                (slice.connections_opened, slice.reconnects),
                (4, 2),
                "{slice:?}"
            );
            assert!(
                slice.broken <= 2 && slice.successful >= 100 - 2,
                "{slice:?}"
            );
            // Each of two connections was lost once, with a request or without. All other errors are
            // attempts.
            let refused = slice
                .errors
                .iter()
                .find(|error| error.cause == Cause::Refused)
                .unwrap();
            let all: u64 = slice.errors.iter().map(|error| error.count).sum();
            assert_eq!(
                (refused.phase, refused.count),
                (Phase::Connect, all - 2),
                "{slice:?}"
            );
            load.assert_backed_off(&slice);
        }
    });
}

/// A slice that ends after a second server has answered in place of the first.
fn restarted(load: &mut Load, port: &Port, first: Server) -> Counts {
    let interrupt = load.generator.handle();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            wait_until("requests come", || first.requests() >= 50);
            drop(first);
            std::thread::sleep(LATE);
            let second = Server::well(port.listen());
            wait_until("requests come again", || {
                second.requests() >= 50 && second.accepted() == 2
            });
            interrupt.stop();
            // Requests in flight are answered.
            std::thread::sleep(LATE);
        });
        load.run(Until::Elapsed(Duration::from_secs(20)))
    })
}

/// The kernel gives a socket the port that it calls. It has connected to itself and must release the port.
#[test]
fn a_socket_that_meets_itself_has_been_refused() {
    with_hosts("a_socket_that_meets_itself_has_been_refused", |driver| {
        let host = Host::new();
        host.set_ipv4("ip_local_port_range", "40000 40001");
        let address = SocketAddr::from(([127, 0, 0, 1], 40000));
        let connect_timeout = Duration::from_millis(100);
        host.run(|| {
            let mut load = Load::start(LoadSpec {
                connect_timeout,
                ..spec(address, 1, driver)
            });
            let slice = load.run(Until::Elapsed(connect_timeout));
            assert_eq!((slice.sent, slice.connections_opened), (0, 0), "{slice:?}");
            assert!(only(&slice, Phase::Connect, Cause::Refused) >= 2);
            load.assert_backed_off(&slice);

            let peer = Server::well(TcpListener::bind(address).expect("the port is free"));
            let _ = load.well(10);
            assert_eq!(peer.requests(), 10);
        });
    });
}

#[test]
fn a_handshake_without_an_answer_is_given_up_each_time() {
    // The kernel accepts for the listener, which never reads.
    let listener = listen();
    let limits = LoadSpec {
        timeout: Duration::from_millis(400),
        connect_timeout: Duration::from_millis(200),
        ..spec(listener.local_addr().unwrap(), 2, DriverChoice::Auto)
    };
    let tls = Some(TlsSpec {
        server_name: "proofload.test".into(),
        trust: Trust::Anything,
        resumption: true,
        client: None,
    });
    let secure = LoadSpec {
        tls,
        ..limits.clone()
    };
    for (spec, phase) in [
        (secure.clone(), Phase::Tls),
        (
            LoadSpec {
                protocol: Protocol::Http2 { streams: 4 },
                ..limits
            },
            Phase::Connect,
        ),
        (
            LoadSpec {
                keep_alive: false,
                ..secure
            },
            Phase::Tls,
        ),
    ] {
        let fresh = !spec.keep_alive;
        let slice = Load::start(spec).generator.run(Until::Requests(4));
        let timeouts = only(&slice, phase, Cause::Timeout);
        assert!((2..=8).contains(&timeouts), "{phase} {timeouts}");
        assert_eq!(
            (slice.sent, slice.timed_out),
            if fresh { (4, 4) } else { (0, 0) }
        );
    }
}

#[test]
fn a_socket_that_is_none_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    drop(UnixListener::bind(folder.path().join("left")).unwrap());
    std::fs::write(folder.path().join("file"), "").unwrap();
    let missing = Cause::OsError(OsError(rustix::io::Errno::NOENT.raw_os_error()));
    for (name, cause) in [
        ("missing", missing),
        ("left", Cause::Refused),
        ("file", Cause::Refused),
    ] {
        let address = Address::Unix(folder.path().join(name));
        let nowhere = spec(([127, 0, 0, 1], 1).into(), 2, DriverChoice::Auto);
        let spec = LoadSpec {
            address,
            connect_timeout: Duration::from_millis(200),
            ..nowhere
        };
        assert!(
            only(
                &Load::start(spec).run(Until::Requests(4)),
                Phase::Connect,
                cause
            ) >= 2,
            "{name}"
        );
    }
}
