//! Capacity: the request rate a variant sustains within its limits, with an interval over its processes. Also
//! the curve of response times over the rate, and whether the service was the limit. docs/capacity.md
//! describes the method.
//!
//! A rate at which the load generator was the limit does not count.

use std::ops::Range;

use model::RequestOutcome;
use plan::{Limit, LimitFigure};
use record::{OpenLoop, Record, Slice, SliceKind, Trial};
use schemars::JsonSchema;
use serde::Serialize;
use stats::Interval;
use stats::capacity::{widened, widening};

use crate::only_if;
use crate::sums::{complete, geometric_mean, mean, outcome, slices, total, trials};
use crate::usage::{
    GENERATOR_SHARE_MAX, QUEUED_SHARE_MAX, generator_share, most, services_limited,
};

mod search;
mod verdict;

use search::{CapacityFound, LimitClause, clauses, last_closed, probes, quantile_us, rate};
pub use search::{Pilot, at_limit_per_s, limit_s, next_rates, second_half_per_s};
use verdict::{Crossing, FAR_BELOW, Holding, RateStep, judge};

/// Maximum relative distance between shares that are merged to one point of the curve.
const SAME_RATE: f64 = 0.03;
/// Minimum number of requests beyond a quantile for a point of the curve.
const BEYOND_LEAST: f64 = 3.0;
/// Minimum number of processes in which a limit must break. A pause of the machine can break it in one
/// process.
const BREAKING_LEAST: usize = 2;
/// Number of connections relative to the requests served within the time limit. It is above 1 because
/// services do not serve in order of arrival.
const CONNECTIONS_ROOM: f64 = 2.0;
/// Share of its capacity below which a service has collapsed in overload.
const COLLAPSED_SHARE: f64 = 0.9;
/// Maximum half-width of an interval that is narrow enough.
const NARROW: f64 = 0.05;
/// Divisor of an overload slice: recovery is judged in the last part of this size.
const BEHIND: usize = 5;
/// Range of successful responses over due requests after recovery.
const RECOVERED: Range<f64> = 0.93..1.1;
/// Requests that may be in flight at either end of that part.
const ENDS: f64 = 2.0;

/// Capacity of one variant.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Capacity {
    /// Name of the variant.
    pub variant: String,
    /// The capacity in requests per second: the highest rate up to which the limits held at every measured
    /// rate. The lower end of `reached_interval`. `None` with fewer than two processes, if a limit is never or
    /// always kept, and if it is invalid or inconclusive.
    pub capacity_per_s: Option<f64>,
    /// Whether the capacity is a lower bound: the client was the limit, or no request failed and nothing else
    /// is limited.
    pub at_least: bool,
    /// Requests per second at which the first limit is reached: the geometric mean over processes. `None` as
    /// for `capacity_per_s`.
    pub reached_per_s: Option<f64>,
    /// 95 % interval of `reached_per_s` over processes, widened by the bias of finite windows. If a limit
    /// broke below, the lower end is the highest rate that held below that.
    pub reached_interval: Option<Interval>,
    /// The limit that is reached first, such as `p99 < 50ms`.
    pub met_first: Option<String>,
    /// Two rates of the curve: the highest that held below the lowest that broke, and the lowest that broke.
    pub bracket: [Option<f64>; 2],
    /// Number of connections of the last load. `None` before the first load at a rate.
    pub connections: Option<u32>,
    /// Why no capacity can be stated: a limit broke far below rates at which it held. `None` otherwise.
    pub erratic: Option<Erratic>,
    /// Responses per second in closed loop, at the limit.
    pub saturated_per_s: Option<f64>,
    /// Cores that the services used at the limit.
    pub saturated_cores: Option<f64>,
    /// The limiting resource.
    pub limited_by: LimitedBy,
    /// Response times over the rate, lowest rate first.
    pub curve: Vec<RatePoint>,
    /// A rate far below the capacity, in requests per second, at which a limit already breaks. It must break
    /// in at least two processes, and in half of those with such a low load. Response times then do not
    /// follow the rate, and the capacity is invalid.
    pub breaks_at_per_s: Option<f64>,
    /// Approximate seconds of a run for an interval of ±5 %, if this one is wider.
    pub seconds_for_five_percent: Option<f64>,
    /// Behaviour in overload and after it. `None` if not tested.
    pub overload: Option<Overload>,
    /// Factor by which the interval is widened on either side because windows are finite.
    #[serde(skip)]
    pub bias: f64,
}

