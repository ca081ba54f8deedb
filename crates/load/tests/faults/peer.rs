//! The other end: a TCP server that does to each connection what its script says, until it is told to be well.
//!
//! A connection keeps the behaviour it began with. It speaks only as much HTTP as a script needs.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketType, sockopt};

use crate::server::{read_request, response};

/// Runs until it is dropped, which closes what it serves well.
pub struct Peer {
    pub address: SocketAddr,
    listener: TcpListener,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    well: AtomicBool,
    accepted: AtomicU64,
    requests: AtomicU64,
    /// Connections that are served well.
    served: Mutex<Vec<TcpStream>>,
}

/// A free port of 127.0.0.1.
pub fn listen() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

impl Peer {
    /// Runs `fault` on each connection until [`heal`](Self::heal).
    pub fn start(listener: TcpListener, fault: impl Fn(TcpStream) + Send + Sync + 'static) -> Peer {
        Peer::begin(listener, fault, Shared::default())
    }

    /// Answers every request.
    pub fn well(listener: TcpListener) -> Peer {
        Peer::begin(listener, drop, Shared { well: true.into(), ..Shared::default() })
    }

    fn begin(
        listener: TcpListener,
        fault: impl Fn(TcpStream) + Send + Sync + 'static,
        shared: Shared,
    ) -> Peer {
        let (address, accepting) = (listener.local_addr().unwrap(), listener.try_clone().unwrap());
        let shared = Arc::new(shared);
        let (for_acceptor, fault) = (shared.clone(), Arc::new(fault));
        let acceptor = std::thread::spawn(move || {
            while let Ok((stream, _)) = accepting.accept() {
                let (shared, fault) = (for_acceptor.clone(), fault.clone());
                shared.accepted.fetch_add(1, Ordering::SeqCst);
                if shared.well.load(Ordering::SeqCst) {
                    shared.served.lock().unwrap().push(stream.try_clone().unwrap());
                    std::thread::spawn(move || serve(stream, &shared));
                } else {
                    std::thread::spawn(move || fault(stream));
                }
            }
        });
        Peer { address, listener, shared, acceptor: Some(acceptor) }
    }

    /// Serves well what is accepted from now on.
    pub fn heal(&self) {
        self.shared.well.store(true, Ordering::SeqCst);
    }

    /// Connections accepted.
    pub fn accepted(&self) -> u64 {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// Requests read in full while it was well.
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::SeqCst)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // On Linux this wakes whoever waits in accept.
        let _ = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both);
        self.acceptor.take().unwrap().join().unwrap();
        for stream in self.shared.served.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn serve(mut stream: TcpStream, shared: &Shared) {
    stream.set_nodelay(true).unwrap();
    while read_request(&mut stream) {
        shared.requests.fetch_add(1, Ordering::SeqCst);
        if stream.write_all(&response(200, "ok")).is_err() {
            return;
        }
    }
}

/// A port of 127.0.0.1 that is kept for us while nobody listens there: connecting to it is refused.
pub struct Port {
    pub address: SocketAddr,
    _keeper: OwnedFd,
}

impl Port {
    pub fn keep() -> Port {
        let keeper = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        // Lets others bind the port that do the same, as the standard library's listeners do.
        sockopt::set_socket_reuseaddr(&keeper, true).unwrap();
        rustix::net::bind(&keeper, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = SocketAddr::try_from(rustix::net::getsockname(&keeper).unwrap()).unwrap();
        Port { address, _keeper: keeper }
    }

    pub fn listen(&self) -> TcpListener {
        TcpListener::bind(self.address).unwrap()
    }
}

/// Reads so many bytes; of no matter what.
pub fn read(mut stream: &TcpStream, count: usize) {
    let _ = stream.read_exact(&mut vec![0; count]);
}

/// Reads until the other side ends.
pub fn read_to_end(mut stream: &TcpStream) {
    let _ = std::io::copy(&mut stream, &mut std::io::sink());
}

/// Reads one request, and writes this.
pub fn answer(stream: &mut TcpStream, bytes: &[u8]) {
    if read_request(stream) {
        let _ = stream.write_all(bytes);
    }
}

/// Writes no more. What was written still arrives.
pub fn end(stream: &TcpStream) {
    let _ = stream.shutdown(Shutdown::Write);
}

/// Keeps the connection, without reading it, until the other side ends it or is long past doing so.
pub fn hold(stream: TcpStream) {
    let limit = Timespec { tv_sec: 10, tv_nsec: 0 };
    let _ = poll(&mut [PollFd::new(&stream, PollFlags::RDHUP)], Some(&limit));
}

/// Waits until `is_so`, which must become true at some time soon.
#[track_caller]
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !is_so() {
        assert!(Instant::now() < deadline, "still waiting until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
