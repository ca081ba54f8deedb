//! Gate: whether a record passes given limits. Limits are compared with intervals, never with point
//! estimates. A limit passes or fails if the whole interval is on one side, and is inconclusive otherwise.
//!
//! This module does not judge invalid or unfinished records, and does not know exit codes.

use model::quantity::{count, many};
use model::{Grade, Quantity, RequestOutcome, Unfit};
use plan::{Bound, GateEntry, Limit, LimitFigure, LimitSubject, LookRule, Metric, Plan};
use record::{Counts, Record, Trial};
use serde::{Deserialize, Serialize};
use stats::{Estimate, MeanInterval, Rule};

use crate::checks::Check;
use crate::checks::v56_silent::silent_ns;
use crate::comparison::ComparisonResult;
use crate::measurement::{Measurement, measurement};
use crate::metric::{BlockFigures, of_slice};
use crate::sums::complete;
use crate::window::MeasuredWindow;
use crate::{Capacity, Conclusion, Erratic, rule};

/// Result of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ruling {
    /// The whole interval is on the right side of the limit.
    Pass,
    /// The limit is within the interval, or there is no interval.
    Inconclusive,
    /// The whole interval is on the wrong side of the limit.
    Fail,
}

/// One limit applied to one comparison or variant.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// The limit.
    pub limit: Limit,
    /// The comparison or variant that the limit applies to.
    pub subject: LimitSubject,
    /// Label of the comparison, or name of the variant.
    pub name: String,
    /// Line of the limit in the experiment file. `None` if it came from a flag.
    pub line: Option<u32>,
    /// The measured value: a ratio of candidate to baseline, or an amount in responses per second, µs, bytes
    /// or as a share.
    pub measured: Option<MeasuredFigure>,
    /// The result.
    pub ruling: Ruling,
    /// Reason for the result, if it is not the interval.
    pub reason: Option<String>,
    /// For an inconclusive result: total number of blocks that finds the difference in 8 of 10 runs, with the
    /// spread observed so far. For a change this is a true difference of the limit's size, for an amount its
    /// measured distance from the limit. `None` if there are already that many.
    pub blocks_needed: Option<u32>,
    /// Total seconds of these blocks. `None` if the number exceeds a single run.
    pub seconds_needed: Option<f64>,
}

impl Judgement {
    fn of(entry: &GateEntry, subject: LimitSubject, name: &str, found: FigureResult) -> Judgement {
        let (measured, ruling, reason) = match found {
            Ok(measured) => (Some(measured), measured.ruling(&entry.limit), None),
            Err((ruling, reason)) => (None, ruling, Some(reason)),
        };
        Judgement {
            limit: entry.limit,
            subject,
            name: name.to_owned(),
            line: entry.line,
            measured,
            ruling,
            reason,
            blocks_needed: None,
            seconds_needed: None,
        }
    }
}

/// All limits of a gate, judged from a record.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    /// Why nothing is judged, as a value and as text. `None` if the limits are judged.
    pub unfit: Option<(Unfit, String)>,
    /// Each limit with each comparison or variant it applies to. Empty if nothing is judged.
    pub judgements: Vec<Judgement>,
    /// If nothing is judged: each limit with the name of its subject.
    pub unjudged: Vec<(Limit, String)>,
}

impl Gate {
    /// The worst result. `None` if nothing is judged.
    pub fn ruling(&self) -> Option<Ruling> {
        self.judgements
            .iter()
            .map(|judgement| judgement.ruling)
            .max()
    }
}

/// Judges these limits from a record and its `conclusion`.
pub fn gated(record: &Record, conclusion: &Conclusion, entries: &[GateEntry]) -> Gate {
    let unfit = unfit(record, conclusion);
    let (judgements, unjudged) = if unfit.is_none() {
        (judgements(record, conclusion, entries), Vec::new())
    } else {
        (Vec::new(), unjudged(&record.header.plan, entries))
    };
    Gate {
        unfit,
        judgements,
        unjudged,
    }
}

/// Each limit with the names of what it applies to.
fn unjudged(plan: &Plan, entries: &[GateEntry]) -> Vec<(Limit, String)> {
    let of = |entry: &GateEntry| {
        let limit = entry.limit;
        let subjects = plan.gated(entry, entries).into_iter();
        subjects.map(move |subject| (limit, subject_name(plan, subject).to_owned()))
    };
    entries.iter().flat_map(of).collect()
}

