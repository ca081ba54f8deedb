//! The verdict plot: each comparison's interval against the margin on one axis, as a picture that stands still, for pasting.
//!
//! SVG and PNG are the same drawing. It says what the other forms say, in their words, and is the same for the same record on every
//! machine: letters come from a typeface that is part of the program. Of an invalid comparison it shows no number.
//!
//! ```text
//!   title
//!   comparison                                    VERDICT
//!   ░░|░░    ├────●────┤                          +29 %  (+10 % to +52 %)
//!   0        +20 %                                what the axis is
//!   foot
//! ```

use analysis::{Capacity, Comparison, Grade, Outcome, RatePoint};
use model::quantity::{Quantity, change, many, share};
use model::text::line;
use plan::Figure;
use record::Record;
use stats::Interval;

use self::drawing::{Drawing, Font, Hold, Rgb, Shape, Text, painted, written};
use crate::axis::{Axis, Mark, round_step};
use crate::experiment::capacity::told;
use crate::experiment::{Measured, answer, findings_of};
use crate::page::Ratio;

mod drawing;

/// What the plot stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ground {
    /// Paper, and most pages.
    Light,
    /// A dark page.
    Dark,
}

/// What a plot says.
#[derive(Debug)]
pub struct Plot {
    title: String,
    /// The metric of all rows; `None` where each says its own.
    metric: Option<&'static str>,
    rows: Vec<Row>,
    margin: f64,
    /// Response times over the rate, where capacity was measured.
    curves: Vec<Curve>,
    /// Lines below all rows.
    foot: Vec<String>,
}

/// One line of the plot.
#[derive(Debug)]
pub struct Row {
    /// Candidate vs baseline, and where several metrics are judged, which one this is.
    pub name: String,
    /// What gives it its colour.
    pub outcome: Outcome,
    /// The verdict.
    pub word: String,
    /// `None` where no number may be shown, or there is none.
    pub span: Option<Ratio>,
    /// The estimate as the other forms print it, or why there is none.
    pub told: String,
}

impl Plot {
    /// A plot of effects on one metric.
    pub fn of_effects(
        title: String,
        metric: &'static str,
        margin: f64,
        rows: Vec<Row>,
        foot: Vec<String>,
    ) -> Plot {
        Plot { title, metric: Some(metric), rows, margin, curves: Vec::new(), foot }
    }

    /// The plot of a record.
    pub(crate) fn of(of: &Measured<'_>) -> Plot {
        let comparisons = &of.conclusion.comparisons;
        let first = comparisons.first().map(|first| first.metric);
        let common = first.filter(|first| comparisons.iter().all(|of| of.metric == *first));
        let told = answer::groups(of.conclusion).flat_map(answer::told);
        Plot {
            title: of.title().to_owned(),
            metric: common.map(|metric| metric.row().title),
            rows: told.map(|comparison| row(of, comparison, common.is_none())).collect(),
            margin: of.record.header.plan.design.margin,
            curves: all(of),
            foot: foot(of),
        }
    }

    /// The curves alone, where capacity was measured: a page tells all else.
    pub(crate) fn of_capacity(of: &Measured<'_>) -> Option<Plot> {
        let plot = Plot { rows: Vec::new(), foot: Vec::new(), ..Plot::of(of) };
        (!plot.curves.is_empty()).then_some(plot)
    }

    /// What the curves show, in words.
    pub(crate) fn told(&self) -> String {
        self.curves.iter().map(Curve::told).collect::<Vec<_>>().join("; ")
    }

    /// As SVG, 700 wide, without script, link or image.
    pub fn svg(&self, ground: Ground) -> String {
        written(&laid_out(self, palette(ground)))
    }

    /// As PNG, twice as many pixels as the SVG is wide and high; `None` where memory does not suffice.
    pub fn png(&self, ground: Ground) -> Option<Vec<u8>> {
        painted(&laid_out(self, palette(ground)))
    }
}

fn row(of: &Measured<'_>, comparison: &Comparison, several: bool) -> Row {
    let told = comparison.estimate.as_ref().map(|estimate| {
        let (value, interval) = change(estimate);
        format!("{value}  ({interval})")
    });
    let as_one = matches!(comparison.outcome, Outcome::Invalid | Outcome::NoSuccess);
    let metric =
        if several && !as_one { format!(", {}", comparison.metric.row().title) } else { String::new() };
    let detail = || answer::detail(comparison, of.conclusion, &of.record.header.plan.design);
    Row {
        name: format!("{}{metric}", comparison.label),
        outcome: comparison.outcome,
        word: answer::word(comparison.outcome, comparison.metric).to_uppercase(),
        span: comparison.estimate.as_ref().map(Into::into),
        told: told.unwrap_or_else(detail),
    }
}

