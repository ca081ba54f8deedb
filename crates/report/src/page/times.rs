//! Times for the page's pictures: whole distributions as points of a curve, and one trial of each variant
//! from its first slice to its last.
//!
//! This module does not show a quantile with fewer than ten requests beyond it, does not hide that requests
//! were given up, and does not choose a trial by its result. It takes the trial of the block in the middle.

use analysis::{MeasuredWindow, Measurement};
use record::{Block, Record, Slice, Trial};
use stats::{Latencies, Quantile};

use super::model::{LatencyCurve, LatencyCurves, TimeLine};
use super::{DRAWN_MAX, evenly, rounded};

/// Number of requests beyond the last point.
const BEYOND: f64 = 10.0;
/// Number of points for shares up to nine in ten, one for each hundredth. The others are for the tail.
const EVEN_POINTS: usize = 91;

/// Maximum number of steps of a load with curves.
const STEPS_MAX: usize = 16;

/// Times of every kind in the record, with curves of the first variants.
pub(super) fn curves(record: &Record) -> Vec<LatencyCurves> {
    let of = |kind: &str, note: Option<String>, times: fn(&Record, usize) -> Latencies| {
        let drawn = |variant| {
            if variant < DRAWN_MAX {
                curve(&times(record, variant))
            } else {
                LatencyCurve::default()
            }
        };
        let curves = (0..record.header.plan.variants.len()).map(drawn).collect();
        LatencyCurves {
            kind: kind.to_owned(),
            note,
            curves,
        }
    };
    if !record.is_open_loop() {
        return vec![of(
            "service time",
            Some(CLOSED.to_owned()),
            analysis::latencies_together,
        )];
    }
    if let Some(measured) = analysis::measurement(record) {
        return of_steps(&measured);
    }
    let endpoint = record.header.plan.design.endpoint.as_ref();
    let endpoint = endpoint.map(|endpoint| format!("of the request {} alone", endpoint.name));
    vec![
        of("response time", endpoint, analysis::responses_together),
        of(
            "service time",
            Some(OPEN.to_owned()),
            analysis::latencies_together,
        ),
    ]
}

/// Times of each step, because they differ between rates.
fn of_steps(measured: &Measurement<'_>) -> Vec<LatencyCurves> {
    let step = |window: &MeasuredWindow<'_>| {
        let at = if measured.planned > 1 {
            format!(" at {}", window.name)
        } else {
            String::new()
        };
        let counts = &window.slice.counts;
        let of = |kind: &str, note: Option<&str>, times: &Latencies| LatencyCurves {
            kind: format!("{kind}{at}"),
            note: note.map(str::to_owned),
            curves: vec![curve(times)],
        };
        let response = counts
            .open
            .as_ref()
            .map(|open| of("response time", None, &open.response));
        response
            .into_iter()
            .chain([of("service time", Some(OPEN), &counts.latency)])
    };
    measured
        .windows
        .iter()
        .take(STEPS_MAX)
        .flat_map(step)
        .collect()
}

const CLOSED: &str = "in closed loop each connection waits for its response before it sends the next request: these times follow from connections and \
                      throughput, compare nothing, and are not what users wait";
const OPEN: &str = "from sent to done: without the time in which a request was due and found no connection free, which users wait too";

fn curve(times: &Latencies) -> LatencyCurve {
    let shares = shares(times.count());
    let quantiles = times.quantiles(&shares);
    let bounded = quantiles
        .iter()
        .position(|found| matches!(found, Some(Quantile::AtLeast(_))));
    let point = |(share, found): (&f64, &Option<Quantile>)| {
        // A share close to 1 keeps all its digits, which distinguish it from others on a logarithmic axis.
        found.map(|quantile| (*share, rounded(quantile.ns() as f64 / 1e3)))
    };
    LatencyCurve {
        requests: times.count(),
        censored: times.censored(),
        points: shares.iter().zip(&quantiles).filter_map(point).collect(),
        at_least_from: bounded.map(|at| shares[at]),
    }
}

/// Each hundredth up to nine in ten, then ever closer to the highest share with ten of all requests beyond
/// it, in equal steps of the logarithm of the remainder.
fn shares(requests: u64) -> Vec<f64> {
    let least_beyond = BEYOND / requests.max(1) as f64;
    let highest = 1.0 - least_beyond;
    if highest <= 0.0 {
        return Vec::new();
    }
    let even = (0..EVEN_POINTS)
        .map(|hundredth| hundredth as f64 / 100.0)
        .filter(|share| *share < highest);
    let mut shares: Vec<f64> = even.collect();
    let tail = CURVE_POINTS_MAX - EVEN_POINTS;
    let steps = (least_beyond / 0.1).ln();
    if steps < 0.0 {
        let at = |step: usize| 1.0 - 0.1 * (steps * step as f64 / tail as f64).exp();
        shares.extend((1..tail).map(at).map(short));
    }
    shares.push(short(highest));
    // Close to nine in ten two values may be equal after rounding.
    shares.dedup_by(|later, before| *later <= *before);
    shares
}

