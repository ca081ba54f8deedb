//! Which word an interval earns, and how many blocks one would take.

use proofload_stats::{BLOCKS_MAX, Direction, Estimate, Rule, Verdict, blocks_needed, judge};

fn interval(blocks: u32, low: f64, high: f64) -> Estimate {
    Estimate { blocks, ratio: (low * high).sqrt(), low, high, sd_log: 0.01, critical_t: 2.0 }
}

/// An estimate of `ratio` from `blocks` blocks whose log ratios have the standard deviation `sd_log`.
fn seen(rule: &Rule, blocks: u32, ratio: f64, sd_log: f64) -> Estimate {
    let critical_t = rule.critical_t(blocks).expect("a look");
    let factor = (critical_t * sd_log / f64::from(blocks).sqrt()).exp();
    Estimate { blocks, ratio, low: ratio / factor, high: ratio * factor, sd_log, critical_t }
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

#[test]
fn the_blocks_needed_are_those_of_a_run_that_ends_there_or_none_will_do() {
    let rule = Rule::each_block(1, false).expect("one");
    let needed = |blocks, ratio, margin| blocks_needed(&seen(&rule, blocks, ratio, 0.01), margin, &rule);
    // With s = 1 % a difference of 1 % needs t/√n < 1: 2.58/√6 is not less, nor 2.45/√6; 2.4/√7 is.
    assert_eq!(needed(4, 1.01, 0.0), Some(7));
    // No difference, but a margin of 1 %: the same distance, so the same answer.
    assert_eq!(needed(4, 1.0, 0.0101), Some(7));
    // n = (2.3 s / δ)², about 54 for δ = s/3.2 and beyond what one run can have for a tenth of s.
    let few = needed(30, 1.0 + 0.01 / 3.2, 0.0).expect("few");
    assert!((44..64).contains(&few), "{few}");
    let many = needed(30, 1.001, 0.0).expect("many");
    assert!(many > BLOCKS_MAX && (400..700).contains(&many), "{many}");
    assert_eq!((needed(30, 1.0001, 0.0), needed(30, 1.0, 0.0)), (None, None));
}
