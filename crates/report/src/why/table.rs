//! A table of names and figures, drawn for a terminal of any width and for Markdown.

use comfy_table::{CellAlignment, Table as Drawn, TableStyle};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::drawing::RULE;

/// Narrowest column of names.
const NAME_MIN: usize = 12;

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

    /// The table in at most so many columns, where names can be cut to that.
    pub(crate) fn draw(&self, width: usize) -> String {
        let limits = self.limits(width);
        let mut table = Drawn::new();
        table.load_style(TableStyle::new().header_separator(RULE)).set_header(&self.columns);
        for row in &self.rows {
            table.add_row(row.iter().enumerate().map(|(index, cell)| match limits.get(index) {
                Some(limit) => cut(cell, *limit, index > 0),
                None => cell.clone(),
            }));
        }
        for column in table.column_iter_mut().skip(self.names) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table.to_string()
    }

    /// How wide each column of names may be, so that figures have the room they need: the widest gives first.
    fn limits(&self, width: usize) -> Vec<usize> {
        let widest = |index: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(index)).chain(self.columns.get(index));
            cells.map(|cell| cell.width()).max().unwrap_or(0)
        };
        let figures: usize = (self.names..self.columns.len()).map(widest).sum();
        // A blank on either side of each cell, and one between two of them.
        let room = width.saturating_sub(figures + 3 * self.columns.len());
        let mut limits: Vec<usize> = (0..self.names).map(widest).collect();
        while limits.iter().sum::<usize>() > room {
            match limits.iter_mut().max() {
                Some(most) if *most > NAME_MIN => *most -= 1,
                _ => break,
            }
        }
        limits
    }
}

/// A text of at most so many columns: some letters take two.
pub(crate) fn cut(text: &str, limit: usize, at_start: bool) -> String {
    if text.width() <= limit {
        return text.to_owned();
    }
    let kept = limit.saturating_sub(1);
    let mut used = 0;
    let fits = |letter: &char| {
        used += letter.width().unwrap_or(0);
        used <= kept
    };
    if at_start {
        let end: String = text.chars().rev().take_while(fits).collect();
        format!("…{}", end.chars().rev().collect::<String>())
    } else {
        format!("{}…", text.chars().take_while(fits).collect::<String>())
    }
}
