//! Evaluates slices at one rate against a limit, and chooses the next rate to try.
//!
//! Failed requests count as never responded to, so a service that sheds load does not appear faster.

use std::collections::BTreeMap;

use model::RequestOutcome;
use plan::{Design, Limit, LimitFigure};
use record::{Record, Slice, SliceKind, Trial};
use stats::capacity::{
    CrossingReading, WindowFailures, capacities, capacities_by_failures, expected_power,
    expected_slope, placed, slope,
};

use crate::only_if;
use crate::sums::{complete, few_merged, mean, outcome, total};

/// First rate of the search as a share of the closed-loop throughput, and the factor from one step up to the
/// next.
const FIRST_SHARE: f64 = 0.7;
const STEP_UP: f64 = 1.2;
/// Factor from one step down to the next, if the first rate is too high.
const STEP_DOWN: f64 = 0.5;
/// Lowest rate of the search, per second.
const RATE_LEAST_PER_S: f64 = 1.0;
/// Highest rate of the search, relative to the closed-loop throughput. A service does not do more in open
/// loop, unless connections were its limit.
const SHARE_MOST: f64 = 4.0;
/// Factor for the next window if nothing failed.
const UNFAILED_UP: f64 = 1.05;
/// Number of steps between a rate that is kept and one that is not.
const STEPS_BETWEEN: usize = 3;
/// Minimum share of the capacity from which a rate is informative about the slope there.
const SHARE_LEAST: f64 = 0.5;

/// One limit of `design.slo`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LimitClause {
    /// The limit as written.
    pub limit: Limit,
    /// Quantile of the time to a successful response.
    q: f64,
    /// Limit of that quantile, in seconds. For a limit on failures, the limit of a response time, which
    /// determines the slope.
    pub(super) limit_s: f64,
}

/// All limits of a plan that measures capacity.
pub(super) fn clauses(design: &Design) -> Vec<LimitClause> {
    let time_s = |limit: &Limit| match limit.figure {
        LimitFigure::Metric(metric) => metric.quantile().map(|q| (q, limit.bound.value() / 1e6)),
        LimitFigure::Failed => None,
    };
    let least_s = design
        .slo
        .iter()
        .filter_map(time_s)
        .map(|(_, limit_s)| limit_s)
        .reduce(f64::min);
    let clause = |limit: &Limit| match time_s(limit) {
        Some((q, limit_s)) => LimitClause {
            limit: *limit,
            q,
            limit_s,
        },
        None => LimitClause {
            limit: *limit,
            q: 1.0 - limit.bound.value(),
            limit_s: least_s.unwrap_or(1.0),
        },
    };
    design.slo.iter().map(clause).collect()
}

/// The longest response time limit of the plan, in seconds. It determines the length of windows.
pub fn limit_s(design: &Design) -> f64 {
    clauses(design)
        .iter()
        .map(|clause| clause.limit_s)
        .fold(0.0, f64::max)
}

impl LimitClause {
    fn is_of_failures(&self) -> bool {
        self.limit.figure == LimitFigure::Failed
    }

    /// L / p over these slices. The limit is kept if it is above 1. `None` without requests.
    pub(super) fn kept_by(&self, slices: &[&Slice]) -> Option<f64> {
        Some(self.headroom(slices)?.exp())
    }

    /// Whether slices together break the limit. `None` with too few requests.
    pub(super) fn breaks(&self, slices: &[&Slice]) -> Option<bool> {
        let due = total(slices, |slice| slice.counts.due());
        only_if(due as f64 * (1.0 - self.q) >= super::BEYOND_LEAST)?;
        Some(self.kept_by(slices)? < 1.0)
    }

    /// The limited figure over these slices: microseconds, or a share of requests. `None` with too few
    /// requests or responses.
    pub(super) fn figure(&self, slices: &[&Slice]) -> Option<f64> {
        if self.is_of_failures() {
            outcome(slices).failed_share()
        } else {
            quantile_us(slices, self.q)
        }
    }

    /// The same, however few the requests were.
    pub(super) fn rough_figure(&self, slices: &[&Slice]) -> Option<f64> {
        let seconds = || quantile_s(slices, self.q).filter(|seconds| seconds.is_finite());
        self.figure(slices).or_else(|| Some(seconds()? * 1e6))
    }

