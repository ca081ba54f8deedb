//! The engine against a real nginx, compared with its access log, over every protocol that both support.

// The program's tests use the rest of it.
#[allow(dead_code)]
#[path = "../nginx/server.rs"]
mod server;

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use model::{Cause, Counts, ErrorCount, FailureKind, Phase};
use proofload_load::{
    Address, Contract, Digest, DriverChoice, Generator, LoadSpec, Protocol, RequestSpec, TlsSpec,
    Trust, Until,
};

use server::{LONG_BODY_BYTES, NAME, Nginx};

fn spec(nginx: &Nginx, path: &str, driver: DriverChoice) -> LoadSpec {
    let headers = vec![("Accept-Encoding".into(), "identity".into())];
    let request = RequestSpec {
        headers,
        ..RequestSpec::new("GET", path, "localhost")
    };
    LoadSpec {
        requests: vec![request],
        threads: 2,
        ..crate::spec(nginx.plain, 16, driver)
    }
}

#[test]
fn the_access_log_has_as_many_lines_as_requests_were_sent() {
    for driver in [DriverChoice::Readiness, DriverChoice::Completion] {
        for (path, bytes) in [("/short", 12), ("/long", LONG_BODY_BYTES)] {
            let nginx = Nginx::start();
            let contract = Contract {
                body_bytes: Some(bytes),
                ..Contract::default()
            };
            let spec = LoadSpec {
                contract,
                ..spec(&nginx, path, driver)
            };
            let mut generator = Generator::start(spec).unwrap();
            let a_while = Until::Elapsed(Duration::from_millis(200));
            let slices = [a_while, Until::Requests(777), a_while].map(|until| generator.run(until));
            drop(generator);
            for slice in &slices {
                assert_eq!(slice.sent, slice.successful, "{path} {:?}", slice.errors);
                assert_eq!(slice.body_bytes, slice.successful * bytes);
                // Every hundredth response ends a connection.
                assert!(slice.reconnects >= slice.sent.saturating_sub(1600) / 100);
            }
            assert_eq!(slices[1].sent, 777);
            let sent: u64 = slices.iter().map(|slice| slice.sent).sum();
            assert_eq!(nginx.log().len() as u64, sent, "{path}");
        }
    }
}

fn tls(nginx: &Nginx) -> TlsSpec {
    let trust = Trust::Authorities(nginx.authority.clone());
    TlsSpec {
        server_name: NAME.into(),
        trust,
        resumption: true,
        client: None,
    }
}

/// Runs one slice of `requests` requests, all of which must be good and in the access log, which is returned.
fn all_good(nginx: Nginx, spec: LoadSpec, requests: u64) -> (Counts, Vec<String>) {
    let slice = Generator::start(spec)
        .unwrap()
        .run(Until::Requests(requests));
    assert_eq!(
        (slice.sent, slice.successful),
        (requests, requests),
        "{slice:?}"
    );
    let log = nginx.log();
    assert_eq!(log.len() as u64, requests);
    (slice, log)
}

#[test]
fn tls_verifies_names_the_server_and_takes_up_sessions() {
    let nginx = Nginx::start();
    let address = Address::Tcp(nginx.tls);
    let spec = LoadSpec {
        address,
        tls: Some(tls(&nginx)),
        ..spec(&nginx, "/long", DriverChoice::Auto)
    };
    let (slice, log) = all_good(nginx, spec, 3000);
    assert!(
        log.iter()
            .all(|line| line.contains("HTTP/1.1 200 ") && line.contains(NAME)),
        "{}",
        log[0]
    );
    assert_eq!(slice.body_bytes, 3000 * LONG_BODY_BYTES);
    assert!(slice.wire_bytes > slice.body_bytes);
    // A hundred requests per connection: later connections resume.
    assert!(
        slice.connections_opened >= 30 && slice.tls_resumed > 0,
        "{slice:?}"
    );
    assert_eq!(slice.handshake.count(), slice.connections_opened);
    assert_eq!(slice.connect.count(), slice.connections_opened);
}

#[test]
fn a_connection_for_each_request_and_its_whole_handshake_are_part_of_its_latency() {
    let nginx = Nginx::start();
    let tls = Some(TlsSpec {
        resumption: false,
        ..tls(&nginx)
    });
    let address = Address::Tcp(nginx.tls);
    let spec = LoadSpec {
        address,
        tls,
        keep_alive: false,
        ..spec(&nginx, "/short", DriverChoice::Auto)
    };
    let (slice, log) = all_good(nginx, spec, 200);
    assert_eq!(
        (
            slice.tls_resumed,
            slice.connections_opened,
            slice.connect.count()
        ),
        (0, 200, 200)
    );
    assert!(
        log.iter()
            .all(|line| line.contains("conn=1 ") && line.contains("reused=. ")),
        "{}",
        log[0]
    );
    let p50 = |latencies: &stats::Latencies| latencies.quantile(0.5).unwrap().ns();
    assert!(
        p50(&slice.latency) > p50(&slice.handshake),
        "a request begins with its connection"
    );
}

