//! Pictures made of characters: an interval on its column's axis, and many values in a line.

use model::quantity::{Quantity, Unit, interval};
use textwrap::core::display_width;

use crate::axis::Axis;
use crate::document::{Cell, Table};

const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// An axis goes so many of the usual half intervals beyond the values: one wild interval must not press all others flat.
const BEYOND: f64 = 3.0;
/// Shortest axis: less is no difference that anybody could see.
const SHORTEST: f64 = 1e-3;

/// A value and its interval.
pub(super) type Point = (f64, Option<(f64, f64)>);

/// The axis that holds all values, and their intervals as far as these are not far wider than most.
fn axis(points: &[Point]) -> Axis {
    let ends = || points.iter().filter_map(|(_, interval)| *interval);
    let mut halves: Vec<f64> = ends().map(|(low, high)| (high.ln() - low.ln()) / 2.0).collect();
    halves.sort_by(f64::total_cmp);
    let reach = (BEYOND * halves.get(halves.len() / 2).copied().unwrap_or(0.0)).exp();
    let values = || points.iter().map(|(value, _)| *value);
    let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    let low = ends().map(|(low, _)| low).fold(least, f64::min).max(least / reach);
    let high = ends().map(|(_, high)| high).fold(most, f64::max).min(most * reach);
    Axis::between(low, high, SHORTEST)
}

/// The axis of a column of intervals, and what its values are counted in; `None` for other columns.
pub(super) fn axis_of(table: &Table, at: usize) -> Option<(Axis, Unit)> {
    let of = |cells: &Vec<Cell>| match cells.get(at) {
        Some(Cell::Interval(of, interval)) => Some((*of, *interval)),
        _ => None,
    };
    let unit = table.cells().find_map(of)?.0.unit;
    let points: Vec<Point> = table.cells().filter_map(of).map(|(of, ends)| (of.value, ends)).collect();
    Some((axis(&points), unit))
}

/// The ends of an axis, in so many columns; `None` where there is no room.
pub(super) fn ends((axis, unit): (Axis, Unit), columns: usize) -> Option<String> {
    let (low, high) = axis.ends();
    let end = |value: f64| match unit {
        Unit::Ratio => interval(value, low, high).0,
        unit => Quantity { value, unit }.to_string(),
    };
    let (low, high) = (end(low), end(high));
    let between = columns.checked_sub(display_width(&low) + display_width(&high)).filter(|room| *room > 0)?;
    Some(format!("{low}{}{high}", " ".repeat(between)))
}

/// An interval in so many columns, of ratios with a mark at 1: `  ├──●───┤  ┊`.
pub(super) fn bar((axis, unit): (Axis, Unit), point: Point, columns: usize) -> String {
    bar_on(axis, point, columns, unit == Unit::Ratio)
}

fn bar_on(axis: Axis, (value, interval): Point, columns: usize, one: bool) -> String {
    let column = |value: f64| (axis.place(value) * (columns.max(1) - 1) as f64).round();
    let last = columns.saturating_sub(1) as f64;
    let mut drawn = vec![' '; columns];
    let mut put = |at: f64, mark: char| {
        if (0.0..=last).contains(&at) {
            drawn[at as usize] = mark;
        }
    };
    if one {
        put(column(1.0), '┊');
    }
    if let Some((low, high)) = interval {
        let (low, high) = (column(low), column(high));
        let (first, end) = (low.max(0.0), high.min(last));
        (first as usize..=end as usize).for_each(|at| put(at as f64, '─'));
        put(first, if low < 0.0 { '‹' } else { '├' });
        put(end, if high > last { '›' } else { '┤' });
    }
    put(column(value), '●');
    drawn.into_iter().collect::<String>().trim_end().to_owned()
}

/// All values in at most so many columns, with a stroke before each of those `breaks` where they all have room. Where there are
/// more values than columns a column is the mean of some.
pub(super) fn line(values: &[f64], breaks: &[usize], columns: usize) -> String {
    let axis = axis(&values.iter().map(|value| (*value, None)).collect::<Vec<_>>());
    let step = |place: f64| STEPS[((place.clamp(0.0, 1.0) * 7.0).round()) as usize];
    if values.len() + breaks.len() <= columns {
        let one = |(index, value): (usize, &f64)| {
            let stroke = if breaks.contains(&index) { "│" } else { "" };
            format!("{stroke}{}", step(axis.place(*value)))
        };
        return values.iter().enumerate().map(one).collect();
    }
    let part = |column: usize| {
        let (from, to) = (column * values.len() / columns, (column + 1) * values.len() / columns);
        let places = values[from..to.max(from + 1)].iter().map(|value| axis.place(*value));
        step(places.sum::<f64>() / (to - from).max(1) as f64)
    };
    (0..columns).map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_lies_where_its_figures_say() {
        let points = [(1.0, Some((0.5, 2.0))), (2.0, Some((1.0, 4.0)))];
        let axis = axis(&points);
        assert_eq!(bar_on(axis, points[0], 13, true), "├───●───┤");
        assert_eq!(bar_on(axis, points[1], 13, true), "    ├───●───┤");
        // ln 3 lies at 10.3 of 12 columns, and the end is beyond the axis.
        assert_eq!(bar_on(axis, (3.5, Some((3.0, 99.0))), 13, true), "    ┊     ├●›");
    }

    #[test]
    fn a_wild_interval_does_not_press_the_others_flat() {
        let mut points = vec![(1.0, Some((0.98, 1.02))); 9];
        points.push((1.01, Some((0.001, 900.0))));
        let (low, high) = axis(&points).ends();
        assert!(low > 0.9 && high < 1.1, "{low} {high}");
        assert!(bar_on(axis(&points), points[9], 20, false).starts_with('‹'));
    }

    #[test]
    fn values_in_a_line_fit_however_many_they_are() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(line(&values, &[50], 40).chars().count(), 40);
        assert_eq!(line(&values[..3], &[2], 40).chars().filter(|c| *c == '│').count(), 1);
        assert_eq!(line(&[1.0], &[], 40).chars().count(), 1);
    }
}