/// Rounds such that the remainder keeps three digits.
fn short(share: f64) -> f64 {
    let beyond = 1.0 - share;
    let digits = (2.0 - beyond.log10().floor()).clamp(2.0, 12.0);
    let scale = 10_f64.powf(digits);
    // Rounded down, so that never fewer requests are beyond than stated. A tiny binary rounding error does
    // not count.
    (share * scale + 1e-6).floor() / scale
}

/// Length of the parts for which a slice of a single turn knows its rate.
const PART_S: f64 = 0.1;
/// Maximum number of points of one curve of times.
const CURVE_POINTS_MAX: usize = 200;
/// Maximum number of points of all time lines together, and of one.
const TIME_POINTS_MAX: usize = 6_000;
const TIME_LINE_POINTS_MAX: usize = 400;
/// Maximum number of points of one slice.
const SLICE_POINTS_MAX: usize = 60;
const SHARES: [f64; 3] = [0.5, 0.9, 0.99];

/// Returns for each variant the trial in the block in the middle of those that count. Without such a block,
/// the trial in the last block with any slice.
pub(super) fn time_lines(record: &Record, left_out: &mut Vec<String>) -> Vec<TimeLine> {
    // A decided variant is only measured in the first blocks.
    let middle = |variant: usize| {
        let own = record
            .complete_blocks()
            .filter(|block| block.trial(variant).is_some());
        let own: Vec<&Block> = own.collect();
        own.get(own.len().saturating_sub(1) / 2).copied()
    };
    let loaded = |block: &&Block| block.trials.iter().any(|trial| !trial.slices.is_empty());
    let last = record.blocks.iter().rev().find(loaded);
    let variants = record.header.plan.variants.len().min(DRAWN_MAX);
    let points_max = (TIME_POINTS_MAX / variants.max(1)).min(TIME_LINE_POINTS_MAX);
    let mut thinned = false;
    let mut lines = Vec::new();
    for variant in 0..variants {
        let Some(block) = middle(variant).or(last) else {
            continue;
        };
        let trial = block
            .trials
            .iter()
            .find(|trial| trial.variant() == variant && !trial.slices.is_empty());
        let Some(trial) = trial else { continue };
        let points = points(trial, record.is_open_loop());
        let kept = evenly(points.len(), points_max);
        thinned |= kept.len() < points.len();
        let points: Vec<TimesPoint> = stretches(&points, &kept).collect();
        let loop_delay_us = explain::loop_delay_us(record, variant);
        lines.push(TimeLine {
            loop_delay_us,
            ..line(trial, block.number, &points)
        });
    }
    if thinned {
        left_out.push(format!(
            "time lines: {points_max} points of each are drawn, evenly spread"
        ));
    }
    lines
}

/// Values of a stretch of a trial.
#[derive(Clone, Copy)]
struct TimesPoint {
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

/// Merges each kept point with the following ones that are left out, so that no failure is lost.
fn stretches<'a>(
    points: &'a [TimesPoint],
    kept: &'a [usize],
) -> impl Iterator<Item = TimesPoint> + 'a {
    let ends = kept.iter().skip(1).copied().chain([points.len()]);
    kept.iter().zip(ends).map(|(from, to)| {
        let [first, .., last] = &points[*from..to] else {
            return points[*from];
        };
        let failed = points[*from..to].iter().map(|point| point.failed).sum();
        TimesPoint {
            lasts_s: last.at_s + last.lasts_s - first.at_s,
            failed,
            ..*first
        }
    })
}

fn line(trial: &Trial, block: u32, points: &[TimesPoint]) -> TimeLine {
    fn each<T>(points: &[TimesPoint], of: impl Fn(&TimesPoint) -> T) -> Vec<T> {
        points.iter().map(of).collect()
    }
    let quantile = |at: usize| each(points, |point| point.quantiles_us[at].map(rounded));
    TimeLine {
        variant: trial.variant(),
        block,
        at_s: each(points, |point| to_millis(point.at_s)),
        lasts_s: each(points, |point| to_millis(point.lasts_s)),
        warm_up: points.iter().take_while(|point| point.is_warm_up).count(),
        rate_per_s: each(points, |point| point.rate_per_s.map(rounded)),
        p50_us: quantile(0),
        p90_us: quantile(1),
        p99_us: quantile(2),
        failed: each(points, |point| point.failed),
        cores: each(points, |point| point.cores.map(rounded)),
        rss_bytes: each(points, |point| point.rss_bytes),
        steal_share: each(points, |point| rounded(point.steal_share)),
        loop_delay_us: None,
    }
}

