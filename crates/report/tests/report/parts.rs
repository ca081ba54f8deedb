//! Snapshots of breakdowns: the cost of each service, the results of each request, and a variant that never
//! succeeded.

use analysis::conclude;
use plan::{JudgedEndpoint, Metric, PlannedRate, Request};
use proofload_report::so_far;
use record::{EndpointCounts, Record, ServiceStarted, ServiceUse};

use crate::records::{as_json, as_markdown, as_text, kept, part, slices};

/// The stored record as if level-1 had a proxy of two workers before the service, and a third process that
/// distributes connections to them.
fn with_proxy() -> Record {
    let mut record = kept();
    for trial in record.blocks.iter_mut().flat_map(|block| &mut block.trials) {
        let proxied = trial.started.variant == 1;
        let started = |service: &str, workers| ServiceStarted {
            service: service.into(),
            workers,
            ..ServiceStarted::default()
        };
        trial.started.services = vec![started("api", None)];
        let ended = trial.ended.as_mut().expect("it ended");
        ended.peak_rss_bytes_by_service = [("api".to_owned(), 90_000_000)].into();
        if proxied {
            trial.started.services.push(started("proxy", Some(2)));
            ended
                .peak_rss_bytes_by_service
                .insert("proxy".into(), 14_300_000);
            ended.peak_rss_bytes += 14_300_000;
        }
        for slice in &mut trial.slices {
            slice.services[0].cpu_by_process_ns = vec![slice.services[0].cpu_ns];
            if proxied {
                let cpu_ns = slice.services[0].cpu_ns / 4;
                let cpu_by_process_ns = vec![cpu_ns * 60 / 100, cpu_ns * 39 / 100, cpu_ns / 100];
                let used = slice.services[0].clone();
                let proxy = ServiceUse {
                    service: "proxy".into(),
                    cpu_ns,
                    processes: 3,
                    cpu_by_process_ns,
                    ..used
                };
                slice.services.push(proxy);
            }
        }
    }
    record
}

#[test]
fn each_service_is_told_in_every_form() {
    let record = with_proxy();
    insta::assert_snapshot!(
        "text_of_several_services",
        part(&as_text(&record), "Does the setting", "machine  ")
    );
    insta::assert_snapshot!(
        "markdown_and_json_have_the_services_too",
        part(&as_markdown(&record), "Cost by service", "<details>")
    );
    let proxy = &as_json(&record)["variants"][1]["services"][1];
    assert_eq!(
        (&proxy["service"], &proxy["serving"]),
        (&"proxy".into(), &2.into())
    );
    assert_eq!(
        (&proxy["workers"], &proxy["peak_rss_bytes"]),
        (&2.into(), &14_300_000.into())
    );
    assert!(
        proxy["cpu_share"]
            .as_f64()
            .is_some_and(|share| (share - 0.2).abs() < 0.01),
        "{proxy}"
    );
}

#[test]
fn what_a_candidate_adds_is_told_in_its_unit_beside_the_ratio() {
    let mut record = with_proxy();
    record.header.plan.design.metric = Metric::CpuPerRequest;
    insta::assert_snapshot!(part(&as_text(&record), "level-1 vs", " variant "));
    assert_eq!(
        as_json(&record)["comparisons"][0]["difference"]["unit"],
        "us"
    );
}

/// As if each slice had two requests.
fn mixed() -> Record {
    let mut record = kept();
    let request = |name: &str, weight| Request {
        name: name.into(),
        weight,
        method: "GET".into(),
        path: format!("/{name}"),
        ..Request::default()
    };
    for variant in &mut record.header.plan.variants {
        variant.load.requests = vec![request("ping", 99), request("auth", 1)];
    }
    for slice in slices(&mut record) {
        let auth = slice.counts.sent / 100;
        let failed = u64::from(slice.block == 1 && slice.variant == 1);
        let counts = |name: &str, sent, failed| {
            let successful = sent - failed;
            EndpointCounts {
                sent,
                successful,
                ..EndpointCounts::new(name)
            }
        };
        slice.counts.endpoints = vec![
            counts("ping", slice.counts.sent - auth, 0),
            counts("auth", auth, failed),
        ];
        slice.counts.successful -= failed;
    }
    record
}

#[test]
fn text_of_several_requests() {
    let text = as_text(&mixed());
    insta::assert_snapshot!(part(&text, " variant ", "machine  "));
}

#[test]
fn a_latency_of_one_request_says_whose_it_is() {
    let mut record = mixed();
    let design = &mut record.header.plan.design;
    (design.metric, design.rate) = (Metric::P99, Some(PlannedRate::PerSecond(1000.0)));
    design.endpoint = Some(JudgedEndpoint {
        name: "auth".into(),
        share: 0.01,
    });
    record.ended = None;
    record.blocks.truncate(5);
    let text = as_markdown(&record);
    let load = text
        .lines()
        .find(|line| line.starts_with("- load: "))
        .unwrap_or_default();
    assert!(
        load.ends_with("response times of auth; warm-up in closed loop"),
        "{load}"
    );
}

#[test]
fn a_variant_without_a_success_has_an_answer_and_no_number() {
    let mut record = kept();
    for slice in slices(&mut record).filter(|slice| slice.variant == 1) {
        slice.counts.timed_out = slice.counts.sent;
        (
            slice.counts.responses,
            slice.counts.successful,
            slice.counts.successful_in_window,
        ) = (0, 0, 0);
        (slice.counts.body_bytes, slice.counts.wire_bytes) = (0, 0);
        slice.counts.status.clear();
    }
    let text = as_text(&record);
    insta::assert_snapshot!(part(&text, "Does the setting", "machine  "));
    let conclusion = conclude(&record);
    assert_eq!(
        so_far(&conclusion),
        ["level-1 vs level-0: level-1: no response within 5s (0 of 42,369)"]
    );
    let json = as_json(&record);
    assert_eq!(json["comparisons"][0]["outcome"], "no_success");
    assert_eq!(json["comparisons"][0]["estimate"], serde_json::Value::Null);
    assert_eq!(json["variants"][1]["no_success"]["requests"], 42_369);
}
