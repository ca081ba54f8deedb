//! Detects throughput that is not the limit of the services: neither side was busy all the time, so the load
//! waited for responses.
//!
//! These checks do not apply in three cases:
//! - in open loop, where services are not meant to be at their limit
//! - over a link, which is the intended limit
//! - to services that were not started, whose processes are unknown

use model::quantity::many;
use model::{Metric, Quantity, evidence};
use plan::{Comparison, Cpus};
use record::Slice;

use super::{CheckFinding, CheckedRun, CheckedTrial, CheckedVariant, either, void, warning};
use crate::metric::{BlockFigures, log_over};
use crate::only_if;
use crate::sums::{merged, total};
use crate::usage::{
    SATURATED_MIN, busy, confined_cores, cpus, generator_share, is_at_limit, wall_ns,
    wanted_confined,
};

/// Delay of Nagle's algorithm with a delayed acknowledgement, in milliseconds: 40 on Linux, plus the rest of
/// the response.
const DELAYED_ACK_MS: (f64, f64) = (38.0, 44.0);
/// Typical timer durations in programs, in milliseconds. Timers never fire early.
const ROUND_MS: [f64; 8] = [100.0, 200.0, 250.0, 500.0, 1000.0, 2000.0, 3000.0, 5000.0];
/// Maximum relative delay of a timer.
const ROUND_LATE_MAX: f64 = 0.03;
/// Maximum difference between the medians of two variants that wait for the same.
const STALL_APART_MAX: f64 = 0.01;
/// Maximum difference between throughput and connections over the median response time, if nearly all
/// connections wait for exactly that time. The responses cut off at the end of a window are counted
/// separately.
const STALL_LITTLE_MAX: f64 = 0.1;
/// Share of connections opened per request above which connections are not kept.
const OPENED_SHARE_MAX: f64 = 0.1;

/// Minimum spread of the responses of one connection in a window, so that windows cut them at random. In
/// responses: p10 to p90 of one, times the root of their number.
const STEPS_SPREAD_MIN: f64 = 1.0;

/// A variant in closed loop with neither its services nor the generator at the limit.
pub(super) struct WaitingVariant {
    /// Cores that the services kept busy.
    cores: f64,
    /// Cores that the services may use. `None` if none was started.
    of: Option<usize>,
    generator_share: f64,
    /// Concurrent requests, if the server allows that number.
    under_way: u32,
    /// Good responses per second.
    per_s: f64,
    /// CPU time per good response, in milliseconds.
    cpu_ms: f64,
    /// Median time from sent to done in milliseconds, if connections are kept.
    median_ms: Option<f64>,
    /// p10 and p90 of the time from sent to done.
    most_ms: Option<(f64, f64)>,
    /// Good responses of each connection in a window.
    by_window: f64,
    /// Whether throughput is computed from response times, so that the end of a window cuts nothing off.
    by_latency: bool,
}

/// Reports that a variant waited, unless its stall is reported.
pub(super) fn service_not_saturated(
    run: &CheckedRun<'_>,
    variant: &CheckedVariant<'_>,
) -> Option<CheckFinding> {
    let waiting = judged(run, variant.index)?;
    let stalls = |asked: &Comparison| {
        [asked.baseline, asked.candidate].contains(&variant.index)
            && same_stall(run, asked).is_some()
    };
    only_if(!run.plan.comparisons.iter().any(stalls))?;
    let WaitingVariant {
        cores,
        under_way,
        per_s,
        cpu_ms,
        generator_share,
        ..
    } = *waiting;
    let at_once = f64::from(under_way);
    let under_way = many(under_way.into(), "request");
    let of = waiting.of.map_or(" cores".to_owned(), |of| {
        format!(" of {}", many(of as u64, "core"))
    });
    let evidence = evidence!(
        "its services kept {cores}{of} busy and the generator {generator} of one, with {under_way} under way and \
         {throughput} responses: each took {took} (requests under way / throughput), of which they computed {computed}";
        cores = Quantity::number(cores), generator = Quantity::share(generator_share),
        took = Quantity::seconds(at_once / per_s), throughput = Quantity::per_s(per_s), computed = Quantity::us(cpu_ms * 1e3));
    let remedy = "its throughput is that of waiting (a timer, a lock, a disk, another machine, too few connections), so what requests cost hardly \
                  shows in it; raise load.connections until throughput rises no more, or judge `cpu_per_request`, or a quantile of the \
                  response time, which is in open loop";
    Some(warning(evidence, remedy))
}

