//! Services of a known limit, and what is said of them.

use load::Arrivals;
use model::Counts;

use super::*;
use crate::load::sample::{at_a_rate, open, ramp, slice};

/// 10,000 a second for ten seconds, evenly, with a good answer for each as it was due.
fn even() -> Outcome {
    let rate = Rate::Constant(10_000.0);
    let arrivals = Arrivals::Open { rate, process: Process::Constant, seed: 1 };
    Outcome { arrivals, ..at_a_rate(Counts { successful_per_100_ms: vec![1000; 100], ..slice() }, 0) }
}

#[test]
fn a_rate_is_kept_where_good_answers_come_as_they_are_due() {
    assert_eq!(even().kept(), Some(Kept::Up));

    // Late by what the service takes, at the start alone.
    let mut slow = even();
    slow.slice.successful_per_100_ms[..5].fill(0);
    assert_eq!(slow.kept(), Some(Kept::Up));

    let mut unsent = even();
    (open(&mut unsent).sent_in_window, open(&mut unsent).queued) = (98_000, 90_000);
    assert_eq!(unsent.kept(), Some(Kept::Behind));

    // With connections for all that wait nothing is ever queued, and yet it falls behind.
    let mut waiting = even();
    waiting.connections = 100_000;
    waiting.slice.successful_per_100_ms.fill(950);
    assert_eq!(waiting.kept(), Some(Kept::Behind));

    let mut bad = even();
    bad.slice.successful = 98_000;
    assert_eq!(bad.kept(), Some(Kept::NotGood));

    let mut late = even();
    (0..5000).for_each(|_| open(&mut late).schedule_lag.record(50_000_000));
    assert_eq!(late.kept(), Some(Kept::ClientLate));
    // A wrong answer is wrong however late it was asked for.
    late.slice.successful = 98_000;
    assert_eq!(late.kept(), Some(Kept::NotGood));

    // A client at its limit that kept the rate all the same has measured it.
    let mut busy = even();
    busy.slice.generator.cpu_ns = vec![9_900_000_000];
    assert_eq!(busy.kept(), Some(Kept::Up));
    busy.slice.successful_per_100_ms.fill(900);
    assert_eq!(busy.kept(), Some(Kept::ClientLate));

    let mut silent = even();
    (silent.slice.successful, silent.slice.responses) = (0, 0);
    assert_eq!(silent.kept(), Some(Kept::NoAnswer));
}

/// 500 of a Poisson process in the second half can be 450 by chance, and 400 cannot.
#[test]
fn chance_is_no_falling_behind() {
    let of = |ok: u32| {
        let successful_per_100_ms = vec![ok; 100];
        let slice =
            Counts { sent: 1000, responses: 1000, successful: 1000, successful_per_100_ms, ..slice() };
        let arrivals = Arrivals::Open { rate: Rate::Constant(100.0), process: Process::Poisson, seed: 1 };
        Outcome { arrivals, ..at_a_rate(slice, 0) }.kept()
    };
    assert_eq!([of(9), of(8)], [Some(Kept::Up), Some(Kept::Behind)]);
}

/// What is said lies below the limit, by no more than a tenth of the ramp.
#[test]
fn a_ramp_bends_at_the_limit_of_the_service() {
    for limit in (1500..4400).step_by(100).map(f64::from) {
        for ends in [(1000.0, 5000.0), (5000.0, 1000.0)] {
            let Some(Bend::At(per_s)) = ramp(ends, |_| limit).bend() else { panic!("{limit}: no bend") };
            assert!(per_s > limit - 410.0 && per_s < limit + 1.0, "{limit}: {per_s} for {ends:?}");
        }
    }
    assert_eq!(ramp((1000.0, 5000.0), |_| 6000.0).bend(), Some(Bend::NotUpTo(5000.0)));
    assert_eq!(ramp((0.0, 5000.0), |_| 6000.0).bend(), Some(Bend::NotUpTo(5000.0)));
    assert_eq!(ramp((5000.0, 0.0), |_| 6000.0).bend(), Some(Bend::NotUpTo(5000.0)));
    assert_eq!(ramp((1000.0, 5000.0), |_| 900.0).bend(), Some(Bend::AtLowest(1000.0)));
    assert_eq!(ramp((1000.0, 5000.0), |_| 4700.0).bend(), Some(Bend::Perhaps(4600.0)));
}

#[test]
fn a_ramp_says_no_more_than_it_shows() {
    // A stall from which it recovers is no bend.
    let stalled = ramp((1000.0, 5000.0), |t| if (3.5..4.5).contains(&t) { 0.0 } else { 8000.0 });
    assert!(stalled.stretches().iter().any(|stretch| !stretch.kept));
    assert_eq!(stalled.bend(), Some(Bend::NotUpTo(5000.0)));

    // A service that gets faster as it goes was not held back by the rate.
    let warming = ramp((1000.0, 5000.0), |t| if t < 6.0 { 1500.0 } else { 3000.0 });
    assert!(
        matches!(warming.bend(), Some(Bend::Uneven { gave, .. }) if gave > 2900.0),
        "{:?}",
        warming.bend()
    );

    // Answers that take 300 ms are not lost: they come 300 ms later.
    let mut slow = ramp((0.0, 5000.0), |_| 6000.0);
    slow.slice.successful_per_100_ms.rotate_right(3);
    slow.slice.successful_per_100_ms[..3].fill(0);
    assert_ne!(slow.bend(), Some(Bend::NotUpTo(5000.0)));
    slow.slice.latency = stats::Latencies::new();
    (0..10_000).for_each(|_| slow.slice.latency.record(300_000_000));
    assert_eq!(slow.bend(), Some(Bend::NotUpTo(5000.0)));

    // The half that there is of one that was stopped.
    let mut stopped = ramp((1000.0, 5000.0), |_| 4500.0);
    stopped.slice.successful_per_100_ms.truncate(50);
    stopped.slice.window_ns = 5_000_000_000;
    assert_eq!((stopped.stretches().len(), stopped.bend()), (5, Some(Bend::NotUpTo(3000.0))));

    // A bend of the client's is none of the service's.
    let mut busy = ramp((1000.0, 5000.0), |_| 3000.0);
    busy.slice.generator.cpu_ns = vec![9_900_000_000];
    assert_eq!(busy.bend(), None);
}
