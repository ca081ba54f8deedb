//! Checks of the load generator: at its limit, late, or with a rate that was not kept. Also processors shared
//! with services, and generators that were lost or did not begin together.

use std::collections::{BTreeMap, BTreeSet};

use model::quantity::{decimal, many};
use model::{Finding, Grade, Quantity, evidence};
use plan::Comparison;
use record::{EndReason, GeneratorLost, GeneratorPart, OpenLoop, Slice};
use stats::Latencies;

use super::run::BLOCKS_MIN;
use super::{CheckFinding, CheckedRun, CheckedTrial, CheckedVariant, either, warning};
use crate::capacity::has_connections;
use crate::sums::{mean, merged};
use crate::usage::{
    GENERATOR_SHARE_MAX, QUEUED_SHARE_MAX, generator_share, most, services_limited, wall_ns,
};
use crate::window::MeasuredWindow;
use crate::{NAMED_MAX, few, only_if};

/// Minimum share of the due requests that must be sent in the window.
pub(crate) const SENT_SHARE_MIN: f64 = 0.99;
/// Maximum delay of the client for one request in a hundred that does not matter, in nanoseconds.
pub(crate) const LAG_MAX_NS: u64 = 200_000;
/// Maximum share of the client's delay in the response time, both at p99.
pub(crate) const LAG_SHARE_MAX: f64 = 0.1;
/// Share above which mainly the client was measured.
const LAG_SHARE_VOID: f64 = 0.5;
/// Maximum share of the time that generator threads may wait for a core. Above it, client and server probably
/// share one.
const RUN_DELAY_SHARE_MAX: f64 = 0.05;
/// Minimum tolerated delay of a generator after the first one, in nanoseconds, for any window. Shorter delays
/// also occur when threads wait for a processor on a machine that is not quite idle.
const LATE_MIN_NS: u64 = 5_000_000;
/// Tolerated delay as a share of the window. The missing load is at most the same share.
const LATE_SHARE: f64 = 0.01;

/// Reports that the busiest thread of all, or of one of several generators, was at the limit of its core.
pub(super) fn generator_saturated(
    run: &CheckedRun<'_>,
    variant: &CheckedVariant<'_>,
) -> Option<CheckFinding> {
    let (generator, share) = busiest(&variant.slices);
    only_if(share > GENERATOR_SHARE_MAX)?;
    let busy = variant.sum(Slice::services_cpu_ns) as f64 / wall_ns(&variant.slices);
    // A busy client does not affect CPU per request. In open loop its effects are reported by `client_late`.
    let judged = run.plan.judges_throughput();
    // The use of a service that was not started is unknown. A client at its limit then counts as the limit.
    let unknown = variant.is_unseen();
    let limited = |trial: &CheckedTrial<'_>| {
        let slices: Vec<&Slice> = trial.measured().collect();
        services_limited(run.machine, trial.started, &slices)
    };
    let busy_services = most(variant.trials.iter().map(limited));
    let idle = judged && (unknown || !busy_services) && !run.is_open_loop();
    let services = match unknown {
        true => "CPU of the services is unknown, because they ran already".to_owned(),
        false => format!("the services kept {} cores busy", decimal(busy, 2)),
    };
    let thread = generator.map_or("a generator thread".to_owned(), |name| {
        format!("a thread of {name}")
    });
    let remedy = if run.is_open_loop() {
        "a client at its limit sees responses late, and response times look longer; give it more threads (load.threads) and cores"
    } else if idle {
        "the client was the limit, so this is its throughput and not the service's; give it more threads (load.threads) and cores"
    } else {
        "the service was at its limit too, or throughput is not judged; yet a generator with a core to spare would tell more"
    };
    let evidence = evidence!("{thread} was busy {busy_share} of the time while {services}";
        busy_share = Quantity::share(share));
    Some(either(idle, evidence, remedy))
}

