//! Records, one a line, the newest first.

use analysis::{Compared, Essentials, Outcome};
use model::quantity::{change, many, span};
use record::EndReason;
use serde_json::{Value, json};

use super::{Listed, VERSION, minute};
use crate::document::{Block, Cell, Column, Document, Fit, Line, Row, Table, Tone};
use crate::experiment::{answer, machine_line};
use crate::form::Report;

/// Letters of a commit that are shown.
const COMMIT_LETTERS: usize = 7;

/// Records in the order in which they are shown.
#[derive(Debug)]
pub struct List<'a> {
    /// The newest first.
    pub records: &'a [Listed<'a>],
    /// Older ones that are not among them.
    pub hidden: usize,
}

impl Report for List<'_> {
    fn document(&self) -> Document {
        // The time is in most names already, and then goes first.
        let dated = self.records.iter().all(|listed| has_stamp(listed.name));
        let columns = vec![
            Column::text("record", Fit::CutMiddle),
            Column::text("when (UTC)", Fit::Whole).spare(if dated { 9 } else { 4 }),
            Column::text("verdict", Fit::CutEnd),
            Column::figure("blocks").spare(5),
            Column::figure("length").spare(6),
            Column::text("on", Fit::Whole),
            Column::text("source", Fit::Whole).spare(8),
        ];
        let mut table = Table::new("", columns);
        self.records.iter().for_each(|listed| table.push(row(listed)));
        if self.hidden > 0 {
            let text =
                format!("{} older not shown: --limit {}", self.hidden, self.hidden + self.records.len());
            table.rows.push(Row::Note(Tone::Faint, text));
        }
        let unreadable = self.records.iter().filter_map(|listed| {
            Some(Block::Paragraph(Tone::Plain, format!("{}: {}", listed.name, listed.found.err()?)))
        });
        let machines = self.machines().into_iter().map(|(mark, text)| Line::new(format!("on {mark}"), text));
        let machines = Block::Lines(machines.collect());
        let blocks = std::iter::once(Block::Table(table)).chain(unreadable).chain([machines]);
        Document {
            title: many((self.records.len() + self.hidden) as u64, "record"),
            headline: None,
            blocks: blocks.filter(|block| !block.is_empty()).collect(),
        }
    }

    fn data(&self) -> Value {
        let one = |listed: &Listed<'_>| {
            let found = listed.found.ok();
            json!({
                "record": listed.name,
                "created": listed.created,
                "in_words": summary(listed).1,
                "running": listed.running,
                "machine": listed.machine,
                "unreadable": listed.found.err(),
                "essentials": found,
            })
        };
        json!({
            "history_version": VERSION,
            "records": self.records.iter().map(one).collect::<Vec<_>>(),
            "older_not_shown": self.hidden,
        })
    }
}

impl List<'_> {
    /// What the letters stand for.
    fn machines(&self) -> Vec<(&str, String)> {
        let mut known: Vec<(&str, String)> = Vec::new();
        for listed in self.records {
            let (Some(mark), Ok(found)) = (&listed.machine, listed.found) else { continue };
            if !known.iter().any(|(other, _)| other == mark) {
                known.push((mark, machine_line(&found.environment)));
            }
        }
        known.sort_by_key(|(mark, _)| (mark.len(), *mark));
        known
    }
}

fn row(listed: &Listed<'_>) -> Vec<Cell> {
    let (tone, summary) = summary(listed);
    let found = listed.found.ok();
    let length = found.and_then(|found| Some(span(found.ended.as_ref()?.seconds)));
    vec![
        Cell::text(listed.name),
        Cell::Text(minute(listed.created)),
        Cell::Word(tone, summary),
        Cell::optional(found.map(|found| found.blocks.to_string())),
        Cell::optional(length),
        Cell::optional(listed.machine.clone()),
        Cell::optional(source(listed)),
    ]
}

/// Whether a name ends in the time at which it was made: `-20261121-145057`, maybe with a number behind it.
fn has_stamp(name: &str) -> bool {
    let digits =
        |part: &str, count: usize| part.len() == count && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = name.rsplitn(4, '-').collect();
    match parts.as_slice() {
        [time, date, _, ..] if digits(date, 8) && digits(time, 6) => true,
        [_, time, date, _] => digits(date, 8) && digits(time, 6),
        _ => false,
    }
}

