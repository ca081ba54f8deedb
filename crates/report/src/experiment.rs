//! The report of an experiment: what its record and the conclusion say, in order. Nothing is concluded here; that is `analysis`'s work.

use analysis::{
    Assumption, Comparison, Conclusion, Effect, Exploratory, Finding, Grade, Kind, Outcome, Standing, Variant,
};
use explain::{Explanation, Why};
use model::Check;
use model::document::{Answer, Block, Document, Line, Tone, Verdict};
use model::quantity::{Quantity, change, count, many, share, signed, span};
use plan::Metric;
use record::{EndReason, Environment, Record};
use serde_json::Value;
use stats::Estimate;

use self::answer::effect_word;
use self::headline::Sides;
use crate::csv::Figures;
use crate::forecast::forecast;
use crate::form::Report;
use crate::measurement::{Loaded, remarks};
use crate::page::{self, PageData};
use crate::plot::Plot;
use crate::validity::explained_by;

pub use data::schema;
pub use headline::State;
pub(crate) use headline::{headline, state};
pub(crate) use method::{end_text, machine_line};

pub(crate) mod answer;
pub(crate) mod capacity;
mod data;
mod headline;
mod method;
pub(crate) mod tables;

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
        blocks.push(Block::Findings(remarks(&conclusion.findings), self.explained_by()));
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
            None => Some(tables::figures(self.record, self.conclusion)),
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
    if let Some(few) = conclusion.finding(Check::TooFewBlocks) {
        steps.push(few.remedy.to_string());
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

// The first screen of a run: the verdicts, what makes them doubtful, and where the rest is, in about fifteen lines.
//
// Its words and figures are those of the whole report. Must not: judge, or word a verdict a second time.

/// Verdicts that one screen has room for.
const VERDICTS_MAX: usize = 12;

/// A verdict, and how far from no difference it is.
struct Ranked {
    decided: bool,
    distance: f64,
    answer: Answer,
}

impl Measured<'_> {
    fn first_screen(&self) -> Document {
        let (record, conclusion) = (self.record, self.conclusion);
        let mut blocks = Vec::new();
        if state(record, conclusion) == State::Broken {
            blocks.push(Block::Paragraph(Tone::Bad, headline(record, conclusion)));
        }
        blocks.push(invalid(&conclusion.findings));
        blocks.push(Block::Verdicts(capacity::answers(record, conclusion)));
        blocks.extend(verdicts(record, conclusion));
        if let [_] = conclusion.capacities.as_slice() {
            blocks.extend(capacity::curves(conclusion).into_iter().map(Block::Table));
        } else if conclusion.comparisons.is_empty() && conclusion.capacities.is_empty() {
            blocks.push(Block::Table(tables::variants(record, conclusion)));
        }
        blocks.push(Block::Paragraph(Tone::Plain, course(record, conclusion)));
        blocks.push(Block::Lines(self.leads()));
        Document::new(self.title(), blocks)
    }

    /// What makes the result doubtful, and commands that lead on.
    fn leads(&self) -> Vec<Line> {
        let mut lines = warnings(&self.conclusion.findings);
        if said_by(self.record).is_some() {
            lines.push(Line::new("Logs", self.record.directory.join("logs").display().to_string()));
        }
        let place =
            if self.is_latest { String::new() } else { format!(" {}", self.record.directory.display()) };
        if self.explanation.is_some() {
            lines.push(lead("Profile", format!("proofload profile {}", self.record.directory.display())));
        }
        lines.push(lead("Report", format!("proofload report{place} --open")));
        let header = &self.record.header;
        let against = header.plan.against.as_ref().map(plan::Against::flags).unwrap_or_default();
        lines.push(lead(
            "Repeat",
            format!("proofload run {}{against} --seed {}", header.experiment, header.seed),
        ));
        lines
    }
}

fn lead(name: &str, command: String) -> Line {
    Line { command: Some(command), ..Line::new(name, "") }
}

