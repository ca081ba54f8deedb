//! Where everything of the plot stands.
//!
//! ```text
//!   title
//!   comparison                                    VERDICT
//!   ░░|░░    ├────●────┤                          +29 %  (+10 % to +52 %)
//!   0        +20 %                                what the axis is
//!   foot
//! ```

use super::axis::{Axis, Mark};
use super::drawing::{Drawing, Hold, Shape, Text};
use super::font::Font;
use super::palette::{Palette, Rgb};
use super::rows::Row;
use crate::figure::share;
use crate::names::line;

const WIDTH: f64 = 700.0;
const MARGIN: f64 = 20.0;
const RIGHT: f64 = WIDTH - MARGIN;
/// Where the axis ends; right of it are the figures.
const AXIS: (f64, f64) = (MARGIN, 430.0);
const FIGURES: f64 = 446.0;
const TITLE_SIZE: f64 = 18.0;
const TITLE_LINES: usize = 3;
const LABEL_SIZE: f64 = 14.0;
const FIGURE_SIZE: f64 = 13.0;
const SMALL_SIZE: f64 = 12.0;
const ROW: f64 = 54.0;
/// More comparisons are counted, not drawn: nobody reads them off a picture.
const ROWS_MAX: usize = 40;

/// What is to be laid out.
pub(super) struct Plot<'a> {
    pub title: &'a str,
    /// The metric of all rows; `None` where each says its own.
    pub metric: Option<&'static str>,
    pub rows: Vec<Row>,
    pub margin: f64,
    pub foot: Vec<String>,
}

/// What all intervals are drawn on.
struct Ruler<'a> {
    axis: &'a Axis,
    /// Those whose names have room.
    marks: Vec<Mark>,
    margin: f64,
}

/// A drawing that grows downwards.
struct Sheet {
    font: Font,
    palette: &'static Palette,
    shapes: Vec<Shape>,
    /// How far down it goes.
    y: f64,
}

/// The whole plot.
pub(super) fn laid_out(plot: &Plot<'_>, palette: &'static Palette) -> Drawing {
    let mut sheet = Sheet { font: Font::new(), palette, shapes: Vec::new(), y: MARGIN };
    for text in sheet.font.lines(&line(plot.title), TITLE_SIZE, RIGHT - MARGIN, TITLE_LINES) {
        sheet.y += TITLE_SIZE;
        sheet.text((MARGIN, sheet.y), TITLE_SIZE, palette.ink, &text);
        sheet.y += 6.0;
    }
    sheet.y += 10.0;
    let (shown, hidden) = plot.rows.split_at(plot.rows.len().min(ROWS_MAX));
    if shown.is_empty() {
        sheet.small("nothing is compared in this record");
    }
    let spans: Vec<_> = shown.iter().filter_map(|row| row.span).collect();
    let axis = (!spans.is_empty()).then(|| Axis::over(&spans, plot.margin, AXIS));
    let ruler = axis.as_ref().map(|axis| Ruler { axis, marks: sheet.apart(axis), margin: plot.margin });
    for row in shown {
        sheet.row(row, ruler.as_ref());
    }
    if let Some(ruler) = &ruler {
        sheet.named(ruler);
    }
    if axis.is_some() {
        let metric = plot.metric.map(|metric| format!("{metric}, ")).unwrap_or_default();
        let shaded = format!("; shaded: the margin of {}", share(plot.margin));
        let shaded = if plot.margin > 0.0 { shaded } else { String::new() };
        sheet.small(&format!("{metric}candidate over baseline, 95 % intervals, log axis{shaded}"));
    }
    if !hidden.is_empty() {
        sheet.small(&format!("and {} more verdicts that are not drawn: see the report", hidden.len()));
    }
    sheet.y += 8.0;
    plot.foot.iter().for_each(|text| sheet.small(text));
    let told = |row: &Row| format!("{}: {}, {}", row.word, named(row), row.told);
    Drawing {
        width: WIDTH,
        height: (sheet.y + MARGIN).ceil(),
        ground: palette.ground,
        title: line(plot.title),
        description: shown.iter().map(told).collect::<Vec<_>>().join("\n"),
        shapes: sheet.shapes,
    }
}

/// A comparison with its metric, where that is not the same for all.
fn named(row: &Row) -> String {
    let metric = row.metric.map(|metric| format!(", {metric}")).unwrap_or_default();
    format!("{}{metric}", line(&row.comparison))
}

impl Sheet {
    fn text(&mut self, at: (f64, f64), size: f64, fill: Rgb, text: &str) {
        self.held(at, size, (fill, Hold::Begin), text);
    }

    fn held(&mut self, (x, y): (f64, f64), size: f64, (fill, hold): (Rgb, Hold), text: &str) {
        self.shapes.push(Shape::Text(Text { x, y, size, hold, fill, text: text.to_owned() }));
    }