/// The services' commit, or the version of Proofload where there is none.
fn source(listed: &Listed<'_>) -> Option<String> {
    let found = listed.found.ok()?;
    let commit = found.environment.commit.as_ref().map(|commit| {
        let dirty = if commit.ends_with('+') { "+" } else { "" };
        commit.trim_end_matches('+').chars().take(COMMIT_LETTERS).collect::<String>() + dirty
    });
    Some(commit.unwrap_or_else(|| format!("v{}", found.proofload)))
}

/// What came of a record, or why nothing did, in few words.
fn summary(listed: &Listed<'_>) -> (Tone, String) {
    let said = |tone, text: &str| (tone, text.to_owned());
    let essentials = match listed.found {
        Ok(essentials) => essentials,
        Err(_) => return said(Tone::Bad, "unreadable"),
    };
    let blocks = many(essentials.blocks.into(), "block");
    let Some(ended) = &essentials.ended else {
        return match listed.running {
            true => (Tone::Good, format!("running, {blocks} so far")),
            false => (Tone::Faint, format!("cut off after {blocks}")),
        };
    };
    match &ended.reason {
        EndReason::ServiceFailed(_) => said(Tone::Bad, "a service failed"),
        EndReason::PreparationFailed(_) => said(Tone::Bad, "no data"),
        EndReason::GeneratorFailed(_) => said(Tone::Bad, "load failed"),
        _ if essentials.compared.is_empty() && essentials.blocks == 0 && essentials.captures > 0 => {
            said(Tone::Faint, "captures")
        }
        reason => verdicts(essentials, matches!(reason, EndReason::Interrupted)),
    }
}

fn verdicts(essentials: &Essentials, interrupted: bool) -> (Tone, String) {
    let judged: Vec<(&Compared, Outcome)> = essentials.judged().collect();
    let decided = judged.iter().any(|(_, outcome)| !matches!(outcome, Outcome::Void | Outcome::Inconclusive));
    let void = || {
        let word = ["invalid"].into_iter().map(str::to_owned);
        let numbers = essentials.void.join(", ");
        let words = word.chain((!numbers.is_empty()).then_some(numbers));
        (Tone::Bad, words.collect::<Vec<_>>().join(" "))
    };
    match judged.as_slice() {
        [] if !essentials.void.is_empty() => void(),
        _ if interrupted && !decided => (Tone::Faint, "interrupted".to_owned()),
        [] => (Tone::Faint, "measured".to_owned()),
        all if all.iter().all(|(_, outcome)| *outcome == Outcome::Void) => void(),
        [(compared, outcome)] => (Tone::from(*outcome), one(compared, *outcome)),
        several => counted(several),
    }
}

fn one(compared: &Compared, outcome: Outcome) -> String {
    let word = answer::word(outcome, compared.metric);
    let estimate = compared.estimate.as_ref().map(|estimate| {
        let (value, interval) = change(estimate);
        format!(" {value} ({interval}) {}", compared.metric.name())
    });
    format!("{word}{}", estimate.unwrap_or_default())
}

/// Several verdicts by their words, those first that matter most.
fn counted(judged: &[(&Compared, Outcome)]) -> (Tone, String) {
    const ORDER: [Outcome; 6] = [
        Outcome::Void,
        Outcome::NoSuccess,
        Outcome::Worse,
        Outcome::Better,
        Outcome::Equivalent,
        Outcome::Inconclusive,
    ];
    let mut words: Vec<(Outcome, &str, usize)> = Vec::new();
    for outcome in ORDER {
        for (compared, _) in judged.iter().filter(|(_, of)| *of == outcome) {
            let word = answer::word(outcome, compared.metric);
            match words.iter_mut().find(|(_, known, _)| *known == word) {
                Some((_, _, count)) => *count += 1,
                None => words.push((outcome, word, 1)),
            }
        }
    }
    let text: Vec<String> = words.iter().map(|(_, word, count)| format!("{count} {word}")).collect();
    let worst = words.first().map_or(Outcome::Inconclusive, |(outcome, _, _)| *outcome);
    (worst.into(), text.join(", "))
}
