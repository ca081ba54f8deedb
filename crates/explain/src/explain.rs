//! From a record with captures to its explanation: reads every profile once, and combines the results of the
//! other modules.
//!
//! This module contains no logic of reading or cost, and never fails: unreadable data is a doubt.

use std::collections::{BTreeMap, BTreeSet};

use model::quantity::{many, micros, share};
use model::{Absence, CaptureKind, CapturedService, Missing};
use record::Record;

use crate::capture_files::CaptureFiles;
use crate::captures::{CaptureReader, OpenedProfiles, Profiles, find};
use crate::cause::{CauseInput, story};
use crate::comparison::{
    EXPLAINED_MAX, EXPLAINED_MIN, Rounds, TAX_DOUBTED, add, difference, is_sound, reconcile,
};
use crate::cost::{mean_tree, seen, tax};
use crate::doubt::{DoubtKind, Doubts, Note};
use crate::label::shown;
use crate::observed::{NativeSide, Observed, ObservedPlace};
use crate::tree::{scaled, together};
use crate::{CostComparison, CostInterval, ExplainedService, Explanation, Tree, waiting};

/// Number of samples of a service in a variant below which shares of functions are uncertain.
pub const SAMPLES_MIN: u64 = 200;
/// A profiler cannot make a service cheaper. If CPU time appears lower by this fraction, the windows were not
/// comparable.
pub const UNLIKE_MIN: f64 = 0.1;
/// Number of rounds below which there is no interval.
const ROUNDS_MIN: u32 = 2;

/// Difference of CPU time per request between two variants, by their index in the plan, measured without a
/// profiler. For all services together, candidate − baseline, in microseconds.
pub type MeasuredDifference<'a> = &'a dyn Fn(usize, usize) -> Option<CostInterval>;

/// Explains a record. If no block counts, comparisons are checked against the windows without a profiler.
///
/// Never fails: missing or unreadable data is a doubt, and a record without captures has an empty
/// explanation.
pub fn explain(
    record: &Record,
    measured: MeasuredDifference<'_>,
    source: &dyn CaptureFiles,
) -> Explanation {
    explained(record, measured, &OpenedProfiles(source))
}

/// The same with profiles from any source.
pub(crate) fn explained(
    record: &Record,
    measured: MeasuredDifference<'_>,
    profiles: &dyn Profiles,
) -> Explanation {
    let captures = CaptureReader::of(record);
    let mut work = ExplainWork {
        captures: &captures,
        profiles,
        doubts: Doubts::default(),
        variants: BTreeMap::new(),
    };
    let rounds = captures.rounds();
    if (1..ROUNDS_MIN).contains(&rounds) {
        work.doubts.add(
            "",
            Note::new(DoubtKind::OneRound, "there is one round of captures"),
        );
    }
    let variants = captures.variants();
    let several = variants
        .iter()
        .any(|variant| captures.services(*variant).len() > 1);
    let each = variants.iter().flat_map(|variant| {
        captures
            .services(*variant)
            .into_iter()
            .map(move |service| (*variant, service))
    });
    let subjects: Vec<ExplainedService> = each
        .map(|(variant, service)| work.subject(variant, service, several))
        .collect();
    work.versions();
    // Both variants must have been profiled.
    let asked = record.header.plan.comparisons.iter();
    let pairs = model::distinct(asked.map(|asked| (asked.baseline, asked.candidate)));
    let comparisons = pairs
        .into_iter()
        .filter_map(|pair| work.comparison(pair, measured, &subjects))
        .collect();
    Explanation {
        rounds,
        subjects,
        comparisons,
        doubts: work.doubts.finish(),
    }
}

/// The costs of a variant, as input of comparisons.
#[derive(Default)]
struct VariantCosts {
    cpu: Rounds,
    heap: Rounds,
    /// Time per request seen by profiles and threads, over all services.
    seen_us: f64,
    /// Time counted by the kernel in the same windows.
    counted_us: f64,
}

struct ExplainWork<'a> {
    captures: &'a CaptureReader<'a>,
    profiles: &'a dyn Profiles,
    doubts: Doubts,
    variants: BTreeMap<usize, VariantCosts>,
}

