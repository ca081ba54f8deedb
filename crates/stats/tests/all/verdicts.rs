//! Which word an interval earns, and how many blocks one would take.

use proofload_stats::{Direction, Estimate, Verdict, judge};

fn interval(blocks: u32, low: f64, high: f64) -> Estimate {
    Estimate { blocks, ratio: (low * high).sqrt(), low, high, sd_log: 0.01, critical_t: 2.0 }
}

#[test]
fn an_interval_earns_its_word() {
    use Verdict::{Better, Equivalent, Inconclusive, Worse};
    let margin = 0.05;
    for (low, high, expected) in [
        (1.01, 1.20, Better),
        (0.80, 0.99, Worse),
        (0.99, 1.20, Inconclusive),
        (0.97, 1.03, Equivalent),
        (1.01, 1.04, Equivalent), // certainly more, and certainly less than matters
        (1.0 / 1.05, 1.05, Equivalent),
        (0.95, 1.0, Inconclusive), // 1/1.05 is 0.952: the margin is as wide below 1 as above on the log scale
        (1.0, 1.10, Inconclusive), // touches 1
        (1.06, 1.10, Better),
    ] {
        let verdict = judge(&interval(6, low, high), margin, Direction::HigherIsBetter);
        assert_eq!(verdict, expected, "{low} to {high}");
    }
    assert_eq!(judge(&interval(6, 0.5, 0.6), margin, Direction::LowerIsBetter), Better);
}

#[test]
fn there_is_no_verdict_from_fewer_than_four_blocks_however_clear_they_look() {
    for (low, high) in [(2.0, 2.1), (0.1, 0.2), (0.999, 1.001)] {
        let verdict = judge(&interval(3, low, high), 0.05, Direction::HigherIsBetter);
        assert_eq!(verdict, Verdict::Inconclusive);
    }
}

#[test]
fn without_a_margin_nothing_is_equivalent() {
    for margin in [0.0, -1.0, f64::NAN] {
        let verdict = judge(&interval(6, 0.9999, 1.0001), margin, Direction::HigherIsBetter);
        assert_eq!(verdict, Verdict::Inconclusive, "margin {margin}");
    }
}
