//! The report of an experiment: its record and the conclusion, in order. `analysis` draws the conclusions.

use analysis::{
    Assumption, Check, ComparisonResult, Conclusion, Effect, EffectKind, Exploratory, Finding,
    Grade, Outcome, Standing, VariantFigures,
};
use explain::{Explanation, Why};
use model::RequestOutcome;
use model::document::{Document, DocumentPart, NamedText, QuestionAnswer, Remark, Tone};
use model::quantity::{Quantity, change, change_or_saving, count, many, share, span};
use record::{EndKind, MachineFingerprint, Record, Repeat};
use serde_json::Value;
use stats::Estimate;

use self::answer::forecast;
use self::headline::{HeadlineSides, headline, state};
use self::method::{cores_short, load_short};
use crate::csv::CsvRows;
use crate::form::Report;
use crate::measurement::{self, LoadedRecord};
use crate::page::{self, PageData};
use crate::plot::Plot;
use crate::validity::explained_by;

pub use data::{LatencyQuantile, load_schema, quantiles, schema};
pub use headline::RunState;
pub(crate) use method::{machine_line, processor};
pub(crate) use tables::INVALID;

pub(crate) mod answer;
pub(crate) mod capacity;
mod data;
pub(crate) mod headline;
pub(crate) mod method;
pub(crate) mod tables;

/// File name of the report page in the record's folder.
pub const REPORT_PAGE: &str = "report.html";

/// A record and its conclusion.
#[derive(Debug, Clone, Copy)]
pub struct MeasuredRecord<'a> {
    /// The record.
    pub record: &'a Record,
    /// The conclusion.
    pub conclusion: &'a Conclusion,
    /// Explanation from its captures. `None` without captures.
    pub explanation: Option<&'a Explanation>,
    /// The machine on which the record is read. `None` if it was measured on the same machine.
    pub here: Option<&'a MachineFingerprint>,
    /// Whether the record has a [`REPORT_PAGE`].
    pub has_page: bool,
    /// Whether the page with the flame graphs is beside the report.
    pub has_flames: bool,
    /// Whether it is the newest record, which commands without a record refer to.
    pub is_latest: bool,
    /// Whether more of the latency distribution is shown, if nothing is compared.
    pub distribution: bool,
    /// Differences to the tool whose command line was given.
    pub differences: &'a [String],
}

