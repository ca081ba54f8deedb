//! What it costs to hear and merge the slices of so many generators: `cargo run --release -p proofload-fleet --example merge -- 1000 10`.
//!
//! The generators are simulated: threads that answer with a slice of made-up latencies each time they are asked, so that what is measured
//! is the hearing and the merging alone. Prints CPU time, wall time and peak memory for each window. No part of what is shipped.

use std::io::{self, BufRead, BufReader, Write};
use std::time::{Duration, Instant};

use load::{Address, LoadSpec, Request, Slice, Until};
use proofload_fleet::{Answer, Fleet, FleetError, Order, Remote, VERSION};

/// Latencies that differ, so that histograms are as long as real ones: log-normal, roughly, from 200 µs up.
fn slice(seed: u64) -> Slice {
    let mut slice =
        Slice { window_ns: 1_000_000_000, sent: 2_000, answered: 2_000, ok: 2_000, ..Slice::default() };
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    for _ in 0..2_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let u = (state >> 11) as f64 / (1u64 << 53) as f64;
        slice.latency.record((200_000.0 * (3.0 * u * u * u).exp()) as u64);
        slice.first_byte.record((150_000.0 * (3.0 * u * u * u).exp()) as u64);
    }
    slice.buckets = vec![200; 10];
    slice.pack();
    slice
}

fn simulated(index: u64, orders: impl io::Read, mut answers: impl Write) -> io::Result<()> {
    for line in BufReader::new(orders).lines() {
        let answer = match serde_json::from_str(&line?)? {
            Order::Hello { .. } => {
                let host = format!("host-{index}");
                Answer::Ready { version: VERSION, proofload: "0".into(), host, processors: 1 }
            }
            Order::Begin { .. } => Answer::Begun,
            Order::Rest => Answer::Resting,
            Order::Ping(ping) => Answer::Pong { ping, clock_ns: 0 },
            Order::Prepare { number, .. } => Answer::Prepared { number },
            Order::Run { number, .. } => Answer::Slice {
                number,
                late_ns: 0,
                steal_share: None,
                slice: Box::new(slice(index + number)),
            },
            Order::End => return Ok(()),
        };
        let mut line = serde_json::to_vec(&answer)?;
        line.push(b'\n');
        answers.write_all(&line)?;
    }
    Ok(())
}

fn remote(index: u64) -> io::Result<Remote> {
    let (orders, input) = io::pipe()?;
    let (output, answers) = io::pipe()?;
    std::thread::Builder::new().stack_size(128 << 10).spawn(move || simulated(index, orders, answers))?;
    Ok(Remote::new(format!("generator {index}"), input, output))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let number = |at: usize, default: u64| std::env::args().nth(at).map_or(Ok(default), |word| word.parse());
    let (generators, windows) = (number(1, 1_000)?, number(2, 10)?);
    let address = Address::Tcp("127.0.0.1:1".parse()?);
    let connections = u32::try_from(generators)?;
    let spec = LoadSpec { connections, ..LoadSpec::new(address, vec![Request::new("GET", "/", "a")]) };
    let specs = spec.divided(connections, 1);
    let remotes = (0..generators).map(remote).collect::<io::Result<Vec<Remote>>>()?;
    let first = |errors: Vec<FleetError>| errors.into_iter().next().map_or("nobody is lost".to_owned(), |error| error.to_string());
    let mut fleet = Fleet::connect(remotes).map_err(first)?;
    fleet.compare_clocks().map_err(first)?;
    fleet.give(specs).map_err(first)?;
    for _ in 0..windows {
        let (began, cpu) = (Instant::now(), cpu_time());
        let ran = fleet.run(Until::Elapsed(Duration::from_secs(1)), &|| false);
        writeln!(
            io::stdout(),
            "{} generators: {:.0} ms, {:.0} ms of CPU with making the slices, {} requests, peak {} MiB",
            ran.parts.len(),
            began.elapsed().as_secs_f64() * 1e3,
            (cpu_time() - cpu).as_secs_f64() * 1e3,
            ran.slice.sent,
            peak_memory_mib(),
        )?;
    }
    Ok(())
}

fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn peak_memory_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) / 1024
}
