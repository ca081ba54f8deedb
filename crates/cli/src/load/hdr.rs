//! `--hdr`: all latencies as an HdrHistogram interval log, an interval for each slice; `docs/formats.md` has the form.
//!
//! The engine's times are those of a clock that begins anywhere, the log's are of the calendar: both clocks are read
//! once, at the beginning, and a calendar that is set meanwhile shifts nothing.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::time::{Duration, SystemTime};

use model::{Counts, EndpointCounts};
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

    /// Since the Unix epoch.
    fn calendar_at(self, monotonic_ns: u64) -> Duration {
        self.calendar + Duration::from_nanos(monotonic_ns.saturating_sub(self.monotonic_ns))
    }
}

/// Writes the log of all slices but that of the capacity.
///
/// # Errors
/// If the file cannot be written.
pub fn write(file: File, clocks: Clocks, record: &Record) -> anyhow::Result<()> {
    let title = record.header.plan.variants.first().map(|variant| variant.load.title()).unwrap_or_default();
    let measured = analysis::measurement(record).map(|measured| measured.windows).unwrap_or_default();
    let slices: Vec<&Counts> = measured.iter().map(|window| &window.slice.counts).collect();
    let unwritable = |error| Failed::new(SELF, format!("--hdr: cannot write it: {error}"));
    log(BufWriter::new(file), clocks, (&title, &slices)).map_err(unwritable)?;
    Ok(())
}

fn log<W: Write>(out: W, clocks: Clocks, (title, slices): (&str, &[&Counts])) -> io::Result<W> {
    let began_ns = slices.first().map_or(clocks.monotonic_ns, |slice| slice.started_ns);
    let by = format!("Written by proofload {}", env!("CARGO_PKG_VERSION"));
    let mut log = IntervalLog::begin(out, clocks.calendar_at(began_ns), &[&by, title])?;
    for slice in slices {
        let interval = (
            Duration::from_nanos(slice.started_ns.saturating_sub(began_ns)),
            Duration::from_nanos(slice.window_ns),
        );
        for endpoint in &slice.endpoints {
            write_endpoint(&mut log, endpoint, interval)?;
        }
    }
    log.finish()
}

/// Response time is empty where nothing was due.
fn write_endpoint<W: Write>(
    log: &mut IntervalLog<W>,
    endpoint: &EndpointCounts,
    (start, length): (Duration, Duration),
) -> io::Result<()> {
    let tag = Tag::new().with("endpoint", &endpoint.name);
    for outcome in &endpoint.outcomes {
        let status = outcome.status.map_or("none".to_owned(), |status| status.to_string());
        let tag = tag.with("status", &status);
        let times: [(&str, &Latencies); 2] = [("service", &outcome.latency), ("response", &outcome.response)];
        for (time, latencies) in times.into_iter().filter(|(_, latencies)| !latencies.is_empty()) {
            log.interval(&tag.with("time", time), start, length, latencies)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use model::EndpointOutcome;

    use super::*;

    #[test]
    fn steps_are_intervals_that_begin_when_they_did() {
        let mut latency = Latencies::new();
        latency.record(1_000_000);
        let of = |status, response: &Latencies| EndpointOutcome {
            status,
            response: response.clone(),
            latency: latency.clone(),
        };
        let endpoint = EndpointCounts {
            name: "GET /a b".into(),
            sent: 2,
            successful: 1,
            successful_in_window: 1,
            body_bytes: 0,
            outcomes: vec![of(Some(200), &latency), of(None, &Latencies::new())],
            contents: vec![],
        };
        let step = |started_ns| Counts {
            started_ns,
            window_ns: 10_000_000_000,
            endpoints: vec![endpoint.clone()],
            ..Counts::default()
        };
        let steps = [step(5_000_000_000), step(16_250_000_000)];
        let clocks =
            Clocks { calendar: Duration::from_millis(1_795_237_229_250), monotonic_ns: 3_000_000_000 };
        let text = String::from_utf8(log(Vec::new(), clocks, ("GET /a b", &[&steps[0], &steps[1]])).unwrap())
            .unwrap();
        assert!(text.contains("#[StartTime: 1795237231.250 "), "{text}");
        let lines = text.lines().filter(|line| line.starts_with("Tag="));
        let lines: Vec<&str> = lines.map(|line| line.rsplitn(3, ',').last().unwrap()).collect();
        let tag = "Tag=endpoint=GET%20/a%20b;status";
        let of_step = |at: &str| {
            ["=200;time=service", "=200;time=response", "=none;time=service"]
                .map(|rest| format!("{tag}{rest},{at},10.000"))
        };
        assert_eq!(lines, [of_step("0.000"), of_step("11.250")].concat());
    }
}
