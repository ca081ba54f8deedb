//! An nginx for tests on loopback: plain HTTP, TLS, HTTP/2 with and without TLS, a unix socket. Its access
//! log is the reference count.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

const NGINX: &str = "/usr/sbin/nginx";
pub const LONG_BODY_BYTES: u64 = 134_000;
/// The name in its certificate.
pub const NAME: &str = "proofload.test";

pub struct Nginx {
    child: Child,
    directory: TempDir,
    pub plain: SocketAddr,
    pub tls: SocketAddr,
    pub http2: SocketAddr,
    pub http2_tls: SocketAddr,
    /// The authority that signed its certificate, in PEM.
    pub authority: Vec<u8>,
}

impl Nginx {
    pub fn start() -> Nginx {
        assert!(
            Path::new(NGINX).exists(),
            "{NGINX} is missing: the engine's tests need nginx (apt-get install nginx-light)"
        );
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        std::fs::write(root.join("short"), "hello world\n").unwrap();
        std::fs::write(root.join("long"), "x".repeat(LONG_BODY_BYTES as usize)).unwrap();
        let authority = certify(root);
        // The ports are free now. If another process takes one before nginx does, nginx fails to start.
        let listeners = [0; 4].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
        let [plain, tls, http2, http2_tls] =
            listeners.map(|listener| listener.local_addr().unwrap());
        let config = config(root, [plain, tls, http2, http2_tls]);
        std::fs::write(root.join("nginx.conf"), config).unwrap();
        let child = Command::new(NGINX)
            .args(["-p".as_ref(), root, "-c".as_ref(), &root.join("nginx.conf")])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let nginx = Nginx {
            child,
            directory,
            plain,
            tls,
            http2,
            http2_tls,
            authority,
        };
        let deadline = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(plain).is_err() {
            assert!(
                Instant::now() < deadline,
                "nginx does not listen on {plain}"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        nginx
    }

    pub fn socket(&self) -> PathBuf {
        self.directory.path().join("socket")
    }

    /// Stops nginx in an orderly way, so that its log is complete. Returns lines like `GET /short HTTP/1.1
    /// 200 ...`.
    pub fn log(mut self) -> Vec<String> {
        self.stop(Signal::QUIT);
        let log = std::fs::read_to_string(self.directory.path().join("access.log")).unwrap();
        log.lines().map(str::to_owned).collect()
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

/// Creates a self-signed certificate.
fn certify(root: &Path) -> Vec<u8> {
    let certified = rcgen::generate_simple_self_signed(vec![NAME.to_string()]).unwrap();
    std::fs::write(root.join("certificate"), certified.cert.pem()).unwrap();
    std::fs::write(root.join("key"), certified.signing_key.serialize_pem()).unwrap();
    certified.cert.pem().into_bytes()
}

fn config(root: &Path, [plain, tls, http2, http2_tls]: [SocketAddr; 4]) -> String {
    let root = root.display();
    let line = "'$request $status conn=$connection_requests sni=$ssl_server_name reused=$ssl_session_reused \
                from=$remote_addr close=$http_connection'";
    let scratch = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let scratch = scratch
        .map(|scratch| format!("{scratch}_temp_path {root}/{scratch};\n"))
        .concat();
    let listen = [
        format!("{plain}"),
        format!("{tls} ssl"),
        format!("{http2} http2"),
        format!("{http2_tls} ssl http2"),
        format!("unix:{root}/socket"),
    ];
    let servers = listen
        .map(|listen| format!("server {{ listen {listen}; root {root}; }}\n"))
        .concat();
    // One process without a master, so the child's PID is nginx itself. The limit of requests per connection
    // is low, so that the log covers many connections.
    format!(
        "daemon off; master_process off; pid {root}/pid; error_log {root}/error.log; events {{}}
        http {{ log_format line {line}; access_log {root}/access.log line; {scratch}
        keepalive_requests 100; ssl_certificate {root}/certificate; ssl_certificate_key {root}/key;
        ssl_session_cache shared:test:1m; gzip on; gzip_types *; {servers} }}"
    )
}