/// Returns a variant that waits, if the experiment judges throughput.
fn judged<'a>(run: &'a CheckedRun<'_>, variant: usize) -> Option<&'a WaitingVariant> {
    run.waiting(variant)
        .filter(|_| run.plan.judges_throughput())
}

pub(super) fn same_stall(run: &CheckedRun<'_>, asked: &Comparison) -> Option<CheckFinding> {
    let (baseline, candidate) = (judged(run, asked.baseline)?, judged(run, asked.candidate)?);
    let (one, other) = (baseline.stall_ms()?, candidate.stall_ms()?);
    let within = |ms: f64| (DELAYED_ACK_MS.0..=DELAYED_ACK_MS.1).contains(&ms);
    let apart = (one / other).ln().abs();
    let round = ROUND_MS
        .iter()
        .find(|round| (**round..=**round * (1.0 + ROUND_LATE_MAX)).contains(&one));
    let nagle = within(one) && within(other);
    only_if(nagle || round.is_some() && apart <= STALL_APART_MAX)?;
    let remedy = if nagle {
        "40 ms is what Nagle's algorithm and a delayed acknowledgement take together: a response is written in two pieces, and the second \
         waits until the first is acknowledged. Set TCP_NODELAY in the service, or write head and body at once; until then this compares \
         one pause with itself"
    } else {
        "a time as round as this is a timer's (a sleep, a poll, a batch, a retry); until it is gone this compares one pause with itself"
    };
    let evidence = evidence!(
        "half of the responses took {baseline_took} and more in the one, {candidate_took} in the other, with services that were busy for \
         {baseline_busy} and {candidate_busy} cores: both waited for the same";
        baseline_took = Quantity::us(one * 1e3), candidate_took = Quantity::us(other * 1e3),
        baseline_busy = Quantity::number(baseline.cores), candidate_busy = Quantity::number(candidate.cores));
    Some(void(evidence, remedy))
}

/// Reports variants whose connections all begin a window together and get few, equally long responses in it.
/// Throughput then changes by a whole step, depending on whether the last of them arrives in time.
pub(super) fn throughput_in_steps(
    run: &CheckedRun<'_>,
    variant: &CheckedVariant<'_>,
) -> Option<CheckFinding> {
    let waiting = judged(run, variant.index)?;
    only_if(!waiting.by_latency)?;
    let (median, (low, high)) = (waiting.median_ms?, waiting.most_ms?);
    let (step, spread) = (
        1.0 / waiting.by_window,
        (high - low) / median * waiting.by_window.sqrt(),
    );
    only_if(step > run.plan.design.margin && spread < STEPS_SPREAD_MIN)?;
    let evidence = evidence!(
        "each connection got {responses} responses in a window, of {low} to {high} (p10 to p90), and all begin a window together: \
         throughput moves in steps of {step}";
        responses = Quantity::number(waiting.by_window), low = Quantity::us(low * 1e3), high = Quantity::us(high * 1e3),
        step = Quantity::share(step));
    let remedy = "a small difference in how long a response takes shows as a whole step or not at all, the same in every block; judge the \
                  response time itself, which is in open loop (`metric = \"p50\"` with a rate)";
    Some(warning(evidence, remedy))
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

    /// The median response time, if nearly every request takes exactly that time, as throughput confirms.
    fn stall_ms(&self) -> Option<f64> {
        // Connections begin a window together, and the response cut off at its end is not counted: up to one
        // per connection is missing.
        let alike = |ms: &f64| {
            let counted = self.per_s * ms / 1e3 / f64::from(self.under_way);
            let step = counted / self.by_window;
            (1.0 - STALL_LITTLE_MAX - step..=1.0 + STALL_LITTLE_MAX).contains(&counted)
        };
        self.median_ms.filter(alike)
    }
}

