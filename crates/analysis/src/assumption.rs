//! The assumptions of every result, as values: each with what this record shows of it.
//!
//! Findings say what went wrong; assumptions say what must be right, whether or not it can be seen from here.

use plan::LookRule;
use record::{EndReason, Record};
use schemars::JsonSchema;
use serde::Serialize;

use crate::aa::AaCheck;
use crate::comparison::{Comparison, Outcome};

/// How well an assumption stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// The record speaks for it, or makes it true.
    Supported,
    /// Nothing in the record tells.
    Unchecked,
    /// The record speaks against it.
    Doubtful,
}

/// Something that has to be so for the result to be right.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Assumption {
    /// Stable name, for example `blocks_independent`.
    pub name: &'static str,
    /// What is assumed, as a clause: "blocks do not resemble their neighbours".
    pub statement: String,
    /// How well it stands.
    pub standing: Standing,
    /// What the record shows, or how it could be checked.
    pub evidence: String,
}

/// Fewer blocks than this tell nothing about how alike neighbours are.
const LAG1_BLOCKS_MIN: u32 = 10;
/// Chance that correlations of independent blocks are taken for real, two-sided and of all comparisons together.
const LAG1_ALPHA: f64 = 0.05;
/// So many blocks that t is as good as normal.
const MANY_BLOCKS: u32 = 10_000;

/// All assumptions of a record; none where nothing is compared.
pub(crate) fn all(record: &Record, comparisons: &[Comparison], aa: Option<&AaCheck>) -> Vec<Assumption> {
    if comparisons.is_empty() {
        return Vec::new();
    }
    vec![
        independent(comparisons),
        even_noise(comparisons),
        looks_kept(record),
        machine_fair(aa),
        load_like_yours(record),
        holds_elsewhere(),
    ]
}

/// Estimates that may be spoken of, with the blocks each rests on.
fn checked(comparisons: &[Comparison]) -> impl Iterator<Item = (&Comparison, u32)> {
    let shown = comparisons.iter().filter(|comparison| comparison.outcome != Outcome::Void);
    shown.filter_map(|comparison| Some((comparison, comparison.estimate.as_ref()?.blocks)))
}

fn independent(comparisons: &[Comparison]) -> Assumption {
    let lag1 = |(comparison, blocks): (&Comparison, u32)| {
        let lag1 = comparison.cross_check.as_ref()?.lag1?;
        (blocks >= LAG1_BLOCKS_MIN).then_some((lag1, blocks, comparison.label.clone()))
    };
    let highest = checked(comparisons).filter_map(lag1).max_by(|one, other| one.0.total_cmp(&other.0));
    let (standing, evidence) = match highest {
        None => (
            Standing::Unchecked,
            format!("it takes an estimate from {LAG1_BLOCKS_MIN} blocks or more to tell"),
        ),
        Some((lag1, blocks, label)) => {
            let chance = 1.0 / f64::from(blocks).sqrt();
            let standing = if lag1 > lag1_sds(comparisons.len()) * chance {
                Standing::Doubtful
            } else {
                Standing::Supported
            };
            let of = if comparisons.len() > 1 { format!(" ({label})") } else { String::new() };
            (standing, format!("correlation of neighbours {lag1:+.2}, by chance ±{chance:.2}{of}"))
        }
    };
    let statement = "blocks do not resemble their neighbours, or the intervals are too narrow".into();
    Assumption { name: "blocks_independent", statement, standing, evidence }
}

/// Standard deviations beyond which the highest of so many correlations is no chance: many have a high one among them.
fn lag1_sds(comparisons: usize) -> f64 {
    stats::plain_t(MANY_BLOCKS, 1.0 - LAG1_ALPHA / comparisons.max(1) as f64).unwrap_or(f64::INFINITY)
}

