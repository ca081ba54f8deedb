//! A chart as lines of text: points over a horizontal axis, with the limit as a dashed line and the marked
//! values as vertical lines. It needs no colour.
//!
//! ```text
//!  100 ms ┤                               │     ○
//!   50 ms ┼╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌┼╌╌╌╌╌╌╌╌ p99 < 50ms
//!   10 ms ┤       ●           ●      ●    │
//!         └───────────────────────────────┴─────────
//!          0               1,000        2,050/s
//! ```
//!
//! A point above the limit is never drawn on its line or below, and a point beyond a marked value never before
//! it.

use model::document::{Chart, ChartPoint, ChartSeries};
use model::quantity::{Quantity, Unit};
use model::text::line as clean;
use textwrap::core::display_width;

use crate::axis::{Axis, round_step};

/// Number of lines between the axes.
const ROWS: usize = 10;
/// Maximum number of columns between the ends of the horizontal axis.
const COLUMNS_MAX: usize = 90;
const COLUMNS_MIN: usize = 20;
/// Marks of each series: within all limits, and beyond one.
const MARKS: [[char; 2]; 4] = [['●', '○'], ['■', '□'], ['▲', '△'], ['◆', '◇']];
/// Mark of a value above the axis.
const ABOVE: char = '↑';
/// The vertical axis ends at this multiple of the limit, if values are above.
const ABOVE_LIMIT: f64 = 20.0;
/// Share of the highest value below which the horizontal axis begins at 0.
const FROM_ZERO: f64 = 0.5;
/// Room at either end of the horizontal axis, as a share of the highest value.
const ROOM: f64 = 0.03;

/// Maximum number of series.
pub(crate) const SERIES_MAX: usize = MARKS.len();

/// The heading with the legend, and the lines.
pub(crate) fn chart_drawn(chart: &Chart, width: usize) -> (String, String) {
    let canvas = Canvas::of(chart, width);
    (
        format!("{}  {}", clean(&chart.heading), legend(chart)),
        canvas.drawn(chart),
    )
}

fn legend(chart: &Chart) -> String {
    let each = |(series, marks): (&ChartSeries, &[char; 2])| {
        let [kept, broken] = marks;
        match series.name.as_str() {
            "" => format!("{kept} held  {broken} broke"),
            name => format!("{kept} {} held  {broken} broke", clean(name)),
        }
    };
    let all: Vec<String> = chart.series.iter().zip(&MARKS).map(each).collect();
    format!("{}  {ABOVE} beyond", all.join("  "))
}

/// Positions of values.
struct Canvas {
    columns: usize,
    across: (f64, f64),
    /// Logarithmic for everything but shares, which may be 0.
    up: Result<Axis, f64>,
    limit_row: usize,
    limit: f64,
    labels: usize,
}

impl Canvas {
    fn of(chart: &Chart, width: usize) -> Canvas {
        let points = || chart.series.iter().flat_map(|series| &series.points);
        let marked = chart
            .series
            .iter()
            .filter_map(|series| series.marked.as_ref());
        let values = points()
            .map(|point| point.across)
            .chain(marked.map(|(value, _)| *value));
        let (low, high) = values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        let room = high * ROOM;
        let begin = if low < high * FROM_ZERO {
            0.0
        } else {
            low - room
        };
        let limit = chart.limit.0;
        let up = points().map(|point| point.up).filter(|up| up.is_finite());
        let (least, most) = up.fold((limit, limit), |(least, most), up| {
            (least.min(up), most.max(up))
        });
        let most = most.clamp(limit * 2.0, limit * ABOVE_LIMIT);
        let up = match chart.up {
            Unit::Share => Err(most),
            _ => Ok(Axis::between(
                least.clamp(limit / 1e4, limit / 2.0),
                most,
                0.1,
            )),
        };
        let labels = up_labels(chart, up)
            .iter()
            .map(|(_, label)| display_width(label))
            .max();
        let labels = labels.unwrap_or(0);
        let columns = width.saturating_sub(labels + 4 + display_width(&clean(&chart.limit.1)));
        let canvas = Canvas {
            columns: columns.clamp(COLUMNS_MIN, COLUMNS_MAX),
            across: (begin, high + room),
            up,
            limit_row: 0,
            limit,
            labels,
        };
        Canvas {
            limit_row: canvas.free_row(limit).clamp(1, ROWS - 2),
            ..canvas
        }
    }

