//! The design: which variants are compared, and whether the budget is large enough for the experiment.
//!
//! It uses factors and levels by name only, independent of what a variant contains.

use std::time::Duration;

use ::model::quantity::{self, many};
use ::model::{BLOCKS_MIN, MetricLoop, Pacing};

use crate::factor::{Grid, VARIANTS_MAX};
use crate::file::{self, OneOrMany};
use crate::limit::Limit;
use crate::model::{
    Comparison, Design, Factor, JudgedEndpoint, Metric, PlannedRate, VERDICTS_MAX, Variant,
};
use crate::problem::{TextSpan, did_you_mean};
use crate::rate::RateValue;
use crate::shown::clipped;
use crate::site::Site;
use crate::text_form::Period;
use crate::tree::{TomlNode, Value};

/// Maximum budget in seconds.
pub const BUDGET_S_MAX: u64 = 24 * 3600;
pub(crate) const BUDGET: (Period, Period) = (Period::seconds(10), Period::seconds(BUDGET_S_MAX));
const WARMUP: (Period, Period) = (Period::seconds(0), Period::seconds(600));
const SLICE: (Period, Period) = (Period::milliseconds(20), Period::seconds(60));

/// The default rate for comparing latencies: busy, and well below the rate at which queues grow without
/// bound.
const RATE_DEFAULT: PlannedRate = PlannedRate::ShareOfCapacity(0.6);

pub(crate) fn design(site: &mut Site<'_>, design: &file::DesignTable) -> Design {
    let file::DesignTable {
        // Handled by `comparisons`.
        baseline: _,
        compare: _,
        // Handled by the functions with these names.
        metric: _,
        rate: _,
        slo: _,
        // Known only after the variants.
        endpoint: _,
        // Adds a variant.
        aa: _,
        cpus,
        looks,
        per_core,
        pooled,
        drop_disturbed,
        explain,
        margin,
        budget,
        seed,
        warmup,
        slice,
        slices,
        blocks,
        arrivals,
    } = design;
    let metrics = metrics(site, design);
    let (rate, ramp_to) = rate(site, design, &metrics).unzip();
    Design {
        metric: metrics[0],
        co_primary: metrics[1..].to_vec(),
        endpoint: None,
        cpus: *cpus,
        margin: margin.0,
        budget: site.within(&["design", "budget"], *budget, BUDGET),
        seed: *seed,
        warmup: warmup.map(|length| site.within(&["design", "warmup"], length, WARMUP)),
        slice: slice.map(|length| site.within(&["design", "slice"], length, SLICE)),
        slices: *slices,
        blocks: *blocks,
        looks: *looks,
        per_core: *per_core,
        pooled: *pooled,
        drop_disturbed: *drop_disturbed,
        explain: *explain,
        rate,
        ramp_to: ramp_to.flatten(),
        arrivals: *arrivals,
        slo: slo(site, design, &metrics),
    }
}

/// Service level objectives. Empty if capacity is not measured.
fn slo(site: &mut Site<'_>, design: &file::DesignTable, metrics: &[Metric]) -> Vec<Limit> {
    let is_capacity = metrics.contains(&Metric::Capacity);
    if is_capacity && design.slo.is_empty() && site.source.complete {
        site.at_key(
            &["design", "metric"],
            "`capacity` needs `design.slo`",
            "within which limits?",
        )
        .hint("`slo = [\"p99 < 50ms\"]`: what users bear");
    }
    if !is_capacity && !design.slo.is_empty() {
        site.at_key(
            &["design", "slo"],
            "`design.slo` is for the metric `capacity`",
            "without effect",
        )
        .hint("leave out `metric`; limits on what is measured otherwise belong into [gate]");
    }
    if is_capacity {
        design.slo.iter().map(|text| text.0).collect()
    } else {
        Vec::new()
    }
}