/// Precision below a millisecond is useless in a trial's times.
fn to_millis(seconds: f64) -> f64 {
    (seconds * 1e3).round() / 1e3
}

fn points(trial: &Trial, is_open_loop: bool) -> Vec<TimesPoint> {
    let slices = trial.slices.iter().zip(places(&trial.slices));
    slices
        .flat_map(|(slice, place)| points_of(slice, place, is_open_loop))
        .collect()
}

/// Start and duration of each slice in seconds.
fn places(slices: &[Slice]) -> Vec<(f64, f64)> {
    let first_ns = slices.first().map_or(0, |slice| slice.counts.started_ns);
    let begin_s = |slice: &Slice| slice.counts.started_ns.saturating_sub(first_ns) as f64 / 1e9;
    let mut end_s = 0.0_f64;
    // The duration of a turn is not recorded, but the next one begins after it. The last turn is stretched
    // like the one before.
    let mut stretch = 1.0;
    let mut places = Vec::new();
    for (index, slice) in slices.iter().enumerate() {
        let load_s = (slice.counts.window_ns as f64 / 1e9).max(1e-3);
        // Records are files and can be edited: times must not go backwards.
        let at_s = begin_s(slice).max(end_s);
        let mut lasts_s = load_s;
        if slice.turns > 1 {
            let next = slices
                .get(index + 1)
                .map(begin_s)
                .filter(|next| *next > at_s + load_s);
            stretch = next.map_or(stretch, |next| (next - at_s) / load_s);
            lasts_s = load_s * stretch;
        }
        end_s = at_s + lasts_s;
        places.push((at_s, lasts_s));
    }
    places
}

/// A slice as one point, or as several if its rate is known for tenths of a second.
fn points_of(slice: &Slice, (at_s, lasts_s): (f64, f64), is_open_loop: bool) -> Vec<TimesPoint> {
    let whole = TimesPoint {
        at_s,
        lasts_s,
        is_warm_up: slice.kind.prepares(),
        rate_per_s: analysis::throughput_per_s(slice),
        quantiles_us: times(slice, is_open_loop).map_or([None; 3], quantiles_us),
        failed: slice.counts.failed(),
        cores: cores(slice),
        rss_bytes: slice.services.iter().map(|service| service.rss_bytes).sum(),
        steal_share: slice.machine.steal_share,
    };
    let window_s = slice.counts.window_ns as f64 / 1e9;
    let parts = slice.counts.successful_per_100_ms.len();
    if slice.turns > 1 || parts < 2 {
        return vec![whole];
    }
    let together = parts.div_ceil(SLICE_POINTS_MAX);
    let part = |(index, counts): (usize, &[u32])| {
        let begin_s = (index * together) as f64 * PART_S;
        // The last tenth may be incomplete.
        let length_s = (counts.len() as f64 * PART_S).min(window_s - begin_s);
        let ok: u64 = counts.iter().map(|count| u64::from(*count)).sum();
        (length_s > 1e-3).then(|| TimesPoint {
            at_s: at_s + begin_s,
            lasts_s: length_s,
            rate_per_s: Some(ok as f64 / length_s),
            failed: if index == 0 { whole.failed } else { 0 },
            ..whole
        })
    };
    slice
        .counts
        .successful_per_100_ms
        .chunks(together)
        .enumerate()
        .filter_map(part)
        .collect()
}

/// The waiting time of users in open loop, and the service time in closed loop. An open loop warms up in
/// closed loop, whose times are of the other kind.
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

/// Over window and drain, because services are busy in both.
fn cores(slice: &Slice) -> Option<f64> {
    let length_ns = slice.counts.wall_ns();
    let known = !slice.services.is_empty() && length_ns > 0;
    known.then(|| slice.services_cpu_ns() as f64 / length_ns as f64)
}

#[cfg(test)]
mod tests {
    use record::SliceKind;

    use super::*;
    use crate::kept;

    #[test]
    fn a_curve_ends_where_ten_requests_lie_beyond_and_is_never_too_long() {
        for requests in [0, 5, 10, 11, 20, 99, 100, 101, 1_000, 50_000, 123_456_789] {
            let shares = shares(requests);
            assert!(
                shares.len() <= CURVE_POINTS_MAX,
                "{} of {requests}",
                shares.len()
            );
            assert!(
                shares.is_sorted_by(|one, other| one < other),
                "{requests}: {shares:?}"
            );
            let last = shares.last().copied();
            let beyond = last.map(|share| requests as f64 * (1.0 - share));
            assert!(
                beyond.is_none_or(|beyond| (9.999..10.2).contains(&beyond)),
                "{requests}: {beyond:?}"
            );
            assert_eq!(last.is_none(), requests <= 10);
        }
    }

