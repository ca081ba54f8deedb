//! TLS against rustls' server side, with both TLS versions.

use std::io::{Read, Write};
use std::sync::{Arc, LazyLock};

use model::{Cause, Phase};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, SupportedProtocolVersion};

use super::*;
use crate::{ClientCertificate, TlsSpec, Trust, trust};

const NAME: &str = "proofload.test";
const HTTP1: Protocol = Protocol::Http1 { pipeline: 1 };
const GOOD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
const VERSIONS: [&SupportedProtocolVersion; 2] = [&rustls::version::TLS12, &rustls::version::TLS13];

/// An authority in PEM, a certificate, and its key.
type Certified = (String, CertificateDer<'static>, Vec<u8>);

static CERTIFIED: LazyLock<Certified> = LazyLock::new(|| certified(false, false));

/// A certificate signed by an authority or self-signed, which may have expired.
fn certified(expired: bool, by_itself: bool) -> Certified {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut leaf = rcgen::CertificateParams::new(vec![NAME.to_string()]).unwrap();
    // Otherwise both would have the same name, and the certificate would count as signed by the authority.
    leaf.distinguished_name
        .push(rcgen::DnType::CommonName, NAME);
    if expired {
        leaf.not_before = rcgen::date_time_ymd(2001, 1, 1);
        leaf.not_after = rcgen::date_time_ymd(2002, 1, 1);
    }
    let authority_key = rcgen::KeyPair::generate().unwrap();
    let mut parameters = rcgen::CertificateParams::new(Vec::new()).unwrap();
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = parameters.self_signed(&authority_key).unwrap();
    let issuer = rcgen::Issuer::new(parameters, authority_key);
    let certificate = if by_itself {
        leaf.self_signed(&key)
    } else {
        leaf.signed_by(&key, &issuer)
    }
    .unwrap();
    (
        authority.pem(),
        certificate.der().clone(),
        key.serialize_der(),
    )
}

pub(super) fn client(protocol: Protocol) -> TlsSettings {
    client_of(&CERTIFIED, NAME, protocol)
}

fn client_of(certified: &Certified, name: &str, protocol: Protocol) -> TlsSettings {
    let trust = Trust::Authorities(certified.0.clone().into_bytes());
    trust::settings(
        &TlsSpec {
            server_name: name.into(),
            trust,
            resumption: true,
            client: None,
        },
        crate::protocol::row(protocol).alpn.as_bytes(),
    )
    .unwrap()
}

/// The server's end.
pub(super) struct Server(pub(super) ServerConnection);

impl Server {
    pub(super) fn config(
        version: &'static SupportedProtocolVersion,
        protocol: &[u8],
    ) -> Arc<ServerConfig> {
        Server::config_of(&CERTIFIED, version, protocol)
    }

    fn config_of(
        certified: &Certified,
        version: &'static SupportedProtocolVersion,
        protocol: &[u8],
    ) -> Arc<ServerConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[version])
            .unwrap();
        let key = PrivateKeyDer::try_from(certified.2.clone()).unwrap();
        let mut config = builder
            .with_no_client_auth()
            .with_single_cert(vec![certified.1.clone()], key)
            .unwrap();
        config.alpn_protocols = vec![protocol.to_vec()];
        Arc::new(config)
    }

    pub(super) fn new(config: &Arc<ServerConfig>) -> Server {
        Server(ServerConnection::new(config.clone()).unwrap())
    }

    /// Reads all client output and responds at the TLS level until both sides are idle. Returns the decrypted
    /// data.
    pub(super) fn read(&mut self, bench: &mut Bench) -> Vec<u8> {
        let mut plain = Vec::new();
        loop {
            let said = bench.said();
            let mut rest = &said[..];
            while !rest.is_empty() {
                self.0.read_tls(&mut rest).unwrap();
                self.0.process_new_packets().unwrap();
                // The reader reports that there is no more data for now as an error.
                let _ = self.0.reader().read_to_end(&mut plain);
            }
            bench.hear(&self.records());
            if said.is_empty() {
                return plain;
            }
        }
    }

    pub(super) fn write(&mut self, bench: &mut Bench, plain: &[u8]) {
        let records = self.encrypted(plain);
        bench.hear(&records);
    }

    pub(super) fn encrypted(&mut self, plain: &[u8]) -> Vec<u8> {
        self.0.writer().write_all(plain).unwrap();
        self.records()
    }

    fn records(&mut self) -> Vec<u8> {
        let mut records = Vec::new();
        while self.0.wants_write() {
            self.0.write_tls(&mut records).unwrap();
        }
        records
    }

    fn close_notify(&mut self) -> Vec<u8> {
        self.0.send_close_notify();
        self.records()
    }
}