/// Resource that limits a variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitedBy {
    /// The services' processors.
    Cpu,
    /// One thread of the services, or something they wait for. Their processors had idle time.
    Waiting,
    /// The load generator's processors.
    Client,
    /// The number of connections.
    Connections,
    /// Unknown, because the services' processes are not visible.
    Unknown,
}

impl LimitedBy {
    /// Whether the limit is not in the service, so that its capacity may be higher.
    pub fn is_of_client(self) -> bool {
        match self {
            LimitedBy::Client | LimitedBy::Connections => true,
            LimitedBy::Cpu | LimitedBy::Waiting | LimitedBy::Unknown => false,
        }
    }
}

/// A limit that broke far below rates at which it held.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Erratic {
    /// The lowest rate at which a limit broke, in requests per second.
    pub broke_per_s: f64,
    /// The rate at which windows near the crossing meet the limit.
    pub met_per_s: f64,
    /// The highest measured rate below `broke_per_s` at which the limits held. `None` if there is none.
    pub held_per_s: Option<f64>,
    /// Whether the load generator or its connections were the bottleneck at that rate.
    pub by_client: bool,
}

/// All windows at about the same rate.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RatePoint {
    /// Requests due per second.
    pub per_s: f64,
    /// Requests that were due.
    pub requests: u64,
    /// Median time to a successful response, in microseconds. `None` if fewer succeeded, or there were too
    /// few requests.
    pub p50_us: Option<f64>,
    /// 90th percentile. `None` as for `p50_us`.
    pub p90_us: Option<f64>,
    /// 99th percentile. `None` as for `p50_us`.
    pub p99_us: Option<f64>,
    /// The figure of each limit of `design.slo`, in its order: microseconds, or a share of requests. `None`
    /// as for `p50_us`.
    pub slo: Vec<Option<f64>>,
    /// Share of requests that did not end in an expected response.
    pub failed_share: f64,
    /// Cores that the services used. `None` if the services are not visible.
    pub cores: Option<f64>,
    /// Whether all limits held. `None` if there were too few requests.
    pub held: Option<bool>,
    /// Whether the load generator or its connections were the bottleneck.
    #[serde(skip)]
    pub is_limited: bool,
}

/// An overload and the time after it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Overload {
    /// Requests due per second.
    pub per_s: f64,
    /// Successful responses per second during the overload.
    pub goodput_per_s: f64,
    /// Whether that is much less than the throughput at the limit.
    pub collapsed: bool,
    /// The rate right after the overload.
    pub behind_per_s: f64,
    /// Whether the service kept the limits again at that rate.
    pub recovered: bool,
}

/// Results of the windows of one variant. Computed once per look, because it merges histograms.
#[derive(Debug)]
pub(crate) struct Searched {
    found: Option<CapacityFound>,
    limited_by: LimitedBy,
    curve: Vec<RatePoint>,
    holding: Holding,
}

/// Results of each variant. Empty if capacity is not measured.
pub(crate) fn searched(record: &Record) -> Vec<Searched> {
    let plan = &record.header.plan;
    let variants = if plan.design.slo.is_empty() {
        0
    } else {
        plan.variants.len()
    };
    (0..variants)
        .map(|variant| Searched::of(record, variant))
        .collect()
}

/// Whether no capacity of a variant can be stated, because a limit broke far below rates at which it held.
pub(crate) fn is_erratic(record: &Record, variant: usize) -> bool {
    matches!(
        Searched::of(record, variant).holding,
        Holding::Erratic { .. }
    )
}

