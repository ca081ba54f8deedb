//! Servers that end or reset a connection during a write, or read a long request too slowly or not at all.
//! Faulty responses among good ones are in `worlds`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use model::{Cause, Phase};
use proofload_load::{LoadSpec, Until};

use crate::server::{self, Response, Server, end, hold, read, reset, response};
use crate::{Load, errors, for_both_drivers, only, spec, with_body, within};

/// More than the buffers of two sockets hold.
const LONG_BYTES: usize = 16 << 20;

#[test]
fn a_server_that_leaves_while_a_long_request_is_written() {
    let ends: fn(TcpStream) = |stream| {
        read(&stream, 100_000);
        end(&stream);
        hold(stream);
    };
    let resets: fn(TcpStream) = |stream| {
        read(&stream, 100_000);
        reset(stream);
    };
    for_both_drivers(|driver| {
        for (script, cause) in [(ends, Cause::ClosedEarly), (resets, Cause::Reset)] {
            let server = Server::faulty(server::listen(), script);
            let mut load = Load::start(with_body(
                spec(server.address, 2, driver),
                vec![b'x'; LONG_BYTES],
            ));
            let broken = load.run(Until::Elapsed(Duration::from_millis(150)));
            assert_eq!(errors(&broken), [(Phase::Send, cause, broken.sent)]);
            assert!(
                broken.sent >= 2 && broken.broken == broken.sent,
                "{broken:?}"
            );
            load.assert_backed_off(&broken);

            server.heal();
            let well = load.run(Until::Requests(6));
            // Connections opened near the end of the first slice are still held by the fault.
            let held = u64::from(broken.connections_alive);
            assert!(
                well.broken <= held && well.successful == 6 - well.broken,
                "{cause}: {well:?}"
            );
            assert_eq!(well.reconnects, well.connections_opened, "{cause}");
        }
    });
}

/// Not an error of either side: the server ends an idle connection while a request is on its way.
#[test]
fn requests_sent_into_a_closing_connection_are_counted() {
    const REQUESTS: u64 = 200;
    for_both_drivers(|driver| {
        let server = Server::start(|_| Response::Close(response(200, "bye")));
        let mut load = Load::start(spec(server.address, 4, driver));
        let slice = load.run(Until::Requests(REQUESTS));
        let lost = [
            (Phase::Send, Cause::Reset),
            (Phase::Head, Cause::Reset),
            (Phase::Head, Cause::ClosedEarly),
        ];
        let kinds = [
            lost.as_slice(),
            &[(Phase::Idle, Cause::Closed), (Phase::Idle, Cause::Reset)],
        ]
        .concat();
        within(&slice, &kinds);
        assert_eq!(
            (
                slice.sent,
                slice.successful + slice.broken,
                slice.successful
            ),
            (REQUESTS, REQUESTS, server.requests())
        );
        // Every connection serves one response, and the next one opens at once, without any backoff.
        assert!(slice.reconnects >= slice.successful - 4, "{slice:?}");
    });
}

#[test]
fn a_server_that_does_not_read_stops_the_request_on_its_way() {
    for_both_drivers(|driver| {
        let peer = Server::faulty(server::listen(), hold);
        let timeout = Duration::from_millis(200);
        let limits = LoadSpec {
            timeout,
            ..spec(peer.address, 2, driver)
        };
        let mut load = Load::start(with_body(limits, vec![b'x'; LONG_BYTES]));
        let slice = load.run(Until::Requests(4));
        assert_eq!(
            (slice.sent, only(&slice, Phase::Send, Cause::Timeout)),
            (4, 4)
        );
        let least = slice.latency.quantile(0.1).unwrap();
        assert!(!least.is_exact() && least.ns() >= 199_000_000, "{least:?}");
    });
}

/// The request is sent in many pieces, and every byte arrives in its place.
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
                let body_at = request
                    .windows(4)
                    .take(4096)
                    .position(|four| four == b"\r\n\r\n")
                    .map(|at| at + 4);
                if body_at.is_some_and(|at| request.len() - at >= expected.len()) {
                    count.fetch_add(
                        u64::from(request[body_at.unwrap()..] == expected[..]),
                        Ordering::SeqCst,
                    );
                    let _ = stream.write_all(&response(200, ""));
                    request.clear();
                }
            }
        });
        let mut load = Load::start(with_body(spec(peer.address, 2, driver), body.to_vec()));
        assert_eq!(load.well(4).connections_opened, 2);
        assert_eq!(
            whole.load(Ordering::SeqCst),
            4,
            "requests that arrived as they were sent"
        );
    });
}
