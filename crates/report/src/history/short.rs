//! One record in short: what came of it, what lies in its folder, what to do with it.

use analysis::{Compared, Conclusion, Outcome};
use record::Record;
use serde_json::{Value, json};

use super::grid::clean;
use super::words::blocks;
use super::{Essentials, VERSION};
use crate::drawing::{BOLD, FAINT, explained, named, wrapped};
use crate::figure::{bytes, change, seconds};
use crate::sheet::{end_text, machine_line, metric_name, verdict_word};
use crate::text::style;
use crate::validity::explained_by;

/// A record and what lies in its folder.
#[derive(Debug)]
pub struct Short<'a> {
    /// The record.
    pub record: &'a Record,
    /// What is concluded of it.
    pub conclusion: &'a Conclusion,
    /// Whether a run is writing it right now.
    pub running: bool,
    /// Files and folders in it with their sizes in bytes, folders with all that is below them.
    pub files: &'a [(String, u64)],
}

impl Short<'_> {
    /// All of it, in lines of at most `width` columns where that can be.
    pub fn text(&self, width: usize) -> String {
        let essentials = Essentials::of(self.record, self.conclusion);
        let title = essentials.question.as_ref().unwrap_or(&essentials.experiment);
        let mut out = format!("{BOLD}{}{BOLD:#}\n\n", wrapped(&clean(title), "", "", width).trim_end());
        for (compared, outcome) in essentials.judged() {
            out += &verdict(compared, outcome, width);
        }
        if !essentials.void.is_empty() {
            out += &wrapped(&format!("void by {}", essentials.void.join(", ")), "  ", "  ", width);
        }
        let numbers = self.conclusion.findings.iter().map(|finding| Some(finding.check.number()));
        out += &explained(explained_by(numbers).as_deref(), width);
        out.push('\n');
        for (name, line) in self.lines(&essentials) {
            out += &named(FAINT, name, &clean(&line), width);
        }
        out
    }

    fn lines(&self, essentials: &Essentials) -> Vec<(&'static str, String)> {
        let directory = self.record.directory.display();
        let end = match (&essentials.ended, self.running) {
            (Some(ended), _) => format!("{} after {}", end_text(&ended.reason), seconds(ended.seconds)),
            (None, true) => "unfinished: a run is writing it right now".to_owned(),
            (None, false) => "unfinished: its run was killed, or broke off".to_owned(),
        };
        let mut lines = vec![
            ("record", directory.to_string()),
            (
                "made",
                format!(
                    "{} by Proofload {}, seed {}",
                    essentials.created, essentials.proofload, essentials.seed
                ),
            ),
            ("run", format!("{}; {end}", blocks(essentials.blocks))),
            ("machine", machine_line(&essentials.environment)),
        ];
        let commit =
            essentials.environment.commit.as_ref().map(|commit| format!(", services at commit {commit}"));
        lines.push(("plan", format!("mark {}{}", essentials.plan, commit.unwrap_or_default())));
        lines.extend(essentials.damage.iter().map(|damage| ("damage", damage.clone())));
        let files: Vec<String> =
            self.files.iter().map(|(name, size)| format!("{name} {}", bytes(*size as f64))).collect();
        lines.push(("files", files.join(", ")));
        let experiment = &essentials.experiment;
        lines.extend([
            ("next", format!("the whole report: proofload report {directory}")),
            ("next", format!("the same in a browser: proofload open {directory}")),
            ("next", format!("over time: proofload history trend {}", quoted(experiment))),
        ]);
        if essentials.captures > 0 {
            lines.push(("next", format!("where the CPU time goes: proofload profile {directory}")));
        }
        lines
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let file = |(name, bytes): &(String, u64)| json!({ "name": name, "bytes": bytes });
        json!({
            "history_version": VERSION,
            "record": self.record.directory.display().to_string(),
            "running": self.running,
            "essentials": Essentials::of(self.record, self.conclusion),
            "files": self.files.iter().map(file).collect::<Vec<_>>(),
        })
    }
}

fn verdict(compared: &Compared, outcome: Outcome, width: usize) -> String {
    let word = verdict_word(outcome, compared.metric).to_uppercase();
    let figure = compared.estimate.as_ref().map(|estimate| {
        let (value, interval) = change(estimate);
        format!(": {value} {} ({interval})", metric_name(compared.metric))
    });
    let line = format!("{word}  {}{}", clean(&compared.label), figure.unwrap_or_default());
    let style = style(outcome);
    wrapped(&line, "", "  ", width).replacen(&word, &format!("{style}{word}{style:#}"), 1)
}

/// As a shell takes it for one word.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
