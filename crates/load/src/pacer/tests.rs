//! Arrival times compared with tables and the integral of the rate, and Poisson arrivals with the definition
//! of a Poisson process.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn pace(process: ArrivalProcess, rate_per_s: f64, seed: u64) -> SharedPace {
    SharedPace {
        rate: Rate::Constant(rate_per_s),
        process,
        seed,
    }
}

fn ramp((from_per_s, to_per_s, over_s): (f64, f64, f64)) -> SharedPace {
    let over = Duration::from_secs_f64(over_s);
    SharedPace {
        rate: Rate::Ramp {
            from_per_s,
            to_per_s,
            over,
        },
        process: ArrivalProcess::Constant,
        seed: 0,
    }
}

/// All arrivals of one thread in a window that begins now.
fn window(pacer: &mut Pacer, window_ns: u64) -> Vec<u64> {
    pacer.restart();
    let mut dues = Vec::new();
    while pacer.due_ns() < window_ns {
        dues.push(pacer.due_ns());
        pacer.advance();
    }
    dues
}

fn threads(pace: SharedPace, threads: u32, window_ns: u64) -> Vec<u64> {
    let mut all: Vec<u64> = (0..threads)
        .flat_map(|thread| window(&mut Pacer::new(pace, thread, threads), window_ns))
        .collect();
    all.sort_unstable();
    all
}

#[test]
fn constant_arrivals_are_where_the_table_has_them() {
    let rows: [(f64, u32, u32, [u64; 4]); 5] = [
        (1000.0, 0, 1, [0, 1_000_000, 2_000_000, 3_000_000]),
        (1000.0, 1, 4, [1_000_000, 5_000_000, 9_000_000, 13_000_000]),
        (3.0, 0, 1, [0, 333_333_333, 666_666_666, 1_000_000_000]),
        (
            0.5,
            1,
            2,
            [2_000_000_000, 6_000_000_000, 10_000_000_000, 14_000_000_000],
        ),
        (10_000_000.0, 0, 1, [0, 100, 200, 300]),
    ];
    for (rate_per_s, thread, of, expected) in rows {
        let mut pacer = Pacer::new(pace(ArrivalProcess::Constant, rate_per_s, 0), thread, of);
        let dues = window(&mut pacer, 20_000_000_000);
        assert_eq!(
            dues[..4],
            expected,
            "{rate_per_s}/s, thread {thread} of {of}"
        );
        assert_eq!(
            window(&mut pacer, 20_000_000_000),
            dues,
            "every window has them in the same places"
        );
    }
}

#[test]
fn threads_together_are_as_evenly_spaced_as_one_and_exactly_as_many_as_asked_for() {
    for (rate_per_s, seconds, expected) in [
        (1000.0, 10, 10_000),
        (7001.0, 3, 21_003),
        (3.0, 7, 21),
        (0.3, 10, 3),
    ] {
        let pace = pace(ArrivalProcess::Constant, rate_per_s, 0);
        let one = threads(pace, 1, seconds * 1_000_000_000);
        assert_eq!(one.len(), expected, "{rate_per_s}/s");
        for of in [2, 3, 8] {
            assert_eq!(
                threads(pace, of, seconds * 1_000_000_000),
                one,
                "{of} threads"
            );
        }
    }
}

/// For n gaps of a Poisson process, the mean is 1/rate within 1/√n of it, and so is the standard deviation.
/// The number in a second has a variance equal to its mean. The bounds are five standard errors.
#[test]
fn poisson_arrivals_are_a_process_of_the_rate() {
    const RATE: f64 = 2000.0;
    const SECONDS: u64 = 500;
    let dues = threads(
        pace(ArrivalProcess::Poisson, RATE, 7),
        1,
        SECONDS * 1_000_000_000,
    );
    let expected = RATE * SECONDS as f64;
    assert!(
        (dues.len() as f64 - expected).abs() < 5.0 * expected.sqrt(),
        "{} arrivals",
        dues.len()
    );

    let gaps: Vec<f64> = dues
        .windows(2)
        .map(|pair| (pair[1] - pair[0]) as f64 * RATE / 1e9)
        .collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    assert!(
        (mean - 1.0).abs() < 0.005 && (variance - 1.0).abs() < 0.02,
        "{mean} {variance}"
    );
    let longer = gaps.iter().filter(|gap| **gap > 2.0).count() as f64 / gaps.len() as f64;
    assert!(
        (longer - (-2.0f64).exp()).abs() < 0.002,
        "{longer} of the gaps are above two means"
    );

    let mut counts = vec![0.0; SECONDS as usize];
    dues.iter()
        .for_each(|due| counts[(due / 1_000_000_000) as usize] += 1.0);
    let spread = counts
        .iter()
        .map(|count| (count - RATE).powi(2))
        .sum::<f64>()
        / SECONDS as f64
        / RATE;
    assert!(
        (spread - 1.0).abs() < 5.0 * (2.0 / SECONDS as f64).sqrt(),
        "variance {spread} of the mean"
    );
}

