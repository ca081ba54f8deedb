//! The report of an experiment: what its record and the conclusion say, in order. Nothing is concluded here; that is `analysis`'s work.

use analysis::{Assumption, Conclusion, Grade, Outcome, Standing};
use explain::{Explanation, Why};
use record::{EndReason, Environment, Record};
use serde_json::Value;

use crate::csv::Figures;
use crate::form::Report;
use crate::measurement::Loaded;
use crate::page::{self, PageData};
use crate::plot::Plot;
use crate::validity::explained_by;
use model::document::{Block, Document, Line, Tone};
use model::quantity::span;

pub(crate) mod answer;
pub(crate) mod brief;
pub(crate) mod capacity;
mod data;
mod headline;
mod method;
pub(crate) mod tables;

pub use data::schema;
pub use headline::State;
pub(crate) use headline::{headline, state};
pub(crate) use method::{end_text, machine_line};

/// The report as a page, in the record's folder.
pub const REPORT_PAGE: &str = "report.html";

/// A record and what is concluded of it.
#[derive(Debug, Clone, Copy)]
pub struct Measured<'a> {
    /// The record.
    pub record: &'a Record,
    /// What is concluded of it.
    pub conclusion: &'a Conclusion,
    /// What its captures tell; `None` where there are none.
    pub explanation: Option<&'a Explanation>,
    /// The machine that it is read on; `None` where that is the one that it was measured on.
    pub here: Option<&'a Environment>,
    /// Whether the record has a [`REPORT_PAGE`].
    pub has_page: bool,
    /// Whether the flame graphs' page lies beside the report's.
    pub has_flames: bool,
    /// Whether it is the newest record, which commands mean that name none.
    pub is_latest: bool,
}

impl<'a> Measured<'a> {
    /// A record that is read where it was measured.
    pub fn new(
        record: &'a Record,
        conclusion: &'a Conclusion,
        explanation: Option<&'a Explanation>,
    ) -> Measured<'a> {
        Measured {
            record,
            conclusion,
            explanation,
            here: None,
            has_page: false,
            has_flames: true,
            is_latest: false,
        }
    }

    /// The question, or the experiment's name where the file asks none.
    pub(crate) fn title(&self) -> &'a str {
        let plan = &self.record.header.plan;
        plan.question.as_ref().unwrap_or(&plan.name)
    }

    /// On which machines, and where the record lies. That it was measured elsewhere than where it is read belongs to it.
    pub(crate) fn place(&self) -> Vec<Line> {
        let mut place = method::place(self.record);
        let Some(here) = self.here else { return place };
        // Of other machines nothing is known where it is read.
        let then = Environment { hosts: here.hosts.clone(), ..self.record.header.environment.clone() };
        let differences = analysis::differences(&then, here);
        if let Some(machine) = place.first_mut().filter(|_| !differences.is_empty()) {
            machine.text += &format!("; not as where this is read: {}", differences.join("; "));
        }
        place
    }

    /// The gravest first, as with findings. Where all is void no result rests on anything, but what is doubtful may be the reason.
    pub(crate) fn assumptions(&self) -> Vec<&'a Assumption> {
        let void =
            self.conclusion.comparisons.iter().all(|comparison| comparison.outcome == Outcome::Invalid);
        let told = |assumption: &&Assumption| !void || assumption.standing == Standing::Doubtful;
        let mut sorted: Vec<&Assumption> = self.conclusion.assumptions.iter().filter(told).collect();
        sorted.sort_by_key(|assumption| match assumption.standing {
            Standing::Doubtful => 0,
            Standing::Unchecked => 1,
            Standing::Supported => 2,
        });
        sorted
    }

    pub(crate) fn method(&self) -> Vec<Line> {
        method::method(self.record, self.conclusion)
    }

    /// The command that explains the findings; `None` where there are none.
    pub(crate) fn explained_by(&self) -> Option<String> {
        explained_by(self.conclusion.findings.iter())
    }

    /// What to do next, each a sentence or a command with its reason.
    pub(crate) fn steps(&self) -> Vec<String> {
        let directory = self.record.directory.display();
        let mut steps = next(self.record, self.conclusion);
        if self.explanation.is_some() {
            steps.push(format!(
                "to see where the time goes: {directory}/{}, or proofload profile {directory}",
                page::FLAME_PAGE
            ));
        }
        steps
    }

    /// The same for those who read no page yet.
    fn steps_with_page(&self) -> Vec<String> {
        let page = self.record.directory.join(REPORT_PAGE);
        let look = self.has_page.then(|| format!("to look at it: {}", page.display()));
        self.steps().into_iter().chain(look).collect()
    }
}

