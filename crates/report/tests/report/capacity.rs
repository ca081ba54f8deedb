//! First screens of capacities, read as by somebody who sees them for the first time: how many, what limits,
//! what to do.

use analysis::{Capacity, Conclusion, Erratic, LimitedBy, RatePoint, conclude};
use proofload_report::{MeasuredRecord, Report, markdown};
use record::{EndReason, Record};
use stats::Interval;

use crate::records::kept_until;

/// A record of one variant whose SLO is p99 < 50ms.
fn record(reason: EndReason) -> Record {
    let mut record = kept_until(4, reason, 118.0);
    let plan = &mut record.header.plan;
    plan.question = Some("How many requests a second within p99 < 50ms?".to_owned());
    plan.design.slo = vec![plan::slo("p99 < 50ms").expect("a limit")];
    plan.variants.truncate(1);
    plan.comparisons.clear();
    record
}

fn point(per_s: f64, p99_ms: Option<f64>) -> RatePoint {
    let p99_us = p99_ms.map(|ms| ms * 1e3);
    RatePoint {
        per_s,
        requests: (per_s * 8.0) as u64,
        p50_us: p99_us.map(|us| us / 6.0),
        p90_us: p99_us.map(|us| us / 2.0),
        p99_us,
        slo: vec![p99_us],
        failed_share: 0.0,
        cores: Some(per_s / 2_400.0),
        held: Some(p99_ms.is_some_and(|ms| ms < 50.0)),
        is_limited: false,
    }
}

/// A queue: the limit is reached at 2,410/s.
fn found(variant: &str) -> Capacity {
    let curve = [
        point(600.0, Some(2.4)),
        point(1_200.0, Some(4.1)),
        point(1_800.0, Some(9.0)),
        point(2_160.0, Some(21.0)),
        point(2_400.0, Some(48.0)),
        point(2_450.0, Some(71.0)),
    ];
    Capacity {
        variant: variant.to_owned(),
        capacity_per_s: Some(2_350.0),
        at_least: false,
        reached_per_s: Some(2_410.0),
        reached_interval: Some(Interval {
            low: 2_350.0,
            high: 2_480.0,
        }),
        met_first: Some("p99 < 50ms".to_owned()),
        bracket: [Some(2_400.0), Some(2_450.0)],
        connections: Some(256),
        erratic: None,
        saturated_per_s: Some(2_530.0),
        saturated_cores: Some(0.99),
        limited_by: LimitedBy::Cpu,
        curve: curve.into(),
        breaks_at_per_s: None,
        seconds_for_five_percent: None,
        overload: None,
        bias: 1.0,
    }
}

fn without_number(curve: Vec<RatePoint>, bracket: [Option<f64>; 2]) -> Capacity {
    Capacity {
        capacity_per_s: None,
        reached_per_s: None,
        reached_interval: None,
        met_first: None,
        bracket,
        curve,
        ..found("api")
    }
}

fn concluded(record: &Record, capacities: Vec<Capacity>) -> Conclusion {
    Conclusion {
        capacities,
        comparisons: Vec::new(),
        findings: Vec::new(),
        ..conclude(record)
    }
}

fn screen(reason: EndReason, capacities: Vec<Capacity>, width: usize) -> String {
    let record = record(reason);
    let conclusion = concluded(&record, capacities);
    let measured = MeasuredRecord {
        is_latest: true,
        ..MeasuredRecord::new(&record, &conclusion, None)
    };
    let drawn = crate::drawn(&measured.brief(), width);
    crate::fits(&drawn, width);
    drawn
}

#[test]
fn each_screen_has_one_number() {
    let client = Capacity {
        at_least: true,
        limited_by: LimitedBy::Client,
        ..found("api")
    };
    let nothing = [point(1.0, Some(55.0)), point(600.0, Some(90.0))];
    let searched = [point(2_100.0, Some(20.0)), point(2_520.0, None)];
    let paused = Capacity {
        erratic: Some(Erratic {
            broke_per_s: 1_200.0,
            met_per_s: 2_410.0,
            held_per_s: Some(600.0),
            by_client: false,
        }),
        ..without_number(
            vec![
                point(600.0, Some(2.4)),
                point(1_200.0, Some(81.0)),
                point(2_160.0, Some(21.0)),
            ],
            [None, None],
        )
    };
    let short = EndReason::BudgetTooSmall { needed_s: 89 };
    let screens = [
        ("holds, 80", EndReason::Measured, vec![found("api")], 80),
        ("holds, 120", EndReason::Measured, vec![found("api")], 120),
        ("client", EndReason::Measured, vec![client], 80),
        (
            "nothing holds",
            EndReason::Measured,
            vec![without_number(nothing.into(), [None, Some(1.0)])],
            80,
        ),
        (
            "too short",
            short,
            vec![without_number(
                searched.into(),
                [Some(2_100.0), Some(2_520.0)],
            )],
            80,
        ),
        ("pauses", EndReason::Measured, vec![paused], 80),
    ];
    let drawn = screens.map(|(name, reason, capacities, width)| {
        format!("── {name}\n{}", screen(reason, capacities, width))
    });
    insta::assert_snapshot!("screens_of_capacities", drawn.join("\n"));
}

#[test]
fn markdown_has_the_chart_as_a_code_block() {
    let record = record(EndReason::Measured);
    let conclusion = concluded(&record, vec![found("a`b"), found("two")]);
    let measured = MeasuredRecord::new(&record, &conclusion, None);
    let text = markdown(&measured.document());
    let chart = text.split("```").nth(1).expect("a code block");
    assert!(
        chart.contains("p99 < 50ms") && chart.contains("2,350/s"),
        "{text}"
    );
    assert_eq!(text.matches("```").count(), 2, "{text}");
    assert_eq!(measured.data()["capacities"][0]["capacity_per_s"], 2_350.0);
}
