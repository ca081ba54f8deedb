//! Whether a record passes the limits of a gate. Intervals are compared with limits, never point estimates: a limit passes or fails where the
//! whole interval says so, and else it is inconclusive.
//!
//! Must not: judge what is void or has no end, or know exit codes.

use model::quantity::{count, many};
use model::{Check, Grade, Quantity, RequestOutcome};
use plan::{Bound, Figure, GateEntry, Limit, LookRule, Metric, Subject};
use record::{Counts, EndReason, Record, Trial};
use serde::Serialize;
use stats::{Estimate, MeanInterval, Rule};

use crate::comparison::Comparison;
use crate::measurement::{Measurement, Window, measurement};
use crate::metric::{BlockFigures, of_slice};
use crate::{Capacity, Conclusion, Erratic, checks, rule, variant};

/// What a limit came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ruling {
    /// The whole interval is on the right side of it.
    #[serde(rename = "kept")]
    Pass,
    /// It lies within the interval, or nothing can be said.
    #[serde(rename = "open")]
    Inconclusive,
    /// The whole interval is on the wrong side of it.
    #[serde(rename = "broken")]
    Fail,
}

/// One limit and one comparison or variant that it is about.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// The limit.
    pub limit: Limit,
    /// What it is about.
    pub subject: Subject,
    /// The label of that comparison, or the name of that variant.
    pub name: String,
    /// The limit's line in the experiment file; `None` where it came from a flag.
    pub line: Option<u32>,
    /// What was measured: a ratio of candidate to baseline, or an amount in responses per second, µs, bytes or as a share.
    pub measured: Option<Measured>,
    /// What follows.
    pub ruling: Ruling,
    /// Why, where that is not what the interval says.
    pub reason: Option<String>,
    /// For an inconclusive one: blocks in all that find what it is about in 8 of 10 runs, with the spread seen so far: of a change a true
    /// difference of its size, of an amount one as far from it as what was measured. Where there are not as many yet.
    pub blocks_needed: Option<u32>,
    /// Seconds that they take in all; `None` where one run cannot have as many.
    pub seconds_needed: Option<f64>,
}

impl Judgement {
    fn of(entry: &GateEntry, subject: Subject, name: &str, found: Found) -> Judgement {
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

/// Why nothing is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unfit {
    /// A finding forbids a conclusion.
    #[serde(rename = "void")]
    Invalid,
    /// It ended with fewer blocks than a verdict takes.
    TooFewBlocks,
    /// The run goes on, or was killed.
    Unfinished,
    /// Somebody stopped it, perhaps because of what it showed.
    Interrupted,
    /// A service, the load generator, or the making of data failed.
    Failed,
}

/// All limits of a gate, judged from a record.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    /// Why nothing is judged, and the same in words; `None` where it is.
    pub unfit: Option<(Unfit, String)>,
    /// Each limit with each thing that it is about; empty where nothing is judged.
    pub judgements: Vec<Judgement>,
}

impl Gate {
    /// The worst of all rulings; `None` where nothing is judged.
    pub fn ruling(&self) -> Option<Ruling> {
        self.judgements.iter().map(|judgement| judgement.ruling).max()
    }
}

/// Judges these limits from a record of which `conclusion` was drawn.
pub fn gated(record: &Record, conclusion: &Conclusion, entries: &[GateEntry]) -> Gate {
    let unfit = unfit(record, conclusion);
    let judged = || judgements(record, conclusion, entries);
    Gate { judgements: if unfit.is_none() { judged() } else { Vec::new() }, unfit }
}

/// Whether going on would buy nothing for the record's own gate: no limit is inconclusive but for want of something to measure.
pub fn limits_settled(record: &Record, conclusion: &Conclusion) -> bool {
    let entries = &record.header.plan.gate;
    let settled = |of: &Judgement| of.ruling != Ruling::Inconclusive || of.measured.is_none();
    entries.is_empty() || judgements(record, conclusion, entries).iter().all(settled)
}

