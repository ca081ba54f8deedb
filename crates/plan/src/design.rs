//! The design: which variant is compared with which, and whether the budget can hold the experiment.
//!
//! Knows factors and levels by name only; what a variant is made of makes no difference here.

use std::time::Duration;

use ::model::Loop;

use crate::check::clipped;
use crate::factor::{Grid, VARIANTS_MAX};
use crate::file;
use crate::model::{Comparison, Design, Factor, Metric, Rate, VERDICTS_MAX};
use crate::problem::{Problem, did_you_mean};
use crate::shape::{OneOrMany, RateOrShare};
use crate::site::Site;
use crate::text_form::Period;

mod endpoint;

pub(crate) use endpoint::endpoint;

const BUDGET_MIN: Period = Period::seconds(10);
const BUDGET_MAX: Period = Period::seconds(24 * 3600);
const WARMUP_MIN: Period = Period::seconds(0);
const WARMUP_MAX: Period = Period::seconds(600);
const SLICE_MIN: Period = Period::milliseconds(20);
const SLICE_MAX: Period = Period::seconds(60);

/// Fewer blocks give no verdict: the first look at the data comes after so many.
const BLOCKS_MIN: u32 = 6;

/// The rate at which latencies are compared where the file gives none: busy, and far enough from where queues grow without end.
const RATE_DEFAULT: Rate = Rate::ShareOfCapacity(0.6);

/// How the experiment is run and judged.
pub(crate) fn design(site: &mut Site<'_>, design: &file::Design) -> Design {
    let budget = site.within(&["design", "budget"], design.budget, BUDGET_MIN, BUDGET_MAX);
    let warmup =
        design.warmup.map(|length| site.within(&["design", "warmup"], length, WARMUP_MIN, WARMUP_MAX));
    let slice = design.slice.map(|length| site.within(&["design", "slice"], length, SLICE_MIN, SLICE_MAX));
    let metrics = metrics(site, design);
    let rate = rate(site, design, &metrics);
    Design {
        metric: metrics[0],
        co_primary: metrics[1..].to_vec(),
        // Known only when the variants are.
        endpoint: None,
        cpus: design.cpus,
        margin: design.margin.0,
        budget,
        seed: design.seed,
        warmup,
        slice,
        slices: design.slices,
        blocks: design.blocks,
        looks: design.looks,
        drop_disturbed: design.drop_disturbed,
        explain: design.explain,
        rate,
        arrivals: design.arrivals,
    }
}

/// The metrics that get a verdict, each once, at least one.
fn metrics(site: &mut Site<'_>, design: &file::Design) -> Vec<Metric> {
    let mut metrics: Vec<Metric> = Vec::new();
    for (index, metric) in design.metric.as_slice().iter().enumerate() {
        let span = site.tree.item_place(&["design", "metric"], index);
        if metrics.contains(metric) {
            let message = format!("`design.metric` names `{}` twice", metric.name());
            site.report(Problem::new(span, message, "named before"));
            continue;
        }
        let latency = metrics.iter().chain([metric]).find(|metric| metric.quantile().is_some());
        // Said once, where the second kind begins.
        let mixed = !has_both_loops(&metrics) && has_both_loops(&[&metrics[..], &[*metric]].concat());
        if let Some(latency) = latency.filter(|_| mixed) {
            let message =
                format!("`design.metric`: `throughput` and `{}` cannot be judged in one run", latency.name());
            let problem = Problem::new(span, message, "measured in another loop");
            site.report(problem.hint(
                "throughput is measured in closed loop, response times in open loop; make two experiments of it, or \
                 judge `cpu_per_request`, which goes with both",
            ));
        }
        metrics.push(*metric);
    }
    if metrics.is_empty() { vec![Metric::Throughput] } else { metrics }
}

/// Whether no one loop has figures of all these metrics.
fn has_both_loops(metrics: &[Metric]) -> bool {
    [true, false].iter().all(|open| metrics.iter().any(|metric| !metric.exists_in(*open)))
}

/// The rate of an open loop; `None` for a closed one.
fn rate(site: &mut Site<'_>, design: &file::Design, metrics: &[Metric]) -> Option<Rate> {
    let rate = match design.rate {
        _ if metrics.iter().any(|metric| !metric.exists_in(true)) => None,
        Some(RateOrShare::PerSecond(per_s)) => Some(Rate::PerSecond(per_s)),
        Some(RateOrShare::Share(share)) => Some(Rate::ShareOfCapacity(share.0)),
        None => metrics.iter().any(|metric| !metric.exists_in(false)).then_some(RATE_DEFAULT),
    };
    // A metric that could not be read stands here as the default one.
    if rate.is_none() && site.source.complete && !has_both_loops(metrics) {
        let closed = metrics.iter().find(|metric| !metric.exists_in(true));
        report_open_loop_keys(site, *closed.unwrap_or(&metrics[0]));
    }
    rate
}