impl<'a> MeasuredRecord<'a> {
    /// A record that is read on the machine where it was measured.
    pub fn new(
        record: &'a Record,
        conclusion: &'a Conclusion,
        explanation: Option<&'a Explanation>,
    ) -> MeasuredRecord<'a> {
        MeasuredRecord {
            record,
            conclusion,
            explanation,
            here: None,
            has_page: false,
            has_flames: true,
            is_latest: false,
            distribution: false,
            differences: &[],
        }
    }

    /// The question, or the experiment's name if the file has none.
    pub(crate) fn title(&self) -> &'a str {
        let plan = &self.record.header.plan;
        plan.question.as_ref().unwrap_or(&plan.name)
    }

    /// On which machine, and where the record lies. That it was measured elsewhere than where it is read belongs to it.
    pub(crate) fn place(&self) -> Vec<NamedText> {
        let mut place = method::place(self.record);
        let Some(here) = self.here else { return place };
        let differences = analysis::differences(&self.record.header.environment, here);
        if let Some(machine) = place.first_mut().filter(|_| !differences.is_empty()) {
            machine.text += &format!("; not as where this is read: {}", differences.join("; "));
        }
        place
    }

    /// Most severe first, like findings. If everything is void no result depends on an assumption, but a
    /// doubtful one may be the reason.
    pub(crate) fn assumptions(&self) -> Vec<&'a Assumption> {
        let void = self
            .conclusion
            .comparisons
            .iter()
            .all(|of| of.outcome == Outcome::Invalid);
        let told = |assumption: &&Assumption| !void || assumption.standing == Standing::Doubtful;
        let mut sorted: Vec<&Assumption> =
            self.conclusion.assumptions.iter().filter(told).collect();
        sorted.sort_by_key(|assumption| match assumption.standing {
            Standing::Doubtful => 0,
            Standing::Unchecked => 1,
            Standing::Supported => 2,
        });
        sorted
    }

    /// Next steps, each a sentence or a command with its reason.
    pub(crate) fn steps(&self) -> Vec<String> {
        let mut steps = next(self.record, self.conclusion);
        if self.explanation.is_some() {
            let (flames, place) = (
                self.record.directory.join(page::FLAME_PAGE),
                typed(self.record),
            );
            steps.push(format!(
                "to see where the time goes: {}, or proofload profile {place}",
                flames.display()
            ));
        }
        steps
    }

    /// The report of an experiment that compares.
    fn compared(&self) -> Document {
        let MeasuredRecord {
            record, conclusion, ..
        } = *self;
        let mut blocks = vec![DocumentPart::Answers(answer::answers(
            conclusion,
            &record.header.plan.design,
        ))];
        blocks.extend(tables::effects(conclusion).map(DocumentPart::Table));
        if !conclusion.leading_effects().is_empty() {
            blocks.reverse();
        }
        blocks.insert(
            0,
            DocumentPart::Answers(capacity::answers(record, conclusion)),
        );
        blocks.extend(capacity::chart(record, conclusion).map(DocumentPart::Chart));
        let curves = capacity::curves(record, conclusion).into_iter();
        blocks.extend(curves.map(DocumentPart::Table));
        blocks.push(DocumentPart::Table(tables::variants(record, conclusion)));
        blocks.push(DocumentPart::Findings(
            remarks(&conclusion.findings),
            explained_by(conclusion.findings.iter()),
        ));
        blocks.extend(
            tables::parts(conclusion)
                .into_iter()
                .map(DocumentPart::Table),
        );
        if let Some(explanation) = self.explanation {
            blocks.push(DocumentPart::Heading(
                Tone::Strong,
                "Where the time goes".to_owned(),
            ));
            blocks.extend(Why::of(explanation).blocks());
        }
        let mut method = vec![DocumentPart::Lines(
            [self.place(), method::method(record, conclusion)].concat(),
        )];
        let assumptions: Vec<NamedText> = self.assumptions().into_iter().map(assumption).collect();
        if !assumptions.is_empty() {
            method.push(DocumentPart::Heading(
                Tone::Strong,
                "Assumptions".to_owned(),
            ));
            method.push(DocumentPart::Lines(assumptions));
        }
        blocks.push(DocumentPart::Folded(
            "How it was measured, and assumptions".to_owned(),
            method,
        ));
        // Not the page in the record's folder, because the record may come from an untrusted source.
        let look = self
            .has_page
            .then(|| format!("to look at it: proofload report {} --open", typed(record)));
        blocks.push(DocumentPart::Steps(
            self.steps().into_iter().chain(look).collect(),
        ));
        let headline = Some(headline(record, conclusion));
        Document {
            headline,
            ..Document::new(self.title(), blocks)
        }
    }
}

impl Report for MeasuredRecord<'_> {
    fn document(&self) -> Document {
        LoadedRecord::of(self).map_or_else(|| self.compared(), |loaded| loaded.document())
    }

    fn brief(&self) -> Document {
        LoadedRecord::of(self).map_or_else(|| self.first_screen(), |loaded| loaded.brief())
    }

    fn data(&self) -> Value {
        match LoadedRecord::of(self) {
            Some(loaded) => measurement::data(&loaded),
            None => data::data(self.record, self.conclusion, self.explanation),
        }
    }

    fn figures(&self) -> Option<CsvRows> {
        let loaded = LoadedRecord::of(self).map(|loaded| loaded.figures());
        Some(loaded.unwrap_or_else(|| tables::figures(self.record, self.conclusion)))
    }

    fn page(&self) -> Option<PageData> {
        Some(page::data(self))
    }

    fn plot(&self) -> Option<Plot> {
        LoadedRecord::of(self).is_none().then(|| Plot::of(self))
    }
}