/// The metrics that get a verdict, without duplicates, at least one.
fn metrics(site: &mut Site<'_>, design: &file::DesignTable) -> Vec<Metric> {
    let mut metrics: Vec<Metric> = Vec::new();
    if !design.slo.is_empty() && site.tree.entry(&["design", "metric"]).is_none() {
        return vec![Metric::Capacity];
    }
    for (index, metric) in design.metric.as_slice().iter().enumerate() {
        let span = site.tree.item_place(&["design", "metric"], index);
        if metrics.contains(metric) {
            let message = format!("`design.metric` names `{}` twice", metric.name());
            site.report(span, message, "named before");
            continue;
        }
        let loops = |metric: &Metric| metric.row().loops;
        let of_another =
            |other: &&Metric| ![MetricLoop::Either, loops(metric)].contains(&loops(other));
        let other = metrics.iter().copied().find(|other| of_another(&other));
        let told = has_no_loop(&metrics);
        metrics.push(*metric);
        // Reported once, where the second kind begins.
        if let Some(other) = other.filter(|_| !told && has_no_loop(&metrics)) {
            let (one, other) = (other.name(), metric.name());
            let message =
                format!("`design.metric`: `{one}` and `{other}` cannot be judged in one run");
            site.report(span, message, "measured in another loop").hint(
                "throughput is measured in closed loop, response times at a rate, capacity at many; make two experiments of it, or \
                 judge `cpu_per_request`, which goes with all of them",
            );
        }
    }
    if metrics.is_empty() {
        vec![Metric::Throughput]
    } else {
        metrics
    }
}

/// Whether no kind of loop measures all these metrics.
fn has_no_loop(metrics: &[Metric]) -> bool {
    let all = [Pacing::Closed, Pacing::Open, Pacing::Search];
    all.into_iter()
        .all(|pacing| metrics.iter().any(|metric| !metric.exists_in(pacing)))
}

/// The rate of an open loop, and its end value if it is a ramp. `None` for a closed loop.
fn rate(
    site: &mut Site<'_>,
    design: &file::DesignTable,
    metrics: &[Metric],
) -> Option<(PlannedRate, Option<PlannedRate>)> {
    let rate = match design.rate {
        _ if metrics.iter().any(|metric| !metric.exists_in(Pacing::Open)) => None,
        Some(RateValue::PerSecond(per_s)) => Some((PlannedRate::PerSecond(per_s), None)),
        Some(RateValue::Text(text)) => Some(text.0),
        None => metrics
            .iter()
            .any(|metric| !metric.exists_in(Pacing::Closed))
            .then_some((RATE_DEFAULT, None)),
    };
    let closed = metrics
        .iter()
        .find(|metric| !metric.exists_in(Pacing::Open));
    let is_closed = rate.is_none() && (closed.is_some() || !has_own_rates(site.tree));
    let is_told_elsewhere = has_no_loop(metrics) || site.tree.entry(&["measure"]).is_some();
    // A metric that could not be read is replaced by the default here.
    if is_closed && !is_told_elsewhere && site.source.complete {
        report_open_loop_keys(site, *closed.unwrap_or(&metrics[0]));
    }
    rate
}

/// Whether variants set their own rates, which makes an open loop without a rate in `design`.
fn has_own_rates(tree: &TomlNode) -> bool {
    let has_rate = |node: &TomlNode| node.entry(&["load", "rate"]).is_some();
    let factors = tree
        .entries(&["factors"])
        .iter()
        .filter_map(|factor| factor.node.table());
    has_rate(tree)
        || factors
            .flat_map(|levels| &levels.entries)
            .any(|level| has_rate(&level.node))
}

/// If variants have their own rates, the lowest rate determines the length of trials.
pub(crate) fn settle_rates(site: &mut Site<'_>, design: &mut Design, variants: &[Variant]) {
    let rates: Vec<f64> = variants
        .iter()
        .filter_map(|variant| variant.load.rate_per_s)
        .collect();
    let Some(least) = rates
        .iter()
        .copied()
        .reduce(f64::min)
        .filter(|_| site.source.complete)
    else {
        return;
    };
    let elsewhere = |metric: &Metric| !metric.exists_in(Pacing::Open);
    let (message, hint) = if let Some(metric) = design.metrics().find(elsewhere) {
        let message = format!(
            "`load.rate` is for open loop, and the metric is `{}`",
            metric.name()
        );
        (
            message,
            "choose a metric such as \"p99\" or \"cpu_per_request\"",
        )
    } else if site.tree.entry(&["design", "rate"]).is_some()
        || site.tree.entry(&["measure"]).is_some()
    {
        (
            "`load.rate` stands beside another rate".to_owned(),
            "leave out one of them",
        )
    } else if rates.len() < variants.len() {
        let message = format!(
            "`load.rate` is set for {} of {}",
            rates.len(),
            many(variants.len() as u64, "variant")
        );
        (
            message,
            "set it in every level of the factor, or in [load] for the others",
        )
    } else {
        design.rate = Some(PlannedRate::PerSecond(least));
        return;
    };
    site.at_key(&["load", "rate"], message, "of all variants, or of none")
        .hint(hint);
}