/// What forbids a conclusion comes whole, before all else.
pub(crate) fn invalid(findings: &[Finding]) -> Block {
    let grave = findings.iter().filter(|finding| finding.grade == Grade::Invalid);
    Block::Findings(remarks(grave), None)
}

/// The warnings, the first in words: it may explain the others. And the command that explains all that is grave, by number.
pub(crate) fn warnings(findings: &[Finding]) -> Vec<Line> {
    let told = |finding: &&Finding| matches!(finding.grade, Grade::Invalid | Grade::Warning);
    let warnings = findings.iter().filter(|finding| finding.grade == Grade::Warning);
    let checks = model::distinct(warnings.map(|finding| finding.check));
    let mut lines = Vec::new();
    if let [first, others @ ..] = checks.as_slice() {
        let more = if others.is_empty() { String::new() } else { format!(", and {} more", others.len()) };
        let text = format!("{} ({}){more}", first.row().title, first.number());
        lines.push(Line { tone: Tone::Doubtful, ..Line::new("Warnings", text) });
    }
    lines.extend(explained_by(findings.iter().filter(told)).map(|command| lead("Explain", command)));
    lines
}

/// The decided ones first, and of these the largest.
fn verdicts(record: &Record, conclusion: &Conclusion) -> Vec<Block> {
    let all = &conclusion.comparisons;
    let void = all.iter().all(|one| one.outcome == Outcome::Invalid);
    let mut ranked: Vec<Ranked> = if conclusion.effects_lead() {
        let main = conclusion.effects.iter().filter(|effect| effect.kind == Kind::Main);
        main.map(of_effect).collect()
    } else {
        let told = answer::groups(conclusion).flat_map(answer::told);
        let compared =
            told.take(if void { 1 } else { all.len() }).map(|one| compared(record, conclusion, one));
        let is_there = |effect: &&Effect| {
            effect.kind == Kind::Interaction && matches!(effect.outcome, Outcome::Better | Outcome::Worse)
        };
        compared.chain(conclusion.effects.iter().filter(is_there).map(of_effect)).collect()
    };
    ranked
        .sort_by(|one, other| other.decided.cmp(&one.decided).then(other.distance.total_cmp(&one.distance)));
    if let (true, [only]) = (void && all.len() > 1, ranked.as_mut_slice()) {
        only.answer.subject = format!("all {} comparisons", all.len());
    }
    let more = ranked.len().saturating_sub(VERDICTS_MAX);
    let shown = ranked.into_iter().take(VERDICTS_MAX).map(|ranked| ranked.answer);
    let mut blocks = vec![Block::Verdicts(shown.collect())];
    if more > 0 {
        blocks.push(Block::Paragraph(Tone::Faint, format!("and {more} more: proofload report")));
    }
    blocks
}

fn distance(estimate: Option<&Estimate>) -> f64 {
    estimate.map_or(0.0, |estimate| estimate.ratio.ln().abs())
}

fn is_decided(outcome: Outcome) -> bool {
    !matches!(outcome, Outcome::Inconclusive | Outcome::Invalid)
}

fn compared(record: &Record, conclusion: &Conclusion, of: &Comparison) -> Ranked {
    let design = &record.header.plan.design;
    let margin = match of.outcome {
        Outcome::Equivalent | Outcome::Inconclusive => format!(", margin ±{}", share(design.margin)),
        _ => String::new(),
    };
    let detail = match &of.estimate {
        Some(estimate) if is_decided(of.outcome) || of.outcome == Outcome::Inconclusive => {
            let (value, interval) = change(estimate);
            format!("{value} {} (95 % CI {interval}){margin}", answer::judged_of(of, design))
        }
        _ => answer::detail(of, conclusion, design),
    };
    let verdict =
        Verdict { tone: of.outcome.into(), word: answer::word(of.outcome, of.metric).to_owned(), detail };
    let beside =
        if of.outcome == Outcome::Invalid { Vec::new() } else { beside(conclusion, of, design.margin) };
    let Sides { candidate, baseline, context } = Sides::of(&record.header.plan, of);
    let answer = Answer {
        subject: format!("{context}{candidate} vs {baseline}"),
        verdicts: vec![verdict],
        notes: if beside.is_empty() { beside } else { vec![beside.join(" · ")] },
    };
    Ranked { decided: is_decided(of.outcome), distance: distance(of.estimate.as_ref()), answer }
}

