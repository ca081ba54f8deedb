//! The validity checks: one function per check, which derives findings from a run, with named thresholds.
//!
//! A check uses only measured slices of complete blocks, and reports the figures it is based on.

use std::cell::OnceCell;

use model::{Check, Evidence, Finding, Grade, Remedy};
use plan::{Comparison, Plan};
use record::{Record, Slice, Trial, Witness};

use crate::failure::{self, fruitless};
use crate::metric::BlockFigures;
use crate::only_if;
use crate::variant::total;

mod client;
mod deployed;
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

pub(crate) use client::{
    GENERATOR_SHARE_MAX, LAG_MAX_NS, LAG_SHARE_MAX, QUEUED_SHARE_MAX, SENT_SHARE_MIN,
};
pub use client::{LateBegin, late_begin};
pub use machine::processors;
pub use saturation::{cores_wanted, per_core, waiting_variants};
pub(crate) use saturation::{cpus, generator_share, most, services_limited};
pub(crate) use series::LAG1_BLOCKS_MIN;
pub(crate) use silence::silent_ns;
pub use treatment::WATCHED_VARIABLES;
pub(crate) use treatment::is_expected;
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
    /// Made together with the conclusion it is about, which has its figures.
    Conclusion,
}

/// Maps each check to its function. The match is exhaustive, so that no check is forgotten.
fn maker(check: Check) -> Maker {
    use Maker::{Conclusion, Each, Pair, Service, Several, Succeeding, Whole};
    match check {
        Check::TreatmentNotApplied => Each(treatment::treatment_not_applied),
        Check::EnvironmentLost => Each(treatment::environment_lost),
        Check::StaleServer => Each(treatment::stale_server),
        Check::ProfilerOn => Each(profiler::profiler_on),
        Check::NothingObservable => Pair(observable::nothing_observable),
        Check::CodingNotRequested => Each(treatment::coding_not_requested),
        Check::DifferentWork => Pair(work::different_work),
        Check::DifferentBodies => Pair(work::different_bodies),
        Check::Errors => Succeeding(work::errors),
        Check::UnknownCoding => Each(work::unknown_coding),
        Check::NoSuccess => Each(work::no_success),
        Check::Unasked => Each(work::unasked),
        Check::ValueMissing => Several(run::value_missing),
        Check::GeneratorSaturated => Succeeding(client::generator_saturated),
        Check::RateNotKept => Succeeding(client::rate_not_kept),
        Check::ClientLate => Succeeding(client::client_late),
        Check::GeneratorLost => Whole(client::generator_lost),
        Check::GeneratorsApart => Several(client::generators_apart),
        Check::CoresShared => Whole(client::cores_shared),
        Check::Silent => Succeeding(silence::silent),
        Check::ServiceNotSaturated => Each(saturation::service_not_saturated),
        Check::ThroughputInSteps => Each(saturation::throughput_in_steps),
        Check::BreaksFarBelow => Conclusion,
        Check::WorkersIdle => Service(workers::workers_idle),
        Check::WorkersLost => Each(workers::workers_lost),
        Check::PodsChanged => Each(deployed::pods_changed),
        Check::WorkersUneven => Service(workers::workers_uneven),
        Check::TooManyWorkers => Service(workers::too_many_workers),
        Check::NeverSteady => Whole(series::never_steady),
        Check::WarmUpInside => Each(series::warm_up_inside),
        Check::Leak => Several(series::leak),
        Check::Killed => Whole(run::killed),
        Check::AlreadyRunning => Whole(deployed::already_running),
        Check::CoresDiffer => Pair(saturation::cores_differ),
        Check::CertificatesUnchecked => Whole(network::certificates_unchecked),
        Check::SameStall => Pair(saturation::same_stall),
        Check::UpstreamConnections => Each(network::upstream_connections),
        Check::ConnectionChurn => Each(network::connection_churn),
        Check::PortsExhausted => Each(network::ports_exhausted),
        Check::BacklogFull => Several(network::backlog_full),
        Check::Steal => Several(machine::steal),
        Check::Throttled => Whole(machine::throttled),
        Check::OtherProcesses => Whole(machine::other_processes),
        Check::SpinVaries => Whole(machine::spin_varies),
        Check::Paging => Whole(machine::paging),
        Check::DiskReads => Each(machine::disk_reads),
        Check::IdleNotIdle => Whole(machine::idle_not_idle),
        Check::OtherMachine => Conclusion,
        Check::TooFewBlocks => Whole(run::too_few_blocks),
        Check::QuantileUnresolved => Several(run::quantile_unresolved),
        Check::OrderEffect => Whole(series::order_effect),
        Check::Drift => Whole(series::drift),
        Check::Autocorrelated => Whole(series::autocorrelated),
        Check::AaDiffers => Conclusion,
        Check::Pointless => Whole(run::pointless),
        Check::BlocksDropped => Whole(run::blocks_dropped),
        Check::LeftOver => Whole(run::left_over),
        Check::Damage => Several(run::damage),
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

struct CheckedRun<'a> {
    record: &'a Record,
    plan: &'a Plan,
    /// The figures of complete blocks.
    blocks: &'a [BlockFigures],
    variants: Vec<CheckedVariant<'a>>,
    waiting: OnceCell<Vec<Option<saturation::WaitingVariant>>>,
}

impl<'a> CheckedRun<'a> {
    fn of(record: &'a Record, blocks: &'a [BlockFigures]) -> CheckedRun<'a> {
        let plan = &record.header.plan;
        let variants = plan.variants.iter().enumerate();
        let variants = variants
            .map(|(index, plan)| CheckedVariant::of(record, index, plan))
            .collect();
        CheckedRun {
            record,
            plan,
            blocks,
            variants,
            waiting: OnceCell::new(),
        }
    }

    fn findings(&self, check: Check) -> Vec<Finding> {
        let each = |make: fn(&CheckedRun<'_>, &CheckedVariant<'_>) -> Option<CheckFinding>| {
            move |variant: &CheckedVariant<'_>| Some(variant.told(make(self, variant)?))
        };
        let seen: Vec<CheckFinding> = match maker(check) {
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
            Maker::Conclusion => Vec::new(),
        };
        let numbered = |of: CheckFinding| {
            Finding::new(check, of.grade, of.evidence, of.remedy).about(of.variants)
        };
        seen.into_iter().map(numbered).collect()
    }

    fn succeeding(&self) -> impl Iterator<Item = &CheckedVariant<'a>> {
        self.variants
            .iter()
            .filter(|variant| variant.succeeds(self.record))
    }

    /// Returns the variants of a comparison, the baseline first. `None` if an edited record lacks them.
    fn pair(&self, asked: &Comparison) -> Option<[&CheckedVariant<'a>; 2]> {
        Some([
            self.variants.get(asked.baseline)?,
            self.variants.get(asked.candidate)?,
        ])
    }

    /// Data of a variant that waits. `None` if it does not wait.
    fn waiting(&self, variant: usize) -> Option<&saturation::WaitingVariant> {
        let of_each = || {
            self.variants
                .iter()
                .map(|of| saturation::WaitingVariant::of(self, of))
                .collect()
        };
        self.waiting.get_or_init(of_each).get(variant)?.as_ref()
    }
}