/// Name of the busiest of several generators, and the share of its core that its busiest thread used, as the
/// mean over slices.
fn busiest<'a>(slices: &[&'a Slice]) -> (Option<&'a str>, f64) {
    let mut of_each: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for part in slices.iter().flat_map(|slice| &slice.generators) {
        of_each
            .entry(&part.name)
            .or_default()
            .extend(part.busiest_share);
    }
    let means = of_each
        .into_iter()
        .filter_map(|(name, shares)| Some((Some(name), mean(shares)?)));
    let busiest = means.max_by(|(_, one), (_, other)| one.total_cmp(other));
    busiest.unwrap_or_else(|| (None, generator_share(slices)))
}

fn opens<'a>(variant: &CheckedVariant<'a>) -> Vec<&'a OpenLoop> {
    variant
        .slices
        .iter()
        .filter_map(|slice| slice.counts.open.as_deref())
        .collect()
}

/// Whether a conclusion rests on response times: a wrong one only qualifies CPU per request.
fn judges_latency(run: &CheckedRun<'_>) -> bool {
    run.plan
        .judged_metrics()
        .iter()
        .any(|metric| metric.quantile().is_some())
}

/// Reports that due requests were not sent, or waited for a connection, so that the queue was measured.
pub(super) fn rate_not_kept(
    run: &CheckedRun<'_>,
    variant: &CheckedVariant<'_>,
) -> Option<CheckFinding> {
    let opens = opens(variant);
    let sum = |of: fn(&OpenLoop) -> u64| opens.iter().map(|open| of(open)).sum::<u64>();
    let due = sum(|open| open.intended);
    only_if(due > 0)?;
    let share = |part: u64| part as f64 / due as f64;
    let (sent, queued) = (
        share(sum(|open| open.sent_in_window)),
        share(sum(|open| open.queued)),
    );
    only_if(sent < SENT_SHARE_MIN || queued > QUEUED_SHARE_MAX)?;
    // Around its capacity a service is overloaded at times.
    let record = run.record();
    let has_connections = || record.is_some_and(|record| has_connections(record, variant.index));
    only_if(queued <= QUEUED_SHARE_MAX || !has_connections())?;
    let rate = record.and_then(|record| record.rate.as_ref());
    let capacity = rate.and_then(|rate| rate.capacities_per_s.get(variant.index));
    let capacity = capacity
        .filter(|per_s| **per_s > 0.0)
        .map(|per_s| Quantity::per_s(*per_s));
    let capacity = capacity
        .map(|per_s| format!("; it saturates at {per_s}"))
        .unwrap_or_default();
    let evidence = evidence!("of {due} due {sent} were sent in time, and {queued} found no connection free{capacity}";
        due = Quantity::per_s(due as f64 / (variant.sum(|slice| slice.counts.window_ns) as f64 / 1e9)),
        sent = Quantity::share(sent), queued = Quantity::share(queued));
    if run.slice().is_some() {
        let remedy = if queued > QUEUED_SHARE_MAX {
            "requests waited for a connection, which the response time contains: more connections, or the service is overloaded"
        } else {
            "the client's own lateness is part of the response times: give it a core of its own, or more threads"
        };
        return Some(warning(evidence, remedy));
    }
    let remedy = if queued > QUEUED_SHARE_MAX {
        "it was overloaded or had too few connections, so this is the length of a queue and not its latency; set load.connections higher, \
         or design.rate lower"
    } else {
        "connections were free and the client did not send; give it a core of its own, or more threads (load.threads)"
    };
    // A capacity needs all requests of its rate, and counts windows with too few connections as bounds.
    let is_capacity = !run.plan.design.slo.is_empty();
    let is_void = if is_capacity {
        queued <= QUEUED_SHARE_MAX
    } else {
        judges_latency(run)
    };
    Some(either(is_void, evidence, remedy))
}

