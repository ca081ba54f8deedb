//! The other end: a TCP server on 127.0.0.1 or another address. It answers each request as configured, or
//! runs a faulty script on each connection until it is healed.
//!
//! One thread per connection with plain blocking sockets: slow, and too simple to be wrong. A connection
//! keeps its initial behaviour. It supports only as much HTTP as a script needs.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketType, sockopt};

/// The server's reaction to a request.
#[derive(Debug, Clone)]
pub enum Response {
    /// Writes this and waits for the next request.
    Keep(Vec<u8>),
    /// Writes this and closes in an orderly way.
    Close(Vec<u8>),
    /// Writes this and then stays silent forever.
    Hang(Vec<u8>),
}

/// Runs until it is dropped, which ends the connections it serves.
pub struct Server {
    pub address: SocketAddr,
    listener: TcpListener,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    well: AtomicBool,
    accepted: AtomicU64,
    closed: AtomicU64,
    requests: AtomicU64,
    served: Mutex<Vec<TcpStream>>,
}

/// A free port of 127.0.0.1.
pub fn listen() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

impl Server {
    /// Calls `respond` for the nth request, from 0.
    pub fn start(respond: impl Fn(u64) -> Response + Send + Sync + 'static) -> Server {
        Server::begin(listen(), true, drop, respond)
    }

    /// Runs `fault` on each connection until [`heal`](Self::heal).
    pub fn faulty(
        listener: TcpListener,
        fault: impl Fn(TcpStream) + Send + Sync + 'static,
    ) -> Server {
        Server::begin(listener, false, fault, |_| {
            Response::Keep(response(200, "ok"))
        })
    }

    /// Answers every request.
    pub fn well(listener: TcpListener) -> Server {
        Server::begin(listener, true, drop, |_| {
            Response::Keep(response(200, "ok"))
        })
    }

    fn begin(
        listener: TcpListener,
        well: bool,
        fault: impl Fn(TcpStream) + Send + Sync + 'static,
        respond: impl Fn(u64) -> Response + Send + Sync + 'static,
    ) -> Server {
        let (address, accepting) = (
            listener.local_addr().unwrap(),
            listener.try_clone().unwrap(),
        );
        let shared = Arc::new(Shared {
            well: well.into(),
            ..Shared::default()
        });
        let (for_acceptor, behaviour) = (shared.clone(), Arc::new((fault, respond)));
        let acceptor = std::thread::spawn(move || {
            while let Ok((stream, _)) = accepting.accept() {
                let (shared, behaviour) = (for_acceptor.clone(), behaviour.clone());
                shared.accepted.fetch_add(1, Ordering::SeqCst);
                let is_well = shared.well.load(Ordering::SeqCst);
                if is_well {
                    shared
                        .served
                        .lock()
                        .unwrap()
                        .push(stream.try_clone().unwrap());
                }
                std::thread::spawn(move || match is_well {
                    true => serve(stream, &shared, &behaviour.1),
                    false => (behaviour.0)(stream),
                });
            }
        });
        Server {
            address,
            listener,
            shared,
            acceptor: Some(acceptor),
        }
    }

    /// Stops faulty behaviour for connections accepted from now on.
    pub fn heal(&self) {
        self.shared.well.store(true, Ordering::SeqCst);
    }

    pub fn accepted(&self) -> u64 {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// Requests read in full while it was healthy.
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::SeqCst)
    }

    /// Waits until `count` connections that it served have been closed.
    pub fn wait_for_closed(&self, count: u64) {
        wait_until("connections are closed", || {
            self.shared.closed.load(Ordering::SeqCst) >= count
        });
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // On Linux this wakes threads that wait in accept.
        let _ = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both);
        self.acceptor.take().unwrap().join().unwrap();
        for stream in self.shared.served.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn serve(mut stream: TcpStream, shared: &Shared, respond: &impl Fn(u64) -> Response) {
    stream.set_nodelay(true).unwrap();
    while read_request(&mut stream) {
        let response = respond(shared.requests.fetch_add(1, Ordering::SeqCst));
        let (Response::Keep(bytes) | Response::Close(bytes) | Response::Hang(bytes)) = &response;
        // Writing fails if the client has left, which is allowed.
        let _ = stream.write_all(bytes);
        match response {
            Response::Keep(_) => continue,
            Response::Close(_) => drop(stream.shutdown(Shutdown::Both)),
            Response::Hang(_) => read_to_end(&stream),
        }
        break;
    }
    shared.closed.fetch_add(1, Ordering::SeqCst);
}

/// A reserved port of 127.0.0.1 on which no process listens, so connecting to it is refused.
pub struct Port {
    pub address: SocketAddr,
    _keeper: OwnedFd,
}

impl Port {
    pub fn keep() -> Port {
        let keeper = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        // Lets others bind the port that set this too, as the standard library's listeners do.
        sockopt::set_socket_reuseaddr(&keeper, true).unwrap();
        rustix::net::bind(&keeper, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = SocketAddr::try_from(rustix::net::getsockname(&keeper).unwrap()).unwrap();
        Port {
            address,
            _keeper: keeper,
        }
    }

    pub fn listen(&self) -> TcpListener {
        TcpListener::bind(self.address).unwrap()
    }
}

/// A response of known length.
pub fn response(status: u16, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Reads a head and a body of the given length. Returns false at the end of the connection.
pub fn read_request(stream: &mut TcpStream) -> bool {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if !matches!(stream.read(&mut byte), Ok(1)) {
            return false;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).is_ok()
}

/// Reads `count` bytes and discards them.
pub fn read(mut stream: &TcpStream, count: usize) {
    let _ = stream.read_exact(&mut vec![0; count]);
}

pub fn read_to_end(mut stream: &TcpStream) {
    let _ = std::io::copy(&mut stream, &mut std::io::sink());
}

/// Stops writing. Written bytes still arrive.
pub fn end(stream: &TcpStream) {
    let _ = stream.shutdown(Shutdown::Write);
}

pub fn reset(stream: TcpStream) {
    // Closing with a linger time of zero sends a reset instead of an end.
    sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
}

/// Holds the connection, without reading it, until the other side ends it or a time limit passes.
pub fn hold(stream: TcpStream) {
    let limit = Timespec {
        tv_sec: 10,
        tv_nsec: 0,
    };
    let _ = poll(&mut [PollFd::new(&stream, PollFlags::RDHUP)], Some(&limit));
}

/// Waits until `is_so` returns true. Panics after a time limit.
#[track_caller]
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !is_so() {
        assert!(Instant::now() < deadline, "still waiting until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
