//! Connections that the server resets, in every phase.

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use model::{Cause, Phase};
use proofload_load::{Arrivals, Process, Rate, Until};

use crate::peer::{self, Peer, answer, read, wait_until};
use crate::server::{reset, response};
use crate::{Fault, Load, LoadSpec, errors, for_both_drivers, meet, only, open_loop, spec, within};

/// More than the buffers of two sockets hold.
const UNREAD_BYTES: usize = 16 << 20;

const FAULTS: [Fault; 6] = [
    Fault {
        name: "while the request is written",
        counted: (Phase::Send, Cause::Reset),
        body_bytes: UNREAD_BYTES,
        script: |stream| {
            read(&stream, 100_000);
            reset(stream);
        },
    },
    Fault {
        name: "when part of a short request was read",
        counted: (Phase::Head, Cause::Reset),
        body_bytes: 0,
        script: |stream| {
            read(&stream, 10);
            reset(stream);
        },
    },
    Fault {
        name: "within the head",
        counted: (Phase::Head, Cause::Reset),
        body_bytes: 0,
        script: |mut stream| {
            answer(&mut stream, b"HTTP/1.1 200 OK\r\nContent-");
            reset(stream);
        },
    },
    Fault {
        name: "after the head",
        counted: (Phase::Body, Cause::Reset),
        body_bytes: 0,
        script: |mut stream| {
            answer(&mut stream, b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
            reset(stream);
        },
    },
    Fault {
        name: "within a long body",
        counted: (Phase::Body, Cause::Reset),
        body_bytes: 0,
        script: |mut stream| {
            let whole = response(200, &"x".repeat(300_000));
            answer(&mut stream, &whole[..100_000]);
            reset(stream);
        },
    },
    Fault {
        name: "within a chunk",
        counted: (Phase::Body, Cause::Reset),
        body_bytes: 0,
        script: |mut stream| {
            answer(&mut stream, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel");
            reset(stream);
        },
    },
];

#[test]
fn a_reset_is_counted_in_its_phase() {
    for_both_drivers(|driver| FAULTS.iter().for_each(|fault| meet(driver, fault)));
}

/// Where the reset is seen is a matter of microseconds; that it is seen, and is no storm, is not.
#[test]
fn a_server_that_resets_what_it_accepts() {
    const KINDS: [(Phase, Cause); 4] = [
        (Phase::Connect, Cause::Reset),
        (Phase::Send, Cause::Reset),
        (Phase::Head, Cause::Reset),
        (Phase::Idle, Cause::Reset),
    ];
    for_both_drivers(|driver| {
        let peer = Peer::start(peer::listen(), reset);
        let connect_timeout = Duration::from_millis(100);
        let mut load = Load::start(LoadSpec { connect_timeout, ..spec(peer.address, 2, driver) });
        let broken = load.run(Until::Elapsed(Duration::from_millis(200)));
        assert_eq!(broken.responses, 0);
        let resets = within(&broken, &KINDS);
        assert!(resets >= 2, "{broken:?}");
        load.assert_backed_off(&broken);

        peer.heal();
        let well = load.run(Until::Requests(20));
        // At most those that were open when the first slice ended are reset in this one.
        assert!(within(&well, &KINDS) <= u64::from(broken.connections_alive), "{well:?}");
        assert_eq!((well.sent, well.successful + well.broken), (20, 20));
    });
}

/// Reset between two slices: nothing was under way, so nothing is lost, and the connections are there again.
#[test]
fn idle_connections_that_are_reset_lose_no_request() {
    for_both_drivers(|driver| {
        let (slice_is_over, resets) = (Arc::new(Barrier::new(3)), Arc::new(AtomicU64::new(0)));
        let (turn, count) = (slice_is_over.clone(), resets.clone());
        let peer = Peer::start(peer::listen(), move |mut stream| {
            answer(&mut stream, &response(200, ""));
            turn.wait();
            reset(stream);
            count.fetch_add(1, Ordering::SeqCst);
        });
        let mut load = Load::start(spec(peer.address, 2, driver));
        let before = load.run(Until::Requests(2));
        assert_eq!((before.successful, errors(&before)), (2, vec![]));
        peer.heal();
        slice_is_over.wait();
        wait_until("both are reset", || resets.load(Ordering::SeqCst) == 2);

        let after = load.run(Until::Requests(10));
        assert_eq!((only(&after, Phase::Idle, Cause::Reset), after.sent, after.successful), (2, 10, 10));
        assert_eq!((after.connections_opened, after.reconnects, after.connections_alive_at_start), (2, 2, 2));
        assert_eq!((peer.accepted(), peer.requests()), (4, 10));
    });
}

/// Reset between two requests of one slice: the connection that was free is not offered to the next arrival.
#[test]
fn connections_that_are_reset_while_requests_are_awaited() {
    const REQUESTS: u64 = 8;
    for_both_drivers(|driver| {
        let peer = Peer::start(peer::listen(), |mut stream: TcpStream| {
            answer(&mut stream, &response(200, ""));
            std::thread::sleep(Duration::from_millis(10));
            reset(stream);
        });
        let arrivals = Arrivals::Open { rate: Rate::Constant(20.0), process: Process::Constant, seed: 1 };
        let mut load = Load::start(LoadSpec { arrivals, ..spec(peer.address, 2, driver) });
        let slice = load.run(Until::Requests(REQUESTS));
        assert_eq!((slice.due(), open_loop(&slice).unsent), (REQUESTS, 0));
        // Where this machine stands still until a connection's next turn, 100 ms later, a request runs into the reset.
        let kinds = [(Phase::Idle, Cause::Reset), (Phase::Send, Cause::Reset), (Phase::Head, Cause::Reset)];
        let resets = within(&slice, &kinds);
        assert!((REQUESTS - 1..=REQUESTS).contains(&resets), "{slice:?}");
        assert_eq!(slice.successful + slice.broken, REQUESTS);
        assert!(slice.successful >= REQUESTS / 2, "{slice:?}");
        // An answered request is no failure: the next connection comes at once.
        assert!((REQUESTS - 2..=REQUESTS).contains(&slice.reconnects), "{slice:?}");
    });
}
