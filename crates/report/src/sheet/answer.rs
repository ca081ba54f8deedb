//! The answers: one a comparison, with a verdict for each metric that gets one, in words.

use analysis::{Comparison, Conclusion, Difference, Outcome};
use plan::{Design, Metric};

use super::{Answer, Judged};
use crate::figure::{added, change, factor, share};

/// The sentence in place of a number where a finding forbids one.
pub(super) const VOID: &str = "no conclusion may be drawn, see the findings";

/// Each answer, in the order of [`comparisons_of_answers`].
pub(super) fn answers(conclusion: &Conclusion, design: &Design) -> Vec<Answer> {
    comparisons_of_answers(conclusion).map(|group| answer(group, conclusion, design)).collect()
}

/// Comparisons of the same two variants follow one another, once for each metric, and become one answer.
pub(crate) fn comparisons_of_answers(conclusion: &Conclusion) -> impl Iterator<Item = &[Comparison]> {
    let same = |one: &Comparison, other: &Comparison| {
        (one.baseline, one.candidate) == (other.baseline, other.candidate)
    };
    conclusion.comparisons.chunk_by(same)
}

fn answer(group: &[Comparison], conclusion: &Conclusion, design: &Design) -> Answer {
    // What voids a comparison voids it for all metrics, and so does the want of any success.
    let as_one = |outcome| group.iter().all(|comparison| comparison.outcome == outcome);
    let shown = if as_one(Outcome::Void) || as_one(Outcome::NoSuccess) { &group[..1] } else { group };
    let also = group.iter().flat_map(|comparison| &comparison.exploratory).map(|other| {
        let (value, interval) = change(&other.estimate);
        format!("{value} {} ({interval}){}", metric_of(other.metric, design), absolute(other.difference))
    });
    Answer {
        comparison: group[0].label.clone(),
        judged: shown.iter().map(|comparison| judged(comparison, conclusion, design)).collect(),
        also: also.collect(),
    }
}

/// The difference in the metric's own unit, after its ratio.
fn absolute(difference: Option<Difference>) -> String {
    let told = difference.as_ref().map(added);
    told.map(|(value, interval)| format!(", that is {value} ({interval})")).unwrap_or_default()
}

fn judged(comparison: &Comparison, conclusion: &Conclusion, design: &Design) -> Judged {
    let (metric, margin) = (metric_of(comparison.metric, design), design.margin);
    let estimate = comparison.estimate.as_ref().map(|estimate| {
        let (value, interval) = change(estimate);
        format!("{value} {metric} ({interval})")
    });
    let detail = match (&estimate, comparison.outcome) {
        (_, Outcome::Void) => VOID.to_owned(),
        (_, Outcome::NoSuccess) => comparison.no_success.clone().unwrap_or_default(),
        (None, _) => without_estimate(comparison, conclusion, &metric),
        (Some(estimate), outcome) => {
            let hint = match outcome {
                Outcome::Equivalent => format!("; smaller than the margin of {}", share(margin)),
                Outcome::Inconclusive => undecided(comparison, conclusion, margin),
                _ => String::new(),
            };
            format!("{estimate}{}{hint}", absolute(comparison.difference))
        }
    };
    let verdict = verdict(comparison.outcome, comparison.metric).to_owned();
    Judged { outcome: comparison.outcome, verdict, estimate, detail }
}

fn without_estimate(comparison: &Comparison, conclusion: &Conclusion, metric: &str) -> String {
    match comparison.without_spread {
        Some(ratio) => format!(
            "every block gave exactly {} {metric}; without spread there is no interval and no verdict",
            factor(ratio)
        ),
        None if conclusion.awaits_look => format!("no interval of {metric} before the end of the run"),
        None => format!("no estimate of {metric} from {} blocks", conclusion.blocks),
    }
}

fn undecided(comparison: &Comparison, conclusion: &Conclusion, margin: f64) -> String {
    match comparison.blocks_needed {
        Some(blocks) if blocks > conclusion.blocks => {
            format!("; about {blocks} blocks would decide it at a margin of {}", share(margin))
        }
        _ => format!("; neither beyond chance nor within the margin of {}", share(margin)),
    }
}

pub(crate) fn verdict(outcome: Outcome, metric: Metric) -> &'static str {
    match outcome {
        Outcome::Better => metric.row().better,
        Outcome::Worse => metric.row().worse,
        Outcome::Equivalent => "equivalent",
        Outcome::Inconclusive => "inconclusive",
        Outcome::NoSuccess => "no success",
        Outcome::Void => "void",
    }
}

/// The metric's name, with the request that it is about where that is one of several.
fn metric_of(metric: Metric, design: &Design) -> String {
    let name = metric_name(metric);
    match design.endpoint.as_ref().filter(|_| metric.quantile().is_some()) {
        Some(endpoint) => format!("{name} of {}", endpoint.name),
        None => name.to_owned(),
    }
}

/// What a metric is called in a sentence.
pub fn metric_name(metric: Metric) -> &'static str {
    metric.row().title
}