impl Searched {
    fn of(record: &Record, variant: usize) -> Searched {
        let found = CapacityFound::of(record, variant);
        let curve = curve(record, variant);
        let crossing = found.as_ref().and_then(|found| {
            let logs: Vec<f64> = found.logs.values().copied().collect();
            let (per_s, interval) = widened(&logs, found.clause.limit_s, found.window_s)?;
            Some(Crossing { per_s, interval })
        });
        let steps: Vec<RateStep> = curve.iter().map(RatePoint::step).collect();
        Searched {
            found,
            limited_by: limited_by(record, variant),
            holding: judge(&steps, crossing),
            curve,
        }
    }

    /// Capacity of the trial in a block, which depends on the other trials too. `None` if no capacity can be
    /// stated.
    pub(crate) fn sample(&self, block: u32) -> Option<(f64, bool)> {
        only_if(!matches!(self.holding, Holding::Erratic { .. }))?;
        let value = self.found.as_ref()?.logs.get(&block)?.exp();
        Some((value, self.at_least()))
    }

    fn at_least(&self) -> bool {
        self.limited_by.is_of_client() || self.found.as_ref().is_some_and(|found| found.is_silent)
    }
}

impl Capacity {
    /// Removes everything that could be taken for a result, because the variant is invalid. `breaks_at_per_s`
    /// stays: it is a reason. Each field is named, so that a new one needs a decision.
    pub(crate) fn forget_figures(&mut self) {
        let Capacity {
            variant: _,
            capacity_per_s,
            at_least,
            reached_per_s,
            reached_interval,
            met_first,
            bracket,
            connections: _,
            erratic,
            saturated_per_s,
            saturated_cores,
            limited_by,
            curve,
            breaks_at_per_s: _,
            seconds_for_five_percent,
            overload,
            bias: _,
        } = self;
        (*capacity_per_s, *reached_per_s, *reached_interval) = (None, None, None);
        (*met_first, *erratic, *overload) = (None, None, None);
        (*saturated_per_s, *saturated_cores, *bracket) = (None, None, [None; 2]);
        *seconds_for_five_percent = None;
        (*at_least, *limited_by) = (false, LimitedBy::Unknown);
        curve.clear();
    }

    /// Determines the capacity of a variant.
    pub(crate) fn of(record: &Record, variant: usize, searched: &Searched) -> Capacity {
        let found = searched.found.as_ref();
        let crossing = if let Holding::Holds(crossing) = searched.holding {
            Some(crossing)
        } else {
            None
        };
        let interval = crossing.map(|crossing| crossing.interval);
        let erratic = match searched.holding {
            Holding::Erratic {
                broken,
                held_per_s,
                crossing_per_s,
            } => Some(Erratic {
                broke_per_s: broken.per_s,
                met_per_s: crossing_per_s,
                held_per_s,
                by_client: broken.is_limited,
            }),
            Holding::Holds(_) | Holding::Between(_) => None,
        };
        let steps: Vec<RateStep> = searched.curve.iter().map(RatePoint::step).collect();
        let bracket = if let Holding::Between(ends) = judge(&steps, None) {
            ends
        } else {
            [None, None]
        };
        let met = crossing
            .map(|crossing| crossing.per_s)
            .or(erratic.map(|erratic| erratic.met_per_s));
        Capacity {
            variant: record.header.plan.variants[variant].name.clone(),
            capacity_per_s: interval.map(|interval| interval.low),
            at_least: searched.at_least(),
            reached_per_s: crossing.map(|crossing| crossing.per_s),
            reached_interval: interval,
            met_first: found.map(|found| found.clause.limit.to_string()),
            bracket,
            connections: connections(record, variant),
            erratic,
            saturated_per_s: at_limit(record, variant),
            saturated_cores: cores_at_limit(record, variant),
            limited_by: searched.limited_by,
            curve: searched.curve.clone(),
            breaks_at_per_s: met.and_then(|per_s| breaks_below(record, variant, per_s * FAR_BELOW)),
            seconds_for_five_percent: interval.and_then(|interval| seconds_for(record, interval)),
            overload: overload(record, variant),
            bias: found.map_or(1.0, |of| widening(of.clause.limit_s, of.window_s)),
        }
    }