/// The first n of all are dealt in turn, like constant ones, so no thread ends long after the others.
#[test]
fn threads_share_the_poisson_arrivals_of_one() {
    let pace = pace(ArrivalProcess::Poisson, 2000.0, 7);
    let mut one = Pacer::new(pace, 0, 1);
    let mut three = [0, 1, 2].map(|thread| Pacer::new(pace, thread, 3));
    for number in 1..=2 {
        let all = window(&mut one, 1_000_000_000);
        for (pacer, thread) in three.iter_mut().zip(0..) {
            let own: Vec<u64> = all.iter().copied().skip(thread).step_by(3).collect();
            assert_eq!(
                window(pacer, 1_000_000_000),
                own,
                "window {number}, thread {thread}"
            );
        }
    }
}

#[test]
fn a_seed_means_the_same_arrivals_for_ever_and_each_window_others() {
    let mut pacer = Pacer::new(pace(ArrivalProcess::Poisson, 1000.0, 42), 0, 1);
    let first = window(&mut pacer, 1_000_000_000);
    assert_eq!(
        first[..4],
        [974_931, 1_033_745, 4_838_075, 5_386_966],
        "these numbers must never change"
    );
    assert_ne!(window(&mut pacer, 1_000_000_000), first);
    let again = |seed| {
        window(
            &mut Pacer::new(pace(ArrivalProcess::Poisson, 1000.0, seed), 0, 1),
            1_000_000_000,
        )
    };
    assert_eq!(again(42), first);
    assert_ne!(again(43), first);
}

/// Computed by hand: r₀·t + (r₁ − r₀)·t²/2D = k, and r₁ from D on.
#[test]
fn arrivals_on_a_ramp_are_where_the_table_has_them() {
    // (from, to, over in s), then arrivals by number and their times in seconds.
    type Row = ((f64, f64, f64), &'static [(u64, f64)]);
    let rows: [Row; 4] = [
        // Up from zero: t = √(k / 50), and evenly once 5000 were due.
        (
            (0.0, 1000.0, 10.0),
            &[
                (0, 0.0),
                (50, 1.0),
                (200, 2.0),
                (1250, 5.0),
                (5000, 10.0),
                (6000, 11.0),
            ],
        ),
        // The mirror image: t = 10 − √((5000 − k) / 50), and nothing afterwards.
        (
            (1000.0, 0.0, 10.0),
            &[
                (0, 0.0),
                (3750, 5.0),
                (4800, 8.0),
                (4950, 9.0),
                (5000, 10.0),
            ],
        ),
        (
            (300.0, 100.0, 2.0),
            &[(0, 0.0), (250, 1.0), (400, 2.0), (500, 3.0)],
        ),
        // Practically no ramp.
        (
            (1000.0, 1000.0 + 1e-10, 3.0),
            &[(0, 0.0), (1, 0.001), (1500, 1.5), (4000, 4.0)],
        ),
    ];
    for (ends, arrivals) in rows {
        let mut pacer = Pacer::new(ramp(ends), 0, 1);
        for window in 1..=2 {
            pacer.restart();
            let mut next = 0;
            for (k, due_s) in arrivals {
                (next..*k).for_each(|_| pacer.advance());
                next = *k;
                let off_ns = pacer.due_ns() as f64 - due_s * 1e9;
                assert!(
                    off_ns.abs() <= 1.0,
                    "window {window} of {ends:?}: {k} is {off_ns} ns off"
                );
            }
        }
    }
    let mut over = Pacer::new(ramp((1000.0, 0.0, 10.0)), 0, 1);
    assert_eq!(
        window(&mut over, u64::MAX).len(),
        5001,
        "a ramp to 0 comes to its end"
    );
    over.advance();
    assert_eq!(over.due_ns(), u64::MAX);
}

proptest! {
    /// For any slope, the number of arrivals by any time is the integral of the rate, and the first comes at
    /// once.
    #[test]
    fn arrivals_by_a_time_are_the_integral_of_the_rate(
        (from_per_s, to_per_s) in (0.0..2000.0_f64, 0.0..2000.0_f64),
        over_s in 0.01..3.0_f64,
        until_s in 0.0..4.0_f64,
        of in 1u32..5,
    ) {
        // The integral by Simpson's rule, which is exact for straight lines, on either side of the bend.
        let rate = |t: f64| from_per_s + (to_per_s - from_per_s) * (t / over_s).min(1.0);
        let simpson = |a: f64, b: f64| (rate(a) + 4.0 * rate(f64::midpoint(a, b)) + rate(b)) / 6.0 * (b - a);
        let expected = simpson(0.0, over_s.min(until_s)) + simpson(over_s.min(until_s), until_s);

        let pace = ramp((from_per_s, to_per_s, over_s));
        prop_assert!((pace.rate.due_by(until_s) - expected).abs() < 1e-6);
        let dues = threads(pace, of, (until_s * 1e9) as u64);
        prop_assert!((dues.len() as f64 - expected).abs() <= 1.0 + 1e-6, "{} of {expected}", dues.len());
        prop_assert!(dues.first().is_none_or(|due| *due == 0));
    }
}
