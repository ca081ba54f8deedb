//! What it costs to hear and merge the slices of so many generators: `make bench-fleet`, or
//! `cargo run --release -p proofload-remote --example merge -- GENERATORS WINDOWS`.
//!
//! Generators are simulated by another process, so that what is measured here is the hearing and the merging alone: each answers at the
//! end of the second that it was told to load for, all at once, with a slice of made-up latencies. Prints a JSON object. No part of what
//! is shipped.

use std::error::Error;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use load::{Address, Arrivals, LoadSpec, Process, Rate, Request, Until};
use model::{Counts, EndpointCounts, EndpointOutcome, GeneratorUse, OpenLoop};
use proofload_remote::Channel;
use proofload_remote::generators::{Fleet, FleetError};
use proofload_remote::protocol::{
    GeneratorRequest, GeneratorResponse, Request as Message, Response, VERSION,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Requests of a generator in a window.
const REQUESTS: u64 = 10_000;
/// A window: a slice a second.
const WINDOW: Duration = Duration::from_secs(1);
/// Different slices; more generators than that send the same ones.
const DIFFERENT: u64 = 64;
const NEVER: &dyn Fn() -> bool = &|| false;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<&str>>().as_slice() {
        ["simulate", generators, socket] => Ok(simulate(generators.parse()?, Path::new(socket))?),
        [generators, windows] => measure(generators.parse()?, windows.parse()?),
        _ => Err("usage: merge GENERATORS WINDOWS".into()),
    }
}

fn measure(generators: u32, windows: usize) -> Result<(), Box<dyn Error>> {
    raise_descriptors()?;
    let folder = std::env::temp_dir().join(format!("proofload-merge-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let measured = beside(&folder, generators, |remotes| measured(remotes, windows));
    std::fs::remove_dir_all(&folder)?;
    writeln!(io::stdout(), "{}", measured?)?;
    Ok(())
}

/// Runs something with generators that another process simulates. That ends with its connections.
fn beside<T>(
    folder: &Path,
    generators: u32,
    of: impl FnOnce(Vec<Channel>) -> Result<T, Box<dyn Error>>,
) -> Result<T, Box<dyn Error>> {
    let socket = folder.join("generators");
    let listener = UnixListener::bind(&socket)?;
    listener.set_nonblocking(true)?;
    let mut simulation = Command::new(std::env::current_exe()?);
    let mut simulation = simulation.arg("simulate").arg(generators.to_string()).arg(&socket).spawn()?;
    let remotes = (0..generators).map(|index| remote(index, accepted(&listener, &mut simulation)?));
    let remotes = remotes.collect::<io::Result<Vec<Channel>>>();
    let result = remotes.map_err(Into::into).and_then(of);
    if result.is_err() {
        simulation.kill()?;
    }
    simulation.wait()?;
    result
}

/// The next connection, as long as there is somebody to make it.
fn accepted(listener: &UnixListener, simulation: &mut Child) -> io::Result<UnixStream> {
    loop {
        match listener.accept() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if let Some(status) = simulation.try_wait()? {
                    return Err(io::Error::other(format!("the simulation ended: {status}")));
                }
                thread::sleep(Duration::from_millis(1));
            }
            accepted => return Ok(accepted?.0),
        }
    }
}

fn remote(index: u32, stream: UnixStream) -> io::Result<Channel> {
    Ok(Channel::new(format!("generator {index}"), stream.try_clone()?, stream, ()))
}

fn measured(remotes: Vec<Channel>, windows: usize) -> Result<serde_json::Value, Box<dyn Error>> {
    let generators = u32::try_from(remotes.len())?;
    let began = Instant::now();
    let mut fleet = Fleet::connect(remotes).map_err(lost)?;
    fleet.compare_clocks().map_err(lost)?;
    fleet.give(spec(generators).divided(generators, 1)).map_err(lost)?;
    let begin_ms = ms(began.elapsed());
    let (mut cpu_ms, mut after_ms) = (Vec::new(), Vec::new());
    for _ in 0..windows {
        let cpu = now(ClockId::ProcessCPUTime);
        let ran = fleet.run(Until::Elapsed(WINDOW), NEVER);
        let ended = Duration::from_nanos(ran.counts.started_ns) + WINDOW;
        after_ms.push(ms(now(ClockId::Monotonic).saturating_sub(ended)));
        cpu_ms.push(ms(now(ClockId::ProcessCPUTime) - cpu));
        let expected = u64::from(generators) * REQUESTS;
        if (ran.counts.sent, ran.counts.open.as_ref().map_or(0, |open| open.response.count()), ran.lost.len())
            != (expected, expected, 0)
        {
            return Err(
                format!("{} of {expected} requests arrived; lost: {:?}", ran.counts.sent, ran.lost).into()
            );
        }
    }
    let count = |folder: &str| std::fs::read_dir(folder).map_or(0, Iterator::count);
    Ok(serde_json::json!({
        "generators": generators,
        "requests_per_generator": REQUESTS,
        "line_bytes": line(&answer(1)?).len(),
        "begin_ms": begin_ms,
        "cpu_ms": cpu_ms,
        "after_ms": after_ms,
        "peak_mib": peak_memory_mib(),
        "threads": count("/proc/self/task"),
        "descriptors": count("/proc/self/fd"),
    }))
}

fn lost(errors: Vec<FleetError>) -> String {
    errors.iter().map(FleetError::to_string).collect::<Vec<_>>().join("; ")
}

