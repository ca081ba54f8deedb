//! The assumptions of every result, each with the evidence in the record.
//!
//! Findings report problems. Assumptions list conditions for the result to be correct, whether or not they
//! can be checked.

use Standing::{Doubtful, Supported, Unchecked};
use model::quantity::{decimal, with_sign};
use plan::LookRule;
use record::{EndKind, Record};
use schemars::JsonSchema;
use serde::Serialize;

use crate::checks::v40_autocorrelated::LAG1_BLOCKS_MIN;
use crate::comparison::{AaCheck, ComparisonResult, Outcome};

/// Support for an assumption.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// The record supports it, or ensures it.
    Supported,
    /// The record contains no evidence.
    Unchecked,
    /// The record contradicts it.
    Doubtful,
}

/// A condition for the result to be correct.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Assumption {
    /// Stable name, for example `blocks_independent`.
    pub name: &'static str,
    /// The assumption as a clause: "the machine does not favour one variant".
    pub statement: &'static str,
    /// How well the record supports it.
    pub standing: Standing,
    /// The evidence in the record, or how it could be checked.
    pub evidence: String,
}

/// Probability that chance correlations of independent blocks are taken for real, two-sided and over all
/// comparisons.
const LAG1_ALPHA: f64 = 0.05;
/// Number of blocks with which t is nearly normal.
const MANY_BLOCKS: u32 = 10_000;

/// All assumptions of a record. Empty if nothing is compared.
pub(crate) fn all(
    record: &Record,
    comparisons: &[ComparisonResult],
    aa: Option<&AaCheck>,
) -> Vec<Assumption> {
    if comparisons.is_empty() {
        return Vec::new();
    }
    let (independent, even, kept) = (
        independent(comparisons),
        even_noise(comparisons),
        looks_kept(record),
    );
    let elsewhere =
        "the intervals hold for this machine and these versions; run it where it counts";
    let all = [
        (
            "blocks_independent",
            "blocks are independent (else the intervals are too narrow)",
            independent,
        ),
        (
            "noise_even",
            "noise is symmetric (else up to 1 verdict in 7 is wrong, not 1 in 20)",
            even,
        ),
        (
            "looks_kept",
            "the run was not stopped or repeated because of its result",
            kept,
        ),
        (
            "machine_fair",
            "the machine does not favour one variant",
            machine_fair(aa),
        ),
        (
            "load_like_yours",
            "the load resembles your users'",
            load(record),
        ),
        (
            "holds_elsewhere",
            "your machines resemble this one",
            (Unchecked, elsewhere.to_owned()),
        ),
    ];
    let told = |(name, statement, (standing, evidence))| Assumption {
        name,
        statement,
        standing,
        evidence,
    };
    all.into_iter().map(told).collect()
}

/// Standing of an assumption, and the evidence.
type AssumptionShown = (Standing, String);

/// Valid estimates, with their numbers of blocks.
fn checked(comparisons: &[ComparisonResult]) -> impl Iterator<Item = (&ComparisonResult, u32)> {
    let shown = comparisons
        .iter()
        .filter(|comparison| comparison.outcome != Outcome::Invalid);
    shown.filter_map(|comparison| Some((comparison, comparison.estimate.as_ref()?.blocks)))
}

fn independent(comparisons: &[ComparisonResult]) -> AssumptionShown {
    let lag1 = |(comparison, blocks): (&ComparisonResult, u32)| {
        let lag1 = comparison.cross_check.as_ref()?.lag1?;
        (blocks >= LAG1_BLOCKS_MIN).then_some((lag1, blocks, comparison.label.clone()))
    };
    let highest = checked(comparisons)
        .filter_map(lag1)
        .max_by(|one, other| one.0.total_cmp(&other.0));
    let Some((lag1, blocks, label)) = highest else {
        let evidence =
            format!("it takes an estimate from {LAG1_BLOCKS_MIN} blocks or more to tell");
        return (Unchecked, evidence);
    };
    let chance = 1.0 / f64::from(blocks).sqrt();
    // The highest of several correlations exceeds the chance level of a single one, so they share the error
    // rate.
    let level = 1.0 - LAG1_ALPHA / comparisons.len() as f64;
    let sds = stats::plain_t(MANY_BLOCKS, level).unwrap_or(f64::INFINITY);
    let standing = if lag1 > sds * chance {
        Doubtful
    } else {
        Supported
    };
    let of = if comparisons.len() > 1 {
        format!(" ({label})")
    } else {
        String::new()
    };
    (
        standing,
        format!(
            "correlation of neighbours {}, by chance ±{}{of}",
            with_sign(lag1, 2),
            decimal(chance, 2)
        ),
    )
}

