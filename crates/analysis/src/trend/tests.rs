//! Tests of trends of synthetic summaries: joining, and counting of omitted records.

use std::path::Path;
use std::sync::LazyLock;

use stats::Estimate;

use super::*;
use crate::conclude;

/// Creates a summary from the stored record with the given ratio of the candidate, and with figures without
/// standard errors.
fn essentials(number: usize, ratio: f64) -> Essentials {
    static KEPT: LazyLock<Essentials> = LazyLock::new(|| {
        let path = Path::new(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../record/tests/records/v1"
        ));
        let record = record::open(path).expect("the kept record opens");
        Essentials::of(&record, &conclude(&record))
    });
    let mut made = KEPT.clone();
    made.created = format!("2026-01-01T00:{number:02}:00Z");
    let (low, high) = (ratio * 0.98, ratio * 1.02);
    let estimate = Estimate {
        blocks: 10,
        ratio,
        low,
        high,
        sd_log: 0.02,
        critical_t: 3.0,
    };
    made.compared
        .iter_mut()
        .for_each(|compared| compared.estimate = Some(estimate));
    for figure in &mut made.figures {
        (figure.value, figure.interval, figure.standard_error) = (100.0, None, None);
    }
    made
}

fn joined(all: &[Essentials], asked: TrendQuery<'_>) -> ExperimentTrend {
    let dated: Vec<Dated> = all
        .iter()
        .map(|essentials| Dated {
            name: "r",
            essentials,
        })
        .collect();
    trend(&dated, asked)
}

#[test]
fn a_step_is_found_where_it_is_and_never_across_plans() {
    let ratio =
        |number: usize| 1.0 + 0.004 * (number % 3) as f64 + if number < 10 { 0.0 } else { 0.1 };
    let all: Vec<Essentials> = (0..20)
        .map(|number| essentials(number, ratio(number)))
        .collect();
    let found = joined(&all, TrendQuery::default());
    let kinds: Vec<LineOf> = found.lines.iter().map(|line| line.of).collect();
    assert_eq!(kinds, [LineOf::Ratio, LineOf::Figure, LineOf::Figure]);
    let changes = &found.lines[0].changes;
    assert_eq!(
        changes.iter().map(|change| change.at).collect::<Vec<_>>(),
        [10]
    );
    assert!(
        (changes[0].after / changes[0].before - 1.1).abs() < 0.005,
        "{changes:?}"
    );
    // Without a standard error no change is reported.
    assert!(
        found.lines[1..]
            .iter()
            .all(|line| line.changes.is_empty() && line.points.len() == 20)
    );
    let others: [fn(&mut Essentials); 2] = [
        |of| of.conditions.per_core ^= true,
        |of| of.plan = "q".into(),
    ];
    for other in others {
        let mut all = all.clone();
        all[10..].iter_mut().for_each(other);
        let apart = joined(&all, TrendQuery::default());
        assert_eq!(
            apart
                .stretches
                .iter()
                .map(|stretch| stretch.first)
                .collect::<Vec<_>>(),
            [0, 10]
        );
        assert!(apart.lines.iter().all(|line| line.changes.is_empty()));
    }
}

#[test]
fn what_is_void_unfinished_or_has_no_such_figure_is_left_out_and_counted() {
    let mut all: Vec<Essentials> = (0..5).map(|number| essentials(number, 1.0)).collect();
    (all[0].compared, all[0].figures, all[0].void) = (vec![], vec![], vec!["V8".into()]);
    all[1].ended = None;
    (all[2].compared, all[2].figures) = (vec![], vec![]);
    let found = joined(
        &all,
        TrendQuery {
            metric: None,
            variant: Some("level-0"),
        },
    );
    assert_eq!((found.void, found.unfinished, found.without), (1, 1, 1));
    assert_eq!(found.records.len(), 2);
    let names: Vec<&str> = found.lines.iter().map(|line| line.name.as_str()).collect();
    assert_eq!(names, ["level-1 vs level-0", "level-0"]);
    let cpu = joined(
        &all,
        TrendQuery {
            metric: Some(Metric::CpuPerRequest),
            variant: None,
        },
    );
    assert_eq!((cpu.lines.len(), cpu.records.len()), (3, 2));
    assert_eq!(joined(&[], TrendQuery::default()).lines, []);
}
