//! What was measured of one variant over all complete blocks: for showing, never for comparing.

use std::collections::BTreeMap;

use plan::Metric;
use record::{Block, ErrorCount, Record, Slice, Trial};
use serde::Serialize;
use stats::Latencies;

use crate::metric::trial_value;

/// One variant's figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Variant {
    /// Name of the variant.
    pub name: String,
    /// Expected responses per second: geometric mean over trials.
    pub throughput_per_s: Option<f64>,
    /// CPU time of all its services per expected response in microseconds: geometric mean over trials.
    pub cpu_us_per_request: Option<f64>,
    /// The same for each service on its own.
    pub service_cpu_us_per_request: BTreeMap<String, f64>,
    /// Processor cores that its services kept busy, on average.
    pub busy_cores: Option<f64>,
    /// Peak resident memory of its services in bytes: median over trials.
    pub peak_rss_bytes: Option<u64>,
    /// Bytes of the body of a response as it came over the wire, on average.
    pub body_bytes_per_response: Option<f64>,
    /// Requests sent in measured slices.
    pub requests: u64,
    /// Requests that did not end in an expected response.
    pub failed: u64,
    /// Requests given up after the time-out.
    pub timed_out: u64,
    /// Errors by phase and cause.
    pub errors: Vec<ErrorCount>,
    /// Responses by status code.
    pub status: BTreeMap<u16, u64>,
}

impl Variant {
    /// Sums up a variant, by its index in the plan.
    pub(crate) fn of(record: &Record, index: usize) -> Variant {
        let trials: Vec<&Trial> = record.complete_blocks().filter_map(|block| trial(block, index)).collect();
        let slices: Vec<&Slice> = trials.iter().flat_map(|trial| trial.measured()).collect();
        let sum = |of: fn(&Slice) -> u64| slices.iter().map(|slice| of(slice)).sum::<u64>();
        let mean = |metric| geometric_mean(trials.iter().filter_map(|trial| trial_value(trial, metric)));
        let per = |amount: u64, of: u64| (of > 0).then(|| amount as f64 / of as f64);
        Variant {
            name: record.header.plan.variants[index].name.clone(),
            throughput_per_s: mean(Metric::Throughput),
            cpu_us_per_request: mean(Metric::CpuPerRequest),
            service_cpu_us_per_request: service_cpu(&slices),
            busy_cores: per(sum(Slice::services_cpu_ns), sum(|slice| slice.window_ns + slice.drain_ns)),
            peak_rss_bytes: median(trials.iter().filter_map(|t| Some(t.ended.as_ref()?.peak_rss_bytes))),
            body_bytes_per_response: per(sum(|slice| slice.body_bytes), sum(|slice| slice.answered)),
            requests: sum(|slice| slice.sent),
            failed: sum(Slice::failed),
            timed_out: sum(|slice| slice.timed_out),
            errors: errors(&slices),
            status: status(&slices),
        }
    }

    /// Share of requests that did not end in an expected response; `None` without requests.
    pub fn failed_share(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.failed as f64 / self.requests as f64)
    }
}

fn trial(block: &Block, variant: usize) -> Option<&Trial> {
    block.trials.iter().find(|trial| trial.variant() == variant)
}

fn geometric_mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let logs: Vec<f64> = values.map(f64::ln).collect();
    (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}

fn median(values: impl Iterator<Item = u64>) -> Option<u64> {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

fn service_cpu(slices: &[&Slice]) -> BTreeMap<String, f64> {
    let ok: u64 = slices.iter().map(|slice| slice.ok).sum();
    let mut cpu = BTreeMap::<String, u64>::new();
    for service in slices.iter().flat_map(|slice| &slice.services) {
        *cpu.entry(service.service.clone()).or_default() += service.cpu_ns;
    }
    cpu.into_iter().filter(|_| ok > 0).map(|(name, ns)| (name, ns as f64 / ok as f64 / 1e3)).collect()
}

fn errors(slices: &[&Slice]) -> Vec<ErrorCount> {
    let mut counts = BTreeMap::<(&str, &str), u64>::new();
    for error in slices.iter().flat_map(|slice| &slice.errors) {
        *counts.entry((&error.phase, &error.cause)).or_default() += error.count;
    }
    let named = |((phase, cause), count): ((&str, &str), u64)| ErrorCount {
        phase: phase.to_owned(),
        cause: cause.to_owned(),
        count,
    };
    counts.into_iter().map(named).collect()
}

fn status(slices: &[&Slice]) -> BTreeMap<u16, u64> {
    let mut counts = BTreeMap::new();
    for (code, count) in slices.iter().flat_map(|slice| &slice.status) {
        *counts.entry(*code).or_default() += count;
    }
    counts
}

/// Time from sent to done of a variant over all measured slices, by its index in the plan.
///
/// In closed loop it follows from connections and throughput, and is no basis for a comparison.
pub fn latency(record: &Record, index: usize) -> Latencies {
    let trials = record.complete_blocks().filter_map(|block| trial(block, index));
    trials.flat_map(Trial::measured).fold(Latencies::new(), |mut all, slice| {
        all.merge(&slice.latency);
        all
    })
}
