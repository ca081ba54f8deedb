//! What each service of a variant cost, and how many of its processes did the work: for showing, and for the check of workers.

use record::{ServiceUse, Trial};
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Ordering;

/// Part of the busiest process's CPU time from which on a process counts as serving.
pub const SERVING_SHARE_MIN: f64 = 0.1;

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
    let used = trials.iter().flat_map(|trial| trial.measured()).flat_map(|slice| &slice.services);
    let names = model::distinct(used.map(|used| used.service.as_str()));
    let slices = trials.iter().flat_map(|trial| trial.measured());
    let all_ns: u64 = slices.map(record::Slice::services_cpu_ns).sum();
    let cost = |name: &str| {
        let cpu_ns: u64 = trials.iter().flat_map(|trial| uses(trial, name)).map(|used| used.cpu_ns).sum();
        let peak = |trial: &&Trial| trial.ended.as_ref()?.peak_rss_bytes_by_service.get(name).copied();
        let processes = |trial: &&Trial| Some(uses(trial, name).last()?.processes);
        let cpu_share = (all_ns > 0).then(|| cpu_ns as f64 / all_ns as f64);
        ServiceCost {
            service: name.to_owned(),
            cpu_us_per_request: cpu_us_per_request.zip(cpu_share).map(|(all, share)| all * share),
            cpu_share,
            peak_rss_bytes: median(trials.iter().filter_map(peak)),
            processes: median(trials.iter().filter_map(processes)).unwrap_or(0),
            serving: median(trials.iter().filter_map(|trial| Some(Work::of(trial, name)?.serving()))),
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
        let serves = |ns: &&u64| **ns as f64 >= busiest * share;
        u32::try_from(self.cpu_ns.iter().filter(serves).count()).unwrap_or(u32::MAX)
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
    let services = trial.measured().flat_map(|slice| &slice.services);
    services.filter(move |used| used.service == name)
}

pub(crate) fn median<T: PartialOrd + Copy>(values: impl Iterator<Item = T>) -> Option<T> {
    let mut values: Vec<T> = values.collect();
    values.sort_by(|one, other| one.partial_cmp(other).unwrap_or(Ordering::Equal));
    values.get(values.len() / 2).copied()
}
