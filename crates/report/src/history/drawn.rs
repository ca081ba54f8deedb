//! Pictures made of characters: an interval on an axis, and many values in a line.
//!
//! Both on a logarithmic axis, on which ×2 and ×½ lie equally far from ×1.

use analysis::Point;

const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// An axis goes so many of the usual half intervals beyond the values: one wild interval must not press all others flat.
const BEYOND: f64 = 3.0;
/// Shortest axis, as a share: less is no difference that anybody could see.
const SHORTEST: f64 = 1e-3;

/// An axis for all points of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    /// One that holds all values, and their intervals as far as these are not far wider than most.
    pub fn of(points: &[Point]) -> Axis {
        let mut halves: Vec<f64> = points
            .iter()
            .filter_map(|point| point.interval)
            .map(|(low, high)| (high.ln() - low.ln()) / 2.0)
            .collect();
        halves.sort_by(f64::total_cmp);
        let usual = halves.get(halves.len() / 2).copied().unwrap_or(0.0);
        let values = || points.iter().map(|point| point.value.ln());
        let (least, most) =
            (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
        let ends = || points.iter().filter_map(|point| point.interval);
        let low = ends().map(|(low, _)| low.ln()).fold(least, f64::min).max(least - BEYOND * usual);
        let high = ends().map(|(_, high)| high.ln()).fold(most, f64::max).min(most + BEYOND * usual);
        let short = ((SHORTEST - (high - low)) / 2.0).max(0.0);
        Axis { low: low - short, high: high + short }
    }

    /// Its ends, as the values that lie there.
    pub fn ends(self) -> (f64, f64) {
        (self.low.exp(), self.high.exp())
    }

    /// Where a value lies, from 0 to 1 on the axis.
    fn place(self, value: f64) -> f64 {
        (value.ln() - self.low) / (self.high - self.low)
    }

    /// An interval in so many columns, with a mark where the ratio is 1: `  ├──●───┤  ┊`.
    pub fn bar(self, point: &Point, columns: usize, one: bool) -> String {
        let column = |value: f64| (self.place(value) * (columns.max(1) - 1) as f64).round();
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
        if let Some((low, high)) = point.interval {
            let (low, high) = (column(low), column(high));
            let (first, end) = (low.max(0.0), high.min(last));
            (first as usize..=end as usize).for_each(|at| put(at as f64, '─'));
            put(first, if low < 0.0 { '‹' } else { '├' });
            put(end, if high > last { '›' } else { '┤' });
        }
        put(column(point.value), '●');
        drawn.into_iter().collect::<String>().trim_end().to_owned()
    }

    /// All values in at most so many columns, with a stroke before each of those `breaks` where they all have room. Where there are
    /// more values than columns a column is the mean of some.
    pub fn line(self, points: &[Point], breaks: &[usize], columns: usize) -> String {
        let step = |place: f64| STEPS[((place.clamp(0.0, 1.0) * 7.0).round()) as usize];
        if points.len() + breaks.len() <= columns {
            let one = |(index, point): (usize, &Point)| {
                let stroke = if breaks.contains(&index) { "│" } else { "" };
                format!("{stroke}{}", step(self.place(point.value)))
            };
            return points.iter().enumerate().map(one).collect();
        }
        let part = |column: usize| {
            let (from, to) = (column * points.len() / columns, (column + 1) * points.len() / columns);
            let places = points[from..to.max(from + 1)].iter().map(|point| self.place(point.value));
            step(places.sum::<f64>() / (to - from).max(1) as f64)
        };
        (0..columns).map(part).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(value: f64, low: f64, high: f64) -> Point {
        Point { record: 0, value, interval: Some((low, high)), standard_error: Some(0.01), blocks: 6 }
    }

    #[test]
    fn an_interval_lies_where_its_figures_say() {
        let points = [point(1.0, 0.5, 2.0), point(2.0, 1.0, 4.0)];
        let axis = Axis::of(&points);
        assert_eq!(axis.bar(&points[0], 13, true), "├───●───┤");
        assert_eq!(axis.bar(&points[1], 13, true), "    ├───●───┤");
        // ln 3 lies at 10.3 of 12 columns, and the end is beyond the axis.
        assert_eq!(axis.bar(&point(3.5, 3.0, 99.0), 13, true), "    ┊     ├●›");
    }

    #[test]
    fn a_wild_interval_does_not_press_the_others_flat() {
        let mut points = vec![point(1.0, 0.98, 1.02); 9];
        points.push(point(1.01, 0.001, 900.0));
        let (low, high) = Axis::of(&points).ends();
        assert!(low > 0.9 && high < 1.1, "{low} {high}");
        assert!(Axis::of(&points).bar(&points[9], 20, false).starts_with('‹'));
    }

    #[test]
    fn values_in_a_line_fit_however_many_they_are() {
        let points: Vec<Point> = (1..=100).map(|i| point(f64::from(i), f64::from(i), f64::from(i))).collect();
        let axis = Axis::of(&points);
        assert_eq!(axis.line(&points, &[50], 40).chars().count(), 40);
        assert_eq!(axis.line(&points[..3], &[2], 40).chars().filter(|c| *c == '│').count(), 1);
        let flat = [point(1.0, 1.0, 1.0)];
        assert_eq!(Axis::of(&flat).line(&flat, &[], 40).chars().count(), 1);
    }
}
