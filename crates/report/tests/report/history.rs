//! Records over time as text: lists and trends that fit the width, with the result of each record.

use std::sync::LazyLock;

use analysis::{
    ComparedMetric, Dated, Essentials, Outcome, TrendQuery, conclude, machine_mark, trend,
};
use plan::Metric;
use proofload_report::history::{ListedRecord, RecordList, Trended};
use proofload_report::{Report, csv};
use record::EndReason;

use crate::fits;

/// Essentials of the stored record as if made on that day, with all ratios and figures of the candidate
/// multiplied.
fn essentials(day: u32, times: f64) -> Essentials {
    static KEPT: LazyLock<Essentials> = LazyLock::new(|| {
        let record = crate::records::kept();
        Essentials::of(&record, &conclude(&record))
    });
    let mut made = KEPT.clone();
    made.created = format!(
        "2026-{:02}-{:02}T08:30:00Z",
        1 + (day - 1) / 28,
        1 + (day - 1) % 28
    );
    made.environment.cpu_model = Some("Simulated CPU".into());
    made.environment.cpus = 2;
    for estimate in made
        .compared
        .iter_mut()
        .filter_map(|compared| compared.estimate.as_mut())
    {
        (estimate.ratio, estimate.low, estimate.high) = (
            estimate.ratio * times,
            estimate.low * times,
            estimate.high * times,
        );
    }
    for figure in made
        .figures
        .iter_mut()
        .filter(|figure| figure.variant == "level-1")
    {
        figure.value *= times;
        figure.interval = figure
            .interval
            .map(|(low, high)| (low * times, high * times));
    }
    made
}

/// Contents of a list, the newest first.
fn listed() -> Vec<(String, Result<Essentials, String>, bool)> {
    let mut void = essentials(3, 1.0);
    void.compared
        .iter_mut()
        .for_each(|one| (one.outcome, one.estimate) = (Some(Outcome::Invalid), None));
    void.void = vec!["V8".into(), "V12".into()];
    let mut several = essentials(4, 1.0);
    let more = ComparedMetric {
        metric: Metric::P99,
        outcome: Some(Outcome::Worse),
        ..several.compared[0].clone()
    };
    several.compared.push(more);
    several.environment.commit = Some("0123456789ab+".into());
    let mut small = essentials(5, 1.0);
    small.compared[0].outcome = Some(Outcome::Inconclusive);
    let mut open = essentials(6, 1.0);
    open.ended = None;
    let mut failed = essentials(2, 1.0);
    if let Some(ended) = &mut failed.ended {
        ended.reason = EndReason::ServiceFailed("it died".into());
    }
    let mut nothing = essentials(2, 1.0);
    (nothing.compared, nothing.figures, nothing.blocks) = (Vec::new(), Vec::new(), 0);
    if let Some(ended) = &mut nothing.ended {
        ended.reason = EndReason::BudgetTooSmall { needed_s: 90 };
    }
    let broken = "records/x/record.json: not a record's header: EOF while parsing a value at line 3 column 0";
    vec![
        ("simulated-20260106-083000".into(), Ok(open.clone()), true),
        ("simulated-20260105-083000".into(), Ok(small), false),
        (
            "größenvergleich-der-配置-mit-sehr-langem-namen-20260104-083000".into(),
            Ok(several),
            false,
        ),
        ("simulated-20260103-083000".into(), Ok(void), false),
        ("simulated-20260102-083000".into(), Ok(failed), false),
        ("capacity-20260102-083000".into(), Ok(nothing), false),
        (
            "simulated-20260101-083000-2".into(),
            Err(broken.into()),
            false,
        ),
        ("simulated-20260101-083000".into(), Ok(open), false),
    ]
}

fn as_list(all: &[(String, Result<Essentials, String>, bool)], width: usize) -> String {
    let records = all.iter().map(|(name, found, running)| ListedRecord {
        name,
        created: found
            .as_ref()
            .map_or("2026-01-01T08:30:00Z", |found| &found.created),
        found: found.as_ref().map_err(String::as_str),
        running: *running,
        machine: found.as_ref().ok().map(|_| machine_mark(0)),
    });
    let records: Vec<ListedRecord<'_>> = records.collect();
    crate::plain(
        &RecordList {
            records: &records,
            tunings: &[],
            hidden: 3,
        },
        width,
    )
}

#[test]
fn a_list_fits_from_60_columns_on() {
    let all = listed();
    for width in 60..=140 {
        fits(&as_list(&all, width), width);
    }
    for width in [60, 140] {
        insta::assert_snapshot!(format!("list_{width}"), as_list(&all, width));
    }
}

fn over_time(width: usize) -> (String, String) {
    // A step of ten per cent after twelve records, another plan at the end.
    let times =
        |day: u32| (1.0 + 0.006 * f64::from(day * 7 % 5)) * if day > 12 { 1.1 } else { 1.0 };
    let mut all: Vec<Essentials> = (1..=24).map(|day| essentials(day, times(day))).collect();
    (all[4].compared, all[4].figures, all[4].void) = (vec![], vec![], vec!["V8".into()]);
    all[23].plan = "another".into();
    let names: Vec<String> = (1..=24).map(|day| format!("simulated-{day:02}")).collect();
    let dated: Vec<Dated<'_>> = names
        .iter()
        .zip(&all)
        .map(|(name, essentials)| Dated { name, essentials })
        .collect();
    let trend = trend(&dated, TrendQuery::default());
    let machine = ("A", &all[0].environment);
    let trended = Trended {
        experiment: "simulated",
        trend: &trend,
        machine,
        elsewhere: 2,
        rows: 15,
    };
    (
        crate::plain(&trended, width),
        csv(&trended.figures().expect("it has figures")),
    )
}

#[test]
fn a_trend_shows_the_step_where_it_is_and_fits_from_60_columns_on() {
    for width in [60, 73, 80, 100, 140] {
        fits(&over_time(width).0, width);
    }
    insta::assert_snapshot!("trend_100", over_time(100).0);
    let csv = over_time(80).1;
    assert_eq!(csv.lines().count(), 1 + 3 * 23, "{csv}");
    let first = "ratio,level-1 vs level-0,throughput,ratio,simulated-01,2026-01-01T08:30:00Z,1.";
    assert!(
        csv.lines().nth(1).is_some_and(|row| row.starts_with(first)),
        "{csv}"
    );
    let changed: Vec<&str> = csv
        .lines()
        .skip(1)
        .filter(|row| !row.ends_with(",,"))
        .collect();
    assert!(
        changed.iter().all(|row| row.contains("simulated-13")),
        "{changed:?}"
    );
}
