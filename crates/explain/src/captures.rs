//! The captures of a record by kind, variant and round, the figures they contain without profiles, and their
//! profiles.
//!
//! If a window was captured again, the last one counts. This module computes nothing about functions.
//! Profiles come through a trait, so that the arithmetic is tested with trees of known shares.

use std::collections::{BTreeMap, BTreeSet};

use model::{Capture, CaptureKind, CapturedProcess, CapturedService, NodeCounters, ProfileFile};
use record::Record;

use crate::capture_files::CaptureFiles;
use crate::cut::{ThreadTrees, native_threads};
use crate::doubt::{DoubtKind, Note};
use crate::explanation::mean;
use crate::{
    CpuProfile, Cut, HeapProfile, Naming, NativeProfile, ProfileReadError, TimeWindow, Tree,
    cpu_tree, heap_tree,
};

/// Resource use of a service in a window, by the kernel's accounting.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Use {
    /// CPU time per successful response, in microseconds.
    pub cpu_us: f64,
    /// Successful responses per second.
    pub per_s: f64,
}

#[derive(Debug)]
pub(crate) struct CaptureReader<'a> {
    captures: BTreeMap<(CaptureKind, usize, u32), &'a Capture>,
    pub record: &'a Record,
}

impl<'a> CaptureReader<'a> {
    /// The captures of variants in the plan.
    pub fn of(record: &'a Record) -> CaptureReader<'a> {
        let known = record
            .captures
            .iter()
            .filter(|capture| capture.variant < record.header.plan.variants.len());
        let keyed = known.map(|capture| ((capture.kind, capture.variant, capture.round), capture));
        CaptureReader {
            captures: keyed.collect(),
            record,
        }
    }

    pub fn get(&self, kind: CaptureKind, variant: usize, round: u32) -> Option<&'a Capture> {
        self.captures.get(&(kind, variant, round)).copied()
    }

    /// All windows of a kind and variant, in order of their rounds.
    pub fn all(&self, kind: CaptureKind, variant: usize) -> impl Iterator<Item = &'a Capture> {
        self.captures
            .range((kind, variant, 0)..=(kind, variant, u32::MAX))
            .map(|(_, capture)| *capture)
    }

    /// The variants with CPU profiles or windows without a profiler, in the plan's order.
    pub fn variants(&self) -> Vec<usize> {
        let known = |key: &&(CaptureKind, usize, u32)| {
            matches!(key.0, CaptureKind::Cpu | CaptureKind::Plain)
        };
        let variants: BTreeSet<usize> = self
            .captures
            .keys()
            .filter(known)
            .map(|key| key.1)
            .collect();
        variants.into_iter().collect()
    }

    /// Number of rounds with CPU profiles and responses.
    pub fn rounds(&self) -> u32 {
        let of = |capture: &&&Capture| capture.kind == CaptureKind::Cpu && capture.requests > 0;
        let rounds = self
            .captures
            .values()
            .filter(of)
            .map(|capture| capture.round);
        rounds.collect::<BTreeSet<u32>>().len() as u32
    }

    /// The services of a variant, its entry first.
    pub fn services(&self, variant: usize) -> Vec<&'a str> {
        let captures = [CaptureKind::Cpu, CaptureKind::Plain];
        let captures = captures
            .into_iter()
            .flat_map(|kind| self.all(kind, variant));
        let names = captures
            .flat_map(|capture| &capture.services)
            .map(|service| service.service.as_str());
        let entry = &self.record.header.plan.variants[variant].entry;
        let mut names = model::distinct(names);
        // Stable: the others stay in the order of their start.
        names.sort_by_key(|name| *name != entry);
        names
    }

    /// A service of a variant in all windows.
    pub fn of_service(
        &self,
        variant: usize,
        service: &str,
    ) -> impl Iterator<Item = &'a CapturedService> {
        let all = self
            .captures
            .iter()
            .filter(move |(key, _)| key.1 == variant);
        all.filter_map(move |(_, capture)| find(capture, service))
    }

    pub fn name(&self, variant: usize) -> &'a str {
        &self.record.header.plan.variants[variant].name
    }

    /// Resource use of a service in windows of this kind, by round. Rounds without a successful response are
    /// omitted.
    pub fn uses(&self, kind: CaptureKind, variant: usize, service: &str) -> BTreeMap<u32, Use> {
        let all = self.all(kind, variant);
        all.filter_map(|capture| {
            Some((
                capture.round,
                used(capture, find(capture, service)?.cpu_ns)?,
            ))
        })
        .collect()
    }

    /// CPU time per successful response of all services together, without a profiler, by round.
    pub fn plain_cpu_us(&self, variant: usize) -> BTreeMap<u32, f64> {
        let all = self.all(CaptureKind::Plain, variant);
        let sum = |capture: &Capture| {
            capture
                .services
                .iter()
                .map(|one| one.cpu_ns)
                .fold(0, u64::saturating_add)
        };
        all.filter_map(|capture| Some((capture.round, used(capture, sum(capture))?.cpu_us)))
            .collect()
    }
}