/// What qualifies it, when and where it was measured, and how to repeat it.
fn foot(of: &Measured<'_>) -> Vec<String> {
    let Record { header, .. } = of.record;
    let environment = &header.environment;
    let date = header.created.split('T').next().unwrap_or_default();
    let cpu = environment.cpu_model.as_deref().unwrap_or("unknown processor");
    let mut machine = format!("{date}, {} blocks, {cpu}", of.conclusion.blocks);
    if environment.cpus > 0 {
        machine += &format!(", {} processors", environment.cpus);
    }
    machine.extend(environment.kernel.iter().map(|kernel| format!(", Linux {kernel}")));
    let repeat = format!("to repeat it: proofload run {} --seed {}", header.experiment, header.seed);
    let found = [(Grade::Invalid, "invalid finding"), (Grade::Warning, "warning")];
    let found = found.map(|(grade, noun)| (findings_of(of.conclusion, grade), noun));
    let found = found.iter().filter(|(count, _)| *count > 0);
    let found: Vec<String> = found.map(|(count, noun)| many(*count as u64, noun)).collect();
    let found = (!found.is_empty()).then(|| format!("{}: see the report", found.join(", ")));
    found.into_iter().chain([machine, repeat]).collect()
}

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

/// Narrowest axis, as a logarithm: where neither margin nor interval has any width.
const NARROWEST: f64 = 0.01;
/// An interval that reaches further than so many times what else is shown is cut off: its end is an arrow.
const REACH: f64 = 4.0;
/// Share of the axis that stays empty at either end.
const EMPTY: f64 = 0.04;

/// An axis that shows the margin and all intervals.
fn axis_of(spans: &[Ratio], margin: f64) -> Axis {
    let band = (1.0 + margin.max(0.0)).ln();
    let furthest =
        spans.iter().map(|span| span.estimate.ln().abs()).fold(band, f64::max).max(NARROWEST / 2.0);
    let limit = furthest * REACH;
    let low = spans.iter().map(|span| span.low.ln()).fold(-band, f64::min).max(-limit);
    let high = spans.iter().map(|span| span.high.ln()).fold(band, f64::max).min(limit);
    Axis::between(low.exp(), high.exp(), NARROWEST).with_room(EMPTY)
}

/// Where a ratio lies in the picture; beyond the ends at the end.
fn x(axis: Axis, ratio: f64) -> f64 {
    AXIS.0 + axis.place(ratio).clamp(0.0, 1.0) * (AXIS.1 - AXIS.0)
}

