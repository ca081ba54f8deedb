//! Throughput that is not the services' limit: nobody was at work all the time, so responses were waited for.
//!
//! Silent in open loop, where services are not meant to be at their limit, over a link, which is the limit that was asked for, and of services
//! that were not started, of whose processes nothing is known.

use std::collections::BTreeSet;

use model::{Check, Finding, Metric, Quantity, evidence};
use record::{Record, ServiceUse, Slice, Trial};

use super::{GENERATOR_SHARE_MAX, Variant, succeeding, total, wall_ns};
use crate::variant::merged;

/// Part of what services could have used below which they were not what limited the throughput. Services at their limit used 0.88
/// of it and more here, whatever the host took; what lies between is left alone.
pub const SATURATED_MIN: f64 = 0.7;
/// Part of the time for which services may be held back by a quota before that is their limit.
pub const THROTTLED_MAX: f64 = 0.01;
/// The wait of Nagle's algorithm for an acknowledgement that is delayed, in milliseconds: 40 on Linux, and what the rest takes.
pub const DELAYED_ACK_MS: (f64, f64) = (38.0, 44.0);
/// Times that people write into programs, in milliseconds. Timers are never early.
pub const ROUND_MS: [f64; 8] = [100.0, 200.0, 250.0, 500.0, 1000.0, 2000.0, 3000.0, 5000.0];
/// By how much a timer may be late.
pub const ROUND_LATE_MAX: f64 = 0.03;
/// By how much the medians of two variants may differ that wait for the same.
pub const STALL_APART_MAX: f64 = 0.01;
/// By how much throughput may differ from connections over the median response where nearly all of them wait just so long, beside what
/// the end of a window cuts off.
pub const STALL_LITTLE_MAX: f64 = 0.1;
/// Connections opened, as a part of the requests, above which they are not kept.
pub const OPENED_SHARE_MAX: f64 = 0.1;

/// Responses of one connection in a window have to spread by so many responses together (p10 to p90 of one, times the root of their
/// number) for windows to cut them anywhere.
pub const STEPS_SPREAD_MIN: f64 = 1.0;

/// A variant in closed loop whose services were not at their limit, nor the generator.
struct Waiting<'a> {
    index: usize,
    name: &'a str,
    /// Cores that all its services kept busy.
    cores: f64,
    /// Cores that they may use; `None` in records that do not say.
    of: Option<usize>,
    generator_share: f64,
    connections: u32,
    /// Good responses per second.
    per_s: f64,
    /// CPU time for one of them in milliseconds.
    cpu_ms: f64,
    /// The median time from sent to done in milliseconds, where connections are kept.
    median_ms: Option<f64>,
    /// p10 and p90 of it.
    most_ms: Option<(f64, f64)>,
    /// Good responses of each connection in a window.
    by_window: f64,
}

/// A finding for each variant that waited, but for those whose stall is told.
pub(super) fn service_not_saturated(record: &Record) -> Vec<Finding> {
    let told: Vec<usize> = same_stall(record).into_iter().flat_map(|finding| finding.variants).collect();
    let waiting = judged(record).into_iter().filter(|one| !told.contains(&one.index));
    waiting.map(|one| not_saturated(&one)).collect()
}

/// Those of an experiment that judges throughput.
fn judged(record: &Record) -> Vec<Waiting<'_>> {
    let judges = record.header.plan.design.metrics().any(|metric| metric == Metric::Throughput);
    if judges { waiting(record) } else { vec![] }
}

fn not_saturated(waiting: &Waiting<'_>) -> Finding {
    let Waiting { index, name, cores, connections, per_s, cpu_ms, generator_share, .. } = *waiting;
    let of = match waiting.of {
        Some(1) => " of 1 core".to_owned(),
        Some(of) => format!(" of {of} cores"),
        None => " cores".to_owned(),
    };
    let evidence = evidence!(
        "{name}: its services kept {cores}{of} busy and the generator {generator} of one, with {connections} connections and {throughput} \
         responses: each took {took} (connections / throughput), of which they computed {computed}";
        cores = Quantity::number(cores), generator = Quantity::share(generator_share),
        took = Quantity::seconds(f64::from(connections) / per_s), throughput = Quantity::per_s(per_s), computed = Quantity::us(cpu_ms * 1e3));
    let remedy = "its throughput is that of waiting (a timer, a lock, a disk, another machine, too few connections), so what requests cost hardly \
                  shows in it; raise load.connections until throughput rises no more, or judge `cpu_per_request`, or a quantile of the \
                  response time, which is in open loop";
    Finding::warning(Check::ServiceNotSaturated, evidence, remedy).about([index])
}