/// The tally after the server was asked and sends this response, for both versions and all cuts.
#[track_caller]
fn completed(response: impl Fn(&mut Bench, &mut Server)) -> String {
    let [old, new] = VERSIONS.map(|version| {
        for_all_cuts(|cut| {
            let mut bench = Bench::new(&get(), HTTP1, Some(client(HTTP1)), (cut, 1));
            let mut server = Server::new(&Server::config(version, b"http/1.1"));
            server.read(&mut bench);
            assert!(bench.is_open());
            bench.load();
            assert!(server.read(&mut bench).starts_with(b"GET / HTTP/1.1\r\n"));
            response(&mut bench, &mut server);
            bench.books()
        })
    });
    assert_eq!(old, new, "TLS 1.2 and 1.3");
    new
}

#[test]
fn responses_are_whole_however_records_are_cut() {
    assert_eq!(
        completed(|bench, server| server.write(bench, GOOD)),
        "opened 1, 200 x 1, bytes 5, decoded 5"
    );
    let long = [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9c40\r\n",
        &[b'x'; 40_000][..],
    ]
    .concat();
    let long = [&long[..], b"\r\n0\r\n\r\n"].concat();
    let books = completed(|bench, server| server.write(bench, &long));
    assert_eq!(books, "opened 1, 200 x 1, bytes 40000, decoded 40000");
}

#[test]
fn an_end_that_tls_has_not_announced_is_no_end_of_a_body() {
    let until_end = b"HTTP/1.1 200 OK\r\n\r\nhello";
    let short = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello";
    let announced = |bytes: &'static [u8]| {
        completed(move |bench, server| {
            let records = [server.encrypted(bytes), server.close_notify()].concat();
            bench.hear(&records);
            bench.end();
        })
    };
    assert_eq!(
        announced(until_end),
        "opened 1, 200 x 1, bytes 5, decoded 5"
    );
    assert_eq!(announced(short), "opened 1, body closed-early x 1");
    assert_eq!(
        announced(b"HTTP/1.1 200"),
        "opened 1, head closed-early x 1"
    );
    let cut_off = |bytes: &'static [u8]| {
        completed(move |bench, server| {
            server.write(bench, bytes);
            bench.end();
        })
    };
    assert_eq!(cut_off(until_end), "opened 1, body closed-early x 1");
    assert_eq!(cut_off(short), "opened 1, body closed-early x 1");
    // No response was outstanding, so the end of an idle connection is the server's choice.
    assert_eq!(
        cut_off(GOOD),
        "opened 1, 200 x 1, bytes 5, idle closed x 1, decoded 5"
    );
}

#[test]
fn what_follows_a_close_notify_is_never_looked_at() {
    let books = completed(|bench, server| {
        let records = [
            server.encrypted(GOOD),
            server.close_notify(),
            vec![0; 20_000],
        ]
        .concat();
        bench.hear(&records);
    });
    assert_eq!(
        books,
        "opened 1, 200 x 1, bytes 5, idle closed x 1, decoded 5"
    );
}

#[test]
fn a_response_before_a_flaw_counts() {
    let books = completed(|bench, server| {
        let good = server.encrypted(GOOD);
        let mut flawed = server.encrypted(b"more");
        *flawed.last_mut().unwrap() ^= 1;
        bench.hear(&[good, flawed].concat());
    });
    assert_eq!(books, "opened 1, 200 x 1, bytes 5, idle tls x 1, decoded 5");
}