    fn area(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), fill: Rgb) {
        self.shapes.push(Shape::Rectangle { x, y, width, height, fill });
    }

    /// A line below everything so far.
    fn small(&mut self, text: &str) {
        for text in self.font.lines(&line(text), SMALL_SIZE, RIGHT - MARGIN, 2) {
            self.y += SMALL_SIZE + 5.0;
            self.text((MARGIN, self.y), SMALL_SIZE, self.palette.faint, &text);
        }
    }

    /// What lies behind an interval: the margin, and the marks of the axis.
    fn lane(&mut self, ruler: &Ruler<'_>, (top, height): (f64, f64)) {
        let (palette, axis) = (self.palette, ruler.axis);
        if ruler.margin > 0.0 {
            let (low, high) = (axis.x(1.0 / (1.0 + ruler.margin)), axis.x(1.0 + ruler.margin));
            self.area((low, top), (high - low, height), palette.band);
        }
        for Mark { ratio, .. } in &ruler.marks {
            let (width, fill) = if *ratio == 1.0 { (1.5, palette.one) } else { (1.0, palette.grid) };
            self.area((axis.x(*ratio) - width / 2.0, top), (width, height), fill);
        }
    }

    /// The names of the marks below all rows.
    fn named(&mut self, ruler: &Ruler<'_>) {
        for Mark { ratio, label } in &ruler.marks {
            // Those at the ends would reach over them.
            let half = self.font.width(label, SMALL_SIZE) / 2.0;
            let x = ruler.axis.x(*ratio).clamp(MARGIN + half, AXIS.1 + MARGIN - half);
            self.held((x, self.y + 16.0), SMALL_SIZE, (self.palette.faint, Hold::Middle), label);
        }
        self.y += 26.0;
    }

    /// The marks whose names do not run into each other: from no difference outwards.
    fn apart(&self, axis: &Axis) -> Vec<Mark> {
        let marks = axis.marks();
        let (below, above): (Vec<Mark>, Vec<Mark>) = marks.into_iter().partition(|mark| mark.ratio < 1.0);
        let mut kept: Vec<Mark> = Vec::new();
        for mark in above.into_iter().chain(below.into_iter().rev()) {
            let room = |other: &Mark| {
                let widths =
                    self.font.width(&mark.label, SMALL_SIZE) + self.font.width(&other.label, SMALL_SIZE);
                (axis.x(mark.ratio) - axis.x(other.ratio)).abs() >= widths / 2.0 + 8.0
            };
            if kept.iter().all(room) {
                kept.push(mark);
            }
        }
        kept
    }

    fn row(&mut self, row: &Row, ruler: Option<&Ruler<'_>>) {
        let (palette, fill) = (self.palette, self.palette.of(row.outcome));
        let (label, lane) = (self.y + 20.0, self.y + 38.0);
        let word = self.font.width(&row.word, FIGURE_SIZE);
        let named = self.font.cut(&named(row), LABEL_SIZE, RIGHT - MARGIN - word - 16.0);
        self.text((MARGIN, label), LABEL_SIZE, palette.ink, &named);
        self.held((RIGHT, label), FIGURE_SIZE, (fill, Hold::End), &row.word);
        let begin = match row.span.zip(ruler) {
            Some((span, ruler)) => {
                self.lane(ruler, (lane - 12.0, 24.0));
                self.interval(ruler.axis, (span.low, span.ratio, span.high), (lane, fill));
                FIGURES
            }
            None => MARGIN,
        };
        let told = self.font.cut(&line(&row.told), FIGURE_SIZE, RIGHT - begin);
        self.text((begin, lane + 4.5), FIGURE_SIZE, palette.ink, &told);
        self.y += ROW;
    }

    /// A bar with its ends, which are arrows where it goes on beyond the axis, and the estimate on it.
    fn interval(&mut self, axis: &Axis, (low, ratio, high): (f64, f64, f64), (y, fill): (f64, Rgb)) {
        let (left, right) = (axis.x(low), axis.x(high));
        self.area((left, y - 3.0), ((right - left).max(1.0), 6.0), fill);
        for (end, outwards) in [(low, -1.0), (high, 1.0)] {
            let x = axis.x(end);
            if axis.holds(end) {
                self.area((x - 1.0, y - 8.0), (2.0, 16.0), fill);
            } else {
                let points = [(x, y - 8.0), (x, y + 8.0), (x + outwards * 9.0, y)];
                self.shapes.push(Shape::Triangle { points, fill });
            }
        }
        // A ring of the ground's colour, so that it is seen on a bar that is shorter than it.
        let x = axis.x(ratio);
        self.shapes.push(Shape::Circle { x, y, radius: 6.5, fill: self.palette.ground });
        self.shapes.push(Shape::Circle { x, y, radius: 5.0, fill });
    }
}