/// Reports that the client had a free connection and sent late, which is part of the response time.
pub(super) fn client_late(
    run: &CheckedRun<'_>,
    variant: &CheckedVariant<'_>,
) -> Option<CheckFinding> {
    let opens = opens(variant);
    let p99_ns = |latencies: Latencies| {
        latencies
            .quantile(0.99)
            .filter(|_| latencies.resolves(0.99))
            .map(stats::Quantile::ns)
    };
    let lag_ns = p99_ns(merged(opens.iter().map(|open| &open.schedule_lag)))?;
    let response_ns = p99_ns(merged(opens.iter().map(|open| &open.response)))?;
    let share = lag_ns as f64 / response_ns.max(1) as f64;
    only_if(lag_ns > LAG_MAX_NS && share > LAG_SHARE_MAX)?;
    let parts = variant.slices.iter().flat_map(|slice| &slice.generators);
    let latest = parts
        .filter_map(|part| Some((part.lag_p99_ns?, &part.name)))
        .max();
    let told = |(ns, name)| format!("; {name} up to {} in a slice", Quantity::ns(ns));
    let latest = latest.map(told).unwrap_or_default();
    let evidence = evidence!(
        "with a connection free the client sent up to {lag} late (p99), {part} of the response time of {response} (p99){latest}";
        lag = Quantity::ns(lag_ns), part = Quantity::share(share), response = Quantity::ns(response_ns));
    let rather_the_client = share > LAG_SHARE_VOID;
    let remedy = if rather_the_client {
        "what was measured is rather the client than the service; give it a core of its own, or end what else runs on this machine"
    } else {
        "the client's lateness is part of every figure, for all variants alike, and makes differences look smaller; give it a core of \
         its own"
    };
    Some(either(
        rather_the_client && judges_latency(run),
        evidence,
        remedy,
    ))
}

