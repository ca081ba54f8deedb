//! Connections that the server ends, whole or by half, at the right time or not.

use std::io::Write;
use std::net::Shutdown;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use model::{Cause, Phase};
use proofload_load::Until;

use crate::peer::{self, Peer, answer, end, hold, read, read_to_end, wait_until};
use crate::server::{Answer, Server, read_request, response};
use crate::{Fault, Load, LoadSpec, for_both_drivers, meet, only, spec, within};

/// The server writes no more but reads on, so that nothing but its end can tell.
const FAULTS: [Fault; 5] = [
    Fault {
        name: "while the request is written",
        counted: (Phase::Send, Cause::ClosedEarly),
        body_bytes: 16 << 20,
        script: |stream| {
            read(&stream, 100_000);
            end(&stream);
            hold(stream);
        },
    },
    Fault {
        name: "before the head",
        counted: (Phase::Head, Cause::ClosedEarly),
        body_bytes: 0,
        script: |mut stream| {
            answer(&mut stream, b"");
            end(&stream);
            read_to_end(&stream);
        },
    },
    Fault {
        name: "after half of the head",
        counted: (Phase::Head, Cause::ClosedEarly),
        body_bytes: 0,
        script: |mut stream| {
            answer(&mut stream, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n");
            end(&stream);
            read_to_end(&stream);
        },
    },
    Fault {
        name: "after half of a long body",
        counted: (Phase::Body, Cause::ClosedEarly),
        body_bytes: 0,
        script: |mut stream| {
            answer(&mut stream, &response(200, &"x".repeat(300_000))[..150_000]);
            end(&stream);
            read_to_end(&stream);
        },
    },
    Fault {
        name: "before the last chunk",
        counted: (Phase::Body, Cause::ClosedEarly),
        body_bytes: 0,
        script: |mut stream| {
            answer(&mut stream, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
            end(&stream);
            read_to_end(&stream);
        },
    },
];

#[test]
fn half_a_response_is_closed_early() {
    for_both_drivers(|driver| FAULTS.iter().for_each(|fault| meet(driver, fault)));
}

/// The server writes one answer, ends its side unannounced and reads on: whatever was sent has arrived there, and was
/// either answered or is counted as lost.
#[test]
fn a_side_closed_after_the_response_costs_at_most_the_request_that_met_it() {
    const REQUESTS: u64 = 100;
    for_both_drivers(|driver| {
        let (requests, answers) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (read, answered) = (requests.clone(), answers.clone());
        let peer = Peer::start(peer::listen(), move |mut stream| {
            for nth in 0.. {
                if !read_request(&mut stream) {
                    return;
                }
                read.fetch_add(1, Ordering::SeqCst);
                if nth == 0 {
                    answered.fetch_add(1, Ordering::SeqCst);
                    let _ = stream.write_all(&response(200, ""));
                    end(&stream);
                }
            }
        });
        let mut load = Load::start(spec(peer.address, 4, driver));
        let slice = load.run(Until::Requests(REQUESTS));
        within(&slice, &[(Phase::Idle, Cause::Closed), (Phase::Head, Cause::ClosedEarly)]);
        assert_eq!((slice.sent, slice.successful), (REQUESTS, answers.load(Ordering::SeqCst)));
        wait_until("all is read", || requests.load(Ordering::SeqCst) == REQUESTS);
    });
}

/// Neither side has erred: the server ends a connection that it takes for idle while a request is on its way to it.
#[test]
fn requests_sent_into_a_closing_connection_are_counted() {
    const REQUESTS: u64 = 200;
    for_both_drivers(|driver| {
        let server = Server::start(|_| Answer::Close(response(200, "bye")));
        let mut load = Load::start(spec(server.address, 4, driver));
        let slice = load.run(Until::Requests(REQUESTS));
        let lost =
            [(Phase::Send, Cause::Reset), (Phase::Head, Cause::Reset), (Phase::Head, Cause::ClosedEarly)];
        let kinds = [lost.as_slice(), &[(Phase::Idle, Cause::Closed), (Phase::Idle, Cause::Reset)]].concat();
        within(&slice, &kinds);
        assert_eq!(
            (slice.sent, slice.successful + slice.broken, slice.successful),
            (REQUESTS, REQUESTS, server.requests())
        );
        // Every connection is good for one answer, and the next one comes at once: no second of waiting anywhere.
        assert!(slice.reconnects >= slice.successful - 4, "{slice:?}");
    });
}

/// The server takes one request and closes its ears: the second one is acknowledged by its kernel and never read.
#[test]
fn a_server_that_reads_no_more() {
    for_both_drivers(|driver| {
        let deaf = Mutex::new(Vec::new());
        let peer = Peer::start(peer::listen(), move |mut stream| {
            answer(&mut stream, &response(200, ""));
            let _ = stream.shutdown(Shutdown::Read);
            deaf.lock().unwrap().push(stream);
        });
        let timeout = Duration::from_millis(300);
        let mut load = Load::start(LoadSpec { timeout, ..spec(peer.address, 2, driver) });
        let slice = load.run(Until::Requests(4));
        assert_eq!((only(&slice, Phase::Head, Cause::Timeout), slice.successful, slice.timed_out), (2, 2, 2));

        peer.heal();
        let well = load.run(Until::Requests(10));
        assert_eq!((well.successful, well.errors.len(), well.reconnects), (10, 0, well.connections_opened));
        wait_until("both have counted", || peer.requests() == 10);
    });
}
