//! `[measure]`: one variant is measured without a comparison, at one rate or at several in turn.
//!
//! Determines rates and lengths, and reports a second variant.

use ::model::{Rates, Until};

use crate::file;
use crate::model::{Factor, Measure};
use crate::site::Site;
use crate::text_form::Period;

const LENGTH_DEFAULT: Period = Period::seconds(10);
const LENGTH_MAX: Period = Period::seconds(24 * 3600);
/// The measurement that the file requests, if any.
pub(crate) fn measure(
    site: &mut Site<'_>,
    written: Option<&file::MeasureTable>,
    factors: &[Factor],
) -> Option<Measure> {
    let file::MeasureTable {
        duration,
        requests,
        rate,
        arrivals,
        warmup,
    } = written?;
    report_comparing(site);
    let mut length = |key, period: Option<Period>, least| {
        period.map(|period| site.within(&["measure", key], period, (least, LENGTH_MAX)))
    };
    let duration = length("duration", *duration, Period::milliseconds(1));
    let warmup = length("warmup", *warmup, Period::seconds(0)).unwrap_or_default();
    if requests.is_some() && duration.is_some() {
        let message = "`measure` has a duration and a number of requests";
        site.at_key(&["measure", "requests"], message, "leave one of them out");
    }
    let rates = rate.clone().map(|rate| rate.0);
    if requests.is_some() && rates.as_ref().is_some_and(Rates::is_ramp) {
        let message = "`measure.rate` is a ramp, and a number of requests gives it no length";
        site.at_key(&["measure", "rate"], message, "a ramp has a length")
            .hint("`duration` in place of `requests` says how long the ramp is");
    }
    if arrivals.is_some() && rates.is_none() && site.source.complete {
        let message =
            "`measure.arrivals` is for open loop, and without `measure.rate` the loop is closed";
        site.at_key(&["measure", "arrivals"], message, "without effect")
            .hint("leave this out, or set `rate`");
    }
    if !factors.is_empty() && site.source.complete {
        let message = "`measure` is about one variant, and `factors` make several of them";
        site.at_key(&["measure"], message, "nothing is compared")
            .hint("leave out `measure` to compare them, or `factors` to measure one");
    }
    let elapsed = Until::Elapsed(duration.unwrap_or(LENGTH_DEFAULT.0));
    let until = requests.map_or(elapsed, Until::Requests);
    Some(Measure {
        until,
        rates,
        arrivals: arrivals.unwrap_or_default(),
        warmup,
    })
}

/// Keys of `design` that `measure` has too.
const TWINS: [&str; 3] = ["rate", "arrivals", "warmup"];
/// Keys that the length replaces.
const LENGTHS: [&str; 4] = ["budget", "blocks", "slice", "slices"];
/// Keys about the comparison of variants.
const OF_COMPARISONS: [&str; 11] = [
    "baseline",
    "compare",
    "metric",
    "endpoint",
    "looks",
    "per_core",
    "pooled",
    "aa",
    "drop_disturbed",
    "slo",
    "margin",
];

/// Reports keys of `design` that are about comparisons. A limit in `[gate]` would seem to be judged by them.
fn report_comparing(site: &mut Site<'_>) {
    let twins = TWINS.map(|key| (key, format!("say it in `measure.{key}`")));
    let length = "leave it out: `measure.duration` or `measure.requests` says how much is measured";
    let whole = "leave it out: all figures are measured, of each request and of all together";
    let others = LENGTHS
        .map(|key| (key, length))
        .into_iter()
        .chain(OF_COMPARISONS.map(|key| (key, whole)));
    for (key, hint) in twins
        .into_iter()
        .chain(others.map(|(key, hint)| (key, hint.to_owned())))
    {
        if site.tree.entry(&["design", key]).is_some() {
            let message =
                format!("`design.{key}` is for comparisons, and `measure` compares nothing");
            site.at_key(&["design", key], message, "without effect")
                .hint(hint);
        }
    }
}
