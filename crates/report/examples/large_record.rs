//! Writes a record of any size into a folder, to see what reports of it cost. Its figures are made up. Nothing shipped may use it.
//!
//! `cargo run --release -p proofload-report --example large_record VARIANTS BLOCKS closed|open FOLDER`

use std::env;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use plan::{Metric, Rate};
use record::{EndReason, Ended, Event, OpenLoop, RateChosen, Record, SliceKind};
use stats::Latencies;

#[path = "../tests/report/records.rs"]
#[allow(dead_code, reason = "tests use all of it")]
mod records;

fn main() -> io::Result<()> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [variants, blocks, kind, folder] = words.as_slice() else {
        return Err(io::Error::other("usage: large_record VARIANTS BLOCKS closed|open FOLDER"));
    };
    let (variants, blocks): (usize, u32) =
        (variants.parse().map_err(io::Error::other)?, blocks.parse().map_err(io::Error::other)?);
    let names: Vec<String> = (0..variants).map(|index| format!("variante n° {index} · 設定")).collect();
    let mut record = records::of_variants(&names, blocks, usize::MAX);
    if kind == "open" {
        let design = &mut record.header.plan.design;
        (design.metric, design.rate) = (Metric::P90, Some(Rate::PerSecond(1000.0)));
        let capacities_per_s = Vec::new();
        record.rate = Some(RateChosen { per_s: 1000.0, ramp_per_s: None, share: None, capacities_per_s });
    }
    for slice in records::slices(&mut record) {
        let times = times(slice.counts.sent);
        (slice.counts.latency, slice.counts.first_byte) = (times.clone(), times.clone());
        let intended = slice.counts.sent;
        let open = OpenLoop { intended, sent_in_window: intended, response: times, ..OpenLoop::default() };
        let loaded = kind == "open" && slice.kind == SliceKind::Measured;
        slice.counts.open = loaded.then(|| Box::new(open));
    }
    let folder = Path::new(folder);
    fs::create_dir_all(folder)?;
    fs::write(folder.join("record.json"), serde_json::to_vec_pretty(&record.header)?)?;
    let mut out = BufWriter::new(File::create(folder.join("events.jsonl"))?);
    for event in events(record) {
        serde_json::to_writer(&mut out, &event)?;
        out.write_all(b"\n")?;
    }
    out.flush()
}

fn events(record: Record) -> impl Iterator<Item = Event> {
    let of_block = |block: record::Block| {
        let begin = Event::BlockStarted { block: block.number, order: block.order };
        let trials = block.trials.into_iter().flat_map(|trial| {
            let slices = trial.slices.into_iter().map(|slice| Event::Slice(Box::new(slice)));
            let begin = std::iter::once(Event::TrialStarted(trial.started));
            begin.chain(slices).chain(trial.ended.map(Event::TrialEnded))
        });
        let end = Event::BlockEnded { block: block.number, seconds: 10.0 };
        std::iter::once(begin).chain(trials).chain([end])
    };
    let end = Event::Ended(Ended { reason: EndReason::LastLook, seconds: 60.0 });
    let rate = record.rate.map(Event::RateChosen);
    rate.into_iter().chain(record.blocks.into_iter().flat_map(of_block)).chain([end])
}

/// So many times between 1 and 20 ms, the most at the lower end.
fn times(count: u64) -> Latencies {
    let mut times = Latencies::new();
    let one = |index: u64| 1e6 * (1.0 + 19.0 * (index as f64 / count as f64).powi(6));
    (0..count).for_each(|index| times.record(one(index) as u64));
    times
}