fn unfit(record: &Record, conclusion: &Conclusion) -> Option<(Unfit, String)> {
    let Some(ended) = &record.ended else {
        return Some((Unfit::Unfinished, "the run has no end: it goes on, or was killed".to_owned()));
    };
    if ended.reason == EndReason::Interrupted {
        let why = "it was interrupted, and who stops a run may have seen what it showed".to_owned();
        return Some((Unfit::Interrupted, why));
    }
    if let Some(why) = ended.reason.failure() {
        return Some((Unfit::Failed, why.to_owned()));
    }
    if let Some(void) = conclusion.findings.iter().find(|finding| finding.grade == Grade::Invalid) {
        let number = void.check.number();
        return Some((Unfit::Invalid, format!("the measurement is invalid: {number}: {}", void.evidence)));
    }
    let few = conclusion.finding(Check::TooFewBlocks)?;
    Some((Unfit::TooFewBlocks, format!("{}; {}", few.evidence, few.remedy)))
}

fn judgements(record: &Record, conclusion: &Conclusion, entries: &[GateEntry]) -> Vec<Judgement> {
    let mut judged = match measurement(record) {
        Some(measured) => of_slices(record, &measured, entries),
        None => of_blocks(record, conclusion, entries),
    };
    if let Some(damage) = record.damage.first() {
        for judged in judged.iter_mut().filter(|judged| judged.ruling == Ruling::Pass) {
            judged.ruling = Ruling::Inconclusive;
            judged.reason = Some(format!("the record is damaged, and passes nothing: {damage}"));
        }
    }
    judged
}

fn of_blocks(record: &Record, conclusion: &Conclusion, entries: &[GateEntry]) -> Vec<Judgement> {
    let plan = &record.header.plan;
    let of = |entry| plan.gated(entry, entries).into_iter().map(move |subject| (entry, subject));
    let asked: Vec<(&GateEntry, Subject)> = entries.iter().flat_map(of).collect();
    let figures = asked.iter().map(|(entry, subject)| (entry.limit.figure, *subject));
    let others = figures.filter(|(of, it)| with_verdict(record, conclusion, *of, *it).is_none());
    let count = model::distinct(others).len();
    // Where nothing is compared nothing ends the run but its plan, and it is looked at once.
    let once = plan.comparisons.is_empty();
    let rule = if once { rule::rule_of(LookRule::Once, count) } else { rule::family(record, count) };
    let bench = Bench { record, conclusion, blocks: &BlockFigures::all(record), rule, count };
    asked.into_iter().map(|(entry, subject)| bench.judge(entry, subject)).collect()
}

/// What all judgements of a record share.
///
/// Comparisons with a verdict have the intervals of the report, which hold together at 95 %. All else that a gate judges, other metrics and
/// amounts, is a family of its own that shares 5 % by the same looks.
struct Bench<'a> {
    record: &'a Record,
    conclusion: &'a Conclusion,
    blocks: &'a [BlockFigures],
    /// By which that family is judged; `None` where the blocks settled on allow none.
    rule: Option<Rule>,
    /// How many it has.
    count: usize,
}

/// What was found of one figure: its interval, or a ruling that needs none, with the reason.
type Found = Result<Measured, (Ruling, String)>;

