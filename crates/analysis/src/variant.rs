//! What was measured of one variant over all complete blocks, and what services and generators had to do with it: for showing, never for
//! comparing.

use std::collections::BTreeMap;

use model::RequestOutcome;
use plan::Metric;
use record::{EndpointCounts, ErrorCount, GeneratorPart, Record, ServiceUse, Slice, Trial};
use schemars::JsonSchema;
use serde::Serialize;
pub(crate) use stats::mean;
use stats::{Interval, Latencies};

use crate::failure::{self, NoSuccess};
use crate::metric::{BlockFigures, is_once, is_reported};

/// Level of the interval of the share of failed requests.
const FAILED_LEVEL: f64 = 0.95;
/// Part of the busiest process's CPU time from which on a process counts as serving.
const SERVING_SHARE_MIN: f64 = 0.1;
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
        let trials: Vec<&Trial> = complete(record, index).collect();
        let slices: Vec<&Slice> = trials.iter().flat_map(|trial| trial.measured()).collect();
        let sum = |of: fn(&Slice) -> u64| total(&slices, of);
        let values = |metric| blocks.iter().filter_map(move |block| block.value(metric, index));
        let mean = |metric| geometric_mean(values(metric));
        // Of what runs already there are responses, and nothing of its processes.
        let is_started =
            !crate::checks::is_unseen(&record.header.plan.variants[index], trials.iter().copied());
        let value = |metric: Metric| match is_once(metric) {
            true => stats::median(values(metric)).filter(|_| is_started),
            false => mean(metric),
        };
        let amounts = Metric::ALL.iter().copied().filter(|metric| metric.quantile().is_none());
        let per = |amount: u64, of: u64| (of > 0).then(|| amount as f64 / of as f64);
        let errors = slices.iter().flat_map(|slice| &slice.counts.errors);
        let errors = counted(errors.map(|of| ((of.phase, of.cause), of.count))).into_iter();
        let outcome @ RequestOutcome { due: requests, failed } = outcome(&slices);
        Variant {
            name: record.header.plan.variants[index].name.clone(),
            throughput_per_s: mean(Metric::Throughput),
            cpu_us_per_request: mean(Metric::CpuPerRequest),
            service_cpu_us_per_request: service_cpu(&slices),
            services: costs(&trials, mean(Metric::CpuPerRequest)),
            busy_cores: per(sum(Slice::services_cpu_ns), sum(|slice| slice.counts.wall_ns()))
                .filter(|_| is_started),
            peak_rss_bytes: median_bytes(
                trials.iter().filter_map(|t| Some(t.ended.as_ref()?.peak_rss_bytes)),
            )
            .filter(|_| is_started),
            response_time: Metric::latencies()
                .filter(|metric| is_reported(record, *metric))
                .filter_map(|of| response_time(blocks, index, of))
                .collect(),
            body_bytes_per_response: per(sum(|of| of.counts.body_bytes), sum(|of| of.counts.responses)),
            requests,
            failed,
            failed_share: outcome.failed_share(),
            failed_interval: stats::wilson(failed, requests, FAILED_LEVEL),
            timed_out: sum(|slice| slice.counts.timed_out),
            errors: errors.map(|((phase, cause), count)| ErrorCount { phase, cause, count }).collect(),
            status: counted(slices.iter().flat_map(|slice| &slice.counts.status).map(|(of, n)| (*of, *n))),
            endpoints: endpoints(&slices),
            no_success: failure::measured(record, index),
            values: amounts.filter_map(|metric| Some((metric, value(metric)?))).collect(),
        }
    }
}

/// `None` where a trial has too few requests: what the others have is then another quantity.
fn response_time(blocks: &[BlockFigures], index: usize, metric: Metric) -> Option<ResponseTime> {
    let measured = blocks.iter().filter(|block| block.variants[index].is_some());
    let samples = measured.map(|block| block.sample(metric, index)).collect::<Option<Vec<_>>>()?;
    let us = geometric_mean(samples.iter().map(|sample| sample.value))?;
    Some(ResponseTime { metric, us, at_least: samples.iter().any(|sample| sample.at_least) })
}

fn service_cpu(slices: &[&Slice]) -> BTreeMap<String, f64> {
    let ok = total(slices, |slice| slice.counts.successful);
    let used = slices.iter().flat_map(|slice| &slice.services);
    let cpu = counted(used.map(|used| (used.service.clone(), used.cpu_ns))).into_iter();
    cpu.filter(|_| ok > 0).map(|(name, ns)| (name, ns as f64 / ok as f64 / 1e3)).collect()
}