/// A finding for each comparison both sides of which wait for the same.
pub(super) fn same_stall(record: &Record) -> Vec<Finding> {
    let waiting = waiting(record);
    let find = |index: usize| waiting.iter().find(|one| one.index == index);
    let found = |asked: &plan::Comparison| {
        let (baseline, candidate) = (find(asked.baseline)?, find(asked.candidate)?);
        let (one, other) = (baseline.stall_ms()?, candidate.stall_ms()?);
        let within = |ms: f64| (DELAYED_ACK_MS.0..=DELAYED_ACK_MS.1).contains(&ms);
        let apart = (one / other).ln().abs();
        let round = ROUND_MS.iter().find(|round| (**round..=**round * (1.0 + ROUND_LATE_MAX)).contains(&one));
        let nagle = within(one) && within(other);
        if !nagle && (round.is_none() || apart > STALL_APART_MAX) {
            return None;
        }
        let label = &asked.label;
        let remedy = if nagle {
            "40 ms is what Nagle's algorithm and a delayed acknowledgement take together: a response is written in two pieces, and the second \
             waits until the first is acknowledged. Set TCP_NODELAY in the service, or write head and body at once; until then this compares \
             one pause with itself"
        } else {
            "a time as round as this is a timer's (a sleep, a poll, a batch, a retry); find it, for until then this compares one pause with \
             itself"
        };
        let evidence = evidence!(
            "{label}: half of the responses took {baseline_took} and more in the one, {candidate_took} in the other, with services that were \
             busy for {baseline_busy} and {candidate_busy} cores: both waited for the same";
            baseline_took = Quantity::us(one * 1e3), candidate_took = Quantity::us(other * 1e3),
            baseline_busy = Quantity::number(baseline.cores), candidate_busy = Quantity::number(candidate.cores));
        Some(Finding::warning(Check::SameStall, evidence, remedy).about([asked.baseline, asked.candidate]))
    };
    record.header.plan.comparisons.iter().filter_map(found).collect()
}

/// A finding for each variant whose connections all begin a window together and get few responses in it, all equally long: whether the
/// last of them comes in time decides on a whole step of the throughput.
pub(super) fn throughput_in_steps(record: &Record) -> Vec<Finding> {
    let margin = record.header.plan.design.margin;
    judged(record).iter().filter_map(|waiting| in_steps(waiting, margin)).collect()
}

fn in_steps(waiting: &Waiting<'_>, margin: f64) -> Option<Finding> {
    let (median, (low, high)) = (waiting.median_ms?, waiting.most_ms?);
    let (step, spread) = (1.0 / waiting.by_window, (high - low) / median * waiting.by_window.sqrt());
    if step <= margin || spread >= STEPS_SPREAD_MIN {
        return None;
    }
    let name = waiting.name;
    let evidence = evidence!(
        "{name}: each connection got {responses} responses in a window, of {low} to {high} (p10 to p90), and all begin a window together: \
         throughput moves in steps of {step}";
        responses = Quantity::number(waiting.by_window), low = Quantity::us(low * 1e3), high = Quantity::us(high * 1e3),
        step = Quantity::share(step));
    let remedy = "a small difference in how long a response takes shows as a whole step or not at all, the same in every block; judge the \
                  response time itself, which is in open loop (`metric = \"p50\"` with a rate)";
    Some(Finding::warning(Check::ThroughputInSteps, evidence, remedy).about([waiting.index]))
}

impl Waiting<'_> {
    /// The median response where nearly every request waits just so long, as throughput confirms.
    fn stall_ms(&self) -> Option<f64> {
        // Connections begin a window together, and of the response that it cuts off none is counted: up to one for each is missing.
        let alike = |ms: &f64| {
            let counted = self.per_s * ms / 1e3 / f64::from(self.connections);
            let step = counted / self.by_window;
            (1.0 - STALL_LITTLE_MAX - step..=1.0 + STALL_LITTLE_MAX).contains(&counted)
        };
        self.median_ms.filter(alike)
    }
}

fn waiting(record: &Record) -> Vec<Waiting<'_>> {
    if record.is_open_loop() {
        return vec![];
    }
    // Of what runs already nobody knows how near to a limit it was.
    let local =
        |variant: &Variant<'_>| variant.plan.load.network.is_none() && variant.plan.deployed().is_none();
    succeeding(record).filter(local).filter_map(|variant| of_variant(record, &variant)).collect()
}