impl Bench<'_> {
    fn judge(&self, entry: &GateEntry, subject: Subject) -> Judgement {
        let (plan, limit) = (&self.record.header.plan, entry.limit);
        let (found, name) = match subject {
            Subject::Comparison(index) => (self.change(limit.figure, index), &plan.comparisons[index].label),
            Subject::Variant(index) => (self.amount(limit.figure, index), &plan.variants[index].name),
        };
        let mut judged = Judgement::of(entry, subject, name, found);
        let inconclusive = judged.measured.filter(|_| judged.ruling == Ruling::Inconclusive);
        judged.blocks_needed = inconclusive.and_then(|of| self.blocks_needed(&of, &limit, subject));
        judged.seconds_needed = rule::seconds(self.record, judged.blocks_needed);
        judged
    }

    /// Candidate over baseline: as the report has it where it gives a verdict, else from the gate's own family.
    fn change(&self, figure: Figure, index: usize) -> Found {
        let asked = &self.record.header.plan.comparisons[index];
        self.has_success(asked.candidate, Ruling::Fail)?;
        self.has_success(asked.baseline, Ruling::Inconclusive)?;
        // Shares of failed requests are bounded by amounts alone.
        let metric = figure.metric().ok_or_else(|| inconclusive("it is not compared"))?;
        let Some(verdict) = with_verdict(self.record, self.conclusion, figure, Subject::Comparison(index))
        else {
            let ratios = crate::comparison::ratios(self.blocks, asked, metric);
            return self.estimate(&ratios.ok_or_else(|| inconclusive(NO_VALUE))?);
        };
        let blocks = self.conclusion.blocks;
        let one_sided = |low: f64, high: Option<f64>| {
            Ok(Measured { low, high, blocks, ..Measured::exact(high.unwrap_or(low)) })
        };
        if let Some(of) = self.conclusion.unknown_capacity(verdict) {
            return Err(inconclusive(without_capacity(of)));
        }
        match (&verdict.estimate, verdict.without_spread, verdict.at_least, verdict.at_most) {
            (Some(estimate), ..) => Ok(Measured::of(estimate)),
            (None, Some(ratio), ..) => Ok(Measured { blocks, ..Measured::exact(ratio) }),
            (None, None, Some(low), _) => one_sided(low, None),
            (None, None, None, Some(high)) => one_sided(0.0, Some(high)),
            (None, None, None, None) => Err(match self.conclusion.known_from_below(verdict) {
                Some(of) => inconclusive(format!("the capacity of {} is a lower bound alone", of.variant)),
                None => self.too_early(),
            }),
        }
    }

    /// A variant's figure over its blocks.
    fn amount(&self, figure: Figure, index: usize) -> Found {
        self.has_success(index, Ruling::Fail)?;
        let Some(metric) = figure.metric() else { return self.failed(index) };
        let capacity = self.conclusion.capacities.get(index).filter(|_| metric == Metric::Capacity);
        if let Some(of) = capacity {
            // What the report does not name passes no limit.
            let holds = of.holds_per_s().ok_or_else(|| inconclusive(without_capacity(of)))?;
            return self.estimated(metric, index).map(|found| found.with_low_at_most(holds));
        }
        self.estimated(metric, index)
    }

    fn estimated(&self, metric: Metric, index: usize) -> Found {
        let measured = self.blocks.iter().filter(|block| block.variants[index].is_some());
        let values = measured.map(|block| block.sample(metric, index));
        let Some(values) = values.collect::<Option<Vec<_>>>().filter(|values| !values.is_empty()) else {
            return Err(inconclusive(without_value(metric)));
        };
        let logs: Vec<f64> = values.iter().map(|value| value.value.ln()).collect();
        let at_least = values.iter().any(|value| value.at_least);
        match self.estimate(&logs).map(|measured| measured.widened(self.conclusion.bias(metric, index))) {
            Ok(measured) if at_least => Ok(measured.unbounded()),
            // Every trial reached its bound, such as the time-out.
            Err(_) if at_least && self.critical_t(logs.len()).is_some() => {
                let least = values.iter().map(|value| value.value).fold(f64::INFINITY, f64::min);
                Ok(Measured { blocks: values.len() as u32, ..Measured::exact(least).unbounded() })
            }
            found => found,
        }
    }

    /// The critical t of each of the family after so many blocks; `None` where there is no interval.
    fn critical_t(&self, blocks: usize) -> Option<f64> {
        rule::critical_t(self.record, self.rule.as_ref(), blocks)
    }

    /// The share of a variant's requests that failed: the wider of Wilson's interval, which takes requests as independent, and of that by t
    /// over blocks, which knows that failures come in bursts and nothing of a share of 0.
    fn failed(&self, index: usize) -> Found {
        self.critical_t(self.blocks.len()).ok_or_else(|| self.too_early())?;
        let of_trial =
            |trial: &Trial| trial.measured().map(|slice| slice.counts.outcome()).sum::<RequestOutcome>();
        let counts: Vec<RequestOutcome> = variant::complete(self.record, index).map(of_trial).collect();
        let all: RequestOutcome = counts.iter().copied().sum();
        let blocks = counts.len() as u32;
        let wilson =
            self.rule.as_ref().and_then(|rule| stats::wilson(all.failed, all.due, rule.level(blocks)));
        let (wilson, value) = wilson.zip(all.failed_share()).ok_or_else(|| inconclusive(NO_REQUESTS))?;
        let shares = counts.iter().map(|of| of.failed_share().unwrap_or(0.0));
        let over_blocks =
            self.critical_t(counts.len()).map(|t| MeanInterval::of(&shares.collect::<Vec<_>>(), t));
        let (low, high) = over_blocks.flatten().map_or((wilson.low, wilson.high), |blocks| {
            (wilson.low.min(blocks.low).max(0.0), wilson.high.max(blocks.high).min(1.0))
        });
        Ok(Measured { value, low, high: Some(high), blocks, sd_log: None })
    }

    fn estimate(&self, logs: &[f64]) -> Found {
        let critical_t = self.critical_t(logs.len()).ok_or_else(|| self.too_early())?;
        Estimate::of(logs, critical_t).map(|estimate| Measured::of(&estimate)).map_err(|error| {
            let no_spread = matches!(error, stats::Error::NoSpread { .. });
            inconclusive(if no_spread { NO_SPREAD } else { "the blocks are too far apart for an interval" })
        })
    }

    fn has_success(&self, variant: usize, otherwise: Ruling) -> Result<(), (Ruling, String)> {
        let figures = &self.conclusion.variants[variant];
        let without = figures.no_success.as_ref();
        without.map_or(Ok(()), |of| Err((otherwise, format!("{}: {}", figures.name, of.answer))))
    }

    fn too_early(&self) -> (Ruling, String) {
        let (most, count) = (stats::COMPARISONS_MAX, self.count);
        inconclusive(match rule::may_look(self.record) {
            _ if count > most as usize => {
                format!("a gate judges at most {most} figures without a verdict, and here are {count}")
            }
            true => format!("no interval from {}", many(self.conclusion.blocks.into(), "block")),
            false => "no interval before the end of the run".to_owned(),
        })
    }

    fn blocks_needed(&self, measured: &Measured, limit: &Limit, subject: Subject) -> Option<u32> {
        let verdict = with_verdict(self.record, self.conclusion, limit.figure, subject);
        let rule = if verdict.is_some() { rule::rule(self.record) } else { self.rule.clone() };
        let ratio = match limit.bound {
            Bound::Change(_) => limit.bound.value(),
            Bound::Amount(..) => limit.bound.value() / measured.value,
        };
        // A fall is farther than a rise of as many per cent.
        let difference = ratio.ln().abs().exp_m1();
        let blocks = rule::blocks_to_find(difference, measured.sd_log?, &rule?)?;
        (blocks > self.conclusion.blocks).then_some(blocks)
    }
}