fn assumption(of: &Assumption) -> NamedText {
    let (tone, word) = match of.standing {
        Standing::Doubtful => (Tone::Doubtful, "doubtful"),
        Standing::Unchecked => (Tone::Faint, "unchecked"),
        Standing::Supported => (Tone::Faint, "supported"),
    };
    NamedText {
        tone,
        detail: of.evidence.clone(),
        ..NamedText::new(word, of.statement)
    }
}

/// The program whose output contains the reason of a failed run.
fn said_by(record: &Record) -> Option<&'static str> {
    record.end()?.failure()?.0.output_of
}

/// The command that runs the experiment again with its flags, and with this budget if there is one.
fn again(record: &Record, budget: Option<String>) -> String {
    let mut words = match &record.header.repeat {
        Repeat::AsTyped => return plan::command_line(record.header.command.clone()),
        Repeat::Command(words) => words.clone(),
        Repeat::SavedFile => {
            let file = record.directory.join("experiment.toml");
            vec!["run".to_owned(), file.display().to_string()]
        }
    };
    if let Some(budget) = budget {
        let typed = words.iter().position(|word| word == BUDGET);
        words.truncate(typed.unwrap_or(words.len()));
        words.extend([BUDGET.to_owned(), budget]);
    }
    format!("proofload {}", plan::command_line(words))
}

/// The flag of a typed budget, the last one of a command that is repeated.
const BUDGET: &str = "--budget";

/// The command that repeats the run with its seed.
pub(crate) fn repeat(record: &Record) -> String {
    let again = again(record, None);
    match record.header.repeat {
        Repeat::AsTyped => again,
        Repeat::Command(_) | Repeat::SavedFile => format!("{again} --seed {}", record.header.seed),
    }
}

fn next(record: &Record, conclusion: &Conclusion) -> Vec<String> {
    if let Some(who) = said_by(record) {
        return vec![format!(
            "look at what {who} said: {}",
            record.directory.join("logs").display()
        )];
    }
    if conclusion.is_void() {
        return vec!["fix what makes it invalid, then run again".to_owned()];
    }
    if let Some(few) = conclusion.finding(Check::TooFewBlocks) {
        return vec![few.remedy.to_string()];
    }
    let needed_s = conclusion
        .comparisons
        .iter()
        .filter_map(|comparison| comparison.seconds_needed);
    let leading = conclusion.leading_effects();
    let answered = !leading.is_empty() && leading.iter().all(|effect| effect.outcome.is_decided());
    let decide = needed_s
        .reduce(f64::max)
        .filter(|_| !answered)
        .map(|needed_s| {
            let budget = span(analysis::budget_s(needed_s));
            let again = again(record, Some(budget));
            format!("to decide what is inconclusive: {again}")
        });
    let hold = match record.header.repeat {
        Repeat::AsTyped => None,
        Repeat::Command(_) | Repeat::SavedFile => Some(format!(
            "to see whether it holds: {} --seed {}",
            again(record, None),
            record.header.seed + 1
        )),
    };
    let request = format!(
        "for a pull request: proofload report {} --format md",
        typed(record)
    );
    decide.into_iter().chain(hold).chain([request]).collect()
}

// The first screen of a run: the verdicts, the doubts about them, and where to find the rest, in about
// fifteen lines.
//
// Its words and figures come from the whole report. This module does not judge, and does not word a verdict
// again.

/// Maximum number of verdicts on one screen.
const VERDICTS_MAX: usize = 12;

/// A verdict with its sort key: whether it is decided, and its distance from no difference.
type Ranked = (bool, f64, QuestionAnswer);

