//! From a record with captures to what explains it: reads every profile once, and puts together what the other modules make of it.
//!
//! It decides nothing about reading or cost, and never fails: what cannot be read is a doubt.

use std::collections::BTreeMap;

use model::{Absence, CaptureKind, CapturedService, Missing};
use record::Record;

mod comparison;

use crate::captures::{Captures, Opened, Profiles, Source, find};
use crate::cost::{Material, mean_tree, seen};
use crate::difference::{Pairs, Side};
use crate::doubt::{DoubtKind, Doubts, Note};
use crate::figure::{amount, percent};
use crate::observed::{NativeSide, Observed, Sight};
use crate::reconcile::{EXPLAINED_MAX, EXPLAINED_MIN, TAX_DOUBTED};
use crate::tree::{scaled, together, without_waiting};
use crate::{Comparison, Explanation, Interval, Subject, Tree, waiting};

/// Format of an explanation.
pub const VERSION: u32 = 1;
/// Samples of a service in a variant below which shares of functions are uncertain.
pub const SAMPLES_MIN: u64 = 200;
/// A profiler cannot make a service cheaper: where it seems to, by this part of the CPU time, windows were not alike.
pub const UNLIKE_MIN: f64 = 0.1;
/// Rounds below which there is no interval.
const ROUNDS_MIN: u32 = 2;

/// What was measured of two variants without any profiler.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The baseline's name.
    pub baseline: String,
    /// The variant's name.
    pub variant: String,
    /// Difference of CPU time per request of all services together, variant − baseline, in microseconds.
    pub us: Interval,
}

/// Explains a record. Comparisons that `measured` does not have are held against the windows without a profiler.
///
/// Never fails: what is missing or cannot be read is a doubt, and a record without captures has an explanation that is empty.
pub fn explain(record: &Record, measured: &[Measured], source: &dyn Source) -> Explanation {
    explained(record, measured, &Opened(source))
}

/// The same with profiles from anywhere.
pub(crate) fn explained(record: &Record, measured: &[Measured], profiles: &dyn Profiles) -> Explanation {
    let captures = Captures::of(record);
    let mut work =
        Work { captures: &captures, profiles, doubts: Doubts::default(), variants: BTreeMap::new() };
    let rounds = captures.rounds();
    if (1..ROUNDS_MIN).contains(&rounds) {
        work.doubts.add("", Note::new(DoubtKind::OneRound, "there is one round of captures"));
    }
    let variants = captures.variants();
    let several = variants.iter().any(|variant| captures.services(*variant).len() > 1);
    let each = variants
        .iter()
        .flat_map(|variant| captures.services(*variant).into_iter().map(move |service| (*variant, service)));
    let subjects: Vec<Subject> =
        each.map(|(variant, service)| work.subject(variant, service, several)).collect();
    work.versions();
    let comparisons = work.comparisons(measured, &subjects);
    Explanation { version: VERSION, rounds, subjects, comparisons, doubts: work.doubts.finish() }
}

/// Two trees compared without a record: whatever they hold, such as milliseconds. Nothing was measured beside them, so there is nothing
/// to be reconciled with and no cause is told.
pub fn compare_trees(baseline: (&str, &Tree), variant: (&str, &Tree)) -> Comparison {
    let side = |tree: &Tree| Side { rounds: [(1, without_waiting(tree))].into() };
    let found = Pairs::of(&side(baseline.1), &side(variant.1)).difference();
    Comparison {
        baseline: baseline.0.into(),
        variant: variant.0.into(),
        measured_us: found.total,
        profiled_us: found.total,
        explained_share: None,
        kinds: found.kinds,
        packages: found.packages,
        functions: found.functions,
        heap: Vec::new(),
        reconciliation: "two profiles, and nothing measured beside them".into(),
        story: None,
        waiting: None,
    }
}

/// What comparisons are made of.
#[derive(Default)]
struct VariantCosts {
    cpu: Side,
    heap: Side,
    /// Seen by profiles and threads, of all services, per request.
    seen_us: f64,
    /// Counted by the kernel in the same windows.
    counted_us: f64,
}

struct Work<'a> {
    captures: &'a Captures<'a>,
    profiles: &'a dyn Profiles,
    doubts: Doubts,
    variants: BTreeMap<usize, VariantCosts>,
}

