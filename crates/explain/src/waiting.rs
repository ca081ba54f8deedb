//! Where requests wait: per service from its counters, and in words if two variants cost the same CPU time.
//!
//! **Method.** Two variants cost the same if the measured interval of the difference contains zero or lies
//! within ±5 % of the baseline's CPU time per request. If then the event loop of the entry is busy for less
//! than 90 % of the time in both, CPU time is not the limit. Then other saturated or delayed resources are
//! reported: ready threads without a processor, another service, libuv's pool, bursts on the event loop, the
//! link, the generator. If there is none, requests wait for something that is not observed here. If a rate or
//! a think time paces the requests, an event loop is idle for lack of requests, and only such resources are
//! reported. The time a request is in flight is concurrency ÷ responses per second (Little's law), which
//! holds for any closed loop.

use std::collections::BTreeMap;

use model::quantity::{micros, share};
use model::{Capture, CaptureKind, CapturedService, SliceKind};

use crate::captures::{CaptureReader, busiest, counters, cpu_ns, find};
use crate::explanation::mean;
use crate::label::shown;
use crate::{CostInterval, WaitingTimes};

/// Share of the baseline's CPU time within which costs count as equal.
pub const EQUAL_WITHIN: f64 = 0.05;
/// Utilisation from which on an event loop, a process, a link or the generator is saturated.
pub const FULL_SHARE: f64 = 0.9;
/// Time without a processor, as a share of the threads' run time, from which on it is reported.
pub const RUN_DELAY_MIN: f64 = 0.25;
/// Wait for a pool thread in microseconds from which on it is reported.
pub const POOL_WAIT_MIN_US: f64 = 1000.0;
/// Delay of the event loop's timers, 99th percentile, from which on it is reported.
pub const LOOP_DELAY_MIN_MS: f64 = 50.0;
/// Minimum share of a request's time for the link's delay to be reported.
pub const LINK_DELAY_MIN: f64 = 0.5;

/// Where requests of a service wait, from its counters. `None` if nothing was counted.
pub(crate) fn of_service(
    captures: &CaptureReader<'_>,
    variant: usize,
    service: &str,
) -> Option<WaitingTimes> {
    let rounds = captures
        .all(CaptureKind::Counters, variant)
        .filter_map(|capture| {
            let seen = find(capture, service)?;
            let plain = captures.get(CaptureKind::Plain, variant, capture.round);
            let window_ns = capture.end_ns.saturating_sub(capture.start_ns).max(1) as f64;
            of_round(
                seen,
                plain.and_then(|plain| find(plain, service)).unwrap_or(seen),
                window_ns,
            )
        });
    let rounds: Vec<WaitingTimes> = rounds.collect();
    let mean_of = |of: fn(&WaitingTimes) -> f64| mean(rounds.iter().map(of)).unwrap_or(0.0);
    (!rounds.is_empty()).then(|| WaitingTimes {
        loop_utilisation: mean_of(|round| round.loop_utilisation),
        loop_delay_p99_ms: mean_of(|round| round.loop_delay_p99_ms),
        pool_wait_us: mean(rounds.iter().filter_map(|round| round.pool_wait_us)),
        gc_share: mean_of(|round| round.gc_share),
        run_delay_share: mean_of(|round| round.run_delay_share),
    })
}

/// The same for one round. Threads count from the start command to the stop command, and a thread that
/// responds late makes the others wait. Outside of the load window they are idle, so their work is divided by
/// that window, not by their own.
fn of_round(
    counted: &CapturedService,
    plain: &CapturedService,
    window_ns: f64,
) -> Option<WaitingTimes> {
    let busiest = busiest(counted)?;
    let waits = || counters(counted).filter_map(|one| one.pool_wait);
    let tasks = waits().map(|of| of.count as f64).sum::<f64>();
    let waited = waits().map(|of| of.total_ns as f64).sum::<f64>();
    let threads = || plain.processes.iter().flat_map(|process| &process.threads);
    let ran = threads().map(|thread| thread.cpu_ns as f64).sum::<f64>();
    let delayed = threads().map(|thread| thread.waited_ns as f64).sum::<f64>();
    let paused = busiest
        .gc
        .values()
        .map(|pauses| pauses.total_ns as f64)
        .sum::<f64>();
    let part = |ns: f64| (ns / window_ns).min(1.0);
    Some(WaitingTimes {
        loop_utilisation: part(busiest.loop_active_ns as f64),
        loop_delay_p99_ms: busiest.loop_delay_p99_ns as f64 / 1e6,
        pool_wait_us: (tasks > 0.0).then(|| waited / tasks / 1e3),
        gc_share: part(paused),
        run_delay_share: if ran > 0.0 { delayed / ran } else { 0.0 },
    })
}

