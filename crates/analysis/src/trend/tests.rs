//! Trends of made essentials: what is joined, what is left out and counted.

use record::{EndReason, Ended, Environment};
use stats::Estimate;

use super::*;
use crate::Outcome;

fn essentials(number: usize, ratio: f64) -> Essentials {
    let (low, high) = (ratio * 0.98, ratio * 1.02);
    let estimate = Estimate { blocks: 10, ratio, low, high, sd_log: 0.02, critical_t: 3.0 };
    let compared = |metric, outcome| Compared {
        label: "b against a".into(),
        of: ["b".into(), "a".into()],
        metric,
        outcome,
        estimate: Some(estimate),
    };
    let figure = |variant: &str, value| Figure {
        variant: variant.into(),
        metric: Metric::Throughput,
        value,
        blocks: 10,
        interval: None,
        standard_error: None,
    };
    Essentials {
        experiment: "x".into(),
        question: None,
        created: format!("2026-01-01T00:{number:02}:00Z"),
        proofload: "0.1.0".into(),
        seed: 1,
        environment: Environment::default(),
        plan: "p".into(),
        metric: Metric::Throughput,
        blocks: 10,
        blocks_dropped: 0,
        ended: Some(Ended { reason: EndReason::Decided, seconds: 60.0 }),
        compared: vec![
            compared(Metric::Throughput, Some(Outcome::Better)),
            compared(Metric::CpuPerRequest, None),
        ],
        figures: vec![figure("a", 100.0), figure("b", 100.0 * ratio)],
        void: vec![],
        warnings: 0,
        captures: 0,
        damage: vec![],
    }
}

fn joined(all: &[Essentials], asked: Asked<'_>) -> Trend {
    let dated: Vec<Dated> = all.iter().map(|essentials| Dated { name: "r", essentials }).collect();
    trend(&dated, asked)
}

#[test]
fn a_step_is_found_where_it_is_and_never_across_plans() {
    let ratio = |number: usize| 1.0 + 0.004 * (number % 3) as f64 + if number < 10 { 0.0 } else { 0.1 };
    let mut all: Vec<Essentials> = (0..20).map(|number| essentials(number, ratio(number))).collect();
    let found = joined(&all, Asked::default());
    assert_eq!(
        found.lines.iter().map(|line| line.of).collect::<Vec<_>>(),
        [LineOf::Ratio, LineOf::Figure, LineOf::Figure]
    );
    let changes = &found.lines[0].changes;
    assert_eq!(changes.iter().map(|change| change.at).collect::<Vec<_>>(), [10]);
    assert!((changes[0].after / changes[0].before - 1.1).abs() < 0.005, "{changes:?}");
    // Of what has no standard error nothing is claimed.
    assert!(found.lines[1..].iter().all(|line| line.changes.is_empty() && line.points.len() == 20));
    for essentials in &mut all[10..] {
        essentials.plan = "q".into();
    }
    let apart = joined(&all, Asked::default());
    assert_eq!(apart.stretches.iter().map(|stretch| stretch.first).collect::<Vec<_>>(), [0, 10]);
    assert!(apart.lines.iter().all(|line| line.changes.is_empty()));
}

#[test]
fn what_is_void_unfinished_or_has_no_such_figure_is_left_out_and_counted() {
    let mut all: Vec<Essentials> = (0..5).map(|number| essentials(number, 1.0)).collect();
    (all[0].compared, all[0].figures, all[0].void) = (vec![], vec![], vec!["V8".into()]);
    all[1].ended = None;
    (all[2].compared, all[2].figures) = (vec![], vec![]);
    let found = joined(&all, Asked { metric: None, variant: Some("a") });
    assert_eq!((found.void, found.unfinished, found.without), (1, 1, 1));
    assert_eq!(found.records.len(), 2);
    let names: Vec<&str> = found.lines.iter().map(|line| line.name.as_str()).collect();
    assert_eq!(names, ["b against a", "a"]);
    let cpu = joined(&all, Asked { metric: Some(Metric::CpuPerRequest), variant: None });
    assert_eq!((cpu.lines.len(), cpu.records.len()), (1, 2));
    assert_eq!(joined(&[], Asked::default()).lines, []);
}
