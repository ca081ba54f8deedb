//! Measurements of one variant over all complete blocks, and the parts of services and generators in them.
//! For display, never for comparison.

use std::collections::BTreeMap;

use model::RequestOutcome;
use plan::Metric;
use record::{
    EndpointCounts, ErrorCount, GeneratorPart, Record, ServiceUse, Slice, Trial, TrialStarted,
};
use schemars::JsonSchema;
use serde::Serialize;
use stats::{Interval, Latencies};

use crate::failure::{self, NoSuccess};
use crate::metric::{BlockFigures, is_once, is_reported};
use crate::sums::{
    complete, counted, few_merged, geometric_mean, mean, measured, merged, middle_count, outcome,
    total,
};
use crate::usage::is_unseen;

/// Confidence level of the interval of the share of failed requests.
const FAILED_LEVEL: f64 = 0.95;
/// Minimum CPU time of a serving process, relative to the busiest process.
const SERVING_SHARE_MIN: f64 = 0.1;

/// Figures of one variant.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct VariantFigures {
    /// Name of the variant.
    pub name: String,
    /// Expected responses per second: geometric mean over trials. In open loop this is the given rate, if the
    /// variant kept up.
    pub throughput_per_s: Option<f64>,
    /// CPU time of all services per expected response in microseconds: geometric mean over trials.
    pub cpu_us_per_request: Option<f64>,
    /// CPU time per expected response of each service, in microseconds.
    pub service_cpu_us_per_request: BTreeMap<String, f64>,
    /// Cost of each service, in start order.
    pub services: Vec<ServiceCost>,
    /// Average number of processor cores that the services kept busy.
    pub busy_cores: Option<f64>,
    /// Peak resident memory of the services in bytes: median over trials.
    pub peak_rss_bytes: Option<u64>,
    /// Quantiles of the response time in open loop, as far as every trial has enough requests.
    pub response_time: Vec<ResponseTime>,
    /// Average body bytes per response on the wire.
    pub body_bytes_per_response: Option<f64>,
    /// Requests sent in measured slices. In open loop, requests due.
    pub requests: u64,
    /// Requests that did not end in an expected response.
    pub failed: u64,
    /// Share of requests that did not end in an expected response. `None` without requests.
    pub failed_share: Option<f64>,
    /// Wilson's 95 % interval of that share, which assumes independent requests. If failures come in bursts
    /// it is too narrow. It does not compare variants.
    pub failed_interval: Option<Interval>,
    /// Requests abandoned after the timeout.
    pub timed_out: u64,
    /// Errors by phase and cause.
    pub errors: Vec<ErrorCount>,
    /// Responses by status code.
    pub status: BTreeMap<u16, u64>,
    /// Results by request. Empty if the load has one request.
    pub endpoints: Vec<EndpointFigures>,
    /// Outcome of the requests, if none succeeded.
    pub no_success: Option<NoSuccess>,
    /// Each metric that is not a quantile: geometric mean over trials, or the median for metrics with one
    /// value per trial.
    #[serde(skip)]
    pub values: Vec<(Metric, f64)>,
}

/// Results of one of several requests.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EndpointFigures {
    /// Name of the request.
    pub name: String,
    /// Requests sent in measured slices.
    pub sent: u64,
    /// Expected responses.
    pub successful: u64,
    /// Requests sent that did not end in an expected response.
    pub failed: u64,
    /// Expected responses, including the drain, per second of the windows. `None` without a window.
    pub throughput_per_s: Option<f64>,
}

/// A quantile of the response time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct ResponseTime {
    /// The metric of the quantile.
    pub metric: Metric,
    /// The quantile in µs: geometric mean over trials.
    pub us: f64,
    /// Whether the value is a lower bound, because requests of a trial were abandoned or never sent.
    pub at_least: bool,
}

