//! A gate as people read it, as JSON, and as what GitHub's runner understands. Pure; what is kept or broken `audit` has judged.

use analysis::{Gate, Judgement, Measured, Ruling, Unfit};
use anstyle::{AnsiColor, Style};
use model::Unit;
use plan::{Bound, Figure};
use record::Record;
use serde_json::{Value, json};

use crate::drawing::{BOLD, FAINT, named, table, wrapped};
use crate::figure::{count, interval, small_share};
use crate::markdown::escaped;

mod github;

/// Version of the JSON form; fields may be added within a version, never renamed or removed.
const VERSION: u32 = 1;
const HEADS: [&str; 5] = ["limit", "of", "", "measured", "interval"];
/// Reasons of single limits that are told below the table.
const REASONS_MAX: usize = 10;

/// A gate and the record that it was judged from.
#[derive(Debug)]
pub struct Gated<'a> {
    /// The record.
    pub record: &'a Record,
    /// What its limits came to.
    pub gate: &'a Gate,
    /// Whether limits that are open are let pass.
    pub allow_open: bool,
}

impl Gated<'_> {
    /// All of it, in lines of at most `width` columns where that can be.
    pub fn text(&self, width: usize) -> String {
        let mut out = format!("{BOLD}Gate{BOLD:#}\n\n");
        if !self.gate.judgements.is_empty() {
            let rows: Vec<Vec<String>> =
                self.gate.judgements.iter().map(|judgement| row(judgement).into()).collect();
            out += &format!("{}\n\n", table(&HEADS.map(str::to_owned), rows.iter(), 3));
        }
        for reason in self.reasons() {
            out += &wrapped(&reason, "", "  ", width);
        }
        let (word, rest) = self.conclusion();
        let line = wrapped(&format!("{}: {rest}", word.to_uppercase()), "", "  ", width);
        let style = self.style();
        out += &line.replacen(&word.to_uppercase(), &format!("{style}{}{style:#}", word.to_uppercase()), 1);
        out.push('\n');
        out + &named(FAINT, "measured", &self.place(), width)
            + &named(FAINT, "record", &self.record.directory.display().to_string(), width)
    }

    /// The same for a pull request, to stand below a report.
    pub fn markdown(&self) -> String {
        let (word, rest) = self.conclusion();
        let mut out = format!("### Gate: {word}\n\n");
        if !self.gate.judgements.is_empty() {
            out += "| limit | of | | measured | interval |\n|---|---|---|--:|--:|\n";
            for judgement in &self.gate.judgements {
                let mut cells = row(judgement).map(|cell| escaped(&cell));
                if judgement.ruling != Ruling::Kept {
                    cells[2] = format!("**{}**", cells[2]);
                }
                out += &format!("| {} |\n", cells.join(" | "));
            }
            out.push('\n');
        }
        for reason in self.reasons() {
            out += &format!("- {}\n", escaped(&reason));
        }
        if !self.reasons().is_empty() {
            out.push('\n');
        }
        out + &format!("{}. Measured {}.\n", escaped(&capitalised(&rest)), escaped(&self.place()))
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let unfit = self.gate.unfit.as_ref();
        json!({
            "gate_version": VERSION,
            "record": self.record.directory.display().to_string(),
            "outcome": self.outcome(),
            "passes": self.passes(),
            "allow_open": self.allow_open,
            "not_judged": unfit.map(|(unfit, reason)| json!({ "because": unfit, "reason": reason })),
            "limits": self.gate.judgements.iter().map(judgement_json).collect::<Vec<_>>(),
        })
    }

    /// Whether the change may go in.
    pub fn passes(&self) -> bool {
        match self.gate.ruling() {
            Some(Ruling::Kept) => true,
            Some(Ruling::Open) => self.allow_open,
            Some(Ruling::Broken) | None => false,
        }
    }

    fn outcome(&self) -> &'static str {
        self.gate.ruling().map_or("not_judged", word_of)
    }

    fn style(&self) -> Style {
        self.gate.ruling().map_or(AnsiColor::Red.on_default().bold(), look)
    }

    /// The word for all of it, and the sentence behind it.
    fn conclusion(&self) -> (&'static str, String) {
        if let Some((unfit, reason)) = &self.gate.unfit {
            let what = match unfit {
                Unfit::Void => "",
                Unfit::Unfinished | Unfit::Interrupted => {
                    "no limit is held against a run that did not end by its rule: "
                }
                Unfit::Failed => "no limit is held against a run that failed: ",
            };
            return ("not judged", format!("{what}{reason}"));
        }
        let of = |ruling| self.gate.judgements.iter().filter(|judgement| judgement.ruling == ruling).count();
        let (kept, open, broken) = (of(Ruling::Kept), of(Ruling::Open), of(Ruling::Broken));
        let all = kept + open + broken;
        let rest = match self.gate.ruling() {
            Some(Ruling::Broken) if open > 0 => {
                format!("{}, and {} open", are(broken, all, "broken"), is_or_are(open))
            }
            Some(Ruling::Broken) => are(broken, all, "broken"),
            Some(Ruling::Open) => {
                let passing = if self.allow_open { "; let pass by --allow-open" } else { "" };
                format!("{}, none broken{}{passing}", are(open, all, "open"), self.advice())
            }
            _ if all == 1 => "the limit is kept".to_owned(),
            _ => format!("all {all} limits are kept"),
        };
        (self.gate.ruling().map_or("not judged", word_of), rest)
    }

    /// What would decide open limits.
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
            Some(format!(
                "{}, {}: {}, because {reason}",
                judgement.limit,
                judgement.name,
                word_of(judgement.ruling)
            ))
        };
        let mut reasons: Vec<String> = self.gate.judgements.iter().filter_map(told).collect();
        let more = reasons.len().saturating_sub(REASONS_MAX);
        reasons.truncate(REASONS_MAX);
        if more > 0 {
            reasons.push(format!("and {more} more of this kind; JSON has them"));
        }
        reasons
    }

    fn place(&self) -> String {
        let header = &self.record.header;
        let model = header.environment.cpu_model.as_deref().unwrap_or("unknown processor");
        format!("{} on {model}, {} processors", header.created, header.environment.cpus)
    }
}

