//! Snapshots of all forms of a record in the repository.

use analysis::conclude;
use plan::Metric;
use proofload_report::{MeasuredRecord, Report, markdown};
use record::{EndReason, MachineFingerprint, Record};

use crate::records::{
    as_json, as_markdown, as_text, failing, in_open_loop, kept, kept_until, many_variants, part,
};

#[test]
fn text_and_markdown_are_as_they_were() {
    let latency = in_open_loop(Metric::P90);
    let too_small = kept_until(3, EndReason::BudgetTooSmall { needed_s: 112 }, 54.0);
    for (name, text) in [
        (
            "text_of_a_latency_experiment",
            part(&as_text(&latency), "Does the", "Assumptions"),
        ),
        ("markdown_of_a_latency_experiment", as_markdown(&latency)),
        ("text_of_a_sound_record", as_text(&kept())),
        (
            "text_of_a_void_record_has_no_number_beside_the_verdict",
            as_text(&failing()),
        ),
        (
            "text_of_a_run_whose_budget_was_too_small",
            as_text(&too_small),
        ),
    ] {
        insta::assert_snapshot!(name, text);
    }
}

#[test]
fn json_of_a_latency_experiment_has_its_rate_and_response_times_and_no_closed_loop() {
    let closed = as_json(&kept());
    assert_eq!(
        (&closed["open_loop"], &closed["response_time"]),
        (&serde_json::Value::Null, &serde_json::json!([]))
    );
    assert_eq!(closed["service_time"][0]["quantiles"][0]["percent"], 50.0);
    let json = as_json(&in_open_loop(Metric::P50));
    let open = &json["open_loop"];
    assert_eq!(
        (&open["rate"]["per_s"], &open["arrivals"]),
        (&1218.0.into(), &"poisson".into())
    );
    assert_eq!(json["variants"][0]["response_time"][0]["metric"], "p50");
    assert!(
        json["variants"][0]["response_time"][0]["us"]
            .as_f64()
            .is_some_and(|us| us > 2000.0)
    );
    let quantiles = &json["response_time"][0]["quantiles"];
    let number = |value: &serde_json::Value| value.as_f64().expect("a number");
    let (p50, band) = (&quantiles[0], &quantiles[0]["band_us"]);
    assert_eq!(
        (&p50["percent"], &quantiles[3]["percent"]),
        (&50.0.into(), &99.0.into())
    );
    assert!(
        number(&band["low"]) < number(&p50["us"]) && number(&p50["us"]) < number(&band["high"]),
        "{p50}"
    );
    // More than one in a hundred got no response: p99 has no upper bound in any resample.
    assert_eq!(quantiles[3]["band_us"]["high"], serde_json::Value::Null);
}

#[test]
fn findings_have_their_number_in_markdown_and_json() {
    let record = failing();
    let (markdown, finding) = (as_markdown(&record), &as_json(&record)["findings"][0]);
    assert!(
        markdown.contains("\n> **Invalid V8**: level-0: "),
        "{markdown}"
    );
    assert!(
        markdown.contains("\nMore: `proofload explain V8"),
        "{markdown}"
    );
    assert_eq!(
        (&finding["number"], &finding["check"]),
        (&"V8".into(), &"errors".into()),
        "{finding}"
    );
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
        "<script>", "<img", "[x](y)", "**bold**", "\n# ", " | b", "@octocat", "$x$", "~~y",
        "\u{202e}", " `c`",
    ] {
        assert!(!markdown.contains(markup), "{markup}: {markdown}");
    }
}

#[test]
fn markdown_of_any_record_fits_a_comment_and_says_what_it_leaves_out() {
    let markdown = as_markdown(&many_variants(200, &"名 & ".repeat(60)));
    let length = markdown.encode_utf16().count();
    assert!((40_000..=65_536).contains(&length), "{length}");
    assert!(
        markdown.starts_with("### 199 verdicts: "),
        "{}",
        &markdown[..200]
    );
    assert_eq!(
        markdown.matches("<details>").count(),
        markdown.matches("</details>").count()
    );
    assert!(
        markdown.contains(" more that a comment has no room for; `--format text` has all"),
        "{markdown}"
    );
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

fn read_on(record: &Record, here: &MachineFingerprint) -> String {
    let conclusion = conclude(record);
    let measured = MeasuredRecord {
        here: Some(here),
        ..MeasuredRecord::new(record, &conclusion, None)
    };
    markdown(&measured.document())
}

#[test]
fn a_record_of_another_machine_says_so() {
    let mut record = kept();
    record.header.environment.cpu_model = Some("Arm Neoverse-N1".into());
    let other = MachineFingerprint {
        cpu_model: Some("AMD EPYC 7B13".into()),
        ..MachineFingerprint::default()
    };
    let text = read_on(&record, &other);
    let said =
        "Arm Neoverse-N1; not as where this is read: processor Arm Neoverse-N1 and AMD EPYC 7B13";
    assert!(text.contains(said), "{text}");
    let here = record.header.environment.clone();
    assert!(!read_on(&record, &here).contains("not as where this is read"));
}
