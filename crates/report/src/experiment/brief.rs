//! The first screen of a run: the verdicts, what makes them doubtful, and where the rest is, in about fifteen lines.
//!
//! Its words and figures are those of the whole report. Must not: judge, or word a verdict a second time.

use analysis::{Comparison, Conclusion, Effect, Exploratory, Finding, Grade, Kind, Outcome, Variant};
use model::document::{Answer, Block, Document, Line, Tone, Verdict};
use model::quantity::{Quantity, change, count, many, share, signed, span};
use plan::Metric;
use record::{EndReason, Record};
use stats::Estimate;

use super::answer::{self, effect_word};
use super::headline::{Sides, State};
use super::{Measured, capacity, method, tables};
use crate::forecast::forecast;
use crate::validity::explained_by;

/// Verdicts that one screen has room for.
const VERDICTS_MAX: usize = 12;

/// A verdict, and how far from no difference it is.
struct Ranked {
    decided: bool,
    distance: f64,
    answer: Answer,
}

impl Measured<'_> {
    pub(super) fn first_screen(&self) -> Document {
        let (record, conclusion) = (self.record, self.conclusion);
        let mut blocks = Vec::new();
        if super::state(record, conclusion) == State::Broken {
            blocks.push(Block::Paragraph(Tone::Bad, super::headline(record, conclusion)));
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
        if super::said_by(self.record).is_some() {
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
    Block::Findings(grave.map(Into::into).collect(), None)
}

/// The warnings by their titles, each once, and the command that explains all that is grave.
pub(crate) fn warnings(findings: &[Finding]) -> Vec<Line> {
    let told = |finding: &&Finding| matches!(finding.grade, Grade::Invalid | Grade::Warning);
    let warnings = findings.iter().filter(|finding| finding.grade == Grade::Warning);
    let titles = model::distinct(warnings.map(|finding| finding.check));
    let titles: Vec<String> =
        titles.iter().map(|check| format!("{} ({})", check.row().title, check.number())).collect();
    let mut lines = Vec::new();
    if !titles.is_empty() {
        lines.push(Line { tone: Tone::Doubtful, ..Line::new("Warnings", titles.join("; ")) });
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
    let quantity = |value| Quantity { value, unit: metric.unit() };
    let found = match metric {
        Metric::Throughput => variant.throughput_per_s,
        Metric::CpuPerRequest => variant.cpu_us_per_request,
        Metric::PeakMemory => variant.peak_rss_bytes.map(|bytes| bytes as f64),
        // It is no figure of one variant's trials; its own verdict has it.
        Metric::Capacity => None,
        Metric::P50 | Metric::P90 | Metric::P99 | Metric::P999 => {
            let found = variant.response_time.iter().find(|found| found.metric == metric);
            found.filter(|found| !found.at_least).map(|found| found.us)
        }
    };
    found.map(quantity)
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