/// Reports that generator and services share processors: one finding for all variants, with the largest share
/// that the client took. It is a warning if it may change the result, because the client needs more time for
/// responses of one variant than of another. Otherwise it is reported only for one processor, as a note.
pub(super) fn cores_shared(run: &CheckedRun<'_>) -> Option<CheckFinding> {
    let trial = run
        .complete_trials()
        .find(|trial| trial.started.cpus_shared)?;
    let services: BTreeSet<usize> = trial
        .started
        .services
        .iter()
        .flat_map(|service| &service.cpus)
        .copied()
        .collect();
    let generator = &trial.started.generator_cpus;
    // Services can use all these processors, the client only its own.
    let processors = services.len().max(generator.len()).max(1);
    let share = |variant: &CheckedVariant<'_>| {
        let used_ns = variant.sum(Slice::client_cpu_here_ns) as f64;
        used_ns / (wall_ns(&variant.slices) * processors as f64)
    };
    let apart = || {
        run.plan
            .comparisons
            .iter()
            .filter_map(|asked| client_apart(run, asked))
            .reduce(f64::max)
    };
    let may_change_result = apart().is_some_and(|apart| apart > run.plan.design.margin / 2.0);
    only_if(processors == 1 || run.plan.comparisons.is_empty() || may_change_result)?;
    let taken = run
        .variants
        .iter()
        .map(|variant| (share(variant), variant.name));
    let most = taken
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .filter(|(share, _)| *share > 0.0);
    let told = |(share, name)| {
        format!(
            ": the client took up to {} of their time ({name})",
            Quantity::share(share)
        )
    };
    let most = most.map(told).unwrap_or_default();
    let list = |cpus: Vec<&usize>| {
        cpus.into_iter()
            .map(usize::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let (on, by) = (
        list(services.iter().collect()),
        list(generator.iter().collect()),
    );
    let place = if on.is_empty() {
        String::new()
    } else {
        format!(" (services on {on}, generator on {by})")
    };
    let remedy = if processors > 1 {
        "the service has that much less time at most, and a variant whose responses cost the client less gains from it; use a machine with more \
         cores, or `cpus = \"separate\"` if the variants use the same number of cores"
    } else {
        "the service has that much less time at most; use a machine with two cores or more"
    };
    let grade = if may_change_result {
        Grade::Warning
    } else {
        Grade::Note
    };
    let evidence = format!("generator and services shared processors{place}{most}");
    Some(Finding::new((), grade, evidence, remedy))
}

/// Reports that the generator's threads waited for a core during a slice.
pub(super) fn client_waited(window: &MeasuredWindow<'_>) -> Option<CheckFinding> {
    let share = window.slice.counts.generator.waiting_share();
    let share = Quantity::share(share.filter(|share| *share > RUN_DELAY_SHARE_MAX)?.min(1.0));
    let evidence = evidence!("the client waited for a core for {share} of the time"; share = share);
    let remedy = "something else ran on it, perhaps the service, and latencies contain the wait";
    Some(Finding::new((), Grade::Note, evidence, remedy))
}

/// Difference in the client's time per response between the variants of a comparison, as a share of one
/// processor at the higher throughput.
fn client_apart(run: &CheckedRun<'_>, asked: &Comparison) -> Option<f64> {
    let per_response = |index: usize| {
        let variant = run.variants.iter().find(|variant| variant.index == index)?;
        let (ok, wall_s) = (
            variant.sum(|slice| slice.counts.successful),
            wall_ns(&variant.slices) / 1e9,
        );
        only_if(ok > 0 && wall_s > 0.0)?;
        Some((
            variant.sum(Slice::client_cpu_here_ns) as f64 / 1e9 / ok as f64,
            ok as f64 / wall_s,
        ))
    };
    let ((one_s, one_per_s), (other_s, other_per_s)) =
        per_response(asked.baseline).zip(per_response(asked.candidate))?;
    Some((one_s - other_s).abs() * one_per_s.max(other_per_s))
}

/// Reports lost generators. Measurements in progress were discarded, so the figures are valid if enough
/// remain.
pub(super) fn generator_lost(run: &CheckedRun<'_>) -> Option<CheckFinding> {
    let lost = run.generators_lost;
    only_if(!lost.is_empty())?;
    let failed = matches!(run.end(), Some(EndReason::GeneratorFailed(_)));
    let too_few = run.complete_blocks().count() < BLOCKS_MIN && !run.plan.comparisons.is_empty();
    let told = |lost: &GeneratorLost| match lost.block {
        0 => format!("before the first block {}", lost.why),
        block => format!("in block {block} {}", lost.why),
    };
    let told = few(lost.iter().map(told), NAMED_MAX, "; ");
    let times = if lost.len() == 1 {
        "once".to_owned()
    } else {
        many(lost.len() as u64, "time")
    };
    let evidence = evidence!("a load generator was lost {times}: {told}");
    let evidence = evidence.with([("times", Quantity::count(lost.len() as u64))]);
    let remedy = if failed {
        "the run ended with it; see on its machine whether memory ran out (dmesg), somebody ended it, or the network broke, and run again"
    } else {
        "the blocks in which that happened count for nothing, and others took their places, so that the result stands; see on its machine \
         whether memory ran out (dmesg), somebody ended it, or the network broke"
    };
    Some(either(failed && too_few, evidence, remedy))
}

/// A generator that did not begin with the others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LateBegin<'a> {
    /// The generator.
    pub part: &'a GeneratorPart,
    /// Delay after the first generator, minus the clock error, in nanoseconds.
    pub by_ns: u64,
    /// Length of the window, in nanoseconds.
    pub window_ns: u64,
}

/// Returns the generator of a slice that certainly began too late, the latest of several. `None` if all began
/// together.
pub fn late_begin(slice: &Slice) -> Option<LateBegin<'_>> {
    let window_ns = slice.counts.window_ns;
    let by_ns =
        |part: &GeneratorPart| after_first_ns(slice, part).saturating_sub(part.clock_error_ns);
    let late = slice.generators.iter().map(|part| LateBegin {
        part,
        by_ns: by_ns(part),
        window_ns,
    });
    late.max_by_key(|late| late.by_ns)
        .filter(|late| late.by_ns > late_max_ns(window_ns))
}

