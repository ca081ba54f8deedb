//! The engine on real sockets against servers that speak something else than was asked for, or nothing, or that cannot be
//! reached the way that was asked for: what is refused at once, what is counted, and what is said.

#[allow(dead_code, reason = "other tests make it do more")]
mod server;

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use model::{Cause, Counts, OsError, Phase};
use proofload_load::{Address, Generator, LoadError, LoadSpec, Protocol, Request, Tls, Trust, Until};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use server::{Answer, Server, response};

const NAME: &str = "proofload.test";
const HTTP2: Protocol = Protocol::Http2 { streams: 4 };

fn spec(address: Address) -> LoadSpec {
    LoadSpec {
        connections: 2,
        timeout: Duration::from_millis(400),
        connect_timeout: Duration::from_millis(200),
        ..LoadSpec::new(address, vec![Request::new("GET", "/", NAME)])
    }
}

fn tcp(address: SocketAddr) -> Address {
    Address::Tcp(address)
}

fn secure(authority: Option<String>, address: SocketAddr) -> LoadSpec {
    let trust = authority.map_or(Trust::Anything, |pem| Trust::Authorities(pem.into_bytes()));
    LoadSpec { tls: Some(Tls { server_name: NAME.into(), trust, resumption: true }), ..spec(tcp(address)) }
}

fn run(spec: LoadSpec) -> Counts {
    Generator::start(spec).unwrap().run(Until::Requests(4))
}

/// How many errors there were, all of this kind.
#[track_caller]
fn only(slice: &Counts, phase: Phase, cause: Cause) -> u64 {
    assert_eq!(slice.sent, slice.responses + slice.timed_out + slice.broken + slice.unfinished);
    match slice.errors[..] {
        [error] if (error.phase, error.cause) == (phase, cause) => error.count,
        _ => panic!("not only {phase} {cause}: {:?}", slice.errors),
    }
}

/// The field of the spec that is refused, and why.
#[track_caller]
fn refused(spec: LoadSpec) -> (&'static str, String) {
    match Generator::start(spec) {
        Err(LoadError::Spec { field, problem }) => (field, problem),
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_protocol_at_the_port_of_another_is_told() {
    let plain = Server::start(|_| Answer::Keep(response(200, "ok")));
    let slice = run(secure(None, plain.address));
    // This server waits for the end of a head, which no handshake has.
    assert!(only(&slice, Phase::Tls, Cause::Timeout) >= 2 && slice.sent == 0);

    let talker = fixed(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    let slice = run(secure(None, talker));
    assert!(only(&slice, Phase::Tls, Cause::Tls) >= 2 && slice.sent == 0);
    assert!(slice.tls_error.unwrap().contains("plain HTTP"));

    // Back-off: at most at once twice, and then after 10 ms, 20 ms and so on, on each connection.
    let slice = run(LoadSpec { protocol: HTTP2, ..spec(tcp(talker)) });
    let failures = only(&slice, Phase::Connect, Cause::Malformed);
    assert!((2..=20).contains(&failures) && slice.sent == 0, "{failures}");

    let alert = fixed(&[21, 3, 3, 0, 2, 2, 10]);
    let slice = run(spec(tcp(alert)));
    assert_eq!(only(&slice, Phase::Head, Cause::Malformed), 4);
}

/// A server that answers whatever it reads first by these bytes and an end.
fn fixed(bytes: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(bytes);
        }
    });
    address
}

#[test]
fn a_handshake_without_an_answer_is_given_up_each_time() {
    // The kernel accepts for whoever listens; nobody reads.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    for (spec, phase) in [
        (secure(None, address), Phase::Tls),
        (LoadSpec { protocol: HTTP2, ..spec(tcp(address)) }, Phase::Connect),
        (LoadSpec { keep_alive: false, ..secure(None, address) }, Phase::Tls),
    ] {
        let fresh = !spec.keep_alive;
        let slice = run(spec);
        let timeouts = only(&slice, phase, Cause::Timeout);
        assert!((2..=8).contains(&timeouts), "{phase} {timeouts}");
        assert_eq!((slice.sent, slice.timed_out), if fresh { (4, 4) } else { (0, 0) });
    }
}

/// A certificate for a name, signed by an authority or by itself, with what it is verified by.
fn certificate(expired: bool, by_itself: bool) -> (rcgen::Certificate, rcgen::KeyPair, String) {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut leaf = rcgen::CertificateParams::new(vec![NAME.to_string()]).unwrap();
    // Else both would have the same name, and the one would pass for signed by the other.
    leaf.distinguished_name.push(rcgen::DnType::CommonName, NAME);
    if expired {
        leaf.not_before = rcgen::date_time_ymd(2001, 1, 1);
        leaf.not_after = rcgen::date_time_ymd(2002, 1, 1);
    }
    let authority_key = rcgen::KeyPair::generate().unwrap();
    let mut parameters = rcgen::CertificateParams::new(Vec::new()).unwrap();
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = parameters.self_signed(&authority_key).unwrap();
    let issuer = rcgen::Issuer::new(parameters, authority_key);
    let certificate = if by_itself { leaf.self_signed(&key) } else { leaf.signed_by(&key, &issuer) }.unwrap();
    (certificate, key, authority.pem())
}

