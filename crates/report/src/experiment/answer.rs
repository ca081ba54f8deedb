//! The answers in words: one for each comparison, with a verdict for each of its metrics.

use analysis::{
    ComparisonResult, Conclusion, Difference, Effect, EffectKind, Exploratory, Outcome, POWER,
};
use model::quantity::{
    change, change_alone, change_exact, change_told, difference, many, share, span,
};
use plan::{Design, Metric};

use model::document::{QuestionAnswer, VerdictBlock};

/// Replaces a number if a finding forbids one.
pub(crate) const VOID: &str = "no conclusion may be drawn, see the findings";

/// Groups consecutive comparisons of the same two variants, one for each metric, into one answer.
pub(crate) fn groups(conclusion: &Conclusion) -> impl Iterator<Item = &[ComparisonResult]> {
    let same = |one: &ComparisonResult, other: &ComparisonResult| {
        (one.baseline, one.candidate) == (other.baseline, other.candidate)
    };
    conclusion.comparisons.chunk_by(same)
}

/// The comparisons of a group that are shown.
pub(crate) fn told(group: &[ComparisonResult]) -> &[ComparisonResult] {
    // A finding that voids a comparison voids it for all metrics. The same applies if no request succeeded.
    let as_one = |outcome| group.iter().all(|comparison| comparison.outcome == outcome);
    if as_one(Outcome::Invalid) || as_one(Outcome::NoSuccess) {
        &group[..1]
    } else {
        group
    }
}

/// Metrics of a group that are shown without a verdict, each as a sentence.
pub(crate) fn also(group: &[ComparisonResult], design: &Design) -> Vec<String> {
    let sentence = |other: &Exploratory| {
        let (value, interval) = change(&other.estimate);
        let (metric, absolute) = (
            metric_of(other.metric, design),
            absolute(other.difference.as_ref()),
        );
        format!("also {value} {metric} ({interval}){absolute}, not judged")
    };
    let per_second = group
        .iter()
        .filter_map(|comparison| comparison.per_second.as_ref())
        .map(|estimate| {
            let (value, interval) = change(estimate);
            format!("also {value} throughput per second of the clock ({interval}), not judged")
        });
    per_second
        .chain(
            group
                .iter()
                .flat_map(|comparison| &comparison.exploratory)
                .map(sentence),
        )
        .collect()
}

/// All answers, in the order of the plan.
pub(super) fn answers(conclusion: &Conclusion, design: &Design) -> Vec<QuestionAnswer> {
    let verdict = |of: &ComparisonResult| VerdictBlock {
        tone: of.outcome.into(),
        word: word_of(of),
        detail: detail(of, conclusion, design),
    };
    let answer = |group: &[ComparisonResult]| QuestionAnswer {
        subject: group[0].label.clone(),
        verdicts: told(group).iter().map(verdict).collect(),
        notes: also(group, design),
    };
    groups(conclusion).map(answer).collect()
}

/// The difference in the metric's own unit, after its ratio.
fn absolute(of: Option<&Difference>) -> String {
    let told = of.map(|of| difference(of.unit, of.value, of.low, of.high));
    told.map(|(value, interval)| format!(", that is {value} ({interval})"))
        .unwrap_or_default()
}

/// Estimate with metric, interval and further remarks, or why there is no estimate.
pub(crate) fn detail(
    comparison: &ComparisonResult,
    conclusion: &Conclusion,
    design: &Design,
) -> String {
    let (metric, margin) = (judged_of(comparison, design), design.margin);
    let hint = match comparison.outcome {
        Outcome::Invalid => return VOID.to_owned(),
        Outcome::NoSuccess => return comparison.no_success.clone().unwrap_or_default(),
        Outcome::Better | Outcome::Worse if comparison.is_slight => {
            format!(
                "; smaller than the margin of {}, so it may not matter",
                share(margin)
            )
        }
        Outcome::Better | Outcome::Worse => String::new(),
        Outcome::Equivalent => format!("; smaller than the margin of {}", share(margin)),
        Outcome::Inconclusive => match comparison.blocks_needed {
            Some(blocks) => format!(
                "; {}",
                forecast(&share(margin), blocks, comparison.seconds_needed)
            ),
            None => format!(
                "; neither beyond chance nor within the margin of {}",
                share(margin)
            ),
        },
    };
    let Some(estimate) = &comparison.estimate else {
        return without_estimate(comparison, conclusion, &metric);
    };
    let (value, interval) = change(estimate);
    format!(
        "{value} {metric} ({interval}){}{hint}",
        absolute(comparison.difference.as_ref())
    )
}

fn without_estimate(
    comparison: &ComparisonResult,
    conclusion: &Conclusion,
    metric: &str,
) -> String {
    if let Some(ratio) = comparison.without_spread {
        let ratio = change_exact(ratio);
        return format!("{ratio} {metric} in every block, without any spread");
    }
    if conclusion.awaits_look {
        return format!("no interval of {metric} before the end of the run");
    }
    if let Some(of) = conclusion.unknown_capacity(comparison) {
        return format!("no ratio, for no rate of {} is known to hold", of.variant);
    }
    if let Some(of) = conclusion.known_from_below(comparison) {
        let known = one_sided(comparison).map(|known| format!("{known} {metric}"));
        let known = known.unwrap_or_else(|| "no ratio".to_owned());
        return format!(
            "{known}, for what {} holds is a lower bound alone",
            of.variant
        );
    }
    format!(
        "no interval of {metric} from {}",
        many(conclusion.blocks.into(), "block")
    )
}