fn spec(connections: u32) -> LoadSpec {
    let address = Address::Tcp(([127, 0, 0, 1], 1).into());
    let rate = Rate::Constant(REQUESTS as f64 * f64::from(connections));
    let arrivals = Arrivals::Open { rate, process: Process::Constant, seed: 1 };
    LoadSpec { connections, arrivals, ..LoadSpec::new(address, vec![Request::new("GET", "/", "a")]) }
}

/// The other process: each generator a thread, which ends with its connection.
fn simulate(generators: u64, socket: &Path) -> io::Result<()> {
    raise_descriptors()?;
    let answers = (0..generators.min(DIFFERENT)).map(answer).collect::<io::Result<Vec<_>>>()?;
    let answers: Arc<[String]> = answers.into();
    let generator = |index: u64| {
        let (stream, answers) = (UnixStream::connect(socket)?, answers.clone());
        let small = thread::Builder::new().stack_size(128 << 10);
        small.spawn(move || serve(index, &stream, &answers[(index % DIFFERENT) as usize]))
    };
    let threads = (0..generators).map(generator).collect::<io::Result<Vec<_>>>()?;
    // What measures has told already why it is gone.
    threads.into_iter().for_each(|thread| drop(thread.join()));
    Ok(())
}

fn serve(index: u64, stream: &UnixStream, answer_text: &str) -> io::Result<()> {
    let mut output = stream;
    for line_read in BufReader::new(stream).lines() {
        let text = match serde_json::from_str(&line_read?)? {
            Message::Hello { .. } => {
                let host = format!("host-{index}");
                text(&Response::Ready { version: VERSION, proofload: "0".into(), host, processors: 1 })?
            }
            Message::Ping(ping) => {
                text(&Response::Pong { ping, clock_ns: now(ClockId::Monotonic).as_nanos() as u64 })?
            }
            Message::Generator(GeneratorRequest::Begin { .. }) => {
                text(&Response::Generator(GeneratorResponse::Begun))?
            }
            Message::Generator(GeneratorRequest::Rest) => {
                text(&Response::Generator(GeneratorResponse::Resting))?
            }
            Message::Generator(GeneratorRequest::Prepare { number, .. }) => {
                text(&Response::Generator(GeneratorResponse::Prepared { number }))?
            }
            Message::Generator(GeneratorRequest::Run { number, start_at_ns }) => {
                let end = Duration::from_nanos(start_at_ns) + WINDOW;
                thread::sleep(end.saturating_sub(now(ClockId::Monotonic)));
                filled(answer_text, number, start_at_ns)
            }
            Message::Heartbeat => continue,
            Message::Cancel | Message::Services(_) | Message::End => return Ok(()),
        };
        output.write_all(line(&text).as_bytes())?;
    }
    Ok(())
}

/// Numbers that stand for those of a window in an answer that was made beforehand.
const NUMBER: u64 = 4_242_424_242_424_242_001;
const STARTED_NS: u64 = 4_242_424_242_424_242_002;

fn answer(seed: u64) -> io::Result<String> {
    let counts = Box::new(counts(seed));
    text(&Response::Generator(GeneratorResponse::Slice {
        number: NUMBER,
        late_ns: 0,
        steal_share: Some(0.0),
        counts,
    }))
}

fn filled(answer: &str, number: u64, started_ns: u64) -> String {
    let numbered = answer.replacen(&NUMBER.to_string(), &number.to_string(), 1);
    numbered.replacen(&STARTED_NS.to_string(), &started_ns.to_string(), 1)
}

/// Latencies that differ, so that histograms are as long as real ones: from 200 µs to 4 ms, most of them short.
fn counts(seed: u64) -> Counts {
    let (sent, window_ns) = (REQUESTS, WINDOW.as_nanos() as u64);
    let mut open = OpenLoop { intended: sent, sent_in_window: sent, ..OpenLoop::default() };
    let mut counts = Counts {
        started_ns: STARTED_NS,
        window_ns,
        sent,
        responses: sent,
        successful: sent,
        successful_in_window: sent,
        status: [(200, sent)].into(),
        successful_per_100_ms: vec![sent as u32 / 10; 10],
        ..Counts::default()
    };
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    for _ in 0..REQUESTS {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let u = (state >> 11) as f64 / (1u64 << 53) as f64;
        let took = |least: f64| (least * (3.0 * u * u * u).exp()) as u64;
        counts.latency.record(took(200_000.0));
        counts.first_byte.record(took(180_000.0));
        open.response.record(took(210_000.0));
        open.schedule_lag.record(1_000 + (state >> 50));
    }
    let (response, latency) = (open.response.clone(), counts.latency.clone());
    counts.endpoints = vec![EndpointCounts {
        sent,
        successful: sent,
        successful_in_window: sent,
        body_bytes: sent,
        outcomes: vec![EndpointOutcome { status: Some(200), response, latency }],
        ..EndpointCounts::new("GET /")
    }];
    let (cpu_ns, wall_ns) = (vec![window_ns / 2], vec![window_ns]);
    counts.generator = GeneratorUse { cpu_ns, wall_ns, run_delay_ns: vec![0], ..GeneratorUse::default() };
    counts.open = Some(Box::new(open));
    counts.pack();
    counts
}

fn text(answer: &Response) -> io::Result<String> {
    Ok(serde_json::to_string(answer)?)
}

fn line(text: &str) -> String {
    format!("{text}\n")
}

/// Two for each generator are more than many a machine allows by default.
fn raise_descriptors() -> io::Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?)
}

fn now(clock: ClockId) -> Duration {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(clock);
    Duration::new(tv_sec as u64, tv_nsec as u32)
}

fn ms(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e4).round() / 10.0
}

fn peak_memory_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    (kib.unwrap_or(0.0) / 102.4).round() / 10.0
}