impl VariantFigures {
    /// Summarizes a variant by its index in the plan.
    pub(crate) fn of(record: &Record, blocks: &[BlockFigures], index: usize) -> VariantFigures {
        let trials: Vec<&Trial> = complete(record, index).collect();
        let slices: Vec<&Slice> = trials.iter().flat_map(|trial| trial.measured()).collect();
        let sum = |of: fn(&Slice) -> u64| total(&slices, of);
        let values = |metric| {
            blocks
                .iter()
                .filter_map(move |block| block.value(metric, index))
        };
        let mean = |metric| geometric_mean(values(metric));
        // Deployed services have responses but no process data.
        let is_started = !is_unseen(
            &record.header.plan.variants[index],
            trials.iter().map(|of| &of.started),
        );
        let value = |metric: Metric| match is_once(metric) {
            true => stats::median(values(metric)).filter(|_| is_started),
            false => mean(metric),
        };
        let amounts = Metric::ALL
            .iter()
            .copied()
            .filter(|metric| metric.quantile().is_none());
        let per = |amount: u64, of: u64| (of > 0).then(|| amount as f64 / of as f64);
        let errors = slices.iter().flat_map(|slice| &slice.counts.errors);
        let errors = counted(errors.map(|of| ((of.phase, of.cause), of.count))).into_iter();
        let outcome @ RequestOutcome {
            due: requests,
            failed,
        } = outcome(&slices);
        VariantFigures {
            name: record.header.plan.variants[index].name.clone(),
            throughput_per_s: mean(Metric::Throughput),
            cpu_us_per_request: mean(Metric::CpuPerRequest),
            service_cpu_us_per_request: service_cpu(&slices),
            services: costs(&trials, mean(Metric::CpuPerRequest)),
            busy_cores: per(
                sum(Slice::services_cpu_ns),
                sum(|slice| slice.counts.wall_ns()),
            )
            .filter(|_| is_started),
            peak_rss_bytes: median_bytes(
                trials
                    .iter()
                    .filter_map(|t| Some(t.ended.as_ref()?.peak_rss_bytes)),
            )
            .filter(|_| is_started),
            response_time: Metric::latencies()
                .filter(|metric| is_reported(record, *metric))
                .filter_map(|of| response_time(blocks, index, of))
                .collect(),
            body_bytes_per_response: per(
                sum(|of| of.counts.body_bytes),
                sum(|of| of.counts.responses),
            ),
            requests,
            failed,
            failed_share: outcome.failed_share(),
            failed_interval: stats::wilson(failed, requests, FAILED_LEVEL),
            timed_out: sum(|slice| slice.counts.timed_out),
            errors: errors
                .map(|((phase, cause), count)| ErrorCount {
                    phase,
                    cause,
                    count,
                })
                .collect(),
            status: counted(
                slices
                    .iter()
                    .flat_map(|slice| &slice.counts.status)
                    .map(|(of, n)| (*of, *n)),
            ),
            endpoints: endpoints(&slices),
            no_success: failure::measured(record, index),
            values: amounts
                .filter_map(|metric| Some((metric, value(metric)?)))
                .collect(),
        }
    }
}

/// `None` if a trial has too few requests, because the mean of the others would be a different quantity.
fn response_time(blocks: &[BlockFigures], index: usize, metric: Metric) -> Option<ResponseTime> {
    let measured = blocks
        .iter()
        .filter(|block| block.variants[index].is_some());
    let samples = measured
        .map(|block| block.sample(metric, index))
        .collect::<Option<Vec<_>>>()?;
    let us = geometric_mean(samples.iter().map(|sample| sample.value))?;
    Some(ResponseTime {
        metric,
        us,
        at_least: samples.iter().any(|sample| sample.at_least),
    })
}

fn service_cpu(slices: &[&Slice]) -> BTreeMap<String, f64> {
    let ok = total(slices, |slice| slice.counts.successful);
    let used = slices.iter().flat_map(|slice| &slice.services);
    let cpu = counted(used.map(|used| (used.service.clone(), used.cpu_ns))).into_iter();
    cpu.filter(|_| ok > 0)
        .map(|(name, ns)| (name, ns as f64 / ok as f64 / 1e3))
        .collect()
}

fn endpoints(slices: &[&Slice]) -> Vec<EndpointFigures> {
    let window_ns = total(slices, |slice| slice.counts.window_ns);
    let counts = slices.iter().flat_map(|slice| &slice.counts.endpoints);
    let endpoint = |(name, all): (&str, Vec<&EndpointCounts>)| {
        let sum = |of: fn(&EndpointCounts) -> u64| all.iter().map(|counts| of(counts)).sum::<u64>();
        let successful = sum(|counts| counts.successful);
        EndpointFigures {
            name: name.to_owned(),
            sent: sum(|counts| counts.sent),
            successful,
            failed: sum(EndpointCounts::failed),
            throughput_per_s: (window_ns > 0).then(|| successful as f64 / window_ns as f64 * 1e9),
        }
    };
    model::grouped(counts.map(|counts| (counts.name.as_str(), counts)))
        .into_iter()
        .map(endpoint)
        .collect()
}

/// Times from sent to done of a variant by its index in the plan: one histogram for each complete block over
/// its measured slices. Packed, because there may be thousands.
///
/// In closed loop it follows from connections and throughput, and is no basis for a comparison.
pub fn latencies(record: &Record, index: usize) -> Vec<Latencies> {
    by_block(record, index, |slice| Some(&slice.counts.latency))
}

/// Times from due to done, per complete block. Empty histograms in closed loop.
pub fn responses(record: &Record, index: usize) -> Vec<Latencies> {
    by_block(record, index, |slice| {
        Some(&slice.counts.open.as_ref()?.response)
    })
}

