//! `--prometheus`: the progress of a run, for a Prometheus that polls every few seconds. The text format is
//! version 0.0.4 (<https://prometheus.io/docs/instrumenting/exposition_formats/>).
//!
//! Only finished slices are counted. For a measurement by `load`, whose slices are long, the current slice is
//! included. This module must not delay a run: each thread of the generator only copies its histograms on
//! request.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use lab::{Doing, Progress, Stop, Update, UpdateNews};
use model::{Counts, Event, Slice, SliceKind};
use plan::Plan;
use stats::Latencies;

use crate::exit::{self, CliError};
use crate::print;

/// Upper bounds of the buckets of response times.
const BUCKETS_US: [u64; 16] = [
    100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000,
    1_000_000, 2_000_000, 5_000_000, 10_000_000,
];
/// Timeout for a client's request.
const PATIENCE: Duration = Duration::from_secs(1);
/// Maximum number of concurrent clients. Further ones are rejected.
const CLIENTS_MAX: usize = 32;
/// Requests of a Prometheus are not longer.
const REQUEST_BYTES_MAX: usize = 8 << 10;

/// Parses the address to listen on: HOST:PORT with an IP address, or a port of loopback.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text
        .parse()
        .map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let address = text.parse().or(port);
    address.map_err(|_| "expected 127.0.0.1:9464, or a port of this machine".to_owned())
}

/// Exported data of a run.
#[derive(Clone)]
pub struct Exporter(Arc<Mutex<Totals>>);

#[derive(Default)]
struct Totals {
    variants: Vec<String>,
    block: u32,
    sums: BTreeMap<(usize, &'static str), Sum>,
    /// The current activity.
    doing: Option<SliceKind>,
    /// Start time of the last slice that is included in the sums.
    last_ns: u64,
}

/// Name, help text, and figure.
type Counter = (&'static str, &'static str, fn(&Sum) -> u64);

const COUNTERS: [Counter; 3] = [
    (
        "proofload_requests_due_total",
        "Requests that there were to send",
        |sum| sum.due,
    ),
    (
        "proofload_requests_sent_total",
        "Requests that were sent",
        |sum| sum.sent,
    ),
    (
        "proofload_requests_failed_total",
        "Requests that did not end in an expected response",
        |sum| sum.failed,
    ),
];

/// Counts of a variant.
#[derive(Clone, Default)]
struct Sum {
    due: u64,
    sent: u64,
    failed: u64,
    buckets: [u64; BUCKETS_US.len()],
    seconds: f64,
    count: u64,
}

impl Sum {
    fn add(&mut self, counts: &Counts, due: u64, failed: u64) {
        let Sum {
            due: all_due,
            sent,
            failed: all_failed,
            buckets,
            seconds,
            count,
        } = self;
        (*all_due, *sent, *all_failed) =
            (*all_due + due, *sent + counts.sent, *all_failed + failed);
        let times = counts
            .open
            .as_ref()
            .map_or(&counts.latency, |open| &open.response);
        for (sum, more) in buckets
            .iter_mut()
            .zip(times.at_most(&BUCKETS_US.map(|us| us * 1_000)))
        {
            *sum += more;
        }
        let mean_ns = times.mean().map_or(0, stats::Quantile::ns);
        *seconds += mean_ns as f64 / 1e9 * times.count() as f64;
        *count += Latencies::count(times);
    }
}

/// Listens on the address, before anything is started.
pub fn listen(at: SocketAddr) -> Result<TcpListener, CliError> {
    TcpListener::bind(at).map_err(|error| {
        let failed = CliError::new(
            exit::SELF,
            format!("--prometheus {at}: cannot listen: {error}"),
        );
        failed.hint("name another port; `ss -ltnp` lists who listens")
    })
}

impl Exporter {
    /// Starts to answer requests. If the plan is one measurement, the current slice is read from `stop`.
    pub fn begin(listener: TcpListener, plan: &Plan, stop: Stop) -> Result<Exporter, CliError> {
        let unable = |error: io::Error| CliError::new(exit::SELF, format!("--prometheus: {error}"));
        let local = listener.local_addr().map_err(unable)?;
        let variants = plan
            .variants
            .iter()
            .map(|variant| variant.name.clone())
            .collect();
        let exporter = Exporter(Arc::new(Mutex::new(Totals {
            variants,
            ..Totals::default()
        })));
        let (told, alone) = (exporter.clone(), plan.measure.is_some());
        let serve = move || {
            for stream in listener.incoming().flatten() {
                // Each client has a thread, so that a stalled one does not block others.
                if Arc::strong_count(&told.0) > CLIENTS_MAX {
                    continue;
                }
                let (told, stop) = (told.clone(), stop.clone());
                let answer = move || {
                    let now = || if alone { stop.so_far() } else { None };
                    // A client that disconnects early is ignored.
                    let _ = told.answer(stream, now);
                };
                let _ = thread::Builder::new()
                    .name("prometheus-client".into())
                    .spawn(answer);
            }
        };
        thread::Builder::new()
            .name("prometheus".into())
            .spawn(serve)
            .map_err(unable)?;
        print::talk(&format!("Prometheus: http://{local}/metrics"));
        Ok(exporter)
    }