/// Reports keys of an open loop in a design with a closed loop.
fn report_open_loop_keys(site: &mut Site<'_>, metric: Metric) {
    let (keys, how, hint): (&[&str], _, _) = match metric.row().loops {
        MetricLoop::Closed => (
            &["rate", "arrivals", "pooled"],
            "in closed loop",
            "throughput is what closed loop measures; at a given rate it would only be that rate. Leave this out, or \
             choose a metric such as \"p99\"",
        ),
        MetricLoop::Search => (
            &["rate", "pooled"],
            "at many rates",
            "capacity finds the rate by itself; leave this out",
        ),
        MetricLoop::Open | MetricLoop::Either => (
            &["rate", "arrivals", "pooled"],
            "in closed loop",
            "leave this out, or set `rate`",
        ),
    };
    let (name, tree) = (metric.name(), site.tree);
    // A disabled option has no effect.
    let is_on = |key: &&str| {
        let entry = tree.entry(&["design", *key]);
        entry.is_some_and(|entry| entry.node.value != Value::Boolean(false))
    };
    for key in keys.iter().copied().filter(is_on) {
        let message = format!(
            "`design.{key}` is for open loop at one rate, and the metric `{name}` is measured {how}"
        );
        site.at_key(&["design", key], message, "without effect")
            .hint(hint);
    }
    let slices = ["slice", "slices"]
        .into_iter()
        .filter(|_| metric.row().loops == MetricLoop::Search);
    for key in slices.filter(is_on) {
        let message = format!(
            "`design.{key}` is for slices of equal length, and `{name}` is searched in windows of its own"
        );
        site.at_key(&["design", key], message, "without effect")
            .hint("leave this out; `design.budget` limits the search");
    }
}

/// Checks that trials and budget are long enough for a design without other problems and this number of
/// variants.
pub(crate) fn judge_times(
    site: &mut Site<'_>,
    written: &file::DesignTable,
    design: &Design,
    variants: usize,
) {
    judge_trial(site, written, design);
    if site.problems.is_empty() {
        judge_budget(site, written, design, variants + usize::from(written.aa));
    }
}

/// Minimum measured time of a trial for its metric. Zero if the rate is only known when the experiment runs.
fn measured_least(design: &Design) -> Duration {
    let length = |per_s| {
        Duration::try_from_secs_f64(design.most_wanting().1 / per_s).unwrap_or(Duration::MAX)
    };
    design.mean_rate_per_s().map_or(Duration::ZERO, length)
}

/// If the file fixes rate, slices and their length, a trial must have enough requests for its metric.
fn judge_trial(site: &mut Site<'_>, written: &file::DesignTable, design: &Design) {
    let (Some(slice), Some(slices), Some(per_s)) =
        (written.slice, written.slices, design.mean_rate_per_s())
    else {
        return;
    };
    if slice.0 * slices >= measured_least(design) {
        return;
    }
    let (metric, requests) = design.most_wanting();
    let share = design
        .endpoint
        .as_ref()
        .map_or(String::new(), |JudgedEndpoint { name, share }| {
            format!(
                ", of which {} % are `{}`",
                (share * 1e5).round() / 1e3,
                clipped(name)
            )
        });
    let (slices, metric) = (many(slices.into(), "slice"), metric.name());
    let (rate, wanted) = (quantity::rate(per_s), many(requests as u64, "request"));
    let message = format!(
        "{slices} of {slice} at {rate} are too short for {metric}, which wants {wanted} in a trial{share}"
    );
    site.at(&["design", "slices"], message, "too few")
        .hint("leave out `slices` or `slice`, ask for a higher rate, or for a lower quantile");
}

/// The minimum that the file requires must fit. Whether more blocks fit is determined during the run.
fn judge_budget(
    site: &mut Site<'_>,
    written: &file::DesignTable,
    design: &Design,
    variants: usize,
) {
    let slice = written.slice.unwrap_or(SLICE.0).0;
    let measured = (slice * written.slices.unwrap_or(1)).max(measured_least(design));
    let trial = written
        .warmup
        .map_or_else(Default::default, |warmup| warmup.0)
        .saturating_add(measured);
    let trials = BLOCKS_MIN * u32::try_from(variants).unwrap_or(u32::MAX / BLOCKS_MIN);
    let least = Period(trial.saturating_mul(trials));
    let (budget, variants) = (written.budget, many(variants as u64, "variant"));
    if least > budget {
        let message = format!(
            "a budget of {budget} cannot hold {BLOCKS_MIN} blocks of {variants}: they take at least {least}"
        );
        let is_of_rate =
            design.mean_rate_per_s().is_some() && design.most_wanting().0.quantile().is_some();
        site.at(&["design", "budget"], message, "too short")
            .hint(match is_of_rate {
                true => "a larger budget, a higher rate, a lower quantile, or fewer levels",
                false => "a larger budget, shorter or fewer slices, or fewer levels",
            });
    }
}