/// The tally if the server answers the ClientHello with these bytes, and the error's text.
fn greeted(bytes: &[u8]) -> (String, String) {
    let run = |cut| {
        let mut bench = Bench::new(&get(), HTTP1, Some(client(HTTP1)), (cut, 1));
        assert!(
            bench.said().starts_with(&[22, 3, 1]),
            "a handshake's record"
        );
        bench.hear(bytes);
        bench.end();
        bench
    };
    let books = for_all_cuts(|cut| run(cut).books());
    (books, run(Cut::Whole).slice().tls_error.unwrap_or_default())
}

#[test]
fn what_is_no_handshake_is_said_in_words() {
    let plain = greeted(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(plain.0, "opened 0, tls tls x 1");
    assert!(
        plain.1.contains("not TLS") && plain.1.contains("plain"),
        "{}",
        plain.1
    );
    let alert = greeted(&[21, 3, 3, 0, 2, 2, 40]);
    assert_eq!(alert.0, "opened 0, tls tls x 1");
    assert!(alert.1.contains("handshake_failure"), "{}", alert.1);
    let version = greeted(&[21, 3, 3, 0, 2, 2, 70]);
    assert!(version.1.contains("TLS 1.2"), "{}", version.1);
    // A record that ends in the middle.
    assert_eq!(
        greeted(&[22, 3, 3, 0, 90, 2]).0,
        "opened 0, tls closed-early x 1"
    );
    assert_eq!(greeted(&[]).0, "opened 0, tls closed-early x 1");
}

#[test]
fn what_is_wrong_with_a_certificate_is_said_in_words() {
    for (expired, by_itself, name, words) in [
        (true, false, NAME, ["has expired", "days ago"]),
        (
            false,
            true,
            NAME,
            ["not signed by a trusted authority", "by itself"],
        ),
        (false, false, "other.test", ["another name", "other.test"]),
    ] {
        let certified = certified(expired, by_itself);
        let client = client_of(&certified, name, HTTP1);
        let mut bench = Bench::new(&get(), HTTP1, Some(client), (Cut::Whole, 1));
        let mut server = Server::new(&Server::config_of(&certified, VERSIONS[1], b"http/1.1"));
        let said = bench.said();
        server.0.read_tls(&mut &said[..]).unwrap();
        server.0.process_new_packets().unwrap();
        bench.hear(&server.records());
        let slice = bench.slice();
        assert_eq!(
            (slice.errors[0].phase, slice.errors[0].cause),
            (Phase::Tls, Cause::Certificate)
        );
        let said = slice.tls_error.unwrap();
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    }
}

#[test]
fn a_long_request_is_written_as_the_socket_takes_it() {
    let request = RequestSpec {
        body: vec![b'x'; 1 << 20],
        ..RequestSpec::new("POST", "/", NAME)
    };
    let mut bench = Bench::new(&request, HTTP1, Some(client(HTTP1)), (Cut::Whole, 1));
    Server::new(&Server::config(VERSIONS[1], b"http/1.1")).read(&mut bench);
    // If the socket is full, the request is still being written, and only a part of it is in memory.
    bench.room = 300_000;
    bench.load();
    assert_eq!(bench.said().len(), 300_000);
    assert!(bench.worker.output(0).unwrap().len() < 100_000);
    bench.pass(TIMEOUT_NS);
    assert_eq!(bench.books(), "opened 1, send timeout x 1");
}

/// A client with this key that trusts the server's own self-signed certificate.
fn trusting_itself(names: &str, client: Option<ClientCertificate>) -> (Certified, TlsSettings) {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut parameters = rcgen::CertificateParams::new(vec![NAME.to_string()]).unwrap();
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let certificate = parameters.self_signed(&key).unwrap();
    let trust = Trust::Authorities(certificate.pem().into_bytes());
    let tls = TlsSpec {
        server_name: names.into(),
        trust,
        resumption: true,
        client,
    };
    let settings = trust::settings(&tls, crate::protocol::row(HTTP1).alpn.as_bytes()).unwrap();
    (
        (
            certificate.pem(),
            certificate.der().clone(),
            key.serialize_der(),
        ),
        settings,
    )
}

#[test]
fn trusts_an_authority_that_is_the_server_itself() {
    for (name, said) in [(NAME, ""), ("other.test", "for another name")] {
        let (certified, settings) = trusting_itself(name, None);
        let mut bench = Bench::new(&get(), HTTP1, Some(settings), (Cut::Whole, 1));
        let config = Server::config_of(&certified, VERSIONS[1], b"http/1.1");
        handshake(&mut bench, &config);
        assert_eq!(bench.is_open(), said.is_empty());
        let error = bench.slice().tls_error.unwrap_or_default();
        assert!(error.contains(said), "{error}");
    }
}

/// Exchanges data in turns. An error of the server becomes an alert to the client.
fn handshake(bench: &mut Bench, config: &Arc<ServerConfig>) {
    const TURNS: usize = 6;
    let mut server = Server::new(config);
    for _ in 0..TURNS {
        let said = bench.said();
        let mut rest = &said[..];
        while !rest.is_empty() && server.0.read_tls(&mut rest).is_ok() {
            let _ = server.0.process_new_packets();
        }
        bench.hear(&server.records());
    }
}

#[test]
fn sends_a_client_certificate_to_servers_that_ask() {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(vec!["client".to_string()]).unwrap();
    let certificate = certificate.self_signed(&key).unwrap();
    let client = ClientCertificate {
        chain: certificate.pem().into_bytes(),
        key: key.serialize_pem().into_bytes(),
    };
    assert!(!format!("{client:?}").contains("PRIVATE"), "no key in logs");
    for version in VERSIONS {
        for client in [None, Some(client.clone())] {
            let given = client.is_some();
            let (certified, settings) = trusting_itself(NAME, client);
            let config = asking(&certified, version, certificate.der());
            let mut bench = Bench::new(&get(), HTTP1, Some(settings), (Cut::Whole, 1));
            handshake(&mut bench, &config);
            let error = bench.slice().tls_error.unwrap_or_default();
            assert_eq!(error.is_empty(), given, "{version:?}: {error}");
            assert!(
                given || error.contains("it asks for a client certificate: --cert"),
                "{version:?}: {error}"
            );
        }
    }
}

/// A server that requires a client certificate signed by this authority.
fn asking(
    certified: &Certified,
    version: &'static SupportedProtocolVersion,
    authority: &CertificateDer<'static>,
) -> Arc<ServerConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = rustls::RootCertStore::empty();
    roots.add(authority.clone()).unwrap();
    let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(
        Arc::new(roots),
        provider.clone(),
    );
    let builder = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .unwrap();
    let key = PrivateKeyDer::try_from(certified.2.clone()).unwrap();
    let builder = builder.with_client_cert_verifier(verifier.build().unwrap());
    let mut config = builder
        .with_single_cert(vec![certified.1.clone()], key)
        .unwrap();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config)
}

#[test]
fn refuses_a_client_certificate_without_its_key() {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(vec!["client".to_string()]).unwrap();
    let chain = certificate.self_signed(&key).unwrap().pem().into_bytes();
    let other = rcgen::KeyPair::generate()
        .unwrap()
        .serialize_pem()
        .into_bytes();
    let encrypted =
        b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"
            .to_vec();
    for (key, said) in [
        (other, "not that of the certificate"),
        (encrypted, "encrypted"),
        (chain.clone(), "no private key"),
    ] {
        let client = Some(ClientCertificate {
            chain: chain.clone(),
            key,
        });
        let tls = TlsSpec {
            server_name: NAME.into(),
            trust: Trust::Anything,
            resumption: true,
            client,
        };
        let error = trust::settings(&tls, crate::protocol::row(HTTP1).alpn.as_bytes())
            .expect_err("it is refused")
            .to_string();
        assert!(error.contains(said), "{error}");
    }
}