    /// The point of the curve closest to a share of the capacity.
    pub fn near(&self, share: f64) -> Option<&RatePoint> {
        let wanted = self.capacity_per_s? * share;
        let far = |point: &&RatePoint| (point.per_s / wanted).ln().abs();
        let near = self.curve.iter().filter(|point| far(point) < 0.2);
        near.min_by(|one, other| far(one).total_cmp(&far(other)))
    }
}

/// Throughput of a variant at its limit, in closed loop: the mean over its trials.
pub(crate) fn at_limit(record: &Record, variant: usize) -> Option<f64> {
    geometric_mean(trials(record, variant).filter_map(at_limit_per_s))
}

fn cores(slices: &[&Slice]) -> Option<f64> {
    let (used_ns, wall_ns) = (
        total(slices, Slice::services_cpu_ns),
        total(slices, |of| of.counts.wall_ns()),
    );
    let seen = slices.iter().any(|slice| !slice.services.is_empty());
    (seen && wall_ns > 0).then(|| used_ns as f64 / wall_ns as f64)
}

fn cores_at_limit(record: &Record, variant: usize) -> Option<f64> {
    cores(
        &trials(record, variant)
            .filter_map(last_closed)
            .collect::<Vec<_>>(),
    )
}

/// The limiting resource near the capacity, from the windows there. Without such windows, from the
/// windows of the search.
fn limited_by(record: &Record, variant: usize) -> LimitedBy {
    let mut near: Vec<&Slice> = slices(record, variant)
        .filter(|of| of.kind == SliceKind::Measured)
        .collect();
    if near.is_empty() {
        // Above the rate that it keeps, all connections are busy whatever the limit is.
        let [kept, _] = Pilot::of(record, variant).unwrap_or_default().bracket();
        let is_kept =
            |slice: &&Slice| rate(slice).is_some() && rate(slice) == kept.map(|tried| tried.rate);
        near.extend(slices(record, variant).filter(is_kept));
    }
    let machine = record.header.environment.cpus;
    let at_limit = |trial: &Trial| {
        let slices = [last_closed(trial)?];
        Some(services_limited(machine, &trial.started, &slices))
    };
    let is_busy = most(trials(record, variant).filter_map(at_limit));
    if generator_share(&near) > GENERATOR_SHARE_MAX && !is_busy {
        return LimitedBy::Client;
    }
    if queues(&near) && !has_connections(record, variant) {
        return LimitedBy::Connections;
    }
    match cores_at_limit(record, variant) {
        None => LimitedBy::Unknown,
        Some(_) if is_busy => LimitedBy::Cpu,
        Some(_) => LimitedBy::Waiting,
    }
}

/// Whether more connections could not help. A request that finds none free is behind too many others to
/// keep its limit.
pub(crate) fn has_connections(record: &Record, variant: usize) -> bool {
    let of_time = record
        .header
        .plan
        .design
        .slo
        .iter()
        .any(|limit| limit.figure != LimitFigure::Failed);
    let wanted =
        || at_limit(record, variant).and_then(|per_s| connections_wanted(record, variant, per_s));
    of_time
        && wanted()
            .zip(connections(record, variant))
            .is_some_and(|(wanted, used)| used >= wanted)
}

/// Number of connections in the last load of a variant.
pub fn connections(record: &Record, variant: usize) -> Option<u32> {
    slices(record, variant)
        .filter(|slice| slice.counts.open.is_some())
        .last()
        .map(|slice| slice.connections)
}

/// Sufficient number of connections for a service with this throughput at its limit: twice the number that
/// the time limit allows to be in use (Little's law). `None` if no response time is limited.
pub fn connections_wanted(record: &Record, variant: usize, at_limit_per_s: f64) -> Option<u32> {
    let (design, load) = (
        &record.header.plan.design,
        &record.header.plan.variants[variant].load,
    );
    only_if(
        design
            .slo
            .iter()
            .any(|limit| limit.figure != LimitFigure::Failed),
    )?;
    let under_way = CONNECTIONS_ROOM * at_limit_per_s * limit_s(design);
    Some(
        (under_way / f64::from(load.protocol.lanes()))
            .ceil()
            .min(f64::from(u32::MAX)) as u32,
    )
}