/// Label of a comparison, or name of a variant.
fn subject_name(plan: &Plan, subject: LimitSubject) -> &str {
    match subject {
        LimitSubject::Comparison(index) => &plan.comparisons[index].label,
        LimitSubject::Variant(index) => &plan.variants[index].name,
    }
}

/// Whether more blocks would not help the record's own gate: no limit is inconclusive except those without a
/// measured value.
pub fn limits_settled(record: &Record, conclusion: &Conclusion) -> bool {
    let entries = &record.header.plan.gate;
    let settled = |of: &Judgement| of.ruling != Ruling::Inconclusive || of.measured.is_none();
    entries.is_empty() || judgements(record, conclusion, entries).iter().all(settled)
}

fn unfit(record: &Record, conclusion: &Conclusion) -> Option<(Unfit, String)> {
    let Some(ended) = &record.ended else {
        return Some((
            Unfit::Unfinished,
            "the run has no end: it goes on, or was killed".to_owned(),
        ));
    };
    if let Err(unfit) = ended.reason.fits_gate() {
        return Some(unfit);
    }
    if let Some(void) = conclusion
        .findings
        .iter()
        .find(|finding| finding.grade == Grade::Invalid)
    {
        let number = void.check.number();
        return Some((
            Unfit::Invalid,
            format!("the measurement is invalid: {number}: {}", void.evidence),
        ));
    }
    let few = conclusion.finding(Check::TooFewBlocks)?;
    Some((
        Unfit::TooFewBlocks,
        format!("{}; {}", few.evidence, few.remedy),
    ))
}

fn judgements(record: &Record, conclusion: &Conclusion, entries: &[GateEntry]) -> Vec<Judgement> {
    let mut judged = match measurement(record) {
        Some(measured) => of_slices(record, &measured, entries),
        None => of_blocks(record, conclusion, entries),
    };
    if let Some(damage) = record.damage.first() {
        for judged in judged
            .iter_mut()
            .filter(|judged| judged.ruling == Ruling::Pass)
        {
            judged.ruling = Ruling::Inconclusive;
            judged.reason = Some(format!(
                "the record is damaged, and passes nothing: {damage}"
            ));
        }
    }
    judged
}

fn of_blocks(record: &Record, conclusion: &Conclusion, entries: &[GateEntry]) -> Vec<Judgement> {
    let plan = &record.header.plan;
    let of = |entry| {
        plan.gated(entry, entries)
            .into_iter()
            .map(move |subject| (entry, subject))
    };
    let asked: Vec<(&GateEntry, LimitSubject)> = entries.iter().flat_map(of).collect();
    let figures = asked
        .iter()
        .map(|(entry, subject)| (entry.limit.figure, *subject));
    let others = figures.filter(|(of, it)| with_verdict(record, conclusion, *of, *it).is_none());
    let count = model::distinct(others).len();
    // Without comparisons, only the plan ends the run, so there is a single look.
    let once = plan.comparisons.is_empty();
    let rule = if once {
        rule::rule_of(LookRule::Once, count)
    } else {
        rule::family(record, count)
    };
    let bench = Bench {
        record,
        conclusion,
        blocks: &BlockFigures::all(record),
        rule,
        count,
    };
    asked
        .into_iter()
        .map(|(entry, subject)| bench.judge(entry, subject))
        .collect()
}

/// Common data of all judgements of a record.
///
/// Comparisons with a verdict have the intervals of the report, which hold together at 95 %. Other judged
/// metrics and amounts form a separate family that shares 5 % with the same looks.
struct Bench<'a> {
    record: &'a Record,
    conclusion: &'a Conclusion,
    blocks: &'a [BlockFigures],
    /// Rule of that family. `None` if the planned blocks allow none.
    rule: Option<Rule>,
    /// Number of members of that family.
    count: usize,
}

/// The interval of a figure, or a ruling without an interval, with its reason.
type FigureResult = Result<MeasuredFigure, (Ruling, String)>;