impl MeasuredRecord<'_> {
    fn first_screen(&self) -> Document {
        let (record, conclusion) = (self.record, self.conclusion);
        let mut blocks = Vec::new();
        if state(record, conclusion) == RunState::Broken {
            blocks.push(DocumentPart::Paragraph(
                Tone::Bad,
                headline(record, conclusion),
            ));
        }
        blocks.push(invalid(&conclusion.findings));
        blocks.push(DocumentPart::Verdicts(capacity::answers(
            record, conclusion,
        )));
        blocks.extend(verdicts(record, conclusion));
        blocks.extend(capacity::chart(record, conclusion).map(DocumentPart::Chart));
        if conclusion.comparisons.is_empty() && conclusion.capacities.is_empty() {
            blocks.push(DocumentPart::Table(tables::variants(record, conclusion)));
        }
        blocks.extend(self.explanation.into_iter().flat_map(Why::brief));
        blocks.push(DocumentPart::Paragraph(
            Tone::Plain,
            course(record, conclusion),
        ));
        blocks.push(DocumentPart::Lines(self.leads()));
        Document::new(self.title(), blocks)
    }

    /// Doubts about the result, and commands for more.
    fn leads(&self) -> Vec<NamedText> {
        let mut lines = warnings(&self.conclusion.findings, "-v, or proofload report");
        if said_by(self.record).is_some() {
            lines.push(NamedText::new(
                "Logs",
                self.record.directory.join("logs").display().to_string(),
            ));
        }
        if let Some(few) = self.conclusion.finding(Check::TooFewBlocks) {
            lines.push(NamedText::new("Next", few.remedy.to_string()));
        }
        let (record, place) = (self.record, typed(self.record));
        if self.explanation.is_some() {
            lines.push(lead("Profile", format!("proofload profile {place}")));
        }
        let place = if self.is_latest {
            String::new()
        } else {
            format!(" {place}")
        };
        lines.push(lead("Report", format!("proofload report{place} --open")));
        lines.push(lead("Repeat", repeat(record)));
        lines
    }
}

/// A record's folder, quoted for a shell.
pub(crate) fn typed(record: &Record) -> String {
    plan::command_line([record.directory.display().to_string()])
}

fn lead(name: &str, command: String) -> NamedText {
    NamedText {
        command: Some(command),
        ..NamedText::new(name, "")
    }
}

/// Merges findings of the same check and remedy, with further evidence below the first.
pub(crate) fn remarks<'a>(findings: impl IntoIterator<Item = &'a Finding<Check>>) -> Vec<Remark> {
    let alike = findings
        .into_iter()
        .map(|of| ((of.check, of.grade, &of.remedy.text), of));
    let remark = |(_, all): (_, Vec<&Finding<Check>>)| {
        let cases = all[1..].iter().map(|of| of.evidence.to_string()).collect();
        Remark {
            cases,
            ..all[0].into()
        }
    };
    model::grouped(alike).into_iter().map(remark).collect()
}

/// Findings that forbid a conclusion are shown completely, before everything else.
pub(crate) fn invalid(findings: &[Finding<Check>]) -> DocumentPart {
    let grave = findings
        .iter()
        .filter(|finding| finding.grade == Grade::Invalid);
    DocumentPart::Findings(remarks(grave), None)
}

/// Maximum number of warnings whose titles are on the first screen.
const WARNINGS_MAX: usize = 3;

/// The findings of a first screen: warnings by title, the number of notes with `all`, which prints them, and
/// the command that explains everything that may change the conclusion.
pub(crate) fn warnings(findings: &[Finding<Check>], all: &str) -> Vec<NamedText> {
    let checks = |grade| {
        let graded = findings.iter().filter(|finding| finding.grade == grade);
        model::distinct(graded.map(|finding| finding.check))
    };
    let (warnings, notes) = (checks(Grade::Warning), checks(Grade::Note));
    let titles = warnings.iter().take(WARNINGS_MAX);
    let mut titles: Vec<String> = titles
        .map(|check| format!("{} ({})", check.title(), check.number()))
        .collect();
    let more = warnings.len().saturating_sub(WARNINGS_MAX);
    titles.extend((more > 0).then(|| format!("{more} more")));
    let told = (!notes.is_empty()).then(|| format!("{}: {all}", many(notes.len() as u64, "note")));
    let mut lines = Vec::new();
    if titles.is_empty() {
        lines.extend(told.map(|notes| NamedText::new("More", notes)));
    } else {
        titles.extend(told);
        lines.push(NamedText {
            tone: Tone::Doubtful,
            ..NamedText::new("Warnings", titles.join("; "))
        });
    }
    let grave = findings.iter().filter(|finding| finding.grade.is_grave());
    lines.extend(explained_by(grave).map(|command| lead("Explain", command)));
    lines
}

