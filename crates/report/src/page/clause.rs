//! One verdict as a clause of the answer: "the throughput of production is 14.1 times that of development (12.3 to 16.3)".
//!
//! Must not: round otherwise than the other forms of a report do.

use analysis::{Comparison, Outcome};
use model::MetricRow;
use plan::{Factor, Metric, Plan, Variant};

use crate::figure::{change, share};
use crate::sheet::Judged;

/// A verdict in words.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Clause {
    /// The words, without a capital or a full stop.
    pub text: String,
    /// Whether they begin with a name, which is written as it is.
    pub begins_with_name: bool,
    /// The verdict.
    pub outcome: Outcome,
    /// The verdict as a word.
    pub word: String,
    /// Whether it is of the metric that the experiment is about.
    pub of_first_metric: bool,
    /// How far the ratio is from 1, on a logarithmic scale; 0 where there is no difference to speak of.
    pub distance: f64,
}

pub(super) fn clause(plan: &Plan, comparison: &Comparison, judged: &Judged) -> Clause {
    let sides = Sides::of(plan, comparison);
    let MetricRow { title, more, less, .. } = comparison.metric.row();
    let (text, begins_with_name) = match comparison.outcome {
        Outcome::Void => (format!("no conclusion may be drawn about {}", sides.label), false),
        Outcome::NoSuccess => (format!("{}, so there is nothing to compare", judged.detail), true),
        Outcome::Inconclusive => {
            let Sides { candidate, baseline, context, .. } = &sides;
            let text =
                format!("whether the {title} of {candidate} is {more} or {less} than that of {baseline}");
            (format!("{context}it is inconclusive {text}{}", seen(comparison, judged)), sides.has_context())
        }
        Outcome::Equivalent => (equivalent(plan, comparison, &sides), true),
        Outcome::Better | Outcome::Worse => (differs(comparison, judged, &sides), sides.has_context()),
    };
    let answered = matches!(comparison.outcome, Outcome::Better | Outcome::Worse);
    let ratio = comparison.estimate.as_ref().filter(|_| answered).map(|estimate| estimate.ratio);
    let apart = matches!(comparison.outcome, Outcome::Void | Outcome::NoSuccess);
    let request = if apart { String::new() } else { of_endpoint(plan, comparison.metric) };
    Clause {
        text: format!("{request}{text}"),
        begins_with_name: begins_with_name && request.is_empty(),
        outcome: comparison.outcome,
        word: judged.verdict.clone(),
        of_first_metric: comparison.metric == plan.design.metric,
        distance: ratio.map_or(0.0, |ratio| ratio.ln().abs()),
    }
}

/// Where times are of one request among several, which.
fn of_endpoint(plan: &Plan, metric: Metric) -> String {
    let endpoint = plan.design.endpoint.as_ref().filter(|_| metric.quantile().is_some());
    endpoint.map(|endpoint| format!("for the request {}, ", endpoint.name)).unwrap_or_default()
}

/// Estimate and interval, or why there is none.
fn seen(comparison: &Comparison, judged: &Judged) -> String {
    match &comparison.estimate {
        Some(estimate) => {
            let (value, interval) = change(estimate);
            format!(" ({value}, {interval})")
        }
        None => format!(": {}", judged.detail),
    }
}

fn equivalent(plan: &Plan, comparison: &Comparison, sides: &Sides) -> String {
    let interval = comparison.estimate.as_ref().map(|estimate| format!(" ({})", change(estimate).1));
    let Sides { candidate, baseline, context, .. } = sides;
    let (title, margin) = (comparison.metric.row().title, share(plan.design.margin));
    format!(
        "{context}{candidate} and {baseline} have the same {title}, within {margin}{}",
        interval.unwrap_or_default()
    )
}

fn differs(comparison: &Comparison, judged: &Judged, sides: &Sides) -> String {
    let Sides { candidate, baseline, context, label } = sides;
    let Some(estimate) = &comparison.estimate else { return format!("{label}: {}", judged.detail) };
    let MetricRow { title, more, less, .. } = comparison.metric.row();
    let (value, interval) = change(estimate);
    let interval = interval.replace('×', "");
    let word = if estimate.ratio > 1.0 { more } else { less };
    let how = match (value.strip_prefix('×'), value.trim_start_matches(['+', '−', '±'])) {
        (Some(times), _) => format!("{times} times"),
        (None, size) => format!("{size} {word} than"),
    };
    format!("{context}the {title} of {candidate} is {how} that of {baseline} ({interval})")
}

/// What is compared with what, and where.
struct Sides {
    candidate: String,
    baseline: String,
    /// What both have in common, such as `json: `; empty where there is nothing.
    context: String,
    /// All of it, as the plan says it.
    label: String,
}

impl Sides {
    /// By the levels in which the two differ. A record may have been edited: then by the plan's own words.
    fn of(plan: &Plan, asked: &Comparison) -> Sides {
        let label = asked.label.clone();
        let both = plan.variants.get(asked.candidate).zip(plan.variants.get(asked.baseline));
        let Some((candidate, baseline)) = both else {
            let (candidate, baseline) = label.split_once(" against ").unwrap_or((&label, "the baseline"));
            let (candidate, baseline) = (candidate.to_owned(), baseline.to_owned());
            return Sides { candidate, baseline, context: String::new(), label };
        };
        let level = |variant: &Variant, factor: &&Factor| variant.levels.get(&factor.name).cloned();
        let (differ, alike): (Vec<&Factor>, Vec<&Factor>) =
            plan.factors.iter().partition(|factor| level(candidate, factor) != level(baseline, factor));
        let joined = |variant: &Variant, of: &[&Factor]| {
            of.iter().filter_map(|factor| level(variant, factor)).collect::<Vec<_>>().join(" · ")
        };
        if differ.is_empty() {
            let (candidate, baseline) = (candidate.name.clone(), baseline.name.clone());
            return Sides { candidate, baseline, context: String::new(), label };
        }
        let context = joined(candidate, &alike);
        let context = if context.is_empty() { context } else { format!("{context}: ") };
        Sides { candidate: joined(candidate, &differ), baseline: joined(baseline, &differ), context, label }
    }

    fn has_context(&self) -> bool {
        !self.context.is_empty()
    }
}