    fn column(&self, value: f64) -> usize {
        let (low, high) = self.across;
        let place = (value - low) / (high - low).max(f64::MIN_POSITIVE);
        (place.clamp(0.0, 1.0) * (self.columns - 1) as f64).round() as usize
    }

    /// Row from the bottom, which ignores the limit.
    fn free_row(&self, value: f64) -> usize {
        let place = match self.up {
            Ok(axis) => axis.place(value),
            Err(most) => value / most,
        };
        (place.clamp(0.0, 1.0) * (ROWS - 1) as f64).round() as usize
    }

    /// Row of a point, on the side of the limit where the value is.
    fn row(&self, value: f64) -> usize {
        if value > self.limit {
            self.free_row(value).max(self.limit_row + 1)
        } else {
            self.free_row(value).min(self.limit_row - 1)
        }
    }

    /// Column of a point, on the side of the marked value where the value is.
    fn column_of(&self, point: &ChartPoint, marked: Option<f64>) -> usize {
        let column = self.column(point.across);
        match marked {
            Some(marked) if point.across > marked => column.max(self.column(marked) + 1),
            Some(marked) if point.across < marked => {
                column.min(self.column(marked).saturating_sub(1))
            }
            _ => column,
        }
        .min(self.columns - 1)
    }

    fn drawn(&self, chart: &Chart) -> String {
        let mut cells = vec![vec![' '; self.columns]; ROWS];
        cells[self.limit_row].fill('╌');
        let marked = || {
            chart
                .series
                .iter()
                .filter_map(|series| series.marked.as_ref())
        };
        for (value, _) in marked() {
            for (row, line) in cells.iter_mut().enumerate() {
                line[self.column(*value)] = if row == self.limit_row { '┼' } else { '│' };
            }
        }
        for (series, [kept, broken]) in chart.series.iter().zip(MARKS) {
            let mark_at = series.marked.as_ref().map(|(value, _)| *value);
            for point in &series.points {
                let mark = match point.is_kept {
                    _ if point.up.is_infinite() => ABOVE,
                    true => kept,
                    false => broken,
                };
                cells[self.row(point.up)][self.column_of(point, mark_at)] = mark;
            }
        }
        let labels = self.rows_of_labels(chart);
        let mut out = String::new();
        for row in (0..ROWS).rev() {
            let label = labels[row].as_deref().unwrap_or_default();
            let (axis, end) = if row == self.limit_row {
                ('┼', format!(" {}", clean(&chart.limit.1)))
            } else {
                (if label.is_empty() { '│' } else { '┤' }, String::new())
            };
            let blanks = " ".repeat(self.labels - display_width(label));
            let line: String = cells[row].iter().collect();
            out += &format!(" {blanks}{label} {axis}{line}{end}");
            out.truncate(out.trim_end().len());
            out.push('\n');
        }
        out + &self.below(chart)
    }

    /// Labels of the vertical axis by row. The limit's label has priority.
    fn rows_of_labels(&self, chart: &Chart) -> Vec<Option<String>> {
        let mut rows = vec![None; ROWS];
        for (value, label) in up_labels(chart, self.up) {
            let row = if value == self.limit {
                self.limit_row
            } else {
                self.free_row(value)
            };
            let is_free = row != self.limit_row && rows[row].is_none();
            let is_apart =
                value == self.limit || is_free && (value > self.limit) == (row > self.limit_row);
            if is_apart {
                rows[row] = Some(label);
            }
        }
        rows
    }

