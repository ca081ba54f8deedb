//! Writes an interval log of made-up latencies to standard output, to try other programs on, and the percentiles that
//! they should find in it to standard error. They may tell a value by the upper end of its cell, up to 0.1 % more.
//!
//! ```text
//! cargo run -p proofload-stats --example interval_log > made-up.hlog
//! ```

#[path = "../tests/simulation/mod.rs"]
mod simulation;

use proofload_stats::{IntervalLog, Latencies, Tag};
use simulation::Noise;
use std::io::{BufWriter, Result};
use std::time::Duration;

/// 2026-11-21, 05:00:29.25 UTC.
const STARTED: Duration = Duration::from_millis(1_795_237_229_250);
const SECONDS: u64 = 10;
const REQUESTS_PER_S: u32 = 1_000;
const GIVEN_UP_AFTER_NS: u64 = 2_000_000_000;

fn main() -> Result<()> {
    let mut noise = Noise::new(1);
    let tag = Tag::new().with("endpoint", "index").with("status", "200").with("time", "response");
    let mut log = IntervalLog::begin(BufWriter::new(std::io::stdout()), STARTED, &["Made up, not measured"])?;
    let (mut answered, mut given_up) = (Latencies::new(), Latencies::new());
    for second in 0..SECONDS {
        let mut latencies = Latencies::new();
        for _ in 0..REQUESTS_PER_S {
            // Around one millisecond; one request in five hundred gets no answer.
            let ns = (1e6 * (0.5 * noise.normal()).exp()) as u64;
            if noise.uniform() < 0.002 {
                latencies.censor(GIVEN_UP_AFTER_NS);
                given_up.record(GIVEN_UP_AFTER_NS);
            } else {
                latencies.record(ns);
                answered.record(ns);
            }
        }
        log.interval(&tag, Duration::from_secs(second), Duration::from_secs(1), &latencies)?;
    }
    log.finish()?;
    for (tag, samples) in [(tag.clone(), answered), (tag.censored(), given_up)] {
        let ns = |q| samples.quantile(q).map_or(0, |quantile| quantile.ns());
        eprintln!("{tag}: {} samples", samples.count());
        let [p50, p90, p99, p999, max] = [0.5, 0.9, 0.99, 0.999, 1.0].map(ns);
        eprintln!("  p50 {p50}  p90 {p90}  p99 {p99}  p99.9 {p999}  max {max} ns");
    }
    Ok(())
}
