//! Which word an interval earns, and how many blocks one would take.

use proofload_stats::{BLOCKS_MAX, Direction, Estimate, Looks, Rule, Verdict, blocks_needed, judge, plain_t};

fn interval(blocks: u32, low: f64, high: f64) -> Estimate {
    Estimate { blocks, ratio: (low * high).sqrt(), low, high, sd_log: 0.01, critical_t: 2.0 }
}

/// An estimate of `ratio` from `blocks` blocks whose log ratios have the standard deviation `sd_log`.
fn seen(looks: &Looks, blocks: u32, ratio: f64, sd_log: f64) -> Estimate {
    let critical_t = looks.final_critical_t(blocks).expect("within the plan");
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
fn there_is_no_verdict_from_fewer_than_six_blocks_however_clear_they_look() {
    for (low, high) in [(2.0, 2.1), (0.1, 0.2), (0.999, 1.001)] {
        let verdict = judge(&interval(5, low, high), 0.05, Direction::HigherIsBetter);
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
fn the_blocks_needed_are_the_next_look_that_would_do() {
    let looks = Looks::plan(30, 1).expect("thirty blocks");
    // With s = 1 % a difference of 1 % needs t/√n < 1: 6.43/√6 is not, 3.72/√10 is not, 2.94/√15 is.
    assert_eq!(blocks_needed(&seen(&looks, 6, 1.01, 0.01), 0.0, &Rule::Planned(looks.clone())), Some(15));
    // No difference, but a margin of 1 %: the same distance, so the same answer.
    assert_eq!(blocks_needed(&seen(&looks, 6, 1.0, 0.01), 0.0101, &Rule::Planned(looks.clone())), Some(15));
}

#[test]
fn beyond_its_plan_a_run_is_told_the_size_of_a_longer_one_or_that_none_will_do() {
    let looks = Looks::plan(30, 1).expect("thirty blocks");
    // n = (2.15 s / δ)², about 46 for δ = s/3.2 and beyond what one plan can have for a tenth of s.
    let needed = blocks_needed(&seen(&looks, 30, 1.0 + 0.01 / 3.2, 0.01), 0.0, &Rule::Planned(looks.clone()))
        .expect("few");
    assert!((44..52).contains(&needed), "{needed}");
    let many =
        blocks_needed(&seen(&looks, 30, 1.001, 0.01), 0.0, &Rule::Planned(looks.clone())).expect("many");
    assert!(many > BLOCKS_MAX && (400..520).contains(&many), "{many}");
    assert_eq!(blocks_needed(&seen(&looks, 30, 1.0001, 0.01), 0.0, &Rule::Planned(looks.clone())), None);
    assert_eq!(blocks_needed(&seen(&looks, 30, 1.0, 0.01), 0.0, &Rule::Planned(looks.clone())), None);
}

#[test]
fn a_plain_interval_is_narrower_than_one_that_may_be_looked_at_again() {
    let looks = Looks::plan(30, 1).expect("thirty blocks");
    for &blocks in looks.looks() {
        let repeated = looks.critical_t(blocks).expect("a look");
        assert!(plain_t(blocks, 0.95).expect("valid") < repeated, "{blocks} blocks");
    }
}
