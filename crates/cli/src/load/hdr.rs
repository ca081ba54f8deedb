//! `--hdr`: all latencies as an HdrHistogram interval log, an interval for each slice; `docs/formats.md` has the form.
//!
//! The engine's times are those of a clock that begins anywhere, the log's are of the calendar: both clocks are read
//! once, at the beginning, and a calendar that is set meanwhile shifts nothing.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use analysis::Window;
use record::Record;
use stats::{IntervalLog, Latencies, Tag};

use crate::exit::{Failed, SELF};
use crate::print;

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

/// The interval log, open before a load, so that none runs whose result cannot be kept. What an earlier load left stays in it until it is
/// written, and one that nothing was written into is taken away: it would say that nothing responded.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    file: File,
}

impl Log {
    pub fn open(path: &Path) -> Result<Log, Failed> {
        let unwritable = |error| Failed::usage(format!("--hdr {}: cannot write it: {error}", path.display()));
        let file = File::options().write(true).create(true).truncate(false).open(path).map_err(unwritable)?;
        Ok(Log { path: path.to_owned(), file })
    }

    /// Writes all slices but that of the capacity in place of what is there; nothing where nothing was measured.
    pub fn write(&self, clocks: Clocks, record: &Record) -> anyhow::Result<()> {
        let variant = record.header.plan.variants.first();
        let title = variant.map(|variant| variant.load.title()).unwrap_or_default();
        let measured = analysis::measurement(record).map(|measured| measured.windows).unwrap_or_default();
        if measured.is_empty() {
            return Ok(());
        }
        let written = self.empty().and_then(|()| log(&self.file, clocks, &title, &measured));
        // Half of it would be read as all of it.
        let written = written.inspect_err(|_| _ = self.empty());
        let unwritable =
            |error| Failed::new(SELF, format!("--hdr {}: cannot write it: {error}", self.path.display()));
        Ok(written.map_err(unwritable)?)
    }

    /// Devices and pipes have no length.
    fn empty(&self) -> io::Result<()> {
        if self.file.metadata()?.is_file() { self.file.set_len(0) } else { Ok(()) }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        if self.file.metadata().is_ok_and(|of| of.is_file() && of.len() == 0) {
            print::remove(&self.path);
        }
    }
}

fn log(file: &File, clocks: Clocks, title: &str, windows: &[Window<'_>]) -> io::Result<()> {
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