#[test]
fn http2_with_several_streams_a_connection_with_tls_and_without() {
    for secure in [false, true] {
        let nginx = Nginx::start();
        let address = Address::Tcp(if secure { nginx.http2_tls } else { nginx.http2 });
        let spec = LoadSpec {
            address,
            tls: secure.then(|| tls(&nginx)),
            protocol: Protocol::Http2 { streams: 8 },
            connections: 3,
            ..spec(&nginx, "/long", DriverChoice::Auto)
        };
        let slice = Generator::start(spec).unwrap().run(Until::Requests(1000));
        // After a hundred requests nginx announces that it takes no more, and refuses those on their way.
        let refused =
            |error: &ErrorCount| (error.phase, error.cause) == (Phase::Head, Cause::StreamRefused);
        assert!(slice.errors.iter().all(refused), "{:?}", slice.errors);
        assert!(slice.broken <= 10 * 8, "{slice:?}");
        assert_eq!((slice.sent, slice.successful), (1000, 1000 - slice.broken));
        let log = nginx.log();
        assert!(
            log.iter()
                .all(|line| line.starts_with("GET /long HTTP/2.0 200 ")),
            "{}",
            log[0]
        );
        assert_eq!(slice.successful, log.len() as u64);
        assert_eq!(slice.body_bytes, slice.successful * LONG_BODY_BYTES);
        assert!(
            slice.connections_opened >= 9,
            "{} connections",
            slice.connections_opened
        );
    }
}

#[test]
fn pipelined_requests_are_answered_in_order_and_counted_once() {
    let nginx = Nginx::start();
    let spec = LoadSpec {
        protocol: Protocol::Http1 { pipeline: 8 },
        connections: 4,
        ..spec(&nginx, "/short", DriverChoice::Auto)
    };
    let slice = Generator::start(spec).unwrap().run(Until::Requests(4000));
    // nginx ends a connection after a hundred requests. Requests sent after them are lost, and counted.
    let lost = slice.broken;
    assert_eq!(
        (slice.sent, slice.responses),
        (4000, 4000 - lost),
        "{:?}",
        slice.errors
    );
    assert!(lost < 4000 / 10, "{:?}", slice.errors);
    assert_eq!(nginx.log().len() as u64, slice.responses);
}

#[test]
fn connections_come_from_the_source_addresses_in_turn() {
    let nginx = Nginx::start();
    let sources = vec![
        IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)),
        IpAddr::V4(Ipv4Addr::new(127, 0, 0, 3)),
    ];
    let spec = LoadSpec {
        sources,
        ..spec(&nginx, "/short", DriverChoice::Auto)
    };
    let (_, log) = all_good(nginx, spec, 640);
    let from = |address: &str| {
        log.iter()
            .filter(|line| line.contains(&format!("from={address} ")))
            .count()
    };
    let (one, other) = (from("127.0.0.2"), from("127.0.0.3"));
    // Connections take turns, but requests need not: on a busy machine a connection may send one more before
    // the last.
    assert!(
        one + other == 640 && one.abs_diff(other) <= 32,
        "{one} and {other}"
    );
}

#[test]
fn sampled_contents_are_decoded_and_held_against_the_contract() {
    let nginx = Nginx::start();
    let digest = |text: &str| Digest::of(text.as_bytes());
    let whole = digest(&"x".repeat(LONG_BODY_BYTES as usize));
    let mut spec = spec(&nginx, "/long", DriverChoice::Auto);
    spec.requests[0].headers = vec![("Accept-Encoding".into(), "gzip".into())];
    let (sample_every, contract) = (
        10,
        Contract {
            content: Some(whole),
            ..Contract::default()
        },
    );
    let spec = LoadSpec {
        sample_every,
        contract,
        threads: 1,
        ..spec
    };
    let slice = Generator::start(spec.clone())
        .unwrap()
        .run(Until::Requests(100));
    assert_eq!((slice.successful, slice.contract_failures.len()), (100, 0));
    let [seen] = &slice.endpoints[0].contents[..] else {
        panic!("{:?}", slice.endpoints[0].contents)
    };
    assert_eq!((&seen.sha256, seen.count), (&whole.to_string(), 10));
    assert_eq!(seen.decoded_bytes, 10 * LONG_BODY_BYTES);
    assert_eq!(
        seen.encoded_bytes * 10,
        slice.body_bytes,
        "it was compressed"
    );
    assert!(seen.encoded_bytes < seen.decoded_bytes / 100);

    let other = Contract {
        content: Some(digest("y")),
        ..Contract::default()
    };
    let slice = Generator::start(LoadSpec {
        contract: other,
        ..spec
    })
    .unwrap()
    .run(Until::Requests(100));
    let [failure] = &slice.contract_failures[..] else {
        panic!("{:?}", slice.contract_failures)
    };
    assert_eq!(
        (slice.successful, failure.kind.clone(), failure.count),
        (90, FailureKind::Content, 10)
    );
    assert_eq!(failure.example, format!("SHA-256 {whole}"));
}