    /// Logarithm of L / p.
    fn headroom(&self, slices: &[&Slice]) -> Option<f64> {
        if self.is_of_failures() {
            let RequestOutcome { due, failed } = outcome(slices);
            let allowed = 1.0 - self.q;
            // Zero failures count as half of one, and never as more than the allowed number.
            let least = 0.5_f64.min(0.5 * allowed * due as f64);
            let share = (failed as f64).max(least) / due as f64;
            return (due > 0).then(|| -(share / allowed).ln() / -allowed.ln());
        }
        Some(-(quantile_s(slices, self.q)? / self.limit_s).ln())
    }

    fn reading(&self, window: &[&Slice]) -> Option<CrossingReading> {
        let whole = self.headroom(window)?;
        let (first, second) = window.split_at(window.len() / 2);
        Some(CrossingReading {
            whole,
            halves: [first, second].map(|half| self.headroom(half).unwrap_or(whole)),
        })
    }

    /// The logarithms of capacities.
    fn capacities(&self, windows: &[SearchWindow<'_>], slope: f64) -> Vec<f64> {
        if self.is_of_failures() {
            let failures: Vec<WindowFailures> =
                windows.iter().map(|window| window.failures).collect();
            return capacities_by_failures(&failures, slope);
        }
        let reading =
            |window: &SearchWindow<'_>| Some((window.rate, self.reading(&window.slices)?));
        capacities(
            &windows.iter().filter_map(reading).collect::<Vec<_>>(),
            slope,
        )
    }

    /// Slope near the capacity. For failures, the power of the rate with which they rise.
    fn slope(&self, capacity: f64, lower: &[(f64, &Slice)]) -> f64 {
        if self.is_of_failures() {
            return expected_power(capacity, self.limit_s);
        }
        let expected = expected_slope(capacity, self.limit_s, self.q);
        let near = lower
            .iter()
            .filter(|(rate, _)| *rate > SHARE_LEAST * capacity);
        let points =
            near.filter_map(|(rate, slice)| Some((rate / capacity, self.kept_by(&[slice])?)));
        slope(&points.collect::<Vec<_>>(), expected)
    }
}

/// Quantile of the time to a successful response, in microseconds. `None` with too few requests beyond it, or
/// if fewer succeeded.
pub(super) fn quantile_us(slices: &[&Slice], q: f64) -> Option<f64> {
    let due = total(slices, |slice| slice.counts.due());
    only_if(due as f64 * (1.0 - q) >= super::BEYOND_LEAST)?;
    let seconds = quantile_s(slices, q).filter(|seconds| seconds.is_finite())?;
    Some(seconds * 1e6)
}

/// Quantile of the time to a successful response, in seconds, over all due requests. Infinite if fewer
/// succeeded.
///
/// The histogram contains failed responses at their actual times, which are usually short, so the rank is
/// increased by their number.
pub(super) fn quantile_s(slices: &[&Slice], q: f64) -> Option<f64> {
    let responses = few_merged(
        slices
            .iter()
            .filter_map(|slice| Some(&slice.counts.open.as_ref()?.response)),
    );
    let unexpected = total(slices, |slice| slice.counts.unexpected());
    let count = responses.count();
    only_if(count > 0)?;
    let rank = (q * count as f64).ceil().max(1.0) + unexpected as f64;
    if rank > count as f64 {
        return Some(f64::INFINITY);
    }
    // A request lost early has no response either, so it counts as slower than all responses.
    let (_, with_response) = responses.bounds(rank / count as f64)?;
    Some(with_response.map_or(f64::INFINITY, |ns| ns as f64 / 1e9))
}

/// The rate of a slice in open loop.
pub(super) fn rate(slice: &Slice) -> Option<f64> {
    slice.counts.open.as_ref().map(|open| open.rate_per_s)
}

pub(super) fn probes(trial: &Trial) -> impl Iterator<Item = &Slice> {
    trial
        .slices
        .iter()
        .filter(|slice| slice.kind == SliceKind::Probe)
}

/// Successful responses per second in the second half of a slice. 0 if no request succeeded, `None` if
/// responses came too late to measure.
pub fn second_half_per_s(slice: &Slice) -> Option<f64> {
    if slice.counts.successful == 0 {
        return Some(0.0);
    }
    let half = slice.counts.successful_per_100_ms.len() / 2;
    let ok: u64 = slice
        .counts
        .successful_per_100_ms
        .iter()
        .skip(half)
        .map(|count| u64::from(*count))
        .sum();
    // The last bucket may be shorter than the others.
    let seconds = slice.counts.window_ns as f64 / 1e9 - half as f64 / 10.0;
    (ok > 0 && seconds > 0.0).then(|| ok as f64 / seconds)
}

/// Throughput of a trial at its limit, in closed loop, before any other load.
pub fn at_limit_per_s(trial: &Trial) -> Option<f64> {
    second_half_per_s(last_closed(trial)?).filter(|per_s| *per_s > 0.0)
}

pub(super) fn last_closed(trial: &Trial) -> Option<&Slice> {
    trial
        .slices
        .iter()
        .rfind(|slice| slice.counts.open.is_none())
}

/// The trial before the first block, in which the rate was searched for.
fn pilot(record: &Record, variant: usize) -> Option<&Trial> {
    let trials = record
        .blocks
        .iter()
        .filter(|block| block.number == 0)
        .flat_map(|block| &block.trials);
    trials
        .rev()
        .find(|trial| trial.variant() == variant && probes(trial).next().is_some())
}

/// The limit that a variant meets first, and each block's capacity by it.
#[derive(Debug, Clone)]
pub(super) struct CapacityFound {
    pub clause: LimitClause,
    pub slope: f64,
    /// Logarithm of each block's capacity, by block number.
    pub logs: BTreeMap<u32, f64>,
    /// The shortest window used, in seconds.
    pub window_s: f64,
    /// Whether this is a limit on failures without any failure. It is then met no earlier than others, and
    /// each process sustained at least the rate of its window.
    pub is_silent: bool,
}

impl CapacityFound {
    fn mean(&self) -> f64 {
        mean(self.logs.values().copied()).unwrap_or(f64::INFINITY)
    }

