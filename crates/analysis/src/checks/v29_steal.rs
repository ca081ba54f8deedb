//! CPU steal
//!
//! **Seen.** `CPU steal was above 2 % in 8 of 72 slices, 3.71 % at the most`.
//!
//! **Why.** The host ran another virtual machine. Turns spread that over variants: intervals get wider, not
//! shifted.
//!
//! **What to do.** Nothing, if the verdict is clear. Else more blocks, another time, or dedicated cores.
//!
//! **Threshold.** `STEAL_SHARE_MAX = 0.02` of the CPU time of a slice.

use std::collections::BTreeMap;

use model::quantity::many;
use model::thresholds::STEAL_SHARE_MAX;
use model::{Quantity, evidence};

use super::finding::{CheckFinding, warning};
use super::input::{CheckedRun, CheckedTrial};
use super::row::{CheckRow, DISTURBED, Maker, Subject, WARNING, row};

pub(super) static ROW: CheckRow =
    row(Subject::Machine, WARNING, &[Maker::Several(steal)]).alone(DISTURBED);

/// Reports CPU steal on this machine, or on a machine with a generator.
fn steal(run: &CheckedRun<'_>) -> Vec<CheckFinding> {
    let slices = || run.complete_trials().flat_map(CheckedTrial::measured);
    let here: Vec<f64> = slices().map(|slice| slice.machine.steal_share).collect();
    let mut elsewhere: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for part in slices()
        .flat_map(|slice| &slice.generators)
        .filter(|part| !part.here)
    {
        elsewhere
            .entry(&part.name)
            .or_default()
            .extend(part.steal_share);
    }
    let spread = "blocks spread this over all variants, so it widens the intervals; a quieter machine narrows them";
    let late = format!("a generator that is held back sends and sees late; {spread}");
    let of_generator = |(name, shares): (&str, Vec<f64>)| {
        stolen(&format!(" on the machine of {name}"), &shares, &late)
    };
    stolen("", &here, spread)
        .into_iter()
        .chain(elsewhere.into_iter().filter_map(of_generator))
        .collect()
}

fn stolen(place: &str, shares: &[f64], remedy: &str) -> Option<CheckFinding> {
    let disturbed = shares
        .iter()
        .filter(|share| **share > STEAL_SHARE_MAX)
        .count();
    let most = shares.iter().copied().fold(0.0, f64::max);
    let (limit, of) = (
        Quantity::share(STEAL_SHARE_MAX),
        many(shares.len() as u64, "slice"),
    );
    let evidence = evidence!("CPU steal{place} was above {limit} in {disturbed} of {of}, {most} at the most";
        disturbed = Quantity::count(disturbed as u64), most = Quantity::share(most));
    (most > STEAL_SHARE_MAX).then(|| warning(evidence, remedy.to_owned()))
}
