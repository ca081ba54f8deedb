//! What was measured of one variant over all complete blocks: for showing, never for comparing.

use std::collections::BTreeMap;

use model::{Cause, Phase};
use plan::Metric;
use record::{EndpointCounts, ErrorCount, Record, Slice, Trial};
use schemars::JsonSchema;
use serde::Serialize;
use stats::{Interval, Latencies};

use crate::metric::{BlockFigures, Figures, is_once, trial};
use crate::no_success::{self, NoSuccess};
use crate::service::{self, ServiceCost, median};
use crate::spread::geometric_mean;

/// Level of the interval of the share of failed requests.
const FAILED_LEVEL: f64 = 0.95;
/// So many histograms at the most are merged as they are packed: with each, all cells so far are copied.
const FEW: usize = 8;

/// One variant's figures.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Variant {
    /// Name of the variant.
    pub name: String,
    /// Expected responses per second: geometric mean over trials. In open loop it is the rate that was given, where it kept up.
    pub throughput_per_s: Option<f64>,
    /// CPU time of all its services per expected response in microseconds: geometric mean over trials.
    pub cpu_us_per_request: Option<f64>,
    /// The same for each service on its own.
    pub service_cpu_us_per_request: BTreeMap<String, f64>,
    /// What each service cost, in the order in which they were started.
    pub services: Vec<ServiceCost>,
    /// Processor cores that its services kept busy, on average.
    pub busy_cores: Option<f64>,
    /// Peak resident memory of its services in bytes: median over trials.
    pub peak_rss_bytes: Option<u64>,
    /// Quantiles of the response time, in open loop: those that every trial has requests enough for.
    pub response_time: Vec<ResponseTime>,
    /// Bytes of the body of a response as it came over the wire, on average.
    pub body_bytes_per_response: Option<f64>,
    /// Requests sent in measured slices; in open loop those due.
    pub requests: u64,
    /// Requests that did not end in an expected response.
    pub failed: u64,
    /// Share of requests that did not end in an expected response; `None` without requests.
    pub failed_share: Option<f64>,
    /// Wilson's 95 % interval of that share, which takes requests as independent. Failures come in bursts, and it does not
    /// know: it is too narrow then, and compares no variants.
    pub failed_interval: Option<Interval>,
    /// Requests given up after the time-out.
    pub timed_out: u64,
    /// Errors by phase and cause.
    pub errors: Vec<ErrorCount>,
    /// Responses by status code.
    pub status: BTreeMap<u16, u64>,
    /// Each request of a load that sends several; empty where there is one.
    pub endpoints: Vec<Endpoint>,
    /// What became of its requests, where none succeeded.
    pub no_success: Option<NoSuccess>,
    /// Each metric that is no quantile: geometric mean over trials; of what a trial has once, the median.
    #[serde(skip)]
    pub values: Vec<(Metric, f64)>,
}

/// What came of one of several requests.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Endpoint {
    /// Its name.
    pub name: String,
    /// Requests sent in measured slices.
    pub sent: u64,
    /// Expected responses.
    pub ok: u64,
    /// Requests sent that did not end in an expected response.
    pub failed: u64,
    /// Expected responses per second of the windows, those of the drains included; `None` without a window.
    pub ok_per_s: Option<f64>,
}

/// A quantile of the response time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct ResponseTime {
    /// The metric of that name.
    pub metric: Metric,
    /// The quantile in µs: geometric mean over trials.
    pub us: f64,
    /// True where it is a lower bound, because requests of a trial were given up or never sent.
    pub at_least: bool,
}

