//! The engine against real sockets: a server that counts, and every way in which it can misbehave.

pub(crate) mod open_loop;
pub(crate) mod server;

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use model::{Cause, Counts, FailureKind, Phase};
use proofload_load::{Address, Contract, DriverChoice, Generator, LoadError, LoadSpec, Request, Until};
use server::{Answer, Server, response};

/// Long enough that a busy machine does not run into it by itself.
const TIMEOUT: Duration = Duration::from_secs(1);

fn spec(address: SocketAddr, connections: u32) -> LoadSpec {
    LoadSpec {
        connections,
        timeout: Duration::from_secs(20),
        connect_timeout: Duration::from_secs(20),
        driver: driver(),
        ..LoadSpec::new(Address::Tcp(address), vec![Request::new("GET", "/", &address.to_string())])
    }
}

/// These tests are run twice: `completion.rs` includes them for its driver.
fn driver() -> DriverChoice {
    match module_path!() {
        "sockets" => DriverChoice::Readiness,
        _ => DriverChoice::Completion,
    }
}

/// Runs one slice and checks what must hold of every slice.
fn run(generator: &mut Generator, until: Until) -> Counts {
    let slice = generator.run(until);
    assert_eq!(slice.sent, slice.responses + slice.timed_out + slice.broken + slice.unfinished);
    assert_eq!(slice.latency.count(), slice.sent);
    assert_eq!(slice.latency.censored(), slice.sent - slice.responses);
    assert_eq!(
        slice.successful_per_100_ms.iter().map(|&ok| u64::from(ok)).sum::<u64>(),
        slice.successful_in_window
    );
    slice
}

fn once(spec: LoadSpec, until: Until) -> Counts {
    run(&mut Generator::start(spec).unwrap(), until)
}

fn errors(slice: &Counts) -> Vec<(Phase, Cause, u64)> {
    slice.errors.iter().map(|error| (error.phase, error.cause, error.count)).collect()
}

#[test]
fn counts_agree_with_the_server_over_slices_and_threads() {
    let server = Server::start(|_| Answer::Keep(response(200, "hello")));
    let spec = LoadSpec { threads: 2, ..spec(server.address, 7) };
    let mut generator = Generator::start(spec).unwrap();

    let counted = run(&mut generator, Until::Requests(1003));
    assert_eq!((counted.sent, counted.successful_in_window, server.requests()), (1003, 1003, 1003));
    assert_eq!((counted.connections_alive_at_start, counted.connections_alive), (7, 7));
    assert_eq!(counted.body_bytes, 5 * 1003);
    assert_eq!(counted.wire_bytes, response(200, "hello").len() as u64 * 1003);

    let window = Duration::from_millis(250);
    let timed = run(&mut generator, Until::Elapsed(window));
    assert_eq!(timed.sent, server.requests() - 1003);
    assert_eq!(timed.window_ns, 250_000_000);
    assert_eq!(timed.responses, timed.sent, "what is in flight at the end is waited for");
    assert!(timed.successful_in_window <= timed.successful && timed.successful_in_window > 0);
    assert_eq!(timed.successful_per_100_ms.len(), 3);
    assert_eq!(timed.generator.cpu_ns.len(), 2);

    assert_eq!(
        (counted.connections_opened, timed.connections_opened, server.connections()),
        (7, 0, 7),
        "connections are kept"
    );
    assert_eq!(errors(&counted).len() + errors(&timed).len(), 0);
}

#[test]
fn long_bodies_are_counted_though_never_seen() {
    let body = "x".repeat(300_000);
    let length = body.len() as u64;
    let server = Server::start(move |_| Answer::Keep(response(200, &body)));
    let contract = Contract { body_bytes: Some(length), ..Contract::default() };
    let slice = once(LoadSpec { contract, ..spec(server.address, 3) }, Until::Requests(200));
    assert_eq!((slice.successful, slice.body_bytes, server.requests()), (200, 200 * length, 200));
    assert_eq!(errors(&slice), []);
}