/// Keys that say how an open loop is to be, where the loop is closed.
fn report_open_loop_keys(site: &mut Site<'_>, metric: Metric) {
    let hint = match metric.row().loops {
        Loop::Closed => {
            "throughput is what closed loop measures; at a given rate it would only be that rate. Leave this out, or \
             choose a metric such as \"p99\""
        }
        Loop::Open | Loop::Either => "leave this out, or set `rate`",
    };
    for key in ["rate", "arrivals"].into_iter().filter(|key| site.tree.entry(&["design", key]).is_some()) {
        let message = format!(
            "`design.{key}` is for open loop, and the metric `{}` is measured in closed loop",
            metric.name()
        );
        let problem = Problem::new(site.tree.key_place(&["design", key]), message, "without effect");
        site.report(problem.hint(hint));
    }
}

/// Whether trials and budget are long enough for a design without problems of its own.
pub(crate) fn judge_times(site: &mut Site<'_>, written: &file::Design, design: &Design, factors: &[Factor]) {
    judge_trial(site, written, design);
    if site.problems.is_empty() {
        let copies = usize::from(written.aa);
        let variants = Grid::new(factors).count_saturating().saturating_add(copies);
        judge_budget(site, written, design, variants);
    }
}

/// How long a trial must be measured for its metric; nothing where the rate is known only when the experiment runs.
fn measured_least(design: &Design) -> Duration {
    match design.rate {
        Some(Rate::PerSecond(per_s)) => {
            Duration::try_from_secs_f64(design.most_wanting().1 / per_s).unwrap_or(Duration::MAX)
        }
        _ => Duration::ZERO,
    }
}

/// Where the file fixes rate, slices and their length, a trial must have the requests that its metric wants.
fn judge_trial(site: &mut Site<'_>, written: &file::Design, design: &Design) {
    let (Some(slice), Some(slices), Some(Rate::PerSecond(per_s))) =
        (written.slice, written.slices, design.rate)
    else {
        return;
    };
    if slice.0 * slices >= measured_least(design) {
        return;
    }
    let (metric, requests) = design.most_wanting();
    let share = design.endpoint.as_ref().map(|endpoint| {
        format!(", of which {} % are `{}`", (endpoint.share * 1e5).round() / 1e3, clipped(&endpoint.name))
    });
    let message = format!(
        "{slices} slice{} of {slice} at {per_s} requests a second are too short for {}, which wants {requests} requests in a \
         trial{}",
        if slices == 1 { "" } else { "s" },
        metric.name(),
        share.unwrap_or_default()
    );
    let problem = Problem::new(site.tree.place(&["design", "slices"]), message, "too few");
    site.report(
        problem.hint("leave out `slices` or `slice`, ask for a higher rate, or for a lower quantile"),
    );
}

/// The least that the file itself asks for must fit; whether more blocks do is seen when it runs.
fn judge_budget(site: &mut Site<'_>, written: &file::Design, design: &Design, variants: usize) {
    let slice = written.slice.unwrap_or(SLICE_MIN).0;
    let measured = (slice * written.slices.unwrap_or(1)).max(measured_least(design));
    let trial = written.warmup.map_or_else(Default::default, |warmup| warmup.0).saturating_add(measured);
    let trials = BLOCKS_MIN * u32::try_from(variants).unwrap_or(u32::MAX / BLOCKS_MIN);
    let least = Period(trial.saturating_mul(trials));
    if least > written.budget {
        let message = format!(
            "a budget of {} cannot hold {BLOCKS_MIN} blocks of {variants} variant{}: they take at least {least}",
            written.budget,
            if variants == 1 { "" } else { "s" },
        );
        let problem = Problem::new(site.tree.place(&["design", "budget"]), message, "too short");
        let hint = match design.rate {
            Some(Rate::PerSecond(_)) if design.most_wanting().0.quantile().is_some() => {
                "a larger budget, a higher rate, a lower quantile, or fewer levels"
            }
            _ => "a larger budget, shorter or fewer slices, or fewer levels",
        };
        site.report(problem.hint(hint));
    }
}

/// Verdicts are given only where all of them together can be held to 5 %: the tables of boundaries end here.
pub(crate) fn report_too_many_verdicts(site: &mut Site<'_>, comparisons: usize, metrics: usize) {
    if comparisons.saturating_mul(metrics) <= VERDICTS_MAX {
        return;
    }
    let (key, message) = if comparisons > VERDICTS_MAX {
        ("compare", format!("`design.compare` makes {comparisons} comparisons, at most {VERDICTS_MAX}"))
    } else {
        let verdicts = comparisons * metrics;
        let made = format!("{comparisons} comparisons in {metrics} metrics are {verdicts} verdicts");
        ("metric", format!("`design.metric`: {made}, at most {VERDICTS_MAX}"))
    };
    let problem = Problem::new(site.tree.place(&["design", key]), message, "too many verdicts");
    site.report(problem.hint(
        "all share one chance to err, so each would need a very clear difference; compare fewer factors or levels, or judge \
         fewer metrics",
    ));
}

/// A copy is a variant more, to be started, measured and shown like the others.
pub(crate) fn report_no_room_for_copy(site: &mut Site<'_>, variants: usize) {
    let message = format!("`design.aa` adds a copy to {variants} variants, at most {VARIANTS_MAX} in all");
    let problem = Problem::new(site.tree.place(&["design", "aa"]), message, "one too many");
    site.report(problem.hint("leave out a level, or measure the copy on its own with `proofload calibrate`"));
}