impl Variant {
    /// Sums up a variant, by its index in the plan.
    pub(crate) fn of(record: &Record, blocks: &[BlockFigures], index: usize) -> Variant {
        let trials: Vec<&Trial> = record.complete_blocks().filter_map(|block| trial(block, index)).collect();
        let slices: Vec<&Slice> = trials.iter().flat_map(|trial| trial.measured()).collect();
        let sum = |of: fn(&Slice) -> u64| slices.iter().map(|slice| of(slice)).sum::<u64>();
        let figures: Vec<&Figures> =
            blocks.iter().filter_map(|block| block.variants[index].as_ref()).collect();
        let mean = |metric| geometric_mean(figures.iter().filter_map(|figures| figures.value(metric)));
        // Of what runs already there are responses, and nothing of its processes.
        let is_started =
            !crate::checks::is_unseen(&record.header.plan.variants[index], trials.iter().copied());
        let value = |metric: &Metric| match is_once(*metric) {
            true => {
                median(figures.iter().filter_map(|figures| figures.value(*metric))).filter(|_| is_started)
            }
            false => mean(*metric),
        };
        let per = |amount: u64, of: u64| (of > 0).then(|| amount as f64 / of as f64);
        let (requests, failed) = (sum(|slice| slice.counts.due()), sum(|slice| slice.counts.failed()));
        Variant {
            name: record.header.plan.variants[index].name.clone(),
            throughput_per_s: mean(Metric::Throughput),
            cpu_us_per_request: mean(Metric::CpuPerRequest),
            service_cpu_us_per_request: service_cpu(&slices),
            services: service::costs(&trials, mean(Metric::CpuPerRequest)),
            busy_cores: per(sum(Slice::services_cpu_ns), sum(|slice| slice.counts.wall_ns()))
                .filter(|_| is_started),
            peak_rss_bytes: median(trials.iter().filter_map(|t| Some(t.ended.as_ref()?.peak_rss_bytes)))
                .filter(|_| is_started),
            response_time: Metric::latencies().filter_map(|of| response_time(&figures, of)).collect(),
            body_bytes_per_response: per(
                sum(|slice| slice.counts.body_bytes),
                sum(|slice| slice.counts.responses),
            ),
            requests,
            failed,
            failed_share: per(failed, requests),
            failed_interval: stats::wilson(failed, requests, FAILED_LEVEL).ok().flatten(),
            timed_out: sum(|slice| slice.counts.timed_out),
            errors: errors(&slices),
            status: status(&slices),
            endpoints: endpoints(&slices),
            no_success: no_success::measured(record, index),
            values: Metric::ALL
                .iter()
                .filter(|metric| metric.quantile().is_none())
                .filter_map(|metric| Some((*metric, value(metric)?)))
                .collect(),
        }
    }
}

/// `None` where a trial has too few requests: what the others have is then another quantity.
fn response_time(figures: &[&Figures], metric: Metric) -> Option<ResponseTime> {
    let samples = figures.iter().map(|figures| figures.sample(metric)).collect::<Option<Vec<_>>>()?;
    let us = geometric_mean(samples.iter().map(|sample| sample.value))?;
    Some(ResponseTime { metric, us, at_least: samples.iter().any(|sample| sample.at_least) })
}

fn service_cpu(slices: &[&Slice]) -> BTreeMap<String, f64> {
    let ok: u64 = slices.iter().map(|slice| slice.counts.successful).sum();
    let mut cpu = BTreeMap::<String, u64>::new();
    for service in slices.iter().flat_map(|slice| &slice.services) {
        *cpu.entry(service.service.clone()).or_default() += service.cpu_ns;
    }
    cpu.into_iter().filter(|_| ok > 0).map(|(name, ns)| (name, ns as f64 / ok as f64 / 1e3)).collect()
}

fn endpoints(slices: &[&Slice]) -> Vec<Endpoint> {
    let window_ns: u64 = slices.iter().map(|slice| slice.counts.window_ns).sum();
    let counts = slices.iter().flat_map(|slice| &slice.counts.endpoints);
    let endpoint = |(name, all): (&str, Vec<&EndpointCounts>)| {
        let sum = |of: fn(&EndpointCounts) -> u64| all.iter().map(|counts| of(counts)).sum::<u64>();
        let ok = sum(|counts| counts.successful);
        Endpoint {
            name: name.to_owned(),
            sent: sum(|counts| counts.sent),
            ok,
            failed: sum(EndpointCounts::failed),
            ok_per_s: (window_ns > 0).then(|| ok as f64 / window_ns as f64 * 1e9),
        }
    };
    model::grouped(counts.map(|counts| (counts.name.as_str(), counts))).into_iter().map(endpoint).collect()
}

