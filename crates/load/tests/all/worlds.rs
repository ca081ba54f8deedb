//! The same seeded worlds over both drivers. The response to the nth request is drawn in advance, so the
//! expected counts are known, regardless of its connection and of how the kernel splits the bytes.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use model::Cause;
use proofload_load::{LoadSpec, Until};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::server::{Server, end, hold, listen, read_request, read_to_end, reset};
use crate::{Load, for_both_drivers, spec};

const WORLDS: u64 = 8;
const REQUESTS: usize = 150;
/// Time that a request without a response takes. Slow responses take less.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The handling of a request: bytes, the size of the pieces, and what then happens to the connection.
struct Script {
    bytes: Vec<u8>,
    piece: usize,
    then: Then,
    /// The expected counts.
    counts: Vec<(String, u64)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Then {
    Keep,
    End,
    Reset,
    Hang,
}

fn response(random: &mut Pcg64Mcg) -> Script {
    let length = [0, 5, 3000, 90_000][random.random_range(0..4)];
    let status = if random.random_bool(0.1) { 500 } else { 200 };
    let body = "x".repeat(length);
    let (version, lines, sent, then) = match random.random_range(0..6) {
        0 => {
            let (one, other) = body.split_at(length / 3);
            let chunk = |data: &str| match data {
                "" => String::new(),
                data => format!("{:x};a=b\r\n{data}\r\n", data.len()),
            };
            let chunks = format!("{}{}0\r\nX: y\r\n\r\n", chunk(one), chunk(other));
            (
                1,
                "Transfer-Encoding: chunked\r\n".to_owned(),
                chunks,
                Then::Keep,
            )
        }
        1 => (1, "Connection: close\r\n".to_owned(), body, Then::End),
        2 => (0, format!("Content-Length: {length}\r\n"), body, Then::End),
        _ => (1, format!("Content-Length: {length}\r\n"), body, Then::Keep),
    };
    let early = if random.random_bool(0.1) {
        "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
    } else {
        ""
    };
    let bytes = format!("{early}HTTP/1.{version} {status} X\r\n{lines}\r\n{sent}").into_bytes();
    let piece = if bytes.len() < 200 && random.random_bool(0.2) {
        1
    } else {
        40_000
    };
    let counts = [
        ("responses", 1),
        ("bytes", length as u64),
        ("successful", u64::from(status == 200)),
    ];
    let counts = counts
        .map(|(what, count)| (what.to_owned(), count))
        .to_vec();
    Script {
        bytes,
        piece,
        then,
        counts,
    }
}

/// A bad ending, with its phase and cause. For a reset only the cause is certain, because it may overtake
/// earlier data.
fn trouble(random: &mut Pcg64Mcg) -> Script {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n";
    let script = |bytes: &str, then, error: &str| Script {
        bytes: bytes.into(),
        piece: 40_000,
        then,
        counts: vec![(error.to_owned(), 1)],
    };
    let long = || {
        format!(
            "HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n{}",
            "x".repeat(150_000)
        )
    };
    match random.random_range(0..10) {
        0 => script("", Then::End, "head closed-early"),
        1 => script(
            &head[..random.random_range(1..head.len())],
            Then::End,
            "head closed-early",
        ),
        2 => script(&format!("{head}hello"), Then::End, "body closed-early"),
        3 => script(&format!("{head}hello"), Then::Reset, "reset"),
        4 => script("", Then::Reset, "reset"),
        5 => script(&long(), Then::End, "body closed-early"),
        6 => script(&long(), Then::Reset, "reset"),
        7 => script(
            "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
            Then::Hang,
            "head malformed",
        ),
        8 => script(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
            Then::Hang,
            "body malformed",
        ),
        _ => script(
            &format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "y".repeat(70_000)),
            Then::Hang,
            "head too-large",
        ),
    }
}

/// All scripts of a world, plus one request that is never answered.
fn world(seed: u64) -> Vec<Script> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let bad = [0.02, 0.1, 0.3][random.random_range(0..3)];
    let mut scripts: Vec<_> = (0..REQUESTS)
        .map(|_| {
            if random.random_bool(bad) {
                trouble(&mut random)
            } else {
                response(&mut random)
            }
        })
        .collect();
    let counts = vec![("body timeout".to_owned(), 1)];
    let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhe".to_vec();
    scripts[random.random_range(0..REQUESTS)] = Script {
        bytes,
        piece: 1,
        then: Then::Hang,
        counts,
    };
    scripts
}

fn serve(mut stream: TcpStream, scripts: &[Script], next: &AtomicUsize) {
    stream.set_nodelay(true).unwrap();
    while read_request(&mut stream) {
        let Some(script) = scripts.get(next.fetch_add(1, Ordering::SeqCst)) else {
            return;
        };
        for piece in script.bytes.chunks(script.piece) {
            // This fails if the client has rejected earlier data.
            let _ = stream.write_all(piece);
        }
        match script.then {
            Then::Keep => continue,
            Then::End => {
                end(&stream);
                read_to_end(&stream);
            }
            Then::Reset => reset(stream),
            Then::Hang => hold(stream),
        }
        return;
    }
}

type Counted = BTreeMap<String, u64>;

fn sum(counts: impl Iterator<Item = (String, u64)>) -> Counted {
    let mut sum = Counted::new();
    counts
        .filter(|(_, count)| *count > 0)
        .for_each(|(what, count)| *sum.entry(what).or_default() += count);
    sum
}

#[test]
fn the_same_world_counts_the_same_over_both_drivers() {
    for seed in 0..WORLDS {
        for_both_drivers(|driver| {
            let scripts = world(seed);
            let expected = sum(scripts.iter().flat_map(|script| script.counts.clone()));
            let next = AtomicUsize::new(0);
            let server = Server::faulty(listen(), move |stream| serve(stream, &scripts, &next));
            let (connections, threads) = [(1, 1), (4, 1), (5, 2)][seed as usize % 3];
            let spec = LoadSpec {
                threads,
                timeout: TIMEOUT,
                ..spec(server.address, connections, driver)
            };
            let slice = Load::start(spec).run(Until::Requests(REQUESTS as u64));
            let errors = slice.errors.iter().map(|error| match error.cause {
                Cause::Reset => ("reset".to_owned(), error.count),
                cause => (format!("{} {cause}", error.phase), error.count),
            });
            let counts = [
                ("responses", slice.responses),
                ("successful", slice.successful),
                ("bytes", slice.body_bytes),
                ("unfinished", slice.unfinished),
            ];
            let counted = counts
                .map(|(what, count)| (what.to_owned(), count))
                .into_iter()
                .chain(errors);
            assert_eq!(
                sum(counted),
                expected,
                "world {seed}, {connections} connections"
            );
        });
    }
}
