//! The engine against a real nginx, whose access log is the count to agree with.

use std::fmt::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use proofload_load::{Arrivals, Contract, DriverChoice, Generator, LoadSpec, Request, Until};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

const NGINX: &str = "/usr/sbin/nginx";
const LONG_BODY_BYTES: u64 = 134_000;

/// An nginx of our own, on a free port of 127.0.0.1; stopped when dropped.
struct Nginx {
    child: Child,
    directory: TempDir,
    address: SocketAddr,
}

impl Nginx {
    fn start() -> Nginx {
        assert!(
            Path::new(NGINX).exists(),
            "{NGINX} is missing: the engine's tests need nginx (apt-get install nginx-light)"
        );
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        std::fs::write(root.join("short"), "hello world\n").unwrap();
        std::fs::write(root.join("long"), "x".repeat(LONG_BODY_BYTES as usize)).unwrap();
        // The port is free now; that another takes it before nginx does would show as a failure to start.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        std::fs::write(root.join("nginx.conf"), config(root, address)).unwrap();
        let child = Command::new(NGINX)
            .args(["-p".as_ref(), root, "-c".as_ref(), &root.join("nginx.conf")])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let nginx = Nginx { child, directory, address };
        let deadline = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(address).is_err() {
            assert!(Instant::now() < deadline, "nginx does not listen on {address}");
            std::thread::sleep(Duration::from_millis(10));
        }
        nginx
    }

    /// Ends nginx in good order, so that its log is complete, and counts the requests for `path`.
    fn logged(mut self, path: &str) -> u64 {
        self.stop(Signal::QUIT);
        let log = std::fs::read_to_string(self.directory.path().join("access.log")).unwrap();
        log.lines().filter(|line| line.starts_with(&format!("GET {path} "))).count() as u64
    }

    fn stop(&mut self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.child.id() as i32) {
            let _ = kill_process(pid, signal);
        }
        self.child.wait().unwrap();
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.stop(Signal::TERM);
        }
    }
}

fn config(root: &Path, address: SocketAddr) -> String {
    let root = root.display();
    let mut text = String::new();
    // One process that is nginx itself: its number is the child's.
    writeln!(text, "daemon off; master_process off; pid {root}/pid; error_log {root}/error.log; events {{}}")
        .unwrap();
    writeln!(text, "http {{ log_format line '$request $status'; access_log {root}/access.log line;").unwrap();
    for scratch in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
        writeln!(text, "{scratch}_temp_path {root}/{scratch};").unwrap();
    }
    // So few requests for a connection that the log is written over many of them.
    writeln!(text, "keepalive_requests 100; server {{ listen {address}; root {root}; }} }}").unwrap();
    text
}

fn spec(nginx: &Nginx, path: &str, driver: DriverChoice) -> LoadSpec {
    LoadSpec {
        address: nginx.address,
        request: Request {
            method: "GET".into(),
            path: path.into(),
            headers: vec![("Accept-Encoding".into(), "identity".into())],
            body: vec![],
            host: "localhost".into(),
            ..Request::default()
        },
        arrivals: Arrivals::Closed,
        connections: 16,
        threads: 2,
        cpus: vec![],
        timeout: Duration::from_secs(20),
        connect_timeout: Duration::from_secs(20),
        contract: Contract { status: vec![200], ..Contract::default() },
        driver,
    }
}

#[test]
fn the_access_log_has_as_many_lines_as_requests_were_sent() {
    for driver in [DriverChoice::Readiness, DriverChoice::Completion] {
        agrees("/short", 12, driver);
        agrees("/long", LONG_BODY_BYTES, driver);
    }
}

fn agrees(path: &str, bytes: u64, driver: DriverChoice) {
    let nginx = Nginx::start();
    let mut spec = spec(&nginx, path, driver);
    spec.contract.body_bytes = Some(bytes);
    let mut generator = Generator::start(spec).unwrap();
    let slices = [
        generator.run(Until::Elapsed(Duration::from_millis(200))),
        generator.run(Until::Requests(777)),
        generator.run(Until::Elapsed(Duration::from_millis(200))),
    ];
    drop(generator);
    for slice in &slices {
        assert_eq!(
            (slice.sent, slice.unfinished, slice.timed_out),
            (slice.ok, 0, 0),
            "{path} {:?}",
            slice.errors
        );
        assert_eq!(slice.bytes_body, slice.ok * bytes);
        assert!(
            slice.reconnects >= slice.sent.saturating_sub(1600) / 100,
            "every hundredth answer ends a connection"
        );
    }
    assert_eq!(slices[1].sent, 777);
    let sent: u64 = slices.iter().map(|slice| slice.sent).sum();
    assert_eq!(nginx.logged(path), sent, "{path}");
}
