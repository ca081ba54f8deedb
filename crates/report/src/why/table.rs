//! A table of names and figures.

use crate::document::{self, Cell, Column, Fit};

/// A table: some columns of names, the others of figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table {
    /// What it tells, without a full stop.
    pub heading: String,
    /// How many columns are names: the first is cut at its end where room is short, others at their beginning.
    pub names: usize,
    /// Headings of the columns.
    pub columns: Vec<String>,
    /// The rows, as many cells each.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub(crate) fn new(heading: impl Into<String>, names: usize, columns: &[&str]) -> Table {
        let columns = columns.iter().map(|column| (*column).to_owned()).collect();
        Table { heading: heading.into(), names, columns, rows: Vec::new() }
    }

    /// The same with these rows; `None` where there are none.
    pub(crate) fn with(self, rows: Vec<Vec<String>>) -> Option<Table> {
        (!rows.is_empty()).then_some(Table { rows, ..self })
    }

    /// The same as every report has tables.
    pub(crate) fn typed(&self) -> document::Table {
        let column = |(at, heading): (usize, &String)| match at {
            0 => Column::text(heading, Fit::CutEnd),
            at if at < self.names => Column::text(heading, Fit::CutStart),
            _ => Column::figure(heading),
        };
        let columns = self.columns.iter().enumerate().map(column).collect();
        let mut table = document::Table::new(&self.heading, columns);
        self.rows.iter().for_each(|row| table.push(row.iter().map(Cell::text).collect()));
        table
    }
}