fn by_block(record: &Record, index: usize, of: fn(&Slice) -> Option<&Latencies>) -> Vec<Latencies> {
    let all = |trial: &Trial| few_merged(trial.measured().filter_map(of));
    complete(record, index).map(all).collect()
}

/// Like [`latencies`], merged over all complete blocks.
pub fn latencies_together(record: &Record, index: usize) -> Latencies {
    merged(measured(record, index).map(|slice| &slice.counts.latency))
}

/// Like [`responses`], merged over all complete blocks.
pub fn responses_together(record: &Record, index: usize) -> Latencies {
    merged(measured(record, index).filter_map(|slice| Some(&slice.counts.open.as_ref()?.response)))
}

fn median_bytes(values: impl Iterator<Item = u64>) -> Option<u64> {
    stats::median(values.map(|bytes| bytes as f64)).map(|bytes| bytes.round() as u64)
}

/// One service of a variant, over all complete blocks.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ServiceCost {
    /// Name of the service.
    pub service: String,
    /// CPU time per expected response in microseconds: the variant's, split by `cpu_share`, so that services
    /// add up to it. `None` if no request succeeded.
    pub cpu_us_per_request: Option<f64>,
    /// Share of the CPU time of all services of the variant. `None` if they used none.
    pub cpu_share: Option<f64>,
    /// Peak resident memory in bytes, with shared pages of its processes counted once: median over trials.
    /// `None` if no trial ended.
    pub peak_rss_bytes: Option<u64>,
    /// Number of processes after the last measured slice: median over trials.
    pub processes: u32,
    /// Number of processes with at least a tenth of the busiest one's CPU time: median over trials.
    /// `None` without CPU time per process.
    pub serving: Option<u32>,
    /// Configured number of workers. `None` if none was configured.
    pub workers: Option<u32>,
}

/// Costs of the services of a variant's trials, in start order. `cpu_us_per_request` is for all services
/// together.
pub(crate) fn costs(trials: &[&Trial], cpu_us_per_request: Option<f64>) -> Vec<ServiceCost> {
    let slices = || trials.iter().flat_map(|trial| trial.measured());
    let used = slices().flat_map(|slice| &slice.services);
    let names = model::distinct(used.map(|used| used.service.as_str()));
    let all_ns: u64 = slices().map(Slice::services_cpu_ns).sum();
    let cost = |name: &str| {
        let cpu_ns: u64 = trials
            .iter()
            .flat_map(|trial| uses(trial.measured(), name))
            .map(|used| used.cpu_ns)
            .sum();
        let peak = |trial: &&Trial| {
            trial
                .ended
                .as_ref()?
                .peak_rss_bytes_by_service
                .get(name)
                .copied()
        };
        let processes = |trial: &&Trial| Some(uses(trial.measured(), name).last()?.processes);
        let cpu_share = (all_ns > 0).then(|| cpu_ns as f64 / all_ns as f64);
        ServiceCost {
            service: name.to_owned(),
            cpu_us_per_request: cpu_us_per_request
                .zip(cpu_share)
                .map(|(all, share)| all * share),
            cpu_share,
            peak_rss_bytes: median_bytes(trials.iter().filter_map(peak)),
            processes: middle_count(trials.iter().filter_map(processes)).unwrap_or(0),
            serving: middle_count(
                trials
                    .iter()
                    .filter_map(|trial| Some(WorkerShares::of(trial.measured(), name)?.serving())),
            ),
            workers: trials
                .iter()
                .find_map(|trial| workers(&trial.started, name)),
        }
    };
    names.into_iter().map(cost).collect()
}

/// Number of workers that a service of this trial was configured to run.
pub(crate) fn workers(trial: &TrialStarted, name: &str) -> Option<u32> {
    let mut services = trial.services.iter();
    services.find(|started| started.service == name)?.workers
}

/// Distribution of the work of a service over its processes, in one trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkerShares {
    /// CPU time in nanoseconds, busiest process first.
    cpu_ns: Vec<u64>,
}

