//! Test records: the stored one, and variations of it.

use std::path::Path;

use analysis::conclude;
use plan::{Comparison, Factor, Metric, PlannedRate};
use proofload_report::page::PageData;
use proofload_report::{MeasuredRecord, Report, markdown, text};
use record::{EndReason, Ended, OpenLoop, RateChosen, Record, Slice, Trial};
use serde_json::Value;
use stats::Latencies;

/// The stored record: two variants, ten blocks.
pub fn kept() -> Record {
    let path = Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../record/tests/records/v1"
    ));
    let mut record = record::open(path).expect("the kept record opens");
    // Its folder differs between machines.
    record.directory = "records/simulated".into();
    record
}

/// The record truncated after this number of blocks, with this end after this time.
pub fn kept_until(blocks: usize, reason: EndReason, seconds: f64) -> Record {
    let mut record = kept();
    record.blocks.truncate(blocks);
    record.ended = Some(Ended { reason, seconds });
    record
}

pub fn slices(record: &mut Record) -> impl Iterator<Item = &mut Slice> {
    record
        .blocks
        .iter_mut()
        .flat_map(|block| &mut block.trials)
        .flat_map(|trial| &mut trial.slices)
}

/// Makes a slice send `ok` requests, all of which succeed.
pub fn give(slice: &mut Slice, ok: u64) {
    let counts = &mut slice.counts;
    (
        counts.sent,
        counts.responses,
        counts.successful,
        counts.successful_in_window,
    ) = (ok, ok, ok, ok);
}

/// The stored record with failures in every slice, which void it.
pub fn failing() -> Record {
    let mut record = kept();
    for Slice { counts, .. } in slices(&mut record) {
        counts.successful -= counts.successful / 10;
        counts.timed_out = counts.successful / 10;
    }
    record
}

/// The stored record with every external text replaced by this one.
pub fn hostile(name: &str) -> Record {
    let mut record = kept();
    let plan = &mut record.header.plan;
    (plan.name, plan.question) = (name.into(), Some(name.into()));
    plan.factors[0].name = name.into();
    for (index, variant) in plan.variants.iter_mut().enumerate() {
        variant.name = format!("{name} {index}");
        variant.levels = [(name.to_owned(), format!("{name} {index}"))].into();
    }
    plan.comparisons[0].label = format!("{name} 1 vs {name} 0");
    record.header.command = vec![name.into(), "run".into(), name.into()];
    record.header.experiment = name.into();
    record.experiment_text = Some(name.into());
    record.directory = name.into();
    record.damage = vec![name.into()];
    record
}

/// The lines of a text from the one that contains `from` to the one before `to`. There must be one.
pub fn part(text: &str, from: &str, to: &str) -> String {
    let lines = text
        .lines()
        .skip_while(|line| !line.contains(from))
        .take_while(|line| !line.contains(to));
    let part = lines.collect::<Vec<_>>().join("\n");
    assert!(!part.is_empty(), "{from} is not in {text}");
    part
}

pub fn as_text(record: &Record) -> String {
    let text = text(
        &MeasuredRecord::new(record, &conclude(record), None).document(),
        100,
    );
    anstream::adapter::strip_str(&text).to_string()
}

pub fn as_markdown(record: &Record) -> String {
    markdown(&MeasuredRecord::new(record, &conclude(record), None).document())
}

pub fn as_json(record: &Record) -> Value {
    MeasuredRecord::new(record, &conclude(record), None).data()
}

pub fn as_page(record: &Record) -> PageData {
    MeasuredRecord::new(record, &conclude(record), None)
        .page()
        .expect("it has a page")
}

/// Effect of each factor's second level on throughput. The third has none.
const FACTORS: [(&str, [&str; 2], f64); 4] = [
    ("node_env", ["development", "production"], 1.4),
    ("body", ["small", "large"], 0.7),
    ("keep_alive", ["on", "off"], 1.0),
    ("workers", ["one", "two"], 1.9),
];
/// Interaction of the first two.
const TOGETHER: f64 = 1.1;

/// A full factorial of the first few [`FACTORS`], with a copy of the baseline, in the blocks of the stored
/// record. From block to block the first factor's effect grows by `drift`.
pub fn factorial(factors: usize, drift: f64) -> Record {
    interacting(factors, drift, TOGETHER)
}

