//! That all of a conclusion reaches whoever reads the report: effects, the copy, assumptions, several metrics, the stop rules.

use analysis::conclude;
use plan::{LookRule, Metric};
use proofload_report::so_far;
use record::Record;

use crate::records::{as_json, as_markdown, as_text, factorial, give, interacting, kept, part, slices};

fn line<'a>(text: &'a str, name: &str) -> &'a str {
    text.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_default()
}

#[test]
fn text_of_two_factors_and_a_copy() {
    insta::assert_snapshot!(as_text(&factorial(2, 0.0)));
}

#[test]
fn factors_that_leave_each_other_alone_are_the_answer() {
    let text = as_text(&interacting(2, 0.0, 1.0));
    let (effects, comparison) = (text.find("Effects of factors"), text.find("production · large vs"));
    assert!(effects.is_some() && effects < comparison, "{text}");
    let headline = |record: &Record| {
        as_markdown(record).lines().find(|line| line.starts_with("### ")).unwrap_or_default().to_owned()
    };
    insta::assert_snapshot!(headline(&interacting(2, 0.0, 1.0)));
    assert!(
        headline(&factorial(2, 0.0)).contains("production · large has"),
        "{}",
        headline(&factorial(2, 0.0))
    );
}

#[test]
fn markdown_of_two_factors_and_a_copy() {
    let record = factorial(2, 0.0);
    insta::assert_snapshot!(as_markdown(&record));
}

#[test]
fn of_many_effects_only_those_with_an_answer_are_told() {
    let record = factorial(4, 0.0);
    insta::assert_snapshot!(part(&as_text(&record), "Effects", " variant "));
    assert_eq!(as_json(&record)["effects"].as_array().map(Vec::len), Some(10));
}

#[test]
fn a_void_experiment_has_no_number_beside_its_effects() {
    let mut record = factorial(2, 0.0);
    record.blocks.truncate(3);
    insta::assert_snapshot!(part(&as_text(&record), "Effects", " variant "));
}

#[test]
fn a_doubtful_assumption_comes_first() {
    let text = as_text(&factorial(2, 0.02));
    insta::assert_snapshot!(part(&text, "Assumptions", "next"));
}

#[test]
fn several_metrics_of_a_comparison_have_one_heading() {
    let mut record = kept();
    record.header.plan.design.co_primary = vec![Metric::CpuPerRequest, Metric::PeakMemory];
    insta::assert_snapshot!(part(&as_text(&record), "level-1 vs", " variant "));
    let markdown = as_markdown(&record);
    insta::assert_snapshot!(part(&markdown, "level-1 vs", "| variant"));
    insta::assert_snapshot!(so_far(&conclude(&record)).join("\n"));
}

#[test]
fn the_interval_says_what_its_rule_holds_for() {
    let interval = |looks, co_primary| {
        let mut record = kept();
        (record.header.plan.design.looks, record.header.plan.design.co_primary) = (looks, co_primary);
        let text = as_markdown(&record);
        line(&text, "- interval: ").to_owned()
    };
    let cpu = vec![Metric::CpuPerRequest];
    let said = [
        (LookRule::EachBlock, vec![], "95 % for all looks and comparisons together"),
        (
            LookRule::Always,
            vec![],
            "95 % for all looks and comparisons together, by the rule of the version that made the record",
        ),
        (LookRule::Once, vec![], "95 %, looked at once"),
        (LookRule::Once, cpu, "95 %, looked at once; 2 comparisons judged together (sign flips)"),
    ];
    for (looks, co_primary, text) in said {
        let found = interval(looks, co_primary);
        assert!(found.ends_with(&format!(": {text}")), "{looks:?}: {found}");
    }
}

#[test]
fn before_its_one_look_no_interval_is_shown() {
    let mut record: Record = factorial(2, 0.0);
    record.header.plan.design.looks = LookRule::Once;
    record.ended = None;
    let told = so_far(&conclude(&record)).join("\n");
    assert!(told.ends_with("nothing is shown before the end"), "{told}");
    assert!(!as_text(&record).contains(" % to "), "an interval is a look");
}

#[test]
fn blocks_that_were_dropped_are_told_in_every_form() {
    let mut record = kept();
    for block in [2, 5] {
        let why = "the host gave 31 % of the CPU time to others".to_owned();
        record.apply(record::Event::BlockDropped { block, why });
    }
    let text = as_text(&record).split_whitespace().collect::<Vec<_>>().join(" ");
    let said = "8 of fresh processes, 2 more dropped (the host gave 31 % of the CPU time to others, and so on), order random";
    assert!(
        text.contains(said)
            && text.contains("warning V43: 2 of 10 blocks were dropped: in block 2 the host gave"),
        "{text}"
    );
    let json = as_json(&record);
    assert_eq!(json["blocks"], 8);
    assert_eq!(json["blocks_dropped"][1]["block"], 5);
    assert_eq!(json["blocks_dropped"][1]["why"], "the host gave 31 % of the CPU time to others");
}

#[test]
fn few_requests_without_a_failure_leave_a_share_open() {
    let mut record = kept();
    for slice in slices(&mut record) {
        give(slice, 60 + u64::from(slice.block));
    }
    let text = as_text(&record);
    assert!(line(&text, "level-0").contains("0 of 2,054 (< 0.19 %)"), "{text}");
    let json = as_json(&record);
    assert_eq!(json["variants"][0]["failed_share"], 0.0);
    assert!(json["variants"][0]["failed_interval"]["high"].as_f64().is_some_and(|high| high > 0.0018));
}
