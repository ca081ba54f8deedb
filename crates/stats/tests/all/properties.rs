//! Properties that must hold for any data.

use proofload_stats::{
    Components, Direction, Estimate, Latencies, SLICES_MAX, SLICES_MIN, Verdict, judge, mser5,
    slices, wilson,
};
use proptest::prelude::*;

use crate::filled;

fn log_ratios() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(-2.0..2.0_f64, 6..40)
}

fn samples() -> impl Strategy<Value = Vec<u64>> {
    // Spread over all magnitudes, from nanoseconds to an hour.
    prop::collection::vec(
        (0..42_u32, 0..1_u64 << 20).prop_map(|(shift, x)| (x << shift) >> 20),
        0..60,
    )
}

fn mirrored(verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Better => Verdict::Worse,
        Verdict::Worse => Verdict::Better,
        same => same,
    }
}

proptest! {
    #[test]
    fn an_interval_contains_its_estimate_and_swapping_the_sides_inverts_it(
        d in log_ratios(),
        critical_t in 1.0..10.0_f64,
        margin in 0.0..0.5_f64,
    ) {
        let swapped: Vec<f64> = d.iter().map(|x| -x).collect();
        let estimate = Estimate::of(&d, critical_t).expect("random numbers have spread");
        let inverse = Estimate::of(&swapped, critical_t).expect("random numbers have spread");
        prop_assert!(estimate.low < estimate.ratio && estimate.ratio < estimate.high);
        prop_assert!((estimate.ratio * inverse.ratio - 1.0).abs() < 1e-12);
        prop_assert!((estimate.low * inverse.high - 1.0).abs() < 1e-9);
        let verdict = judge(&estimate, margin, Direction::HigherIsBetter);
        prop_assert_eq!(judge(&inverse, margin, Direction::HigherIsBetter), mirrored(verdict));
        prop_assert_eq!(judge(&estimate, margin, Direction::LowerIsBetter), mirrored(verdict));
    }

    #[test]
    fn merging_is_recording_both_and_a_record_reads_back(
        first in (samples(), samples()),
        second in (samples(), samples()),
    ) {
        let mut merged = filled(&first.0, &first.1);
        merged.merge(&filled(&second.0, &second.1));
        let together = filled(&[first.0, second.0].concat(), &[first.1, second.1].concat());
        prop_assert_eq!(&merged, &together);
        let (hdr, censored) = together.encode();
        prop_assert_eq!(Latencies::decode(&hdr, &censored).expect("just encoded"), together);
    }

    #[test]
    fn a_quantile_of_answered_requests_is_the_true_one_to_three_digits(
        mut exact in samples(),
        q in 0.0..=1.0_f64,
    ) {
        prop_assume!(!exact.is_empty());
        exact.sort_unstable();
        let rank = ((q * exact.len() as f64).ceil() as usize).max(1);
        let truth = exact[rank - 1];
        let ours = filled(&exact, &[]).quantile(q).expect("samples");
        prop_assert!(ours.is_exact());
        prop_assert!(ours.ns() <= truth && truth - ours.ns() <= truth / 1_000, "{:?} for {}", ours, truth);
    }

    #[test]
    fn more_censored_samples_above_what_was_seen_never_lower_a_quantile(
        exact in samples(),
        censored in samples(),
        more in 1..20_usize,
        q in 0.0..=1.0_f64,
    ) {
        let before = filled(&exact, &censored);
        let Some(quantile) = before.quantile(q) else { return Ok(()) };
        // A sample censored at or above the quantile cannot decrease it.
        let mut after = before.clone();
        (0..more).for_each(|_| after.censor(quantile.ns()));
        prop_assert!(after.quantile(q).expect("samples").ns() >= quantile.ns());
        // No censored sample, however short, can decrease the upper bound of the quantile.
        let mut after = before.clone();
        (0..more).for_each(|_| after.censor(0));
        let highest = |latencies: &Latencies| latencies.bounds(q).expect("samples").1.unwrap_or(u64::MAX);
        prop_assert!(highest(&after) >= highest(&before));
        // Censoring a sample leaves both bounds unchanged.
        if let Some((&given_up, answered)) = exact.split_first() {
            let mut unanswered = censored.clone();
            unanswered.push(given_up);
            prop_assert_eq!(filled(answered, &unanswered).quantile(q).expect("samples").ns(), quantile.ns());
        }
    }

    #[test]
    fn cuts_and_slices_stay_within_their_ranges(
        series in prop::collection::vec(-1e6..1e6_f64, 0..200),
        costs in (-1.0..100.0_f64, -1.0..100.0_f64),
        variances in (0.0..1.0_f64, 0.0..1.0_f64),
    ) {
        let cut = mser5(&series);
        prop_assert!(cut.buckets <= series.len() && (!cut.steady || 2 * cut.buckets <= series.len()));
        let components = Components { between: variances.0, within: variances.1, freedom: 4.0 }.shrunk();
        prop_assert!((SLICES_MIN..=SLICES_MAX).contains(&slices(costs.0, costs.1, &components)));
    }

    #[test]
    fn a_share_lies_in_its_interval(hits in 0..1_000_u64, rest in 0..1_000_000_u64, level in 0.5..0.999_f64) {
        prop_assume!(hits + rest > 0);
        let share = hits as f64 / (hits + rest) as f64;
        let interval = wilson(hits, hits + rest, level).expect("not of nothing");
        prop_assert!(0.0 <= interval.low && interval.low <= share && share <= interval.high && interval.high <= 1.0);
    }
}