    pub fn take_in(&self, update: &Update<'_>) {
        match update.news {
            UpdateNews::Event(Event::Slice(slice)) => self.totals().slice(slice),
            UpdateNews::Event(Event::BlockStarted { block, .. }) => self.totals().block = *block,
            UpdateNews::Progress(Progress::Trial { doing, .. }) => {
                self.totals().doing = Some(match doing {
                    Doing::Starting | Doing::WarmingUp => SliceKind::WarmUp,
                    Doing::MeasuringCapacity => SliceKind::Capacity,
                    Doing::Measuring => SliceKind::Measured,
                    Doing::Probing => SliceKind::Probe,
                    Doing::Overloading => SliceKind::Overload,
                });
            }
            UpdateNews::Event(_) | UpdateNews::Progress(_) => {}
        }
    }

    fn totals(&self) -> MutexGuard<'_, Totals> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, mut stream: TcpStream, now: impl Fn() -> Option<Counts>) -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let (mut request, mut piece) = (Vec::new(), [0; 1024]);
        let began = Instant::now();
        while began.elapsed() < PATIENCE
            && !request.windows(4).any(|end| end == b"\r\n\r\n")
            && request.len() < REQUEST_BYTES_MAX
        {
            match stream.read(&mut piece)? {
                0 => return Ok(()),
                read => request.extend_from_slice(&piece[..read]),
            }
        }
        let (status, text) = if request.starts_with(b"GET /metrics") {
            let now = now();
            ("200 OK", self.totals().text(now.as_ref()))
        } else {
            ("404 Not Found", "GET /metrics\n".to_owned())
        };
        let head = "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\nConnection: close";
        write!(
            stream,
            "HTTP/1.1 {status}\r\n{head}\r\nContent-Length: {}\r\n\r\n{text}",
            text.len()
        )
    }
}

impl Totals {
    fn slice(&mut self, slice: &Slice) {
        let counts = &slice.counts;
        self.last_ns = counts.started_ns;
        let sum = self
            .sums
            .entry((slice.variant, kind(slice.kind)))
            .or_default();
        sum.add(counts, counts.due(), counts.failed());
    }

    /// The whole text, with the counts of the current slice, which belongs to the first variant.
    fn text(&self, now: Option<&Counts>) -> String {
        let mut sums = self.sums.clone();
        if let Some((now, doing)) = now
            .filter(|now| now.started_ns != self.last_ns)
            .zip(self.doing)
        {
            let due = now
                .open
                .as_ref()
                .map(|open| open.due_per_100_ms.iter().map(|due| u64::from(*due)).sum());
            let failed = now.failed_so_far();
            let sum = sums.entry((0, kind(doing))).or_default();
            sum.add(now, due.unwrap_or(now.sent), failed);
        }
        let mut out = String::new();
        head(
            &mut out,
            "proofload_info",
            "gauge",
            "The Proofload that runs",
        );
        let _ = writeln!(
            out,
            "proofload_info{{version=\"{}\"}} 1",
            env!("CARGO_PKG_VERSION")
        );
        head(
            &mut out,
            "proofload_block",
            "gauge",
            "Number of the block under way",
        );
        let _ = writeln!(out, "proofload_block {}", self.block);
        for (name, help, of) in COUNTERS {
            head(&mut out, name, "counter", help);
            for (key, sum) in &sums {
                let _ = writeln!(out, "{name}{{{}}} {}", self.labels(*key), of(sum));
            }
        }
        let name = "proofload_response_seconds";
        let help = "From when a request was due in open loop, from when it was sent in closed loop";
        head(&mut out, name, "histogram", help);
        for (
            key,
            Sum {
                seconds,
                count,
                buckets,
                ..
            },
        ) in &sums
        {
            let labels = self.labels(*key);
            for (us, count) in BUCKETS_US.iter().zip(buckets) {
                let _ = writeln!(
                    out,
                    "{name}_bucket{{{labels},le=\"{}\"}} {count}",
                    *us as f64 / 1e6
                );
            }
            let _ = writeln!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {count}");
            let _ = writeln!(
                out,
                "{name}_sum{{{labels}}} {seconds}\n{name}_count{{{labels}}} {count}"
            );
        }
        out
    }