impl Bench<'_> {
    fn judge(&self, entry: &GateEntry, subject: LimitSubject) -> Judgement {
        let (plan, limit) = (&self.record.header.plan, entry.limit);
        let found = match subject {
            LimitSubject::Comparison(index) => self.change(limit.figure, index),
            LimitSubject::Variant(index) => self.amount(limit.figure, index),
        };
        let mut judged = Judgement::of(entry, subject, subject_name(plan, subject), found);
        let inconclusive = judged
            .measured
            .filter(|_| judged.ruling == Ruling::Inconclusive);
        judged.blocks_needed = inconclusive.and_then(|of| self.blocks_needed(&of, &limit, subject));
        judged.seconds_needed = rule::seconds(self.record, judged.blocks_needed);
        judged
    }

    /// Candidate over baseline: the report's interval if it has a verdict, otherwise one from the gate's own
    /// family.
    fn change(&self, figure: LimitFigure, index: usize) -> FigureResult {
        let asked = &self.record.header.plan.comparisons[index];
        self.has_success(asked.candidate, Ruling::Fail)?;
        self.has_success(asked.baseline, Ruling::Inconclusive)?;
        // Limits on shares of failed requests can only be amounts.
        let metric = figure
            .metric()
            .ok_or_else(|| inconclusive("it is not compared"))?;
        let Some(verdict) = with_verdict(
            self.record,
            self.conclusion,
            figure,
            LimitSubject::Comparison(index),
        ) else {
            let ratios = crate::comparison::ratios(self.blocks, asked, metric);
            return self.estimate(&ratios.ok_or_else(|| inconclusive(NO_VALUE))?);
        };
        let blocks = self.conclusion.blocks;
        let one_sided = |low: f64, high: Option<f64>| {
            Ok(MeasuredFigure {
                low,
                high,
                blocks,
                ..MeasuredFigure::exact(high.unwrap_or(low))
            })
        };
        if let Some(of) = self.conclusion.unknown_capacity(verdict) {
            return Err(inconclusive(without_capacity(of)));
        }
        match (
            &verdict.estimate,
            verdict.without_spread,
            verdict.at_least,
            verdict.at_most,
        ) {
            (Some(estimate), ..) => Ok(MeasuredFigure::of(estimate)),
            (None, Some(ratio), ..) => Ok(MeasuredFigure {
                blocks,
                ..MeasuredFigure::exact(ratio)
            }),
            (None, None, Some(low), _) => one_sided(low, None),
            (None, None, None, Some(high)) => one_sided(0.0, Some(high)),
            (None, None, None, None) => Err(match self.conclusion.known_from_below(verdict) {
                Some(of) => inconclusive(format!(
                    "the capacity of {} is a lower bound alone",
                    of.variant
                )),
                None => self.too_early(),
            }),
        }
    }

    /// A variant's figure over its blocks.
    fn amount(&self, figure: LimitFigure, index: usize) -> FigureResult {
        self.has_success(index, Ruling::Fail)?;
        let Some(metric) = figure.metric() else {
            return self.failed(index);
        };
        let capacity = self
            .conclusion
            .capacities
            .get(index)
            .filter(|_| metric == Metric::Capacity);
        if let Some(of) = capacity {
            // A capacity that the report does not state passes no limit.
            let holds = of
                .capacity_per_s
                .ok_or_else(|| inconclusive(without_capacity(of)))?;
            return self
                .estimated(metric, index)
                .map(|found| found.with_low_at_most(holds));
        }
        self.estimated(metric, index)
    }

    fn estimated(&self, metric: Metric, index: usize) -> FigureResult {
        let measured = self
            .blocks
            .iter()
            .filter(|block| block.variants[index].is_some());
        let values = measured.map(|block| block.sample(metric, index));
        let Some(values) = values
            .collect::<Option<Vec<_>>>()
            .filter(|values| !values.is_empty())
        else {
            return Err(inconclusive(without_value(metric)));
        };
        let logs: Vec<f64> = values.iter().map(|value| value.value.ln()).collect();
        let at_least = values.iter().any(|value| value.at_least);
        match self
            .estimate(&logs)
            .map(|measured| measured.widened(self.conclusion.bias(metric, index)))
        {
            Ok(measured) if at_least => Ok(measured.unbounded()),
            // Every trial reached its bound, such as the timeout.
            Err(_) if at_least && self.critical_t(logs.len()).is_some() => {
                let least = values
                    .iter()
                    .map(|value| value.value)
                    .fold(f64::INFINITY, f64::min);
                Ok(MeasuredFigure {
                    blocks: values.len() as u32,
                    ..MeasuredFigure::exact(least).unbounded()
                })
            }
            found => found,
        }
    }

    /// Critical t of each member of the family after this number of blocks. `None` if there is no interval.
    fn critical_t(&self, blocks: usize) -> Option<f64> {
        rule::critical_t(self.record, self.rule.as_ref(), blocks)
    }

    /// Share of failed requests of a variant. The result is the wider of two intervals: Wilson's, which
    /// assumes independent requests, and the t interval over blocks, which accounts for bursts of failures
    /// but cannot handle a share of 0.
    fn failed(&self, index: usize) -> FigureResult {
        self.critical_t(self.blocks.len())
            .ok_or_else(|| self.too_early())?;
        let of_trial = |trial: &Trial| {
            trial
                .measured()
                .map(|slice| slice.counts.outcome())
                .sum::<RequestOutcome>()
        };
        let counts: Vec<RequestOutcome> = complete(self.record, index).map(of_trial).collect();
        let all: RequestOutcome = counts.iter().copied().sum();
        let blocks = counts.len() as u32;
        let wilson = self
            .rule
            .as_ref()
            .and_then(|rule| stats::wilson(all.failed, all.due, rule.level(blocks)));
        let (wilson, value) = wilson
            .zip(all.failed_share())
            .ok_or_else(|| inconclusive(NO_REQUESTS))?;
        let shares = counts.iter().map(|of| of.failed_share().unwrap_or(0.0));
        let over_blocks = self
            .critical_t(counts.len())
            .map(|t| MeanInterval::of(&shares.collect::<Vec<_>>(), t));
        let (low, high) = over_blocks
            .flatten()
            .map_or((wilson.low, wilson.high), |blocks| {
                (
                    wilson.low.min(blocks.low).max(0.0),
                    wilson.high.max(blocks.high).min(1.0),
                )
            });
        Ok(MeasuredFigure {
            value,
            low,
            high: Some(high),
            blocks,
            sd_log: None,
        })
    }

    fn estimate(&self, logs: &[f64]) -> FigureResult {
        let critical_t = self
            .critical_t(logs.len())
            .ok_or_else(|| self.too_early())?;
        Estimate::of(logs, critical_t)
            .map(|estimate| MeasuredFigure::of(&estimate))
            .map_err(|error| {
                let no_spread = matches!(error, stats::Error::NoSpread { .. });
                inconclusive(if no_spread {
                    NO_SPREAD
                } else {
                    "the blocks are too far apart for an interval"
                })
            })
    }

    fn has_success(&self, variant: usize, otherwise: Ruling) -> Result<(), (Ruling, String)> {
        let figures = &self.conclusion.variants[variant];
        let without = figures.no_success.as_ref();
        without.map_or(Ok(()), |of| {
            Err((otherwise, format!("{}: {}", figures.name, of.answer)))
        })
    }

    fn too_early(&self) -> (Ruling, String) {
        let (most, count) = (stats::COMPARISONS_MAX, self.count);
        inconclusive(match rule::may_look(self.record) {
            _ if count > most as usize => {
                format!(
                    "a gate judges at most {most} figures without a verdict, and here are {count}"
                )
            }
            true => format!(
                "no interval from {}",
                many(self.conclusion.blocks.into(), "block")
            ),
            false => "no interval before the end of the run".to_owned(),
        })
    }

    fn blocks_needed(
        &self,
        measured: &MeasuredFigure,
        limit: &Limit,
        subject: LimitSubject,
    ) -> Option<u32> {
        let verdict = with_verdict(self.record, self.conclusion, limit.figure, subject);
        let rule = if verdict.is_some() {
            rule::rule(self.record)
        } else {
            self.rule.clone()
        };
        let ratio = match limit.bound {
            Bound::Change(_) => limit.bound.value(),
            Bound::Amount(..) => limit.bound.value() / measured.value,
        };
        // As a logarithm, a decrease is larger than an increase of the same percentage.
        let difference = ratio.ln().abs().exp_m1();
        let blocks = rule::blocks_to_find(difference, measured.sd_log?, &rule?)?;
        (blocks > self.conclusion.blocks).then_some(blocks)
    }
}

