//! Writes report pages and flame pages of invented records, and report pages of the given records, into a
//! folder, for viewing and for the browser tests in `web/tests`. Nothing shipped may use it.
//!
//! `cargo run -p proofload-report --example report_pages FOLDER [RECORD...]`

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use analysis::conclude;
use explain::{CodeKind, Explanation, flame};
use plan::{Metric, PlannedRate};
use proofload_report::page::page_of;
use proofload_report::{MeasuredRecord, Report};
use record::{ErrorCount, OpenLoop, Record};
use stats::Latencies;

#[path = "../../explain/tests/explained/mod.rs"]
#[allow(dead_code, reason = "tests use all of it")]
mod explained;
#[path = "../tests/report/records.rs"]
#[allow(dead_code, reason = "tests use all of it")]
mod records;

use records::{factorial, give, kept, slices};

/// Sets `hostile` in the page if any of it is not treated as text.
const HOSTILE: &str = "</script><script>globalThis.hostile=1</script><img src=x onerror=globalThis.hostile=1>{{data}}";

fn main() -> io::Result<()> {
    let mut words = env::args_os().skip(1).map(PathBuf::from);
    let folder = &words
        .next()
        .ok_or_else(|| io::Error::other("usage: report_pages FOLDER [RECORD...]"))?;
    fs::create_dir_all(folder)?;
    for place in words {
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        let record = record::open(&place).map_err(io::Error::other)?;
        write(folder, &name, &page(&record, None))?;
    }
    let reports = [
        ("sound", kept()),
        ("latency", in_open_loop()),
        ("void", failing()),
        ("hostile", hostile()),
        ("many", of_variants((0..64).map(long_name), 12)),
        (
            "largest",
            of_variants((0..200).map(|index| format!("level-{index}")), 50),
        ),
    ];
    for (name, record) in &reports {
        write(folder, name, &page(record, None))?;
    }
    let (factors, full) = (answering(factorial(2, 0.0)), explained::full());
    write(folder, "factors", &page(&factors, Some(&full)))?;
    write(
        folder,
        "flame",
        &flame::page(&full, "Log-in: three ways to hash"),
    )?;
    write(
        folder,
        "flame-hostile",
        &flame::page(&hostile_profile(), HOSTILE),
    )
}

fn page(record: &Record, explanation: Option<&Explanation>) -> String {
    let page = MeasuredRecord::new(record, &conclude(record), explanation).page();
    page.as_ref().map(page_of).unwrap_or_default()
}

fn write(folder: &Path, name: &str, text: &str) -> io::Result<()> {
    fs::write(folder.join(name).with_extension("html"), text)
}

/// A thousand times around this many microseconds, with a tail.
fn times(about_us: f64, seed: usize) -> Latencies {
    let mut times = Latencies::new();
    for index in 0..1000 {
        let (body, tail) = (
            explained::noise(seed * 1000 + index),
            explained::noise(seed + index * 31 + 7),
        );
        let us = about_us * (0.8 + 0.4 * body + 0.3 * tail.powi(12) / (1.02 - tail));
        times.record((us * 1000.0) as u64);
    }
    times
}

/// Derives each variant's times from its throughput, as in a closed loop.
fn answering(mut record: Record) -> Record {
    for slice in slices(&mut record) {
        let about_us = 32.0 * 0.5e6 / slice.counts.successful.max(1) as f64;
        slice.counts.latency = times(about_us, slice.block as usize * 100 + slice.variant);
    }
    record
}

/// The stored record at a common rate, with requests to which the first variant never responded.
fn in_open_loop() -> Record {
    let mut record = kept();
    record.header.plan.question = Some("How long do users wait?".into());
    record.header.plan.design.metric = Metric::P90;
    record.header.plan.design.rate = Some(PlannedRate::PerSecond(1000.0));
    for slice in slices(&mut record) {
        let about_us = [4000.0, 3100.0][slice.variant.min(1)];
        let mut response = times(about_us * 1.1, slice.block as usize * 10 + slice.variant);
        slice.counts.latency = times(about_us, slice.block as usize * 10 + slice.variant);
        give(slice, 1000);
        (0..15 * (1 - slice.variant.min(1))).for_each(|_| response.censor(60_000_000));
        slice.counts.open = Some(Box::new(OpenLoop {
            rate_per_s: 1000.0,
            intended: 1000,
            sent_in_window: 1000,
            response,
            ..OpenLoop::default()
        }));
    }
    record
}

/// One in ten requests gets no response.
fn failing() -> Record {
    let mut record = records::failing();
    for slice in slices(&mut record) {
        let errors = [("head", "reset"), ("connect", "refused")];
        slice.counts.errors = errors
            .map(|(phase, cause)| error(phase, cause, slice.counts.successful / 150))
            .into();
    }
    record
}

fn error(phase: &str, cause: &str, count: u64) -> ErrorCount {
    let words = serde_json::json!({ "phase": phase, "cause": cause, "count": count });
    serde_json::from_value(words).expect("any text is a word")
}

/// Every external text is hostile.
fn hostile() -> Record {
    let mut record = records::hostile(HOSTILE);
    for slice in slices(&mut record) {
        slice.counts.successful -= slice.counts.successful / 10;
        slice.counts.errors = vec![error(HOSTILE, HOSTILE, slice.counts.successful / 50)];
    }
    record
}

fn hostile_profile() -> Explanation {
    let path = |name: &str| {
        (
            vec![explained::frame(name, name, 1, CodeKind::Application)],
            10.0,
        )
    };
    let tree = explained::grown([HOSTILE, "innocent"].map(path));
    let mut explanation = explained::simple();
    explanation.subjects = vec![explained::subject(HOSTILE, HOSTILE, tree, None)];
    explanation.comparisons[0].baseline = HOSTILE.into();
    explanation.comparisons[0].story = Some(HOSTILE.into());
    explanation
}

fn long_name(index: usize) -> String {
    let words = [
        "with words",
        "with_one_long_word_that_breaks_nowhere_at_all_and_goes_on_and_on",
        "短",
        "in brief",
    ];
    format!("variant {index} {}", words[index % words.len()])
}

fn of_variants(names: impl Iterator<Item = String>, blocks: u32) -> Record {
    let names: Vec<String> = names.collect();
    let mut record = records::of_variants(&names, blocks, 3);
    record.header.plan.question = Some(format!("Which of {} is the fastest?", names.len()));
    record
}