/// What all intervals are drawn on.
struct Ruler {
    axis: Axis,
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
fn laid_out(plot: &Plot, palette: &'static Palette) -> Drawing {
    let mut sheet = Sheet { font: Font::new(), palette, shapes: Vec::new(), y: MARGIN };
    for text in sheet.font.lines(&line(&plot.title), TITLE_SIZE, RIGHT - MARGIN, TITLE_LINES) {
        sheet.y += TITLE_SIZE;
        sheet.text((MARGIN, sheet.y), TITLE_SIZE, palette.ink, &text);
        sheet.y += 6.0;
    }
    sheet.y += 10.0;
    let (shown, hidden) = plot.rows.split_at(plot.rows.len().min(ROWS_MAX));
    if shown.is_empty() && plot.curves.is_empty() {
        sheet.small("nothing is compared in this record");
    }
    let spans: Vec<_> = shown.iter().filter_map(|row| row.span).collect();
    let axis = (!spans.is_empty()).then(|| axis_of(&spans, plot.margin));
    let ruler = axis.map(|axis| Ruler { axis, marks: sheet.apart(axis), margin: plot.margin });
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
    plot.curves.iter().for_each(|curve| sheet.curve(curve));
    sheet.y += 8.0;
    plot.foot.iter().for_each(|text| sheet.small(text));
    let told = |row: &Row| format!("{}: {}, {}", row.word, line(&row.name), row.told);
    Drawing {
        width: WIDTH,
        height: (sheet.y + MARGIN).ceil(),
        ground: palette.ground,
        title: line(&plot.title),
        description: shown
            .iter()
            .map(told)
            .chain(plot.curves.iter().map(Curve::told))
            .collect::<Vec<_>>()
            .join("\n"),
        shapes: sheet.shapes,
    }
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
    fn lane(&mut self, ruler: &Ruler, (top, height): (f64, f64)) {
        let (palette, axis) = (self.palette, ruler.axis);
        if ruler.margin > 0.0 {
            let (low, high) = (x(axis, 1.0 / (1.0 + ruler.margin)), x(axis, 1.0 + ruler.margin));
            self.area((low, top), (high - low, height), palette.band);
        }
        for Mark { ratio, .. } in &ruler.marks {
            let (width, fill) = if *ratio == 1.0 { (1.5, palette.one) } else { (1.0, palette.grid) };
            self.area((x(axis, *ratio) - width / 2.0, top), (width, height), fill);
        }
    }

    /// The names of the marks below all rows.
    fn named(&mut self, ruler: &Ruler) {
        for Mark { ratio, label } in &ruler.marks {
            // Those at the ends would reach over them.
            let half = self.font.width(label, SMALL_SIZE) / 2.0;
            let x = x(ruler.axis, *ratio).clamp(MARGIN + half, AXIS.1 + MARGIN - half);
            self.held((x, self.y + 16.0), SMALL_SIZE, (self.palette.faint, Hold::Middle), label);
        }
        self.y += 26.0;
    }

    /// The marks whose names do not run into each other: from no difference outwards.
    fn apart(&self, axis: Axis) -> Vec<Mark> {
        let marks = axis.marks();
        let (below, above): (Vec<Mark>, Vec<Mark>) = marks.into_iter().partition(|mark| mark.ratio < 1.0);
        let mut kept: Vec<Mark> = Vec::new();
        for mark in above.into_iter().chain(below.into_iter().rev()) {
            let room = |other: &Mark| {
                let widths =
                    self.font.width(&mark.label, SMALL_SIZE) + self.font.width(&other.label, SMALL_SIZE);
                (x(axis, mark.ratio) - x(axis, other.ratio)).abs() >= widths / 2.0 + 8.0
            };
            if kept.iter().all(room) {
                kept.push(mark);
            }
        }
        kept
    }

    fn row(&mut self, row: &Row, ruler: Option<&Ruler>) {
        let (palette, fill) = (self.palette, self.palette.of(row.outcome));
        let (label, lane) = (self.y + 20.0, self.y + 38.0);
        let word = self.font.width(&row.word, FIGURE_SIZE);
        let named = self.font.cut(&line(&row.name), LABEL_SIZE, RIGHT - MARGIN - word - 16.0);
        self.text((MARGIN, label), LABEL_SIZE, palette.ink, &named);
        self.held((RIGHT, label), FIGURE_SIZE, (fill, Hold::End), &row.word);
        let begin = match row.span.zip(ruler) {
            Some((span, ruler)) => {
                self.lane(ruler, (lane - 12.0, 24.0));
                self.interval(ruler.axis, span, (lane, fill));
                FIGURES
            }
            None => MARGIN,
        };
        let told = self.font.cut(&line(&row.told), FIGURE_SIZE, RIGHT - begin);
        self.text((begin, lane + 4.5), FIGURE_SIZE, palette.ink, &told);
        self.y += ROW;
    }

    /// A bar with its ends, which are arrows where it goes on beyond the axis, and the estimate on it.
    fn interval(&mut self, axis: Axis, Ratio { estimate, low, high }: Ratio, (y, fill): (f64, Rgb)) {
        let (left, right) = (x(axis, low), x(axis, high));
        self.area((left, y - 3.0), ((right - left).max(1.0), 6.0), fill);
        for (end, outwards) in [(low, -1.0), (high, 1.0)] {
            let x = x(axis, end);
            if axis.holds(end) {
                self.area((x - 1.0, y - 8.0), (2.0, 16.0), fill);
            } else {
                let points = vec![(x, y - 8.0), (x, y + 8.0), (x + outwards * 9.0, y)];
                self.shapes.push(Shape::Polygon { points, fill });
            }
        }
        // A ring of the ground's colour, so that it is seen on a bar that is shorter than it.
        let x = x(axis, estimate);
        self.shapes.push(Shape::Circle { x, y, radius: 6.5, fill: self.palette.ground });
        self.shapes.push(Shape::Circle { x, y, radius: 5.0, fill });
    }
}

/// The colours on one ground.
#[derive(Debug)]
struct Palette {
    ground: Rgb,
    ink: Rgb,
    faint: Rgb,
    /// Lines of the axis, the one of no difference, and what lies within the margin.
    grid: Rgb,
    one: Rgb,
    band: Rgb,
    better: Rgb,
    worse: Rgb,
    equivalent: Rgb,
    inconclusive: Rgb,
    void: Rgb,
}

impl Palette {
    /// The colour of a verdict.
    fn of(&self, outcome: Outcome) -> Rgb {
        match outcome {
            Outcome::Better => self.better,
            Outcome::Worse => self.worse,
            Outcome::Equivalent => self.equivalent,
            Outcome::Inconclusive => self.inconclusive,
            Outcome::Invalid | Outcome::NoSuccess => self.void,
        }
    }
}

const LIGHT: Palette = Palette {
    ground: rgb(0xffffff),
    ink: rgb(0x16191d),
    faint: rgb(0x59616b),
    grid: rgb(0xe2e5e9),
    one: rgb(0x868e98),
    band: rgb(0xe6ecf6),
    better: rgb(0x0b63b5),
    worse: rgb(0xb3420a),
    equivalent: rgb(0x1a6b59),
    inconclusive: rgb(0x626873),
    void: rgb(0xa3123f),
};

const DARK: Palette = Palette {
    ground: rgb(0x14171b),
    ink: rgb(0xeef0f3),
    faint: rgb(0xa4acb6),
    grid: rgb(0x2c3138),
    one: rgb(0x7d8590),
    band: rgb(0x232d3d),
    better: rgb(0x6fb1f5),
    worse: rgb(0xf5914e),
    equivalent: rgb(0x5cc9ad),
    inconclusive: rgb(0xb1b7c0),
    void: rgb(0xff86a5),
};

const fn palette(ground: Ground) -> &'static Palette {
    match ground {
        Ground::Light => &LIGHT,
        Ground::Dark => &DARK,
    }
}

