//! Figures of tables, column by column, for a column has one unit; and columns put beside each other as rows.

use explain::{Change, Interval};

use super::Unit;
use super::unit::dash;

/// The figures of a change.
#[derive(Debug, Clone, Copy)]
pub(super) struct Figures {
    pub baseline: f64,
    pub variant: f64,
    pub difference: Interval,
}

impl<T> From<&Change<T>> for Figures {
    fn from(change: &Change<T>) -> Figures {
        Figures { baseline: change.baseline, variant: change.variant, difference: change.difference }
    }
}

/// Rows of names, each with its figures behind.
pub(super) fn with_figures(names: Vec<Vec<String>>, figures: &[Figures], unit: Unit) -> Vec<Vec<String>> {
    let of = |value: fn(&Figures) -> f64| unit.column(figures.iter().map(|of| Some(value(of))));
    let changes = unit.changes(figures.iter().map(|of| &of.difference)).into_iter();
    let (values, intervals) = changes.map(|(value, interval)| (value, interval.unwrap_or_else(dash))).unzip();
    let columns = beside(vec![of(|of| of.baseline), of(|of| of.variant), values, intervals]);
    names.into_iter().zip(columns).map(|(names, figures)| [names, figures].concat()).collect()
}

/// Columns of the same length as rows.
pub(super) fn beside(columns: Vec<Vec<String>>) -> Vec<Vec<String>> {
    let rows = columns.iter().map(Vec::len).min().unwrap_or(0);
    let mut columns: Vec<_> = columns.into_iter().map(Vec::into_iter).collect();
    (0..rows).map(|_| columns.iter_mut().filter_map(Iterator::next).collect()).collect()
}
