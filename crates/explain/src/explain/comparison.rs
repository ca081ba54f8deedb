//! The comparisons of an explanation: each variant against its baseline, with the cause and with where requests wait.

use std::collections::{BTreeMap, BTreeSet};

use super::{Measured, VariantCosts, Work};
use crate::captures::Captures;
use crate::cause::{Case, story};
use crate::difference::Pairs;
use crate::doubt::{DoubtKind, Note};
use crate::label::shown;
use crate::reconcile::reconcile;
use crate::{Change, Comparison, Frame, Interval, Subject, Tax, waiting};

impl Work<'_> {
    /// Those of the plan, then others that were measured; both variants have to have been profiled.
    pub(super) fn comparisons(&mut self, measured: &[Measured], subjects: &[Subject]) -> Vec<Comparison> {
        let plan = &self.captures.record.header.plan;
        let number = |name: &str| plan.variants.iter().position(|variant| variant.name == name);
        let asked = plan.comparisons.iter().map(|asked| (asked.baseline, asked.candidate));
        let others = measured.iter().filter_map(|one| Some((number(&one.baseline)?, number(&one.variant)?)));
        let mut pairs: Vec<(usize, usize)> = Vec::new();
        for pair in asked.chain(others) {
            if !pairs.contains(&pair)
                && [pair.0, pair.1].iter().all(|variant| self.variants.contains_key(variant))
            {
                pairs.push(pair);
            }
        }
        pairs.into_iter().filter_map(|pair| self.comparison(pair, measured, subjects)).collect()
    }

    fn comparison(
        &mut self,
        (baseline, variant): (usize, usize),
        measured: &[Measured],
        subjects: &[Subject],
    ) -> Option<Comparison> {
        let captures = self.captures;
        let names = (captures.name(baseline), captures.name(variant));
        let (before, after) = (self.variants.get(&baseline)?, self.variants.get(&variant)?);
        if before.cpu.rounds.is_empty() || after.cpu.rounds.is_empty() {
            return None;
        }
        let pairs = Pairs::of(&before.cpu, &after.cpu);
        let paired = pairs.paired;
        let found = pairs.difference();
        let heap = heap(before, after);
        let is_it = |one: &&Measured| (one.baseline.as_str(), one.variant.as_str()) == names;
        let told = measured.iter().find(is_it).map(|one| one.us).filter(Interval::is_finite);
        let measured = told.or_else(|| without_profiler(captures, baseline, variant));
        let of = |subject: &&Subject| subject.variant == names.0 || subject.variant == names.1;
        let taxes: Vec<Tax> = subjects.iter().filter(of).map(|subject| subject.tax).collect();
        let reconciled = reconcile(measured.as_ref(), &found.total, &taxes);
        let codings = (coding(captures, baseline), coding(captures, variant));
        let case = Case {
            names,
            trees: (&found.baseline, &found.variant),
            total: &found.total,
            kinds: &found.kinds,
            functions: &found.functions,
            seen: (before.seen_share(), after.seen_share()),
            codings: (codings.0.as_deref(), codings.1.as_deref()),
            sound: reconciled.sound,
        };
        let story = story(&case);
        let cpu_us: f64 =
            subjects.iter().filter(|one| one.variant == names.0).map(|one| one.cpu_us.value).sum();
        let waiting = measured.and_then(|us| waiting::sentence(captures, (baseline, variant), &us, cpu_us));
        if !paired {
            let evidence =
                format!("{} and {} have no round of captures in common", shown(names.0), shown(names.1));
            self.doubts.add("", Note::new(DoubtKind::Unpaired, evidence));
        }
        Some(Comparison {
            baseline: names.0.into(),
            variant: names.1.into(),
            measured_us: measured.unwrap_or(Interval::exactly(0.0)),
            profiled_us: found.total,
            explained_share: reconciled.share,
            kinds: found.kinds,
            packages: found.packages,
            functions: found.functions,
            heap,
            reconciliation: reconciled.line,
            story,
            waiting,
        })
    }

    /// Whether all ran on the same Node.js.
    pub(super) fn versions(&mut self) {
        let mut by_version: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
        for capture in &self.captures.record.captures {
            let Some(variant) = self.captures.record.header.plan.variants.get(capture.variant) else {
                continue;
            };
            for service in &capture.services {
                let agents = service.processes.iter().flat_map(|process| &process.agents);
                for version in agents.filter_map(|agent| agent.versions.get("node")) {
                    by_version.entry((&*service.service, &**version)).or_default().insert(&*variant.name);
                }
            }
        }
        let services: BTreeSet<&str> = by_version.keys().map(|key| key.0).collect();
        for service in services {
            let of = |(key, variants): (&(&str, &str), &BTreeSet<&str>)| {
                let names: Vec<String> = variants.iter().map(|name| shown(name)).collect();
                (key.0 == service).then(|| format!("{} in {}", shown(key.1), names.join(", ")))
            };
            let versions: Vec<String> = by_version.iter().filter_map(of).collect();
            if versions.len() > 1 {
                let evidence = format!("{}: Node.js {}", shown(service), versions.join("; "));
                self.doubts.add("", Note::new(DoubtKind::VersionsDiffer, evidence));
            }
        }
    }
}

impl VariantCosts {
    fn seen_share(&self) -> Option<f64> {
        (self.counted_us > 0.0).then(|| self.seen_us / self.counted_us)
    }
}

/// By function that allocates; nothing where either was not sampled.
fn heap(before: &VariantCosts, after: &VariantCosts) -> Vec<Change<Frame>> {
    match before.heap.rounds.is_empty() || after.heap.rounds.is_empty() {
        true => Vec::new(),
        false => Pairs::of(&before.heap, &after.heap).difference().functions,
    }
}

/// The measured difference by the windows of the captures in which there was no profiler, paired by round.
fn without_profiler(captures: &Captures<'_>, baseline: usize, variant: usize) -> Option<Interval> {
    let (before, after) = (captures.plain_cpu_us(baseline), captures.plain_cpu_us(variant));
    let both = before.iter().filter_map(|(round, before)| Some(after.get(round)? - before));
    let differences: Vec<f64> = both.collect();
    (!differences.is_empty()).then(|| Interval::over(&differences))
}

/// Content coding of a variant's responses, as the responses that were looked at before the load have it.
fn coding(captures: &Captures<'_>, variant: usize) -> Option<String> {
    let trials = captures.record.blocks.iter().flat_map(|block| &block.trials);
    let witnesses =
        trials.filter(|trial| trial.variant() == variant).flat_map(|trial| &trial.started.witnesses);
    let mut headers = witnesses.flat_map(|witness| &witness.headers);
    headers.find(|(name, _)| name == "content-encoding").map(|(_, value)| value.trim().to_ascii_lowercase())
}
