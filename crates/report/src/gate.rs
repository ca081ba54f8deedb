//! A gate as people read it, as JSON, and as what GitHub's runner understands. Pure; which limits pass `analysis` has judged.

use analysis::{Gate, Judgement, Measured, Ruling, Unfit};
use model::quantity::{Quantity, Unit, count, interval, small_share};
use plan::{Bound, Figure};
use record::Record;
use serde_json::{Value, json};

use crate::document::{Answer, Block, Cell, Column, Document, Fit, Line, Table, Tone, Verdict};
use crate::form::Report;

mod github;

/// Version of the JSON form; fields may be added within a version, never renamed or removed.
const VERSION: u32 = 1;
/// Reasons of single limits that are told below the table.
const REASONS_MAX: usize = 10;

/// A gate and the record that it was judged from.
#[derive(Debug)]
pub struct Gated<'a> {
    /// The record.
    pub record: &'a Record,
    /// What its limits came to.
    pub gate: &'a Gate,
    /// Whether limits that are inconclusive are let pass.
    pub allow_open: bool,
}

impl Report for Gated<'_> {
    fn document(&self) -> Document {
        let ruling = self.gate.ruling();
        let word = ruling.map_or("not judged", word_of);
        let verdict =
            Verdict { tone: ruling.map_or(Tone::Bad, tone), word: word.to_owned(), detail: String::new() };
        let columns = vec![
            Column::text("limit", Fit::Whole),
            Column::text("of", Fit::Wrapped),
            Column::text("", Fit::Whole),
            Column::figure("measured"),
            Column::figure("interval"),
        ];
        let mut table = Table::new("", columns);
        self.gate.judgements.iter().for_each(|judgement| table.push(row(judgement)));
        let reasons = self.reasons().into_iter().map(|reason| Block::Paragraph(Tone::Plain, reason));
        let answer = Answer { subject: self.conclusion(), verdicts: vec![verdict], notes: Vec::new() };
        let place = vec![
            Line::new("measured", self.place()),
            Line::new("record", self.record.directory.display().to_string()),
        ];
        let blocks = [Block::Answers(vec![answer]), Block::Table(table)].into_iter().chain(reasons);
        let blocks = blocks.chain([Block::Lines(place)]).filter(|block| !block.is_empty());
        Document { title: format!("Gate: {word}"), headline: None, blocks: blocks.collect() }
    }

    fn data(&self) -> Value {
        let unfit = self.gate.unfit.as_ref();
        json!({
            "gate_version": VERSION,
            "record": self.record.directory.display().to_string(),
            "outcome": self.gate.ruling().map_or_else(|| json!("not_judged"), |ruling| json!(ruling)),
            "passes": self.passes(),
            "allow_open": self.allow_open,
            "not_judged": unfit.map(|(unfit, reason)| json!({ "because": unfit, "reason": reason })),
            "limits": self.gate.judgements.iter().map(judgement_json).collect::<Vec<_>>(),
        })
    }
}