/// The width of an interval decreases with the root of the time.
fn seconds_for(record: &Record, interval: Interval) -> Option<f64> {
    let half_width = (interval.high / interval.low).ln() / 2.0;
    let seconds = record.ended.as_ref()?.seconds;
    (half_width > NARROW).then(|| seconds * (half_width / NARROW).powi(2))
}

/// A window with its share of the measured rate of its trial, and its rate.
type WindowShare<'a> = (f64, f64, &'a Slice);

fn shares(trial: &Trial) -> Vec<WindowShare<'_>> {
    let window = trial.measured().next().and_then(rate);
    let counts = |slice: &&Slice| slice.kind.is_at_a_rate();
    let slices = trial
        .slices
        .iter()
        .filter(counts)
        .filter_map(|slice| Some((rate(slice)?, slice)));
    slices
        .map(|(rate, slice)| (rate / window.unwrap_or(1.0), rate, slice))
        .collect()
}

/// The highest rate below `most_per_s` at which a single step breaks a limit, if that happens in enough
/// processes. All processes with such a low load count together, because a run of four has one step at each
/// rate.
fn breaks_below(record: &Record, variant: usize, most_per_s: f64) -> Option<f64> {
    let clauses = clauses(&record.header.plan.design);
    let told = |trial: &Trial| -> Vec<(f64, bool)> {
        let low = probes(trial)
            .filter_map(|slice| Some((rate(slice).filter(|of| *of < most_per_s)?, slice)));
        let of = |(rate, slice)| {
            clauses
                .iter()
                .filter_map(move |of| Some((rate, of.breaks(&[slice])?)))
        };
        low.flat_map(of).collect()
    };
    let low: Vec<Vec<(f64, bool)>> = complete(record, variant)
        .map(told)
        .filter(|told| !told.is_empty())
        .collect();
    let highest = |told: &Vec<(f64, bool)>| {
        told.iter()
            .filter(|(_, breaks)| *breaks)
            .map(|(rate, _)| *rate)
            .reduce(f64::max)
    };
    let broken: Vec<f64> = low.iter().filter_map(highest).collect();
    only_if(broken.len() >= BREAKING_LEAST && broken.len() * 2 >= low.len())?;
    broken.into_iter().reduce(f64::max)
}

/// Each limit of `design.slo` with its figure over the steps of the search at this rate, which may have had few
/// requests.
pub fn figures_at(record: &Record, variant: usize, per_s: f64) -> Vec<(Limit, f64)> {
    let at_rate: Vec<&Slice> = slices(record, variant)
        .filter(|slice| slice.kind == SliceKind::Probe && rate(slice) == Some(per_s))
        .collect();
    let figure = |clause: &LimitClause| Some((clause.limit, clause.rough_figure(&at_rate)?));
    clauses(&record.header.plan.design)
        .iter()
        .filter_map(figure)
        .collect()
}

fn curve(record: &Record, variant: usize) -> Vec<RatePoint> {
    let clauses = clauses(&record.header.plan.design);
    let has_connections = has_connections(record, variant);
    let of = |point: &Vec<WindowShare<'_>>| RatePoint::of(point, &clauses, has_connections);
    let mut points: Vec<RatePoint> = points(record, variant).iter().map(of).collect();
    points.sort_by(|one, other| one.per_s.total_cmp(&other.per_s));
    points
}

/// Windows grouped by their share of the rate at which each process was measured, because processes differ.
/// Before the first block, the windows of the search.
fn points(record: &Record, variant: usize) -> Vec<Vec<WindowShare<'_>>> {
    let is_measured = |trial: &Trial| trial.measured().next().is_some();
    let any = trials(record, variant).any(is_measured);
    let chosen = trials(record, variant).filter(|trial| !any || is_measured(trial));
    let mut open: Vec<WindowShare<'_>> = chosen.flat_map(shares).collect();
    open.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut points: Vec<Vec<WindowShare<'_>>> = Vec::new();
    for one in open {
        match points
            .last_mut()
            .filter(|point| (one.0 / point[0].0).ln() < SAME_RATE)
        {
            Some(point) => point.push(one),
            None => points.push(vec![one]),
        }
    }
    points
}