/// Failed requests from which on their share is judged, however few requests there were: as many as a quantile wants beyond it.
const FAILED_CERTAIN: u64 = 10;
const NO_SPREAD: &str = "every block gave the very same, so there is no interval";
const NO_VALUE: &str = "a trial has no value of it";
const NO_REQUESTS: &str = "there were no requests";

fn inconclusive(why: impl Into<String>) -> (Ruling, String) {
    (Ruling::Inconclusive, why.into())
}

/// Why no rate of a variant can be named.
fn without_capacity(of: &Capacity) -> String {
    match of.erratic {
        Some(Erratic { broke_per_s, met_per_s, .. }) => {
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

// Limits where nothing is compared: each slice's own figures, for there is no interval of one trial. Whether the next run would pass
// is not said.

/// Each amount with each slice. A change is about nothing here, and refused before a run.
fn of_slices(record: &Record, measured: &Measurement<'_>, entries: &[GateEntry]) -> Vec<Judgement> {
    let amounts = entries.iter().filter(|entry| !entry.limit.bound.is_change());
    let pairs = amounts.flat_map(|entry| measured.windows.iter().map(move |window| (entry, window)));
    let judged = pairs.map(|(entry, window)| {
        let found =
            figure(entry.limit.figure, window, record).and_then(|found| shown_by(found, entry, window));
        Judgement::of(entry, Subject::Variant(0), &window.name, found)
    });
    judged.collect()
}

/// No failure at all shows a limit only where one would break it, and a quantile only if the service responded all the time.
fn shown_by(found: Measured, entry: &GateEntry, window: &Window<'_>) -> Found {
    let (limit, due) = (&entry.limit, window.slice.counts.due());
    let needed = 1.0 / limit.bound.value();
    if limit.figure.metric().is_none() && found.value == 0.0 && needed.is_finite() && (due as f64) < needed {
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

/// Why whoever came at any time of a window in closed loop had to wait for longer than a limit on a quantile allows: the service was silent
/// for too large a share of it, and no requests were sent meanwhile that would show it.
fn silent_too_long(limit: &Limit, window: &Window<'_>) -> Option<String> {
    let q = limit.figure.metric()?.quantile()?;
    let counts = &window.slice.counts;
    let too_long_ns = checks::silent_ns(counts, (limit.bound.value() * 1e3) as u64);
    let allowed = 1.0 - q;
    let is_too_long = too_long_ns > 0 && too_long_ns as f64 >= allowed * counts.wall_ns() as f64;
    let (silent, load) = (Quantity::ns(checks::silent_ns(counts, 0)), Quantity::ns(counts.wall_ns()));
    is_too_long.then(|| {
        let allowed = Quantity::share(allowed);
        format!("no response for {silent} of {load}, and more than {allowed} of the time would have meant a longer wait")
    })
}

fn figure(figure: Figure, window: &Window<'_>, record: &Record) -> Found {
    let counts = &window.slice.counts;
    let Some(metric) = figure.metric() else {
        let share = counts.outcome().failed_share();
        return share.map(Measured::exact).ok_or_else(|| inconclusive(NO_REQUESTS));
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
    let trial = record.trials().find(|trial| trial.measured().next().is_some());
    of_slice(metric, window.slice, trial).map(Measured::exact).ok_or_else(missing)
}

/// A quantile of what a user waits; in closed loop nothing is due, and it is what the service took. A failed request has no response time:
/// it took longer than any limit.
fn quantile(counts: &Counts, q: f64, missing: impl Fn() -> (Ruling, String)) -> Found {
    let latencies = counts.open.as_ref().map_or(&counts.latency, |open| &open.response);
    let (due, failed) = (latencies.count(), counts.failed());
    let is_certain = latencies.resolves(q) || failed >= FAILED_CERTAIN;
    if is_certain && failed as f64 > (1.0 - q) * due as f64 {
        let (share, allowed) = (Quantity::share(failed as f64 / due as f64), Quantity::share(1.0 - q));
        let why = format!(
            "{share} of the requests failed, which have no response time: more than the {allowed} that may be slower"
        );
        return Err((Ruling::Fail, why));
    }
    if !latencies.resolves(q) {
        return Err(missing());
    }
    // Where failed responses lie among the others is not known: among the fastest at the most.
    let beyond = q + counts.unexpected() as f64 / due as f64;
    let (low, _) = latencies.bounds(q).ok_or_else(&missing)?;
    let high = latencies.bounds(beyond.min(1.0)).and_then(|(_, high)| high);
    let us = |ns: u64| ns as f64 / 1e3;
    Ok(Measured { high: high.map(us), ..Measured::exact(us(low)) })
}

/// The report's entry of a comparison in a metric, where it gives a verdict on it.
fn with_verdict<'a>(
    record: &Record,
    conclusion: &'a Conclusion,
    figure: Figure,
    subject: Subject,
) -> Option<&'a Comparison> {
    let Subject::Comparison(index) = subject else { return None };
    let (asked, metric) = (&record.header.plan.comparisons[index], figure.metric()?);
    let pair = (asked.baseline, asked.candidate, metric);
    conclusion.comparisons.iter().find(|of| (of.baseline, of.candidate, of.metric) == pair)
}

// What is compared with a limit: a value with its interval, and on which side of the limit it lies.

/// A figure with its interval: a ratio, or an amount in responses per second, µs, bytes or as a share.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Measured {
    /// The geometric mean over blocks; of failed requests their share; where one end alone is known, that.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end; `None` where requests without an answer leave it open. Value and lower end are lower bounds then.
    pub high: Option<f64>,
    /// Blocks it rests on.
    pub blocks: u32,
    /// Standard deviation of the blocks' logarithms, where it is one of those.
    #[serde(skip)]
    pub(crate) sd_log: Option<f64>,
}

impl Measured {
    fn of(estimate: &Estimate) -> Measured {
        let Estimate { blocks, ratio, low, high, sd_log, .. } = *estimate;
        Measured { value: ratio, low, high: Some(high), blocks, sd_log: Some(sd_log) }
    }

    /// What a slice had, which is no estimate of anything: all of its requests are in it.
    fn exact(value: f64) -> Measured {
        Measured { value, low: value, high: Some(value), blocks: 1, sd_log: None }
    }

    /// The same where blocks tell what it is at least.
    fn unbounded(self) -> Measured {
        Measured { high: None, sd_log: None, ..self }
    }

    /// The same with the interval wider by a factor on either side.
    fn widened(self, factor: f64) -> Measured {
        Measured { low: self.low / factor, high: self.high.map(|high| high * factor), ..self }
    }

    /// The same with a lower end no higher than this.
    fn with_low_at_most(self, low: f64) -> Measured {
        Measured { low: self.low.min(low), ..self }
    }

    /// Pass or fail where the whole interval is on one side.
    fn ruling(&self, limit: &Limit) -> Ruling {
        let (bound, low, high) = (limit.bound.value(), self.low, self.high.unwrap_or(f64::INFINITY));
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
