//! CSV of a record in the repository, as other programs read it.

use proofload_report::{MeasuredRecord, Report};
use record::Record;

use crate::records::{factorial, kept, slices};

fn figures(record: &Record) -> String {
    let conclusion = analysis::conclude(record);
    let figures = MeasuredRecord::new(record, &conclusion, None)
        .figures()
        .expect("it has figures");
    proofload_report::csv(&figures)
}

/// The fields of each row, the heading first.
fn rows(text: &str) -> Vec<Vec<String>> {
    let mut reader = ::csv::ReaderBuilder::new()
        .has_headers(false)
        .from_reader(text.as_bytes());
    let row = |row: ::csv::StringRecord| row.iter().map(str::to_owned).collect();
    reader
        .records()
        .map(|read| row(read.expect("a row as long as the first")))
        .collect()
}

#[test]
fn there_is_a_row_for_each_variant_block_and_metric_with_figures_that_read_back() {
    let mut record = factorial(2, 0.0);
    record.blocks[3].dropped = Some("steal 12 %".into());
    record.header.plan.variants[1].name = "=HYPERLINK(\"http://x\",\"a\"), \n\"b\"".into();
    let rows = rows(&figures(&record));
    let heading = "experiment variant factor.node_env factor.body block dropped metric unit value requests failed invalid";
    assert_eq!(rows[0], heading.split(' ').collect::<Vec<_>>());
    assert_eq!(rows.len(), 1 + 5 * 10 * 3);
    assert_eq!(rows[31][1], "'=HYPERLINK(\"http://x\",\"a\"),  \"b\"");
    let dropped: Vec<&str> = rows
        .iter()
        .filter(|row| row[5] == "true")
        .map(|row| row[4].as_str())
        .collect();
    assert_eq!(dropped, ["4"; 15]);
    let series = analysis::series(&record);
    let of = |metric: usize, variant: usize, block: usize| series[metric].values[variant][block];
    let first: Vec<&str> = rows[1].iter().map(String::as_str).collect();
    assert_eq!(
        first[..7],
        [
            "simulated",
            "development · small",
            "development",
            "small",
            "1",
            "false",
            "throughput"
        ]
    );
    assert_eq!((first[7], first[8].parse().ok()), ("1/s", of(0, 0, 0)));
    let last = rows.last().expect("rows");
    assert_eq!(
        (last[6].as_str(), last[7].as_str()),
        ("peak_memory", "bytes")
    );
    assert_eq!(last[8].parse().ok(), of(2, 4, 9));
}

#[test]
fn what_was_not_measured_is_empty_and_no_zero() {
    let mut record = kept();
    for slice in slices(&mut record) {
        (slice.counts.successful, slice.counts.successful_in_window) = (0, 0);
    }
    let rows = rows(&figures(&record));
    let throughput: Vec<_> = rows.iter().filter(|row| row[5] == "throughput").collect();
    assert_eq!(throughput.len(), 20);
    let is_empty = |row: &&Vec<String>| row[7].is_empty() && row[8] == row[9] && row[8] != "0";
    assert!(throughput.iter().all(is_empty), "{throughput:?}");
}
