//! Ports and lines that are really full, in a network that each test makes for itself: seen in TCP's counters and told as findings.
//!
//! It takes root. Nothing here touches this machine's own network.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use analysis::Grade;
use load::{Address, Generator, LoadSpec, RequestSpec, Until};
use machine::TcpCounters;
use record::{Cause, Counts, TcpUse};
use rustix::net;
use services::{NamespaceVisit, NetworkPair};

use super::findings;
use crate::real::keeping::kept;

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// True where networks cannot be made because we are not root, which is said once for each test.
fn is_out_of_reach(test: &str) -> bool {
    if rustix::process::geteuid().is_root() {
        return false;
    }
    // Not by a macro: the test runner would keep to itself what a passing test prints.
    let _ = writeln!(std::io::stderr(), "skipped: {test}: networks take root");
    true
}

/// A network of the test's own, with the calling thread in it.
fn somewhere() -> (NetworkPair, NamespaceVisit) {
    let here = || fs::read_link("/proc/thread-self/ns/net").unwrap();
    let home = here();
    let network = NetworkPair::make(&plan::Network {
        rate_bit_per_s: None,
        delay: None,
    })
    .unwrap();
    let visit = network.services.visit().unwrap();
    assert_ne!(here(), home);
    (network, visit)
}

/// Answers one connection after the other until told to stop; the client is the first to close.
fn serve(listener: &TcpListener, think: Duration, stop: &AtomicBool) {
    listener.set_nonblocking(true).unwrap();
    while !stop.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((connection, _)) => answer(connection, think),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                thread::sleep(Duration::from_millis(1))
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// A client that is gone needs no answer.
fn answer(mut connection: TcpStream, think: Duration) {
    connection.set_nonblocking(false).unwrap();
    connection
        .set_read_timeout(Some(Duration::from_secs(2)))
        .unwrap();
    let mut request = [0; 4096];
    if connection.read(&mut request).is_ok_and(|bytes| bytes > 0) {
        thread::sleep(think);
        let _ = connection.write_all(RESPONSE);
        let _ = connection.read(&mut request);
    }
}

/// Loads a server with a connection for each request: what is kept of it, and what TCP counted meanwhile.
fn loaded(
    listener: &TcpListener,
    think: Duration,
    connections: u32,
    window: Duration,
) -> (Counts, TcpUse) {
    let address = listener.local_addr().unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| serve(listener, think, &stop));
        let spec = LoadSpec {
            keep_alive: false,
            connections,
            timeout: Duration::from_secs(2),
            ..LoadSpec::new(
                Address::Tcp(address),
                vec![RequestSpec::new("GET", "/", "localhost")],
            )
        };
        let before = TcpCounters::read().unwrap();
        let counts = Generator::start(spec).unwrap().run(Until::Elapsed(window));
        let tcp = before.until(&TcpCounters::read().unwrap());
        stop.store(true, Ordering::Relaxed);
        (kept(counts, None), tcp)
    })
}

#[test]
fn a_client_that_leaves_every_port_waiting_runs_out_of_them() {
    if is_out_of_reach("a client that leaves every port waiting") {
        return;
    }
    let (_network, _visit) = somewhere();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    fs::write("/proc/sys/net/ipv4/ip_local_port_range", "40000 40199").unwrap();
    // On loopback the kernel would use them again after a second.
    fs::write("/proc/sys/net/ipv4/tcp_tw_reuse", "0").unwrap();
    let (counts, tcp) = loaded(&listener, Duration::ZERO, 2, Duration::from_millis(1500));
    assert_eq!(
        (tcp.local_ports, tcp.time_wait_before, tcp.listen_drops),
        (200, 0, 0),
        "{tcp:?}"
    );
    assert!(
        tcp.opened > 100 && tcp.time_wait > 100 && tcp.time_wait <= 200,
        "{tcp:?}"
    );
    // On a machine too busy to open two hundred connections in that time half of them still tell.
    let exhausted = counts
        .errors
        .iter()
        .any(|error| error.cause == Cause::AddressExhausted);
    assert!(
        exhausted || tcp.time_wait < 200,
        "{:?} {tcp:?}",
        counts.errors
    );
    let found = findings(0, |planted| {
        planted.counts.errors.clone_from(&counts.errors);
        planted.machine.tcp = Some(tcp);
    });
    let grade = if exhausted {
        Grade::Invalid
    } else {
        Grade::Warning
    };
    assert_eq!(found, [("ports_exhausted", grade)], "{tcp:?}");
}

#[test]
fn who_finds_the_line_before_accept_full_is_counted_and_tries_again() {
    if is_out_of_reach("a line before accept that is full") {
        return;
    }
    let (_network, _visit) = somewhere();
    let socket = net::socket(net::AddressFamily::INET, net::SocketType::STREAM, None).unwrap();
    net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
    net::listen(&socket, 1).unwrap();
    let listener = TcpListener::from(socket);
    let (_, tcp) = loaded(
        &listener,
        Duration::from_millis(20),
        16,
        Duration::from_millis(1500),
    );
    assert!(
        tcp.listen_overflows > 0 && tcp.listen_drops >= tcp.listen_overflows,
        "{tcp:?}"
    );
    assert!(tcp.syn_retransmits > 0, "{tcp:?}");
    let found = findings(0, |planted| planted.machine.tcp = Some(tcp));
    assert_eq!(found, [("backlog_full", Grade::Invalid)], "{tcp:?}");
}
