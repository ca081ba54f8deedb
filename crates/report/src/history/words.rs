//! What came of a record, in few words.

use analysis::{Compared, Essentials, Outcome};
use anstyle::{AnsiColor, Style};
use model::{Loop, Metric};
use record::EndReason;

use super::Listed;
use crate::drawing::FAINT;
use crate::figure::change;
use crate::sheet::verdict_word;
use crate::text::style;

/// In as many words as there may be room for, and in few.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Summary {
    pub style: Style,
    pub long: String,
    pub short: String,
}

impl Summary {
    fn of(style: Style, long: impl Into<String>, short: impl Into<String>) -> Summary {
        Summary { style, long: long.into(), short: short.into() }
    }

    fn alike(style: Style, text: &str) -> Summary {
        Summary::of(style, text, text)
    }
}

/// What came of it, or why nothing did.
pub(super) fn summary(listed: &Listed<'_>) -> Summary {
    let red = AnsiColor::Red.on_default().bold();
    let essentials = match listed.found {
        Ok(essentials) => essentials,
        Err(_) => return Summary::alike(red, "unreadable"),
    };
    let blocks = blocks(essentials.blocks);
    let Some(ended) = &essentials.ended else {
        return match listed.running {
            true => {
                Summary::of(AnsiColor::Green.on_default(), format!("running, {blocks} so far"), "running")
            }
            false => Summary::of(FAINT, format!("cut off after {blocks}"), "cut off"),
        };
    };
    match &ended.reason {
        EndReason::ServiceFailed(_) => Summary::alike(red, "a service failed"),
        EndReason::PreparationFailed(_) => Summary::alike(red, "no data"),
        EndReason::GeneratorFailed(_) => Summary::alike(red, "load failed"),
        _ if essentials.compared.is_empty() && essentials.blocks == 0 && essentials.captures > 0 => {
            Summary::alike(FAINT, "captures")
        }
        reason => verdicts(essentials, matches!(reason, EndReason::Interrupted)),
    }
}

fn verdicts(essentials: &Essentials, interrupted: bool) -> Summary {
    let judged: Vec<(&Compared, Outcome)> = essentials.judged().collect();
    let decided = judged.iter().any(|(_, outcome)| !matches!(outcome, Outcome::Void | Outcome::Inconclusive));
    let void = || {
        let short =
            essentials.void.first().map_or_else(|| "void".to_owned(), |number| format!("void {number}"));
        let more = essentials.void.iter().skip(1).map(|number| format!(", {number}")).collect::<String>();
        Summary::of(style(Outcome::Void), format!("{short}{more}"), short)
    };
    match judged.as_slice() {
        [] if !essentials.void.is_empty() => void(),
        _ if interrupted && !decided => Summary::alike(FAINT, "interrupted"),
        [] => Summary::alike(FAINT, "measured"),
        all if all.iter().all(|(_, outcome)| *outcome == Outcome::Void) => void(),
        [(compared, outcome)] => one(compared, *outcome),
        several => counted(several),
    }
}

fn one(compared: &Compared, outcome: Outcome) -> Summary {
    let word = verdict_word(outcome, compared.metric);
    let Some(estimate) = &compared.estimate else { return Summary::alike(style(outcome), word) };
    let (value, interval) = change(estimate);
    // Of throughput, and where the word tells the metric, it is not told again.
    let row = compared.metric.row();
    let alone = Metric::ALL.iter().filter(|other| other.row().better == row.better).count() == 1;
    let decided = !matches!(outcome, Outcome::Equivalent | Outcome::Inconclusive);
    let told = match row.loops {
        Loop::Closed => String::new(),
        Loop::Open | Loop::Either if decided && alone => String::new(),
        Loop::Open | Loop::Either => format!(" {}", compared.metric.name()),
    };
    Summary::of(style(outcome), format!("{word} {value} ({interval}){told}"), format!("{word} {value}{told}"))
}

/// Several verdicts by their words, those first that matter most.
fn counted(judged: &[(&Compared, Outcome)]) -> Summary {
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
            let word = verdict_word(outcome, compared.metric);
            match words.iter_mut().find(|(_, known, _)| *known == word) {
                Some((_, _, count)) => *count += 1,
                None => words.push((outcome, word, 1)),
            }
        }
    }
    let text: Vec<String> = words.iter().map(|(_, word, count)| format!("{count} {word}")).collect();
    let worst = words.first().map_or(Outcome::Inconclusive, |(outcome, _, _)| *outcome);
    let short = if text.len() > 2 { format!("{}, …", text[..2].join(", ")) } else { text.join(", ") };
    Summary::of(style(worst), text.join(", "), short)
}

/// `1 block`, `6 blocks`.
pub(super) fn blocks(blocks: u32) -> String {
    format!("{blocks} block{}", if blocks == 1 { "" } else { "s" })
}

/// The end of a chain of causes: where the file lies is known from the row.
pub(super) fn last_cause(why: &str) -> &str {
    let cause = why.split_once("record.json: ").map_or(why, |(_, cause)| cause);
    cause.strip_prefix("not a readable record: ").unwrap_or(cause)
}

/// `2026-11-21 14:50` of `2026-11-21T14:50:57Z`.
pub(super) fn minute(created: &str) -> String {
    let shown: String = created.chars().take(16).collect();
    shown.replacen('T', " ", 1)
}