impl ExplainWork<'_> {
    /// One service of a variant. `several` means that files must carry its name in comparisons.
    fn subject(&mut self, variant: usize, service: &str, several: bool) -> ExplainedService {
        let captures = self.captures;
        let whose = format!("{service} in {}", captures.name(variant));
        let named = several.then_some(service);
        let observed = self.observed(variant, service, &whose);
        let rounds: Vec<Tree> = observed.iter().map(Observed::per_request).collect();
        for (one, tree) in observed.iter().zip(&rounds) {
            add(&mut self.costs(variant).cpu, one.round, tree, named);
        }
        self.missing(variant, service, &whose);
        let heap = self.heap(variant, service, &whose, named);
        let plain = captures.uses(CaptureKind::Plain, variant, service);
        let taxed = captures.uses(CaptureKind::Cpu, variant, service);
        let subject = ExplainedService {
            variant: captures.name(variant).into(),
            service: service.into(),
            requests: observed
                .iter()
                .map(|one| one.requests)
                .fold(0, u64::saturating_add),
            cpu_us: CostInterval::over(plain.values().map(|used| used.cpu_us)),
            tax: tax(&taxed, &plain),
            workers: observed
                .iter()
                .flat_map(|one| one.shares.iter().cloned())
                .collect(),
            waiting: waiting::of_service(captures, variant, service),
            heap,
            ..ExplainedService::over(&rounds, &observed)
        };
        self.judge(variant, &whose, &observed);
        self.judge_tax(&whose, &subject);
        if plain.is_empty() && !taxed.is_empty() {
            self.doubt(
                &whose,
                DoubtKind::TaxUnknown,
                "there is no window without a profiler",
            );
        }
        subject
    }

    /// Observations of a service from CPU profiles. Rounds without a response are a doubt.
    fn observed(&mut self, variant: usize, service: &str, whose: &str) -> Vec<Observed> {
        let captures = self.captures;
        let mut observed = Vec::new();
        for capture in captures.all(CaptureKind::Cpu, variant) {
            let (Some(captured), round) = (find(capture, service), capture.round) else {
                continue;
            };
            if capture.requests == 0 {
                // A window that never began has its own reason.
                if capture.end_ns > capture.start_ns {
                    let text = format!(
                        "no successful response in round {round} ({})",
                        many(capture.errors, "error")
                    );
                    self.doubt(whose, DoubtKind::NoRequests, text);
                }
                continue;
            }
            // The same service in the other windows of the trial.
            let window = |kind| {
                captures
                    .get(kind, variant, round)
                    .and_then(|capture| find(capture, service))
            };
            let native = window(CaptureKind::Native).map(|of| NativeSide::read(of, self.profiles));
            let (native, problems) = native.unwrap_or_default();
            let others = [CaptureKind::Counters, CaptureKind::Plain]
                .into_iter()
                .filter_map(window)
                .collect();
            let sight = ObservedPlace {
                capture,
                service: captured,
                native: &native,
                others,
                profiles: self.profiles,
            };
            let mut one = sight.observe();
            let notes = problems.into_iter().chain(std::mem::take(&mut one.notes));
            notes.for_each(|note| self.doubts.add(whose, note));
            observed.push(one);
        }
        observed
    }

    fn costs(&mut self, variant: usize) -> &mut VariantCosts {
        self.variants.entry(variant).or_default()
    }

    fn doubt(&mut self, whose: &str, kind: DoubtKind, text: impl Into<String>) {
        self.doubts.add(whose, Note::new(kind, text));
    }

    /// Missing data of the lab, each kind once.
    fn missing(&mut self, variant: usize, service: &str, whose: &str) {
        let all = || self.captures.of_service(variant, service);
        let mut missing: Vec<&Missing> = all().flat_map(|one| &one.missing).collect();
        missing.sort_by_key(|one| &one.why);
        missing.dedup();
        let has_native = all()
            .flat_map(|one| &one.processes)
            .any(|process| process.native.is_some());
        // With native stacks nothing is missing for processes that are not Node.js.
        missing.retain(|one| one.what != Absence::NotNode || !has_native);
        missing
            .into_iter()
            .for_each(|one| self.doubt(whose, DoubtKind::of(one.what), &*one.why));
    }

    /// Bytes per request over all workers and rounds. A round with a missing profile is ignored, because the
    /// rest would look complete.
    fn heap(
        &mut self,
        variant: usize,
        service: &str,
        whose: &str,
        named: Option<&str>,
    ) -> Option<Tree> {
        let captures = self.captures;
        let mut rounds = Vec::new();
        for capture in captures
            .all(CaptureKind::Heap, variant)
            .filter(|capture| capture.requests > 0)
        {
            let Some(captured) = find(capture, service) else {
                continue;
            };
            let trees = match heaps(captured, capture.round, self.profiles) {
                Ok(trees) if trees.is_empty() => continue,
                Ok(trees) => trees,
                Err(note) => {
                    self.doubts.add(whose, note);
                    continue;
                }
            };
            let tree = scaled(&together(&trees), |_| 1.0 / capture.requests as f64);
            add(&mut self.costs(variant).heap, capture.round, &tree, named);
            rounds.push(tree);
        }
        (!rounds.is_empty()).then(|| mean_tree(rounds.iter()))
    }

    /// Adds doubts about the observations.
    fn judge(&mut self, variant: usize, whose: &str, observed: &[Observed]) {
        let samples = observed
            .iter()
            .filter_map(|one| one.samples)
            .reduce(u64::saturating_add);
        if let Some(samples) = samples.filter(|samples| *samples < SAMPLES_MIN) {
            let text = format!(
                "{} of work, fewer than {SAMPLES_MIN}",
                many(samples, "sample")
            );
            self.doubt(whose, DoubtKind::TooFewSamples, text);
        }
        let Some((seen_us, counted_us)) = seen(observed) else {
            return;
        };
        let costs = self.costs(variant);
        (costs.seen_us, costs.counted_us) =
            (costs.seen_us + seen_us, costs.counted_us + counted_us);
        let part = seen_us / counted_us;
        let kind = match part {
            part if part < EXPLAINED_MIN => DoubtKind::Unexplained,
            part if part > EXPLAINED_MAX => DoubtKind::ExplainedTooMuch,
            _ => return,
        };
        let counted = micros(counted_us);
        let text = format!(
            "profiles and threads show {} of {counted}/request of CPU time",
            share(part)
        );
        self.doubt(whose, kind, text);
    }

    fn judge_tax(&mut self, whose: &str, subject: &ExplainedService) {
        if subject.tax.cpu_ratio.value <= 0.0 {
            return;
        }
        let added = subject.tax.cpu_ratio.value - 1.0;
        if added > TAX_DOUBTED {
            let slower = 1.0 - subject.tax.throughput_ratio.value;
            let text = format!(
                "the profiler added {} to the CPU time per request and took {} of the responses per second",
                share(added),
                share(slower.max(0.0))
            );
            self.doubt(whose, DoubtKind::ProfilerTax, text);
        } else if added < -UNLIKE_MIN {
            let text = format!(
                "CPU time per request was {} less while profiles were taken than without, of the same trial",
                share(-added)
            );
            self.doubt(whose, DoubtKind::NotSteady, text);
        }
    }

    /// A variant compared with its baseline, with the cause and where requests wait. `None` if one was not
    /// profiled.
    fn comparison(
        &mut self,
        (baseline, variant): (usize, usize),
        measured: MeasuredDifference<'_>,
        subjects: &[ExplainedService],
    ) -> Option<CostComparison> {
        let captures = self.captures;
        let names = (captures.name(baseline), captures.name(variant));
        let (before, after) = (self.variants.get(&baseline)?, self.variants.get(&variant)?);
        let compared = |of: fn(&VariantCosts) -> &Rounds| {
            let (before, after) = (of(before), of(after));
            let both = !before.is_empty() && !after.is_empty();
            both.then(|| difference((names.0, before), (names.1, after)))
        };
        let found = compared(|costs| &costs.cpu)?;
        let heap = compared(|costs| &costs.heap).map(|heap| heap.comparison.functions);
        let told = measured(baseline, variant).filter(CostInterval::is_finite);
        // If blocks count but give no figure, the comparison is void.
        let is_alone = captures.record.blocks_kept() == 0;
        let measured =
            told.or_else(|| without_profiler(captures, baseline, variant).filter(|_| is_alone));
        let of =
            |subject: &&ExplainedService| subject.variant == names.0 || subject.variant == names.1;
        let taxes: Vec<_> = subjects
            .iter()
            .filter(of)
            .map(|subject| subject.tax)
            .collect();
        let (part, reconciliation) = reconcile(
            measured.as_ref(),
            found.comparison.profiled_us.value,
            &taxes,
        );
        let seen = |costs: &VariantCosts| costs.seen_us / costs.counted_us;
        let story = story(&CauseInput {
            of: &found.comparison,
            trees: (&found.baseline, &found.variant),
            seen: (seen(before), seen(after)),
            codings: (coding(captures, baseline), coding(captures, variant)),
            sound: part.is_some_and(is_sound),
        });
        let cpu_us = subjects
            .iter()
            .filter(|one| one.variant == names.0)
            .map(|one| one.cpu_us.value)
            .sum();
        let waiting =
            measured.and_then(|us| waiting::sentence(captures, (baseline, variant), &us, cpu_us));
        let lacking = match found.common {
            0 => Some((DoubtKind::Unpaired, "no round")),
            1 if captures.rounds() >= ROUNDS_MIN => Some((DoubtKind::OneRound, "one round")),
            _ => None,
        };
        if let Some((kind, rounds)) = lacking {
            let (before, after) = (shown(names.0), shown(names.1));
            self.doubt(
                "",
                kind,
                format!("{before} and {after} have {rounds} of captures in common"),
            );
        }
        Some(CostComparison {
            measured_us: measured.unwrap_or(CostInterval::exactly(0.0)),
            explained_share: part,
            heap: heap.unwrap_or_default(),
            reconciliation,
            story,
            waiting,
            ..found.comparison
        })
    }

    /// Checks whether all ran on the same Node.js version.
    fn versions(&mut self) {
        let record = self.captures.record;
        let mut by_service: BTreeMap<&str, BTreeMap<&str, BTreeSet<&str>>> = BTreeMap::new();
        for capture in &record.captures {
            let Some(variant) = record.header.plan.variants.get(capture.variant) else {
                continue;
            };
            for service in &capture.services {
                let agents = service.processes.iter().flat_map(|process| &process.agents);
                for version in agents.filter_map(|agent| agent.versions.get("node")) {
                    let versions = by_service.entry(&service.service).or_default();
                    versions.entry(version).or_default().insert(&variant.name);
                }
            }
        }
        for (service, versions) in by_service
            .into_iter()
            .filter(|(_, versions)| versions.len() > 1)
        {
            let of = |(version, variants): (&str, BTreeSet<&str>)| {
                let names: Vec<String> = variants.into_iter().map(shown).collect();
                format!("{} in {}", shown(version), names.join(", "))
            };
            let versions: Vec<String> = versions.into_iter().map(of).collect();
            let text = format!("{}: Node.js {}", shown(service), versions.join("; "));
            self.doubt("", DoubtKind::VersionsDiffer, text);
        }
    }
}