/// The lower or upper bound of a ratio, if only one is known.
fn one_sided(of: &ComparisonResult) -> Option<String> {
    let least = of
        .at_least
        .map(|low| format!("at least {}", change_exact(low)));
    least.or_else(|| Some(format!("at most {}", change_exact(of.at_most?))))
}

/// The state of each comparison in one line: a plain factor until there can be an interval.
pub fn so_far(conclusion: &Conclusion) -> Vec<String> {
    let line = |of| {
        Some(format!(
            "{}: {}",
            compared_as(conclusion, of),
            known(conclusion, of)?
        ))
    };
    conclusion.comparisons.iter().filter_map(line).collect()
}

/// Name of a comparison: "candidate vs baseline", with the metric if several get a verdict.
pub fn compared_as(conclusion: &Conclusion, comparison: &ComparisonResult) -> String {
    let several = conclusion
        .comparisons
        .iter()
        .any(|other| other.metric != comparison.metric);
    let metric = if several {
        format!(", {}", comparison.metric.row().title)
    } else {
        String::new()
    };
    format!("{}{metric}", comparison.label)
}

/// The state of a comparison before the end of a run, without its label. `None` if nothing is known.
pub fn known(conclusion: &Conclusion, comparison: &ComparisonResult) -> Option<String> {
    Some(match (&comparison.estimate, comparison.without_spread) {
        _ if comparison.no_success.is_some() => comparison.no_success.clone()?,
        _ if comparison.outcome == Outcome::Invalid => "invalid; the report says why".to_owned(),
        (Some(estimate), _) => change_told(estimate),
        (None, Some(ratio)) => format!("{} in every block, so no interval", change_exact(ratio)),
        // Even a ratio would be a look at the data.
        (None, None) if conclusion.awaits_look => "nothing is shown before the end".to_owned(),
        (None, None) => match one_sided(comparison) {
            Some(known) => known,
            None => format!(
                "{} (no interval yet)",
                change_alone(comparison.ratio_so_far?, 0)
            ),
        },
    })
}

/// The verdict of a comparison. `slightly faster`: beyond chance, but the estimate is smaller than the
/// margin.
pub(crate) fn word_of(comparison: &ComparisonResult) -> String {
    let word = word(comparison.outcome, comparison.metric);
    if comparison.is_slight {
        format!("slightly {word}")
    } else {
        word.to_owned()
    }
}

/// A verdict in a word.
pub(crate) fn word(outcome: Outcome, metric: Metric) -> &'static str {
    match outcome {
        Outcome::Better => metric.row().better,
        Outcome::Worse => metric.row().worse,
        Outcome::Equivalent => "equivalent",
        Outcome::Inconclusive => "inconclusive",
        Outcome::NoSuccess => "no success",
        Outcome::Invalid => "invalid",
    }
}

/// An effect's verdict in a word. An interaction of two factors is neither good nor bad.
pub(crate) fn effect_word(effect: &Effect) -> &'static str {
    match (effect.kind, effect.outcome) {
        _ if effect.interacts() => "interaction",
        (EffectKind::Interaction, Outcome::Equivalent) => "no interaction",
        (EffectKind::Interaction | EffectKind::Main, outcome) => word(outcome, effect.metric),
    }
}

/// The metric of a comparison, and whether it is judged per core.
pub(crate) fn judged_of(comparison: &ComparisonResult, design: &Design) -> String {
    format!(
        "{}{}",
        metric_of(comparison.metric, design),
        per_core(comparison)
    )
}

fn per_core(comparison: &ComparisonResult) -> &'static str {
    if comparison.per_second.is_some() {
        " per core"
    } else {
        ""
    }
}

/// The metric of an effect.
pub(crate) fn judged_by(conclusion: &Conclusion, effect: &Effect) -> String {
    let alike = conclusion
        .comparisons
        .iter()
        .find(|of| of.metric == effect.metric);
    format!(
        "{}{}",
        effect.metric.row().title,
        alike.map_or("", per_core)
    )
}

/// The metric's name, with its request if there are several.
pub(crate) fn metric_of(metric: Metric, design: &Design) -> String {
    let name = metric.row().title;
    match design
        .endpoint
        .as_ref()
        .filter(|_| metric.quantile().is_some())
    {
        Some(endpoint) => format!("{name} of {}", endpoint.name),
        None => name.to_owned(),
    }
}

/// How long it takes to find a difference: `detecting 3 % here takes about 75 blocks, 1h15m (80 % power)`.
/// The time is only given if one run can have this many blocks.
pub fn forecast(what: &str, blocks: u32, run_s: Option<f64>) -> String {
    let power = format!("({} power)", share(POWER));
    match run_s.map(span) {
        Some(length) => {
            format!(
                "detecting {what} here takes about {}, {length} {power}",
                many(blocks.into(), "block")
            )
        }
        None => format!("no run is long enough to detect {what} here {power}"),
    }
}
