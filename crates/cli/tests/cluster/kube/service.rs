//! What the pods load: a server beside the control plane that counts what it is asked.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use load::{Address, LoadSpec, Request};

/// Where pods reach the control plane's network (scripts/cluster/place.py).
const ADDRESS: &str = "10.83.0.1:0";

/// A server whose threads end with their connections.
pub struct Service {
    address: SocketAddr,
    requests: Arc<AtomicU64>,
}

impl Service {
    pub fn start() -> Service {
        let listener = TcpListener::bind(ADDRESS).expect("the control plane's network");
        let address = listener.local_addr().expect("it listens");
        let requests = Arc::new(AtomicU64::new(0));
        let counter = requests.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let counter = counter.clone();
                std::thread::spawn(move || answer(stream, &counter));
            }
        });
        Service { address, requests }
    }

    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }

    pub fn spec(&self) -> LoadSpec {
        let request = Request::new("GET", "/", &self.address.to_string());
        LoadSpec::new(Address::Tcp(self.address), vec![request])
    }
}

/// Connections have one request under way, and each is short enough for one segment.
fn answer(mut stream: TcpStream, counter: &AtomicU64) {
    let mut request = [0; 1024];
    while stream.read(&mut request).is_ok_and(|length| length > 0) {
        counter.fetch_add(1, Ordering::SeqCst);
        if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").is_err() {
            return;
        }
    }
}