fn errors(slices: &[&Slice]) -> Vec<ErrorCount> {
    let mut counts = BTreeMap::<(Phase, Cause), u64>::new();
    for error in slices.iter().flat_map(|slice| &slice.counts.errors) {
        *counts.entry((error.phase, error.cause)).or_default() += error.count;
    }
    counts.into_iter().map(|((phase, cause), count)| ErrorCount { phase, cause, count }).collect()
}

fn status(slices: &[&Slice]) -> BTreeMap<u16, u64> {
    let mut counts = BTreeMap::new();
    for (code, count) in slices.iter().flat_map(|slice| &slice.counts.status) {
        *counts.entry(*code).or_default() += count;
    }
    counts
}

/// Time from sent to done of a variant, by its index in the plan: for each complete block over its measured slices. Packed: there may be
/// thousands.
///
/// In closed loop it follows from connections and throughput, and is no basis for a comparison.
pub fn latencies(record: &Record, index: usize) -> Vec<Latencies> {
    by_block(record, index, |slice| Some(&slice.counts.latency))
}

/// The same from due to done; empty histograms in closed loop.
pub fn responses(record: &Record, index: usize) -> Vec<Latencies> {
    by_block(record, index, |slice| Some(&slice.counts.open.as_ref()?.response))
}

fn by_block(record: &Record, index: usize, of: fn(&Slice) -> Option<&Latencies>) -> Vec<Latencies> {
    let all = |trial: &Trial| few_merged(trial.measured().filter_map(of));
    record.complete_blocks().filter_map(|block| trial(block, index)).map(all).collect()
}

/// The same as [`latencies`] over all complete blocks together.
pub fn latencies_together(record: &Record, index: usize) -> Latencies {
    merged(measured(record, index).map(|slice| &slice.counts.latency))
}

/// The same as [`responses`] over all complete blocks together.
pub fn responses_together(record: &Record, index: usize) -> Latencies {
    merged(measured(record, index).filter_map(|slice| Some(&slice.counts.open.as_ref()?.response)))
}

/// What counts of a variant: the measured slices of complete blocks.
pub(crate) fn measured(record: &Record, index: usize) -> impl Iterator<Item = &Slice> {
    record.complete_blocks().filter_map(move |block| trial(block, index)).flat_map(Trial::measured)
}

/// A variant's trials in blocks that were not dropped, unfinished ones included: a run that was stopped as pointless has no other.
pub(crate) fn trials(record: &Record, variant: usize) -> impl Iterator<Item = &Trial> {
    let blocks = record.blocks.iter().filter(|block| block.dropped.is_none());
    blocks.flat_map(|block| &block.trials).filter(move |trial| trial.variant() == variant)
}

/// All of their slices.
pub(crate) fn slices(record: &Record, variant: usize) -> impl Iterator<Item = &Slice> {
    trials(record, variant).flat_map(|trial| &trial.slices)
}

/// Those of a trial: as in the record they are packed, and so is their sum.
pub(crate) fn few_merged<'a>(histograms: impl Iterator<Item = &'a Latencies>) -> Latencies {
    let histograms: Vec<&Latencies> = histograms.collect();
    let empty = if histograms.len() > FEW { Latencies::new() } else { Latencies::none() };
    let mut all = histograms.into_iter().fold(empty, with);
    all.pack();
    all
}

/// Those of many trials.
pub(crate) fn merged<'a>(histograms: impl Iterator<Item = &'a Latencies>) -> Latencies {
    histograms.fold(Latencies::new(), with)
}

fn with(mut all: Latencies, more: &Latencies) -> Latencies {
    all.merge(more);
    all
}