/// Verdicts are only given if all of them together can be held to 5 %. The tables of boundaries end here.
pub(crate) fn report_too_many_verdicts(site: &mut Site<'_>, comparisons: usize, metrics: usize) {
    if comparisons.saturating_mul(metrics) <= VERDICTS_MAX {
        return;
    }
    let (key, message) = if comparisons > VERDICTS_MAX {
        (
            "compare",
            format!("`design.compare` makes {comparisons} comparisons, at most {VERDICTS_MAX}"),
        )
    } else {
        let verdicts = comparisons * metrics;
        let made =
            format!("{comparisons} comparisons in {metrics} metrics are {verdicts} verdicts");
        (
            "metric",
            format!("`design.metric`: {made}, at most {VERDICTS_MAX}"),
        )
    };
    site.at(&["design", key], message, "too many verdicts").hint(
        "all share one chance to err, so each would need a very clear difference; compare fewer factors or levels, or judge \
         fewer metrics",
    );
}

/// A copy requires comparisons. It is an additional variant, started, measured and shown like the others.
pub(crate) fn judge_copy(site: &mut Site<'_>, factors: &[Factor]) {
    if factors.is_empty() && site.source.complete {
        let message = "`design.aa` checks comparisons, and without factors there is none";
        site.at_key(&["design", "aa"], message, "without effect")
            .hint("`proofload doctor calibrate` measures one variant against itself");
    }
    if Grid::new(factors).count_saturating() == VARIANTS_MAX {
        let message = format!(
            "`design.aa` adds a copy to {VARIANTS_MAX} variants, at most {VARIANTS_MAX} in all"
        );
        site.at(&["design", "aa"], message, "one too many").hint(
            "leave out a level, or measure the copy on its own with `proofload doctor calibrate`",
        );
    }
}

/// The comparisons of the design. Empty without factors.
pub(crate) fn comparisons(
    site: &mut Site<'_>,
    design: &file::DesignTable,
    factors: &[Factor],
) -> Vec<Comparison> {
    let baseline = baseline(site, design, factors);
    let grid = Grid::new(factors);
    match &design.compare {
        None => against_baseline(grid, &baseline),
        Some(compare) => {
            let compared = compared(site, compare, factors);
            compared
                .into_iter()
                .flat_map(|factor| within(factors, factor, baseline[factor]))
                .collect()
        }
    }
}

/// Index of each factor's baseline level.
fn baseline(site: &mut Site<'_>, design: &file::DesignTable, factors: &[Factor]) -> Vec<usize> {
    for name in design.baseline.keys() {
        if site.tree.entry(&["factors", name]).is_none() {
            let span = site.tree.key_place(&["design", "baseline", name]);
            report_unknown_factor(site, span, ("design.baseline", name), factors);
        }
    }
    let level = |Factor { name, levels }: &Factor| {
        let Some(wanted) = design.baseline.get(name) else {
            return 0;
        };
        levels
            .iter()
            .position(|level| level == wanted)
            .unwrap_or_else(|| {
                let (factor, level) = (clipped(name), clipped(wanted));
                let message =
                    format!("`design.baseline`: factor `{factor}` has no level `{level}`");
                let hint = did_you_mean(wanted, "levels", levels.iter().map(String::as_str));
                site.at(&["design", "baseline", name], message, "unknown level")
                    .hint(hint);
                0
            })
    };
    factors.iter().map(level).collect()
}