    /// The horizontal axis and its labels. Those of the marked values have priority.
    fn below(&self, chart: &Chart) -> String {
        let mut axis = vec!['─'; self.columns];
        let mut labels: Vec<(usize, String)> = Vec::new();
        let mut put = |value: f64, label: String, tick: char| {
            let (column, length) = (self.column(value), display_width(&label));
            let begin = (column + 1).saturating_sub(length / 2 + 1);
            let is_free = |(other, text): &(usize, String)| {
                begin > other + display_width(text) + 1 || begin + length + 1 < *other
            };
            if labels.iter().all(is_free) {
                axis[column] = tick;
                labels.push((begin, label));
            }
        };
        let marked = chart
            .series
            .iter()
            .filter_map(|series| series.marked.clone());
        marked.for_each(|(value, label)| put(value, clean(&label), '┴'));
        let (low, high) = self.across;
        let step = round_step((high - low) / 4.0);
        let mut tick = (low / step).ceil() * step;
        while tick <= high {
            let quantity = Quantity {
                value: tick,
                unit: chart.across,
            };
            put(
                tick,
                if tick == 0.0 {
                    "0".to_owned()
                } else {
                    quantity.to_string()
                },
                '┬',
            );
            tick += step;
        }
        labels.sort_by_key(|(begin, _)| *begin);
        let mut line = String::new();
        for (begin, label) in labels {
            let gap = begin.saturating_sub(display_width(&line));
            line += &format!("{}{label}", " ".repeat(gap));
        }
        let margin = " ".repeat(self.labels + 2);
        let axis: String = axis.into_iter().collect();
        format!("{margin}└{axis}\n{margin} {}\n", line.trim_end())
    }
}

/// Values of the vertical axis with their labels. The limit is the first.
fn up_labels(chart: &Chart, up: Result<Axis, f64>) -> Vec<(f64, String)> {
    let round = match up {
        Ok(axis) => axis.round(),
        Err(most) => vec![0.0, most],
    };
    let label = |value: f64| {
        let quantity = Quantity {
            value,
            unit: chart.up,
        };
        (
            value,
            if value == 0.0 {
                "0".to_owned()
            } else {
                quantity.to_string()
            },
        )
    };
    std::iter::once(chart.limit.0)
        .chain(round)
        .map(label)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: &[(f64, f64)], marked: f64) -> Chart {
        let points = points.iter().map(|(across, up)| ChartPoint {
            across: *across,
            up: *up,
            is_kept: *up < 50_000.0,
        });
        Chart {
            heading: "p99 over requests per second".to_owned(),
            across: Unit::PerS,
            up: Unit::Us,
            limit: (50_000.0, "p99 < 50ms".to_owned()),
            series: vec![ChartSeries {
                name: String::new(),
                points: points.collect(),
                marked: Some((marked, "2,050/s".to_owned())),
            }],
        }
    }

    #[test]
    fn points_stay_on_their_side_of_the_lines() {
        // The second and third are closer to the limit and to the number than a character is wide.
        let points = [
            (500.0, 4_000.0),
            (2_049.0, 49_900.0),
            (2_051.0, 50_100.0),
            (2_400.0, f64::INFINITY),
        ];
        let (_, drawn) = chart_drawn(&chart(&points, 2_050.0), 80);
        let limit = drawn
            .lines()
            .position(|line| line.contains("p99 < 50ms"))
            .unwrap();
        for (row, line) in drawn.lines().enumerate() {
            let number = line.chars().position(|c| c == '┼' || c == '│' || c == '┤');
            let line: Vec<char> = line.chars().collect();
            let at = |mark| line.iter().position(|c| *c == mark);
            let bar = line
                .iter()
                .rposition(|c| ['│', '┼'].contains(c))
                .filter(|bar| Some(*bar) != number);
            for (mark, is_beyond) in [('●', false), ('○', true), ('↑', true)] {
                let Some(column) = at(mark) else { continue };
                assert_eq!(row < limit, is_beyond, "{drawn}");
                assert!(bar.is_none_or(|bar| (column > bar) == is_beyond), "{drawn}");
            }
            assert!(line.len() <= 80, "{drawn}");
        }
        for mark in ['●', '○', '↑'] {
            assert!(drawn.contains(mark), "{drawn}");
        }
    }

    #[test]
    fn any_values_have_a_chart() {
        for points in [vec![], vec![(1.0, 1.0)], vec![(3.0, 1e9), (3.0, 1e9)]] {
            let mut one = chart(&points, 3.0);
            assert!(chart_drawn(&one, 20).1.lines().count() == ROWS + 2);
            (one.up, one.limit.0) = (Unit::Share, 0.01);
            assert!(chart_drawn(&one, 80).1.contains("2,050/s"));
        }
    }
}
