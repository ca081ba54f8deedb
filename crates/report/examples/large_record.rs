//! Writes a record of any size into a folder, to see what reports of it cost. Its figures are made up. Nothing shipped may use it.
//!
//! `cargo run --release -p proofload-report --example large_record VARIANTS BLOCKS closed|open FOLDER`

use std::env;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use plan::{Comparison, Factor, Metric, Rate};
use record::{Block, Event, Header, OpenLoop, RateChosen, Record, Slice};
use stats::Latencies;

fn main() -> io::Result<()> {
    let words: Vec<String> = env::args().skip(1).collect();
    let number = |word: &String| word.parse().map_err(io::Error::other);
    let [variants, blocks, kind, folder] = words.as_slice() else {
        return Err(io::Error::other("usage: large_record VARIANTS BLOCKS closed|open FOLDER"));
    };
    let (variants, blocks, open, folder) =
        (number(variants)?, number(blocks)?, kind == "open", Path::new(folder));
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../record/tests/records/v1");
    let model = record::open(Path::new(model)).map_err(io::Error::other)?;
    fs::create_dir_all(folder)?;
    let header = serde_json::to_vec_pretty(&header(&model, variants, open))?;
    fs::write(folder.join("record.json"), header)?;
    let mut out = BufWriter::new(File::create(folder.join("events.jsonl"))?);
    let mut put = |event: &Event| {
        serde_json::to_writer(&mut out, event)?;
        out.write_all(b"\n")
    };
    if open {
        put(&Event::RateChosen(RateChosen { per_s: 1000.0, share: None, capacities_per_s: Vec::new() }))?;
    }
    for block in 1..=blocks {
        put_block(&model.blocks[0], (block as u32, variants, open), &mut put)?;
    }
    put(&Event::Ended(record::Ended { reason: record::EndReason::LastLook, seconds: 10.0 * blocks as f64 }))?;
    out.flush()
}

fn header(model: &Record, variants: usize, open: bool) -> Header {
    let mut header = model.header.clone();
    let plan = &mut header.plan;
    let name = |index: usize| {
        format!("variante n° {index} · 設定 · {}", if index.is_multiple_of(2) { "production" } else { "dev" })
    };
    plan.factors = vec![Factor { name: "setting".into(), levels: (0..variants).map(name).collect() }];
    let variant = |index| plan::Variant {
        name: name(index),
        levels: [("setting".to_owned(), name(index))].into(),
        ..plan.variants[0].clone()
    };
    plan.variants = (0..variants).map(variant).collect();
    let label = |candidate| format!("{} against {}", name(candidate), name(0));
    let comparison = |candidate| Comparison { baseline: 0, candidate, label: label(candidate) };
    plan.comparisons = (1..variants).map(comparison).collect();
    if open {
        (plan.design.metric, plan.design.rate) = (Metric::P90, Some(Rate::PerSecond(1000.0)));
    }
    header
}

fn put_block(
    model: &Block,
    (number, variants, open): (u32, usize, bool),
    put: &mut impl FnMut(&Event) -> io::Result<()>,
) -> io::Result<()> {
    put(&Event::BlockStarted { block: number, order: (0..variants).collect() })?;
    for variant in 0..variants {
        let trial = &model.trials[0];
        let mut started = trial.started.clone();
        (started.block, started.variant) = (number, variant);
        put(&Event::TrialStarted(started))?;
        for slice in &trial.slices {
            put(&Event::Slice(Box::new(changed(slice, number, variant, open))))?;
        }
        if let Some(mut ended) = trial.ended.clone() {
            (ended.block, ended.variant) = (number, variant);
            put(&Event::TrialEnded(ended))?;
        }
    }
    put(&Event::BlockEnded { block: number, seconds: 10.0 })
}

/// A slice of another variant and block, with figures of its own.
fn changed(model: &Slice, block: u32, variant: usize, open: bool) -> Slice {
    let mut slice = model.clone();
    let mixed = (u64::from(block) * 97 + variant as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let noise = (mixed >> 40) as f64 / (1_u64 << 24) as f64 - 0.5;
    let ok = (1000.0 * (1.0 + 0.001 * variant as f64 + 0.02 * noise)) as u64;
    (slice.block, slice.variant) = (block, variant);
    (slice.counts.sent, slice.counts.responses, slice.counts.successful, slice.counts.successful_in_window) =
        (ok, ok, ok, ok);
    slice.counts.latency = times(ok, noise);
    slice.counts.first_byte = times(ok, noise);
    let loaded = open && slice.kind == record::SliceKind::Measured;
    slice.counts.open = loaded.then(|| {
        Box::new(OpenLoop {
            rate_per_s: 1000.0,
            intended: ok,
            sent_in_window: ok,
            unsent: 0,
            queued: 0,
            response: times(ok, noise),
            schedule_lag: times(ok / 10, noise),
        })
    });
    slice
}

/// So many times between 1 and 20 ms, the most at the lower end.
fn times(count: u64, noise: f64) -> Latencies {
    let mut times = Latencies::new();
    let one = |index: u64| 1e6 * (1.0 + noise * 0.1) * (1.0 + 19.0 * (index as f64 / count as f64).powi(6));
    (0..count).for_each(|index| times.record(one(index) as u64));
    times
}