fn of_variant<'a>(record: &Record, variant: &Variant<'a>) -> Option<Waiting<'a>> {
    let slices = &variant.slices;
    let trials = variant.trials.iter().copied().filter(|trial| trial.measured().next().is_some());
    let trials: Vec<&Trial> = trials.collect();
    let mut busy: Vec<f64> = trials.iter().map(|trial| busy(record, trial)).collect();
    busy.sort_by(f64::total_cmp);
    let shares: Vec<f64> = slices.iter().filter_map(|slice| slice.counts.generator.busiest_share()).collect();
    let generator_share = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
    let typical = *busy.get(busy.len() / 2)?;
    if typical >= SATURATED_MIN || generator_share > GENERATOR_SHARE_MAX || is_held_back(slices) {
        return None;
    }
    let (ok, sent) =
        (total(slices, |slice| slice.counts.successful), total(slices, |slice| slice.counts.sent));
    let in_window = total(slices, |slice| slice.counts.successful_in_window);
    if in_window == 0 {
        return None;
    }
    // After a rest each window opens its connections anew.
    let asked = |slice: &Slice| u64::from(slice.connections) * u64::from(slice.turns);
    let again = total(slices, |slice| slice.counts.connections_opened.saturating_sub(asked(slice)));
    let kept = again as f64 <= OPENED_SHARE_MAX * sent as f64;
    let latencies = merged(slices.iter().map(|slice| &slice.counts.latency));
    let ms = |q: f64| latencies.quantile(q).filter(|_| kept).filter(|quantile| quantile.is_exact());
    let ms = |q: f64| ms(q).map(|quantile| quantile.ns() as f64 / 1e6);
    let connections = slices.iter().map(|slice| slice.connections).max().filter(|count| *count > 0)?;
    let windows = total(slices, |slice| u64::from(slice.turns)).max(1);
    let cpu_ns = total(slices, Slice::services_cpu_ns) as f64;
    Some(Waiting {
        index: variant.index,
        name: variant.name(),
        cores: cpu_ns / wall_ns(slices),
        of: Some(cpus(trials.first()?, |_| true)).filter(|of| *of > 0),
        generator_share,
        connections,
        per_s: in_window as f64 / total(slices, |slice| slice.counts.window_ns) as f64 * 1e9,
        cpu_ms: cpu_ns / ok.max(1) as f64 / 1e6,
        median_ms: ms(0.5),
        most_ms: ms(0.1).zip(ms(0.9)),
        by_window: in_window as f64 / (f64::from(connections) * windows as f64),
    })
}

/// How near its services were to a limit in a trial, on the machine where they were nearest.
fn busy(record: &Record, trial: &Trial) -> f64 {
    let mut hosts: BTreeSet<Option<&str>> =
        trial.started.services.iter().map(|service| service.host.as_deref()).collect();
    if hosts.is_empty() {
        hosts.insert(None);
    }
    hosts.into_iter().map(|host| busy_on(record, trial, host)).fold(0.0, f64::max)
}

/// The machine that a service of a trial ran on.
fn host_of<'a>(trial: &'a Trial, name: &str) -> Option<&'a str> {
    trial.started.services.iter().find(|service| service.service == name)?.host.as_deref()
}

/// The same of one machine: all services there to the processors' time that was left to them, or one process to a processor's, which is
/// all that a program with one thread can use. 1 is at the limit.
///
/// What they waited for a processor counts as used, and what the host took as taken from them: both err to the side of silence.
fn busy_on(record: &Record, trial: &Trial, host: Option<&str>) -> f64 {
    let slices: Vec<&Slice> = trial.measured().collect();
    let wall = wall_ns(&slices);
    let is_there = |used: &&ServiceUse| host_of(trial, &used.service) == host;
    let wanted = total(&slices, |slice| {
        slice.services.iter().filter(is_there).map(|used| used.cpu_ns + used.run_delay_ns).sum()
    });
    let machine = record.header.environment.cpus_of(host) as f64;
    let cores = cpus(trial, |of| of == host).max(1) as f64;
    let steal = slices.iter().filter_map(|slice| slice.machine.of(host)).map(|machine| machine.steal_share);
    let steal = steal.sum::<f64>() / slices.len().max(1) as f64;
    let shared = trial.started.cpus_shared && host.is_none();
    let client = if shared { total(&slices, Slice::client_cpu_here_ns) as f64 / wall } else { 0.0 };
    let left = (cores - steal * machine - client).max(cores * 0.1);
    let by_process =
        busiest_process_ns(&slices, is_there).unwrap_or(wanted) as f64 / wall / (1.0 - steal).max(0.1);
    (wanted as f64 / wall / left).max(by_process)
}

/// CPU time of the busiest process of these services; `None` in records that do not tell processes apart.
fn busiest_process_ns(slices: &[&Slice], wanted: impl Fn(&&ServiceUse) -> bool) -> Option<u64> {
    let services = || slices.iter().flat_map(|slice| slice.services.iter().filter(&wanted));
    let told = services().all(|used| !used.cpu_by_process_ns.is_empty() || used.cpu_ns == 0);
    let busiest = |slice: &&Slice| {
        let used = slice.services.iter().filter(&wanted);
        used.filter_map(|used| used.cpu_by_process_ns.first()).copied().max().unwrap_or(0)
    };
    told.then(|| slices.iter().map(busiest).sum())
}

/// Processors that any of its services on these machines may use; 0 where none is told.
fn cpus(trial: &Trial, on: impl Fn(Option<&str>) -> bool) -> usize {
    let services = trial.started.services.iter().filter(|service| on(service.host.as_deref()));
    let each = services.flat_map(|service| service.cpus.iter().map(|cpu| (service.host.as_deref(), *cpu)));
    each.collect::<BTreeSet<_>>().len()
}

fn is_held_back(slices: &[&Slice]) -> bool {
    total(slices, |slice| slice.machine.throttled_ns_max()) as f64 > THROTTLED_MAX * wall_ns(slices)
}