    fn labels(&self, (variant, kind): (usize, &str)) -> String {
        let name = self
            .variants
            .get(variant)
            .map(String::as_str)
            .unwrap_or_default();
        let name = model::text::line(name)
            .replace('\\', "\\\\")
            .replace('"', "\\\"");
        format!("variant=\"{name}\",slice=\"{kind}\"")
    }
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn kind(kind: SliceKind) -> &'static str {
    match kind {
        SliceKind::WarmUp => "warm_up",
        SliceKind::Measured => "measured",
        SliceKind::Capacity => "capacity",
        SliceKind::Probe => "probe",
        SliceKind::Overload => "overload",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalled_clients_hold_no_other_up() {
        let text = "name = \"x\"\n[services.api]\nurl = \"http://127.0.0.1:1\"\n[measure]\n";
        let plan = plan::parse(text, std::path::Path::new("/")).expect("a plan");
        let listener = listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("a port");
        let free = listener.local_addr().expect("it listens");
        let _exporter = Exporter::begin(listener, &plan, Stop::default()).expect("it answers");
        let stalled: Vec<_> = (0..5)
            .map(|_| TcpStream::connect(free).expect("it listens"))
            .collect();
        let began = Instant::now();
        let mut client = TcpStream::connect(free).expect("it listens");
        client
            .write_all(b"GET /metrics HTTP/1.1\r\n\r\n")
            .expect("it reads");
        let mut said = String::new();
        client.read_to_string(&mut said).expect("it answers");
        assert!(
            said.starts_with("HTTP/1.1 200 OK") && began.elapsed() < 3 * PATIENCE,
            "{:?}",
            began.elapsed()
        );
        drop(stalled);
    }

    #[test]
    fn counts_of_slices_add_up_and_one_that_is_over_is_not_counted_twice() {
        let (variants, doing) = (vec!["a \"b\"".to_owned()], Some(SliceKind::Measured));
        let mut totals = Totals {
            variants,
            doing,
            ..Totals::default()
        };
        let mut counts = Counts {
            started_ns: 7,
            sent: 3,
            responses: 3,
            successful: 2,
            ..Counts::default()
        };
        counts.latency = Latencies::new();
        [150_000, 1_500_000, 3_000_000_000]
            .into_iter()
            .for_each(|ns| counts.latency.record(ns));
        let sum = totals.sums.entry((0, "measured")).or_default();
        sum.add(&counts, 3, 1);
        totals.last_ns = 7;
        let once = totals.text(None);
        assert_eq!(
            totals.text(Some(&counts)),
            once,
            "it is the slice that is over"
        );
        for line in [
            "# TYPE proofload_response_seconds histogram",
            "proofload_requests_failed_total{variant=\"a \\\"b\\\"\",slice=\"measured\"} 1",
            "proofload_response_seconds_bucket{variant=\"a \\\"b\\\"\",slice=\"measured\",le=\"0.0001\"} 0",
            "proofload_response_seconds_bucket{variant=\"a \\\"b\\\"\",slice=\"measured\",le=\"0.002\"} 2",
            "proofload_response_seconds_bucket{variant=\"a \\\"b\\\"\",slice=\"measured\",le=\"+Inf\"} 3",
        ] {
            assert!(once.lines().any(|other| other == line), "{line}\n{once}");
        }
        counts.started_ns = 8;
        assert!(
            totals
                .text(Some(&counts))
                .contains("requests_sent_total{variant=\"a \\\"b\\\"\",slice=\"measured\"} 6")
        );
        assert_eq!(address("9464"), address("127.0.0.1:9464"));
        assert!(address("localhost").is_err());
    }
}
