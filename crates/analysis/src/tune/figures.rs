//! From the record of a step to what the tuning needs of it. Pure.

use std::collections::BTreeMap;

use crate::Conclusion;
use model::{Check, Metric};
use record::{Record, Witness};

use stats::Estimate;

use super::step::{Confirmation, Known};

/// Share of requests without an expected response above which a row's figures mean nothing.
const FAILED_SHARE_MAX: f64 = 0.001;

/// What a row came to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    /// The value of each metric that it has, in the metric's unit.
    pub values: BTreeMap<Metric, f64>,
    /// Whether all rows of its block had all their cores busy, so that throughput per core-second is the same question.
    pub per_core: bool,
}

impl Figures {
    /// A metric's value; `None` of what cannot be had in the loop that it was measured in.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        self.values.get(&metric).copied().filter(|value| *value > 0.0 && value.is_finite())
    }
}

/// What each variant of a step came to, in the order of the plan.
pub fn figures(record: &Record, conclusion: &Conclusion) -> Vec<Option<Figures>> {
    let per_core = crate::per_core(record);
    let figures = |variant: &crate::Variant| {
        let is_sound = variant.failed_share.is_some_and(|share| share <= FAILED_SHARE_MAX);
        let throughput_per_s = variant.throughput_per_s.filter(|_| is_sound)?;
        let processes = [
            (Metric::CpuPerRequest, variant.cpu_us_per_request),
            (Metric::PeakMemory, variant.peak_rss_bytes.map(|bytes| bytes as f64)),
        ];
        let processes = processes.into_iter().filter_map(|(metric, value)| Some((metric, value?)));
        let latencies = variant.response_time.iter().map(|time| (time.metric, time.us));
        let values = [(Metric::Throughput, throughput_per_s)].into_iter().chain(processes).chain(latencies);
        Some(Figures { values: values.collect(), per_core })
    };
    conclusion.variants.iter().map(figures).collect()
}

/// What a confirmation shows; `None` where a finding forbids a conclusion, or there are too few blocks.
pub fn confirmed(conclusion: &Conclusion) -> Option<Confirmation> {
    let none = conclusion.is_void() || conclusion.finding(Check::TooFewBlocks).is_some();
    let verdict = conclusion.comparisons.first().filter(|_| !none)?;
    let own = verdict.estimate.as_ref().map(|estimate| (verdict.metric, estimate));
    let others = verdict.exploratory.iter().filter(|other| other.metric != verdict.metric);
    let all = own.into_iter().chain(others.map(|other| (other.metric, &other.estimate)));
    Some(all.map(|(of, &Estimate { ratio, low, high, .. })| (of, Known { ratio, low, high })).collect())
}

/// Whether a service answers a setting's trial as it answered without it.
///
/// # Errors
/// What is different.
pub fn same_work(before: &Record, after: &Record) -> Result<(), String> {
    for now in witnesses(after) {
        let Some(was) = witnesses(before).find(|was| was.request == now.request) else { continue };
        if was.status != now.status {
            return Err(format!("{} responds with {} instead of {}", now.request, now.status, was.status));
        }
        let (Some(one), Some(other)) = (&was.decoded_sha256, &now.decoded_sha256) else { continue };
        if was.repeats && now.repeats && one != other {
            let bytes = |witness: &Witness| witness.decoded_bytes.unwrap_or(witness.body_bytes);
            let (was, now, request) = (bytes(was), bytes(now), &now.request);
            return Err(format!("{request} responds with another body ({now} bytes, {was} before)"));
        }
    }
    Ok(())
}

fn witnesses(record: &Record) -> impl Iterator<Item = &Witness> {
    record.blocks.iter().flat_map(|block| &block.trials).flat_map(|trial| &trial.started.witnesses)
}