impl Gated<'_> {
    /// Whether the change may go in.
    pub fn passes(&self) -> bool {
        match self.gate.ruling() {
            Some(Ruling::Kept) => true,
            Some(Ruling::Open) => self.allow_open,
            Some(Ruling::Broken) | None => false,
        }
    }

    /// The sentence behind the word for all of it.
    fn conclusion(&self) -> String {
        if let Some((unfit, reason)) = &self.gate.unfit {
            return match unfit {
                Unfit::Void => reason.clone(),
                Unfit::Unfinished | Unfit::Interrupted => {
                    format!("no limit is judged by a run that did not end by its rule: {reason}")
                }
                Unfit::Failed => format!("no limit is judged by a run that failed: {reason}"),
            };
        }
        let of = |ruling| self.gate.judgements.iter().filter(|judgement| judgement.ruling == ruling).count();
        let (passing, inconclusive, failing) = (of(Ruling::Kept), of(Ruling::Open), of(Ruling::Broken));
        let all = passing + inconclusive + failing;
        let some = |some: usize, one: &str, many: &str| {
            let noun = if all == 1 { "limit" } else { "limits" };
            format!("{some} of {all} {noun} {}", if some == 1 { one } else { many })
        };
        match self.gate.ruling() {
            Some(Ruling::Broken) if inconclusive > 0 => {
                format!("{}, {inconclusive} inconclusive", some(failing, "fails", "fail"))
            }
            Some(Ruling::Broken) => some(failing, "fails", "fail"),
            Some(Ruling::Open) => {
                let passing = if self.allow_open { "; let pass by --allow-open" } else { "" };
                let told = some(inconclusive, "is inconclusive", "are inconclusive");
                format!("{told}, none fails{}{passing}", self.advice())
            }
            Some(Ruling::Kept) | None if all == 1 => "the limit passes".to_owned(),
            Some(Ruling::Kept) | None => format!("all {all} limits pass"),
        }
    }

    /// What would decide inconclusive limits.
    fn advice(&self) -> String {
        let open = || self.gate.judgements.iter().filter(|judgement| judgement.ruling == Ruling::Open);
        let needed: Option<Vec<u32>> = open().map(|judgement| judgement.blocks_needed).collect();
        let blocks = open().filter_map(|judgement| Some(judgement.measured?.blocks)).max();
        match (needed.and_then(|needed| needed.into_iter().max()), blocks) {
            (Some(needed), Some(blocks)) => format!(
                "; about {} blocks would decide, there are {blocks}: a larger budget, or a limit that this machine can tell",
                count(u64::from(needed))
            ),
            _ => String::new(),
        }
    }

    /// Of limits that no interval speaks of.
    fn reasons(&self) -> Vec<String> {
        let told = |judgement: &Judgement| {
            let reason = judgement.reason.as_ref()?;
            let Judgement { limit, name, ruling, .. } = judgement;
            Some(format!("{limit}, {name}: {}, because {reason}", word_of(*ruling)))
        };
        let mut reasons: Vec<String> = self.gate.judgements.iter().filter_map(told).collect();
        let more = reasons.len().saturating_sub(REASONS_MAX);
        reasons.truncate(REASONS_MAX);
        if more > 0 {
            reasons.push(format!("and {more} more of this kind; see the JSON"));
        }
        reasons
    }

    fn place(&self) -> String {
        let header = &self.record.header;
        let model = header.environment.cpu_model.as_deref().unwrap_or("unknown processor");
        format!("{} on {model}, {} processors", header.created, header.environment.cpus)
    }
}

/// What a limit came to, in a word.
pub(crate) fn word_of(ruling: Ruling) -> &'static str {
    match ruling {
        Ruling::Kept => "pass",
        Ruling::Open => "inconclusive",
        Ruling::Broken => "fail",
    }
}

fn tone(ruling: Ruling) -> Tone {
    match ruling {
        Ruling::Kept => Tone::Good,
        Ruling::Open => Tone::Doubtful,
        Ruling::Broken => Tone::Bad,
    }
}

fn row(judgement: &Judgement) -> Vec<Cell> {
    let (value, ends) = judgement.measured.map(|found| figures(judgement, &found)).unzip();
    vec![
        Cell::Text(judgement.limit.to_string()),
        Cell::text(&judgement.name),
        Cell::Word(tone(judgement.ruling), word_of(judgement.ruling).to_owned()),
        Cell::optional(value),
        Cell::optional(ends),
    ]
}

/// What a limit's figure is counted in.
fn unit(judgement: &Judgement) -> Unit {
    match (judgement.limit.bound, judgement.limit.figure) {
        (Bound::Change(_), _) => Unit::Ratio,
        (_, Figure::Failed) => Unit::Share,
        (_, Figure::Metric(metric)) => metric.unit(),
    }
}

/// The value and its interval in the unit of the limit's figure.
fn figures(judgement: &Judgement, measured: &Measured) -> (String, String) {
    let unit = unit(judgement);
    if let (Unit::Ratio, Some(high)) = (unit, measured.high) {
        return interval(measured.value, measured.low, high);
    }
    let figure = |value: f64| match unit {
        Unit::Share => small_share(value),
        unit => Quantity { value, unit }.to_string(),
    };
    match measured.high {
        Some(high) => (figure(measured.value), format!("{} to {}", figure(measured.low), figure(high))),
        None => (format!("≥ {}", figure(measured.value)), format!("{} or more", figure(measured.low))),
    }
}

fn judgement_json(judgement: &Judgement) -> Value {
    let limit = &judgement.limit;
    json!({
        "limit": limit.to_string(),
        "figure": limit.figure.name(),
        "relation": if limit.figure.wants_more() { ">" } else { "<" },
        "bound": limit.bound.value(),
        "unit": unit(judgement),
        "subject": judgement.subject_word(),
        "name": judgement.name,
        "line": judgement.line,
        "measured": judgement.measured,
        "ruling": judgement.ruling,
        "reason": judgement.reason,
        "blocks_needed": judgement.blocks_needed,
    })
}