/// The leading effects, or else comparisons and interactions: decided ones first, and the largest first among
/// these.
fn verdicts(record: &Record, conclusion: &Conclusion) -> Vec<DocumentPart> {
    let all = &conclusion.comparisons;
    let void = all.iter().all(|one| one.outcome == Outcome::Invalid);
    let of_effect =
        |effect: &Effect| of_effect(conclusion, effect, record.header.plan.design.margin);
    let told = answer::groups(conclusion).flat_map(answer::told);
    let told = told.take(if void { 1 } else { all.len() });
    let interactions = conclusion
        .effects
        .iter()
        .filter(|effect| effect.interacts());
    let ranked = |effect: &Effect| (true, distance(effect.estimate.as_ref()), of_effect(effect));
    let compared = told.map(|one| compared(record, conclusion, one));
    let mut ranked: Vec<Ranked> = compared.chain(interactions.map(ranked)).collect();
    ranked.sort_by(|one, other| other.0.cmp(&one.0).then(other.1.total_cmp(&one.1)));
    if let (true, [(.., only)]) = (void && all.len() > 1, ranked.as_mut_slice()) {
        only.subject = format!("all {} comparisons", all.len());
    }
    let leading = conclusion.leading_effects();
    let answers: Vec<QuestionAnswer> = match leading.is_empty() {
        true => ranked.into_iter().map(|(.., answer)| answer).collect(),
        false => leading.into_iter().map(of_effect).collect(),
    };
    let more = answers.len().saturating_sub(VERDICTS_MAX);
    let shown = answers.into_iter().take(VERDICTS_MAX);
    let more = (more > 0).then(|| format!("and {more} more: proofload report"));
    let more = more.map(|more| DocumentPart::Paragraph(Tone::Faint, more));
    [DocumentPart::Verdicts(shown.collect())]
        .into_iter()
        .chain(more)
        .collect()
}

/// Distance of a ratio from no difference.
fn distance(estimate: Option<&Estimate>) -> f64 {
    estimate.map_or(0.0, Estimate::distance)
}

fn compared(record: &Record, conclusion: &Conclusion, of: &ComparisonResult) -> Ranked {
    let design = &record.header.plan.design;
    let margin = if of.is_slight {
        within(design.margin)
    } else {
        held_against(of.outcome, design.margin)
    };
    let detail = match of
        .estimate
        .as_ref()
        .filter(|_| of.outcome != Outcome::Invalid)
        .map(change)
    {
        Some((value, interval)) => {
            format!(
                "{value} {} (95 % CI {interval}){margin}",
                answer::judged_of(of, design)
            )
        }
        None => answer::detail(of, conclusion, design),
    };
    let beside = if of.outcome == Outcome::Invalid {
        Vec::new()
    } else {
        beside(of, design.margin)
    };
    let HeadlineSides {
        candidate,
        baseline,
        context,
    } = HeadlineSides::of(&record.header.plan, of);
    let subject = format!("{context}{candidate} vs {baseline}");
    let answer = QuestionAnswer::new(subject, of.outcome.into(), &answer::word_of(of), detail);
    let notes = if beside.is_empty() {
        beside
    } else {
        vec![beside.join(" · ")]
    };
    (
        of.outcome.is_decided(),
        distance(of.estimate.as_ref()),
        QuestionAnswer { notes, ..answer },
    )
}

