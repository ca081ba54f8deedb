//! The captures of a record by what, which variant and which round; and what they tell without a profile.
//!
//! Where a window was captured again the last one counts. Reads no file.

use std::collections::{BTreeMap, BTreeSet};

use record::{Capture, CaptureKind, CapturedService, Record};

/// What a service used in a window, by the kernel's accounting.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Use {
    /// CPU time per good response, in microseconds.
    pub cpu_us: f64,
    /// Good responses per second.
    pub per_s: f64,
}

/// The captures of a record.
#[derive(Debug)]
pub(crate) struct Book<'a> {
    captures: BTreeMap<(CaptureKind, usize, u32), &'a Capture>,
    /// The record that they are of.
    pub record: &'a Record,
}

impl<'a> Book<'a> {
    /// Those of variants that the plan has.
    pub fn of(record: &'a Record) -> Book<'a> {
        let known =
            record.captures.iter().filter(|capture| capture.variant < record.header.plan.variants.len());
        let keyed = known.map(|capture| ((capture.kind, capture.variant, capture.round), capture));
        Book { captures: keyed.collect(), record }
    }

    /// One window.
    pub fn get(&self, kind: CaptureKind, variant: usize, round: u32) -> Option<&'a Capture> {
        self.captures.get(&(kind, variant, round)).copied()
    }

    /// All windows of a kind and variant, in order of their rounds.
    pub fn all(&self, kind: CaptureKind, variant: usize) -> impl Iterator<Item = &'a Capture> {
        self.captures.range((kind, variant, 0)..=(kind, variant, u32::MAX)).map(|(_, capture)| *capture)
    }

    /// The variants of which there are profiles of CPU or windows without, in the plan's order.
    pub fn variants(&self) -> Vec<usize> {
        let with = |kind: CaptureKind| self.captures.keys().filter(move |key| key.0 == kind).map(|key| key.1);
        let both: BTreeSet<usize> = with(CaptureKind::Cpu).chain(with(CaptureKind::Plain)).collect();
        both.into_iter().collect()
    }

    /// Rounds in which profiles of CPU were taken.
    pub fn rounds(&self) -> u32 {
        let keys = self.captures.keys().filter(|key| key.0 == CaptureKind::Cpu);
        let rounds: BTreeSet<u32> = keys.map(|key| key.2).collect();
        u32::try_from(rounds.len()).unwrap_or(u32::MAX)
    }

    /// The services of a variant, its entry first.
    pub fn services(&self, variant: usize) -> Vec<&'a str> {
        let captures = [CaptureKind::Cpu, CaptureKind::Plain];
        let captures = captures.into_iter().flat_map(|kind| self.all(kind, variant));
        let mut names: Vec<&str> = Vec::new();
        for service in captures.flat_map(|capture| &capture.services) {
            if !names.contains(&service.service.as_str()) {
                names.push(&service.service);
            }
        }
        let entry = &self.record.header.plan.variants[variant].entry;
        // Stable: the others stay in the order of their start.
        names.sort_by_key(|name| *name != entry);
        names
    }

    /// The name of a variant.
    pub fn name(&self, variant: usize) -> &'a str {
        &self.record.header.plan.variants[variant].name
    }

    /// What a service used in a window of this kind, round by round; rounds without a good response are left out.
    pub fn uses(&self, kind: CaptureKind, variant: usize, service: &str) -> BTreeMap<u32, Use> {
        let all = self.all(kind, variant);
        all.filter_map(|capture| Some((capture.round, used(capture, find(capture, service)?.cpu_ns)?)))
            .collect()
    }

    /// CPU time per good response of all services together, without a profiler, round by round.
    pub fn plain_cpu_us(&self, variant: usize) -> BTreeMap<u32, f64> {
        let all = self.all(CaptureKind::Plain, variant);
        let sum =
            |capture: &Capture| capture.services.iter().map(|one| one.cpu_ns).fold(0, u64::saturating_add);
        all.filter_map(|capture| Some((capture.round, used(capture, sum(capture))?.cpu_us))).collect()
    }
}

fn used(capture: &Capture, cpu_ns: u64) -> Option<Use> {
    let seconds = capture.end_ns.saturating_sub(capture.start_ns) as f64 / 1e9;
    let requests = capture.requests as f64;
    (capture.requests > 0 && seconds > 0.0)
        .then(|| Use { cpu_us: cpu_ns as f64 / requests / 1e3, per_s: requests / seconds })
}

/// A service of a capture by its name.
pub(crate) fn find<'a>(capture: &'a Capture, service: &str) -> Option<&'a CapturedService> {
    capture.services.iter().find(|one| one.service == service)
}
