//! What explanations, profiles and differences of two say to people: which tables, which rows, in which order. Each word is chosen once.
//!
//! Names of functions come out of somebody's code and may hold anything: whoever draws makes them harmless. Must not: know a form, or leave
//! out a doubt.

mod tables;

use model::document::{Block, Document, Line, Remark, Table, Tone};
use model::quantity::{count, many, micros, signed};
use serde_json::{Value, json};

use crate::label::shown;
use crate::tree::without_waiting;
use crate::{Comparison, Explanation, Kind, Subject, Tree, Unit};

/// Version of the JSON forms; fields may be added within a version, never renamed or removed.
const VERSION: u32 = 1;
/// What nearly all figures are.
const US: Unit = Unit::MicrosPerRequest;
/// Comparisons whose tables are in a report; the others have their reconciliation and their story.
const DETAILED_MAX: usize = 3;
/// Variants whose tax is told one by one.
const TAXED_MAX: usize = 3;

/// What a report tells of an explanation, before it is drawn in any form.
#[derive(Debug, Clone, PartialEq)]
pub struct Why {
    /// One for each comparison: its heading, and in sentences how much is explained, the cause where it is clear, and where requests wait.
    pub reasons: Vec<(String, Vec<String>)>,
    /// By kind, package, function and memory; where there is nothing to compare, what each variant spends; where requests wait.
    pub tables: Vec<Table>,
    /// How it was captured.
    pub method: Vec<Line>,
    /// What makes it doubtful or is missing.
    pub doubts: Vec<Remark>,
}

impl Why {
    /// Puts an explanation into words.
    pub fn of(explanation: &Explanation) -> Why {
        let several = several_services(explanation);
        let compared = explanation.comparisons.iter().take(DETAILED_MAX);
        let mut tables: Vec<Table> = compared.flat_map(|of| tables::explained(explanation, of)).collect();
        if explanation.comparisons.is_empty() {
            tables.extend(explanation.subjects.iter().flat_map(|of| tables::spent(of, &called(of, several))));
        }
        tables.extend(tables::waiting(explanation, several));
        tables.retain(|table| !table.rows.is_empty());
        let doubt = |of: &crate::Doubt| {
            let remark = Remark::from(of);
            Remark { statement: remark.statement.trim_end_matches('.').to_owned(), ..remark }
        };
        Why {
            reasons: explanation.comparisons.iter().map(reason).collect(),
            tables,
            method: method(explanation, several),
            doubts: explanation.doubts.iter().map(doubt).collect(),
        }
    }

    /// The same in order: the words in sight, the tables folded away.
    pub fn blocks(self) -> Vec<Block> {
        let reason = |(heading, sentences): (String, Vec<String>)| {
            let sentences = sentences.into_iter().map(|text| Block::Paragraph(Tone::Plain, text));
            std::iter::once(Block::Heading(Tone::Strong, heading)).chain(sentences)
        };
        let mut blocks: Vec<Block> = self.reasons.into_iter().flat_map(reason).collect();
        let tables = self.tables.into_iter().map(Block::Table).collect();
        blocks.push(Block::Folded("Functions, packages and waiting".to_owned(), tables));
        blocks.push(Block::Lines(self.method));
        blocks.push(Block::Findings(self.doubts, None));
        blocks.retain(|block| !block.is_empty());
        blocks
    }
}

fn reason(of: &Comparison) -> (String, Vec<String>) {
    let sentences = std::iter::once(&of.reconciliation).chain(&of.story).chain(&of.waiting);
    (heading(of), sentences.cloned().collect())
}

fn heading(of: &Comparison) -> String {
    format!("{} vs {}", shown(&of.variant), shown(&of.baseline))
}

/// Whether a variant has more than one service with a profile, so that its name alone does not tell them apart.
fn several_services(explanation: &Explanation) -> bool {
    let subjects = &explanation.subjects;
    subjects.iter().any(|one| subjects.iter().filter(|other| other.variant == one.variant).count() > 1)
}

/// What a subject is called.
fn called(of: &Subject, several: bool) -> String {
    let service = if several { format!(": {}", shown(&of.service)) } else { String::new() };
    shown(&of.variant) + &service
}

fn method(explanation: &Explanation, several: bool) -> Vec<Line> {
    let requests: u64 = explanation.subjects.iter().map(|subject| subject.requests).sum();
    let captures = format!(
        "{} of trials of their own, {} requests under the profiler; verdicts rest on trials without it",
        many(explanation.rounds.into(), "round"),
        count(requests)
    );
    let tax = tax(explanation, several).map(|tax| Line::new("tax", tax));
    std::iter::once(Line::new("captures", captures)).chain(tax).collect()
}

