//! Where requests wait: of each service by its counters, and in words where two variants cost the same CPU time.
//!
//! **Method.** Two variants cost the same where the measured interval of the difference contains zero or lies within ±5 % of the
//! baseline's CPU time per request. If then the event loop of the entry is busy for less than 90 % of the time in both, processors are
//! not what decides, and it is said what else is full or late: threads that are ready and have no processor, another service, libuv's
//! pool, an event loop that is held up in bursts, the link, the generator. Where none of these is, requests wait for something that is
//! not seen from here.
//! The time a request is under way is connections ÷ responses per second (Little's law), which holds for any closed loop.

use std::collections::BTreeMap;

use model::{Capture, CaptureKind, CapturedService, NodeCounters, SliceKind};
use record::Record;

use crate::captures::{Captures, counters, cpu_ns, find};
use crate::explanation::mean;
use crate::figure::{amount, percent};
use crate::label::shown;
use crate::{Interval, Waiting};

/// Part of the baseline's CPU time within which costs count as equal.
pub const EQUAL_WITHIN: f64 = 0.05;
/// Utilisation from which on an event loop, a process, a link or the generator is full.
pub const FULL_SHARE: f64 = 0.9;
/// Time without a processor, as part of the time that threads ran, that is worth a word.
pub const RUN_DELAY_MIN: f64 = 0.25;
/// Wait for a thread of the pool that is worth a word, in microseconds.
pub const POOL_WAIT_MIN_US: f64 = 1000.0;
/// Delay of the event loop's timers, 99th percentile, that is worth a word.
pub const LOOP_DELAY_MIN_MS: f64 = 50.0;
/// Part of a request's time that the link's delay has to be.
pub const LINK_DELAY_MIN: f64 = 0.5;

/// Where requests of a service wait, from its counters; `None` where nothing was counted.
pub(crate) fn of_service(captures: &Captures<'_>, variant: usize, service: &str) -> Option<Waiting> {
    let mut rounds: Vec<RoundWaiting> = Vec::new();
    for capture in captures.all(CaptureKind::Counters, variant) {
        let Some(seen) = find(capture, service) else { continue };
        let plain =
            captures.get(CaptureKind::Plain, variant, capture.round).and_then(|plain| find(plain, service));
        rounds.extend(RoundWaiting::of(seen, plain.unwrap_or(seen)));
    }
    let mean_of = |of: &dyn Fn(&RoundWaiting) -> Option<f64>| {
        let values: Vec<f64> = rounds.iter().filter_map(of).filter(|value| value.is_finite()).collect();
        (!values.is_empty()).then(|| mean(&values))
    };
    Some(Waiting {
        loop_utilisation: mean_of(&|round| Some(round.utilisation))?,
        loop_delay_p99_ms: mean_of(&|round| Some(round.delay_p99_ms)).unwrap_or(0.0),
        pool_wait_us: mean_of(&|round| round.pool_wait_us),
        gc_share: mean_of(&|round| Some(round.gc_share)).unwrap_or(0.0),
        run_delay_share: mean_of(&|round| Some(round.run_delay_share)).unwrap_or(0.0),
    })
}

/// The same of one round.
struct RoundWaiting {
    utilisation: f64,
    delay_p99_ms: f64,
    pool_wait_us: Option<f64>,
    gc_share: f64,
    run_delay_share: f64,
}

impl RoundWaiting {
    fn of(counted: &CapturedService, plain: &CapturedService) -> Option<RoundWaiting> {
        let all = counters(counted);
        let busiest = all.iter().map(|one| utilisation(one)).reduce(f64::max)?;
        let workers = all.len() as f64;
        let delay_ns: f64 = all.iter().map(|one| one.loop_delay_p99_ns as f64).sum();
        let gc = |one: &&NodeCounters| {
            let pauses: f64 = one.gc.values().map(|pauses| pauses.total_ns as f64).sum();
            pauses / (one.loop_active_ns as f64 + one.loop_idle_ns as f64).max(1.0)
        };
        let waits = || all.iter().filter_map(|one| one.pool_wait);
        let tasks: f64 = waits().map(|waits| waits.count as f64).sum();
        let waited: f64 = waits().map(|waits| waits.total_ns as f64).sum();
        Some(RoundWaiting {
            utilisation: busiest,
            delay_p99_ms: delay_ns / workers / 1e6,
            pool_wait_us: (tasks > 0.0).then(|| waited / tasks / 1e3),
            gc_share: all.iter().map(gc).sum::<f64>() / workers,
            run_delay_share: run_delay(plain),
        })
    }
}

