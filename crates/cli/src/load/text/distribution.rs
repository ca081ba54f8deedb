//! The longer latency distribution: a line for each quantile, a column for each way of counting. Pure.

use stats::Latencies;

use super::{COLUMN, NOTHING, quantile, shown};
use crate::load::outcome::Outcome;

const QUANTILES: [(&str, f64); 8] = [
    ("  p50", 0.5),
    ("  p75", 0.75),
    ("  p90", 0.9),
    ("  p95", 0.95),
    ("  p99", 0.99),
    ("  p99.9", 0.999),
    ("  p99.99", 0.9999),
    ("  max", 1.0),
];
/// Wide enough for the names of the columns.
const GAP: usize = 2;

/// As the lines of the table: a label and what belongs to it.
pub fn lines(outcome: &Outcome) -> Vec<(&'static str, String)> {
    let slice = &outcome.slice;
    let mut columns = match &slice.open {
        None => vec![("complete", &slice.latency)],
        Some(open) => vec![("response", &open.response), ("service", &slice.latency)],
    };
    columns.push(("first byte", &slice.first_byte));
    let opening = [("connect", &slice.connect), ("handshake", &slice.handshake)];
    columns.extend(opening.into_iter().filter(|(_, latencies)| !latencies.is_empty()));
    let row = |cell: &dyn Fn(&str, &Latencies) -> String| {
        let cells = columns.iter().map(|(name, latencies)| cell(name, latencies));
        cells.map(|cell| format!("{cell:>width$}", width = COLUMN + GAP)).collect::<String>()
    };
    let mut lines = vec![("Latency", row(&|name, _| name.to_owned()))];
    lines.extend(QUANTILES.map(|(label, q)| {
        (label, row(&|_, latencies| shown(latencies, q).map_or(NOTHING.into(), quantile)))
    }));
    lines
}
