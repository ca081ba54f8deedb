//! The validity checks: one function per check, which derives findings from a run, with named thresholds.
//!
//! A check uses only measured slices of complete blocks, and reports the figures it is based on. Without a
//! comparison the checks apply to each slice alone, as [`Alone`] declares.

use model::{Alone, Check, Evidence, Finding, Grade, Remedy};
use plan::Comparison;
use record::{Record, Trial};

use crate::metric::BlockFigures;
use crate::window::MeasuredWindow;

mod client;
mod deployed;
mod input;
mod machine;
mod network;
mod observable;
mod profiler;
mod run;
mod saturation;
mod series;
mod silence;
mod treatment;
mod work;
mod workers;
mod young;

pub(crate) use client::{LAG_MAX_NS, LAG_SHARE_MAX, SENT_SHARE_MIN};
pub use client::{LateBegin, late_begin};
use input::{CheckedBlock, CheckedRun, CheckedTrial, CheckedVariant};
pub(crate) use series::{LAG1_BLOCKS_MIN, capacity_exceeded};
pub(crate) use silence::silent_ns;
pub use treatment::{WATCHED_VARIABLES, untreated};
pub use young::changing_variants;

/// A finding of a check, before it has its number.
type CheckFinding = Finding<()>;

/// Function that makes the findings of a check, and its scope.
enum Maker {
    /// One finding for the whole run.
    Whole(fn(&CheckedRun<'_>) -> Option<CheckFinding>),
    /// Several findings for the whole run.
    Several(fn(&CheckedRun<'_>) -> Vec<CheckFinding>),
    /// One finding per variant. The variant's name is prepended.
    Each(fn(&CheckedRun<'_>, &CheckedVariant<'_>) -> Option<CheckFinding>),
    /// One finding per variant with any success. A variant without success is reported separately, without
    /// findings that only follow from that.
    Succeeding(fn(&CheckedRun<'_>, &CheckedVariant<'_>) -> Option<CheckFinding>),
    /// One finding per service of variants with any success.
    Service(fn(&CheckedVariant<'_>, &str) -> Option<CheckFinding>),
    /// One finding per comparison. The comparison's label is prepended.
    Pair(fn(&CheckedRun<'_>, &Comparison) -> Option<CheckFinding>),
    /// One finding for a slice of a run without a comparison. The slice's name is prepended.
    Slice(fn(&MeasuredWindow<'_>) -> Option<CheckFinding>),
}

/// Maps each check to its functions. There is none if its findings are made with the conclusion that they are
/// about. The match is exhaustive, so that no check is forgotten.
fn makers(check: Check) -> &'static [Maker] {
    use Maker::{Each, Pair, Service, Several, Slice, Succeeding, Whole};
    match check {
        Check::TreatmentNotApplied => &[Each(treatment::treatment_not_applied)],
        Check::EnvironmentLost => &[Each(treatment::environment_lost)],
        Check::StaleServer => &[Each(treatment::stale_server)],
        Check::ProfilerOn => &[Each(profiler::profiler_on)],
        Check::NothingObservable => &[Pair(observable::nothing_observable)],
        Check::CodingNotRequested => &[Each(treatment::coding_not_requested)],
        Check::DifferentWork => &[Pair(work::different_work)],
        Check::DifferentBodies => &[Pair(work::different_bodies), Slice(work::contents_differ)],
        Check::Errors => &[Succeeding(work::errors), Slice(work::ended_early)],
        Check::UnknownCoding => &[Each(work::unknown_coding)],
        Check::NoSuccess => &[Each(work::no_success), Slice(work::nothing_due)],
        Check::Unasked => &[Each(work::unasked)],
        Check::ValueMissing => &[Several(run::value_missing), Slice(run::late_responses)],
        Check::GeneratorSaturated => &[Succeeding(client::generator_saturated)],
        Check::RateNotKept => &[Succeeding(client::rate_not_kept)],
        Check::ClientLate => &[Succeeding(client::client_late)],
        Check::GeneratorLost => &[Whole(client::generator_lost)],
        Check::GeneratorsApart => &[Several(client::generators_apart)],
        Check::CoresShared => &[Whole(client::cores_shared), Slice(client::client_waited)],
        Check::Silent => &[Succeeding(silence::silent)],
        Check::ServiceNotSaturated => &[Each(saturation::service_not_saturated)],
        Check::ThroughputInSteps => &[Each(saturation::throughput_in_steps)],
        Check::BreaksFarBelow => &[],
        Check::WorkersIdle => &[Service(workers::workers_idle)],
        Check::WorkersLost => &[Each(workers::workers_lost)],
        Check::PodsChanged => &[Each(deployed::pods_changed)],
        Check::WorkersUneven => &[Service(workers::workers_uneven)],
        Check::TooManyWorkers => &[Service(workers::too_many_workers)],
        Check::NeverSteady => &[Whole(series::never_steady), Slice(series::short_window)],
        Check::WarmUpInside => &[Each(series::warm_up_inside)],
        Check::Leak => &[Several(series::leak)],
        Check::Killed => &[Whole(run::killed)],
        Check::AlreadyRunning => &[Whole(deployed::already_running)],
        Check::CoresDiffer => &[Pair(saturation::cores_differ)],
        Check::CertificatesUnchecked => &[Whole(network::certificates_unchecked)],
        Check::SameStall => &[Pair(saturation::same_stall)],
        Check::UpstreamConnections => &[Each(network::upstream_connections)],
        Check::ConnectionChurn => &[
            Each(network::connection_churn),
            Slice(network::connections_missing),
        ],
        Check::PortsExhausted => &[Each(network::ports_exhausted)],
        Check::BacklogFull => &[Several(network::backlog_full)],
        Check::Steal => &[Several(machine::steal)],
        Check::Throttled => &[Whole(machine::throttled)],
        Check::OtherProcesses => &[Whole(machine::other_processes)],
        Check::SpinVaries => &[Whole(machine::spin_varies)],
        Check::Paging => &[Whole(machine::paging)],
        Check::DiskReads => &[Each(machine::disk_reads)],
        Check::IdleNotIdle => &[Whole(machine::idle_not_idle)],
        Check::OtherMachine => &[],
        Check::TooFewBlocks => &[Whole(run::too_few_blocks)],
        Check::QuantileUnresolved => &[Several(run::quantile_unresolved)],
        Check::OrderEffect => &[Whole(series::order_effect)],
        Check::Drift => &[Whole(series::drift)],
        Check::Autocorrelated => &[Whole(series::autocorrelated)],
        Check::AaDiffers => &[],
        Check::Pointless => &[Whole(run::pointless)],
        Check::BlocksDropped => &[Whole(run::blocks_dropped), Slice(run::stood_still)],
        Check::LeftOver => &[Whole(run::left_over)],
        Check::Damage => &[Several(run::damage)],
    }
}

/// Runs every check, in the order of the table.
pub(crate) fn all(record: &Record, blocks: &[BlockFigures]) -> Vec<Finding> {
    let run = CheckedRun::of(record, blocks);
    without_repeats(
        Check::ALL
            .iter()
            .flat_map(|check| run.findings(*check))
            .collect(),
    )
}

/// Runs one check that needs no figures of blocks.
pub(crate) fn only(check: Check, record: &Record) -> Vec<Finding> {
    CheckedRun::of(record, &[]).findings(check)
}

/// Runs the checks on a slice of a run without a comparison. Returns the findings, most severe first.
pub(crate) fn of_window(
    record: &Record,
    trial: &Trial,
    window: &MeasuredWindow<'_>,
) -> Vec<Finding> {
    let run = CheckedRun::of_slice(record, trial, window);
    let found = Check::ALL.iter().flat_map(|check| alone(&run, *check));
    let mut findings = without_repeats(found.collect());
    findings.extend(of_slice_alone(window));
    findings.sort_by_key(|finding| (finding.grade, finding.check));
    findings
}

/// Runs a check as it applies without a comparison.
fn alone(run: &CheckedRun<'_>, check: Check) -> Vec<Finding> {
    let (grade, remedy) = match check.row().alone {
        Alone::Same => return run.findings(check),
        Alone::Off => return Vec::new(),
        Alone::As(grade, remedy) => (grade, remedy),
    };
    let adapted = |finding| Finding {
        grade,
        remedy: remedy.into(),
        ..finding
    };
    run.findings(check).into_iter().map(adapted).collect()
}

/// Findings that only single slices have.
pub(crate) fn of_slice_alone(window: &MeasuredWindow<'_>) -> Vec<Finding> {
    let seen = |check: &Check| {
        let found = makers(*check).iter().filter_map(|maker| match maker {
            Maker::Slice(make) => make(window),
            Maker::Whole(_)
            | Maker::Several(_)
            | Maker::Each(_)
            | Maker::Succeeding(_)
            | Maker::Service(_)
            | Maker::Pair(_) => None,
        });
        let named = found.map(|seen| named(&window.name, seen, &[0]));
        named.map(|seen| numbered(*check, seen)).collect::<Vec<_>>()
    };
    Check::ALL.iter().flat_map(seen).collect()
}

fn numbered(check: Check, seen: CheckFinding) -> Finding {
    Finding::new(check, seen.grade, seen.evidence, seen.remedy).about(seen.variants)
}

fn warning(evidence: impl Into<Evidence>, remedy: impl Into<Remedy>) -> CheckFinding {
    either(false, evidence, remedy)
}

fn void(evidence: impl Into<Evidence>, remedy: impl Into<Remedy>) -> CheckFinding {
    either(true, evidence, remedy)
}

fn either(is_void: bool, evidence: impl Into<Evidence>, remedy: impl Into<Remedy>) -> CheckFinding {
    Finding::new(
        (),
        if is_void {
            Grade::Invalid
        } else {
            Grade::Warning
        },
        evidence,
        remedy,
    )
}

/// Prepends the name of the subject.
fn named(name: &str, seen: CheckFinding, about: &[usize]) -> CheckFinding {
    let evidence = seen.evidence.reworded(|text| format!("{name}: {text}"));
    Finding {
        evidence,
        variants: about.to_vec(),
        ..seen
    }
}

fn told_of(asked: &Comparison, seen: CheckFinding) -> CheckFinding {
    named(&asked.label, seen, &[asked.baseline, asked.candidate])
}

/// Removes findings that only repeat a more severe finding about the same variants.
fn without_repeats(mut findings: Vec<Finding>) -> Vec<Finding> {
    let about = |check: Check| -> Vec<usize> {
        let of = findings.iter().filter(|finding| finding.check == check);
        of.flat_map(|finding| &finding.variants).copied().collect()
    };
    let (untreated, lost) = (
        about(Check::TreatmentNotApplied),
        about(Check::EnvironmentLost),
    );
    findings.retain(
        |Finding {
             check, variants, ..
         }| {
            if matches!(check, Check::Errors | Check::NoSuccess) {
                return variants.is_empty()
                    || variants.iter().any(|variant| !untreated.contains(variant));
            }
            let is_told = |variant| untreated.contains(variant) || lost.contains(variant);
            *check != Check::NothingObservable || !variants.iter().any(is_told)
        },
    );
    findings
}

impl CheckedRun<'_> {
    /// Findings of a check. Those that only single slices have are made by [`of_slice_alone`].
    fn findings(&self, check: Check) -> Vec<Finding> {
        let seen = makers(check).iter().flat_map(|maker| self.made(maker));
        seen.map(|seen| numbered(check, seen)).collect()
    }

    fn made(&self, maker: &Maker) -> Vec<CheckFinding> {
        let each = |make: fn(&CheckedRun<'_>, &CheckedVariant<'_>) -> Option<CheckFinding>| {
            move |variant: &CheckedVariant<'_>| Some(variant.told(make(self, variant)?))
        };
        match *maker {
            Maker::Whole(make) => make(self).into_iter().collect(),
            Maker::Several(make) => make(self),
            Maker::Each(make) => self.variants.iter().filter_map(each(make)).collect(),
            Maker::Succeeding(make) => self.succeeding().filter_map(each(make)).collect(),
            Maker::Service(make) => {
                let services = self
                    .succeeding()
                    .flat_map(|of| of.services().map(move |name| (of, name)));
                services
                    .filter_map(|(of, name)| Some(of.told(make(of, name)?)))
                    .collect()
            }
            Maker::Pair(make) => {
                let comparisons = self.plan.comparisons.iter();
                comparisons
                    .filter_map(|asked| Some(told_of(asked, make(self, asked)?)))
                    .collect()
            }
            Maker::Slice(_) => Vec::new(),
        }
    }
}

/// Whether `word` is in a list of words separated by spaces.
fn is_one_of(words: &str, word: &str) -> bool {
    words.split(' ').any(|one| one == word)
}
