//! Measures the cost of receiving and merging the slices of many generators: `make bench-fleet`, or `cargo
//! run --release -p proofload-remote --example merge -- GENERATORS WINDOWS`.
//!
//! Another process simulates the generators, so that only receiving and merging are measured here. All
//! simulated generators respond at the same time, at the end of the requested second, with a slice of made-up
//! latencies. Prints a JSON object. This example is not shipped.

use std::error::Error;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use load::{Address, ArrivalProcess, Arrivals, LoadSpec, Rate, RequestSpec, Until};
use machine::clock::{monotonic_ns, process_cpu_ns};
use machine::process;
use model::{Counts, EndpointCounts, EndpointOutcome, GeneratorUse, OpenLoop};
use proofload_remote::Channel;
use proofload_remote::generators::{Fleet, FleetError};
use proofload_remote::protocol::{
    AgentRequest as Message, AgentResponse, GeneratorRequest, GeneratorResponse, VERSION,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Number of requests of a generator in a window.
const REQUESTS: u64 = 10_000;
/// Length of a window. There is one slice per second.
const WINDOW: Duration = Duration::from_secs(1);
const WINDOW_NS: u64 = 1_000_000_000;
/// Number of different slices. Further generators send the same ones again.
const DIFFERENT: u64 = 64;
const NEVER: &dyn Fn() -> bool = &|| false;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words
        .iter()
        .map(String::as_str)
        .collect::<Vec<&str>>()
        .as_slice()
    {
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

/// Calls `of` with generators that another process simulates. That process ends when its connections end.
fn beside<T>(
    folder: &Path,
    generators: u32,
    of: impl FnOnce(Vec<Channel>) -> Result<T, Box<dyn Error>>,
) -> Result<T, Box<dyn Error>> {
    let socket = folder.join("generators");
    let listener = UnixListener::bind(&socket)?;
    let mut simulation = Command::new(std::env::current_exe()?);
    let mut simulation = simulation
        .arg("simulate")
        .arg(generators.to_string())
        .arg(&socket)
        .spawn()?;
    // There is no timeout, even if the simulation has ended and no connection arrives. The caller knows how
    // long this may take.
    let remotes = (0..generators).map(|index| remote(index, listener.accept()?.0));
    let remotes = remotes.collect::<io::Result<Vec<Channel>>>();
    let result = remotes.map_err(Into::into).and_then(of);
    if result.is_err() {
        simulation.kill()?;
    }
    simulation.wait()?;
    result
}

fn remote(index: u32, stream: UnixStream) -> io::Result<Channel> {
    Ok(Channel::new(
        format!("generator {index}"),
        stream.try_clone()?,
        stream,
        (),
    ))
}

fn measured(remotes: Vec<Channel>, windows: usize) -> Result<serde_json::Value, Box<dyn Error>> {
    let generators = u32::try_from(remotes.len())?;
    let began_ns = monotonic_ns();
    let mut fleet = Fleet::connect(remotes).map_err(lost)?;
    fleet.compare_clocks().map_err(lost)?;
    fleet
        .give(spec(generators).divided(generators, 1))
        .map_err(lost)?;
    let begin_ms = ms(monotonic_ns() - began_ns);
    let (mut cpu_ms, mut after_ms) = (Vec::new(), Vec::new());
    for _ in 0..windows {
        let cpu_ns = process_cpu_ns();
        let ran = fleet.run(Until::Elapsed(WINDOW), NEVER);
        after_ms.push(ms(
            monotonic_ns().saturating_sub(ran.counts.started_ns + WINDOW_NS)
        ));
        cpu_ms.push(ms(process_cpu_ns() - cpu_ns));
        let expected = u64::from(generators) * REQUESTS;
        let (sent, lost) = (ran.counts.sent, ran.lost);
        let answered = ran.counts.open.map_or(0, |open| open.response.count());
        if (sent, answered, lost.len()) != (expected, expected, 0) {
            return Err(format!("{sent} of {expected} requests arrived; lost: {lost:?}").into());
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
    errors
        .iter()
        .map(FleetError::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}

fn spec(connections: u32) -> LoadSpec {
    let address = Address::Tcp(([127, 0, 0, 1], 1).into());
    let rate = Rate::Constant(REQUESTS as f64 * f64::from(connections));
    let arrivals = Arrivals::Open {
        rate,
        process: ArrivalProcess::Constant,
        seed: 1,
    };
    LoadSpec {
        connections,
        arrivals,
        ..LoadSpec::new(address, vec![RequestSpec::new("GET", "/", "a")])
    }
}

/// The simulating process. Each generator is a thread that ends with its connection.
fn simulate(generators: u64, socket: &Path) -> io::Result<()> {
    raise_descriptors()?;
    let answers = (0..generators.min(DIFFERENT))
        .map(answer)
        .collect::<io::Result<Vec<_>>>()?;
    let answers: Arc<[String]> = answers.into();
    let generator = |index: u64| {
        let (stream, answers) = (UnixStream::connect(socket)?, answers.clone());
        let small = thread::Builder::new().stack_size(128 << 10);
        small.spawn(move || serve(index, &stream, &answers[(index % DIFFERENT) as usize]))
    };
    let threads = (0..generators)
        .map(generator)
        .collect::<io::Result<Vec<_>>>()?;
    // The measuring process has already reported why a connection ended.
    threads.into_iter().for_each(|thread| drop(thread.join()));
    Ok(())
}

fn serve(index: u64, stream: &UnixStream, answer_text: &str) -> io::Result<()> {
    let mut output = stream;
    for line_read in BufReader::new(stream).lines() {
        let response = match serde_json::from_str(&line_read?)? {
            Message::Hello { .. } => {
                let host = format!("host-{index}");
                AgentResponse::Ready {
                    version: VERSION,
                    proofload: "0".into(),
                    host,
                    processors: 1,
                }
            }
            Message::Ping(ping) => AgentResponse::Pong {
                ping,
                clock_ns: monotonic_ns(),
            },
            Message::Generator(request) => AgentResponse::Generator(match request {
                GeneratorRequest::Begin { .. } => GeneratorResponse::Begun,
                GeneratorRequest::Rest => GeneratorResponse::Resting,
                GeneratorRequest::Prepare { number, .. } => GeneratorResponse::Prepared { number },
                GeneratorRequest::Run {
                    number,
                    start_at_ns,
                } => {
                    let left_ns = (start_at_ns + WINDOW_NS).saturating_sub(monotonic_ns());
                    thread::sleep(Duration::from_nanos(left_ns));
                    output.write_all(line(&filled(answer_text, number, start_at_ns)).as_bytes())?;
                    continue;
                }
            }),
            Message::Heartbeat => continue,
            Message::Cancel | Message::End => return Ok(()),
        };
        output.write_all(line(&text(&response)?).as_bytes())?;
    }
    Ok(())
}

/// Placeholders for the numbers of a window in a prepared answer.
const NUMBER: u64 = 4_242_424_242_424_242_001;
const STARTED_NS: u64 = 4_242_424_242_424_242_002;

fn answer(seed: u64) -> io::Result<String> {
    let counts = Box::new(counts(seed));
    text(&AgentResponse::Generator(GeneratorResponse::Slice {
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

/// Varying latencies, so that histograms are as long as real ones: from 200 µs to 4 ms, most of them short.
fn counts(seed: u64) -> Counts {
    let (sent, window_ns) = (REQUESTS, WINDOW_NS);
    let mut open = OpenLoop {
        intended: sent,
        sent_in_window: sent,
        ..OpenLoop::default()
    };
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
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
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
        outcomes: vec![EndpointOutcome {
            status: Some(200),
            response,
            latency,
        }],
        ..EndpointCounts::new("GET /")
    }];
    let (cpu_ns, wall_ns) = (vec![window_ns / 2], vec![window_ns]);
    counts.generator = GeneratorUse {
        cpu_ns,
        wall_ns,
        run_delay_ns: vec![0],
        ..GeneratorUse::default()
    };
    counts.open = Some(Box::new(open));
    counts.pack();
    counts
}

fn text(answer: &AgentResponse) -> io::Result<String> {
    Ok(serde_json::to_string(answer)?)
}

fn line(text: &str) -> String {
    format!("{text}\n")
}

/// Raises the limit for descriptors. Two for each generator exceed the default of many machines.
fn raise_descriptors() -> io::Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    Ok(setrlimit(
        Resource::Nofile,
        Rlimit {
            current: maximum,
            maximum,
        },
    )?)
}

/// Milliseconds with one decimal.
fn ms(ns: u64) -> f64 {
    (ns as f64 / 1e5).round() / 10.0
}

fn peak_memory_mib() -> f64 {
    let kib = process::number(&process::text(std::process::id(), "status"), "VmHWM");
    (kib as f64 / 102.4).round() / 10.0
}
