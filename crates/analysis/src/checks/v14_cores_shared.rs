//! Generator and services on the same cores
//!
//! **Seen.** `generator and services shared processors: the client took up to 31 % of their time`.
//!
//! **Why.** Variants whose responses cost the client less get more time.
//!
//! **What to do.** Distrust differences up to this share. Use more processors, or `cpus = "separate"` if
//! variants use equally many.
//!
//! **Threshold.** A warning if the client's time per response differs between variants by more than half of
//! the margin, as a share of one processor's time at the higher throughput. A note with one processor, or
//! without a comparison.

use std::collections::BTreeSet;

use model::{Grade, Quantity, evidence};
use plan::Comparison;
use record::Slice;

use super::finding::CheckFinding;
use super::input::{CheckedRun, CheckedVariant};
use super::row::{Alone, CheckRow, Maker, Subject, WARNING_OR_NOTE, row};
use crate::only_if;
use crate::usage::wall_ns;
use crate::window::MeasuredWindow;

pub(super) static ROW: CheckRow = row(
    Subject::Client,
    WARNING_OR_NOTE,
    &[Maker::Whole(cores_shared), Maker::Slice(client_waited)],
)
.alone(Alone::As(
    Grade::Note,
    "the service has that much less time at most; a machine with more cores would show higher figures",
));

/// Maximum share of the time that generator threads may wait for a core. Above it, client and server probably
/// share one.
const RUN_DELAY_SHARE_MAX: f64 = 0.05;

/// Reports that generator and services share processors: one finding for all variants, with the largest share
/// that the client took. It is a warning if it may change the result, because the client needs more time for
/// responses of one variant than of another. Otherwise it is reported only for one processor, as a note.
fn cores_shared(run: &CheckedRun<'_>) -> Option<CheckFinding> {
    let trial = run
        .complete_trials()
        .find(|trial| trial.started.cpus_shared)?;
    let services: BTreeSet<usize> = trial
        .started
        .services
        .iter()
        .flat_map(|service| &service.cpus)
        .copied()
        .collect();
    let generator = &trial.started.generator_cpus;
    // Services can use all these processors, the client only its own.
    let processors = services.len().max(generator.len()).max(1);
    let share = |variant: &CheckedVariant<'_>| {
        let used_ns = variant.sum(Slice::client_cpu_here_ns) as f64;
        used_ns / (wall_ns(&variant.slices) * processors as f64)
    };
    let apart = || {
        run.plan
            .comparisons
            .iter()
            .filter_map(|asked| client_apart(run, asked))
            .reduce(f64::max)
    };
    let may_change_result = apart().is_some_and(|apart| apart > run.plan.design.margin / 2.0);
    only_if(processors == 1 || run.plan.comparisons.is_empty() || may_change_result)?;
    let taken = run
        .variants
        .iter()
        .map(|variant| (share(variant), variant.name));
    let most = taken
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .filter(|(share, _)| *share > 0.0);
    let told = |(share, name)| {
        format!(
            ": the client took up to {} of their time ({name})",
            Quantity::share(share)
        )
    };
    let most = most.map(told).unwrap_or_default();
    let list = |cpus: Vec<&usize>| {
        cpus.into_iter()
            .map(usize::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let (on, by) = (
        list(services.iter().collect()),
        list(generator.iter().collect()),
    );
    let place = if on.is_empty() {
        String::new()
    } else {
        format!(" (services on {on}, generator on {by})")
    };
    let remedy = if processors > 1 {
        "the service has that much less time at most, and a variant whose responses cost the client less gains from it; use a machine with more \
         cores, or `cpus = \"separate\"` if the variants use the same number of cores"
    } else {
        "the service has that much less time at most; use a machine with two cores or more"
    };
    let grade = if may_change_result {
        Grade::Warning
    } else {
        Grade::Note
    };
    let evidence = format!("generator and services shared processors{place}{most}");
    Some(CheckFinding::new((), grade, evidence, remedy))
}

/// Reports that the generator's threads waited for a core during a slice.
fn client_waited(window: &MeasuredWindow<'_>) -> Option<CheckFinding> {
    let share = window.slice.counts.generator.waiting_share();
    let share = Quantity::share(share.filter(|share| *share > RUN_DELAY_SHARE_MAX)?.min(1.0));
    let evidence = evidence!("the client waited for a core for {share} of the time"; share = share);
    let remedy = "something else ran on it, perhaps the service, and latencies contain the wait";
    Some(CheckFinding::note((), evidence, remedy))
}

/// Difference in the client's time per response between the variants of a comparison, as a share of one
/// processor at the higher throughput.
fn client_apart(run: &CheckedRun<'_>, asked: &Comparison) -> Option<f64> {
    let per_response = |index: usize| {
        let variant = run.variants.iter().find(|variant| variant.index == index)?;
        let (ok, wall_s) = (
            variant.sum(|slice| slice.counts.successful),
            wall_ns(&variant.slices) / 1e9,
        );
        only_if(ok > 0 && wall_s > 0.0)?;
        Some((
            variant.sum(Slice::client_cpu_here_ns) as f64 / 1e9 / ok as f64,
            ok as f64 / wall_s,
        ))
    };
    let ((one_s, one_per_s), (other_s, other_per_s)) =
        per_response(asked.baseline).zip(per_response(asked.candidate))?;
    Some((one_s - other_s).abs() * one_per_s.max(other_per_s))
}
