//! Servers that end connections, reset them, respond with nonsense, or read too slowly or not at all what is long to write, in every
//! phase.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use model::{Cause, Phase};
use proofload_load::{DriverChoice, LoadSpec, Until};

use crate::server::{self, Response, Server, end, hold, read, read_to_end, reset, respond, response};
use crate::{Load, errors, for_both_drivers, only, spec, with_body, within};

/// More than the buffers of two sockets hold.
const LONG_BYTES: usize = 16 << 20;

/// A way in which a server fails every request: what it does, how long the request's body is, and what it must be counted as.
type Fault = (&'static str, usize, (Phase, Cause), fn(TcpStream));

/// Responds with this, and goes on as told: nothing but the end of the connection can tell.
fn cut(mut stream: TcpStream, bytes: &[u8], then: fn(TcpStream)) {
    respond(&mut stream, bytes);
    then(stream);
}

fn long() -> Vec<u8> {
    response(200, &"x".repeat(300_000))
}

/// Short responses that end, are reset or are nonsense come among good ones in `worlds`.
const FAULTS: [Fault; 5] = [
    ("ends while the request is written", LONG_BYTES, (Phase::Send, Cause::ClosedEarly), |stream| {
        read(&stream, 100_000);
        end(&stream);
        hold(stream);
    }),
    ("ends after half of a long body", 0, (Phase::Body, Cause::ClosedEarly), |stream| {
        cut(stream, &long()[..150_000], |stream| {
            end(&stream);
            read_to_end(&stream);
        });
    }),
    ("resets while the request is written", LONG_BYTES, (Phase::Send, Cause::Reset), |stream| {
        read(&stream, 100_000);
        reset(stream);
    }),
    ("resets when part of a short request was read", 0, (Phase::Head, Cause::Reset), |stream| {
        read(&stream, 10);
        reset(stream);
    }),
    ("resets within a long body", 0, (Phase::Body, Cause::Reset), |stream| {
        cut(stream, &long()[..100_000], reset);
    }),
];

#[test]
fn each_way_of_failing_has_its_name() {
    for_both_drivers(|driver| FAULTS.iter().for_each(|fault| meet(driver, *fault)));
}

/// Sends to a server with this fault for a while, and to the same one when it is well again.
fn meet(driver: DriverChoice, (name, body_bytes, (phase, cause), script): Fault) {
    let server = Server::faulty(server::listen(), script);
    let mut load = Load::start(with_body(spec(server.address, 2, driver), vec![b'x'; body_bytes]));

    let broken = load.run(Until::Elapsed(Duration::from_millis(150)));
    assert_eq!(errors(&broken), [(phase, cause, broken.sent)], "{name}");
    assert!(broken.sent >= 2 && broken.broken == broken.sent, "{name}: {broken:?}");
    load.assert_backed_off(&broken);

    server.heal();
    let well = load.run(Until::Requests(6));
    // What was opened when the first slice was all but over is still held by the fault.
    let held = u64::from(broken.connections_alive);
    assert!(well.broken <= held && well.successful == 6 - well.broken, "{name}: {well:?}");
    assert_eq!(well.reconnects, well.connections_opened, "{name}");
}

/// Neither side has erred: the server ends a connection that it takes for idle while a request is on its way to it.
#[test]
fn requests_sent_into_a_closing_connection_are_counted() {
    const REQUESTS: u64 = 200;
    for_both_drivers(|driver| {
        let server = Server::start(|_| Response::Close(response(200, "bye")));
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
        // Every connection is good for one respond, and the next one comes at once: no second of waiting anywhere.
        assert!(slice.reconnects >= slice.successful - 4, "{slice:?}");
    });
}

#[test]
fn a_server_that_does_not_read_stops_the_request_on_its_way() {
    for_both_drivers(|driver| {
        let peer = Server::faulty(server::listen(), hold);
        let timeout = Duration::from_millis(200);
        let limits = LoadSpec { timeout, ..spec(peer.address, 2, driver) };
        let mut load = Load::start(with_body(limits, vec![b'x'; LONG_BYTES]));
        let slice = load.run(Until::Requests(4));
        assert_eq!((slice.sent, only(&slice, Phase::Send, Cause::Timeout)), (4, 4));
        let least = slice.latency.quantile(0.1).unwrap();
        assert!(!least.is_exact() && least.ns() >= 199_000_000, "{least:?}");
    });
}

/// The request goes out in many pieces: every byte of it arrives, in its place.
#[test]
fn a_server_that_reads_slowly_gets_all_of_it() {
    // A period that no piece is a multiple of.
    let body: Arc<[u8]> = (0..LONG_BYTES).map(|at| (at % 251) as u8).collect();
    for_both_drivers(|driver| {
        let (expected, whole) = (body.clone(), Arc::new(AtomicU64::new(0)));
        let count = whole.clone();
        let peer = Server::faulty(server::listen(), move |mut stream| {
            let mut request = Vec::new();
            let mut piece = vec![0; 256 * 1024];
            while let Ok(got @ 1..) = stream.read(&mut piece) {
                request.extend_from_slice(&piece[..got]);
                std::thread::sleep(Duration::from_millis(1));
                let body_at =
                    request.windows(4).take(4096).position(|four| four == b"\r\n\r\n").map(|at| at + 4);
                if body_at.is_some_and(|at| request.len() - at >= expected.len()) {
                    count.fetch_add(u64::from(request[body_at.unwrap()..] == expected[..]), Ordering::SeqCst);
                    let _ = stream.write_all(&response(200, ""));
                    request.clear();
                }
            }
        });
        let mut load = Load::start(with_body(spec(peer.address, 2, driver), body.to_vec()));
        assert_eq!(load.well(4).connections_opened, 2);
        assert_eq!(whole.load(Ordering::SeqCst), 4, "requests that arrived as they were sent");
    });
}
