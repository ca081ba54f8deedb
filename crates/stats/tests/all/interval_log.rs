//! The interval log in the eyes of another program: `reader/read.js` reads it with hdr-histogram-js, and every figure
//! must be ours. Needs Node.js and the packages that `make setup` installs.

use crate::filled;
use crate::simulation::Noise;
use proofload_stats::{HIGHEST_NS, IntervalLog, Tag};
use serde::Deserialize;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const STARTED: Duration = Duration::from_millis(1_795_237_229_250);
const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// What one line of the log must say.
struct Line {
    tag: String,
    start: Duration,
    length: Duration,
    samples_ns: Vec<u64>,
}

/// One line as the other program read it. Values are the lower ends of cells, as ours are; the mean is of their middles.
#[derive(Deserialize)]
struct Read {
    tag: String,
    start_ms: f64,
    end_ms: f64,
    count: u64,
    min_ns: u64,
    max_ns: u64,
    mean_ns: f64,
    percentiles_ns: [u64; 4],
}

#[test]
fn another_program_reads_our_figures_for_every_tag() {
    let (log, lines) = log_and_its_lines();
    let read = read(&log);
    let tags: Vec<&str> = read.iter().map(|line| line.tag.as_str()).collect();
    assert_eq!(tags, lines.iter().map(|line| line.tag.as_str()).collect::<Vec<_>>());
    read.iter().zip(&lines).for_each(|(read, line)| assert_same(read, line));
}

#[test]
fn a_log_without_intervals_is_read_as_one() {
    let log = IntervalLog::begin(Vec::new(), STARTED, &["nothing happened"]).and_then(IntervalLog::finish);
    assert!(read(&log.expect("a Vec")).is_empty());
}

fn assert_same(read: &Read, line: &Line) {
    let tag = &line.tag;
    let start_ms = (STARTED + line.start).as_secs_f64() * 1e3;
    let end_ms = start_ms + line.length.as_secs_f64() * 1e3;
    assert!((read.start_ms - start_ms).abs() < 0.01, "{tag}: starts at {}, not {start_ms}", read.start_ms);
    assert!((read.end_ms - end_ms).abs() < 0.01, "{tag}: ends at {}, not {end_ms}", read.end_ms);

    let ours = filled(&line.samples_ns, &[]);
    let ns = |q| ours.quantile(q).map_or(0, |quantile| quantile.ns());
    assert_eq!(read.count, line.samples_ns.len() as u64, "{tag}: count");
    assert_eq!((read.min_ns, read.max_ns), (ns(0.0), ns(1.0)), "{tag}: extremes");
    assert_eq!(read.percentiles_ns, QUANTILES.map(ns), "{tag}: p50, p90, p99, p99.9");
    // Ours is rounded to a whole nanosecond.
    let mean_ns = ours.mean().map_or(0.0, |mean| mean.ns() as f64);
    assert!((read.mean_ns - mean_ns).abs() < 0.51, "{tag}: mean {}, not {mean_ns}", read.mean_ns);
}

/// A log with names, sizes and values as wide as they come, and what must be found in it, line by line.
fn log_and_its_lines() -> (Vec<u8>, Vec<Line>) {
    let mut noise = Noise::new(1);
    let mut around = |ns: f64, samples: usize| -> Vec<u64> {
        (0..samples).map(|_| (ns * (0.5 * noise.normal()).exp()) as u64).collect()
    };
    let index = Tag::new().with("endpoint", "index").with("status", "200");
    let (service, response) = (index.with("time", "service"), index.with("time", "response"));
    let strange = Tag::new().with("endpoint", "GET /größe?a=1, 2;\nb");
    let intervals = [
        (0, service.clone(), around(1e6, 100_000), vec![]),
        (0, response.clone(), around(3e6, 10_000), around(2e9, 250)),
        (0, strange, vec![0, 1, 2_047, 2_048, HIGHEST_NS], vec![]),
        (1, service, around(2e6, 1_000), vec![]),
        (1, response, vec![], vec![5_000_000_000; 3]),
        (86_400, Tag::new(), vec![], vec![]),
        (86_401, Tag::new(), vec![7_000], vec![]),
    ];
    let mut log = IntervalLog::begin(Vec::new(), STARTED, &["a test"]).expect("a Vec");
    let mut lines = Vec::new();
    for (start_s, tag, answered_ns, censored_ns) in intervals {
        let (start, length) = (Duration::from_millis(start_s * 1_000 + 125), Duration::from_millis(1_000));
        log.interval(&tag, start, length, &filled(&answered_ns, &censored_ns)).expect("a Vec");
        let name = |tag: &Tag| Some(tag.to_string()).filter(|name| !name.is_empty());
        let plain = name(&tag).unwrap_or("NO TAG".into());
        lines.push(Line { tag: plain, start, length, samples_ns: answered_ns });
        if !censored_ns.is_empty() {
            lines.push(Line { tag: tag.censored().to_string(), start, length, samples_ns: censored_ns });
        }
    }
    (log.finish().expect("a Vec"), lines)
}

fn read(log: &[u8]) -> Vec<Read> {
    let folder = folder();
    let mut reader = Command::new("node")
        .arg("read.js")
        .current_dir(&folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("node does not start ({error}): install Node.js 20 or newer"));
    // It reads to the end before it writes, so neither waits for the other.
    reader.stdin.take().expect("piped").write_all(log).expect("the reader reads to the end");
    let output = reader.wait_with_output().expect("the reader ends");
    assert!(output.status.success(), "node {}/read.js ended with {}", folder.display(), output.status);
    serde_json::from_slice(&output.stdout).expect("read.js writes JSON")
}

fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reader");
    // npm writes this file last.
    let is_installed = folder.join("node_modules/.package-lock.json").exists();
    assert!(is_installed, "{} has no installed packages: run `make setup` first", folder.display());
    folder
}
