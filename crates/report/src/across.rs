//! Comparison of two records, as a document and as JSON. Pure. `analysis` decides what may be compared.

use analysis::{Across, SESSIONS_MIN, Shift};
use model::quantity::{Quantity, intervals};
use plan::Metric;
use record::Record;
use serde_json::{Value, json};
use stats::Interval;

use crate::form::Report;
use crate::validity::explained_by;
use model::document::{Cell, ColumnFit, Document, DocumentPart, NamedText, Table, Tone};

/// Two records and their comparison.
#[derive(Debug)]
pub struct ComparedRecords<'a> {
    /// The earlier one.
    pub before: &'a Record,
    /// The later one.
    pub after: &'a Record,
    /// Result of the comparison.
    pub across: &'a Across,
}

/// Assumption of every comparison of two runs.
const APART: &str = "The runs were not interleaved: what else changed on this machine between them (neighbours on the host, temperature, \
                     updates) is inside. The intervals hold 95 % for all lines together, by how much other runs of the same plan on this \
                     machine differ from one another. A difference that matters deserves one experiment with both as variants.";

impl Report for ComparedRecords<'_> {
    fn document(&self) -> Document {
        let Across {
            findings,
            shifts,
            left_out,
            ..
        } = self.across;
        let of = |name, record: &Record| {
            NamedText::new(
                name,
                format!("{}, {}", record.header.created, record.directory.display()),
            )
        };
        let mut blocks = vec![DocumentPart::Lines(vec![
            of("before", self.before),
            of("after", self.after),
        ])];
        // One table for each metric, because all figures of a metric have the same unit.
        let compared = |metric: &&Metric| shifts.iter().any(|shift| shift.metric == **metric);
        blocks.extend(
            Metric::ALL
                .iter()
                .filter(compared)
                .map(|metric| DocumentPart::Table(table(*metric, shifts))),
        );
        let remarks = findings.iter().map(Into::into).collect();
        blocks.push(DocumentPart::Findings(
            remarks,
            explained_by(findings.iter()),
        ));
        let left_out = left_out.iter().map(|line| format!("not compared: {line}"));
        blocks.extend(left_out.map(|line| DocumentPart::Paragraph(Tone::Plain, line)));
        if !shifts.is_empty() {
            blocks.push(DocumentPart::Paragraph(Tone::Faint, APART.to_owned()));
        }
        let plan = &self.after.header.plan;
        Document::new(plan.question.as_ref().unwrap_or(&plan.name), blocks)
    }

    fn data(&self) -> Value {
        let of = |record: &Record| json!({ "record": record.directory.display().to_string(), "created": record.header.created });
        json!({
            "before": of(self.before),
            "after": of(self.after),
            "across": self.across,
        })
    }
}

fn table(metric: Metric, shifts: &[Shift]) -> Table {
    let figures = ["before", "after", "change", "interval", "blocks"];
    let mut table = Table::of_figures(
        metric.row().title,
        [("variant", ColumnFit::Wrapped)],
        figures,
    );
    let figure = |value| Quantity {
        value,
        unit: metric.unit(),
    };
    let shifts: Vec<&Shift> = shifts
        .iter()
        .filter(|shift| shift.metric == metric)
        .collect();
    let ratio = |shift: &&Shift| {
        let Interval { low, high } = shift.interval.unwrap_or(Interval {
            low: shift.ratio,
            high: shift.ratio,
        });
        (shift.ratio, low, high)
    };
    let changes = intervals(&shifts.iter().map(ratio).collect::<Vec<_>>());
    for (shift, (change, ends)) in shifts.into_iter().zip(changes) {
        let unknown = || format!("unknown: {} of {SESSIONS_MIN} other runs", shift.sessions);
        let ends = if shift.interval.is_some() {
            ends
        } else {
            unknown()
        };
        table.push(vec![
            Cell::text(&shift.variant),
            Cell::Figure(figure(shift.before)),
            Cell::Figure(figure(shift.after)),
            Cell::Text(change),
            Cell::Text(ends),
            Cell::Text(format!("{} and {}", shift.blocks.0, shift.blocks.1)),
        ]);
    }
    table
}