/// What the profiler cost. Of many variants from the least to the most.
fn tax(explanation: &Explanation, several: bool) -> Option<String> {
    let known = |of: &&Subject| of.tax.cpu_ratio.value.is_finite() && of.tax.cpu_ratio.value > 0.0;
    let taxed: Vec<&Subject> = explanation.subjects.iter().filter(known).collect();
    let added = |ratio: f64| signed((ratio - 1.0) * 100.0, 1);
    let told = |of: &&Subject| {
        let (cpu, rate) = (of.tax.cpu_ratio.value, of.tax.throughput_ratio.value);
        format!("{} CPU, {} throughput ({})", added(cpu), added(rate), called(of, several))
    };
    let told = if taxed.len() > TAXED_MAX {
        let ratios = || taxed.iter().map(|of| of.tax.cpu_ratio.value);
        let (least, most) = (ratios().fold(f64::INFINITY, f64::min), ratios().fold(0.0, f64::max));
        format!("between {} and {} CPU, by variant", added(least), added(most))
    } else {
        taxed.iter().map(told).collect::<Vec<_>>().join("; ")
    };
    (!taxed.is_empty()).then(|| format!("what profiling a request cost besides: {told}"))
}

/// Everything of an explanation that text can tell, variant by variant.
pub fn all_of(explanation: &Explanation, title: &str) -> Document {
    let several = several_services(explanation);
    let mut blocks = Vec::new();
    for of in &explanation.subjects {
        let cpu = match US.ranges(std::iter::once(&of.cpu_us)).concat() {
            _ if of.cpu_us.low >= of.cpu_us.high => micros(of.cpu_us.value),
            range => format!("{} ({range})", micros(of.cpu_us.value)),
        };
        let requests = count(of.requests);
        let line =
            format!("{requests} requests under the profiler; without it {cpu} of CPU time per request");
        blocks.push(Block::Heading(Tone::Strong, called(of, several)));
        blocks.push(Block::Paragraph(Tone::Plain, line));
        blocks.extend(tables::all_spent(of, US).map(Block::Table));
    }
    let why = Why::of(explanation);
    // What variants spend stands above.
    let tables = if explanation.comparisons.is_empty() {
        tables::waiting(explanation, several).into_iter().collect()
    } else {
        why.tables
    };
    blocks.extend(Why { tables, ..why }.blocks());
    document(title, blocks)
}

/// One profile: by kind, package, function and line, bottom up and top down.
pub fn profile(title: &str, tree: &Tree, unit: Unit) -> Document {
    let worked = without_waiting(tree);
    let waited = tree.total() - worked.total();
    let waited = match unit.quantity(waited) {
        none if none.value <= 0.0 => String::new(),
        waited => format!(", and {waited} of waiting"),
    };
    let line = format!("{} of {}{waited}", unit.quantity(worked.total()), unit.of_what());
    let spent = Subject::over(&[worked], &[]);
    let tables = tables::all_spent(&spent, unit).map(Block::Table);
    document(title, std::iter::once(Block::Paragraph(Tone::Plain, line)).chain(tables))
}

/// The same for programs, without leaving anything out.
pub fn profile_json(title: &str, tree: &Tree, unit: Unit) -> Value {
    let worked = without_waiting(tree);
    let functions = worked
        .functions()
        .into_iter()
        .map(|of| json!({ "frame": worked.frames[of.frame], "self": of.self_value, "total": of.total }));
    json!({
        "profile_version": VERSION,
        "profile": title,
        "unit": unit.name(),
        "worked": worked.total(),
        "waited": (tree.total() - worked.total()).max(0.0),
        "kinds": worked.sums(|frame| Some(frame.kind)),
        "functions": functions.collect::<Vec<Value>>(),
        "tree": tree,
    })
}

/// One profile vs another: by kind, package and function.
pub fn difference(comparison: &Comparison, unit: Unit) -> Document {
    let (value, interval) = unit.difference(&comparison.profiled_us);
    let interval = interval.map(|interval| format!(" ({interval})")).unwrap_or_default();
    let line = format!("{value}{interval} of {}", unit.of_what());
    let tables = tables::compared(comparison, unit).into_iter().map(Block::Table);
    let mut document =
        document(&heading(comparison), std::iter::once(Block::Paragraph(Tone::Plain, line)).chain(tables));
    if document.blocks.len() == 1 {
        document.blocks.push(Block::Paragraph(Tone::Plain, "no function differs".to_owned()));
    }
    document
}

/// The same for programs.
pub fn difference_json(comparison: &Comparison, unit: Unit) -> Value {
    json!({ "profile_version": VERSION, "unit": unit.name(), "difference": comparison })
}

fn document(title: &str, blocks: impl IntoIterator<Item = Block>) -> Document {
    let blocks = blocks.into_iter().filter(|block| !block.is_empty()).collect();
    Document { title: shown(title), headline: None, blocks }
}

/// Whether it took CPU time or bytes.
fn works(kind: &Kind) -> bool {
    *kind != Kind::Waiting
}
