//! Servers that read too slowly, or not at all, what is long to write.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use model::{Cause, Phase};
use proofload_load::Until;

use crate::peer::{self, Peer, hold};
use crate::server::response;
use crate::{Load, LoadSpec, errors, for_both_drivers, only, spec, with_body};

/// More than the buffers of two sockets hold.
const LONG_BYTES: usize = 8 << 20;

#[test]
fn a_server_that_does_not_read_stops_the_request_on_its_way() {
    for_both_drivers(|driver| {
        let peer = Peer::start(peer::listen(), hold);
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
        let peer = Peer::start(peer::listen(), move |mut stream| {
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
        let slice = load.run(Until::Requests(4));
        assert_eq!((slice.successful, slice.connections_opened, errors(&slice)), (4, 2, vec![]));
        assert_eq!(whole.load(Ordering::SeqCst), 4, "requests that arrived as they were sent");
    });
}