/// The amounts behind a ratio, other metrics that differ beyond chance, and what it takes to decide.
fn beside(conclusion: &Conclusion, of: &Comparison, margin: f64) -> Vec<String> {
    let amount = |index: usize| Some(value(conclusion.variants.get(index)?, of.metric)?.to_string());
    let amounts = amount(of.baseline).zip(amount(of.candidate));
    let amounts = amounts.map(|(baseline, candidate)| format!("{baseline} → {candidate}"));
    let differs = |other: &&Exploratory| other.estimate.low > 1.0 || other.estimate.high < 1.0;
    let others = of.exploratory.iter().filter(differs);
    let others =
        others.map(|other| format!("{} {}", other.metric.row().heading, by_how_much(&other.estimate)));
    let needed = of.blocks_needed.map(|blocks| forecast(&share(margin), blocks, of.seconds_needed));
    amounts.into_iter().chain(others).chain(needed).collect()
}

/// A ratio without its interval; one that is far below 1 reads better as a part that is saved.
fn by_how_much(estimate: &Estimate) -> String {
    let is_saved = (0.01..0.5).contains(&estimate.ratio);
    if is_saved { signed((estimate.ratio - 1.0) * 100.0, 0) } else { change(estimate).0 }
}

/// What was measured of a variant.
fn value(variant: &Variant, metric: Metric) -> Option<Quantity> {
    let found = match metric.quantile() {
        Some(_) => {
            let found = variant.response_time.iter().find(|found| found.metric == metric);
            found.filter(|found| !found.at_least).map(|found| found.us)
        }
        None => variant.values.iter().find(|(of, _)| *of == metric).map(|(_, value)| *value),
    };
    Some(Quantity { value: found?, unit: metric.unit() })
}

fn of_effect(effect: &Effect) -> Ranked {
    let detail = effect.estimate.as_ref().map(|estimate| {
        let (value, interval) = change(estimate);
        format!("{value} {} (95 % CI {interval})", effect.metric.row().title)
    });
    let word = effect_word(effect).to_owned();
    let verdict = Verdict { tone: tables::tone(effect), word, detail: detail.unwrap_or_default() };
    Ranked {
        decided: is_decided(effect.outcome),
        distance: distance(effect.estimate.as_ref()),
        answer: Answer { subject: effect.label.clone(), verdicts: vec![verdict], notes: Vec::new() },
    }
}

/// How much was measured: `6 blocks in 2m43s · closed loop, 16 connections · 0 of 43,341 requests failed`.
fn course(record: &Record, conclusion: &Conclusion) -> String {
    let ended = record.ended.as_ref();
    let length = ended.map(|ended| format!(" in {}", span(ended.seconds))).unwrap_or_default();
    let early = match ended.map(|ended| &ended.reason) {
        Some(reason @ (EndReason::Interrupted | EndReason::Void(_))) => {
            format!(", {}", method::end_text(reason))
        }
        _ => String::new(),
    };
    let dropped = match conclusion.blocks_dropped.len() {
        0 => String::new(),
        number => format!(" ({number} more dropped)"),
    };
    let requests: u64 = conclusion.variants.iter().map(|variant| variant.requests).sum();
    let failed: u64 = conclusion.variants.iter().map(|variant| variant.failed).sum();
    [
        format!("{}{dropped}{length}{early}", many(conclusion.blocks.into(), "block")),
        method::load_short(record),
        format!("{} of {} requests failed", count(failed), count(requests)),
    ]
    .join(" · ")
}