/// Indices of the factors in `design.compare`. Factors without levels are skipped, because they are reported
/// elsewhere.
fn compared(site: &mut Site<'_>, compare: &OneOrMany<String>, factors: &[Factor]) -> Vec<usize> {
    let mut compared = Vec::new();
    for (index, name) in compare.as_slice().iter().enumerate() {
        let span = site.tree.item_place(&["design", "compare"], index);
        match factors.iter().position(|factor| factor.name == *name) {
            None if site.tree.entry(&["factors", name]).is_some() => {}
            None => report_unknown_factor(site, span, ("design.compare", name), factors),
            Some(factor) if compared.contains(&factor) => {
                let message = format!("`design.compare` names factor `{}` twice", clipped(name));
                site.report(span, message, "named before");
            }
            Some(factor) => compared.push(factor),
        }
    }
    if compare.as_slice().is_empty() && site.source.complete {
        site.at(
            &["design", "compare"],
            "`design.compare` names no factor",
            "expected at least one factor",
        )
        .hint("leave it out to compare every variant with the baseline");
    }
    compared
}

fn report_unknown_factor(
    site: &mut Site<'_>,
    span: TextSpan,
    (path, name): (&str, &str),
    factors: &[Factor],
) {
    let message = format!("`{path}`: there is no factor `{}`", clipped(name));
    let hint = did_you_mean(
        name,
        "factors",
        factors.iter().map(|factor| factor.name.as_str()),
    );
    site.report(span, message, "unknown factor").hint(hint);
}

fn against_baseline(grid: Grid<'_>, baseline: &[usize]) -> Vec<Comparison> {
    let baseline = grid.index(baseline);
    let comparison = |candidate| {
        let label = format!(
            "{} vs {}",
            grid.variant_name(candidate),
            grid.variant_name(baseline)
        );
        Comparison {
            baseline,
            candidate,
            label,
        }
    };
    (0..grid.count_saturating())
        .filter(|candidate| *candidate != baseline)
        .map(comparison)
        .collect()
}

/// Every other level of one factor against its baseline level, within each combination of the other factors.
fn within(factors: &[Factor], factor: usize, baseline_level: usize) -> Vec<Comparison> {
    let grid = Grid::new(factors);
    let levels = &factors[factor].levels;
    let mut comparisons = Vec::new();
    for baseline in
        (0..grid.count_saturating()).filter(|index| grid.levels(*index)[factor] == baseline_level)
    {
        let names = grid.names(baseline).into_iter().enumerate();
        let others: Vec<&str> = names
            .filter(|(index, _)| *index != factor)
            .map(|(_, (_, level))| level)
            .collect();
        let context = if others.is_empty() {
            String::new()
        } else {
            format!(" ({})", others.join(" · "))
        };
        for level in (0..levels.len()).filter(|level| *level != baseline_level) {
            let mut combination = grid.levels(baseline);
            combination[factor] = level;
            let label = format!("{} vs {}{context}", levels[level], levels[baseline_level]);
            comparisons.push(Comparison {
                baseline,
                candidate: grid.index(&combination),
                label,
            });
        }
    }
    comparisons
}

const ENDPOINT: [&str; 2] = ["design", "endpoint"];

/// The chosen request. `None` if the file chooses none, or one that does not exist.
pub(crate) fn endpoint(
    site: &mut Site<'_>,
    written: &file::DesignTable,
    design: &Design,
    variants: &[Variant],
) -> Option<JudgedEndpoint> {
    let name = written.endpoint.as_ref()?;
    // A metric or a request that could not be read is reported elsewhere.
    if !site.source.complete {
        return None;
    }
    if design.metrics().all(|metric| metric.quantile().is_none()) {
        let metrics: Vec<&str> = design.metrics().map(|metric| metric.name()).collect();
        let message = format!(
            "`design.endpoint` is for latencies, and `{}` counts all requests",
            metrics.join("`, `")
        );
        site.at_key(&ENDPOINT, message, "without effect")
            .hint("leave it out, or choose a metric such as \"p99\"");
        return None;
    }
    if let Some(without) = variants
        .iter()
        .find(|variant| variant.load.share_of(name).is_none())
    {
        let of = if variants.len() > 1 {
            format!(" in variant `{}`", without.name)
        } else {
            String::new()
        };
        let message = format!(
            "`design.endpoint`: there is no request `{}`{of}",
            clipped(name)
        );
        let names = without
            .load
            .requests
            .iter()
            .map(|request| request.name.as_str());
        let only = "it sends one request only; leave this out, or name several in `load.requests`";
        let hint = match without.load.is_mix() {
            true => did_you_mean(name, "requests", names),
            false => only.to_owned(),
        };
        site.at(&ENDPOINT, message, "unknown request").hint(hint);
        return None;
    }
    let shares = variants
        .iter()
        .filter_map(|variant| variant.load.share_of(name));
    shares.reduce(f64::min).map(|share| JudgedEndpoint {
        name: name.clone(),
        share,
    })
}
