//! `--hdr`: all latencies as an HdrHistogram interval log, an interval for each slice; `docs/formats.md` has the form.
//!
//! The engine's times are those of a clock that begins anywhere, the log's are of the calendar: both clocks are read
//! once, at the beginning, and a calendar that is set meanwhile shifts nothing.

use std::fs::File;
use std::io::{self, BufWriter};
use std::time::{Duration, SystemTime};

use analysis::Window;
use record::Record;
use stats::{IntervalLog, Latencies, Tag};

use crate::exit::{Failed, SELF};

/// Both clocks at the same time.
#[derive(Debug, Clone, Copy)]
pub struct Clocks {
    /// Since the Unix epoch.
    calendar: Duration,
    /// `CLOCK_MONOTONIC`, nanoseconds.
    monotonic_ns: u64,
}

impl Clocks {
    pub fn read() -> Clocks {
        // A calendar before 1970 is not set.
        let calendar = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Clocks { calendar, monotonic_ns: machine::clock::monotonic_ns() }
    }
}

/// Writes the log of all slices but that of the capacity, in place of what is there.
pub fn write(file: File, clocks: Clocks, record: &Record) -> anyhow::Result<()> {
    let title = record.header.plan.variants.first().map(|variant| variant.load.title()).unwrap_or_default();
    let measured = analysis::measurement(record).map(|measured| measured.windows).unwrap_or_default();
    let unwritable = |error| Failed::new(SELF, format!("--hdr: cannot write it: {error}"));
    // Devices and pipes have no length.
    let emptied = file.metadata().and_then(|of| if of.is_file() { file.set_len(0) } else { Ok(()) });
    Ok(emptied.and_then(|()| log(file, clocks, &title, &measured)).map_err(unwritable)?)
}

fn log(file: File, clocks: Clocks, title: &str, windows: &[Window<'_>]) -> io::Result<()> {
    let began_ns = windows.first().map_or(clocks.monotonic_ns, |first| first.slice.counts.started_ns);
    let by = format!("Written by proofload {}", env!("CARGO_PKG_VERSION"));
    let began = clocks.calendar + Duration::from_nanos(began_ns.saturating_sub(clocks.monotonic_ns));
    let mut log = IntervalLog::begin(BufWriter::new(file), began, &[&by, title])?;
    for counts in windows.iter().map(|window| &window.slice.counts) {
        let start = Duration::from_nanos(counts.started_ns.saturating_sub(began_ns));
        let length = Duration::from_nanos(counts.window_ns);
        for (endpoint, outcome) in
            counts.endpoints.iter().flat_map(|of| of.outcomes.iter().map(move |outcome| (of, outcome)))
        {
            let status = outcome.status.map_or("none".to_owned(), |status| status.to_string());
            let tag = Tag::new().with("endpoint", &endpoint.name).with("status", &status);
            // Response time is empty where nothing was due.
            let times: [(&str, &Latencies); 2] =
                [("service", &outcome.latency), ("response", &outcome.response)];
            for (time, latencies) in times.into_iter().filter(|(_, latencies)| !latencies.is_empty()) {
                log.interval(&tag.with("time", time), start, length, latencies)?;
            }
        }
    }
    log.finish().map(drop)
}
