//! From the record of a step to what the tuning needs of it. Pure.

use crate::Conclusion;
use model::Metric;
use record::{Record, Witness};

use stats::Estimate;

use super::step::{Confirmation, Known};

/// Share of requests without an expected response above which a row's figures mean nothing.
const FAILED_SHARE_MAX: f64 = 0.001;

/// What a row came to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures {
    /// Successful responses per second.
    pub throughput_per_s: f64,
    /// CPU time per response in microseconds.
    pub cpu_us: Option<f64>,
    /// Peak memory in bytes.
    pub memory_bytes: Option<f64>,
    /// Whether all rows of its block had all their cores busy, so that throughput per core-second is the same question.
    pub per_core: bool,
}

impl Figures {
    /// A metric's value; `None` of what cannot be had in closed loop.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        match metric {
            Metric::Throughput => Some(self.throughput_per_s),
            Metric::CpuPerRequest => self.cpu_us,
            Metric::PeakMemory => self.memory_bytes,
            Metric::Capacity | Metric::P50 | Metric::P90 | Metric::P99 | Metric::P999 => None,
        }
        .filter(|value| *value > 0.0 && value.is_finite())
    }
}

/// What each variant of a step came to, in the order of the plan.
pub fn figures(record: &Record, conclusion: &Conclusion) -> Vec<Option<Figures>> {
    let per_core = crate::per_core(record);
    let figures = |variant: &crate::Variant| {
        let is_sound = variant.failed_share.is_some_and(|share| share <= FAILED_SHARE_MAX);
        Some(Figures {
            throughput_per_s: variant.throughput_per_s.filter(|_| is_sound)?,
            cpu_us: variant.cpu_us_per_request,
            memory_bytes: variant.peak_rss_bytes.map(|bytes| bytes as f64),
            per_core,
        })
    };
    conclusion.variants.iter().map(figures).collect()
}

/// What a confirmation shows; `None` where a finding forbids a conclusion.
pub fn confirmed(conclusion: &Conclusion) -> Option<Confirmation> {
    let verdict = conclusion.comparisons.first().filter(|_| !conclusion.is_void())?;
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