impl Work<'_> {
    /// One service of a variant. `several`: files have to carry its name where it is compared.
    fn subject(&mut self, variant: usize, service: &str, several: bool) -> Subject {
        let captures = self.captures;
        let whose = format!("{service} in {}", captures.name(variant));
        let named = several.then_some(service);
        let mut observed = Vec::new();
        for capture in captures.all(CaptureKind::Cpu, variant) {
            let Some(captured) = find(capture, service) else { continue };
            if capture.requests == 0 {
                let evidence =
                    format!("no successful response in round {} ({} errors)", capture.round, capture.errors);
                self.doubts.add(&whose, Note::new(DoubtKind::NoRequests, evidence));
                continue;
            }
            let (native, problems) = self.native(variant, capture.round, service);
            self.add_all(&whose, problems);
            let others = self.others(variant, capture.round, service);
            let sight =
                Sight { capture, service: captured, native: &native, others, profiles: self.profiles };
            let mut one = sight.observe();
            self.add_all(&whose, std::mem::take(&mut one.notes));
            self.costs(variant).cpu.add(capture.round, &one.per_request(), named);
            observed.push(one);
        }
        self.missing(variant, service, &whose);
        let heap = self.heap(variant, service, &whose, named);
        self.judge(&whose, &observed);
        let material = Material {
            variant: captures.name(variant),
            service,
            observed,
            plain: captures.uses(CaptureKind::Plain, variant, service),
            taxed: captures.uses(CaptureKind::Cpu, variant, service),
            waiting: waiting::of_service(captures, variant, service),
            heap,
        };
        let without = material.plain.is_empty() && !material.taxed.is_empty();
        let subject = material.subject();
        if let Some(seen) = seen(&material.observed) {
            let costs = self.costs(variant);
            costs.seen_us += seen.seen_us;
            costs.counted_us += seen.counted_us;
        }
        self.judge_tax(&whose, &subject, without);
        subject
    }

    fn costs(&mut self, variant: usize) -> &mut VariantCosts {
        self.variants.entry(variant).or_default()
    }

    fn add_all(&mut self, whose: &str, notes: Vec<Note>) {
        notes.into_iter().for_each(|note| self.doubts.add(whose, note));
    }

    fn native(&self, variant: usize, round: u32, service: &str) -> (NativeSide, Vec<Note>) {
        let capture = self.captures.get(CaptureKind::Native, variant, round);
        let captured = capture.and_then(|capture| find(capture, service));
        captured.map(|captured| NativeSide::read(captured, self.profiles)).unwrap_or_default()
    }

    /// The same service in the other windows of the trial.
    fn others(&self, variant: usize, round: u32, service: &str) -> Vec<&CapturedService> {
        let kinds = [CaptureKind::Counters, CaptureKind::Plain].into_iter();
        kinds.filter_map(|kind| find(self.captures.get(kind, variant, round)?, service)).collect()
    }

    /// What the lab could not have, each thing once.
    fn missing(&mut self, variant: usize, service: &str, whose: &str) {
        let all = || self.captures.of_service(variant, service);
        let mut missing: Vec<&Missing> = all().flat_map(|one| &one.missing).collect();
        missing.sort_by_key(|one| &one.why);
        missing.dedup();
        let has_native = all().flat_map(|one| &one.processes).any(|process| process.native.is_some());
        // With native stacks nothing is missing of what is not Node.js.
        missing.retain(|one| one.what != Absence::NotNode || !has_native);
        let notes = missing.into_iter().map(|one| Note::new(DoubtKind::of(one.what), &*one.why)).collect();
        self.add_all(whose, notes);
    }

    /// Bytes per request, all workers and rounds.
    fn heap(&mut self, variant: usize, service: &str, whose: &str, named: Option<&str>) -> Option<Tree> {
        let captures = self.captures;
        let mut rounds = Vec::new();
        for capture in captures.all(CaptureKind::Heap, variant).filter(|capture| capture.requests > 0) {
            let Some(captured) = find(capture, service) else { continue };
            let agents = captured.processes.iter().flat_map(|process| &process.agents);
            let mut trees = Vec::new();
            for file in agents.filter_map(|agent| agent.profile.as_ref()) {
                match self.profiles.heap(file, &captured.directory) {
                    Ok(tree) => trees.push(tree),
                    Err(note) => self.doubts.add(whose, note),
                }
            }
            if trees.is_empty() {
                continue;
            }
            let tree = scaled(&together(&trees), |_| 1.0 / capture.requests as f64);
            self.costs(variant).heap.add(capture.round, &tree, named);
            rounds.push(tree);
        }
        (!rounds.is_empty()).then(|| mean_tree(&rounds))
    }

    /// Doubts about what was seen.
    fn judge(&mut self, whose: &str, observed: &[Observed]) {
        let samples = observed.iter().filter_map(|one| one.samples).reduce(u64::saturating_add);
        if let Some(samples) = samples.filter(|samples| *samples < SAMPLES_MIN) {
            let evidence = format!("{samples} samples, fewer than {SAMPLES_MIN}");
            self.doubts.add(whose, Note::new(DoubtKind::TooFewSamples, evidence));
        }
        let Some(seen) = seen(observed) else { return };
        let (share, counted) = (seen.seen_us / seen.counted_us, seen.counted_us);
        let evidence = format!(
            "profiles and threads show {} of {}/request of CPU time",
            percent(share),
            amount(counted)
        );
        if share < EXPLAINED_MIN {
            self.doubts.add(whose, Note::new(DoubtKind::Unexplained, evidence));
        } else if share > EXPLAINED_MAX {
            self.doubts.add(whose, Note::new(DoubtKind::ExplainedTooMuch, evidence));
        }
    }

    fn judge_tax(&mut self, whose: &str, subject: &Subject, without: bool) {
        let added = subject.tax.cpu_ratio.value - 1.0;
        if added > TAX_DOUBTED {
            let slower = 1.0 - subject.tax.throughput_ratio.value;
            let evidence = format!(
                "the profiler added {} to the CPU time per request and took {} of the responses per second",
                percent(added),
                percent(slower.max(0.0))
            );
            self.doubts.add(whose, Note::new(DoubtKind::ProfilerTax, evidence));
        } else if added < -UNLIKE_MIN {
            let evidence = format!(
                "CPU time per request was {} less while profiles were taken than without, of the same trial",
                percent(-added)
            );
            self.doubts.add(whose, Note::new(DoubtKind::NotSteady, evidence));
        }
        if without {
            self.doubts.add(whose, Note::new(DoubtKind::TaxUnknown, "there is no window without a profiler"));
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