fn used(capture: &Capture, cpu_ns: u64) -> Option<Use> {
    let seconds = capture.end_ns.saturating_sub(capture.start_ns) as f64 / 1e9;
    let requests = capture.requests as f64;
    (capture.requests > 0 && seconds > 0.0).then(|| Use {
        cpu_us: cpu_ns as f64 / requests / 1e3,
        per_s: requests / seconds,
    })
}

/// A service of a capture by its name.
pub(crate) fn find<'a>(capture: &'a Capture, service: &str) -> Option<&'a CapturedService> {
    capture.services.iter().find(|one| one.service == service)
}

/// CPU time of all threads of a process, in nanoseconds.
pub(crate) fn cpu_ns(process: &CapturedProcess) -> u64 {
    process
        .threads
        .iter()
        .map(|thread| thread.cpu_ns)
        .fold(0, u64::saturating_add)
}

/// Counters of a service's JavaScript threads that can serve requests, without npm and PM2's daemon, which
/// have event loops too.
pub(crate) fn counters(service: &CapturedService) -> impl Iterator<Item = &NodeCounters> {
    let agents = service.processes.iter().flat_map(|process| &process.agents);
    agents
        .filter(|agent| agent.role != "tool")
        .filter_map(|agent| agent.counters.as_ref())
}

/// Counters of the thread with the busiest event loop. The primary of a cluster and a log-writing thread are
/// idle beside it, so a mean would halve the delay of the loop that serves requests.
pub(crate) fn busiest(service: &CapturedService) -> Option<&NodeCounters> {
    counters(service).max_by_key(|one| one.loop_active_ns)
}

/// Delay of the event loop's timers in microseconds, median and 99th percentile, for display beside a trial.
/// From the busiest JavaScript thread of the variant's entry, as means over rounds, as in
/// [`Waiting`](crate::Waiting). `None` if nothing was counted.
pub fn loop_delay_us(record: &Record, variant: usize) -> Option<(f64, f64)> {
    let entry = &record.header.plan.variants.get(variant)?.entry;
    let captures = CaptureReader::of(record);
    let of_rounds = |delay_ns: fn(&NodeCounters) -> u64| {
        mean(
            captures
                .all(CaptureKind::Counters, variant)
                .filter_map(|capture| Some(delay_ns(busiest(find(capture, entry)?)?) as f64 / 1e3)),
        )
    };
    of_rounds(|one| one.loop_delay_p50_ns).zip(of_rounds(|one| one.loop_delay_p99_ns))
}

/// Provides profiles. Errors are notes with complete texts.
pub(crate) trait Profiles {
    /// A CPU profile within a window in nanoseconds of CLOCK_MONOTONIC.
    fn cpu(&self, file: &ProfileFile, window: TimeWindow, directory: &str) -> Result<Cut, Note>;

    fn native(&self, file: &ProfileFile, directory: &str) -> Result<ThreadTrees, Note>;

    /// A heap profile, in bytes.
    fn heap(&self, file: &ProfileFile, directory: &str) -> Result<Tree, Note>;
}

/// The profiles of a source.
pub(crate) struct OpenedProfiles<'a>(pub &'a dyn CaptureFiles);

impl OpenedProfiles<'_> {
    /// Reads a profile of the record. Returns `otherwise` as a doubt if it is missing or unusable.
    fn read<T>(
        &self,
        file: &ProfileFile,
        read: fn(&[u8]) -> Result<T, ProfileReadError>,
        otherwise: DoubtKind,
    ) -> Result<T, Note> {
        let bytes = self
            .0
            .file(&file.path)
            .map_err(|problem| Note::new(otherwise, problem))?;
        read(&bytes).map_err(|error| {
            let doubt = match error {
                ProfileReadError::CutOff { .. } => DoubtKind::ProfileCutOff,
                _ => otherwise,
            };
            Note::new(doubt, format!("{}: {error}", file.path))
        })
    }
}

impl Profiles for OpenedProfiles<'_> {
    fn cpu(&self, file: &ProfileFile, window: TimeWindow, directory: &str) -> Result<Cut, Note> {
        let profile = self.read(file, CpuProfile::read, DoubtKind::WorkerUnprofiled)?;
        Ok(cpu_tree(
            &profile,
            Some(window),
            &Naming {
                directory,
                source: self.0,
            },
        ))
    }

    fn native(&self, file: &ProfileFile, directory: &str) -> Result<ThreadTrees, Note> {
        let profile = self.read(file, NativeProfile::read, DoubtKind::NotCaptured)?;
        Ok(native_threads(
            &profile,
            &Naming {
                directory,
                source: self.0,
            },
        ))
    }

    fn heap(&self, file: &ProfileFile, directory: &str) -> Result<Tree, Note> {
        let profile = self.read(file, HeapProfile::read, DoubtKind::NotCaptured)?;
        Ok(heap_tree(
            &profile,
            &Naming {
                directory,
                source: self.0,
            },
        )
        .tree)
    }
}
