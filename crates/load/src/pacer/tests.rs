//! Arrival times against tables, and Poisson arrivals against what defines a Poisson process.

use super::*;

fn pace(process: Process, rate_per_s: f64, seed: u64) -> Pace {
    Pace { rate_per_s, process, seed }
}

/// All arrivals of one thread in a window, which begins now.
fn window(pacer: &mut Pacer, window_ns: u64) -> Vec<u64> {
    pacer.restart();
    let mut dues = Vec::new();
    while pacer.due_ns() < window_ns {
        dues.push(pacer.due_ns());
        pacer.advance();
    }
    dues
}

fn threads(pace: Pace, threads: u32, window_ns: u64) -> Vec<u64> {
    let mut all: Vec<u64> =
        (0..threads).flat_map(|thread| window(&mut Pacer::new(pace, thread, threads), window_ns)).collect();
    all.sort_unstable();
    all
}

#[test]
fn constant_arrivals_are_where_the_table_has_them() {
    let rows: [(f64, u32, u32, [u64; 4]); 5] = [
        (1000.0, 0, 1, [0, 1_000_000, 2_000_000, 3_000_000]),
        (1000.0, 1, 4, [1_000_000, 5_000_000, 9_000_000, 13_000_000]),
        (3.0, 0, 1, [0, 333_333_333, 666_666_666, 1_000_000_000]),
        (0.5, 1, 2, [2_000_000_000, 6_000_000_000, 10_000_000_000, 14_000_000_000]),
        (10_000_000.0, 0, 1, [0, 100, 200, 300]),
    ];
    for (rate_per_s, thread, of, expected) in rows {
        let mut pacer = Pacer::new(pace(Process::Constant, rate_per_s, 0), thread, of);
        let dues = window(&mut pacer, 20_000_000_000);
        assert_eq!(dues[..4], expected, "{rate_per_s}/s, thread {thread} of {of}");
        assert_eq!(window(&mut pacer, 20_000_000_000), dues, "every window has them in the same places");
    }
}

#[test]
fn threads_together_are_as_evenly_spaced_as_one_and_exactly_as_many_as_asked_for() {
    for (rate_per_s, seconds, expected) in
        [(1000.0, 10, 10_000), (7001.0, 3, 21_003), (3.0, 7, 21), (0.3, 10, 3)]
    {
        let pace = pace(Process::Constant, rate_per_s, 0);
        let one = threads(pace, 1, seconds * 1_000_000_000);
        assert_eq!(one.len(), expected, "{rate_per_s}/s");
        for of in [2, 3, 8] {
            assert_eq!(threads(pace, of, seconds * 1_000_000_000), one, "{of} threads");
        }
    }
}

/// Of n gaps of a Poisson process the mean is 1/rate, give or take 1/√n of it, and so is the standard deviation; the
/// number in a second has a variance of its mean. The bounds are five standard errors.
#[test]
fn poisson_arrivals_are_one_process_of_the_rate_however_many_threads_draw_it() {
    const RATE: f64 = 2000.0;
    const SECONDS: u64 = 500;
    for of in [1, 3] {
        let dues = threads(pace(Process::Poisson, RATE, 7), of, SECONDS * 1_000_000_000);
        let expected = RATE * SECONDS as f64;
        assert!((dues.len() as f64 - expected).abs() < 5.0 * expected.sqrt(), "{} arrivals", dues.len());

        let gaps: Vec<f64> = dues.windows(2).map(|pair| (pair[1] - pair[0]) as f64 * RATE / 1e9).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 1.0).abs() < 0.005 && (variance - 1.0).abs() < 0.02, "{mean} {variance}");
        let longer = gaps.iter().filter(|gap| **gap > 2.0).count() as f64 / gaps.len() as f64;
        assert!((longer - (-2.0f64).exp()).abs() < 0.002, "{longer} of the gaps are above two means");

        let mut counts = vec![0.0; SECONDS as usize];
        dues.iter().for_each(|due| counts[(due / 1_000_000_000) as usize] += 1.0);
        let spread = counts.iter().map(|count| (count - RATE).powi(2)).sum::<f64>() / SECONDS as f64 / RATE;
        assert!((spread - 1.0).abs() < 5.0 * (2.0 / SECONDS as f64).sqrt(), "variance {spread} of the mean");
    }
}

#[test]
fn a_seed_means_the_same_arrivals_for_ever_and_each_window_others() {
    let mut pacer = Pacer::new(pace(Process::Poisson, 1000.0, 42), 0, 1);
    let first = window(&mut pacer, 1_000_000_000);
    assert_eq!(first[..4], [974_931, 1_033_745, 4_838_075, 5_386_966], "these numbers must never change");
    assert_ne!(window(&mut pacer, 1_000_000_000), first);
    let again = |seed, thread| {
        window(&mut Pacer::new(pace(Process::Poisson, 1000.0, seed), thread, 1), 1_000_000_000)
    };
    assert_eq!(again(42, 0), first);
    assert_ne!(again(43, 0), first);
    assert_ne!(again(42, 1), first, "each thread has its own");
}
