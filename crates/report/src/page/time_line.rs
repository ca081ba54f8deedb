//! One trial of each variant from its first slice to its last: what happens while a service warms up and is measured.
//!
//! Must not: choose a trial by what came of it. It is that of the block in the middle.

use record::{Block, Record, Slice, SliceKind, Trial};
use stats::Latencies;

use super::bounds::{DRAWN_MAX, TIME_LINE_POINTS_MAX, TIME_POINTS_MAX, evenly, rounded};
use super::model::TimeLine;

/// Length of the parts in which a slice that is one turn knows its rate.
const PART_S: f64 = 0.1;
/// Points of one slice.
const SLICE_POINTS_MAX: usize = 60;
const SHARES: [f64; 3] = [0.5, 0.9, 0.99];

/// The trials of the block in the middle of those that count; of the last block with any slice where none does.
pub(super) fn time_lines(record: &Record, left_out: &mut Vec<String>) -> Vec<TimeLine> {
    let complete: Vec<&Block> = record.complete_blocks().collect();
    let middle = complete.get(complete.len().saturating_sub(1) / 2).copied();
    let loaded = |block: &&Block| block.trials.iter().any(|trial| !trial.slices.is_empty());
    let Some(block) = middle.or_else(|| record.blocks.iter().rev().find(loaded)) else { return Vec::new() };
    let variants = record.header.plan.variants.len().min(DRAWN_MAX);
    let points_max = (TIME_POINTS_MAX / variants.max(1)).min(TIME_LINE_POINTS_MAX);
    let mut thinned = false;
    let mut lines = Vec::new();
    for variant in 0..variants {
        let trial = block.trials.iter().find(|trial| trial.variant() == variant && !trial.slices.is_empty());
        let Some(trial) = trial else { continue };
        let points = points(trial, record.is_open_loop());
        let kept = evenly(points.len(), points_max);
        thinned |= kept.len() < points.len();
        let points: Vec<&Point> = kept.into_iter().map(|at| &points[at]).collect();
        let line = line(trial, block.number, &points);
        lines.push(TimeLine { loop_delay_us: explain::loop_delay_us(record, variant), ..line });
    }
    if thinned {
        left_out.push(format!("time lines: {points_max} points of each are drawn, evenly spread"));
    }
    lines
}

/// What is known of a stretch of a trial.
#[derive(Clone, Copy)]
struct Point {
    at_s: f64,
    lasts_s: f64,
    is_warm_up: bool,
    rate_per_s: Option<f64>,
    quantiles_us: [Option<f64>; 3],
    failed: u64,
    cores: Option<f64>,
    rss_bytes: u64,
    steal_share: f64,
}

fn line(trial: &Trial, block: u32, points: &[&Point]) -> TimeLine {
    let optional =
        |of: fn(&Point) -> Option<f64>| points.iter().map(|point| of(point).map(rounded)).collect();
    TimeLine {
        variant: trial.variant(),
        block,
        at_s: points.iter().map(|point| to_millis(point.at_s)).collect(),
        lasts_s: points.iter().map(|point| to_millis(point.lasts_s)).collect(),
        warm_up: points.iter().take_while(|point| point.is_warm_up).count(),
        rate_per_s: optional(|point| point.rate_per_s),
        p50_us: optional(|point| point.quantiles_us[0]),
        p90_us: optional(|point| point.quantiles_us[1]),
        p99_us: optional(|point| point.quantiles_us[2]),
        failed: points.iter().map(|point| point.failed).collect(),
        cores: optional(|point| point.cores),
        rss_bytes: points.iter().map(|point| point.rss_bytes).collect(),
        steal_share: points.iter().map(|point| rounded(point.steal_share)).collect(),
        loop_delay_us: None,
    }
}

/// Times of a trial are of no use below a thousandth of a second.
fn to_millis(seconds: f64) -> f64 {
    (seconds * 1e3).round() / 1e3
}

fn points(trial: &Trial, is_open_loop: bool) -> Vec<Point> {
    let mut points = Vec::new();
    for (slice, (at_s, lasts_s)) in trial.slices.iter().zip(places(&trial.slices)) {
        points.extend(points_of(slice, at_s, lasts_s, is_open_loop));
    }
    points
}