impl Report for Measured<'_> {
    fn document(&self) -> Document {
        if let Some(loaded) = Loaded::of(self) {
            return loaded.document();
        }
        let Measured { record, conclusion, .. } = self;
        let mut blocks = vec![Block::Answers(answer::answers(conclusion, &record.header.plan.design))];
        blocks.extend(tables::effects(conclusion).map(Block::Table));
        if conclusion.effects_lead() {
            blocks.reverse();
        }
        blocks.insert(0, Block::Answers(capacity::answers(record, conclusion)));
        blocks.extend(capacity::curves(conclusion).into_iter().map(Block::Table));
        blocks.push(Block::Table(tables::variants(record, conclusion)));
        let findings = conclusion.findings.iter().map(Into::into).collect();
        blocks.push(Block::Findings(findings, self.explained_by()));
        blocks.extend(tables::parts(conclusion).into_iter().map(Block::Table));
        if let Some(explanation) = self.explanation {
            blocks.push(Block::Heading(Tone::Strong, "Where the time goes".to_owned()));
            blocks.extend(Why::of(explanation).blocks());
        }
        let mut method = vec![Block::Lines([self.place(), self.method()].concat())];
        let assumptions: Vec<Line> = self.assumptions().into_iter().map(assumption).collect();
        if !assumptions.is_empty() {
            method.push(Block::Heading(Tone::Strong, "Assumptions".to_owned()));
            method.push(Block::Lines(assumptions));
        }
        blocks.push(Block::Folded("How it was measured, and assumptions".to_owned(), method));
        blocks.push(Block::Steps(self.steps_with_page()));
        let headline = Some(headline(record, conclusion));
        Document { headline, ..Document::new(self.title(), blocks) }
    }

    fn brief(&self) -> Document {
        match Loaded::of(self) {
            Some(loaded) => loaded.brief(),
            None => self.first_screen(),
        }
    }

    fn data(&self) -> Value {
        if let Some(loaded) = Loaded::of(self) {
            return loaded.data();
        }
        data::data(self.record, self.conclusion, self.explanation)
    }

    fn figures(&self) -> Option<Figures> {
        match Loaded::of(self) {
            Some(loaded) => loaded.figures(),
            None => Some(tables::figures(self.record)),
        }
    }

    fn page(&self) -> Option<PageData> {
        Some(page::data(self))
    }

    fn plot(&self) -> Option<Plot> {
        Some(Plot::of(self))
    }
}

fn assumption(of: &Assumption) -> Line {
    let tone = if of.standing == Standing::Doubtful { Tone::Doubtful } else { Tone::Faint };
    let line = Line::new(standing_word(of.standing), &of.statement);
    Line { tone, detail: of.evidence.clone(), ..line }
}

/// How an assumption stands, in a word.
pub(crate) fn standing_word(standing: Standing) -> &'static str {
    match standing {
        Standing::Doubtful => "doubtful",
        Standing::Unchecked => "unchecked",
        Standing::Supported => "supported",
    }
}

/// Whose own words tell why the run failed.
fn said_by(record: &Record) -> Option<&'static str> {
    match record.end() {
        Some(EndReason::ServiceFailed(_)) => Some("the service"),
        Some(EndReason::PreparationFailed(_)) => Some("its command"),
        Some(_) | None => None,
    }
}

fn next(record: &Record, conclusion: &Conclusion) -> Vec<String> {
    let mut steps = Vec::new();
    if let Some(who) = said_by(record) {
        steps.push(format!("look at what {who} said: {}", record.directory.join("logs").display()));
        return steps;
    }
    if conclusion.is_void() {
        steps.push("fix what makes it invalid, then run again".to_owned());
        return steps;
    }
    let again = format!(
        "proofload run {}{}",
        record.header.experiment,
        record.header.plan.against.as_ref().map(plan::Against::flags).unwrap_or_default()
    );
    let needed_s = conclusion.comparisons.iter().filter_map(|comparison| comparison.seconds_needed);
    if let Some(needed_s) = needed_s.reduce(f64::max) {
        let budget = span(analysis::budget_s(needed_s));
        steps.push(format!("to decide what is inconclusive: {again} --budget {budget}"));
    }
    steps.push(format!("to see whether it holds: {again} --seed {}", record.header.seed + 1));
    steps.push(format!("for a pull request: proofload report {} --format md", record.directory.display()));
    steps
}

/// Findings of a grade, counted: `1 warning`.
pub(crate) fn findings_of(conclusion: &Conclusion, grade: Grade) -> usize {
    conclusion.findings.iter().filter(|finding| finding.grade == grade).count()
}