fn endpoints(slices: &[&Slice]) -> Vec<Endpoint> {
    let window_ns = total(slices, |slice| slice.counts.window_ns);
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

/// The sum for each key.
pub(crate) fn counted<K: Ord>(all: impl IntoIterator<Item = (K, u64)>) -> BTreeMap<K, u64> {
    let mut sums = BTreeMap::new();
    all.into_iter().for_each(|(key, count)| *sums.entry(key).or_default() += count);
    sums
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
    complete(record, index).map(all).collect()
}

/// The same as [`latencies`] over all complete blocks together.
pub fn latencies_together(record: &Record, index: usize) -> Latencies {
    merged(measured(record, index).map(|slice| &slice.counts.latency))
}

/// The same as [`responses`] over all complete blocks together.
pub fn responses_together(record: &Record, index: usize) -> Latencies {
    merged(measured(record, index).filter_map(|slice| Some(&slice.counts.open.as_ref()?.response)))
}

/// A variant's trials of complete blocks.
pub(crate) fn complete(record: &Record, index: usize) -> impl Iterator<Item = &Trial> {
    record.complete_blocks().filter_map(move |block| block.trial(index))
}

/// What counts of a variant: the measured slices of complete blocks.
pub(crate) fn measured(record: &Record, index: usize) -> impl Iterator<Item = &Slice> {
    complete(record, index).flat_map(Trial::measured)
}

pub(crate) fn total(slices: &[&Slice], of: impl Fn(&Slice) -> u64) -> u64 {
    slices.iter().map(|slice| of(slice)).sum()
}

/// What became of the requests of these slices.
pub(crate) fn outcome(slices: &[&Slice]) -> RequestOutcome {
    slices.iter().map(|slice| slice.counts.outcome()).sum()
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

/// That of ratios and of positive figures.
pub(crate) fn geometric_mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    mean(values.into_iter().map(f64::ln)).map(f64::exp)
}

fn median_bytes(values: impl Iterator<Item = u64>) -> Option<u64> {
    stats::median(values.map(|bytes| bytes as f64)).map(|bytes| bytes.round() as u64)
}

/// The count in the middle, of which a half is none.
pub(crate) fn middle_count(counts: impl Iterator<Item = u32>) -> Option<u32> {
    stats::middle_by(counts, |count| f64::from(*count))
}

/// One service of a variant, over all complete blocks.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ServiceCost {
    /// Name of the service.
    pub service: String,
    /// CPU time per expected response in microseconds: the variant's, by the shares below, so that services add up to it; `None`
    /// where nothing succeeded.
    pub cpu_us_per_request: Option<f64>,
    /// Its share of the CPU time of all services of the variant; `None` where they used none.
    pub cpu_share: Option<f64>,
    /// Peak resident memory in bytes, pages that its processes share counted once: median over trials. `None` in records that do not
    /// tell services apart.
    pub peak_rss_bytes: Option<u64>,
    /// Its processes: median over trials of what was there after the last measured slice.
    pub processes: u32,
    /// Those of them that did the work, which is at least a tenth of the CPU time of the busiest: median over trials. `None` in
    /// records that do not say.
    pub serving: Option<u32>,
    /// Workers that it was asked to run; `None` where nobody asked for a number.
    pub workers: Option<u32>,
}

/// The services of a variant's trials, in the order in which they were started; `cpu_us_per_request` is that of all together.
pub(crate) fn costs(trials: &[&Trial], cpu_us_per_request: Option<f64>) -> Vec<ServiceCost> {
    let slices = || trials.iter().flat_map(|trial| trial.measured());
    let used = slices().flat_map(|slice| &slice.services);
    let names = model::distinct(used.map(|used| used.service.as_str()));
    let all_ns: u64 = slices().map(Slice::services_cpu_ns).sum();
    let cost = |name: &str| {
        let cpu_ns: u64 = trials.iter().flat_map(|trial| uses(trial, name)).map(|used| used.cpu_ns).sum();
        let peak = |trial: &&Trial| trial.ended.as_ref()?.peak_rss_bytes_by_service.get(name).copied();
        let processes = |trial: &&Trial| Some(uses(trial, name).last()?.processes);
        let cpu_share = (all_ns > 0).then(|| cpu_ns as f64 / all_ns as f64);
        ServiceCost {
            service: name.to_owned(),
            cpu_us_per_request: cpu_us_per_request.zip(cpu_share).map(|(all, share)| all * share),
            cpu_share,
            peak_rss_bytes: median_bytes(trials.iter().filter_map(peak)),
            processes: middle_count(trials.iter().filter_map(processes)).unwrap_or(0),
            serving: middle_count(trials.iter().filter_map(|trial| Some(Work::of(trial, name)?.serving()))),
            workers: trials.iter().find_map(|trial| workers(trial, name)),
        }
    };
    names.into_iter().map(cost).collect()
}

/// Workers that a service of this trial was asked to run.
pub(crate) fn workers(trial: &Trial, name: &str) -> Option<u32> {
    trial.started.services.iter().find(|started| started.service == name)?.workers
}

/// How the work of a service was shared among its processes, in one trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Work {
    /// CPU time in nanoseconds, the busiest process first.
    cpu_ns: Vec<u64>,
}