    pub(super) fn of(record: &Record, variant: usize) -> Option<CapacityFound> {
        let all = clauses(&record.header.plan.design).into_iter();
        let found = all.filter_map(|clause| CapacityFound::by(clause, record, variant));
        found.min_by(|one, other| {
            one.is_silent
                .cmp(&other.is_silent)
                .then_with(|| one.mean().total_cmp(&other.mean()))
        })
    }

    fn by(clause: LimitClause, record: &Record, variant: usize) -> Option<CapacityFound> {
        let windows: Vec<SearchWindow<'_>> = complete(record, variant)
            .filter_map(|trial| SearchWindow::of(&clause, trial))
            .collect();
        let lower: Vec<(f64, &Slice)> = windows
            .iter()
            .flat_map(|window| &window.lower)
            .copied()
            .collect();
        let mut logs: Vec<f64> = windows.iter().map(|window| window.rate.ln()).collect();
        let is_silent =
            clause.is_of_failures() && windows.iter().all(|window| window.failures.failed == 0.0);
        let mut slope = 1.0;
        // The slope depends on the capacity that it determines. Its error is of second order, so the
        // iteration converges at once.
        for _ in 0..3 {
            slope = clause.slope(mean(logs.iter().copied())?.exp(), &lower);
            if !is_silent {
                logs = clause.capacities(&windows, slope);
            }
        }
        let length_s = |window: &SearchWindow<'_>| {
            window
                .slices
                .iter()
                .map(|slice| slice.counts.window_ns as f64 / 1e9)
                .sum()
        };
        Some(CapacityFound {
            clause,
            slope,
            logs: windows
                .iter()
                .map(|window| window.number)
                .zip(logs)
                .collect(),
            window_s: windows.iter().map(length_s).fold(f64::INFINITY, f64::min),
            is_silent,
        })
    }
}

/// The window of a trial near the crossing, if it has requests.
struct SearchWindow<'a> {
    number: u32,
    rate: f64,
    slices: Vec<&'a Slice>,
    failures: WindowFailures,
    /// The windows next to it, with their rates.
    lower: Vec<(f64, &'a Slice)>,
}