/// Maximum difference between the busy cores of two compared variants, as a share of the margin.
const CORES_APART_MAX: f64 = 0.5;
/// Confidence level of that difference.
const CORES_APART_LEVEL: f64 = 0.99;

/// Reports that one side had more CPU time, or would have used more.
pub(super) fn cores_differ(run: &CheckedRun<'_>, asked: &Comparison) -> Option<CheckFinding> {
    cores_lacked(run, asked).or_else(|| cores_apart(run, asked))
}

/// Number of additional cores above which confined services lack cores. Helper threads of Node.js with one
/// busy thread wanted up to 0.8, mostly for garbage collection. A second busy thread wants 1.
const LACKED_MIN: f64 = 0.9;
/// Maximum difference in wanted cores between two variants, if one of them lacks cores.
const LACKED_APART_MAX: f64 = 0.5;

/// Reports that the plan confines services to fewer cores than they want. With `auto` they would have got all
/// of them.
fn cores_lacked(run: &CheckedRun<'_>, asked: &Comparison) -> Option<CheckFinding> {
    let design = &run.plan.design;
    let judged = run.plan.judges_throughput();
    only_if(judged && design.cpus == Cpus::Separate && !run.is_open_loop())?;
    let pair = run.pair(asked)?;
    let cores = pair
        .iter()
        .filter_map(|of| confined_cores(run.machine, of.trials.first()?.started))
        .min()?;
    let wanted = |of: &CheckedVariant<'_>| {
        let of_trial = |trial: &CheckedTrial<'_>| {
            wanted_confined(run.machine, trial.started, trial.measured())
        };
        stats::median(of.trials.iter().filter_map(of_trial))
    };
    let (one, other) = (wanted(pair[0])?, wanted(pair[1])?);
    only_if(one.max(other) >= cores as f64 + LACKED_MIN)?;
    let apart = (one - other).abs() > LACKED_APART_MAX;
    let confined = many(cores as u64, "core");
    let evidence = evidence!(
        "services were confined to {confined} (cpus = \"separate\"), and wanted {candidate} in the candidate and {baseline} in the baseline";
        candidate = Quantity::number(other), baseline = Quantity::number(one));
    let remedy = if apart {
        "threads and processes that share these cores gain nothing by each other, which hides what the one variant would gain; leave out \
         `cpus` (--cpus), use a machine with more cores, or judge `cpu_per_request` alone"
    } else {
        "both want about as many, so they compare on these cores; with more of them the difference may be another one. Leave out `cpus` \
         (--cpus) to give them all cores of this machine"
    };
    Some(either(apart, evidence, remedy))
}

/// Reports that one side had more CPU time, if throughput is judged per core-second.
fn cores_apart(run: &CheckedRun<'_>, asked: &Comparison) -> Option<CheckFinding> {
    let design = &run.plan.design;
    only_if(
        run.figures.first()?.per_core
            && design.metrics().any(|metric| metric == Metric::Throughput),
    )?;
    let (metric, one, other) = (Metric::Throughput, asked.baseline, asked.candidate);
    let apart = |of: &BlockFigures| {
        Some(of.plain_log_ratio(metric, one, other)? - of.log_ratio(metric, one, other)?)
    };
    let apart: Vec<f64> = run.figures.iter().filter_map(apart).collect();
    let critical_t = stats::plain_t(apart.len() as u32, CORES_APART_LEVEL)?;
    let mean = stats::MeanInterval::of(&apart, critical_t)?;
    let large = mean.value.abs() > CORES_APART_MAX * design.margin.ln_1p();
    let evidence = evidence!(
        "throughput is judged per core-second, and the candidate's services had {share} of the cores' time that the baseline's had";
        share = Quantity::share(mean.value.exp()));
    let remedy = "find out what the one waits for, or who took its cores. The report shows throughput per second of the clock as well; with \
                  `per_core = false` in [design] the verdict is about that";
    (large && (mean.low > 0.0 || mean.high < 0.0)).then(|| warning(evidence, remedy))
}