/// "2 of 5 limits are broken".
fn are(some: usize, all: usize, what: &str) -> String {
    let noun = if all == 1 { "limit" } else { "limits" };
    format!("{some} of {all} {noun} {} {what}", if some == 1 { "is" } else { "are" })
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn is_or_are(some: usize) -> String {
    if some == 1 { "1 is".to_owned() } else { format!("{some} are") }
}

pub(crate) fn word_of(ruling: Ruling) -> &'static str {
    match ruling {
        Ruling::Kept => "kept",
        Ruling::Open => "open",
        Ruling::Broken => "broken",
    }
}

fn look(ruling: Ruling) -> Style {
    match ruling {
        Ruling::Kept => AnsiColor::Green,
        Ruling::Open => AnsiColor::Yellow,
        Ruling::Broken => AnsiColor::Red,
    }
    .on_default()
    .bold()
}

fn row(judgement: &Judgement) -> [String; 5] {
    let dash = || "–".to_owned();
    let (value, ends) =
        judgement.measured.map_or_else(|| (dash(), dash()), |found| figures(judgement, &found));
    [judgement.limit.to_string(), judgement.name.clone(), word_of(judgement.ruling).to_owned(), value, ends]
}

/// The value and its interval in the words of the limit's figure.
fn figures(judgement: &Judgement, measured: &Measured) -> (String, String) {
    let limit = &judgement.limit;
    if let (Bound::Change(_), Some(high)) = (limit.bound, measured.high) {
        return interval(measured.value, measured.low, high);
    }
    let figure = |value: f64| match limit.figure {
        Figure::Failed => small_share(value),
        Figure::Metric(metric) => metric.unit().text(value),
    };
    match measured.high {
        Some(high) => (figure(measured.value), format!("{} to {}", figure(measured.low), figure(high))),
        None => (format!("≥ {}", figure(measured.value)), format!("{} or more", figure(measured.low))),
    }
}

fn judgement_json(judgement: &Judgement) -> Value {
    let limit = &judgement.limit;
    let unit = match (limit.bound, limit.figure.unit()) {
        (Bound::Change(_), _) | (Bound::Amount(..), Unit::Ratio) => "ratio",
        (Bound::Amount(..), Unit::PerS) => "per_s",
        (Bound::Amount(..), Unit::Us) => "us",
        (Bound::Amount(..), Unit::Bytes) => "bytes",
        (Bound::Amount(..), Unit::Share) => "share",
        (Bound::Amount(..), Unit::Count | Unit::Number) => "count",
    };
    json!({
        "limit": limit.to_string(),
        "figure": limit.figure.name(),
        "relation": if limit.figure.wants_more() { ">" } else { "<" },
        "bound": limit.bound.value(),
        "unit": unit,
        "subject": judgement.subject_word(),
        "name": judgement.name,
        "line": judgement.line,
        "measured": judgement.measured,
        "ruling": judgement.ruling,
        "reason": judgement.reason,
        "blocks_needed": judgement.blocks_needed,
    })
}