impl WorkerShares {
    /// Sums the measured slices of a trial. `None` if they have no CPU time per process. Processes of a slice are
    /// identified only by rank, so the sums are by rank: the work of different workers in different slices
    /// counts for one process, the busiest at any time.
    pub fn of<'a>(measured: impl Iterator<Item = &'a Slice>, name: &str) -> Option<WorkerShares> {
        let mut cpu_ns: Vec<u64> = Vec::new();
        for used in uses(measured, name) {
            cpu_ns.resize(cpu_ns.len().max(used.cpu_by_process_ns.len()), 0);
            cpu_ns
                .iter_mut()
                .zip(&used.cpu_by_process_ns)
                .for_each(|(sum, more)| *sum += more);
        }
        (!cpu_ns.is_empty()).then_some(WorkerShares { cpu_ns })
    }

    /// Number of processes with at least a tenth of the busiest one's work.
    pub fn serving(&self) -> u32 {
        self.above(SERVING_SHARE_MIN)
    }

    /// Number of processes with at least this share of the busiest one's work.
    pub fn above(&self, share: f64) -> u32 {
        let busiest = self.cpu_ns.first().copied().unwrap_or(0) as f64;
        self.cpu_ns
            .iter()
            .filter(|ns| **ns as f64 >= busiest * share)
            .count() as u32
    }

    /// Shares of the busiest `processes` in their total, busiest first.
    pub fn shares(&self, processes: u32) -> Vec<f64> {
        let (all, _) = self.of_busiest(processes);
        self.cpu_ns
            .iter()
            .take(processes as usize)
            .map(|ns| *ns as f64 / all.max(1) as f64)
            .collect()
    }

    /// CPU time of the busiest `processes`, and of all.
    pub fn of_busiest(&self, processes: u32) -> (u64, u64) {
        (
            self.cpu_ns.iter().take(processes as usize).sum(),
            self.cpu_ns.iter().sum(),
        )
    }
}

fn uses<'a>(
    measured: impl Iterator<Item = &'a Slice>,
    name: &str,
) -> impl Iterator<Item = &'a ServiceUse> {
    measured
        .flat_map(|slice| &slice.services)
        .filter(move |used| used.service == name)
}

/// One generator's share of the measured load, over complete blocks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct GeneratorShare {
    /// Where it runs, such as `local 2`, `ssh://bench-1` or `kubernetes://bench/proofload-x7k2-3`.
    pub name: String,
    /// Host name of the machine. `None` if the generator has been replaced.
    pub host: Option<String>,
    /// Number of processors the generator may use. `None` if it has been replaced.
    pub processors: Option<u32>,
    /// Requests sent by the generator.
    pub requests: u64,
    /// Share of all generators' requests, 0 to 1.
    pub share: f64,
    /// CPU share of the busiest thread, 0 to 1, as the mean over slices.
    pub busiest_share: Option<f64>,
    /// Maximum delay of the window's start, in microseconds of the generator's clock.
    pub late_us_max: f64,
    /// Maximum error of that delay in either direction, from the clock comparison.
    pub clock_error_us_max: f64,
    /// Share of the machine's CPU time that the host gave to others, 0 to 1, as the mean over slices.
    pub steal_share: Option<f64>,
    /// Delay in sending requests for which a connection was free, at p99 of the worst slice, in microseconds.
    /// `None` in closed loop.
    pub lag_p99_us_max: Option<f64>,
    /// Number of times the generator was lost, including in discarded blocks.
    pub lost: u32,
}

/// All generators in order. Empty if load came from the run's own process.
pub fn generators(record: &Record) -> Vec<GeneratorShare> {
    let slices = record.complete_trials().flat_map(Trial::measured);
    let parts: Vec<&GeneratorPart> = slices.flat_map(|slice| &slice.generators).collect();
    let known = record
        .generators
        .iter()
        .map(|generator| generator.name.as_str());
    let lost = record
        .generators_lost
        .iter()
        .map(|lost| lost.generator.as_str());
    let names = model::distinct(
        known
            .chain(parts.iter().map(|part| part.name.as_str()))
            .chain(lost),
    );
    let all: u64 = parts.iter().map(|part| part.sent).sum();
    names
        .into_iter()
        .map(|name| share(record, name, &parts, all))
        .collect()
}

fn share(record: &Record, name: &str, parts: &[&GeneratorPart], all: u64) -> GeneratorShare {
    let parts: Vec<&GeneratorPart> = parts
        .iter()
        .copied()
        .filter(|part| part.name == name)
        .collect();
    let told = record
        .generators
        .iter()
        .find(|generator| generator.name == name);
    let requests: u64 = parts.iter().map(|part| part.sent).sum();
    let mean_of =
        |of: fn(&GeneratorPart) -> Option<f64>| mean(parts.iter().filter_map(|part| of(part)));
    let most_us = |of: fn(&GeneratorPart) -> u64| {
        parts.iter().map(|part| of(part)).max().unwrap_or(0) as f64 / 1e3
    };
    let lost = record
        .generators_lost
        .iter()
        .filter(|lost| lost.generator == name)
        .count();
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
        lag_p99_us_max: parts
            .iter()
            .filter_map(|part| part.lag_p99_ns)
            .max()
            .map(|ns| ns as f64 / 1e3),
        lost: lost as u32,
    }
}
