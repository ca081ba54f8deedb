//! What people read, word for word, of a record that is kept in the repository.

use analysis::conclude;
use plan::Metric;
use proofload_report::{Measured, Report, markdown};
use record::{EndReason, Ended, Environment, Record};

use crate::records::{as_json, as_markdown, as_text, failing, in_open_loop, kept, many_variants, slices};

#[test]
fn text_of_a_latency_experiment() {
    insta::assert_snapshot!(as_text(&in_open_loop(Metric::P90)));
}

#[test]
fn markdown_of_a_latency_experiment() {
    let record = in_open_loop(Metric::P90);
    insta::assert_snapshot!(as_markdown(&record));
}

#[test]
fn json_of_a_latency_experiment_has_its_rate_and_response_times_and_no_closed_loop() {
    let record = in_open_loop(Metric::P50);
    let json = as_json(&record);
    assert_eq!(json["comparisons"][0]["metric"], "p50");
    assert_eq!(json["open_loop"]["rate"]["per_s"], 1218.0);
    assert_eq!(json["open_loop"]["arrivals"], "poisson");
    assert_eq!(json["open_loop"]["response_time"][0]["quantiles"][0]["percent"], 50.0);
    assert_eq!(json["variants"][0]["response_time"][0]["metric"], "p50");
    assert!(json["variants"][0]["response_time"][0]["us"].as_f64().is_some_and(|us| us > 2000.0));
    assert_eq!(json["closed_loop_latency"], serde_json::json!([]));
    let quantiles = &json["open_loop"]["response_time"][0]["quantiles"];
    let number = |value: &serde_json::Value| value.as_f64().expect("a number");
    let (p50, band) = (&quantiles[0], &quantiles[0]["band_us"]);
    assert!(number(&band["low"]) < number(&p50["us"]) && number(&p50["us"]) < number(&band["high"]), "{p50}");
    // More than one in a hundred got no answer: nothing bounds p99 from above, in any draw.
    assert_eq!(quantiles[3]["percent"], 99.0);
    assert_eq!(quantiles[3]["band_us"]["high"], serde_json::Value::Null);
}

#[test]
fn text_of_a_sound_record() {
    insta::assert_snapshot!(as_text(&kept()));
}

#[test]
fn text_of_a_void_record_has_no_number_beside_the_verdict() {
    insta::assert_snapshot!(as_text(&failing()));
}

#[test]
fn findings_have_their_number_in_markdown_and_json() {
    let mut record = kept();
    slices(&mut record).for_each(|slice| slice.counts.successful /= 2);
    let markdown = as_markdown(&record);
    assert!(markdown.contains("\n> **Invalid V8**: level-0: "), "{markdown}");
    assert!(markdown.contains("\nMore: `proofload explain V8`\n"), "{markdown}");
    let finding = &as_json(&record)["findings"][0];
    assert_eq!(
        (finding["number"].as_str(), finding["check"].as_str()),
        (Some("V8"), Some("errors")),
        "{finding}"
    );
}

#[test]
fn text_of_a_run_whose_budget_was_too_small() {
    let mut record = kept();
    record.blocks.truncate(3);
    record.ended = Some(Ended { reason: EndReason::BudgetTooSmall { needed_s: 112 }, seconds: 54.0 });
    insta::assert_snapshot!(as_text(&record));
}

#[test]
fn markdown_of_a_sound_record() {
    let record = kept();
    insta::assert_snapshot!(as_markdown(&record));
}

#[test]
fn names_from_outside_do_nothing_in_markdown() {
    let mut record = kept();
    record.header.plan.question =
        Some("<script>alert(1)</script> | **bold** [x](y) @octocat $x$ ~~y~~".into());
    record.header.plan.comparisons[0].label = "a\n\n# @octocat/all vs <img src=x onerror=y>".into();
    record.header.plan.variants[1].name = "a | b\u{202e} `c`".into();
    let markdown = as_markdown(&record);
    for markup in [
        "<script>", "<img", "[x](y)", "**bold**", "\n# ", " | b", "@octocat", "$x$", "~~y", "\u{202e}",
        " `c`",
    ] {
        assert!(!markdown.contains(markup), "{markup}: {markdown}");
    }
}

#[test]
fn markdown_of_any_record_fits_a_comment_and_says_what_it_leaves_out() {
    let record = many_variants(200, &"名 & ".repeat(60));
    let markdown = as_markdown(&record);
    let length = markdown.encode_utf16().count();
    assert!((40_000..=65_536).contains(&length), "{length}");
    assert!(markdown.starts_with("### 199 verdicts: "), "{}", &markdown[..200]);
    assert_eq!(markdown.matches("<details>").count(), markdown.matches("</details>").count());
    assert!(markdown.contains(" more that a comment has no room for; `--format text` has all"), "{markdown}");
}

#[test]
fn text_lines_up_names_of_wide_letters_and_lets_no_control_through() {
    let mut record = kept();
    record.header.plan.variants[0].name = "圧縮なし".into();
    record.header.plan.variants[1].name = "gzip é\u{1b}[2J".into();
    record.header.plan.question = Some("どちら\n\u{7}?".into());
    let text = as_text(&record);
    insta::assert_snapshot!(text.lines().take(12).collect::<Vec<_>>().join("\n"));
}

#[test]
fn a_record_of_another_machine_says_so() {
    let mut record = kept();
    record.header.environment.cpu_model = Some("Arm Neoverse-N1".into());
    let here = Environment { cpu_model: Some("AMD EPYC 7B13".into()), ..Environment::default() };
    let text = read_on(&record, &here);
    let machine = "Arm Neoverse-N1, 0 processors; not as where this is read: processor Arm Neoverse-N1 and AMD EPYC 7B13";
    assert!(text.contains(machine), "{text}");
    let text = read_on(&record, &record.header.environment);
    assert!(!text.contains("not as where this is read"), "{text}");
}

fn read_on(record: &Record, here: &Environment) -> String {
    let conclusion = conclude(record);
    let measured = Measured { here: Some(here), ..Measured::new(record, &conclusion, None) };
    markdown(&measured.document())
}

#[test]
fn json_has_figures_with_units_and_no_empty_ones() {
    let record = kept();
    let json = as_json(&record);
    assert_eq!(json["report_version"], 1);
    assert_eq!(json["comparisons"][0]["outcome"], "better");
    let ratio = json["comparisons"][0]["estimate"]["ratio"].as_f64().expect("a number");
    assert!((1.1..1.5).contains(&ratio), "{ratio}");
    assert!(json["variants"][0]["throughput_per_s"].as_f64().is_some_and(|rate| rate > 1000.0));
    assert_eq!(json["closed_loop_latency"][0]["quantiles"][0]["percent"], 50.0);
}

#[test]
fn machines_that_services_ran_on_are_told_and_no_difference_to_where_a_report_is_read() {
    let mut record = kept();
    let there = Environment { cpu_model: Some("AMD EPYC 7B13".into()), cpus: 8, ..Environment::default() };
    record.header.environment.hosts.insert("ssh://bench-1".into(), there);
    let here = record.header.environment.clone();
    let here = Environment { hosts: Default::default(), ..here };
    let text = read_on(&record, &here);
    assert!(text.contains("ssh://bench-1, for services: AMD EPYC 7B13, 8 processors"), "{text}");
    assert!(!text.contains("not as where this is read"), "{text}");
}