impl<'a> SearchWindow<'a> {
    fn of(clause: &LimitClause, trial: &'a Trial) -> Option<SearchWindow<'a>> {
        let slices: Vec<&Slice> = trial.measured().collect();
        clause.headroom(&slices)?;
        let rate = rate(slices.first()?)?;
        let RequestOutcome { due, failed } = outcome(&slices);
        let failures = WindowFailures {
            rate,
            at_limit: at_limit_per_s(trial).unwrap_or(rate),
            failed: failed as f64,
            allowed: (1.0 - clause.q) * due as f64,
        };
        let lower = probes(trial)
            .filter_map(|slice| Some((self::rate(slice)?, slice)))
            .collect();
        Some(SearchWindow {
            number: trial.started.block,
            rate,
            slices,
            failures,
            lower,
        })
    }
}

/// Rates for the next trial of this variant, given its throughput at the limit. The first is based on the
/// earlier trials, or on the search before the first block. The second is lower, where L/p is 2.5, and
/// determines the slope.
pub fn next_rates(record: &Record, variant: usize, at_limit_per_s: f64) -> Option<[f64; 2]> {
    let found = CapacityFound::of(record, variant);
    let rate = next_rate(record, variant, at_limit_per_s, found.as_ref())?;
    let expected = || {
        clauses(&record.header.plan.design)
            .first()
            .map(|clause| clause.slope(rate, &[]))
    };
    let slope = found.map(|found| found.slope).or_else(expected)?;
    Some([rate, rate * (1.0 - 1.5 / slope).max(SHARE_LEAST)])
}

fn next_rate(
    record: &Record,
    variant: usize,
    at_limit_per_s: f64,
    found: Option<&CapacityFound>,
) -> Option<f64> {
    let Some(found) = found else {
        let (trial, searched) = (pilot(record, variant)?, Pilot::of(record, variant)?);
        let highest = || searched.bracket()[0].map(|tried| tried.rate);
        let crossing =
            searched.crossing().or_else(highest)? * at_limit_per_s / self::at_limit_per_s(trial)?;
        // If requests failed in closed loop, its throughput is below the service's capacity.
        if outcome(last_closed(trial).as_slice()).is_void() {
            return Some(crossing);
        }
        // Short steps find rates that are too high. A service with even response times sustains this share of
        // its throughput at the limit, and others sustain less.
        let slope = |clause: &LimitClause| expected_slope(at_limit_per_s, clause.limit_s, clause.q);
        let slope = clauses(&record.header.plan.design)
            .iter()
            .map(slope)
            .fold(f64::INFINITY, f64::min);
        return Some(crossing.min(at_limit_per_s / (1.0 + 0.5 / slope)));
    };
    let known = |trial: &Trial| {
        Some((
            found.logs.get(&trial.started.block)?.exp(),
            self::at_limit_per_s(trial)?,
        ))
    };
    let before: Vec<(f64, f64)> = complete(record, variant).filter_map(known).collect();
    let placed = placed(&before, found.slope, at_limit_per_s)?;
    // Above the throughput at the limit requests only wait for a connection. If the closed loop failed, that
    // throughput is below the capacity.
    Some(if found.is_silent {
        (placed * UNFAILED_UP).min(at_limit_per_s.max(placed))
    } else {
        placed
    })
}

/// A tried rate, with L / p of the limit closest to breaking.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TriedRate {
    /// Requests due per second.
    pub rate: f64,
    /// L / p. All limits are kept from 1 on.
    pub kept: f64,
}

/// The search before the first block, in the order in which rates were tried.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pilot {
    tried: Vec<TriedRate>,
}

impl Pilot {
    /// The rates tried for a variant so far. `None` if there was no search.
    pub fn of(record: &Record, variant: usize) -> Option<Pilot> {
        let clauses = clauses(&record.header.plan.design);
        let tried = |slice: &Slice| {
            let kept = clauses.iter().filter_map(|clause| clause.kept_by(&[slice]));
            Some(TriedRate {
                rate: rate(slice)?,
                kept: kept.reduce(f64::min)?,
            })
        };
        Some(Pilot {
            tried: probes(pilot(record, variant)?).filter_map(tried).collect(),
        })
    }

    /// The highest rate that was kept below the lowest that was not, and the lowest that was not.
    ///
    /// If a rate was tried twice, the better result counts, because disturbances only make results worse.
    pub fn bracket(&self) -> [Option<TriedRate>; 2] {
        let best = |one: &TriedRate| {
            let same = self.tried.iter().filter(|other| other.rate == one.rate);
            TriedRate {
                kept: same.map(|tried| tried.kept).fold(0.0, f64::max),
                ..*one
            }
        };
        let by_rate = |one: &TriedRate, other: &TriedRate| one.rate.total_cmp(&other.rate);
        let (kept, broken): (Vec<TriedRate>, Vec<TriedRate>) = self
            .tried
            .iter()
            .map(best)
            .partition(|tried| tried.kept >= 1.0);
        let high = broken.into_iter().min_by(by_rate);
        let below = kept
            .into_iter()
            .filter(|tried| high.is_none_or(|high| tried.rate < high.rate));
        [below.max_by(by_rate), high]
    }

