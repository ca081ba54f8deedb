//! Verdicts of intervals.

use proofload_stats::{Direction, Estimate, Verdict, judge};

#[test]
fn an_interval_earns_its_word() {
    use Verdict::{Better, Equivalent, Inconclusive, Worse};
    for (blocks, low, high, margin, expected) in [
        (6, 1.01, 1.20, 0.05, Better),
        (6, 0.80, 0.99, 0.05, Worse),
        (6, 0.99, 1.20, 0.05, Inconclusive),
        (6, 0.97, 1.03, 0.05, Equivalent),
        (6, 1.01, 1.04, 0.05, Equivalent), // a certain difference, but too small to matter
        (6, 1.0 / 1.05, 1.05, 0.05, Equivalent),
        (6, 0.95, 1.0, 0.05, Inconclusive), // 1/1.05 is 0.952: the margin is symmetric on the log scale
        (6, 1.0, 1.10, 0.05, Inconclusive), // touches 1
        (6, 1.06, 1.10, 0.05, Better),
        // With fewer than four blocks there is no verdict, however clear they look.
        (3, 2.0, 2.1, 0.05, Inconclusive),
        (3, 0.1, 0.2, 0.05, Inconclusive),
        (3, 0.999, 1.001, 0.05, Inconclusive),
        // Without a margin nothing is equivalent.
        (6, 0.9999, 1.0001, 0.0, Inconclusive),
        (6, 0.9999, 1.0001, -1.0, Inconclusive),
        (6, 0.9999, 1.0001, f64::NAN, Inconclusive),
    ] {
        let ratio = f64::sqrt(low * high);
        let estimate = Estimate {
            blocks,
            ratio,
            low,
            high,
            sd_log: 0.01,
            critical_t: 2.0,
        };
        let verdict = judge(&estimate, margin, Direction::HigherIsBetter);
        assert_eq!(
            verdict, expected,
            "{low} to {high} of {blocks} blocks, margin {margin}"
        );
    }
}
