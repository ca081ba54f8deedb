//! Memory that grows with requests and shows no end: a leak, or what looks like one in the time that there was.
//!
//! Garbage collectors let memory grow at first, for that is cheaper than to collect it. So the first third of a trial is not looked at,
//! and what is left must be more than a young heap is. Slow leaks stay unseen: they would need trials of hours.

use model::{Check, Finding, Quantity, evidence};
use record::{Record, ServiceUse, Slice, Trial};
use stats::BLOCKS_MIN;

use super::order::chance;
use super::{SERIES_ALPHA, Variant, succeeding};
use crate::service::median;

/// Fewest slices of a trial in which a slope after the first third can be seen: three points of it.
pub const LEAK_SLICES_MIN: usize = 5;
/// The rise a minute, as a part of the peak, below which no trial is long enough to care.
pub const LEAK_SHARE_MIN: f64 = 0.05;
/// The rise after the first third of a trial, in bytes, that no young heap explains: V8's young generation is two halves of 16 MiB, and
/// services without any leak rose by 7 to 11 MB in six seconds here.
pub const LEAK_BYTES_MIN: f64 = 32.0 * 1024.0 * 1024.0;
/// The part of a variant's trials in which memory has to rise.
pub const LEAK_TRIALS_MIN: f64 = 0.9;

/// How the memory of a service rose in one trial, after its first third.
struct Rise {
    bytes_per_request: f64,
    bytes_per_minute: f64,
    /// In all.
    bytes: f64,
    /// The most there was after a slice.
    peak: u64,
}

/// A finding for each service of each variant whose memory rises in nearly all trials.
pub(super) fn leak(record: &Record) -> Vec<Finding> {
    let variants: Vec<Variant<'_>> = succeeding(record).collect();
    let services =
        || variants.iter().flat_map(|variant| used(variant).map(move |service| (variant, service)));
    let alpha = SERIES_ALPHA / services().count().max(1) as f64;
    services().filter_map(|(variant, service)| of_service(variant, service, alpha)).collect()
}

/// The services of which figures are known.
fn used<'a>(variant: &Variant<'a>) -> impl Iterator<Item = &'a str> + use<'a> {
    let first = variant.slices.first().map(|slice| slice.services.as_slice());
    first.unwrap_or_default().iter().map(|used| used.service.as_str())
}

fn of_service(variant: &Variant<'_>, service: &str, alpha: f64) -> Option<Finding> {
    let trials = &variant.trials;
    let rises: Vec<Rise> = trials.iter().filter_map(|trial| rise(trial, service)).collect();
    let slopes: Vec<f64> = rises.iter().map(|rise| rise.bytes_per_minute).collect();
    let rising = slopes.iter().filter(|slope| **slope > 0.0).count();
    let effect = stats::mean_effect(&slopes).filter(|_| slopes.len() >= BLOCKS_MIN as usize)?;
    let sure =
        effect.t > 0.0 && effect.p / 2.0 <= alpha && rising as f64 >= LEAK_TRIALS_MIN * slopes.len() as f64;
    let typical =
        |of: fn(&Rise) -> f64| median(rises.iter().map(|rise| of(rise) as i64)).map(|value| value as f64);
    let (per_minute, bytes) = (typical(|rise| rise.bytes_per_minute)?, typical(|rise| rise.bytes)?);
    let (per_request, peak) = (typical(|rise| rise.bytes_per_request)?, typical(|rise| rise.peak as f64)?);
    if !sure || bytes < LEAK_BYTES_MIN || per_minute <= LEAK_SHARE_MIN * peak {
        return None;
    }
    let (name, of, chance) = (variant.name(), rises.len(), chance(effect.p / 2.0));
    let doubles = peak / per_minute;
    let evidence = evidence!(
        "{name}: after the first third of a trial the memory of {service} rises by {per_request} a request, {per_minute} a minute of load, in \
         {rising} of {of} trials ({peak} at the end of one; by chance in {chance})";
        per_request = Quantity::bytes(per_request), per_minute = Quantity::bytes(per_minute), rising = Quantity::count(rising as u64),
        peak = Quantity::bytes(peak));
    let remedy = format!(
        "at this pace it doubles in {:.1} minutes of load, and the figures are those of a process that has just begun. If it goes on it is a \
         leak, if not a heap that had not been collected yet: measure longer trials (design.slices), or look at what holds the memory",
        doubles
    );
    Some(Finding::warning(Check::Leak, evidence, remedy).about([variant.index]))
}

/// The lines of least squares through what was held after each slice but those of the first third.
fn rise(trial: &Trial, service: &str) -> Option<Rise> {
    let slices: Vec<&Slice> = trial.measured().collect();
    if slices.len() < LEAK_SLICES_MIN {
        return None;
    }
    let held = |slice: &Slice| Some(find(slice, service)?.rss_bytes);
    let (mut requests, mut minutes) = (0.0, 0.0);
    let (mut by_request, mut by_minute, mut peak) = (Vec::new(), Vec::new(), 0);
    for slice in slices.iter().copied() {
        requests += slice.counts.responses as f64;
        minutes += slice.counts.window_ns as f64 / 6e10;
        let bytes = held(slice)?;
        peak = peak.max(bytes);
        by_request.push((requests, bytes as f64));
        by_minute.push((minutes, bytes as f64));
    }
    let rest = slices.len().div_ceil(3);
    let bytes_per_minute = stats::slope(&by_minute[rest..])?;
    let passed = by_minute.last()?.0 - by_minute.get(rest)?.0;
    Some(Rise {
        bytes_per_request: stats::slope(&by_request[rest..])?,
        bytes_per_minute,
        bytes: bytes_per_minute * passed,
        peak,
    })
}

fn find<'a>(slice: &'a Slice, service: &str) -> Option<&'a ServiceUse> {
    slice.services.iter().find(|used| used.service == service)
}
