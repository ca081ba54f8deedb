//! A server that answers every request, records request heads, and counts its open connections.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use load::{Address, ArrivalProcess, Arrivals, LoadSpec, Rate, RequestSpec};

/// A running server. Its threads end with their connections.
pub struct Server {
    pub address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
    open: Arc<AtomicU64>,
}

impl Server {
    /// Listens on an address of this thread's network.
    pub fn start(address: &str) -> Server {
        let listener = TcpListener::bind((address, 0)).expect("this network has the address");
        let address = listener.local_addr().expect("it listens");
        let server = Server {
            address,
            heads: Arc::default(),
            open: Arc::default(),
        };
        let counters = (server.heads.clone(), server.open.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (heads, open) = counters.clone();
                open.fetch_add(1, Ordering::SeqCst);
                std::thread::spawn(move || {
                    answer(stream, &heads);
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        server
    }

    /// Heads of all requests so far.
    pub fn heads(&self) -> MutexGuard<'_, Vec<String>> {
        self.heads.lock().expect("no thread of the server panics")
    }

    pub fn requests(&self) -> u64 {
        self.heads().len() as u64
    }

    /// Number of open connections.
    pub fn open(&self) -> u64 {
        self.open.load(Ordering::SeqCst)
    }

    /// A load for this server with this number of connections.
    pub fn spec(&self, connections: u32) -> LoadSpec {
        let request = RequestSpec::new("GET", "/", &self.address.to_string());
        LoadSpec {
            connections,
            ..LoadSpec::new(Address::Tcp(self.address), vec![request])
        }
    }

    /// The same load at a fixed rate.
    pub fn evenly(&self, connections: u32, per_s: f64) -> LoadSpec {
        let arrivals = Arrivals::Open {
            rate: Rate::Constant(per_s),
            process: ArrivalProcess::Constant,
            seed: 1,
        };
        LoadSpec {
            arrivals,
            ..self.spec(connections)
        }
    }
}

/// Each request arrives in one read: requests are short, and the next one follows the response.
fn answer(mut stream: TcpStream, heads: &Mutex<Vec<String>>) {
    let mut request = [0; 1024];
    while let Ok(length @ 1..) = stream.read(&mut request) {
        let head = String::from_utf8_lossy(&request[..length]).into_owned();
        heads.lock().expect("no other thread panics").push(head);
        if stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
            .is_err()
        {
            return;
        }
    }
}
