//! Whether a record passes the limits of a gate. Intervals are compared with limits, never point estimates: a limit passes or fails where the
//! whole interval says so, and else it is inconclusive.
//!
//! Must not: judge what is void or has no end, or know exit codes.

use plan::{Bound, Figure, GateEntry, Limit, Metric, Subject};
use record::{EndReason, Record};
use serde::Serialize;

use crate::Conclusion;
use crate::forecast;
use crate::measurement::measurement;
use crate::metric::BlockFigures;
use crate::rule;
use model::Grade;

mod alone;
mod family;
mod measured;

use family::Family;
pub use measured::Measured;

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

    /// What kind of thing it is about, in a word.
    pub fn subject_word(&self) -> &'static str {
        match self.subject {
            Subject::Comparison(_) => "comparison",
            Subject::Variant(_) => "variant",
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
    match unfit(record, conclusion) {
        Some(unfit) => Gate { unfit: Some(unfit), judgements: Vec::new() },
        None => Gate { unfit: None, judgements: judgements(record, conclusion, entries) },
    }
}

/// Whether going on would buy nothing for the record's own gate: no limit is inconclusive but for want of something to measure.
pub fn limits_settled(record: &Record, conclusion: &Conclusion) -> bool {
    let entries = &record.header.plan.gate;
    let settled =
        |judgement: &Judgement| judgement.ruling != Ruling::Inconclusive || judgement.measured.is_none();
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
    let void = conclusion.findings.iter().find(|finding| finding.grade == Grade::Invalid)?;
    let number = void.check.number();
    Some((Unfit::Invalid, format!("the measurement is invalid: {number}: {}", void.evidence)))
}

fn judgements(record: &Record, conclusion: &Conclusion, entries: &[GateEntry]) -> Vec<Judgement> {
    if let Some(measured) = measurement(record) {
        return alone::judgements(record, &measured, entries);
    }
    let plan = &record.header.plan;
    let asked: Vec<(&GateEntry, Subject)> = entries
        .iter()
        .flat_map(|entry| plan.gated(entry, entries).into_iter().map(move |subject| (entry, subject)))
        .collect();
    let blocks = BlockFigures::all(record);
    let figures: Vec<(Figure, Subject)> =
        asked.iter().map(|(entry, subject)| (entry.limit.figure, *subject)).collect();
    let bench =
        Bench { record, conclusion, blocks: &blocks, family: Family::of(record, conclusion, &figures) };
    asked.into_iter().map(|(entry, subject)| bench.judge(entry, subject)).collect()
}