fn after_first_ns(slice: &Slice, part: &GeneratorPart) -> u64 {
    let first_ns = slice
        .generators
        .iter()
        .map(|part| part.late_ns)
        .min()
        .unwrap_or(0);
    part.late_ns.saturating_sub(first_ns)
}

fn late_max_ns(window_ns: u64) -> u64 {
    LATE_MIN_NS.max((window_ns as f64 * LATE_SHARE) as u64)
}

/// Reports that generators did not begin together, or that it is unknown whether they did.
pub(super) fn generators_apart(run: &CheckedRun<'_>) -> Vec<CheckFinding> {
    began_late(run)
        .into_iter()
        .chain(clocks_unknown(run))
        .collect()
}

/// Measured slices with several generators in finished blocks. Includes dropped blocks, because the reason is
/// reported here.
fn shared_slices<'a>(run: &CheckedRun<'a>) -> Vec<&'a Slice> {
    let ended = run.blocks.iter().filter(|block| block.seconds.is_some());
    let slices = ended
        .flat_map(|block| &block.trials)
        .flat_map(CheckedTrial::measured);
    slices.filter(|slice| slice.generators.len() > 1).collect()
}

fn began_late(run: &CheckedRun<'_>) -> Option<CheckFinding> {
    let slices = shared_slices(run);
    let late: Vec<LateBegin<'_>> = slices
        .iter()
        .filter_map(|slice| late_begin(slice))
        .collect();
    let worst = late.iter().max_by_key(|late| late.by_ns)?;
    let counted = run
        .complete_trials()
        .flat_map(CheckedTrial::measured)
        .filter(|of| of.generators.len() > 1);
    let missing = mean(counted.map(missing_share)).unwrap_or(0.0);
    let (name, of) = (&worst.part.name, many(slices.len() as u64, "slice"));
    let evidence = evidence!(
        "{name} began {late} after the others in a window of {window}, and in {hit} of {of} some generator was late; of the load \
         that counts {missing_part} is missing for it";
        hit = Quantity::count(late.len() as u64), late = Quantity::ns(worst.by_ns), window = Quantity::ns(worst.window_ns),
        missing_part = Quantity::share(missing));
    let remedy = if missing > LATE_SHARE {
        "what was measured is for too long not the load that was asked for; end what else runs on that machine, or leave it out"
    } else {
        "blocks with such slices are dropped while there is time for others; end what else runs there, or set longer slices (design.slice)"
    };
    Some(either(missing > LATE_SHARE, evidence, remedy))
}

/// Share of a slice's load that is missing because generators were late. All generators have about the same
/// load.
fn missing_share(slice: &Slice) -> f64 {
    let missing_ns: u64 = slice
        .generators
        .iter()
        .map(|part| after_first_ns(slice, part))
        .sum();
    missing_ns as f64
        / (slice.generators.len().max(1) as f64 * slice.counts.window_ns.max(1) as f64)
}

fn clocks_unknown(run: &CheckedRun<'_>) -> Option<CheckFinding> {
    let slices = shared_slices(run);
    let worst = slices.iter().filter_map(|slice| {
        let worst = slice
            .generators
            .iter()
            .max_by_key(|part| part.clock_error_ns)?;
        Some((worst, slice.counts.window_ns))
    });
    let hit: Vec<(&GeneratorPart, u64)> = worst
        .filter(|(part, window_ns)| part.clock_error_ns > late_max_ns(*window_ns))
        .collect();
    let (worst, window_ns) = *hit.iter().max_by_key(|(part, _)| part.clock_error_ns)?;
    let (name, of) = (&worst.name, slices.len());
    Some(warning(
        evidence!("the clock of {name} could be compared with ours to ±{error} only, in windows of {window}; so it went in {hit} of {of} \
                   slices";
            error = Quantity::ns(worst.clock_error_ns), window = Quantity::ns(window_ns), hit = Quantity::count(hit.len() as u64)),
        "whether it began with the others is not known: the network to it is slow, or its machine is busy; use a nearer machine, or longer \
         slices (design.slice)",
    ))
}
