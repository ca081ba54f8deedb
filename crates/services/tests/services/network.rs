//! A link between client and services has the configured properties, and services on it are started, observed
//! and stopped like others.
//!
//! The tests need root and create their own namespaces. They do not touch this machine's network.

use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use plan::Service;
use proofload_services::{Error, Listening, NetworkPair, Running};

use crate::stage::{LOOPBACK, Stage, with_env};

/// A network, or `None` with a message if none can be created because we are not root or the kernel has no
/// netem.
///
/// CI runs as root. Failing to create networks as root is a failure, not a reason to skip.
fn network(test: &str, rate_bit_per_s: Option<u64>, delay_ms: Option<u64>) -> Option<NetworkPair> {
    if !rustix::process::geteuid().is_root() {
        return skipped(test, "networks take root");
    }
    let delay = delay_ms.map(Duration::from_millis);
    match NetworkPair::make(&plan::Network {
        rate_bit_per_s,
        delay,
    }) {
        Err(error)
            if delay_ms.is_some()
                && error
                    .to_string()
                    .contains("takes the kernel module sch_netem") =>
        {
            assert!(
                error.hint().unwrap().contains("or leave `delay` out"),
                "{error:?}"
            );
            skipped(test, "the kernel has no netem")
        }
        made => Some(made.unwrap()),
    }
}

fn skipped(test: &str, why: &str) -> Option<NetworkPair> {
    // Not printed by a macro: the test runner would capture the output of a passing test.
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {why}");
    None
}

/// A server on the services' side that sends and receives as much as a client does.
fn listen(network: &NetworkPair) -> (SocketAddr, TcpListener) {
    let _there = network.services.visit().unwrap();
    let listener = TcpListener::bind((network.address(), 0)).unwrap();
    (listener.local_addr().unwrap(), listener)
}

fn connect(network: &NetworkPair, address: SocketAddr) -> TcpStream {
    let _there = network.client.visit().unwrap();
    TcpStream::connect(address).unwrap()
}

/// Received bits per second after the connection has reached its full rate.
fn rate(mut to: impl Read, mut from: impl Write + Send) -> f64 {
    thread::scope(|scope| {
        scope.spawn(move || while from.write_all(&[7; 16 << 10]).is_ok() {});
        let mut buffer = vec![0; 64 << 10];
        let mut take = |bytes: usize| {
            let begin = Instant::now();
            let mut taken = 0;
            while taken < bytes {
                taken += to.read(&mut buffer).unwrap();
            }
            (taken * 8) as f64 / begin.elapsed().as_secs_f64()
        };
        take(250_000);
        let rate = take(2_500_000);
        // Closing it ends the writer.
        drop(to);
        rate
    })
}

#[test]
fn a_link_carries_its_rate_both_ways_and_a_frame_takes_its_delay() {
    for delay in [None, Some(5)] {
        let Some(network) = network("a link carries its rate", Some(20_000_000), delay) else {
            return;
        };
        let (address, listener) = listen(&network);
        for to_client in [true, false] {
            let client = connect(&network, address);
            let (service, _) = listener.accept().unwrap();
            let measured = if to_client {
                rate(client, service)
            } else {
                rate(service, client)
            };
            // Headers are 66 of 1514 bytes. More than the link's rate would be wrong. Less may be a busy
            // machine.
            assert!(
                (1e6..20e6).contains(&measured),
                "{measured} bit/s, {delay:?}, to client: {to_client}"
            );
        }
    }
}

#[test]
fn nothing_but_the_other_side_can_be_reached() {
    let here = || fs::read_link("/proc/thread-self/ns/net").unwrap();
    let (home, devices) = (here(), devices());
    let outside = TcpListener::bind((LOOPBACK, 0)).unwrap();
    let Some(network) = network("nothing but the other side", None, None) else {
        return;
    };
    let visit = network.services.visit().unwrap();
    assert_ne!(here(), home);
    assert!(
        TcpStream::connect(outside.local_addr().unwrap()).is_err(),
        "loopback is the services' own"
    );
    drop(visit);
    assert_eq!(here(), home);
    assert_eq!(self::devices(), devices, "this machine has no device more");
}

fn devices() -> Vec<String> {
    let table = fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    table
        .lines()
        .filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned()))
        .collect()
}

fn service(stage: &Stage, name: &str, env: &[(&str, &str)]) -> Service {
    let service = with_env(stage.service(&["node", "server.js"]), env);
    Service {
        name: name.to_owned(),
        ..service
    }
}

/// Starts a service on the services' side.
fn start_there(
    network: &NetworkPair,
    stage: &Stage,
    service: &Service,
    at: IpAddr,
) -> Result<Running, Error> {
    let _there = network.services.visit().unwrap();
    stage.start_placed(service, |placement| placement.address = at)
}

#[test]
fn services_of_a_link_are_started_seen_and_answer_the_client() {
    let Some(network) = network("services of a link", Some(100_000_000), None) else {
        return;
    };
    let (stage, other) = (Stage::new(), Stage::new());
    let entry = service(&stage, "entry", &[("HOST", "{address}")]);
    let entry = start_there(&network, &stage, &entry, network.address()).unwrap();
    let origin = start_there(&network, &other, &service(&other, "origin", &[]), LOOPBACK).unwrap();
    {
        let _there = network.services.visit().unwrap();
        assert_eq!(
            (entry.listening(), origin.listening()),
            (Listening::Ours, Listening::Ours)
        );
        TcpStream::connect(origin.address).expect("services reach each other on loopback");
    }
    let mut client = connect(&network, entry.address);
    client.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let namespace = |pid: u32| fs::read_link(format!("/proc/{pid}/ns/net")).unwrap();
    assert_eq!(namespace(entry.pid), namespace(origin.pid));
    assert_ne!(namespace(entry.pid), namespace(std::process::id()));
}

#[test]
fn a_service_that_listens_on_loopback_only_is_told_where_to_listen() {
    let Some(network) = network(
        "a service that listens on loopback only",
        Some(100_000_000),
        None,
    ) else {
        return;
    };
    let stage = Stage::new();
    let mut deaf = service(&stage, "api", &[]);
    // Long enough for node to start on a busy machine.
    deaf.ready_timeout = Duration::from_secs(4);
    let error = start_there(&network, &stage, &deaf, network.address()).unwrap_err();
    assert!(
        error.to_string().contains("but it listens on 127.0.0.1:"),
        "{error}"
    );
    assert!(error.to_string().ends_with(" only"), "{error}");
    assert!(error.hint().unwrap().contains("let it listen on {address}"));
}