#[test]
fn a_long_request_is_written_in_full() {
    let server = Server::start(|_| Answer::Keep(response(201, "")));
    let mut spec = spec(server.address, 2);
    spec.requests[0].method = "POST".into();
    spec.requests[0].body = vec![b'x'; 8 << 20];
    let slice = once(spec, Until::Requests(6));
    assert_eq!((slice.successful, server.requests()), (6, 6));
    assert_eq!(slice.status.into_iter().collect::<Vec<_>>(), [(201, 6)]);
}

#[test]
fn a_server_that_never_answers_is_seen_in_the_percentiles() {
    let server = Server::start(|_| Answer::Hang(vec![]));
    let slice = once(LoadSpec { timeout: TIMEOUT, ..spec(server.address, 4) }, Until::Requests(8));
    assert_eq!((slice.sent, slice.timed_out, slice.responses, server.requests()), (8, 8, 0, 8));
    assert_eq!(errors(&slice), [(Phase::Head, Cause::Timeout, 8)]);
    let median = slice.latency.quantile(0.5).unwrap();
    assert!(!median.is_exact() && median.ns() >= 199_000_000, "{median:?}");
}

#[test]
fn one_hung_request_is_the_tail_and_not_forgotten() {
    let server = Server::start(|n| {
        if n == 50 { Answer::Hang(b"HTTP/1.1 200 OK\r\n".into()) } else { Answer::Keep(response(200, "")) }
    });
    let slice = once(LoadSpec { timeout: TIMEOUT, ..spec(server.address, 1) }, Until::Requests(100));
    assert_eq!((slice.sent, slice.successful, slice.timed_out), (100, 99, 1));
    assert!(slice.latency.quantile(0.9).unwrap().is_exact());
    assert!(!slice.latency.quantile(1.0).unwrap().is_exact());
    assert_eq!((slice.connections_opened, slice.reconnects), (2, 1));
}

#[test]
fn an_interrupt_ends_the_slice_and_leaves_nothing_out() {
    let server = Server::start(|_| Answer::Hang(vec![]));
    let mut generator = Generator::start(spec(server.address, 3)).unwrap();
    let interrupt = generator.interrupt();
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        interrupt.stop();
    });
    let slice = run(&mut generator, Until::Elapsed(Duration::from_secs(3600)));
    stopper.join().unwrap();
    assert_eq!((slice.sent, slice.unfinished, slice.latency.censored()), (3, 3, 3));
    assert_eq!(run(&mut generator, Until::Requests(10)).sent, 0, "later slices end at once");
}

#[test]
fn each_way_of_failing_has_its_name() {
    let short = || b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello".to_vec();
    let long_head = || format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(70_000)).into_bytes();
    let cases: [(Answer, Phase, Cause); 7] = [
        (Answer::Close(b"SSH-2.0-x\r\n".into()), Phase::Head, Cause::Malformed),
        (Answer::Close(vec![]), Phase::Head, Cause::ClosedEarly),
        (Answer::Reset(vec![]), Phase::Head, Cause::Reset),
        (Answer::Close(short()), Phase::Body, Cause::ClosedEarly),
        (Answer::Hang(short()), Phase::Body, Cause::Timeout),
        (Answer::Hang(long_head()), Phase::Head, Cause::TooLarge),
        (Answer::Reset(short()), Phase::Body, Cause::Reset),
    ];
    for (answer, phase, cause) in cases {
        let described = format!("{answer:?}").chars().take(80).collect::<String>();
        let server = Server::start(move |_| answer.clone());
        let timeout = if cause == Cause::Timeout { TIMEOUT } else { spec(server.address, 2).timeout };
        let slice = once(LoadSpec { timeout, ..spec(server.address, 2) }, Until::Requests(4));
        assert_eq!(errors(&slice), [(phase, cause, 4)], "{described}");
        assert_eq!((slice.sent, slice.responses, server.requests()), (4, 0, 4), "{described}");
    }
}

