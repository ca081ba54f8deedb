//! Fleets of real generators, each on threads of this process behind pipes as a process elsewhere would be.

use std::io::{self, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use load::{Address, Arrivals, LoadSpec, Process, Rate, Request, Until};
use proofload_fleet::{Fleet, FleetError, Host, Remote, serve};

/// A server that answers every request, and counts them. Its threads end with their connections.
struct Server {
    address: SocketAddr,
    requests: Arc<AtomicU64>,
}

impl Server {
    fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
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

    fn spec(&self) -> LoadSpec {
        let request = Request::new("GET", "/", &self.address.to_string());
        LoadSpec { connections: 5, ..LoadSpec::new(Address::Tcp(self.address), vec![request]) }
    }
}

/// Each request comes in one piece here: they are short and on loopback.
fn answer(mut stream: TcpStream, counter: &AtomicU64) {
    let mut request = [0; 1024];
    while stream.read(&mut request).is_ok_and(|length| length > 0) {
        counter.fetch_add(1, Ordering::SeqCst);
        if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").is_err() {
            return;
        }
    }
}

fn host(name: &str) -> Host {
    Host { proofload: "0.0.0".into(), name: name.into(), processors: 1, cpu_and_steal: || Some((0, 0)) }
}

/// A generator on threads of its own.
fn generator(name: &str) -> Remote {
    let (orders, input) = io::pipe().unwrap();
    let (output, answers) = io::pipe().unwrap();
    let host = host(name);
    std::thread::spawn(move || serve(BufReader::new(orders), answers, &host));
    Remote::new(name, input, output)
}

const NEVER: &dyn Fn() -> bool = &|| false;

#[test]
fn three_generators_send_exactly_what_one_would_and_the_server_has_seen_it() {
    let server = Server::start();
    let arrivals = Arrivals::Open { rate: Rate::Constant(301.0), process: Process::Constant, seed: 1 };
    let specs = LoadSpec { arrivals, ..server.spec() }.divided(3, 1);
    let remotes = ["a", "b", "c"].map(generator).into();
    let mut fleet = Fleet::begin(remotes, specs).unwrap();
    let ran = fleet.run(Until::Elapsed(Duration::from_millis(1000)), NEVER);
    assert!(ran.lost.is_empty(), "{:?}", ran.lost);
    // ⌈1 s · 301/s⌉ whatever the machine does meanwhile, because arrivals are due and not paced.
    assert_eq!((ran.slice.intended, ran.parts.len()), (301, 3));
    assert_eq!(ran.slice.sent + ran.slice.unsent, 301);
    assert_eq!(server.requests.load(Ordering::SeqCst), ran.slice.sent);
    assert_eq!(ran.slice.ok, ran.slice.latency.count() - ran.slice.latency.censored());
    let hosts: Vec<&str> = ran.parts.iter().map(|part| part.host.as_str()).collect();
    assert_eq!(hosts, ["a", "b", "c"]);
    // Connections stay, and windows follow each other.
    let again = fleet.run(Until::Requests(10), NEVER);
    assert_eq!((again.slice.sent, again.slice.opened), (30, 0));
}

#[test]
fn a_generator_that_goes_is_named_and_the_others_count() {
    let server = Server::start();
    let mut remotes: Vec<Remote> = vec![generator("stays")];
    // It says that it is ready, answers pings, prepares, and is gone when it should run.
    let (orders, input) = io::pipe().unwrap();
    let (output, answers) = io::pipe().unwrap();
    std::thread::spawn(move || goes_at_run(BufReader::new(orders), answers));
    remotes.push(Remote::new("goes", input, output));
    let mut fleet = Fleet::begin(remotes, server.spec().divided(2, 1)).unwrap();
    let ran = fleet.run(Until::Requests(10), NEVER);
    assert_eq!((ran.slice.sent, ran.parts.len()), (10, 1));
    assert!(matches!(&ran.lost[..], [FleetError::Gone { name, .. }] if name == "goes"), "{:?}", ran.lost);
    assert_eq!(fleet.alive().collect::<Vec<_>>(), ["stays"]);
}

fn goes_at_run(mut orders: impl io::BufRead, mut answers: impl Write) -> io::Result<()> {
    let mut line = String::new();
    loop {
        line.clear();
        orders.read_line(&mut line)?;
        let answer = if line.contains("begin") {
            r#"{"ready":{"version":1,"proofload":"0","host":"h","processors":1}}"#.to_owned()
        } else if let Some(number) = line.strip_prefix("{\"ping\":") {
            format!("{{\"pong\":{{\"ping\":{},\"clock_ns\":5}}}}", number.trim_end_matches(['}', '\n']))
        } else if line.contains("prepare") {
            r#"{"prepared":{"number":1}}"#.to_owned()
        } else {
            return Ok(());
        };
        writeln!(answers, "{answer}")?;
    }
}

#[test]
fn what_cannot_begin_says_why_and_by_whom() {
    let server = Server::start();
    let spec = LoadSpec { connections: 0, ..server.spec() };
    let error = Fleet::begin(vec![generator("a")], vec![spec]).unwrap_err();
    assert!(matches!(&error, FleetError::Refused { by_specification: true, .. }), "{error}");
    assert_eq!(error.to_string(), "generator a: load.connections: 0 is too few, at least 1");

    let speaks = |text: &'static [u8]| Remote::new("b", io::sink(), text);
    let begin = |remote| Fleet::begin(vec![remote], vec![server.spec()]).unwrap_err().to_string();
    let banner = begin(speaks(b"Last login: Sun Nov 22\n"));
    assert!(banner.contains("generator b: ") && banner.contains("Last login"), "{banner}");
    let other =
        begin(speaks(b"{\"ready\":{\"version\":7,\"proofload\":\"9.9\",\"host\":\"h\",\"processors\":1}}\n"));
    assert!(other.contains("speaks version 7 of the protocol (proofload 9.9), here it is 1"), "{other}");
    assert_eq!(begin(speaks(b"")), "generator b ended before it had answered");
}

#[test]
fn a_generator_that_nobody_hears_stops_loading() {
    let server = Server::start();
    let mut fleet = Fleet::begin(vec![generator("a")], vec![server.spec()]).unwrap();
    let asked = AtomicU64::new(0);
    let stopped = || asked.fetch_add(1, Ordering::SeqCst) > 3;
    let ran = fleet.run(Until::Elapsed(Duration::from_secs(60)), &stopped);
    drop(fleet);
    assert!(ran.parts.is_empty());
    let quiet = || {
        let before = server.requests.load(Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(300));
        server.requests.load(Ordering::SeqCst) == before
    };
    assert!((0..20).any(|_| quiet()), "it still sends six seconds later");
}