fn even_noise(comparisons: &[Comparison]) -> Assumption {
    let looked: Vec<&Comparison> = checked(comparisons).map(|(comparison, _)| comparison).collect();
    let against = |comparison: &&&Comparison| {
        let pair = comparison.cross_check.as_ref().zip(comparison.estimate.as_ref());
        pair.is_some_and(|(check, estimate)| check.contradicts(estimate))
    };
    let (standing, evidence) = match looked.iter().find(against) {
        _ if looked.is_empty() => (Standing::Unchecked, "no estimate".to_owned()),
        Some(comparison) => (
            Standing::Doubtful,
            format!(
                "{}: an interval by bootstrap, which bears noise to one side, shows no difference",
                comparison.label
            ),
        ),
        None => (Standing::Supported, "intervals by bootstrap contradict no verdict".to_owned()),
    };
    let statement =
        "noise goes both ways alike, or one verdict in eight is wrong instead of one in twenty".into();
    Assumption { name: "noise_even", statement, standing, evidence }
}

fn looks_kept(record: &Record) -> Assumption {
    let reason = record.ended.as_ref().map(|ended| &ended.reason);
    let (standing, evidence) = match (record.header.plan.design.looks, reason) {
        (LookRule::Always, _) => {
            (Standing::Supported, "the intervals hold however often one looks".to_owned())
        }
        (_, None) => (Standing::Unchecked, "it has no end: it goes on, or was killed".into()),
        (_, Some(EndReason::Interrupted)) => (
            Standing::Doubtful,
            "it was interrupted; if that was because of what it showed, use `looks = \"always\"`".into(),
        ),
        (
            _,
            Some(
                EndReason::ServiceFailed(_) | EndReason::GeneratorFailed(_) | EndReason::PreparationFailed(_),
            ),
        ) => (Standing::Unchecked, "it ended by a failure, and not by its rule".into()),
        (_, Some(_)) => (
            Standing::Supported,
            "this run ended by its rule; whether it was one of several is yours to know".into(),
        ),
    };
    let statement = "nobody stopped it, or ran it again, because of what it showed".into();
    Assumption { name: "looks_kept", statement, standing, evidence }
}

fn machine_fair(aa: Option<&AaCheck>) -> Assumption {
    let statement = "the machine does not favour one variant".into();
    let (standing, evidence) = match aa {
        Some(AaCheck { differs: true, .. }) => (Standing::Doubtful, "the baseline differs from its own copy".to_owned()),
        Some(AaCheck { estimate: Some(estimate), .. }) => {
            let percent = |ratio: f64| (ratio - 1.0) * 100.0;
            let (low, high) = (percent(estimate.low), percent(estimate.high));
            (Standing::Supported, format!("the baseline against its own copy: {low:+.1} % to {high:+.1} %"))
        }
        _ => (
            Standing::Unchecked,
            "order and memory layout are drawn anew for each block; `aa = true` measures a copy of the baseline".into(),
        ),
    };
    Assumption { name: "machine_fair", statement, standing, evidence }
}

fn load_like_yours(record: &Record) -> Assumption {
    let way = way(record);
    let variants = &record.header.plan.variants;
    let requests = variants.iter().map(|variant| variant.load.requests.len()).max().unwrap_or(0);
    let what =
        if requests > 1 { format!("{requests} requests at random,") } else { "one request".to_owned() };
    let evidence = if record.is_open_loop() {
        format!("{what} at a common rate, over {way}")
    } else {
        format!("{what} at saturation, over {way}: what a user waits is for `metric = \"p99\"`")
    };
    Assumption {
        name: "load_like_yours",
        statement: "your users ask for what was asked for here".into(),
        standing: Standing::Unchecked,
        evidence,
    }
}

/// What lay between client and services. Of a link, what yours surely have and this one has not.
fn way(record: &Record) -> String {
    let mut links: Vec<_> =
        record.header.plan.variants.iter().map(|variant| variant.load.network.as_ref()).collect();
    links.dedup();
    match links.as_slice() {
        [] | [None] => "loopback".to_owned(),
        [Some(link)] => {
            format!("one link for all connections ({link}), without jitter, losses or other traffic")
        }
        _ => "links that differ between variants, without jitter, losses or other traffic".to_owned(),
    }
}

fn holds_elsewhere() -> Assumption {
    Assumption {
        name: "holds_elsewhere",
        statement: "your machines resemble this one".into(),
        standing: Standing::Unchecked,
        evidence: "the intervals hold for this machine and these versions; run it where it counts".into(),
    }
}