/// Heap trees of a service's processes in a window, or a note about missing data.
fn heaps(
    service: &CapturedService,
    round: u32,
    profiles: &dyn Profiles,
) -> Result<Vec<Tree>, Note> {
    let mut trees = Vec::new();
    for process in &service.processes {
        for agent in &process.agents {
            match (&agent.profile, &agent.failed) {
                (Some(file), _) => trees.push(profiles.heap(file, &service.directory)?),
                (None, Some(why)) => {
                    let text = format!(
                        "process {} gave no profile in round {round}: {why}",
                        process.pid
                    );
                    return Err(Note::new(DoubtKind::NotCaptured, text));
                }
                (None, None) => {}
            }
        }
    }
    Ok(trees)
}

/// The measured difference from the capture windows without a profiler, paired by round.
fn without_profiler(
    captures: &CaptureReader<'_>,
    baseline: usize,
    variant: usize,
) -> Option<CostInterval> {
    let (before, after) = (
        captures.plain_cpu_us(baseline),
        captures.plain_cpu_us(variant),
    );
    let differences = before
        .iter()
        .filter_map(|(round, before)| Some(after.get(round)? - before));
    differences
        .clone()
        .next()
        .map(|_| CostInterval::over(differences))
}

/// Content coding of a variant's responses, from the responses checked before the load.
fn coding(captures: &CaptureReader<'_>, variant: usize) -> Option<String> {
    let trials = captures
        .record
        .blocks
        .iter()
        .flat_map(|block| &block.trials);
    let witnesses = trials
        .filter(|trial| trial.variant() == variant)
        .flat_map(|trial| &trial.started.witnesses);
    let mut headers = witnesses.flat_map(|witness| &witness.headers);
    headers
        .find(|(name, _)| model::header::is_same(name, "content-encoding"))
        .map(|(_, value)| value.trim().to_ascii_lowercase())
}

#[cfg(test)]
pub(crate) mod tests;