/// One variant, for the analysis of waiting.
struct Side<'a> {
    captures: &'a CaptureReader<'a>,
    variant: usize,
    entry: &'a str,
    services: BTreeMap<&'a str, WaitingTimes>,
    /// Time that a request is in flight, in microseconds. `None` if a rate or a think time paces requests.
    little_us: Option<f64>,
}

/// Where requests wait, in words. `None` if CPU time differs, an event loop is saturated, or nothing was
/// counted.
pub(crate) fn sentence(
    captures: &CaptureReader<'_>,
    (baseline, variant): (usize, usize),
    measured: &CostInterval,
    baseline_cpu_us: f64,
) -> Option<String> {
    let equal = measured.low.abs().max(measured.high.abs()) <= EQUAL_WITHIN * baseline_cpu_us;
    if measured.excludes_zero() && !equal {
        return None;
    }
    let sides = [Side::of(captures, baseline), Side::of(captures, variant)];
    let busy = |side: &Side<'_>| Some(side.services.get(side.entry)?.loop_utilisation);
    let (first, second) = (busy(&sides[0])?, busy(&sides[1])?);
    if first >= FULL_SHARE || second >= FULL_SHARE {
        return None;
    }
    let cost = match equal {
        true => "CPU time per request is the same",
        false => "No difference in CPU time per request was found",
    };
    let begin = format!(
        "{cost}, and the event loop of {} is busy for {} of the time in {} and {} in {}",
        shown(sides[0].entry),
        share(first),
        sides[0].name(),
        share(second),
        sides[1].name(),
    );
    let reasons: Vec<String> = sides
        .iter()
        .flat_map(Side::inside)
        .chain(sides.iter().flat_map(Side::outside))
        .collect();
    if !reasons.is_empty() {
        return Some(format!("{begin}; requests wait: {}.", reasons.join("; ")));
    }
    let under_way: Option<Vec<String>> = sides.iter().map(Side::under_way).collect();
    let times = under_way?.join("; ");
    Some(format!(
        "{begin}, so requests wait for something that is not seen from here ({times}): timers, files, a data base, another machine. \
         Neither processors nor the thread pool, the link or the generator hold them up."
    ))
}

