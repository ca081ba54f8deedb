//! One record in short: what came of it, what lies in its folder, what to do with it.

use analysis::{Compared, Conclusion, Essentials, Outcome};
use model::quantity::{bytes, change, many, span};
use record::Record;
use serde_json::{Value, json};

use super::VERSION;
use crate::document::{Answer, Block, Document, Line, Tone, Verdict};
use crate::experiment::{answer, end_text, machine_line};
use crate::form::Report;
use crate::shell::shell_line;
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

impl Report for Short<'_> {
    fn document(&self) -> Document {
        let essentials = Essentials::of(self.record, self.conclusion);
        let answers = essentials.judged().map(|(compared, outcome)| verdict(compared, outcome)).collect();
        let mut blocks = vec![Block::Answers(answers)];
        let explained =
            explained_by(self.conclusion.findings.iter()).map(|command| format!("; {command} explains"));
        if !essentials.void.is_empty() {
            let text = format!("invalid by {}{}", essentials.void.join(", "), explained.unwrap_or_default());
            blocks.push(Block::Paragraph(Tone::Plain, text));
        }
        blocks.extend([Block::Lines(self.lines(&essentials)), Block::Steps(self.steps(&essentials))]);
        blocks.retain(|block| !block.is_empty());
        let title = essentials.question.unwrap_or(essentials.experiment);
        Document { title, headline: None, blocks }
    }

    fn data(&self) -> Value {
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

impl Short<'_> {
    fn lines(&self, essentials: &Essentials) -> Vec<Line> {
        let end = match (&essentials.ended, self.running) {
            (Some(ended), _) => format!("{} after {}", end_text(&ended.reason), span(ended.seconds)),
            (None, true) => "unfinished: a run is writing it right now".to_owned(),
            (None, false) => "unfinished: its run was killed, or broke off".to_owned(),
        };
        let Essentials { created, proofload, seed, environment, plan, .. } = essentials;
        let commit = environment.commit.as_ref().map(|commit| format!(", services at commit {commit}"));
        let mut lines = vec![
            Line::new("record", self.record.directory.display().to_string()),
            Line::new("made", format!("{created} by Proofload {proofload}, seed {seed}")),
            Line::new("run", format!("{}; {end}", many(essentials.blocks.into(), "block"))),
            Line::new("machine", machine_line(environment)),
            Line::new("plan", format!("mark {plan}{}", commit.unwrap_or_default())),
        ];
        lines.extend(essentials.damage.iter().map(|damage| Line::new("damage", damage)));
        let files: Vec<String> =
            self.files.iter().map(|(name, size)| format!("{name} {}", bytes(*size as f64))).collect();
        lines.push(Line::new("files", files.join(", ")));
        lines
    }

    fn steps(&self, essentials: &Essentials) -> Vec<String> {
        let directory = self.record.directory.display();
        let experiment = shell_line(std::slice::from_ref(&essentials.experiment));
        let mut steps = vec![
            format!("the whole report: proofload report {directory}"),
            format!("the same in a browser: proofload open {directory}"),
            format!("over time: proofload history trend {experiment}"),
        ];
        if essentials.captures > 0 {
            steps.push(format!("where the CPU time goes: proofload profile {directory}"));
        }
        steps
    }
}

fn verdict(compared: &Compared, outcome: Outcome) -> Answer {
    let detail = compared.estimate.as_ref().map(|estimate| {
        let (value, interval) = change(estimate);
        format!("{value} {} ({interval})", compared.metric.row().title)
    });
    let word = answer::word(outcome, compared.metric).to_owned();
    let verdict = Verdict { tone: outcome.into(), word, detail: detail.unwrap_or_default() };
    Answer { subject: compared.label.clone(), verdicts: vec![verdict], notes: Vec::new() }
}
