//! Snapshots of the first screen of a run, for a record in the repository and for variations of it.

use analysis::conclude;
use plan::{Comparison, Metric};
use proofload_report::{MeasuredRecord, Report};
use record::{EndReason, Record};

use crate::records::{
    as_text, factorial, failing, in_open_loop, interacting, kept, kept_until, many_variants,
};

fn brief(record: &Record, width: usize) -> String {
    let conclusion = conclude(record);
    let measured = MeasuredRecord {
        is_latest: true,
        ..MeasuredRecord::new(record, &conclusion, None)
    };
    crate::drawn(&measured.brief(), width)
}

#[test]
fn each_is_as_it_was() {
    let broke_off = EndReason::ServiceFailed("api: exited with 1".into());
    let dwarfed = interacting(2, 0.0, 3.0);
    assert!(as_text(&dwarfed).contains("2 main effects are not shown"));
    let mut beside = interacting(3, 0.0, 3.0);
    let label = "keep_alive: off vs on".to_owned();
    let plan = &mut beside.header.plan;
    (plan.aa, plan.comparisons) = (
        None,
        vec![Comparison {
            baseline: 0,
            candidate: 1,
            label,
        }],
    );
    for (name, record, width) in [
        ("a_clear_difference", kept(), 80),
        (
            "an_inconclusive_one_tells_how_long_it_takes_to_decide",
            kept_until(4, EndReason::BudgetSpent, 29.0),
            100,
        ),
        (
            "what_is_invalid_comes_first_and_whole_and_without_a_figure",
            failing(),
            100,
        ),
        (
            "a_run_that_broke_off_says_so_first",
            kept_until(2, broke_off, 12.0),
            100,
        ),
        ("a_latency_at_a_rate", in_open_loop(Metric::P90), 100),
        (
            "factors_that_leave_each_other_alone_are_the_answer",
            interacting(2, 0.0, 1.0),
            100,
        ),
        (
            "an_interaction_stands_among_the_comparisons_and_hides_the_main_effects_that_it_dwarfs",
            dwarfed,
            100,
        ),
        (
            "an_interaction_of_others_does_not_hide_the_effect_of_the_factor_that_is_compared",
            beside,
            100,
        ),
    ] {
        insta::assert_snapshot!(name, brief(&record, width));
    }
}

#[test]
fn of_many_verdicts_a_dozen_are_shown_the_decided_and_largest_first_in_one_screen() {
    let screen = brief(&many_variants(200, "v"), 100);
    let verdicts = screen
        .lines()
        .filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()));
    assert!(
        verdicts.count() <= 14 && screen.lines().count() <= 36,
        "{screen}"
    );
    assert!(screen.contains("more: proofload report"), "{screen}");
    let screen = brief(&factorial(4, 0.0), 100);
    let verdicts = screen.lines().filter(|line| line.contains("95 % CI"));
    assert!(
        verdicts
            .map(|line| line.starts_with("INCONCLUSIVE"))
            .is_sorted(),
        "{screen}"
    );
}