/// Number of failed requests from which their share is judged for any number of requests, equal to the number
/// of requests required beyond a quantile.
const FAILED_CERTAIN: u64 = 10;
const NO_SPREAD: &str = "every block gave the very same, so there is no interval";
const NO_VALUE: &str = "a trial has no value of it";
const NO_REQUESTS: &str = "there were no requests";

fn inconclusive(why: impl Into<String>) -> (Ruling, String) {
    (Ruling::Inconclusive, why.into())
}

/// Why the capacity of a variant cannot be stated.
fn without_capacity(of: &Capacity) -> String {
    match of.erratic {
        Some(Erratic {
            broke_per_s,
            met_per_s,
            ..
        }) => {
            let (broke, met) = (Quantity::per_s(broke_per_s), Quantity::per_s(met_per_s));
            format!(
                "{}: a limit broke at {broke} and held at about {met}, so no rate is its capacity",
                of.variant
            )
        }
        None => format!("{}: no rate is known to hold", of.variant),
    }
}

fn without_value(metric: Metric) -> String {
    match metric.quantile() {
        Some(q) => {
            let requests = count((10.0 / (1.0 - q)).round() as u64);
            format!("{} needs {requests} requests per trial", metric.name())
        }
        None => NO_VALUE.to_owned(),
    }
}

