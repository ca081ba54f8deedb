//! HTTP/2 against a second implementation: nghttp2's server, which logs every frame. Its opened and ended
//! streams must match what was sent and answered, with every setting that changes the framing.

use std::collections::BTreeSet;
use std::fs::File;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use model::Counts;
use proofload_load::{
    Contract, DriverChoice, Generator, LoadSpec, Protocol, RequestSpec, TlsSpec, Trust, Until,
};
use tempfile::TempDir;

use crate::server::{Port, wait_until};

const NGHTTPD: &str = "/usr/sbin/nghttpd";
const LONG_BYTES: usize = 70_000;
const REQUESTS: u64 = 300;
const STREAMS: u32 = 10;
const CONNECTIONS: u32 = 3;

struct Nghttpd {
    child: Child,
    folder: TempDir,
    port: Port,
}

/// The contents of its log.
#[derive(Debug, Default)]
struct Told {
    connections: BTreeSet<String>,
    requests: u64,
    ended: u64,
    resets: u64,
}

impl Nghttpd {
    fn start(flags: &[&str], secure: bool) -> Nghttpd {
        assert!(
            Path::new(NGHTTPD).exists(),
            "{NGHTTPD} is missing: apt-get install nghttp2-server"
        );
        let (folder, port) = (tempfile::tempdir().unwrap(), Port::keep());
        let root = folder.path();
        std::fs::write(root.join("long"), "x".repeat(LONG_BYTES)).unwrap();
        let certified = rcgen::generate_simple_self_signed(vec!["proofload.test".into()]).unwrap();
        std::fs::write(root.join("key"), certified.signing_key.serialize_pem()).unwrap();
        std::fs::write(root.join("certificate"), certified.cert.pem()).unwrap();
        let mut command = Command::new(NGHTTPD);
        command
            .args(["-v", "-a", "127.0.0.1", "-d"])
            .arg(root)
            .args(flags);
        if !secure {
            command.arg("--no-tls");
        }
        command.arg(port.address.port().to_string());
        if secure {
            command.arg(root.join("key")).arg(root.join("certificate"));
        }
        let log = File::create(root.join("log")).unwrap();
        let child = command.stdout(log).stderr(Stdio::null()).spawn().unwrap();
        wait_until("nghttpd listens", || {
            TcpStream::connect(port.address).is_ok()
        });
        Nghttpd {
            child,
            folder,
            port,
        }
    }

    /// The log contents once every request that it received has ended.
    fn told(&self, requests: u64) -> Told {
        let mut told = Told::default();
        wait_until("nghttpd has told of all requests", || {
            told = Told::of(&std::fs::read_to_string(self.folder.path().join("log")).unwrap());
            told.ended + told.resets >= requests
        });
        told
    }
}

impl Drop for Nghttpd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Told {
    /// Parses `[id=1] [  0.579] recv HEADERS frame <length=38, flags=0x05, stream_id=1>` and the flags below
    /// it.
    fn of(log: &str) -> Told {
        let mut told = Told::default();
        let mut open = BTreeSet::new();
        let mut stream = (String::new(), String::new());
        let mut sent = false;
        for line in log.lines() {
            if let Some((head, id)) = line.split_once(" frame <").and_then(|(head, rest)| {
                Some((head, rest.split_once("stream_id=")?.1.trim_end_matches('>')))
            }) {
                let connection = head.split(']').next().unwrap_or_default();
                stream = (connection.to_owned(), id.to_owned());
                sent = head.contains("] send ");
                if head.ends_with("RST_STREAM") && open.remove(&stream) {
                    told.resets += 1;
                }
            } else if line.trim() == "; Open new stream" {
                told.requests += 1;
                told.connections.insert(stream.0.clone());
                open.insert(stream.clone());
            } else if sent && line.trim().starts_with("; END_STREAM") && open.remove(&stream) {
                told.ended += 1;
            }
        }
        told
    }
}

fn get(path: &str) -> RequestSpec {
    RequestSpec::new("GET", path, "proofload.test")
}

fn post() -> RequestSpec {
    RequestSpec {
        body: vec![b'y'; LONG_BYTES],
        ..RequestSpec::new("POST", "/long", "proofload.test")
    }
}

/// Runs one slice, all of which must be good, and returns the server's log with it.
fn loaded(flags: &[&str], secure: bool, request: RequestSpec, status: u16) -> (Counts, Told) {
    let server = Nghttpd::start(flags, secure);
    let tls = TlsSpec {
        server_name: "proofload.test".into(),
        trust: Trust::Anything,
        resumption: true,
        client: None,
    };
    let spec = LoadSpec {
        threads: 2,
        protocol: Protocol::Http2 { streams: STREAMS },
        tls: secure.then_some(tls),
        contract: Contract {
            status: vec![status],
            ..Contract::default()
        },
        requests: vec![request],
        ..crate::spec(server.port.address, CONNECTIONS, DriverChoice::Auto)
    };
    let mut generator = Generator::start(spec).unwrap();
    let slice = generator.run(Until::Requests(REQUESTS));
    assert_eq!(
        (slice.sent, slice.successful),
        (REQUESTS, REQUESTS),
        "{flags:?}: {:?}",
        slice.errors
    );
    assert_eq!(slice.first_byte.censored(), 0);
    let told = server.told(REQUESTS);
    assert_eq!(told.requests, REQUESTS, "{flags:?}: {told:?}");
    assert_eq!(
        (told.connections.len() as u64, slice.reconnects),
        (slice.connections_opened, 0),
        "{told:?}"
    );
    (slice, told)
}

#[test]
fn what_nghttp2_served_is_what_was_sent_whatever_its_settings() {
    for flags in [
        &[][..],
        &["-m", "1"],
        &["-m", "3", "-b", "200"],
        &["--no-content-length", "--trailer", "x-sum: 5"],
        &["-c", "0", "--encoder-header-table-size", "0"],
    ] {
        for secure in [false, true] {
            let (slice, told) = loaded(flags, secure, get("/long"), 200);
            assert_eq!(slice.body_bytes, REQUESTS * LONG_BYTES as u64, "{flags:?}");
            assert_eq!((told.ended, told.resets), (REQUESTS, 0), "{flags:?}");
        }
    }
}

#[test]
fn nghttp2_gets_whole_bodies_through_narrow_windows_and_may_answer_early() {
    // With windows of 4 KiB per stream and 64 KiB in total, echoed bodies are returned intact.
    let (slice, told) = loaded(
        &["--echo-upload", "-w", "12", "-W", "16"],
        false,
        post(),
        200,
    );
    assert_eq!(
        (slice.body_bytes, told.ended),
        (REQUESTS * LONG_BYTES as u64, REQUESTS)
    );
    // It answers before the body has arrived, and refuses the rest of it.
    let (slice, _) = loaded(&["--early-response"], false, post(), 200);
    assert_eq!(slice.body_bytes, REQUESTS * LONG_BYTES as u64);
    let (slice, told) = loaded(&["--error-gzip"], false, get("/none"), 404);
    assert!(slice.body_bytes > 0 && told.ended == REQUESTS);
}
