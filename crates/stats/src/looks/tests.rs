//! Tests of the boundaries: they agree with theory where it is exact, and increase with the number of
//! comparisons.

use super::*;

#[test]
fn a_run_of_four_blocks_is_the_plain_t_test() {
    // Nothing was spent before, so z of the end is known: the normal quantile of α/m.
    for comparisons in [1, 2, 8, 64] {
        let end = Looks::new(comparisons)
            .expect("few enough")
            .end_t(4)
            .expect("four blocks");
        let plain = crate::plain_t(4, 1.0 - ALPHA / f64::from(comparisons)).expect("level");
        assert!(
            (end / plain - 1.0).abs() < 0.012,
            "{comparisons}: simulated {end}, exact {plain}"
        );
    }
}

#[test]
fn looks_ask_for_more_than_ends_and_both_for_more_of_several_comparisons() {
    let mut before = Looks::new(1).expect("one");
    for comparisons in 2..=COMPARISONS_MAX {
        let looks = Looks::new(comparisons).expect("few enough");
        assert!(looks.look >= before.look, "{comparisons}");
        for blocks in BLOCKS_MIN..=BLOCKS_MAX {
            let (look, end) = (
                looks.look_t(blocks).expect("a look"),
                looks.end_t(blocks).expect("an end"),
            );
            assert!(
                end < look && end >= before.end_t(blocks).expect("an end"),
                "{comparisons}, {blocks}"
            );
        }
        before = looks;
    }
}

#[test]
fn there_is_no_boundary_for_too_few_blocks_or_too_many_comparisons() {
    let looks = Looks::new(1).expect("one");
    assert_eq!(
        (looks.look_t(3), looks.end_t(3), looks.look_t(121)),
        (None, None, None)
    );
    // Forecasts beyond the longest run use its last boundary.
    assert!(looks.end_t(1_000).expect("a forecast") < looks.end_t(120).expect("an end"));
    assert_eq!((Looks::new(0), Looks::new(65)), (None, None));
    assert!(
        (looks.level(10, false) - 0.997).abs() < 0.0003
            && (looks.level(4, true) - 0.95).abs() < 0.001
    );
}