/// Which variant is compared with which; none without factors.
pub(crate) fn comparisons(site: &mut Site<'_>, design: &file::Design, factors: &[Factor]) -> Vec<Comparison> {
    let baseline = baseline(site, design, factors);
    let grid = Grid::new(factors);
    match &design.compare {
        None => against_baseline(grid, &baseline),
        Some(compare) => {
            let compared = compared(site, compare, factors);
            compared.into_iter().flat_map(|factor| within(factors, factor, baseline[factor])).collect()
        }
    }
}

/// Index of each factor's baseline level.
fn baseline(site: &mut Site<'_>, design: &file::Design, factors: &[Factor]) -> Vec<usize> {
    for name in design.baseline.keys() {
        if site.tree.entry(&["factors", name]).is_none() {
            let span = site.tree.key_place(&["design", "baseline", name]);
            report_unknown_factor(site, span, ("design.baseline", name), factors);
        }
    }
    factors
        .iter()
        .map(|factor| {
            let Some(wanted) = design.baseline.get(&factor.name) else { return 0 };
            factor.levels.iter().position(|level| level == wanted).unwrap_or_else(|| {
                let name = clipped(&factor.name);
                let message =
                    format!("`design.baseline`: factor `{name}` has no level `{}`", clipped(wanted));
                let span = site.tree.place(&["design", "baseline", &factor.name]);
                let hint = did_you_mean(wanted, "levels", factor.levels.iter().map(String::as_str));
                site.report(Problem::new(span, message, "unknown level").hint(hint));
                0
            })
        })
        .collect()
}

/// Indices of the factors named by `design.compare`. A factor without levels is passed over: that is said elsewhere.
fn compared(site: &mut Site<'_>, compare: &OneOrMany<String>, factors: &[Factor]) -> Vec<usize> {
    let mut compared = Vec::new();
    for (index, name) in compare.as_slice().iter().enumerate() {
        let span = site.tree.item_place(&["design", "compare"], index);
        match factors.iter().position(|factor| factor.name == *name) {
            None if site.tree.entry(&["factors", name]).is_some() => {}
            None => report_unknown_factor(site, span, ("design.compare", name), factors),
            Some(factor) if compared.contains(&factor) => {
                let message = format!("`design.compare` names factor `{}` twice", clipped(name));
                site.report(Problem::new(span, message, "named before"));
            }
            Some(factor) => compared.push(factor),
        }
    }
    if compare.as_slice().is_empty() && site.source.complete {
        let span = site.tree.place(&["design", "compare"]);
        let problem = Problem::new(span, "`design.compare` names no factor", "expected at least one factor");
        site.report(problem.hint("leave it out to compare every variant with the baseline"));
    }
    compared
}

fn report_unknown_factor(
    site: &mut Site<'_>,
    span: std::ops::Range<usize>,
    (path, name): (&str, &str),
    factors: &[Factor],
) {
    let message = format!("`{path}`: there is no factor `{}`", clipped(name));
    let hint = did_you_mean(name, "factors", factors.iter().map(|factor| factor.name.as_str()));
    site.report(Problem::new(span, message, "unknown factor").hint(hint));
}

fn against_baseline(grid: Grid<'_>, baseline: &[usize]) -> Vec<Comparison> {
    let baseline = grid.index(baseline);
    (0..grid.count_saturating())
        .filter(|candidate| *candidate != baseline)
        .map(|candidate| {
            let label = format!("{} against {}", grid.variant_name(candidate), grid.variant_name(baseline));
            Comparison { baseline, candidate, label }
        })
        .collect()
}

/// Every other level of one factor against its baseline level, within each combination of the other factors.
fn within(factors: &[Factor], factor: usize, baseline_level: usize) -> Vec<Comparison> {
    let grid = Grid::new(factors);
    let levels = &factors[factor].levels;
    let mut comparisons = Vec::new();
    for baseline in (0..grid.count_saturating()).filter(|index| grid.levels(*index)[factor] == baseline_level)
    {
        let names = grid.names(baseline).into_iter().enumerate();
        let others: Vec<&str> =
            names.filter(|(index, _)| *index != factor).map(|(_, (_, level))| level).collect();
        let context = if others.is_empty() { String::new() } else { format!(" ({})", others.join(" · ")) };
        for level in (0..levels.len()).filter(|level| *level != baseline_level) {
            let mut combination = grid.levels(baseline);
            combination[factor] = level;
            let label = format!("{} against {}{context}", levels[level], levels[baseline_level]);
            comparisons.push(Comparison { baseline, candidate: grid.index(&combination), label });
        }
    }
    comparisons
}

/// A check of the machine for comparisons that there are not.
pub(crate) fn report_idle_copy(site: &mut Site<'_>) {
    let message = "`design.aa` checks comparisons, and without factors there is none";
    let problem = Problem::new(site.tree.key_place(&["design", "aa"]), message, "without effect");
    site.report(problem.hint("`proofload calibrate` measures one variant against itself"));
}
