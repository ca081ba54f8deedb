//! The plan of looks: which, how strict, and that it agrees with theory where theory is exact.

use super::*;

#[test]
fn budgets_are_rounded_down_to_a_plan_with_looks_and_a_last_one() {
    let looks = |blocks| Looks::plan(blocks, 1).map(|looks| looks.looks().to_vec());
    assert_eq!(looks(6), Ok(vec![6]));
    assert_eq!(looks(31), Ok(vec![6, 10, 15, 22, 30]));
    assert_eq!(looks(26), Ok(vec![6, 10, 15, 22, 26]));
    assert_eq!(looks(100_000), Ok(vec![6, 10, 15, 22, 30, 45, 60, 90, 120]));
    assert_eq!(looks(5), Err(Error::TooFewBlocks { blocks: 5, least: 6 }));
}

#[test]
fn the_error_rate_is_shared_by_one_to_sixty_four_comparisons() {
    let refused = |m| matches!(Looks::plan(30, m), Err(Error::Comparisons { .. }));
    assert!(refused(0) && refused(65) && !refused(64));
    for &last in Looks::finals() {
        let constants: Vec<f64> = (1..=64).map(|m| constant(last, m)).collect();
        assert!(constants.is_sorted(), "more comparisons, stricter boundary: {constants:?}");
        assert!(constants[63] > constants[0] + 1.0);
    }
}

#[test]
fn a_single_look_is_the_plain_t_test() {
    // With one look C is known: the normal quantile of α/m, so the critical t is that of the plain test.
    for comparisons in [1, 2, 8, 64] {
        let looks = Looks::plan(6, comparisons).expect("six blocks");
        let plain = crate::plain_t(6, 1.0 - ALPHA / f64::from(comparisons)).expect("level");
        let simulated = looks.critical_t(6).expect("the last look");
        assert!(
            (simulated / plain - 1.0).abs() < 0.006,
            "{comparisons}: simulated {simulated}, exact {plain}"
        );
    }
}

#[test]
fn boundaries_of_thirty_blocks_are_near_those_of_normal_theory_and_not_below() {
    // Normal theory (C = 2.121) gives these nominal rates, and t of the same tails. Simulating t itself asks for 1 % more.
    let theory = [(6, 6.27), (10, 3.66), (15, 2.90), (22, 2.48), (30, 2.23)];
    let looks = Looks::plan(30, 1).expect("thirty blocks");
    for (blocks, t) in theory {
        let ours = looks.critical_t(blocks).expect("a look");
        assert!((1.0..1.03).contains(&(ours / t)), "{blocks} blocks: {ours}, normal theory {t}");
    }
}

#[test]
fn there_is_no_critical_value_between_looks_but_one_for_an_early_end() {
    let looks = Looks::plan(30, 3).expect("thirty blocks");
    assert!(looks.is_look(10) && !looks.is_look(11));
    assert_eq!(looks.critical_t(11), None);
    let between = looks.final_critical_t(11).expect("within the plan");
    assert!(
        looks.critical_t(15).expect("a look") < between && between < looks.critical_t(10).expect("a look")
    );
    assert_eq!(looks.final_critical_t(15), looks.critical_t(15));
    assert_eq!((looks.final_critical_t(5), looks.final_critical_t(31)), (None, None));
}
