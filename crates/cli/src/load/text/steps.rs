//! The steps of a rate as one table, a line for each. Pure; what was kept is judged in `kept`.

use std::fmt::Write;

use report::{rate, share};

use super::{
    LABEL, NOTHING, capacity, client, count, duration, notes, of, p99_ns, quantile, requested, shown,
};
use crate::load::outcome::Outcome;
use crate::load::series::Series;
use load::Until;

const COLUMNS: [&str; 10] =
    ["asked", "due", "sent", "good", "p50", "p99", "p99.9", "queued", "late", "verdict"];
/// The column that says the same as `asked` where that is a rate.
const DUE: usize = 1;
const GAP: usize = 2;

type Row = [String; COLUMNS.len()];

/// Renders a series of steps.
pub fn render(series: &Series) -> String {
    let Some(first) = series.steps.first() else { return String::new() };
    let mut text = format!("{}\n{}\n\n", requested(first), asked(series, first));
    if let Some(void) = series.void() {
        let _ = writeln!(text, "{void}\n");
    }
    if let Some(measured) = &series.capacity {
        let _ = writeln!(text, "{:<LABEL$}{}\n", "Capacity", capacity(measured));
    }
    let rows: Vec<Row> = series.steps.iter().map(row).collect();
    let columns: Vec<usize> =
        (0..COLUMNS.len()).filter(|&column| column != DUE || series.capacity.is_some()).collect();
    text += &table(&rows, &columns);
    text += "\np50 to p99.9: response time, from when a request was due. late: how late the client\n\
             sent at p99 where a connection was free.\n";
    text += &notes(series.caveats_of_steps().iter().chain(&series.caveats()));
    text + &notes(series.differences().iter().copied())
}

fn asked(series: &Series, first: &Outcome) -> String {
    let each = match first.until {
        Until::Elapsed(length) => format!("{:.1} s", length.as_secs_f64()),
        Until::Requests(total) => format!("{} requests", count(total)),
    };
    let spread = first.asked().map_or("", |asked| asked.process());
    format!("{}, open loop, {spread}", client(first, &format!("{} steps of {each}", series.planned)))
}

fn row(step: &Outcome) -> Row {
    let nothing = || NOTHING.to_owned();
    let open = step.slice.open.as_ref();
    let at = |q| open.and_then(|open| shown(&open.response, q)).map_or_else(nothing, quantile);
    [
        step.ask.map_or_else(nothing, |ask| ask.to_string()),
        step.asked().map_or_else(nothing, |asked| of(asked.rate)),
        step.sent_per_s().map_or_else(nothing, rate),
        step.throughput_per_s().filter(|_| step.void().is_none()).map_or_else(nothing, rate),
        at(0.5),
        at(0.99),
        at(0.999),
        step.queued_share().map_or_else(nothing, share),
        open.and_then(|open| p99_ns(&open.schedule_lag)).map_or_else(nothing, duration),
        step.kept().map_or("", |kept| kept.words()).to_owned(),
    ]
}

/// These columns of the rows below their names: all to the right but the last, which is words.
fn table(rows: &[Row], columns: &[usize]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        let gap = if column == 0 { 0 } else { GAP };
        cells.chain([COLUMNS[column].len()]).max().unwrap_or(0) + gap
    };
    let line = |cell: &dyn Fn(usize) -> String| {
        let cells = columns.iter().map(|&column| match column {
            _ if column + 1 == COLUMNS.len() => format!("   {}\n", cell(column)),
            _ => format!("{:>width$}", cell(column), width = width(column)),
        });
        cells.collect::<String>()
    };
    let rows = rows.iter().map(|row| line(&|column| row[column].clone()));
    line(&|column| COLUMNS[column].to_owned()) + &rows.collect::<String>()
}
