//! A server in the controller's network that answers every request, and counts them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use load::{Address, LoadSpec, Request};

/// Its threads end with their connections.
pub struct Server {
    address: SocketAddr,
    requests: Arc<AtomicU64>,
}

impl Server {
    /// On the controller, where hosts reach it; to be started within its network.
    pub fn start() -> Server {
        let listener = TcpListener::bind("10.77.0.1:0").expect("the controller has this address");
        let address = listener.local_addr().expect("it listens");
        let requests = Arc::new(AtomicU64::new(0));
        let counter = requests.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let counter = counter.clone();
                std::thread::spawn(move || answer(stream, &counter));
            }
        });
        Server { address, requests }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }

    pub fn spec(&self) -> LoadSpec {
        let request = Request::new("GET", "/", &self.address.to_string());
        LoadSpec { connections: 4, ..LoadSpec::new(Address::Tcp(self.address), vec![request]) }
    }
}

/// Each request comes in one piece here: they are short, and answered before the next.
fn answer(mut stream: TcpStream, counter: &AtomicU64) {
    let mut request = [0; 1024];
    while stream.read(&mut request).is_ok_and(|length| length > 0) {
        counter.fetch_add(1, Ordering::SeqCst);
        if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").is_err() {
            return;
        }
    }
}