// Limits without comparisons are judged on each slice's own figures, because a single trial has no interval.
// They do not predict whether the next run would pass.

/// Applies each amount to each slice. A limit on a change does not apply here and is rejected before a run.
fn of_slices(record: &Record, measured: &Measurement<'_>, entries: &[GateEntry]) -> Vec<Judgement> {
    let amounts = entries
        .iter()
        .filter(|entry| !entry.limit.bound.is_change());
    let pairs =
        amounts.flat_map(|entry| measured.windows.iter().map(move |window| (entry, window)));
    let judged = pairs.map(|(entry, window)| {
        let found = figure(entry.limit.figure, window, record)
            .and_then(|found| shown_by(found, entry, window));
        Judgement::of(entry, LimitSubject::Variant(0), &window.name, found)
    });
    judged.collect()
}

/// Zero failures pass a limit only if enough requests were sent to violate it. A quantile passes only if the
/// service responded all the time.
fn shown_by(found: MeasuredFigure, entry: &GateEntry, window: &MeasuredWindow<'_>) -> FigureResult {
    let (limit, due) = (&entry.limit, window.slice.counts.due());
    let needed = 1.0 / limit.bound.value();
    if limit.figure.metric().is_none()
        && found.value == 0.0
        && needed.is_finite()
        && (due as f64) < needed
    {
        return Err(inconclusive(format!(
            "it takes {}, and here are {}",
            many(needed.ceil() as u64, "request"),
            count(due)
        )));
    }
    match silent_too_long(limit, window).filter(|_| found.ruling(limit) == Ruling::Pass) {
        Some(why) => Err((Ruling::Fail, why)),
        None => Ok(found),
    }
}

/// Explains why a quantile limit fails in closed loop because of silence. The service was silent for too
/// large a share of the window, during which no requests were sent that would show the wait.
fn silent_too_long(limit: &Limit, window: &MeasuredWindow<'_>) -> Option<String> {
    let q = limit.figure.metric()?.quantile()?;
    let counts = &window.slice.counts;
    let too_long_ns = silent_ns(counts, (limit.bound.value() * 1e3) as u64);
    let allowed = 1.0 - q;
    let is_too_long = too_long_ns > 0 && too_long_ns as f64 >= allowed * counts.wall_ns() as f64;
    let (silent, load) = (
        Quantity::ns(silent_ns(counts, 0)),
        Quantity::ns(counts.wall_ns()),
    );
    is_too_long.then(|| {
        let allowed = Quantity::share(allowed);
        format!("no response for {silent} of {load}, and more than {allowed} of the time would have meant a longer wait")
    })
}

fn figure(figure: LimitFigure, window: &MeasuredWindow<'_>, record: &Record) -> FigureResult {
    let counts = &window.slice.counts;
    let Some(metric) = figure.metric() else {
        let share = counts.outcome().failed_share();
        return share
            .map(MeasuredFigure::exact)
            .ok_or_else(|| inconclusive(NO_REQUESTS));
    };
    if let Some(void) = window.void() {
        return Err((Ruling::Fail, void.evidence.to_string()));
    }
    let missing = || inconclusive(without_value(metric));
    if let Some(q) = metric.quantile() {
        return quantile(counts, q, missing);
    }
    if metric == Metric::Throughput
        && let Some(why) = window.without_rate()
    {
        return Err(inconclusive(why));
    }
    let trial = record
        .trials()
        .find(|trial| trial.measured().next().is_some());
    of_slice(metric, window.slice, trial)
        .map(MeasuredFigure::exact)
        .ok_or_else(missing)
}