fn utilisation(one: &NodeCounters) -> f64 {
    let active = one.loop_active_ns as f64;
    active / (active + one.loop_idle_ns as f64).max(1.0)
}

fn run_delay(service: &CapturedService) -> f64 {
    let threads = || service.processes.iter().flat_map(|process| &process.threads);
    let ran: f64 = threads().map(|thread| thread.cpu_ns as f64).sum();
    let waited: f64 = threads().map(|thread| thread.waited_ns as f64).sum();
    if ran > 0.0 { waited / ran } else { 0.0 }
}

/// One variant, as far as its requests wait.
struct Side<'a> {
    variant: usize,
    name: &'a str,
    services: BTreeMap<&'a str, Waiting>,
}

/// Where requests wait, in words; `None` where CPU time differs, where an event loop is full, or where nothing was counted.
pub(crate) fn sentence(
    captures: &Captures<'_>,
    (baseline, variant): (usize, usize),
    measured: &Interval,
    baseline_cpu_us: f64,
) -> Option<String> {
    let within = EQUAL_WITHIN * baseline_cpu_us;
    if measured.excludes_zero() && measured.low.abs().max(measured.high.abs()) > within {
        return None;
    }
    let sides = [side(captures, baseline), side(captures, variant)];
    let entry = |side: &Side<'_>| {
        let name = captures.record.header.plan.variants[side.variant].entry.as_str();
        side.services.get(name).map(|waiting| (name.to_owned(), waiting.loop_utilisation))
    };
    let ((name, first), (_, second)) = (entry(&sides[0])?, entry(&sides[1])?);
    if first >= FULL_SHARE || second >= FULL_SHARE {
        return None;
    }
    let begin = format!(
        "CPU time per request is the same, and the event loop of {} is busy for {} of the time in {} and {} in {}, so requests wait",
        shown(&name),
        percent(first),
        shown(sides[0].name),
        percent(second),
        shown(sides[1].name),
    );
    let mut reasons: Vec<String> = sides.iter().flat_map(|side| inside(captures, side)).collect();
    reasons
        .extend(sides.iter().flat_map(|side| outside(captures.record, side, per_s(captures, side.variant))));
    if reasons.is_empty() {
        let under_way: Vec<String> = sides.iter().filter_map(|side| under_way(captures, side)).collect();
        let times = if under_way.is_empty() { String::new() } else { format!(" ({})", under_way.join("; ")) };
        return Some(format!(
            "{begin} for something that is not seen from here{times}: timers, files, a data base, another machine. Neither processors nor the \
             thread pool, the link or the generator hold them up."
        ));
    }
    Some(format!("{begin}: {}.", reasons.join("; ")))
}

fn side<'a>(captures: &Captures<'a>, variant: usize) -> Side<'a> {
    let services = captures.services(variant).into_iter();
    let services = services.filter_map(|service| Some((service, of_service(captures, variant, service)?)));
    Side { variant, name: captures.name(variant), services: services.collect() }
}

/// What holds requests up inside of the services.
fn inside(captures: &Captures<'_>, side: &Side<'_>) -> Vec<String> {
    let entry = captures.record.header.plan.variants[side.variant].entry.as_str();
    let mut reasons = Vec::new();
    let place = |service: &str| format!("{} in {}", shown(service), shown(side.name));
    for (service, waiting) in &side.services {
        if *service != entry && waiting.loop_utilisation >= FULL_SHARE {
            let share = percent(waiting.loop_utilisation);
            reasons.push(format!("for {}, whose event loop is full ({share})", place(service)));
        }
        if waiting.run_delay_share >= RUN_DELAY_MIN {
            let share = percent(waiting.run_delay_share);
            reasons.push(format!(
                "for a processor: threads of {} were ready without one for {share} of the time that they ran",
                place(service)
            ));
        }
        if let Some(wait) = waiting.pool_wait_us.filter(|wait| *wait >= POOL_WAIT_MIN_US) {
            reasons.push(format!(
                "for a thread of libuv's pool: a small task waits {} for one in {}",
                amount(wait),
                place(service)
            ));
        }
        if waiting.loop_delay_p99_ms >= LOOP_DELAY_MIN_MS {
            let late = waiting.loop_delay_p99_ms;
            reasons.push(format!("for the event loop of {}, which is held up in bursts (1 % of its timers are {late:.0} ms late or more)", place(service)));
        }
    }
    // Services without counters, such as nginx: by what their busiest process used.
    for service in
        captures.services(side.variant).into_iter().filter(|service| !side.services.contains_key(service))
    {
        if let Some(busy) =
            busiest_process(captures, side.variant, service).filter(|busy| *busy >= FULL_SHARE)
        {
            reasons.push(format!(
                "for {}, whose busiest process uses {} of a processor",
                place(service),
                percent(busy)
            ));
        }
    }
    reasons
}