/// What all judgements of a record share.
struct Bench<'a> {
    record: &'a Record,
    conclusion: &'a Conclusion,
    blocks: &'a [BlockFigures],
    family: Family,
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
        if let (Ruling::Pass, Some(damage)) = (judged.ruling, self.record.damage.first()) {
            judged.ruling = Ruling::Inconclusive;
            judged.reason = Some(format!("the record is damaged, and passes nothing: {damage}"));
        }
        let inconclusive = judged.measured.filter(|_| judged.ruling == Ruling::Inconclusive);
        judged.blocks_needed =
            inconclusive.and_then(|measured| self.blocks_needed(&measured, &limit, subject));
        judged.seconds_needed = forecast::seconds(self.record, judged.blocks_needed);
        judged
    }

    /// Candidate over baseline: as the report has it where it gives a verdict, else from the gate's own family.
    fn change(&self, figure: Figure, index: usize) -> Found {
        let asked = &self.record.header.plan.comparisons[index];
        self.has_success(asked.candidate, Ruling::Fail)?;
        self.has_success(asked.baseline, Ruling::Inconclusive)?;
        let inconclusive = |reason: &str| (Ruling::Inconclusive, reason.to_owned());
        // Shares of failed requests are bounded by amounts alone.
        let metric = figure.metric().ok_or_else(|| inconclusive("it is not compared"))?;
        match family::with_verdict(self.conclusion, asked, metric) {
            Some(comparison) => match (&comparison.estimate, comparison.without_spread) {
                (Some(estimate), _) => Ok(Measured::of(estimate)),
                (None, Some(_)) => Err(inconclusive(NO_SPREAD)),
                (None, None) => Err(self.too_early()),
            },
            None => {
                let ratios = crate::comparison::ratios(self.blocks, asked, metric);
                let ratios = ratios.ok_or_else(|| inconclusive("a trial has no value of it"))?;
                self.estimate(&ratios)
            }
        }
    }

    /// A variant's figure over its blocks.
    fn amount(&self, figure: Figure, index: usize) -> Found {
        self.has_success(index, Ruling::Fail)?;
        let Some(metric) = figure.metric() else { return self.failed(index) };
        let measured = self.blocks.iter().filter(|block| block.variants[index].is_some());
        let values = measured.map(|block| block.sample(metric, index));
        let Some(values) = values.collect::<Option<Vec<_>>>().filter(|values| !values.is_empty()) else {
            return Err((Ruling::Inconclusive, without_value(metric)));
        };
        let logs: Vec<f64> = values.iter().map(|value| value.value.ln()).collect();
        let at_least = values.iter().any(|value| value.at_least);
        match self.estimate(&logs) {
            Ok(measured) if at_least => Ok(measured.unbounded()),
            // Every trial reached its bound, such as the time-out.
            Err(_) if at_least && self.family.critical_t(logs.len()).is_some() => {
                Ok(Measured::at_least(&values.iter().map(|value| value.value).collect::<Vec<_>>()))
            }
            found => found,
        }
    }

    fn failed(&self, index: usize) -> Found {
        if self.family.critical_t(self.blocks.len()).is_none() {
            return Err(self.too_early());
        }
        let found = measured::failed(self.record, index, &self.family);
        found.ok_or_else(|| (Ruling::Inconclusive, "there were no requests".to_owned()))
    }

    fn estimate(&self, logs: &[f64]) -> Found {
        let critical_t = self.family.critical_t(logs.len()).ok_or_else(|| self.too_early())?;
        match stats::Estimate::of(logs, critical_t) {
            Ok(estimate) => Ok(Measured::of(&estimate)),
            Err(stats::Error::NoSpread { .. }) => Err((Ruling::Inconclusive, NO_SPREAD.to_owned())),
            Err(_) => Err((Ruling::Inconclusive, "the blocks are too far apart for an interval".to_owned())),
        }
    }

    fn has_success(&self, variant: usize, otherwise: Ruling) -> Result<(), (Ruling, String)> {
        let figures = &self.conclusion.variants[variant];
        match &figures.no_success {
            Some(without) => Err((otherwise, format!("{}: {}", figures.name, without.answer))),
            None => Ok(()),
        }
    }

    fn too_early(&self) -> (Ruling, String) {
        let reason = if rule::may_look(self.record) {
            format!("there is no interval from {} blocks", self.conclusion.blocks)
        } else {
            "no interval before the end of the run".to_owned()
        };
        (Ruling::Inconclusive, reason)
    }

    fn blocks_needed(&self, measured: &Measured, limit: &Limit, subject: Subject) -> Option<u32> {
        let verdict = match subject {
            Subject::Comparison(index) => {
                let asked = &self.record.header.plan.comparisons[index];
                limit.figure.metric().and_then(|metric| family::with_verdict(self.conclusion, asked, metric))
            }
            Subject::Variant(_) => None,
        };
        let rule = if verdict.is_some() { rule::rule(self.record) } else { self.family.rule.clone() };
        let difference = match limit.bound {
            Bound::Change(_) => (limit.bound.value() - 1.0).abs(),
            _ => (limit.bound.value() / measured.value).ln().abs().exp_m1(),
        };
        let blocks = forecast::blocks_to_find(difference, measured.sd_log?, &rule?)?;
        (blocks > self.conclusion.blocks).then_some(blocks)
    }
}

const NO_SPREAD: &str = "every block gave the very same, so there is no interval";

fn without_value(metric: Metric) -> String {
    match metric.quantile() {
        Some(q) => format!("it takes {:.0} requests in each trial", 10.0 / (1.0 - q)),
        None => "a trial has no value of it".to_owned(),
    }
}