/// Quantile of the response time. In closed loop nothing is due, so it is the service time. A failed request
/// has no response time and counts as longer than any limit.
fn quantile(counts: &Counts, q: f64, missing: impl Fn() -> (Ruling, String)) -> FigureResult {
    let latencies = counts
        .open
        .as_ref()
        .map_or(&counts.latency, |open| &open.response);
    let (due, failed) = (latencies.count(), counts.failed());
    let is_certain = latencies.resolves(q) || failed >= FAILED_CERTAIN;
    if is_certain && failed as f64 > (1.0 - q) * due as f64 {
        let (share, allowed) = (
            Quantity::share(failed as f64 / due as f64),
            Quantity::share(1.0 - q),
        );
        let why = format!(
            "{share} of the requests failed, which have no response time: more than the {allowed} that may be slower"
        );
        return Err((Ruling::Fail, why));
    }
    if !latencies.resolves(q) {
        return Err(missing());
    }
    // The latencies of failed responses are not recorded separately. For the upper bound they count as the
    // fastest ones.
    let beyond = q + counts.unexpected() as f64 / due as f64;
    let (low, _) = latencies.bounds(q).ok_or_else(&missing)?;
    let high = latencies.bounds(beyond.min(1.0)).and_then(|(_, high)| high);
    let us = |ns: u64| ns as f64 / 1e3;
    Ok(MeasuredFigure {
        high: high.map(us),
        ..MeasuredFigure::exact(us(low))
    })
}

/// Returns the report's comparison in a metric, if it has a verdict.
fn with_verdict<'a>(
    record: &Record,
    conclusion: &'a Conclusion,
    figure: LimitFigure,
    subject: LimitSubject,
) -> Option<&'a ComparisonResult> {
    let LimitSubject::Comparison(index) = subject else {
        return None;
    };
    let (asked, metric) = (&record.header.plan.comparisons[index], figure.metric()?);
    let pair = (asked.baseline, asked.candidate, metric);
    conclusion
        .comparisons
        .iter()
        .find(|of| (of.baseline, of.candidate, of.metric) == pair)
}

// Values to compare with a limit, with their intervals.

/// A figure with its interval: a ratio, or an amount in responses per second, µs, bytes or as a share.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MeasuredFigure {
    /// Geometric mean over blocks. For failed requests, their share. If only one end is known, that end.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end. `None` if it is open because of requests without a response. Value and lower end are then
    /// lower bounds.
    pub high: Option<f64>,
    /// Number of blocks.
    pub blocks: u32,
    /// Standard deviation of the blocks' logarithms, for a geometric mean.
    #[serde(skip)]
    pub(crate) sd_log: Option<f64>,
}

impl MeasuredFigure {
    fn of(estimate: &Estimate) -> MeasuredFigure {
        let Estimate {
            blocks,
            ratio,
            low,
            high,
            sd_log,
            ..
        } = *estimate;
        MeasuredFigure {
            value: ratio,
            low,
            high: Some(high),
            blocks,
            sd_log: Some(sd_log),
        }
    }

    /// A value of a slice. It is not an estimate, because it includes all requests.
    fn exact(value: f64) -> MeasuredFigure {
        MeasuredFigure {
            value,
            low: value,
            high: Some(value),
            blocks: 1,
            sd_log: None,
        }
    }

    /// Removes the upper end, for values that are only lower bounds.
    fn unbounded(self) -> MeasuredFigure {
        MeasuredFigure {
            high: None,
            sd_log: None,
            ..self
        }
    }

    /// Widens the interval by a factor on either side.
    fn widened(self, factor: f64) -> MeasuredFigure {
        MeasuredFigure {
            low: self.low / factor,
            high: self.high.map(|high| high * factor),
            ..self
        }
    }

    /// Limits the lower end to at most `low`.
    fn with_low_at_most(self, low: f64) -> MeasuredFigure {
        MeasuredFigure {
            low: self.low.min(low),
            ..self
        }
    }

    /// Passes or fails if the whole interval is on one side of the limit.
    fn ruling(&self, limit: &Limit) -> Ruling {
        let (bound, low, high) = (
            limit.bound.value(),
            self.low,
            self.high.unwrap_or(f64::INFINITY),
        );
        let (pass, fail) = if limit.figure.wants_more() {
            (low > bound, high <= bound)
        } else {
            (high < bound, low >= bound)
        };
        match (pass, fail) {
            (true, _) => Ruling::Pass,
            (false, true) => Ruling::Fail,
            (false, false) => Ruling::Inconclusive,
        }
    }
}
