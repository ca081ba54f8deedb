//! All parts of a conclusion are in the report: effects, the copy, assumptions, several metrics, the stopping
//! rules.

use analysis::conclude;
use plan::{LookRule, Metric};
use proofload_report::so_far;

use crate::records::{
    as_json, as_markdown, as_page, as_text, factorial, give, interacting, kept, part, slices,
};

fn line(text: &str, name: &str) -> String {
    text.lines()
        .find(|line| line.trim_start().starts_with(name))
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn effects_copy_and_assumptions_are_told_as_they_were() {
    let (two, four, mut void) = (factorial(2, 0.0), factorial(4, 0.0), factorial(2, 0.0));
    void.blocks.truncate(3);
    let effects = |text: &str| part(text, "Effects", " variant ");
    for (name, text) in [
        (
            "text_of_two_factors_and_a_copy",
            part(&as_text(&two), "Does the", "Assumptions"),
        ),
        ("markdown_of_two_factors_and_a_copy", as_markdown(&two)),
        (
            "of_many_effects_only_those_with_an_answer_are_told",
            effects(&as_text(&four)),
        ),
        (
            "a_void_experiment_has_no_number_beside_its_effects",
            effects(&as_text(&void)),
        ),
        (
            "a_doubtful_assumption_comes_first",
            part(&as_text(&factorial(2, 0.02)), "Assumptions", "next"),
        ),
    ] {
        insta::assert_snapshot!(name, text);
    }
    assert_eq!(as_json(&four)["effects"].as_array().map(Vec::len), Some(10));
}

#[test]
fn factors_that_leave_each_other_alone_are_the_answer() {
    let alone = interacting(2, 0.0, 1.0);
    let text = as_text(&alone);
    let (effects, comparison) = (
        text.find("Effects of factors"),
        text.find("production · large vs"),
    );
    assert!(effects.is_some() && effects < comparison, "{text}");
    insta::assert_snapshot!(line(&as_markdown(&alone), "### "));
}

#[test]
fn several_metrics_of_a_comparison_have_one_heading() {
    let mut record = kept();
    record.header.plan.design.co_primary = vec![Metric::CpuPerRequest, Metric::PeakMemory];
    insta::assert_snapshot!(part(&as_text(&record), "level-1 vs", " variant "));
    insta::assert_snapshot!(part(&as_markdown(&record), "level-1 vs", "| variant"));
    insta::assert_snapshot!(so_far(&conclude(&record)).join("\n"));
}

#[test]
fn the_interval_says_what_its_rule_holds_for() {
    let cpu = vec![Metric::CpuPerRequest];
    let together = "95 % for all looks and comparisons together";
    for (looks, co_primary, text) in [
        (LookRule::EachBlock, vec![], together.to_owned()),
        (LookRule::Once, vec![], "95 %, looked at once".to_owned()),
        (
            LookRule::Once,
            cpu,
            "95 %, looked at once; 2 comparisons judged together (sign flips)".to_owned(),
        ),
    ] {
        let mut record = kept();
        (
            record.header.plan.design.looks,
            record.header.plan.design.co_primary,
        ) = (looks, co_primary);
        let found = line(&as_markdown(&record), "- interval: ");
        assert!(found.ends_with(&format!(": {text}")), "{looks:?}: {found}");
    }
}

#[test]
fn before_its_one_look_no_interval_is_shown() {
    let mut record = factorial(2, 0.0);
    (record.header.plan.design.looks, record.ended) = (LookRule::Once, None);
    let told = so_far(&conclude(&record)).join("\n");
    assert!(told.ends_with("nothing is shown before the end"), "{told}");
    assert!(
        !as_text(&record).contains(" % to "),
        "an interval is a look"
    );
    let page = as_page(&record);
    assert!(
        page.verdicts
            .iter()
            .all(|verdict| verdict.ratio.is_none() && verdict.blocks.is_empty())
    );
    assert!(page.interactions.is_empty());
}

#[test]
fn blocks_that_were_dropped_are_told_in_every_form() {
    let mut record = kept();
    let why = "the host gave 31 % of the CPU time to others";
    for block in [2, 5] {
        record.apply(record::Event::BlockDropped {
            block,
            why: why.to_owned(),
        });
    }
    let text = as_text(&record)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let dropped = format!("8 of fresh processes, 2 more dropped ({why}, and so on), order random");
    for said in [
        dropped.as_str(),
        "warning V43: 2 of 10 blocks were dropped: in block 2 the host gave",
    ] {
        assert!(text.contains(said), "{text}");
    }
    let json = as_json(&record);
    let second = &json["blocks_dropped"][1];
    assert_eq!(
        (&json["blocks"], &second["block"], &second["why"]),
        (&8.into(), &5.into(), &why.into())
    );
    // In the picture, and in no ratio.
    let page = as_page(&record);
    let series = &page.series[0];
    assert_eq!(
        (series.dropped[1].block, series.dropped[1].why.as_str()),
        (5, why)
    );
    assert_eq!(
        (
            series.blocks.len(),
            page.verdicts[0].blocks.len(),
            page.variants[0].trials
        ),
        (10, 8, 8)
    );
    assert!(series.values[0][4].is_some());
}

#[test]
fn few_requests_without_a_failure_leave_a_share_open() {
    let mut record = kept();
    slices(&mut record).for_each(|slice| give(slice, 60 + u64::from(slice.block)));
    let text = as_text(&record);
    assert!(
        line(&text, "level-0").contains("0 of 2,054 (< 0.19 %)"),
        "{text}"
    );
    let variant = &as_json(&record)["variants"][0];
    assert_eq!(variant["failed_share"], 0.0);
    assert!(
        variant["failed_interval"]["high"]
            .as_f64()
            .is_some_and(|high| high > 0.0018)
    );
}

#[test]
fn one_connection_is_not_several() {
    let mut record = kept();
    record
        .header
        .plan
        .variants
        .iter_mut()
        .for_each(|variant| variant.load.settings.connections = 1);
    let load = line(&as_markdown(&record), "- load: ");
    assert!(load.contains(", 1 connection, keep-alive"), "{load}");
}
