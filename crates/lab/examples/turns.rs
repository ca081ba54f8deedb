//! How long should a slice be? Two copies of one service, loaded in ways that differ in nothing but how they take turns.
//! What comes out different between the copies is noise. `bench/truth/results/2026-11-21/turns.md` has its output.
//!
//! ```text
//! cargo run --release -p proofload-lab --example turns -- targets/planted 20 > turns.jsonl
//! ```
//! Starts `node server.js` of the folder on core 0 and loads it from core 1; one line for each way, pair and copy. It is a
//! measurement of the machine, not a model of the lab: nothing is warmed up by a rule, and nothing is concluded.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use load::{Address, Generator, LoadSpec, Request, Until};
use rand::RngExt;
use rand::seq::SliceRandom;

const CONNECTIONS: u32 = 16;
const WARM_UP: Duration = Duration::from_secs(2);
/// Load on each copy in each way and pair.
const MEASURED: Duration = Duration::from_millis(1200);
const ROUNDS: u32 = 2;

/// How two copies share the time.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// Turn by turn of so many milliseconds, A B B A or B A A B at random.
    Turns(u64),
    /// The same, and whoever has no turn is stopped.
    Frozen(u64),
    /// Both at once on the same core.
    Together,
}

const WAYS: [Way; 9] = [
    Way::Turns(600),
    Way::Turns(300),
    Way::Turns(100),
    Way::Turns(50),
    Way::Turns(20),
    Way::Turns(10),
    Way::Frozen(50),
    Way::Frozen(10),
    Way::Together,
];

/// One process and its load.
struct Copy {
    child: Child,
    generator: Generator,
}

/// What one copy did in one way.
#[derive(Debug, Default, Clone, Copy)]
struct Done {
    ok: u64,
    window_ns: u64,
    answered: u64,
}

impl Copy {
    fn start(folder: &str) -> Copy {
        let port =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|l| l.local_addr()).expect("a port").port();
        let padding = "x".repeat(rand::rng().random_range(0..4096));
        let child = Command::new("taskset")
            .args(["-c", "0", "node", "server.js"])
            .current_dir(folder)
            .env("PORT", port.to_string())
            .env("NODE_ENV", "production")
            .env("PROOFLOAD_PADDING", padding)
            .stdout(Stdio::null())
            .spawn()
            .expect("taskset and node start");
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        for _ in 0..250 {
            if TcpStream::connect(address).is_ok() {
                break;
            }
            thread::sleep(Duration::from_millis(20));
        }
        let request = Request::new("GET", "/", &address.to_string());
        let spec = LoadSpec {
            connections: CONNECTIONS,
            threads: 1,
            cpus: vec![1],
            ..LoadSpec::new(Address::Tcp(address), vec![request])
        };
        let mut copy = Copy { child, generator: Generator::start(spec).expect("a generator") };
        copy.generator.run(Until::Elapsed(WARM_UP));
        copy
    }

    fn turn(&mut self, length: Duration, done: &mut Done) {
        let slice = self.generator.run(Until::Elapsed(length));
        done.ok += slice.successful_in_window;
        done.window_ns += slice.window_ns;
        done.answered += slice.responses;
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "kill {signal}");
    }

    /// CPU time of all threads in nanoseconds.
    fn cpu_ns(&self) -> u64 {
        let threads = fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("it lives").flatten();
        let used = threads.filter_map(|thread| fs::read_to_string(thread.path().join("schedstat")).ok());
        used.filter_map(|line| line.split(' ').next()?.parse::<u64>().ok()).sum()
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn measure(copies: &mut [Copy; 2], way: Way) -> [(Done, u64); 2] {
    let before = [copies[0].cpu_ns(), copies[1].cpu_ns()];
    let mut done = [Done::default(); 2];
    match way {
        Way::Together => {
            let (first, second) = copies.split_at_mut(1);
            let (one, other) = done.split_at_mut(1);
            // Each has half of the core, so it takes twice as long for as much.
            thread::scope(|scope| {
                scope.spawn(|| first[0].turn(2 * MEASURED, &mut one[0]));
                second[0].turn(2 * MEASURED, &mut other[0]);
            });
        }
        Way::Turns(ms) => turns(copies, Duration::from_millis(ms), false, &mut done),
        Way::Frozen(ms) => turns(copies, Duration::from_millis(ms), true, &mut done),
    }
    let used = |index: usize| copies[index].cpu_ns() - before[index];
    [(done[0], used(0)), (done[1], used(1))]
}

fn turns(copies: &mut [Copy; 2], length: Duration, frozen: bool, done: &mut [Done; 2]) {
    if frozen {
        copies.iter().for_each(|copy| copy.signal("-STOP"));
    }
    let pairs = (MEASURED.as_millis() / length.as_millis() / 2).max(1);
    for _ in 0..pairs {
        let first = usize::from(rand::rng().random::<bool>());
        for index in [first, 1 - first, 1 - first, first] {
            if frozen {
                copies[index].signal("-CONT");
            }
            copies[index].turn(length, &mut done[index]);
            if frozen {
                copies[index].signal("-STOP");
            }
        }
    }
    if frozen {
        copies.iter().for_each(|copy| copy.signal("-CONT"));
    }
}

fn main() {
    let mut words = env::args().skip(1);
    let folder = words.next().unwrap_or_else(|| "targets/planted".to_owned());
    let pairs: u32 = words.next().and_then(|word| word.parse().ok()).unwrap_or(10);
    for pair in 0..pairs {
        let mut copies = [Copy::start(&folder), Copy::start(&folder)];
        for round in 0..ROUNDS {
            let mut ways = WAYS;
            ways.shuffle(&mut rand::rng());
            for way in ways {
                let wall = Instant::now();
                let done = measure(&mut copies, way);
                let wall_s = wall.elapsed().as_secs_f64();
                for (copy, (done, cpu_ns)) in done.iter().enumerate() {
                    println!(
                        "{{\"pair\":{pair},\"round\":{round},\"way\":\"{way:?}\",\"copy\":{copy},\"ok\":{},\
                         \"window_ns\":{},\"answered\":{},\"cpu_ns\":{cpu_ns},\"wall_s\":{wall_s:.3}}}",
                        done.ok, done.window_ns, done.answered
                    );
                }
            }
        }
        eprint!("\r{}/{pairs} pairs", pair + 1);
    }
    eprintln!();
}