/// The same with another factor for the cell in which the first two are both high.
pub fn interacting(factors: usize, drift: f64, both: f64) -> Record {
    let mut record = kept();
    let plan = &mut record.header.plan;
    let factor = |(name, levels, _): &(&str, [&str; 2], f64)| Factor {
        name: (*name).into(),
        levels: levels.map(str::to_owned).into(),
    };
    plan.factors = FACTORS[..factors].iter().map(factor).collect();
    let combinations = 1 << factors;
    let high =
        |variant: usize, factor: usize| (variant % combinations) >> (factors - 1 - factor) & 1;
    let name = |variant: usize| {
        let levels = (0..factors).map(|factor| FACTORS[factor].1[high(variant, factor)]);
        levels.collect::<Vec<_>>().join(" · ")
    };
    let level = |variant, f: usize| {
        (
            FACTORS[f].0.to_owned(),
            FACTORS[f].1[high(variant, f)].to_owned(),
        )
    };
    let levels = |variant| (0..factors).map(|factor| level(variant, factor)).collect();
    let variant = |index| plan::Variant {
        name: name(index),
        levels: levels(index),
        ..plan.variants[0].clone()
    };
    plan.variants = (0..=combinations).map(variant).collect();
    plan.variants[combinations].name += " (again)";
    let label = format!("{} vs {}", name(combinations - 1), name(0));
    plan.comparisons = vec![Comparison {
        baseline: 0,
        candidate: combinations - 1,
        label,
    }];
    let label = format!("{} vs itself", name(0));
    plan.aa = Some(Comparison {
        baseline: 0,
        candidate: combinations,
        label,
    });
    for block in &mut record.blocks {
        let number = block.number;
        let rate = |variant: usize| {
            let alone: f64 = (0..factors)
                .map(|f| FACTORS[f].2.powi(high(variant, f) as i32))
                .product();
            let together = both.powi((high(variant, 0) * high(variant, 1)) as i32);
            let later = 1.0 + drift * f64::from(number) * high(variant, 0) as f64;
            alone * together * later * (1.0 + noise(number, variant))
        };
        let model = block.trials[0].clone();
        block.order = (0..=combinations).collect();
        block.trials = (0..=combinations)
            .map(|variant| trial(&model, variant, rate(variant)))
            .collect();
    }
    record
}

/// Up to a percent in either direction, without a pattern from block to block.
fn noise(block: u32, variant: usize) -> f64 {
    let mixed = (u64::from(block) * 97 + variant as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed >> 40) as f64 / (1_u64 << 24) as f64 - 0.5) * 0.02
}

/// A trial in which a thousand requests in each slice succeed at a rate of 1.
fn trial(model: &Trial, variant: usize, rate: f64) -> Trial {
    let mut trial = model.clone();
    trial.started.variant = variant;
    if let Some(ended) = &mut trial.ended {
        ended.variant = variant;
    }
    for slice in &mut trial.slices {
        slice.variant = variant;
        give(slice, (1000.0 * rate).round() as u64);
        slice.counts.body_bytes = slice.counts.sent * 1000;
    }
    trial
}

/// The stored record as if it had been in open loop, with separate response times.
pub fn in_open_loop(metric: Metric) -> Record {
    let mut record = kept();
    record.header.plan.design.metric = metric;
    record.header.plan.design.rate = Some(PlannedRate::ShareOfCapacity(0.6));
    let capacities_per_s = vec![2030.0, 2620.0];
    record.rate = Some(RateChosen {
        per_s: 1218.0,
        ramp_per_s: None,
        share: Some(0.6),
        capacities_per_s,
    });
    for slice in slices(&mut record) {
        let mut response = Latencies::new();
        for index in 0..1000 {
            let unit_ns = 1_000_000 + 10_000 * u64::from(slice.block) * (1 + slice.variant as u64);
            response.record((unit_ns + 3000 * index) * (5 - slice.variant as u64) / 4);
        }
        give(slice, 1000);
        slice.counts.body_bytes = 1_000_000;
        // More than one in a hundred requests of the first variant were given up late: its p99 is only
        // bounded, its p90 known.
        (0..(1 - slice.variant) * 15).for_each(|_| response.censor(6_000_000));
        slice.counts.open = Some(Box::new(OpenLoop {
            rate_per_s: 1218.0,
            intended: 1000,
            sent_in_window: 1000,
            response,
            ..OpenLoop::default()
        }));
    }
    record
}

/// Variants with these names and one level each, all compared with the first, in this number of blocks, with
/// at most `slices_max` slices in each trial.
pub fn of_variants(names: &[String], blocks: u32, slices_max: usize) -> Record {
    let mut record = kept();
    let plan = &mut record.header.plan;
    plan.factors = vec![Factor {
        name: "setting".into(),
        levels: names.to_vec(),
    }];
    let variant = |name: &String| plan::Variant {
        name: name.clone(),
        levels: [("setting".to_owned(), name.clone())].into(),
        ..plan.variants[0].clone()
    };
    plan.variants = names.iter().map(variant).collect();
    let label = |candidate: usize| format!("{} vs {}", names[candidate], names[0]);
    let comparison = |candidate| Comparison {
        baseline: 0,
        candidate,
        label: label(candidate),
    };
    plan.comparisons = (1..names.len()).map(comparison).collect();
    let (block, mut model) = (record.blocks[0].clone(), record.blocks[0].trials[0].clone());
    model.slices.truncate(slices_max);
    let trial_of = |number: u32, variant: usize| {
        let rate = (1.0 + 0.05 * (variant % 7) as f64) * (1.0 + noise(number, variant));
        let mut trial = trial(&model, variant, rate);
        trial.started.block = number;
        if let Some(ended) = &mut trial.ended {
            ended.block = number;
            ended.peak_rss_bytes += u64::from(number * 7919 % 1000) * 4096;
        }
        trial
            .slices
            .iter_mut()
            .for_each(|slice| slice.block = number);
        trial
    };
    let block_of = |number| record::Block {
        number,
        order: (0..names.len()).collect(),
        trials: (0..names.len())
            .map(|variant| trial_of(number, variant))
            .collect(),
        ..block.clone()
    };
    record.blocks = (1..=blocks).map(block_of).collect();
    record
}

/// Variants whose names begin alike.
pub fn many_variants(variants: usize, name: &str) -> Record {
    of_variants(
        &(0..variants)
            .map(|index| format!("{name}{index}"))
            .collect::<Vec<_>>(),
        10,
        6,
    )
}