impl Work {
    /// Over the measured slices; `None` where they do not say. Processes of a slice are known by their rank alone, so the busiest
    /// of each add up: what one worker did in one slice and another in the next counts as done by one, which it was at any time.
    pub fn of(trial: &Trial, name: &str) -> Option<Work> {
        let mut cpu_ns: Vec<u64> = Vec::new();
        for used in uses(trial, name) {
            cpu_ns.resize(cpu_ns.len().max(used.cpu_by_process_ns.len()), 0);
            cpu_ns.iter_mut().zip(&used.cpu_by_process_ns).for_each(|(sum, more)| *sum += more);
        }
        (!cpu_ns.is_empty()).then_some(Work { cpu_ns })
    }

    /// Processes that did at least a tenth of what the busiest did.
    pub fn serving(&self) -> u32 {
        self.above(SERVING_SHARE_MIN)
    }

    /// Processes that did at least this part of what the busiest did.
    pub fn above(&self, share: f64) -> u32 {
        let busiest = self.cpu_ns.first().copied().unwrap_or(0) as f64;
        self.cpu_ns.iter().filter(|ns| **ns as f64 >= busiest * share).count() as u32
    }

    /// Of what the busiest so many did together the share of each, the busiest first.
    pub fn shares(&self, processes: u32) -> Vec<f64> {
        let (all, _) = self.of_busiest(processes);
        self.cpu_ns.iter().take(processes as usize).map(|ns| *ns as f64 / all.max(1) as f64).collect()
    }

    /// CPU time of the busiest so many, and of all.
    pub fn of_busiest(&self, processes: u32) -> (u64, u64) {
        (self.cpu_ns.iter().take(processes as usize).sum(), self.cpu_ns.iter().sum())
    }
}

fn uses<'a>(trial: &'a Trial, name: &str) -> impl Iterator<Item = &'a ServiceUse> {
    trial.measured().flat_map(|slice| &slice.services).filter(move |used| used.service == name)
}

/// One generator's share of the measured load, over blocks that count.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct GeneratorShare {
    /// Where it runs, such as `local 2`, `ssh://bench-1` or `kubernetes://bench/proofload-x7k2-3`.
    pub name: String,
    /// What its machine calls itself; `None` of one in whose place another is by now.
    pub host: Option<String>,
    /// Processors that it may use; likewise.
    pub processors: Option<u32>,
    /// Requests that it sent.
    pub requests: u64,
    /// Part of all generators' requests, 0 to 1.
    pub share: f64,
    /// CPU share of its busiest thread, 0 to 1, in the mean over slices.
    pub busiest_share: Option<f64>,
    /// How late it began at the most, in microseconds, by its own clock.
    pub late_us_max: f64,
    /// How wrong that may be, either way, because clocks cannot be compared better.
    pub clock_error_us_max: f64,
    /// Share of its machine's CPU time that the host gave to others, 0 to 1, in the mean over slices.
    pub steal_share: Option<f64>,
    /// How late it sent requests for which a connection was free, at p99 of the worst slice, in microseconds; `None` in closed loop.
    pub lag_p99_us_max: Option<f64>,
    /// How often it was lost, blocks that do not count included.
    pub lost: u32,
}

/// All of them in their order; empty where load came from the run's own process.
pub fn generators(record: &Record) -> Vec<GeneratorShare> {
    let slices = record.complete_trials().flat_map(Trial::measured);
    let parts: Vec<&GeneratorPart> = slices.flat_map(|slice| &slice.generators).collect();
    let known = record.generators.iter().map(|generator| generator.name.as_str());
    let lost = record.generators_lost.iter().map(|lost| lost.generator.as_str());
    let names = model::distinct(known.chain(parts.iter().map(|part| part.name.as_str())).chain(lost));
    let all: u64 = parts.iter().map(|part| part.sent).sum();
    names.into_iter().map(|name| share(record, name, &parts, all)).collect()
}

fn share(record: &Record, name: &str, parts: &[&GeneratorPart], all: u64) -> GeneratorShare {
    let parts: Vec<&GeneratorPart> = parts.iter().copied().filter(|part| part.name == name).collect();
    let told = record.generators.iter().find(|generator| generator.name == name);
    let requests: u64 = parts.iter().map(|part| part.sent).sum();
    let mean_of = |of: fn(&GeneratorPart) -> Option<f64>| mean(parts.iter().filter_map(|part| of(part)));
    let most_us =
        |of: fn(&GeneratorPart) -> u64| parts.iter().map(|part| of(part)).max().unwrap_or(0) as f64 / 1e3;
    let lost = record.generators_lost.iter().filter(|lost| lost.generator == name).count();
    GeneratorShare {
        name: name.to_owned(),
        host: told.map(|generator| generator.host.clone()),
        processors: told.map(|generator| generator.processors),
        requests,
        share: requests as f64 / all.max(1) as f64,
        busiest_share: mean_of(|part| part.busiest_share),
        late_us_max: most_us(|part| part.late_ns),
        clock_error_us_max: most_us(|part| part.clock_error_ns),
        steal_share: mean_of(|part| part.steal_share),
        lag_p99_us_max: parts.iter().filter_map(|part| part.lag_p99_ns).max().map(|ns| ns as f64 / 1e3),
        lost: lost as u32,
    }
}
