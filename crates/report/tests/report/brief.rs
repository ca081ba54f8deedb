//! The first screen of a run, word for word, of a record that is kept in the repository and of others made of it.

use analysis::conclude;
use plan::Metric;
use proofload_report::{Measured, Report, text};
use record::{EndReason, Ended, Record};

use crate::records::{factorial, failing, in_open_loop, interacting, kept, many_variants};

fn brief(record: &Record, width: usize) -> String {
    let conclusion = conclude(record);
    let measured = Measured { is_latest: true, ..Measured::new(record, &conclusion, None) };
    anstream::adapter::strip_str(&text(&measured.brief(), width)).to_string()
}

#[test]
fn a_clear_difference() {
    insta::assert_snapshot!(brief(&kept(), 80));
}

#[test]
fn an_inconclusive_one_tells_how_long_it_takes_to_decide() {
    let mut record = kept();
    record.blocks.truncate(6);
    record.ended = Some(Ended { reason: EndReason::BudgetSpent, seconds: 44.0 });
    insta::assert_snapshot!(brief(&record, 100));
}

#[test]
fn what_is_invalid_comes_first_and_whole_and_without_a_figure() {
    let text = brief(&failing(), 100);
    insta::assert_snapshot!(text);
    assert!(!text.contains('×'), "{text}");
}

#[test]
fn a_run_that_broke_off_says_so_first() {
    let mut record = kept();
    record.blocks.truncate(2);
    record.ended =
        Some(Ended { reason: EndReason::ServiceFailed("api: exited with 1".into()), seconds: 12.0 });
    insta::assert_snapshot!(brief(&record, 100));
}

#[test]
fn a_latency_at_a_rate() {
    insta::assert_snapshot!(brief(&in_open_loop(Metric::P90), 100));
}

#[test]
fn factors_that_leave_each_other_alone_are_the_answer() {
    insta::assert_snapshot!(brief(&interacting(2, 0.0, 1.0), 100));
}

#[test]
fn an_interaction_stands_among_the_comparisons_and_hides_the_main_effects_that_it_dwarfs() {
    let record = interacting(2, 0.0, 3.0);
    insta::assert_snapshot!(brief(&record, 100));
    let conclusion = conclude(&record);
    let whole = text(&Measured::new(&record, &conclusion, None).document(), 100);
    assert!(whole.contains("2 main effects are not shown"), "{whole}");
}

#[test]
fn of_many_verdicts_a_dozen_are_shown_the_decided_and_largest_first_in_one_screen() {
    let screen = brief(&many_variants(200, "v"), 100);
    let verdicts = screen.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()));
    assert!(verdicts.count() <= 14 && screen.lines().count() <= 36, "{screen}");
    assert!(screen.contains("more: proofload report"), "{screen}");
    let screen = brief(&factorial(4, 0.0), 100);
    let decided: Vec<bool> = screen
        .lines()
        .filter(|line| line.contains("95 % CI"))
        .map(|line| !line.starts_with("INCONCLUSIVE"))
        .collect();
    assert!(decided.is_sorted_by(|one, other| one >= other), "{screen}");
}