#[test]
fn more_than_a_response_is_malformed_and_ends_the_connection() {
    let server =
        Server::start(|_| Answer::Keep(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok, and more".into()));
    let slice = once(spec(server.address, 1), Until::Requests(5));
    assert_eq!((slice.successful, slice.connections_opened, server.requests()), (5, 5, 5));
    assert_eq!(errors(&slice), [(Phase::Idle, Cause::Malformed, 5)]);
}

#[test]
fn a_connection_closed_each_time_is_reopened_and_counted() {
    let bodies: [&[u8]; 3] = [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\n\r\nok",
    ];
    for body in bodies {
        let server = Server::start(|_| Answer::Close(body.to_vec()));
        let slice = once(spec(server.address, 2), Until::Requests(40));
        assert_eq!((slice.successful, server.requests()), (40, 40));
        // One more where the last connection to come back found nothing left to send.
        assert!((40..=41).contains(&slice.connections_opened), "{} opened", slice.connections_opened);
        assert_eq!(
            (slice.connections_opened, slice.reconnects),
            (server.connections(), slice.connections_opened - 2)
        );
        assert_eq!(errors(&slice), []);
        assert_eq!(slice.body_bytes, 80);
    }
}

#[test]
fn connections_the_server_closed_between_slices_are_reopened_outside_the_window() {
    let server = Server::start(move |n| match n {
        0..4 => Answer::CloseLater(response(200, ""), Duration::from_millis(30)),
        _ => Answer::Keep(response(200, "")),
    });
    let mut generator = Generator::start(spec(server.address, 4)).unwrap();
    let before = run(&mut generator, Until::Requests(4));
    server.wait_for_closed(4);
    let slice = run(&mut generator, Until::Requests(4));
    assert_eq!(
        (slice.successful, slice.connections_alive_at_start, slice.connections_opened, slice.reconnects),
        (4, 4, 4, 4)
    );
    let closed = |slice| {
        errors(slice)
            .iter()
            .map(|(phase, cause, count)| match (phase, cause) {
                (Phase::Idle, Cause::Closed) => *count,
                other => panic!("{other:?}"),
            })
            .sum::<u64>()
    };
    assert_eq!(closed(&before) + closed(&slice), 4);
}

#[test]
fn bad_statuses_are_answers_but_not_throughput() {
    let server = Server::start(|n| Answer::Keep(response(if n % 4 == 0 { 503 } else { 200 }, "x")));
    let slice = once(spec(server.address, 2), Until::Requests(100));
    assert_eq!((slice.responses, slice.successful_in_window, slice.successful), (100, 75, 75));
    assert_eq!(slice.status.into_iter().collect::<Vec<_>>(), [(200, 75), (503, 25)]);
    let [failure] = slice.contract_failures.as_slice() else { panic!("{:?}", slice.contract_failures) };
    assert_eq!((&failure.kind, failure.count, failure.example.as_str()), (&FailureKind::Status, 25, "503"));
}

#[test]
fn a_refused_port_ends_in_counts_and_not_in_a_hang() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let spec = LoadSpec { connect_timeout: TIMEOUT, ..spec(free, 2) };
    let mut generator = Generator::start(spec).unwrap();
    for until in [Until::Requests(10), Until::Elapsed(TIMEOUT)] {
        let slice = run(&mut generator, until);
        assert_eq!((slice.sent, slice.connections_alive_at_start, slice.latency.quantile(0.5)), (0, 0, None));
        let [(Phase::Connect, Cause::Refused, count)] = errors(&slice)[..] else {
            panic!("{:?}", slice.errors)
        };
        // Two connections, backing off from 10 ms: not one attempt, and no storm either.
        assert!((4..=40).contains(&count), "{count} attempts");
    }
}

#[test]
fn what_cannot_be_started_is_refused_with_the_reason() {
    let address = "127.0.0.1:1".parse().unwrap();
    let many = Generator::start(spec(address, u32::MAX)).unwrap_err();
    assert!(matches!(many, LoadError::Descriptors { needed, limit } if needed > limit), "{many}");
    let threads = Generator::start(LoadSpec { threads: 3, ..spec(address, 2) }).unwrap_err();
    assert!(threads.to_string().contains("3 threads for 2 connections"), "{threads}");
    let pin = Generator::start(LoadSpec { cpus: vec![1000], ..spec(address, 2) }).unwrap_err();
    assert!(matches!(pin, LoadError::Pin { cpu: 1000, .. }), "{pin}");
}