    #[test]
    fn what_was_given_up_makes_the_end_of_a_curve_a_lower_bound() {
        let mut times = Latencies::new();
        (1..=1_900).for_each(|index| times.record(1_000_000 + 1_000 * index));
        (0..100).for_each(|_| times.censor(5_000_000));
        let curve = curve(&times);
        assert_eq!((curve.requests, curve.censored), (2_000, 100));
        let from = curve.at_least_from.expect("a bound");
        assert!((0.949..0.952).contains(&from), "{from}");
        assert!(
            curve
                .points
                .first()
                .is_some_and(|(share, us)| *share == 0.0 && (1_000.0..1_002.0).contains(us))
        );
        assert!(
            curve
                .points
                .last()
                .is_some_and(|(share, us)| *share == 0.995 && *us < 5_001.0)
        );
    }

    fn trial() -> Trial {
        kept().blocks[0].trials[0].clone()
    }

    #[test]
    fn a_variant_that_is_decided_early_has_its_line_from_a_block_of_its_own() {
        let mut record = kept();
        let later = record.blocks.iter_mut().skip(2);
        later.for_each(|block| block.trials.retain(|trial| trial.variant() != 1));
        let lines = time_lines(&record, &mut Vec::new());
        assert_eq!(
            lines.iter().map(|line| line.variant).collect::<Vec<_>>(),
            [0, 1]
        );
    }

    #[test]
    fn a_slice_is_taken_apart_where_its_rate_is_known_by_tenths_of_a_second() {
        let mut trial = trial();
        trial.slices.truncate(2);
        let points = points(&trial, false);
        let warm_up: Vec<&TimesPoint> = points.iter().filter(|point| point.is_warm_up).collect();
        assert!(
            (2..=SLICE_POINTS_MAX).contains(&warm_up.len()),
            "{}",
            warm_up.len()
        );
        let counted: f64 = warm_up
            .iter()
            .filter_map(|point| Some(point.rate_per_s? * point.lasts_s))
            .sum();
        let known: u32 = trial.slices[0].counts.successful_per_100_ms.iter().sum();
        assert!(
            (counted - f64::from(known)).abs() < 1.0,
            "{counted} of {known}"
        );
        assert!(
            points
                .iter()
                .is_sorted_by(|one, next| one.at_s + one.lasts_s <= next.at_s + 1e-9)
        );
    }

    #[test]
    fn steps_of_a_search_are_no_warm_up() {
        let mut trial = trial();
        trial.slices.truncate(3);
        let kinds = [SliceKind::Capacity, SliceKind::Probe, SliceKind::Measured];
        trial
            .slices
            .iter_mut()
            .zip(kinds)
            .for_each(|(slice, kind)| (slice.kind, slice.turns) = (kind, 2));
        assert_eq!(line(&trial, 1, &points(&trial, false)).warm_up, 1);
    }

    #[test]
    fn what_is_left_out_of_a_time_line_leaves_no_gap_and_no_failure_behind() {
        let mut trial = trial();
        trial.slices.iter_mut().for_each(|slice| slice.turns = 2);
        trial.slices[1].counts.status = [(500, trial.slices[1].counts.responses)].into();
        trial.slices[1].counts.successful = 0;
        let points = points(&trial, false);
        let kept: Vec<TimesPoint> = stretches(&points, &[0, points.len() - 1]).collect();
        let failed = |points: &[TimesPoint]| points.iter().map(|point| point.failed).sum::<u64>();
        assert!(
            failed(&kept) > 0 && failed(&kept) == failed(&points),
            "{} and {}",
            failed(&kept),
            failed(&points)
        );
        assert!(
            (kept[0].at_s + kept[0].lasts_s - kept[1].at_s).abs() < 0.5,
            "a gap"
        );
    }

    #[test]
    fn turns_last_until_the_next_slice_begins_and_a_clock_that_stands_still_is_no_harm() {
        let mut trial = trial();
        trial.slices.truncate(3);
        for (slice, started_s) in trial.slices.iter_mut().zip([10, 12, 16]) {
            slice.turns = 25;
            slice.counts.window_ns = 500_000_000;
            slice.counts.started_ns = started_s * 1_000_000_000;
        }
        assert_eq!(places(&trial.slices), [(0.0, 2.0), (2.0, 4.0), (6.0, 4.0)]);
        for slice in &mut trial.slices {
            (slice.turns, slice.counts.started_ns) = (1, 0);
        }
        assert_eq!(places(&trial.slices), [(0.0, 0.5), (0.5, 0.5), (1.0, 0.5)]);
        assert_eq!(places(&[]), []);
    }
}