impl RatePoint {
    fn of(point: &[WindowShare<'_>], clauses: &[LimitClause], has_connections: bool) -> RatePoint {
        let slices: Vec<&Slice> = point.iter().map(|(.., slice)| *slice).collect();
        let outcome @ RequestOutcome { due, failed: _ } = outcome(&slices);
        let quantile = |q: f64| quantile_us(&slices, q);
        RatePoint {
            per_s: mean(point.iter().map(|(_, rate, _)| *rate)).unwrap_or(0.0),
            requests: due,
            p50_us: quantile(0.5),
            p90_us: quantile(0.9),
            p99_us: quantile(0.99),
            slo: clauses.iter().map(|of| of.figure(&slices)).collect(),
            failed_share: outcome.failed_share().unwrap_or(0.0),
            cores: cores(&slices),
            held: held(&slices, clauses),
            is_limited: generator_share(&slices) > GENERATOR_SHARE_MAX
                || queues(&slices) && !has_connections,
        }
    }

    fn step(&self) -> RateStep {
        RateStep {
            per_s: self.per_s,
            held: self.held,
            is_limited: self.is_limited,
        }
    }
}

/// Whether all limits held over these slices. An exceeded limit counts as broken only with enough requests.
fn held(slices: &[&Slice], clauses: &[LimitClause]) -> Option<bool> {
    let breaks = clauses
        .iter()
        .map(|clause| (clause.breaks(slices), clause.kept_by(slices)));
    let told: Vec<Option<bool>> = breaks
        .map(|(breaks, kept)| match (breaks, kept) {
            (Some(breaks), _) => Some(!breaks),
            (None, Some(kept)) => (kept >= 1.0).then_some(true),
            (None, None) => None,
        })
        .collect();
    if told.contains(&Some(false)) {
        Some(false)
    } else {
        told.iter().all(Option::is_some).then_some(true)
    }
}

/// Whether too many requests found no free connection.
fn queues(slices: &[&Slice]) -> bool {
    let open = |of: fn(&OpenLoop) -> u64| {
        total(slices, |slice| slice.counts.open.as_deref().map_or(0, of))
    };
    let (due, queued) = (open(|open| open.intended), open(|open| open.queued));
    queued as f64 > QUEUED_SHARE_MAX * due as f64
}

/// Result of the last trial with overload. A service has recovered if its throughput equals the requests due,
/// neither less nor, because of a remaining backlog, more.
fn overload(record: &Record, variant: usize) -> Option<Overload> {
    let over = slices(record, variant)
        .filter(|slice| slice.kind == SliceKind::Overload)
        .last()?;
    let (from_per_s, to_per_s, fall) = over.asked?.open?.rate.ramp()?;
    let done = &over.counts.successful_per_100_ms;
    let sum = |buckets: &[u32]| buckets.iter().map(|count| f64::from(*count)).sum::<f64>();
    let seconds = |buckets: usize| buckets.max(1) as f64 / 10.0;
    let fall = ((fall.as_secs_f64() * 10.0) as usize).min(done.len());
    // The last bucket may be shorter than the others.
    let behind = done.len() - done.len() / BEHIND..done.len().saturating_sub(1);
    let due = over
        .counts
        .open
        .as_ref()
        .map(|open| open.due_per_100_ms.as_slice())
        .unwrap_or_default();
    let due = due
        .get(behind.clone())
        .map_or(to_per_s * seconds(behind.len()), sum);
    let goodput_per_s = sum(&done[..fall]) / seconds(fall);
    let done = sum(done.get(behind)?);
    // At a low rate a single request in flight at either end would be a relevant share.
    let is_at_an_end = (done - due).abs() <= ENDS.min(due / 2.0);
    Some(Overload {
        per_s: from_per_s,
        goodput_per_s,
        collapsed: goodput_per_s < COLLAPSED_SHARE * at_limit(record, variant)?,
        behind_per_s: to_per_s,
        recovered: is_at_an_end || RECOVERED.contains(&(done / due)),
    })
}