impl<'a> Side<'a> {
    fn of(captures: &'a CaptureReader<'a>, variant: usize) -> Side<'a> {
        let planned = &captures.record.header.plan.variants[variant];
        let (entry, load) = (planned.entry.as_str(), &planned.load);
        let services = captures.services(variant).into_iter();
        let services = services
            .filter_map(|of| Some((of, of_service(captures, variant, of)?)))
            .collect();
        let paced =
            captures.record.is_open_loop() || load.rate_per_s.is_some() || load.think.is_some();
        let uses = captures.uses(CaptureKind::Plain, variant, entry);
        let per_s = mean(uses.values().map(|used| used.per_s)).filter(|_| !paced);
        let at_once = f64::from(load.settings.connections) * f64::from(load.protocol.lanes());
        Side {
            captures,
            variant,
            entry,
            services,
            little_us: per_s.map(|per_s| at_once / per_s * 1e6),
        }
    }

    fn name(&self) -> String {
        shown(self.captures.name(self.variant))
    }

    /// Reasons for waiting inside of the services.
    fn inside(&self) -> Vec<String> {
        let place = |service: &str| format!("{} in {}", shown(service), self.name());
        let counted = self.services.iter().flat_map(|(service, of)| {
            let place = place(service);
            let (full, late) = (share(of.loop_utilisation), of.loop_delay_p99_ms);
            [
                (*service != self.entry && of.loop_utilisation >= FULL_SHARE)
                    .then(|| format!("for {place}, whose event loop is full ({full})")),
                (of.run_delay_share >= RUN_DELAY_MIN).then(|| {
                    let part = share(of.run_delay_share);
                    format!("for a processor: threads of {place} were ready without one for {part} of the time that they ran")
                }),
                of.pool_wait_us.filter(|wait| *wait >= POOL_WAIT_MIN_US).map(|wait| {
                    format!("for a thread of libuv's pool: a small task waits {} for one in {place}", micros(wait))
                }),
                (late >= LOOP_DELAY_MIN_MS).then(|| {
                    format!("for the event loop of {place}, which is held up in bursts (1 % of its timers are {} late or more)", micros(late * 1e3))
                }),
            ]
        });
        // Services without counters, such as nginx, by the CPU time of their busiest process.
        let others = self.captures.services(self.variant).into_iter();
        let others = others
            .filter(|service| !self.services.contains_key(service))
            .map(|service| {
                let busy = self
                    .busiest_process(service)
                    .filter(|busy| *busy >= FULL_SHARE)?;
                let place = place(service);
                Some(format!(
                    "for {place}, whose busiest process uses {} of a processor",
                    share(busy)
                ))
            });
        counted.chain(others).flatten().collect()
    }

    fn busiest_process(&self, service: &str) -> Option<f64> {
        let part = |capture: &Capture| {
            let window = capture.end_ns.saturating_sub(capture.start_ns) as f64;
            let busiest = find(capture, service)?.processes.iter().map(cpu_ns).max()?;
            (window > 0.0).then(|| busiest as f64 / window)
        };
        mean(
            self.captures
                .all(CaptureKind::Plain, self.variant)
                .filter_map(part),
        )
    }

    fn under_way(&self) -> Option<String> {
        let cpu_us = mean(self.captures.plain_cpu_us(self.variant).into_values()).unwrap_or(0.0);
        Some(format!(
            "a request is under way for {} in {}, {} of it CPU time",
            micros(self.little_us?),
            self.name(),
            micros(cpu_us)
        ))
    }

    /// Reasons for waiting outside of the services, from the measured part of the record.
    fn outside(&self) -> Vec<String> {
        let record = self.captures.record;
        let trials = record.blocks.iter().flat_map(|block| &block.trials);
        let slices = trials
            .filter(|trial| trial.variant() == self.variant)
            .flat_map(|trial| &trial.slices);
        let slices = || {
            slices
                .clone()
                .filter(|slice| slice.kind == SliceKind::Measured)
        };
        let name = self.name();
        let busy = mean(slices().filter_map(|slice| slice.counts.generator.busiest_share()));
        let generator = busy.filter(|busy| *busy >= FULL_SHARE);
        let network = record.header.plan.variants[self.variant]
            .load
            .network
            .as_ref();
        let bits: f64 = slices()
            .map(|slice| slice.counts.wire_bytes as f64 * 8.0)
            .sum();
        let seconds: f64 = slices()
            .map(|slice| slice.counts.window_ns as f64 / 1e9)
            .sum();
        let link = network.and_then(|link| {
            let rate = link
                .rate_bit_per_s
                .filter(|rate| *rate > 0 && seconds > 0.0)?;
            Some(bits / seconds / rate as f64).filter(|used| *used >= FULL_SHARE)
        });
        let delay = network.and_then(|link| {
            let (both_ways, all) = (2e6 * link.delay?.as_secs_f64(), self.little_us?);
            (both_ways >= LINK_DELAY_MIN * all).then_some((both_ways, all))
        });
        let reasons = [
            generator.map(|busy| {
                format!("for the generator, which is busy for {} of the time in {name}", share(busy))
            }),
            link.map(|used| format!("for the link, which is {} full in {name}", share(used))),
            delay.map(|(both_ways, all)| {
                let (both_ways, all) = (micros(both_ways), micros(all));
                format!(
                    "for the link's delay: {both_ways} of the {all} that a request is under way in {name}"
                )
            }),
        ];
        reasons.into_iter().flatten().collect()
    }
}
