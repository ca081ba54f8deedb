//! Memory that only grows
//!
//! **Seen.** `the memory of api rises by 2.10 kB a request, 310 MB a minute of load, in 10 of 10 trials`.
//!
//! **Why.** Figures are of a fresh process. A garbage collector that has not run looks the same.
//!
//! **What to do.** Longer trials (`design.slices`): heaps level off, leaks do not.
//!
//! **Threshold.** It rises in `LEAK_TRIALS_MIN = 0.9` of at least four trials, by
//! `LEAK_BYTES_MIN = 32.0 * 1024.0 * 1024.0` after warm-up and first third, and `LEAK_SHARE_MIN = 0.05` of
//! the peak a minute. Slow leaks stay undetected.

use model::quantity::{counted, decimal};
use model::{Quantity, evidence};
use record::{Slice, SliceKind};

use super::chance::{SERIES_ALPHA, chance};
use super::finding::{CheckFinding, warning};
use super::input::{CheckedRun, CheckedTrial, CheckedVariant};
use super::row::{CheckRow, Maker, OFF, Subject, WARNING, row};
use crate::only_if;

pub(super) static ROW: CheckRow =
    row(Subject::Service, WARNING, &[Maker::Several(leak)]).alone(OFF);

/// Minimum number of slices per trial, including warm-up, that show a slope after the first third.
const LEAK_SLICES_MIN: usize = 3;
/// Minimum rise per minute as a share of the peak. With a slower rise, no trial is long enough for it to
/// matter.
const LEAK_SHARE_MIN: f64 = 0.05;
/// Minimum rise after the first third of a trial, in bytes. A young heap does not explain more: V8's young
/// generation is two halves of 16 MiB, and services without any leak rose by 7 to 11 MB in six seconds in our
/// measurements.
const LEAK_BYTES_MIN: f64 = 32.0 * 1024.0 * 1024.0;
/// Minimum share of a variant's trials in which memory must rise.
const LEAK_TRIALS_MIN: f64 = 0.9;
/// Minimum number of trials, as in the shortest run with a verdict.
const LEAK_SLOPES_MIN: usize = 4;

/// Rise of a service's memory in one trial, after its first third.
struct Rise {
    bytes_per_request: f64,
    bytes_per_minute: f64,
    /// Total rise.
    bytes: f64,
    /// Maximum after any slice.
    peak: u64,
}

/// Reports memory of a service that grows with requests in nearly all trials without end: a leak, or what
/// looks like one in the available time.
///
/// Garbage collectors let memory grow at first, because that is cheaper than collecting it. So the first
/// third of a trial is ignored, and the rest must exceed a young heap. Slow leaks are not detected, because
/// that would need trials of hours.
fn leak(run: &CheckedRun<'_>) -> Vec<CheckFinding> {
    let services = run
        .succeeding()
        .flat_map(|variant| used(variant).map(move |service| (variant, service)));
    let services: Vec<_> = services.collect();
    let alpha = SERIES_ALPHA / services.len().max(1) as f64;
    let told = |(variant, service): (&CheckedVariant<'_>, _)| {
        Some(variant.told(grows(variant, service, alpha)?))
    };
    services.into_iter().filter_map(told).collect()
}

/// The services with recorded figures.
fn used<'a>(variant: &CheckedVariant<'a>) -> impl Iterator<Item = &'a str> + use<'a> {
    let first = variant
        .slices
        .first()
        .map(|slice| slice.services.as_slice());
    first
        .unwrap_or_default()
        .iter()
        .map(|used| used.service.as_str())
}

fn grows(variant: &CheckedVariant<'_>, service: &str, alpha: f64) -> Option<CheckFinding> {
    let trials = &variant.trials;
    let rises: Vec<Rise> = trials
        .iter()
        .filter_map(|trial| rise(trial, service))
        .collect();
    let slopes: Vec<f64> = rises.iter().map(|rise| rise.bytes_per_minute).collect();
    let rising = slopes.iter().filter(|slope| **slope > 0.0).count();
    let effect = stats::mean_effect(&slopes).filter(|_| slopes.len() >= LEAK_SLOPES_MIN)?;
    let nearly_all = rising as f64 >= LEAK_TRIALS_MIN * slopes.len() as f64;
    let sure = effect.t > 0.0 && effect.p / 2.0 <= alpha && nearly_all;
    let typical = |of: fn(&Rise) -> f64| stats::median(rises.iter().map(of));
    let (per_minute, bytes) = (
        typical(|rise| rise.bytes_per_minute)?,
        typical(|rise| rise.bytes)?,
    );
    let (per_request, peak) = (
        typical(|rise| rise.bytes_per_request)?,
        typical(|rise| rise.peak as f64)?,
    );
    only_if(sure && bytes >= LEAK_BYTES_MIN && per_minute > LEAK_SHARE_MIN * peak)?;
    let (chance, doubles) = (chance(effect.p / 2.0), peak / per_minute);
    let of = counted(rises.len() as u64, "trial");
    let evidence = evidence!(
        "after the first third of a trial the memory of {service} rises by {per_request} a request, {per_minute} a minute of load, in \
         {rising} of {of} ({peak} at the end of one; by chance in {chance})";
        per_request = Quantity::bytes(per_request), per_minute = Quantity::bytes(per_minute), rising = Quantity::count(rising as u64),
        peak = Quantity::bytes(peak));
    let remedy = format!(
        "at this pace it doubles in {} minutes of load, and the figures are those of a process that has just begun. If it goes on it is a \
         leak, if not a heap that had not been collected yet: measure longer trials (design.slices), or look at what holds the memory",
        decimal(doubles, 1)
    );
    Some(warning(evidence, remedy))
}

/// Fits least-squares lines through the memory after each slice, without the warm-up and the first third.
fn rise(trial: &CheckedTrial<'_>, service: &str) -> Option<Rise> {
    let slices = trial.slices;
    only_if(slices.len() >= LEAK_SLICES_MIN)?;
    let held = |slice: &Slice| {
        Some(
            slice
                .services
                .iter()
                .find(|used| used.service == service)?
                .rss_bytes,
        )
    };
    let (mut requests, mut minutes) = (0.0, 0.0);
    let (mut by_request, mut by_minute, mut peak) = (Vec::new(), Vec::new(), 0);
    for slice in slices {
        requests += slice.counts.responses as f64;
        minutes += slice.counts.window_ns as f64 / 6e10;
        let bytes = held(slice)?;
        peak = peak.max(bytes);
        by_request.push((requests, bytes as f64));
        by_minute.push((minutes, bytes as f64));
    }
    let warm_up = slices
        .iter()
        .filter(|slice| slice.kind == SliceKind::WarmUp)
        .count();
    let rest = slices.len().div_ceil(3).max(warm_up);
    let bytes_per_minute = stats::slope(&by_minute[rest..])?;
    let passed = by_minute.last()?.0 - by_minute.get(rest)?.0;
    Some(Rise {
        bytes_per_request: stats::slope(&by_request[rest..])?,
        bytes_per_minute,
        bytes: bytes_per_minute * passed,
        peak,
    })
}