/// The margin, if the outcome depends on it.
fn held_against(outcome: Outcome, margin: f64) -> String {
    match outcome {
        Outcome::Equivalent | Outcome::Inconclusive => within(margin),
        Outcome::Better | Outcome::Worse | Outcome::NoSuccess | Outcome::Invalid => String::new(),
    }
}

fn within(margin: f64) -> String {
    format!(", margin ±{}", share(margin))
}

/// The amounts behind a ratio, other metrics with differences beyond chance, and the effort until a decision.
fn beside(of: &ComparisonResult, margin: f64) -> Vec<String> {
    let amount = |value: Option<f64>| {
        Some(
            Quantity {
                value: value?,
                unit: of.metric.unit(),
            }
            .to_string(),
        )
    };
    let amounts = amount(of.baseline_value).zip(amount(of.candidate_value));
    let per_core = if of.per_second.is_some() {
        " per core"
    } else {
        ""
    };
    let amounts =
        amounts.map(|(baseline, candidate)| format!("{baseline} → {candidate}{per_core}"));
    let by_the_clock = of
        .per_second
        .as_ref()
        .map(|clock| format!("by the clock {}", change(clock).0));
    let differs = |other: &&Exploratory| other.estimate.low > 1.0 || other.estimate.high < 1.0;
    let others = of.exploratory.iter().filter(differs);
    let others = others.map(|other| {
        format!(
            "{} {}",
            other.metric.row().heading,
            change_or_saving(&other.estimate)
        )
    });
    let needed = of
        .blocks_needed
        .map(|blocks| forecast(&share(margin), blocks, of.seconds_needed));
    amounts
        .into_iter()
        .chain(by_the_clock)
        .chain(others)
        .chain(needed)
        .collect()
}

fn of_effect(conclusion: &Conclusion, effect: &Effect, margin: f64) -> QuestionAnswer {
    let (judged, margin) = (
        answer::judged_by(conclusion, effect),
        held_against(effect.outcome, margin),
    );
    let detail = effect
        .estimate
        .as_ref()
        .map(change)
        .map(|(value, interval)| match effect.kind {
            EffectKind::Main => format!("{value} {judged} on average (95 % CI {interval}){margin}"),
            EffectKind::Interaction => {
                format!("with both, {value} {judged} on top of each alone (95 % CI {interval})")
            }
        });
    QuestionAnswer::new(
        &effect.label,
        tables::tone(effect),
        answer::effect_word(effect),
        detail.unwrap_or_default(),
    )
}

/// Extent of the measurement: `6 blocks in 2m43s · closed loop, 16 connections · each process in its first
/// 7.1 s of load · 0 of 43,341 requests failed`.
fn course(record: &Record, conclusion: &Conclusion) -> String {
    let mut blocks = many(conclusion.blocks.into(), "block");
    if !conclusion.blocks_dropped.is_empty() {
        blocks += &format!(" ({} more dropped)", conclusion.blocks_dropped.len());
    }
    if let Some(ended) = &record.ended {
        blocks += &format!(" in {}", span(ended.seconds));
        // Failures are reported elsewhere.
        if matches!(ended.reason.kind(), EndKind::Interrupted | EndKind::Void) {
            blocks += &format!(", {}", ended.reason.sentence());
        }
    }
    let sum = |of: fn(&VariantFigures) -> u64| conclusion.variants.iter().map(of).sum::<u64>();
    let (mut failed, mut requests) = (sum(|of| of.failed), sum(|of| of.requests));
    if requests == 0 {
        // Without a complete block, the requests of the warm-up.
        let slices = record.trials().flat_map(|trial| &trial.slices);
        RequestOutcome {
            due: requests,
            failed,
        } = slices.map(|slice| slice.counts.outcome()).sum();
    }
    let failed = format!("{} of {} failed", count(failed), many(requests, "request"));
    let failed = (requests > 0).then_some(failed);
    let parts = [
        Some(blocks),
        Some(load_short(record)),
        method::seen_for(record),
        cores_short(record),
        failed,
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}
