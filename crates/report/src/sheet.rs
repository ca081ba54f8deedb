//! Everything a report says, in words and in order, before it is drawn in any form.

use analysis::{Assumption, Conclusion, Finding, Grade, Kind, Outcome, Standing};
use explain::Explanation;
use record::{EndReason, Environment, Record};

use crate::validity::explained_by;
use crate::why::Why;

mod answer;
mod effect;
mod figures;
mod method;
mod outside;
mod parts;

pub use answer::metric_name;
pub(crate) use answer::{comparisons_of_answers, verdict as verdict_word};
pub(crate) use method::{end_text, machine_line};
pub use parts::Part;

/// The report as a page, in the record's folder.
pub const REPORT_PAGE: &str = "report.html";

/// The content of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sheet {
    /// The question, or the experiment's name where the file asks none.
    pub title: String,
    /// One answer a comparison.
    pub answers: Vec<Answer>,
    /// What each factor does, with two factors or more.
    pub effects: Option<Effects>,
    /// Headings of the table of variants.
    pub columns: Vec<String>,
    /// One row a variant.
    pub rows: Vec<Row>,
    /// Variants taken apart: by service and by endpoint, where there are several.
    pub parts: Vec<Part>,
    /// What captures tell of the differences, where there are any.
    pub why: Option<Why>,
    /// Findings, the gravest first.
    pub findings: Vec<Remark>,
    /// The command that explains them; `None` where there are none.
    pub explained_by: Option<String>,
    /// How it was measured, each line a name and a text.
    pub method: Vec<(String, String)>,
    /// What the result takes for granted, the doubtful first.
    pub assumptions: Vec<Assumption>,
    /// On which machine it was measured and where the record lies, each line a name and a text.
    pub place: Vec<(String, String)>,
    /// What to do next, each a sentence or a command with its reason.
    pub next: Vec<String>,
}

/// The answer to one comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Reads as "candidate against baseline".
    pub comparison: String,
    /// The verdict for each metric that gets one, at least one.
    pub judged: Vec<Judged>,
    /// Other metrics, shown but not judged.
    pub also: Vec<String>,
}

/// The verdict about one metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// The verdict's kind, for colours.
    pub outcome: Outcome,
    /// The verdict as a word.
    pub verdict: String,
    /// Estimate with metric and interval; `None` where there is none.
    pub estimate: Option<String>,
    /// The same and what else there is to say of it, or why there is none.
    pub detail: String,
}

/// What each factor does on average, and what two of them do to each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effects {
    /// What the lines are, with the metric.
    pub heading: String,
    /// Main effects first.
    pub lines: Vec<EffectLine>,
    /// Why there are no lines, or what is not among them.
    pub note: Option<String>,
}

/// One effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectLine {
    /// Such as `node_env: production / development`.
    pub label: String,
    /// Whether it is of one factor or of two.
    pub kind: Kind,
    /// The verdict's kind, for colours.
    pub outcome: Outcome,
    /// The verdict as a word.
    pub verdict: String,
    /// Estimate with interval.
    pub detail: String,
}

/// One variant's line of the table, in the order of [`Sheet::columns`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The cells, the variant's name first.
    pub cells: Vec<String>,
}

/// A finding, ready to print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// How grave.
    pub grade: Grade,
    /// The number under which docs/validity.md explains it.
    pub number: Option<&'static str>,
    /// What was found.
    pub evidence: String,
    /// What to do.
    pub remedy: String,
}

impl Sheet {
    /// Puts a record and its conclusion into words.
    pub fn new(record: &Record, conclusion: &Conclusion) -> Sheet {
        let plan = &record.header.plan;
        let (columns, rows) = figures::table(record, conclusion);
        let sheet = Sheet {
            title: plan.question.clone().unwrap_or_else(|| plan.name.clone()),
            answers: answer::answers(conclusion, &plan.design),
            effects: effect::effects(conclusion),
            columns,
            rows,
            parts: parts::parts(conclusion),
            why: None,
            findings: conclusion.findings.iter().map(remark).collect(),
            explained_by: explained_by(
                conclusion.findings.iter().map(|finding| Some(finding.check.number())),
            ),
            method: method::method(record, conclusion),
            assumptions: assumptions(conclusion),
            place: method::place(record),
            next: next(record, conclusion),
        };
        outside::cleaned(sheet)
    }

