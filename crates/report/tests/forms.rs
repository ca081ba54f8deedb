//! What people read, word for word, of a record that is kept in the repository.

use audit::conclude;
use plan::{Metric, Rate};
use proofload_report::{Sheet, json, markdown};
use record::{EndReason, Ended, OpenLoop, RateChosen, Record};
use stats::Latencies;

mod records;

use records::{as_text, kept};

/// The kept record as if it had been in open loop, with response times of its own.
fn in_open_loop(metric: Metric) -> Record {
    let mut record = kept();
    record.header.plan.design.metric = metric;
    record.header.plan.design.rate = Some(Rate::ShareOfCapacity(0.6));
    let capacities_per_s = vec![2030.0, 2620.0];
    record.rate = Some(RateChosen { per_s: 1218.0, share: Some(0.6), capacities_per_s });
    for slice in record.blocks.iter_mut().flat_map(|b| &mut b.trials).flat_map(|t| &mut t.slices) {
        let mut response = Latencies::new();
        for index in 0..1000 {
            let unit_ns = 1_000_000 + 10_000 * u64::from(slice.block) * (1 + slice.variant as u64);
            response.record((unit_ns + 3000 * index) * (5 - slice.variant as u64) / 4);
        }
        (slice.sent, slice.answered, slice.ok, slice.ok_in_window) = (1000, 1000, 1000, 1000);
        slice.body_bytes = 1_000_000;
        // More than one in a hundred of the first variant's were given up late: its p99 is only bounded, its p90 known.
        (0..(1 - slice.variant) * 15).for_each(|_| response.censor(6_000_000));
        slice.open = Some(Box::new(OpenLoop {
            rate_per_s: 1218.0,
            intended: 1000,
            sent_in_window: 1000,
            unsent: 0,
            queued: 0,
            response,
            schedule_lag: Latencies::new(),
        }));
    }
    record
}

#[test]
fn text_of_a_latency_experiment() {
    insta::assert_snapshot!(as_text(&in_open_loop(Metric::P90)));
}

#[test]
fn markdown_of_a_latency_experiment() {
    let record = in_open_loop(Metric::P90);
    insta::assert_snapshot!(markdown(&Sheet::new(&record, &conclude(&record))));
}

#[test]
fn json_of_a_latency_experiment_has_its_rate_and_response_times_and_no_closed_loop() {
    let record = in_open_loop(Metric::P50);
    let json = json(&record, &conclude(&record));
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
    let mut record = kept();
    for slice in record.blocks.iter_mut().flat_map(|b| &mut b.trials).flat_map(|t| &mut t.slices) {
        slice.ok -= slice.ok / 10;
        slice.timed_out = slice.ok / 10;
    }
    insta::assert_snapshot!(as_text(&record));
}

#[test]
fn findings_have_their_number_in_markdown_and_json() {
    let mut record = kept();
    record
        .blocks
        .iter_mut()
        .flat_map(|b| &mut b.trials)
        .flat_map(|t| &mut t.slices)
        .for_each(|slice| slice.ok /= 2);
    let conclusion = conclude(&record);
    let markdown = markdown(&Sheet::new(&record, &conclusion));
    assert!(markdown.contains("\n> **Void V8**: level-0: "), "{markdown}");
    assert!(markdown.contains("\nWhy, and what else may be done: `proofload validity V8`\n"), "{markdown}");
    let finding = &json(&record, &conclusion)["findings"][0];
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
    insta::assert_snapshot!(markdown(&Sheet::new(&record, &conclude(&record))));
}

#[test]
fn names_from_outside_do_nothing_in_markdown() {
    let mut record = kept();
    record.header.plan.question = Some("<script>alert(1)</script> | **bold** [x](y)".into());
    let markdown = markdown(&Sheet::new(&record, &conclude(&record)));
    assert!(!markdown.contains("<script>") && !markdown.contains("[x](y)"), "{markdown}");
}

#[test]
fn json_has_figures_with_units_and_no_empty_ones() {
    let record = kept();
    let json = json(&record, &conclude(&record));
    assert_eq!(json["report_version"], 1);
    assert_eq!(json["comparisons"][0]["outcome"], "better");
    let ratio = json["comparisons"][0]["estimate"]["ratio"].as_f64().expect("a number");
    assert!((1.1..1.5).contains(&ratio), "{ratio}");
    assert!(json["variants"][0]["throughput_per_s"].as_f64().is_some_and(|rate| rate > 1000.0));
    assert_eq!(json["closed_loop_latency"][0]["quantiles"][0]["percent"], 50.0);
}