const fn rgb(code: u32) -> Rgb {
    let [_, red, green, blue] = code.to_be_bytes();
    [red, green, blue]
}

// Response times over the rate as a picture: the rate along a line, times on a logarithmic one, the limits that users bear, and the capacity
// with its interval.
//
// ```text
//   ms ┤            ╭─ p99      ─ ─ limit
//      │ ──────────╯  ▒│▒       ▒ capacity, 95 %
//      └──────────────────────  requests/s
// ```

const HEIGHT: f64 = 220.0;
/// Room for the names of times.
const LEFT: f64 = MARGIN + 58.0;
/// How far the axis goes beyond the highest rate, and beyond the longest limit.
const ROOM: f64 = 1.05;
const ABOVE_LIMIT: f64 = 6.0;

/// The curve of one variant.
#[derive(Debug)]
struct Curve {
    told: String,
    limits_us: Vec<f64>,
    of: Capacity,
}

/// Those of all variants; none where capacity was not measured.
fn all(of: &Measured<'_>) -> Vec<Curve> {
    let slo = &of.record.header.plan.design.slo;
    let times = slo.iter().filter(|limit| limit.figure != Figure::Failed).map(|limit| limit.bound.value());
    let limits_us: Vec<f64> = times.collect();
    let curve = |capacity: &Capacity| Curve {
        told: told(of.record, capacity),
        limits_us: limits_us.clone(),
        of: capacity.clone(),
    };
    of.conclusion.capacities.iter().map(curve).collect()
}

impl Curve {
    /// What it shows, in words.
    fn told(&self) -> String {
        self.told.clone()
    }

    /// The shortest and the longest time that there is room for.
    fn times_us(&self) -> Option<(f64, f64)> {
        let medians = self.of.curve.iter().filter_map(|point| point.p50_us);
        let low = medians.reduce(f64::min)?.min(self.limits_us.iter().copied().fold(f64::INFINITY, f64::min));
        let p99 = self.of.curve.iter().filter_map(|point| point.p99_us).fold(0.0, f64::max);
        let limit = self.limits_us.iter().copied().fold(low, f64::max);
        Some((low * 0.7, p99.clamp(limit * 1.5, limit * ABOVE_LIMIT)))
    }
}

