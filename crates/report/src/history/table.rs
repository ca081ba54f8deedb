//! A trend as CSV: one row a point, for a spreadsheet.

use analysis::{Line, LineOf, Point, Trend};
use plan::Metric;

const HEADS: [&str; 14] = [
    "of",
    "name",
    "metric",
    "unit",
    "record",
    "created",
    "value",
    "low",
    "high",
    "standard_error_log",
    "blocks",
    "plan",
    "change_ratio",
    "change_p",
];

/// All points of all lines. Fields without a value are empty.
pub(super) fn csv(trend: &Trend) -> String {
    let mut rows = vec![HEADS.map(str::to_owned)];
    for line in &trend.lines {
        rows.extend((0..line.points.len()).map(|index| row(trend, line, index)));
    }
    let mut out = csv::Writer::from_writer(Vec::new());
    // Into memory nothing fails to be written.
    let written = rows.iter().try_for_each(|row| out.write_record(row)).ok();
    let bytes = written.and_then(|()| out.into_inner().ok()).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn row(trend: &Trend, line: &Line, index: usize) -> [String; 14] {
    let point = &line.points[index];
    let Point { record, value, interval, standard_error, blocks } = *point;
    let stamp = &trend.records[record];
    let stretch = trend.stretches.iter().rfind(|stretch| stretch.first <= record);
    let change = line.changes.iter().find(|change| change.at == index);
    let number = |number: Option<f64>| number.map(|number| number.to_string()).unwrap_or_default();
    [
        if line.of == LineOf::Ratio { "ratio" } else { "figure" }.to_owned(),
        line.name.clone(),
        trend.metric.name().to_owned(),
        unit(line.of, trend.metric).to_owned(),
        stamp.name.clone(),
        stamp.created.clone(),
        value.to_string(),
        number(interval.map(|(low, _)| low)),
        number(interval.map(|(_, high)| high)),
        number(standard_error),
        blocks.to_string(),
        stretch.map(|stretch| stretch.plan.clone()).unwrap_or_default(),
        number(change.map(|change| change.after / change.before)),
        number(change.map(|change| change.p)),
    ]
}

fn unit(of: LineOf, metric: Metric) -> &'static str {
    match of {
        LineOf::Ratio => "ratio",
        LineOf::Figure => crate::spreadsheet::unit(metric.unit()),
    }
}
