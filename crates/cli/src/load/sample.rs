//! Runs that were never run, for the tests: ten seconds that went well, in closed loop, at a rate and on a ramp.

use std::time::Duration;

use load::{Address, Arrivals, LoadSpec, Process, Rate, Request, Until};
use model::{Counts, GeneratorUse, OpenLoop};
use stats::Latencies;

use super::outcome::Outcome;
use super::rate::{Ask, Level};
use super::series::Series;
use super::setup::Setup;

pub fn slice() -> Counts {
    let mut latency = Latencies::new();
    (0..100_000u64).for_each(|n| latency.record(500_000 + n * 10));
    Counts {
        started_ns: 1,
        window_ns: 10_000_000_000,
        drain_ns: 700_000,
        sent: 100_000,
        responses: 100_000,
        responses_in_window: 99_968,
        successful: 100_000,
        successful_in_window: 99_968,
        status: [(200, 100_000)].into(),
        wire_bytes: 24_500_000,
        body_bytes: 1_200_000,
        first_byte: latency.clone(),
        latency,
        connections_alive_at_start: 32,
        connections_alive: 32,
        connections_opened: 32,
        generator: GeneratorUse {
            driver: "readiness".into(),
            cpu_ns: vec![4_000_000_000],
            wall_ns: vec![10_000_700_000],
            run_delay_ns: vec![100_000],
        },
        ..Counts::default()
    }
}

pub fn outcome(slice: Counts) -> Outcome {
    let address = Address::Tcp("127.0.0.1:3000".parse().unwrap());
    Outcome {
        url: "http://127.0.0.1:3000/".into(),
        method: "GET".into(),
        setup: Setup::of(
            &LoadSpec::new(address.clone(), vec![Request::new("GET", "/", "127.0.0.1:3000")]),
            None,
        ),
        address,
        arrivals: Arrivals::Closed,
        ask: None,
        connections: 32,
        threads: 1,
        timeout: Duration::from_secs(2),
        until: Until::Elapsed(Duration::from_secs(10)),
        interrupted: false,
        distribution: false,
        differences: vec![],
        slice,
    }
}

/// In open loop: at 10,000/s, with a connection free for all but so many.
pub fn at_a_rate(mut slice: Counts, queued: u64) -> Outcome {
    let (intended, response) = (slice.sent, slice.latency.clone());
    let mut open = OpenLoop { intended, sent_in_window: intended, queued, response, ..OpenLoop::default() };
    (0..intended - queued).for_each(|n| open.schedule_lag.record(60_000 + n % 100 * 100));
    slice.open = Some(Box::new(open));
    let rate = Rate::Constant(10_000.0);
    let arrivals = Arrivals::Open { rate, process: Process::Poisson, seed: 1 };
    let ask = Some(Ask::At(Level::PerSecond(10_000.0)));
    Outcome { arrivals, ask, ..outcome(slice) }
}

/// What open loop added to it.
pub fn open(outcome: &mut Outcome) -> &mut OpenLoop {
    outcome.slice.open.as_mut().expect("it was at a rate")
}

/// A run of this slice alone.
pub fn alone(outcome: Outcome) -> Series {
    Series { capacity: None, steps: vec![outcome], planned: 1, interrupted: false }
}

/// Ten seconds of a ramp on a service that can do so many requests a second at that time, and queues the others.
pub fn ramp((from_per_s, to_per_s): (f64, f64), limit_per_s: impl Fn(f64) -> f64) -> Outcome {
    let over = Duration::from_secs(10);
    let rate = Rate::Ramp { from_per_s, to_per_s, over };
    let (mut served, mut shown) = (0.0f64, 0.0f64);
    let mut buckets = Vec::new();
    for bucket in 1..=100 {
        let now_s = f64::from(bucket) / 10.0;
        served = rate.due_by(now_s).min(served + limit_per_s(now_s) / 10.0);
        buckets.push((served.floor() - shown) as u32);
        shown = served.floor();
    }
    let (intended, ok) = (rate.due_by(10.0) as u64, shown as u64);
    let slice = Counts {
        sent: intended,
        responses: intended,
        successful: intended,
        successful_in_window: ok,
        successful_per_100_ms: buckets,
        ..slice()
    };
    let arrivals = Arrivals::Open { rate, process: Process::Constant, seed: 1 };
    let ask = Some(Ask::Ramp(Level::PerSecond(from_per_s), Level::PerSecond(to_per_s)));
    let mut outcome = Outcome { arrivals, ask, ..at_a_rate(slice, intended - ok) };
    open(&mut outcome).sent_in_window = ok;
    outcome
}