fn busiest_process(captures: &Captures<'_>, variant: usize, service: &str) -> Option<f64> {
    let share = |capture: &Capture| {
        let window = capture.end_ns.saturating_sub(capture.start_ns) as f64;
        let busiest = find(capture, service)?.processes.iter().map(cpu_ns).max()?;
        (window > 0.0).then(|| busiest as f64 / window)
    };
    let shares: Vec<f64> = captures.all(CaptureKind::Plain, variant).filter_map(share).collect();
    (!shares.is_empty()).then(|| mean(&shares))
}

/// Successful responses per second without a profiler.
fn per_s(captures: &Captures<'_>, variant: usize) -> Option<f64> {
    let entry = &captures.record.header.plan.variants[variant].entry;
    let rates: Vec<f64> =
        captures.uses(CaptureKind::Plain, variant, entry).values().map(|used| used.per_s).collect();
    (!rates.is_empty()).then(|| mean(&rates))
}

/// Time that a request is under way, in seconds.
fn little_s(record: &Record, variant: usize, per_s: Option<f64>) -> Option<f64> {
    let connections = f64::from(record.header.plan.variants[variant].load.connections);
    per_s.filter(|per_s| *per_s > 0.0).map(|per_s| connections / per_s)
}

fn under_way(captures: &Captures<'_>, side: &Side<'_>) -> Option<String> {
    let seconds = little_s(captures.record, side.variant, per_s(captures, side.variant))?;
    let cpu: Vec<f64> = captures.plain_cpu_us(side.variant).into_values().collect();
    Some(format!(
        "a request is under way for {} in {}, {} of it CPU time",
        amount(seconds * 1e6),
        shown(side.name),
        amount(mean(&cpu))
    ))
}

/// What holds requests up outside of the services, by the measured part of the record.
fn outside(record: &Record, side: &Side<'_>, per_s: Option<f64>) -> Vec<String> {
    let trials = record.blocks.iter().flat_map(|block| &block.trials);
    let variant = side.variant;
    let slices = || {
        let trials = trials.clone().filter(move |trial| trial.variant() == variant);
        trials.flat_map(|trial| &trial.slices).filter(|slice| slice.kind == SliceKind::Measured)
    };
    let mut reasons = Vec::new();
    let busy: Vec<f64> = slices().filter_map(|slice| slice.counts.generator.busiest_share()).collect();
    let generator = mean(&busy);
    if generator >= FULL_SHARE {
        reasons.push(format!(
            "for the generator, which is busy for {} of the time in {}",
            percent(generator),
            shown(side.name)
        ));
    }
    let Some(network) = &record.header.plan.variants[side.variant].load.network else { return reasons };
    let bits: f64 = slices().map(|slice| slice.counts.wire_bytes as f64 * 8.0).sum();
    let seconds: f64 = slices().map(|slice| slice.counts.window_ns as f64 / 1e9).sum();
    if let Some(rate) = network.rate_bit_per_s.filter(|rate| *rate > 0 && seconds > 0.0) {
        let used = bits / seconds / rate as f64;
        if used >= FULL_SHARE {
            reasons.push(format!("for the link, which is {} full in {}", percent(used), shown(side.name)));
        }
    }
    let both_ways = network.delay.map_or(0.0, |delay| 2.0 * delay.as_secs_f64());
    if let Some(all) = little_s(record, side.variant, per_s).filter(|all| both_ways >= LINK_DELAY_MIN * all) {
        let (both_ways, all) = (amount(both_ways * 1e6), amount(all * 1e6));
        reasons.push(format!(
            "for the link's delay: {both_ways} of the {all} that a request is under way in {}",
            shown(side.name)
        ));
    }
    reasons
}