fn even_noise(comparisons: &[ComparisonResult]) -> AssumptionShown {
    let against = |(comparison, _): &(&ComparisonResult, u32)| {
        let pair = comparison
            .cross_check
            .as_ref()
            .zip(comparison.estimate.as_ref());
        pair.is_some_and(|(check, estimate)| check.contradicts(estimate))
    };
    let is_told = |(comparison, _): (&ComparisonResult, u32)| {
        comparison
            .cross_check
            .as_ref()
            .is_some_and(|check| check.bootstrap.is_some())
    };
    match checked(comparisons).find(against) {
        _ if checked(comparisons).next().is_none() => (Unchecked, "no estimate".into()),
        Some((ComparisonResult { label, .. }, _)) => {
            let why =
                "an interval by bootstrap, which bears noise to one side, shows no difference";
            (Doubtful, format!("{label}: {why}"))
        }
        None if !checked(comparisons).all(is_told) => (
            Unchecked,
            "it takes an interval by bootstrap, from six blocks or more, to tell".into(),
        ),
        None => (
            Supported,
            "intervals by bootstrap contradict no verdict".into(),
        ),
    }
}

fn looks_kept(record: &Record) -> AssumptionShown {
    let (standing, evidence) = match (record.header.plan.design.looks, record.end()) {
        (LookRule::EachBlock, _) => (
            Supported,
            "intervals hold at every stop; Proofload cannot see whether you ran it several times",
        ),
        (LookRule::Once, None) => (Unchecked, "it has no end: it goes on, or was killed"),
        (LookRule::Once, Some(reason)) => match reason.kind() {
            EndKind::Interrupted => (
                Doubtful,
                "it was interrupted, perhaps because of what it showed",
            ),
            EndKind::Failed(_) => (Unchecked, "it ended by a failure, and not by its rule"),
            EndKind::Void | EndKind::BudgetTooSmall => {
                (Unchecked, "it was stopped before its rule could end it")
            }
            EndKind::Decided | EndKind::Planned => (
                Supported,
                "this run ended by its rule; Proofload cannot see whether you ran it several times",
            ),
        },
    };
    (standing, evidence.into())
}

fn machine_fair(aa: Option<&AaCheck>) -> AssumptionShown {
    match aa {
        Some(AaCheck { differs: true, .. }) => {
            (Doubtful, "the baseline differs from its own copy".into())
        }
        Some(AaCheck {
            estimate: Some(estimate),
            ..
        }) => {
            let (_, interval) = model::quantity::change(estimate);
            (
                Supported,
                format!("the baseline vs its own copy: {interval}"),
            )
        }
        _ => {
            let drawn = "order and memory layout are drawn anew for each block; `aa = true` measures a copy of the baseline";
            (Unchecked, drawn.into())
        }
    }
}

fn load(record: &Record) -> AssumptionShown {
    let way = way(record);
    let variants = &record.header.plan.variants;
    let requests = variants
        .iter()
        .map(|variant| variant.load.requests.len())
        .max()
        .unwrap_or(0);
    let several = format!("{requests} requests at random,");
    let what = if requests > 1 {
        &several
    } else {
        "one request"
    };
    let evidence = match record.is_open_loop() {
        true => format!("{what} at a common rate, over {way}"),
        false => {
            format!("{what} at saturation, over {way}; for response times use `metric = \"p99\"`")
        }
    };
    (Unchecked, evidence)
}

/// Describes the network between client and services. For a link, names effects of real networks that it
/// lacks.
fn way(record: &Record) -> String {
    let links = record
        .header
        .plan
        .variants
        .iter()
        .map(|variant| variant.load.network.as_ref());
    let links = model::distinct(links);
    match links.as_slice() {
        [] | [None] => "loopback".to_owned(),
        [Some(link)] => {
            format!(
                "one link for all connections ({link}), without jitter, losses or other traffic"
            )
        }
        _ => {
            "links that differ between variants, without jitter, losses or other traffic".to_owned()
        }
    }
}