impl Sheet {
    fn curve(&mut self, curve: &Curve) {
        self.y += 12.0;
        self.small(&curve.told);
        let Capacity { curve: points, per_s, interval, .. } = &curve.of;
        let highest = interval.map(|interval| interval.high);
        let rates = points.iter().map(|point| point.per_s);
        let most = rates.chain(*per_s).chain(highest).fold(0.0, f64::max) * ROOM;
        let Some((low, high)) = curve.times_us().filter(|_| most > 0.0) else { return };
        let (top, bottom) = (self.y + 14.0, self.y + 14.0 + HEIGHT);
        let palette = self.palette;
        let x = |per_s: f64| LEFT + (per_s / most).clamp(0.0, 1.0) * (RIGHT - LEFT);
        let times = Axis::between(low, high, 0.0);
        let y = |us: f64| bottom - times.place(us.clamp(low, high)) * HEIGHT;
        if let Some(Interval { low, high }) = *interval {
            self.area((x(low), top), ((x(high) - x(low)).max(1.0), HEIGHT), palette.band);
        }
        for us in times.round() {
            self.area((LEFT, y(us)), (RIGHT - LEFT, 1.0), palette.grid);
            self.held(
                (LEFT - 6.0, y(us) + 4.0),
                SMALL_SIZE,
                (palette.faint, Hold::End),
                &Quantity::us(us).to_string(),
            );
        }
        let step = round_step(most / 5.0);
        for number in 0..=(most / step) as u32 {
            let per_s = step * f64::from(number);
            let label = Quantity::per_s(per_s).to_string();
            self.held((x(per_s), bottom + 16.0), SMALL_SIZE, (palette.faint, Hold::Middle), &label);
        }
        for us in &curve.limits_us {
            self.area((LEFT, y(*us) - 1.0), (RIGHT - LEFT, 2.0), palette.worse);
        }
        if let Some(per_s) = *per_s {
            self.area((x(per_s) - 1.0, top), (2.0, HEIGHT), palette.one);
        }
        type Time = fn(&RatePoint) -> Option<f64>;
        let lines: [(&str, Time, Rgb); 3] = [
            ("p50", |point| point.p50_us, palette.equivalent),
            ("p90", |point| point.p90_us, palette.inconclusive),
            ("p99", |point| point.p99_us, palette.better),
        ];
        for (name, time, fill) in lines {
            let points = points.iter().filter_map(|point| Some((x(point.per_s), y(time(point)?))));
            let points: Vec<(f64, f64)> = points.collect();
            self.line(&points, fill);
            if let Some((x, y)) = points.first() {
                self.held((x + 8.0, y - 6.0), SMALL_SIZE, (fill, Hold::Begin), name);
            }
        }
        self.y = bottom + 24.0;
        self.small("response time over requests per second; horizontal line: the SLO; vertical line and band: the capacity with its 95 % interval");
    }

    /// A line through these points, each of which is marked.
    fn line(&mut self, points: &[(f64, f64)], fill: Rgb) {
        for pair in points.windows(2) {
            let ((x1, y1), (x2, y2)) = (pair[0], pair[1]);
            let length = (x2 - x1).hypot(y2 - y1).max(f64::MIN_POSITIVE);
            let (dx, dy) = ((y2 - y1) / length, (x1 - x2) / length);
            let points = vec![(x1 + dx, y1 + dy), (x2 + dx, y2 + dy), (x2 - dx, y2 - dy), (x1 - dx, y1 - dy)];
            self.shapes.push(Shape::Polygon { points, fill });
        }
        for (x, y) in points {
            self.shapes.push(Shape::Circle { x: *x, y: *y, radius: 3.0, fill });
        }
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn an_interval_without_end_does_not_squeeze_the_others() {
        let wide = Ratio { estimate: 1.02, low: 1e-9, high: 1e9 };
        let axis = axis_of(&[wide, Ratio { estimate: 1.1, low: 1.05, high: 1.15 }], 0.03);
        assert!(!axis.holds(wide.low) && !axis.holds(wide.high));
        assert_eq!((x(axis, wide.low), x(axis, wide.high)), AXIS);
        assert!((x(axis, 1.15) - x(axis, 1.05)) > 40.0);
    }
}