    /// The next rate to try, given the closed-loop throughput. `None` once enough is known, or no progress is
    /// possible.
    pub fn next(&self, at_limit_per_s: f64) -> Option<f64> {
        match self.bracket() {
            // The first rate that breaks a limit is repeated. Otherwise a brief disturbance would make all
            // later rates too low.
            [low, Some(high)] if self.is_doubtful(high, low) => Some(high.rate),
            [None, None] => Some((at_limit_per_s * FIRST_SHARE).max(RATE_LEAST_PER_S)),
            [Some(low), None] => {
                Some(low.rate * STEP_UP).filter(|next| *next < at_limit_per_s * SHARE_MOST)
            }
            [None, Some(high)] => Some((high.rate * STEP_DOWN).max(RATE_LEAST_PER_S))
                .filter(|_| high.rate > RATE_LEAST_PER_S),
            [Some(low), Some(high)] => {
                // The first two ends are not steps between.
                let between = self.tried.len().saturating_sub(self.ends());
                let is_enough = between >= STEPS_BETWEEN || high.rate / low.rate < 1.01;
                self.crossing().filter(|_| !is_enough)
            }
        }
    }

    /// Whether the broken rate was tried only once, before there were rates between.
    fn is_doubtful(&self, high: TriedRate, low: Option<TriedRate>) -> bool {
        let tries = self
            .tried
            .iter()
            .filter(|tried| tried.rate == high.rate)
            .count();
        tries < 2
            && high.rate > RATE_LEAST_PER_S
            && (low.is_none() || self.tried.len() <= self.ends())
    }

    /// Number of steps until both ends were found.
    fn ends(&self) -> usize {
        let first = |wanted: bool| {
            self.tried
                .iter()
                .position(|tried| (tried.kept >= 1.0) == wanted)
        };
        let ends = first(true)
            .zip(first(false))
            .map_or(0, |(one, other)| one.max(other) + 1);
        // Includes the second try of the broken rate.
        ends + usize::from(ends > 0)
    }

    /// The rate at which the limit is just kept, by linear interpolation between the two ends. `None` without
    /// both.
    pub fn crossing(&self) -> Option<f64> {
        let [low, high] = self.bracket();
        let (low, high) = (low?, high?);
        // Infinite and very short response times show only the side of the limit.
        let (above, below) = (low.kept.min(3.0) - 1.0, 1.0 - high.kept.max(0.3));
        let share = above / (above + below).max(f64::MIN_POSITIVE);
        Some(low.rate + (high.rate - low.rate) * share.clamp(0.1, 0.9))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the search to its end for a service with the given L / p at a rate.
    fn searched(at_limit_per_s: f64, kept: impl Fn(f64) -> f64) -> Pilot {
        let mut pilot = Pilot::default();
        while let Some(rate) = pilot.next(at_limit_per_s) {
            pilot.tried.push(TriedRate {
                rate,
                kept: kept(rate),
            });
            assert!(pilot.tried.len() < 30, "{pilot:?}");
        }
        pilot
    }

    /// A service with L / p = 1 + 9.8 (1 − λ / 900) is found within a step or two.
    #[test]
    fn the_search_goes_up_or_down_and_then_between() {
        for at_limit in [300.0, 1000.0, 5000.0] {
            let pilot = searched(at_limit, |rate| (1.0 + 9.8 * (1.0 - rate / 900.0)).max(0.0));
            let crossing = pilot.crossing().unwrap();
            assert!(
                (crossing / 900.0_f64).ln().abs() < 0.03,
                "{at_limit}: {pilot:?}"
            );
        }
    }

    #[test]
    fn what_is_never_or_always_kept_ends_the_search() {
        let never = searched(1000.0, |_| 0.5);
        assert_eq!(
            (never.bracket(), never.crossing()),
            (
                [
                    None,
                    Some(TriedRate {
                        rate: 1.0,
                        kept: 0.5
                    })
                ],
                None
            )
        );
        let always = searched(1000.0, |_| 2.0);
        assert!(matches!(always.bracket(), [Some(kept), None] if kept.rate > 3000.0));
    }
}