    /// The same with what tells that it was measured elsewhere than where it is read.
    pub fn read_on(mut self, record: &Record, here: &Environment) -> Sheet {
        // Of other machines nothing is known where it is read.
        let environment = Environment { hosts: here.hosts.clone(), ..record.header.environment.clone() };
        let differences = analysis::differences(&environment, here);
        if let Some((_, machine)) = self.place.first_mut().filter(|_| !differences.is_empty()) {
            *machine += &format!("; not as where this is read: {}", differences.join("; "));
        }
        outside::cleaned(self)
    }

    /// The same with where the report page lies, for records that have it.
    pub fn with_page(mut self, record: &Record) -> Sheet {
        self.next.push(format!("to look at it: {}", record.directory.join(REPORT_PAGE).display()));
        self
    }

    /// The same with what the record's captures tell, and where to see more of it.
    pub fn explained(mut self, record: &Record, explanation: &Explanation) -> Sheet {
        let directory = record.directory.display();
        self.why = Some(Why::new(explanation));
        self.next.push(format!(
            "to see where the time goes: {directory}/flame.html, or proofload profile {directory}"
        ));
        self
    }
}

/// The gravest first, as with findings. Where all is void there is no result to take anything for granted, but what is doubtful
/// may be the reason.
fn assumptions(conclusion: &Conclusion) -> Vec<Assumption> {
    let void = conclusion.comparisons.iter().all(|comparison| comparison.outcome == Outcome::Void);
    let told = |assumption: &&Assumption| !void || assumption.standing == Standing::Doubtful;
    let mut sorted: Vec<Assumption> = conclusion.assumptions.iter().filter(told).cloned().collect();
    sorted.sort_by_key(|assumption| match assumption.standing {
        Standing::Doubtful => 0,
        Standing::Unchecked => 1,
        Standing::Supported => 2,
    });
    sorted
}

fn remark(finding: &Finding) -> Remark {
    Remark {
        grade: finding.grade,
        number: Some(finding.check.number()),
        evidence: finding.evidence.to_string(),
        remedy: finding.remedy.to_string(),
    }
}

fn next(record: &Record, conclusion: &Conclusion) -> Vec<String> {
    let mut steps = Vec::new();
    let said_by = match record.ended.as_ref().map(|ended| &ended.reason) {
        Some(EndReason::ServiceFailed(_)) => Some("the service"),
        Some(EndReason::PreparationFailed(_)) => Some("its command"),
        _ => None,
    };
    if let Some(who) = said_by {
        steps.push(format!("look at what {who} said: {}", record.directory.join("logs").display()));
        return steps;
    }
    if conclusion.is_void() {
        steps.push("mend what the void findings name, then run again".to_owned());
        return steps;
    }
    let again = format!(
        "proofload run {}{}",
        record.header.experiment,
        record.header.plan.against.as_ref().map(plan::Against::flags).unwrap_or_default()
    );
    let needed = conclusion.comparisons.iter().filter_map(|comparison| comparison.blocks_needed).max();
    let blocks = record.complete_blocks().filter_map(|block| block.seconds);
    let block_s = blocks.last().unwrap_or(0.0);
    if let Some(needed) = needed.filter(|needed| *needed > conclusion.blocks) {
        let minutes = (f64::from(needed) * block_s * 1.15 / 60.0).ceil().max(1.0);
        steps.push(format!("to decide what is open: {again} --budget {minutes:.0}m"));
    }
    steps.push(format!("to see whether it holds: {again} --seed {}", record.header.seed + 1));
    steps.push(format!("for a pull request: proofload report {} --format md", record.directory.display()));
    steps
}
