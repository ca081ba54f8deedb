//! Records for what the tests read: the one that is kept in the repository, and others made of it.

use std::path::Path;

use analysis::conclude;
use plan::{Comparison, Factor, Metric, Rate};
use proofload_report::{Measured, Report, markdown, text};
use record::{OpenLoop, RateChosen, Record, Trial};
use serde_json::Value;
use stats::Latencies;

/// The kept record: two variants, ten blocks.
pub fn kept() -> Record {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../record/tests/records/v1"));
    let mut record = record::open(path).expect("the kept record opens");
    // Where it lies differs from machine to machine.
    record.directory = "records/simulated".into();
    record
}

pub fn as_text(record: &Record) -> String {
    let text = text(&Measured::new(record, &conclude(record), None).document(), 100);
    anstream::adapter::strip_str(&text).to_string()
}

pub fn as_markdown(record: &Record) -> String {
    markdown(&Measured::new(record, &conclude(record), None).document())
}

pub fn as_json(record: &Record) -> Value {
    Measured::new(record, &conclude(record), None).data()
}

/// What the second level of each factor does to throughput; the third does nothing.
const FACTORS: [(&str, [&str; 2], f64); 4] = [
    ("node_env", ["development", "production"], 1.4),
    ("body", ["small", "large"], 0.7),
    ("keep_alive", ["on", "off"], 1.0),
    ("workers", ["one", "two"], 1.9),
];
/// What the first two do to each other.
const TOGETHER: f64 = 1.1;

/// A full factorial of the first so many of [`FACTORS`], with a copy of the baseline, in the blocks of the kept record. From one
/// block to the next the first factor does so much more.
pub fn factorial(factors: usize, drift: f64) -> Record {
    let mut record = kept();
    let plan = &mut record.header.plan;
    let factor = |(name, levels, _): &(&str, [&str; 2], f64)| Factor {
        name: (*name).into(),
        levels: levels.map(str::to_owned).into(),
    };
    plan.factors = FACTORS[..factors].iter().map(factor).collect();
    let combinations = 1 << factors;
    let high = |variant: usize, factor: usize| (variant % combinations) >> (factors - 1 - factor) & 1;
    let name = |variant: usize| {
        let levels = (0..factors).map(|factor| FACTORS[factor].1[high(variant, factor)]);
        levels.collect::<Vec<_>>().join(" · ")
    };
    let level = |variant, f: usize| (FACTORS[f].0.to_owned(), FACTORS[f].1[high(variant, f)].to_owned());
    let levels = |variant| (0..factors).map(|factor| level(variant, factor)).collect();
    let variant =
        |index| plan::Variant { name: name(index), levels: levels(index), ..plan.variants[0].clone() };
    plan.variants = (0..=combinations).map(variant).collect();
    plan.variants[combinations].name += " (again)";
    let label = format!("{} against {}", name(combinations - 1), name(0));
    plan.comparisons = vec![Comparison { baseline: 0, candidate: combinations - 1, label }];
    let label = format!("{} against itself", name(0));
    plan.aa = Some(Comparison { baseline: 0, candidate: combinations, label });
    for block in &mut record.blocks {
        let number = block.number;
        let rate = |variant: usize| {
            let alone: f64 = (0..factors).map(|f| FACTORS[f].2.powi(high(variant, f) as i32)).product();
            let together = TOGETHER.powi((high(variant, 0) * high(variant, 1)) as i32);
            let later = 1.0 + drift * f64::from(number) * high(variant, 0) as f64;
            alone * together * later * (1.0 + noise(number, variant))
        };
        let model = block.trials[0].clone();
        block.trials = (0..=combinations).map(|variant| trial(&model, variant, rate(variant))).collect();
    }
    record
}

/// Up to a percent either way, without a pattern from block to block.
fn noise(block: u32, variant: usize) -> f64 {
    let mixed = (u64::from(block) * 97 + variant as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed >> 40) as f64 / (1_u64 << 24) as f64 - 0.5) * 0.02
}

/// A trial in which a thousand requests a slice succeed at a rate of 1.
fn trial(model: &Trial, variant: usize, rate: f64) -> Trial {
    let mut trial = model.clone();
    trial.started.variant = variant;
    if let Some(ended) = &mut trial.ended {
        ended.variant = variant;
    }
    for slice in &mut trial.slices {
        let ok = (1000.0 * rate).round() as u64;
        slice.variant = variant;
        (
            slice.counts.sent,
            slice.counts.responses,
            slice.counts.successful,
            slice.counts.successful_in_window,
        ) = (ok, ok, ok, ok);
        slice.counts.body_bytes = ok * 1000;
    }
    trial
}

/// The kept record as if it had been in open loop, with response times of its own.
pub fn in_open_loop(metric: Metric) -> Record {
    let mut record = kept();
    record.header.plan.design.metric = metric;
    record.header.plan.design.rate = Some(Rate::ShareOfCapacity(0.6));
    let capacities_per_s = vec![2030.0, 2620.0];
    record.rate = Some(RateChosen { per_s: 1218.0, share: Some(0.6), capacities_per_s });
    for slice in record.blocks.iter_mut().flat_map(|b| &mut b.trials).flat_map(|t| &mut t.slices) {
        let mut response = Latencies::new();
        for index in 0..1000 {
            let unit_ns = 1_000_000 + 10_000 * u64::from(slice.block) * (1 + slice.variant as u64);
            response.record((unit_ns + 3000 * index) * (5 - slice.variant as u64) / 4);
        }
        (
            slice.counts.sent,
            slice.counts.responses,
            slice.counts.successful,
            slice.counts.successful_in_window,
        ) = (1000, 1000, 1000, 1000);
        slice.counts.body_bytes = 1_000_000;
        // More than one in a hundred of the first variant's were given up late: its p99 is only bounded, its p90 known.
        (0..(1 - slice.variant) * 15).for_each(|_| response.censor(6_000_000));
        slice.counts.open = Some(Box::new(OpenLoop {
            rate_per_s: 1218.0,
            intended: 1000,
            sent_in_window: 1000,
            unsent: 0,
            queued: 0,
            response,
            schedule_lag: Latencies::new(),
        }));
    }
    record
}

/// So many variants in the blocks of the kept record, each compared with the first one; their names begin alike.
pub fn many_variants(variants: usize, name: &str) -> Record {
    let mut record = kept();
    let plan = &mut record.header.plan;
    let named = |index: usize| format!("{name}{index}");
    plan.factors = vec![Factor { name: "setting".into(), levels: (0..variants).map(named).collect() }];
    let variant = |index| plan::Variant {
        name: named(index),
        levels: [("setting".to_owned(), named(index))].into(),
        ..plan.variants[0].clone()
    };
    plan.variants = (0..variants).map(variant).collect();
    let label = |candidate| format!("{} against {}", named(candidate), named(0));
    let comparison = |candidate| Comparison { baseline: 0, candidate, label: label(candidate) };
    plan.comparisons = (1..variants).map(comparison).collect();
    for block in &mut record.blocks {
        let (number, model) = (block.number, block.trials[0].clone());
        let rate = |variant: usize| (1.0 + 0.001 * variant as f64) * (1.0 + noise(number, variant));
        block.trials = (0..variants).map(|variant| trial(&model, variant, rate(variant))).collect();
    }
    record
}
