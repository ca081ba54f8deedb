//! The first line of a comment: what many people read alone.

use analysis::Outcome;

use super::escaped;
use crate::sheet::{Answer, Judged};

/// The answer to the one question, or a count of the verdicts.
pub(super) fn headline(answers: &[Answer]) -> String {
    let judged: Vec<&Judged> = answers.iter().flat_map(|answer| &answer.judged).collect();
    let line = match (answers, judged.as_slice()) {
        (_, []) => "Measured, and nothing compared".to_owned(),
        ([answer], [one]) => {
            let estimate = one.estimate.as_ref().map(|estimate| format!(", {}", escaped(estimate)));
            format!(
                "{}: {}{}",
                capital(&one.verdict),
                escaped(&answer.comparison),
                estimate.unwrap_or_default()
            )
        }
        _ if judged.iter().all(|one| one.outcome == Outcome::Void) => {
            "Void: no conclusion may be drawn".to_owned()
        }
        _ => format!("{}: {}", many(answers.len(), judged.len()), counted(&judged)),
    };
    format!("### {line}")
}

fn many(answers: usize, judged: usize) -> String {
    match (answers, judged) {
        (answers, judged) if answers == judged => format!("{answers} comparisons"),
        (1, judged) => format!("{judged} metrics of one comparison"),
        (answers, judged) => format!("{judged} verdicts on {answers} comparisons"),
    }
}

/// Such as `2 faster, 1 equivalent`, in the order in which they stand below.
fn counted(judged: &[&Judged]) -> String {
    let mut words: Vec<(&str, usize)> = Vec::new();
    for one in judged {
        match words.iter_mut().find(|(word, _)| *word == one.verdict) {
            Some((_, count)) => *count += 1,
            None => words.push((&one.verdict, 1)),
        }
    }
    let words: Vec<String> = words.iter().map(|(word, count)| format!("{count} {word}")).collect();
    words.join(", ")
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
