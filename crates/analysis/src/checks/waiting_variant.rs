//! Detects throughput that is not the limit of the services: neither side was busy all the time, so the load
//! waited for responses.
//!
//! These checks do not apply in three cases:
//! - in open loop, where services are not meant to be at their limit
//! - over a link, which is the intended limit
//! - to services that were not started, whose processes are unknown

use model::Metric;
use record::Slice;

use super::input::{CheckedRun, CheckedTrial, CheckedVariant};
use crate::metric::log_over;
use crate::only_if;
use crate::sums::{merged, total};
use crate::usage::{SATURATED_MIN, busy, cpus, generator_share, is_at_limit, wall_ns};

/// Share of connections opened per request above which connections are not kept.
const OPENED_SHARE_MAX: f64 = 0.1;

/// A variant in closed loop with neither its services nor the generator at the limit.
pub(super) struct WaitingVariant {
    /// Cores that the services kept busy.
    pub cores: f64,
    /// Cores that the services may use. `None` if none was started.
    pub of: Option<usize>,
    pub generator_share: f64,
    /// Concurrent requests, if the server allows that number.
    pub under_way: u32,
    /// Good responses per second.
    pub per_s: f64,
    /// CPU time per good response, in milliseconds.
    pub cpu_ms: f64,
    /// Median time from sent to done in milliseconds, if connections are kept.
    pub median_ms: Option<f64>,
    /// p10 and p90 of the time from sent to done.
    pub most_ms: Option<(f64, f64)>,
    /// Good responses of each connection in a window.
    pub by_window: f64,
    /// Whether throughput is computed from response times, so that the end of a window cuts nothing off.
    pub by_latency: bool,
}

/// Returns a variant that waits, if the experiment judges throughput.
pub(super) fn judged<'a>(run: &'a CheckedRun<'_>, variant: usize) -> Option<&'a WaitingVariant> {
    run.waiting(variant)
        .filter(|_| run.plan.judges_throughput())
}

impl WaitingVariant {
    /// `None` in open loop, if either side was at its limit, and for deployed services, whose distance from
    /// their limit is unknown.
    pub fn of(run: &CheckedRun<'_>, variant: &CheckedVariant<'_>) -> Option<WaitingVariant> {
        let is_local = variant.plan.load.network.is_none() && !variant.is_unseen();
        only_if(is_local && !run.is_open_loop() && variant.succeeds())?;
        let slices = &variant.slices;
        let trials = variant.trials.iter();
        let trials: Vec<&CheckedTrial<'_>> = trials
            .filter(|trial| trial.measured().next().is_some())
            .collect();
        let busy = |trial: &&CheckedTrial<'_>| {
            let slices: Vec<&Slice> = trial.measured().collect();
            busy(run.machine, trial.started, &slices)
        };
        let typical = stats::median(trials.iter().map(busy))?;
        only_if(typical < SATURATED_MIN && !is_at_limit(slices))?;
        let ok = total(slices, |slice| slice.counts.successful);
        let in_window = total(slices, |slice| slice.counts.successful_in_window);
        only_if(in_window > 0)?;
        // Each window after a pause opens its connections again.
        let asked = |slice: &Slice| u64::from(slice.connections) * u64::from(slice.turns);
        let again = total(slices, |slice| {
            slice.counts.connections_opened.saturating_sub(asked(slice))
        });
        let kept =
            again as f64 <= OPENED_SHARE_MAX * total(slices, |slice| slice.counts.sent) as f64;
        let latencies = merged(slices.iter().map(|slice| &slice.counts.latency));
        let exact = |q: f64| {
            latencies
                .quantile(q)
                .filter(|quantile| kept && quantile.is_exact())
        };
        let ms = |q: f64| Some(exact(q)?.ns() as f64 / 1e6);
        let connections = slices
            .iter()
            .map(|slice| slice.connections)
            .max()
            .filter(|count| *count > 0)?;
        let under_way = connections * variant.plan.load.protocol.lanes();
        let windows = total(slices, |slice| u64::from(slice.turns)).max(1);
        let cpu_ns = total(slices, Slice::services_cpu_ns) as f64;
        Some(WaitingVariant {
            cores: cpu_ns / wall_ns(slices),
            of: Some(cpus(trials.first()?.started)).filter(|of| *of > 0),
            generator_share: generator_share(slices),
            under_way,
            per_s: log_over(Metric::Throughput, slices.iter().copied())?.exp(),
            cpu_ms: cpu_ns / ok.max(1) as f64 / 1e6,
            median_ms: ms(0.5),
            most_ms: ms(0.1).zip(ms(0.9)),
            by_window: in_window as f64 / (f64::from(under_way) * windows as f64),
            by_latency: slices.iter().all(|slice| slice.waits),
        })
    }
}