/// A variant of the plan, and its measurements in complete blocks.
struct CheckedVariant<'a> {
    /// Index in the plan.
    index: usize,
    plan: &'a plan::Variant,
    trials: Vec<&'a Trial>,
    slices: Vec<&'a Slice>,
    /// All trials, including trials of unfinished blocks, for properties that do not depend on measurements.
    all_trials: Vec<&'a Trial>,
}

impl<'a> CheckedVariant<'a> {
    fn of(record: &'a Record, index: usize, plan: &'a plan::Variant) -> CheckedVariant<'a> {
        let is_its = |trial: &&Trial| trial.variant() == index;
        let trials: Vec<&Trial> = record.complete_trials().filter(is_its).collect();
        let slices = trials.iter().flat_map(|trial| trial.measured()).collect();
        CheckedVariant {
            index,
            plan,
            trials,
            slices,
            all_trials: record.trials().filter(is_its).collect(),
        }
    }

    fn name(&self) -> &'a str {
        &self.plan.name
    }

    /// Prepends the variant's name to a finding.
    fn told(&self, seen: CheckFinding) -> CheckFinding {
        named(self.name(), seen, &[self.index])
    }

    fn sum(&self, of: impl Fn(&Slice) -> u64) -> u64 {
        total(&self.slices, of)
    }

    /// Names of the services, in start order.
    fn services(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let started = self
            .trials
            .first()
            .map(|trial| trial.started.services.as_slice());
        started
            .unwrap_or_default()
            .iter()
            .map(|service| service.service.as_str())
    }

    /// Responses recorded before the load, in all its trials.
    fn witnesses(&self) -> impl Iterator<Item = &'a Witness> + use<'a, '_> {
        self.all_trials
            .iter()
            .flat_map(|trial| &trial.started.witnesses)
    }

    fn never_succeeded(&self, record: &Record) -> bool {
        failure::measured(record, self.index).is_some()
    }

    fn succeeds(&self, record: &Record) -> bool {
        !self.never_succeeded(record) && !fruitless(&self.slices)
    }

    fn is_unseen(&self) -> bool {
        is_unseen(self.plan, self.trials.iter().copied())
    }
}

/// Whether the resource use of a variant is unknown: it is already deployed and cannot be observed.
pub(crate) fn is_unseen<'a>(
    plan: &plan::Variant,
    trials: impl IntoIterator<Item = &'a Trial>,
) -> bool {
    plan.runs_already()
        && trials
            .into_iter()
            .all(|trial| trial.started.services.is_empty())
}

/// Whether an unobservable service, such as a pod, worked on this machine in any of these trials. Its
/// resource use cannot be separated from that of other processes.
pub fn works_unseen<'a>(trials: impl IntoIterator<Item = &'a Trial>) -> bool {
    let is_here = |trial: &Trial| trial.started.deployed.as_ref().is_some_and(|of| of.is_here);
    trials
        .into_iter()
        .any(|trial| trial.started.services.is_empty() && is_here(trial))
}

/// Time under load, including drains, in nanoseconds. At least 1.
fn wall_ns(slices: &[&Slice]) -> f64 {
    total(slices, |slice| slice.counts.wall_ns()).max(1) as f64
}

/// Whether `word` is in a list of words separated by spaces.
fn is_one_of(words: &str, word: &str) -> bool {
    words.split(' ').any(|one| one == word)
}

/// Default maximum number of items named in a finding.
pub(crate) const NAMED_MAX: usize = 3;

/// Joins the first few of several items, and the number of the others: `a; b; 3 more`.
pub(crate) fn few(
    all: impl IntoIterator<Item = impl Into<String>>,
    most: usize,
    between: &str,
) -> String {
    let mut all: Vec<String> = all.into_iter().map(Into::into).collect();
    let more = all.len().saturating_sub(most);
    all.truncate(most);
    all.extend((more > 0).then(|| format!("{more} more")));
    all.join(between)
}