/// Where each slice begins, and how long it lasts, in seconds.
fn places(slices: &[Slice]) -> Vec<(f64, f64)> {
    let first_ns = slices.first().map_or(0, |slice| slice.counts.started_ns);
    let mut end_s = 0.0_f64;
    // What a turn's slice lasts is not kept, but the next begins after it. The last lasts as much longer than its load as the one before.
    let mut stretch = 1.0;
    let mut places = Vec::new();
    for (index, slice) in slices.iter().enumerate() {
        let load_s = (slice.counts.window_ns as f64 / 1e9).max(1e-3);
        // Records are files, and can be edited: never before what came before.
        let at_s = (slice.counts.started_ns.saturating_sub(first_ns) as f64 / 1e9).max(end_s);
        let next =
            slices.get(index + 1).map(|next| next.counts.started_ns.saturating_sub(first_ns) as f64 / 1e9);
        let mut lasts_s = load_s;
        if slice.turns > 1 {
            stretch =
                next.filter(|next| *next > at_s + load_s).map_or(stretch, |next| (next - at_s) / load_s);
            lasts_s = load_s * stretch;
        }
        end_s = at_s + lasts_s;
        places.push((at_s, lasts_s));
    }
    places
}

/// A slice as one point, or as several where its rate is known by tenths of a second.
fn points_of(slice: &Slice, at_s: f64, lasts_s: f64, is_open_loop: bool) -> Vec<Point> {
    let window_s = slice.counts.window_ns as f64 / 1e9;
    let whole = Point {
        at_s,
        lasts_s,
        is_warm_up: slice.kind != SliceKind::Measured,
        rate_per_s: (window_s > 0.0).then(|| slice.counts.successful_in_window as f64 / window_s),
        quantiles_us: times(slice, is_open_loop).map_or([None; 3], quantiles_us),
        failed: slice.counts.failed(),
        cores: cores(slice),
        rss_bytes: slice.services.iter().map(|service| service.rss_bytes).sum(),
        steal_share: slice.machine.steal_share_max(),
    };
    let parts = slice.counts.successful_per_100_ms.len();
    if slice.turns > 1 || parts < 2 {
        return vec![whole];
    }
    let together = parts.div_ceil(SLICE_POINTS_MAX);
    let part = |(index, counts): (usize, &[u32])| {
        let begin_s = (index * together) as f64 * PART_S;
        // The last tenth may not be whole.
        let length_s = (counts.len() as f64 * PART_S).min(window_s - begin_s);
        let ok: u64 = counts.iter().map(|count| u64::from(*count)).sum();
        (length_s > 1e-3).then(|| Point {
            at_s: at_s + begin_s,
            lasts_s: length_s,
            rate_per_s: Some(ok as f64 / length_s),
            failed: if index == 0 { whole.failed } else { 0 },
            ..whole
        })
    };
    slice.counts.successful_per_100_ms.chunks(together).enumerate().filter_map(part).collect()
}

/// What users wait in open loop; in closed loop what the service took. An open loop warms up in closed loop: its times are of another kind.
fn times(slice: &Slice, is_open_loop: bool) -> Option<&Latencies> {
    match &slice.counts.open {
        Some(open) => Some(&open.response),
        None => (!is_open_loop).then_some(&slice.counts.latency),
    }
}

fn quantiles_us(times: &Latencies) -> [Option<f64>; 3] {
    let found = times.quantiles(&SHARES);
    [0, 1, 2].map(|at| {
        let quantile = found[at].filter(|_| times.resolves(SHARES[at]))?;
        Some(quantile.ns() as f64 / 1e3)
    })
}

/// Over window and drain, in which services were busy too.
fn cores(slice: &Slice) -> Option<f64> {
    let length_ns = slice.counts.window_ns + slice.counts.drain_ns;
    let known = !slice.services.is_empty() && length_ns > 0;
    known.then(|| slice.services_cpu_ns() as f64 / length_ns as f64)
}

#[cfg(test)]
mod tests;
