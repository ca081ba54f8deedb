//! A server for tests on 127.0.0.1: it counts the requests it has read in full and answers each as it is told.
//!
//! One thread for each connection, plain blocking sockets: slow, and too simple to be wrong.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// What the server does when it has read a request.
#[derive(Debug, Clone)]
pub enum Answer {
    /// Writes this and waits for the next request.
    Keep(Vec<u8>),
    /// Writes this and closes in good order.
    Close(Vec<u8>),
    /// Writes this and resets the connection.
    Reset(Vec<u8>),
    /// Writes this, and closes so much later.
    CloseLater(Vec<u8>, Duration),
    /// Writes this and then nothing, for ever.
    Hang(Vec<u8>),
}

/// Runs until it is dropped.
pub struct Server {
    pub address: SocketAddr,
    requests: Arc<AtomicU64>,
    connections: Arc<AtomicU64>,
    closed: Arc<AtomicU64>,
    stopping: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

/// A response of known length.
pub fn response(status: u16, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

impl Server {
    /// Starts a server that asks `answer` what to do with its nth request, from 0.
    pub fn start(answer: impl Fn(u64) -> Answer + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (requests, connections) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let closed = Arc::new(AtomicU64::new(0));
        let stopping = Arc::new(AtomicBool::new(false));
        let answer = Arc::new(answer);
        let shared = (requests.clone(), connections.clone(), closed.clone(), stopping.clone());
        let acceptor = std::thread::spawn(move || {
            let (requests, connections, closed, stopping) = shared;
            for stream in listener.incoming() {
                if stopping.load(Ordering::SeqCst) {
                    return;
                }
                connections.fetch_add(1, Ordering::SeqCst);
                let (requests, closed, answer) = (requests.clone(), closed.clone(), answer.clone());
                std::thread::spawn(move || {
                    serve(stream.unwrap(), &requests, &*answer);
                    closed.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        Server { address, requests, connections, closed, stopping, acceptor: Some(acceptor) }
    }

    /// Requests read in full.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }

    /// Connections accepted.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::SeqCst)
    }

    /// Waits until so many connections have been closed.
    pub fn wait_for_closed(&self, count: u64) {
        for _ in 0..2000 {
            if self.closed.load(Ordering::SeqCst) >= count {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the server closed {} of {count} connections", self.closed.load(Ordering::SeqCst));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        self.acceptor.take().unwrap().join().unwrap();
    }
}

fn serve(mut stream: TcpStream, requests: &AtomicU64, answer: &(impl Fn(u64) -> Answer + ?Sized)) {
    stream.set_nodelay(true).unwrap();
    while read_request(&mut stream) {
        // Writing fails when the client has left: its own affair.
        match answer(requests.fetch_add(1, Ordering::SeqCst)) {
            Answer::Keep(bytes) => drop(stream.write_all(&bytes)),
            Answer::CloseLater(bytes, idle) => {
                let _ = stream.write_all(&bytes);
                std::thread::sleep(idle);
                return;
            }
            Answer::Close(bytes) => {
                let _ = stream.write_all(&bytes);
                let _ = stream.shutdown(Shutdown::Both);
                return;
            }
            Answer::Reset(bytes) => {
                let _ = stream.write_all(&bytes);
                return reset(stream);
            }
            Answer::Hang(bytes) => {
                let _ = stream.write_all(&bytes);
                let _ = stream.read_to_end(&mut Vec::new());
                return;
            }
        }
    }
}

/// Reads a head and a body of the length it names; false at the end of the connection.
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
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).is_ok()
}

/// Ends a connection by a reset.
pub fn reset(stream: TcpStream) {
    // Closing with a linger time of zero sends a reset in place of an end.
    rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
}
