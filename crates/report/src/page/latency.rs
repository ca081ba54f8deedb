//! Whole distributions of times, as points that a curve is drawn through.
//!
//! Must not: show a quantile that fewer than ten requests lie beyond, or hide that requests were given up.

use record::Record;
use stats::{Latencies, Quantile};

use super::bounds::{CURVE_POINTS_MAX, DRAWN_MAX, rounded};
use super::model::{LatencyCurve, LatencyCurves};

/// Requests that lie beyond the last point.
const BEYOND: f64 = 10.0;
/// Points of the shares up to nine in ten, where each hundredth has one; the others are for the tail.
const EVEN_POINTS: usize = 91;

/// Times of every kind that the record has, with curves of the first variants.
pub(super) fn curves(record: &Record) -> Vec<LatencyCurves> {
    let of = |kind: &str, note: Option<String>, times: fn(&Record, usize) -> Latencies| LatencyCurves {
        kind: kind.to_owned(),
        note,
        curves: (0..record.header.plan.variants.len())
            .map(|variant| if variant < DRAWN_MAX { curve(&times(record, variant)) } else { empty() })
            .collect(),
    };
    if !record.is_open_loop() {
        return vec![of("service time", Some(CLOSED.to_owned()), analysis::latencies_together)];
    }
    let endpoint = record.header.plan.design.endpoint.as_ref();
    let endpoint = endpoint.map(|endpoint| format!("of the request {} alone", endpoint.name));
    vec![
        of("response time", endpoint, analysis::responses_together),
        of("service time", Some(OPEN.to_owned()), analysis::latencies_together),
    ]
}

const CLOSED: &str = "in closed loop each connection waits for its response before it sends the next request: these times follow from connections and \
                      throughput, compare nothing, and are not what users wait";
const OPEN: &str = "from sent to done: without the time in which a request was due and found no connection free, which users wait too";

fn empty() -> LatencyCurve {
    LatencyCurve { requests: 0, censored: 0, points: Vec::new(), at_least_from: None }
}

fn curve(times: &Latencies) -> LatencyCurve {
    let shares = shares(times.count());
    let quantiles = times.quantiles(&shares);
    let bounded = quantiles.iter().position(|found| matches!(found, Some(Quantile::AtLeast(_))));
    let point = |(share, found): (&f64, &Option<Quantile>)| {
        // A share close to 1 keeps all its digits: on a logarithmic axis they are what tells it from others.
        found.map(|quantile| (*share, rounded(quantile.ns() as f64 / 1e3)))
    };
    LatencyCurve {
        requests: times.count(),
        censored: times.censored(),
        points: shares.iter().zip(&quantiles).filter_map(point).collect(),
        at_least_from: bounded.map(|at| shares[at]),
    }
}

/// Each hundredth up to nine in ten, then ever closer to the highest share that ten of so many requests lie beyond, by equal steps of the
/// logarithm of what is beyond.
fn shares(requests: u64) -> Vec<f64> {
    let least_beyond = BEYOND / requests.max(1) as f64;
    let highest = 1.0 - least_beyond;
    if highest <= 0.0 {
        return Vec::new();
    }
    let even = (0..EVEN_POINTS).map(|hundredth| hundredth as f64 / 100.0).filter(|share| *share < highest);
    let mut shares: Vec<f64> = even.collect();
    let tail = CURVE_POINTS_MAX - EVEN_POINTS;
    let steps = (least_beyond / 0.1).ln();
    if steps < 0.0 {
        let at = |step: usize| 1.0 - 0.1 * (steps * step as f64 / tail as f64).exp();
        shares.extend((1..tail).map(at).map(short));
    }
    shares.push(short(highest));
    // Near to nine in ten the digits may not tell two of them apart.
    shares.dedup_by(|later, before| *later <= *before);
    shares
}

/// As many digits as tell what is beyond to three.
fn short(share: f64) -> f64 {
    let beyond = 1.0 - share;
    let digits = (2.0 - beyond.log10().floor()).clamp(2.0, 12.0);
    let scale = 10_f64.powf(digits);
    // Downwards, so that there are never fewer requests beyond than said; but what is a hair below by binary rounding is not below.
    (share * scale + 1e-6).floor() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_ends_where_ten_requests_lie_beyond_and_is_never_too_long() {
        for requests in [0, 5, 10, 11, 20, 99, 100, 101, 1_000, 50_000, 123_456_789] {
            let shares = shares(requests);
            assert!(shares.len() <= CURVE_POINTS_MAX, "{} of {requests}", shares.len());
            assert!(shares.is_sorted_by(|one, other| one < other), "{requests}: {shares:?}");
            let last = shares.last().copied();
            let beyond = last.map(|share| requests as f64 * (1.0 - share));
            assert!(beyond.is_none_or(|beyond| (9.999..10.2).contains(&beyond)), "{requests}: {beyond:?}");
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
            curve.points.first().is_some_and(|(share, us)| *share == 0.0 && (1_000.0..1_002.0).contains(us))
        );
        assert!(curve.points.last().is_some_and(|(share, us)| *share == 0.995 && *us < 5_001.0));
    }
}
