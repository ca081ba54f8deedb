//! Compares the fast computation of merged quantiles with actual merging.

use super::*;

/// Creates blocks that differ in size and position. Every fourth request of the odd ones is censored at its
/// latency.
fn blocks(count: u64) -> Vec<Latencies> {
    let block = |b: u64| {
        let mut latencies = Latencies::new();
        for i in 0..20 + 30 * b {
            let ns = 1_000 + (i * 7_919 + b * 104_729) % (40_000 * (b + 1));
            if b % 2 == 1 && i % 4 == 0 {
                latencies.censor(ns)
            } else {
                latencies.record(ns)
            }
        }
        latencies
    };
    (0..count).map(block).collect()
}

#[test]
fn weights_give_what_merging_as_often_gives() {
    let blocks = blocks(7);
    let merged = Merged::new(&blocks);
    let mut draws = Resampling {
        resamples: 1_000,
        seed: 1,
    }
    .draws(PURPOSE)
    .expect("a thousand");
    let mut open = 0;
    for _ in 0..40 {
        let weights = weights(blocks.len(), &mut draws);
        assert_eq!(weights.iter().sum::<u64>(), 7);
        let mut slowly = Latencies::new();
        for (block, weight) in blocks.iter().zip(&weights) {
            (0..*weight).for_each(|_| slowly.merge(block));
        }
        for q in [0.0, 0.25, 0.5, 0.9, 0.99, 1.0] {
            let (low, high) = slowly.bounds(q).expect("samples");
            assert_eq!(
                merged.bounds(&weights, q),
                (low, high.unwrap_or(OPEN)),
                "q {q} of {weights:?}"
            );
            open += u32::from(high.is_none());
        }
    }
    assert!(open > 40, "too few open ends to be a test of them: {open}");
}

#[test]
fn many_quantiles_at_once_are_those_taken_one_by_one() {
    let shares: Vec<f64> = (-1..=1001).map(|part| f64::from(part) / 1000.0).collect();
    let mut latencies = Latencies::new();
    for censored in [0, 1, 40] {
        (0..500_u64).for_each(|index| latencies.record(1_000 + index * index * 37));
        (0..censored).for_each(|index| latencies.censor(900_000 + 100_000 * index));
        let singly: Vec<_> = shares
            .iter()
            .map(|share| latencies.quantile(*share))
            .collect();
        assert_eq!(
            latencies.quantiles(&shares),
            singly,
            "with {censored} censored"
        );
        latencies.pack();
        assert_eq!(
            latencies.quantiles(&shares),
            singly,
            "packed, with {censored} censored"
        );
    }
    assert_eq!(Latencies::new().quantiles(&[0.5]), [None]);
}