/// A TLS server with this certificate that answers each request of its connections.
fn tls_server(certificate: &rcgen::Certificate, key: &rcgen::KeyPair) -> SocketAddr {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    let (config, listener) = (Arc::new(config), TcpListener::bind("127.0.0.1:0").unwrap());
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let session = ServerConnection::new(config.clone()).unwrap();
            std::thread::spawn(move || {
                let mut stream = StreamOwned::new(session, stream);
                while matches!(stream.read(&mut [0; 4096]), Ok(1..)) {
                    if stream.write_all(&response(200, "ok")).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

#[test]
fn what_is_wrong_with_a_certificate_is_said_in_words() {
    let said = |expired, by_itself, name: &str| {
        let (certificate, key, authority) = certificate(expired, by_itself);
        let mut spec = secure(Some(authority), tls_server(&certificate, &key));
        spec.tls.as_mut().unwrap().server_name = name.into();
        let slice = run(spec);
        if slice.errors.is_empty() {
            return format!("{} ok", slice.successful);
        }
        assert!(only(&slice, Phase::Tls, Cause::Certificate) >= 2 && slice.sent == 0);
        slice.tls_error.unwrap()
    };
    assert_eq!(said(false, false, NAME), "4 ok");
    let expired = said(true, false, NAME);
    assert!(expired.contains("has expired") && expired.contains("days ago"), "{expired}");
    let by_itself = said(false, true, NAME);
    assert!(by_itself.contains("by itself"), "{by_itself}");
    let other = said(false, false, "other.test");
    assert!(
        other.contains("another name") && other.contains("other.test") && other.contains(NAME),
        "{other}"
    );
}

#[test]
fn a_socket_that_is_none_is_counted_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| spec(Address::Unix(folder.path().join(name)));
    const ENOENT: i32 = 2;
    assert!(only(&run(at("missing")), Phase::Connect, Cause::OsError(OsError(ENOENT))) >= 2);
    drop(UnixListener::bind(folder.path().join("left")).unwrap());
    assert!(only(&run(at("left")), Phase::Connect, Cause::Refused) >= 2);
    std::fs::write(folder.path().join("file"), "").unwrap();
    assert!(only(&run(at("file")), Phase::Connect, Cause::Refused) >= 2);

    let longest = |bytes: usize| spec(Address::Unix(PathBuf::from("/".to_string() + &"x".repeat(bytes - 1))));
    assert!(Generator::start(longest(107)).is_ok());
    let (field, problem) = refused(longest(108));
    assert_eq!(field, "load.address");
    assert!(problem.contains("108 bytes, at most 107"), "{problem}");
}

#[test]
fn a_connection_for_each_request_ends_with_it_whatever_the_server_does() {
    for (answer, good) in [
        (Answer::Keep(response(200, "ok")), true),
        (Answer::Close(response(200, "ok")), true),
        (Answer::Close(b"HTTP/1.1 200 X\r\n\r\nok".to_vec()), true),
        (Answer::Close(b"HTTP/1.1 200 X\r\nContent-Length: 3\r\n\r\nok".to_vec()), false),
    ] {
        let (server, fresh) =
            (Server::start(move |_| answer.clone()), |spec| LoadSpec { keep_alive: false, ..spec });
        let slice = run(fresh(spec(tcp(server.address))));
        assert_eq!(
            (slice.sent, slice.connections_opened, slice.successful),
            (4, 4, if good { 4 } else { 0 }),
            "{slice:?}"
        );
        if !good {
            assert_eq!(only(&slice, Phase::Body, Cause::ClosedEarly), 4);
        }
        server.wait_for_closed(4);
        assert_eq!((server.requests(), server.connections()), (4, 4));
    }
}

#[test]
fn what_cannot_be_is_refused_before_it_starts() {
    let v4: SocketAddr = "127.0.0.1:1".parse().unwrap();
    let from = |source: &str| LoadSpec { sources: vec![source.parse().unwrap()], ..spec(tcp(v4)) };
    // RFC 5737: for documentation, and nobody's.
    let (field, problem) = refused(from("192.0.2.1"));
    assert!(field == "load.sources" && problem.contains("192.0.2.1"), "{problem}");
    let (field, problem) =
        refused(LoadSpec { sources: vec![IpAddr::V6(Ipv6Addr::LOCALHOST)], ..spec(tcp(v4)) });
    assert!(field == "load.sources" && problem.contains("IPv6"), "{problem}");
    assert!(Generator::start(from("127.0.0.9")).is_ok());

    for (lanes, is_fine) in [(0, false), (1, true), (1000, true), (1001, false)] {
        for (protocol, field) in [
            (Protocol::Http1 { pipeline: lanes }, "load.pipeline"),
            (Protocol::Http2 { streams: lanes }, "load.streams"),
        ] {
            let spec = LoadSpec { protocol, ..spec(tcp(v4)) };
            match is_fine {
                true => assert!(Generator::start(spec).is_ok()),
                false => assert_eq!(refused(spec).0, field),
            }
        }
    }
    let nameless = LoadSpec { protocol: HTTP2, ..LoadSpec::new(tcp(v4), vec![Request::new("GET", "/", "")]) };
    assert_eq!(refused(nameless).0, "load.requests");
}
