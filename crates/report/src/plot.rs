//! The verdict plot: each comparison's interval and the margin on one axis, as a static picture for pasting.
//!
//! It uses the words of the other forms, and is identical for the same record on every machine. An invalid
//! comparison has no number.
//!
//! ```text
//!   title
//!   comparison                                    VERDICT
//!   ░░|░░    ├────●────┤                          +29 %  (+10 % to +52 %)
//!   0        +20 %                                what the axis is
//!   foot
//! ```

use analysis::{Capacity, ComparisonResult, Grade, Outcome, RatePoint};
use model::quantity::{Quantity, change, many, share};
use model::text::line;
use plan::LimitFigure;
use record::Record;
use stats::Interval;

use self::drawing::{Colour, Drawing, PlotShape, PlotText, TextAnchor, cut, text_width, wrapped};
use crate::axis::{Axis, Mark, round_step};
use crate::experiment::capacity::lines;
use crate::experiment::{MeasuredRecord, answer, processor, repeat};
use crate::page::Ratio;

mod drawing;

/// Background of the plot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ground {
    /// Paper, and most pages.
    Light,
    /// A dark page.
    Dark,
}

/// Contents of a plot.
#[derive(Debug)]
pub struct Plot {
    pub(crate) title: String,
    /// The metric of all rows. `None` if each row names its own.
    pub(crate) metric: Option<&'static str>,
    pub(crate) rows: Vec<PlotRow>,
    pub(crate) margin: f64,
    /// Response times over the rate, if capacity was measured.
    pub(crate) curves: Vec<Curve>,
    /// Lines below all rows.
    pub(crate) foot: Vec<String>,
}

/// One line of the plot.
#[derive(Debug)]
pub struct PlotRow {
    /// Candidate vs baseline, with the metric if several are judged.
    pub name: String,
    /// The outcome, which determines the colour.
    pub outcome: Outcome,
    /// The verdict.
    pub word: String,
    /// `None` if there is no number, or none may be shown.
    pub span: Option<Ratio>,
    /// The estimate as the other forms print it, or why there is none.
    pub told: String,
}

impl Plot {
    /// The plot of a record.
    pub(crate) fn of(of: &MeasuredRecord<'_>) -> Plot {
        let comparisons = &of.conclusion.comparisons;
        let first = comparisons.first().map(|first| first.metric);
        let common = first.filter(|first| comparisons.iter().all(|of| of.metric == *first));
        let told = answer::groups(of.conclusion).flat_map(answer::told);
        Plot {
            title: of.title().to_owned(),
            metric: common.map(|metric| metric.row().title),
            rows: told
                .map(|comparison| row(of, comparison, common.is_none()))
                .collect(),
            margin: of.record.header.plan.design.margin,
            curves: all(of),
            foot: foot(of),
        }
    }

    /// Only the curves, if capacity was measured. The page shows everything else.
    pub(crate) fn of_capacity(of: &MeasuredRecord<'_>) -> Option<Plot> {
        let plot = Plot {
            rows: Vec::new(),
            foot: Vec::new(),
            ..Plot::of(of)
        };
        (!plot.curves.is_empty()).then_some(plot)
    }

    /// Description of the curves.
    pub(crate) fn told(&self) -> String {
        self.curves
            .iter()
            .map(|curve| curve.told.join("; "))
            .collect::<Vec<_>>()
            .join("; ")
    }

    /// Renders an SVG, 700 wide, without script, link or image.
    pub fn svg(&self, ground: Ground) -> String {
        drawing::svg(&laid_out(self), ground)
    }
}

fn row(of: &MeasuredRecord<'_>, comparison: &ComparisonResult, several: bool) -> PlotRow {
    let ComparisonResult {
        label,
        outcome,
        metric,
        estimate,
        ..
    } = comparison;
    let as_one = outcome.has_no_ratio();
    let metric_told = if several && !as_one {
        format!(", {}", metric.row().title)
    } else {
        String::new()
    };
    let told = match estimate.as_ref().map(change) {
        Some((value, interval)) => format!("{value}  ({interval})"),
        None => answer::detail(comparison, of.conclusion, &of.record.header.plan.design),
    };
    PlotRow {
        name: format!("{label}{metric_told}"),
        outcome: *outcome,
        word: answer::word_of(comparison).to_uppercase(),
        span: estimate.as_ref().map(Into::into),
        told,
    }
}

/// Qualifications, time and place of the measurement, and how to repeat it.
fn foot(of: &MeasuredRecord<'_>) -> Vec<String> {
    let Record { header, .. } = of.record;
    let date = header.created.split('T').next().unwrap_or_default();
    let blocks = many(of.conclusion.blocks.into(), "block");
    let mut machine = format!("{date}, {blocks}, {}", processor(&header.environment));
    machine.extend(
        header
            .environment
            .kernel
            .iter()
            .map(|kernel| format!(", Linux {kernel}")),
    );
    let repeat = format!("to repeat it: {}", repeat(of.record));
    let found = [
        (Grade::Invalid, "invalid finding"),
        (Grade::Warning, "warning"),
    ]
    .map(|(grade, noun)| {
        (
            of.conclusion
                .findings
                .iter()
                .filter(|found| found.grade == grade)
                .count(),
            noun,
        )
    });
    let found: Vec<String> = found
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, noun)| many(*count as u64, noun))
        .collect();
    let found = (!found.is_empty()).then(|| format!("{}: see the report", found.join(", ")));
    found.into_iter().chain([machine, repeat]).collect()
}

const WIDTH: f64 = 700.0;
const MARGIN: f64 = 20.0;
const RIGHT: f64 = WIDTH - MARGIN;
/// Ends of the axis. The figures are to the right.
const AXIS: (f64, f64) = (MARGIN, 430.0);
const FIGURES: f64 = 446.0;
const TITLE_SIZE: f64 = 18.0;
const TITLE_LINES: usize = 3;
const LABEL_SIZE: f64 = 14.0;
const FIGURE_SIZE: f64 = 13.0;
const SMALL_SIZE: f64 = 12.0;
/// Minimum distance between labels of an axis.
const LABEL_GAP: f64 = 6.0;
const ROW: f64 = 54.0;
/// Further comparisons are counted, not drawn, because a picture with more is unreadable.
const ROWS_MAX: usize = 40;

/// Minimum length of the axis, as a logarithm, if neither margin nor interval has any width.
const NARROWEST: f64 = 0.01;
/// An interval that extends beyond this multiple of the other contents is cut off, and ends in an arrow.
const REACH: f64 = 4.0;
/// Share of the axis that stays empty at each end.
const EMPTY: f64 = 0.04;

/// An axis that shows the margin and all intervals.
fn axis_of(spans: &[Ratio], margin: f64) -> Axis {
    let band = (1.0 + margin.max(0.0)).ln();
    let furthest = spans
        .iter()
        .map(|span| span.estimate.ln().abs())
        .fold(band, f64::max)
        .max(NARROWEST / 2.0);
    let limit = furthest * REACH;
    let low = spans
        .iter()
        .map(|span| span.low.ln())
        .fold(-band, f64::min)
        .max(-limit);
    let high = spans
        .iter()
        .map(|span| span.high.ln())
        .fold(band, f64::max)
        .min(limit);
    Axis::between(low.exp(), high.exp(), NARROWEST).with_room(EMPTY)
}

/// Position of a ratio in the picture, clamped to the ends of the axis.
fn x(axis: Axis, ratio: f64) -> f64 {
    AXIS.0 + axis.place(ratio).clamp(0.0, 1.0) * (AXIS.1 - AXIS.0)
}

/// The common axis of all intervals.
struct Ruler {
    axis: Axis,
    /// Marks whose labels fit.
    marks: Vec<Mark>,
    margin: f64,
}

/// A drawing that grows downwards.
struct PlotSheet {
    shapes: Vec<PlotShape>,
    /// Current height.
    y: f64,
}

/// Lays out the whole plot.
fn laid_out(plot: &Plot) -> Drawing {
    let mut sheet = PlotSheet {
        shapes: Vec::new(),
        y: MARGIN,
    };
    for text in wrapped(&line(&plot.title), TITLE_SIZE, RIGHT - MARGIN, TITLE_LINES) {
        sheet.y += TITLE_SIZE;
        sheet.text((MARGIN, sheet.y), TITLE_SIZE, INK, &text);
        sheet.y += 6.0;
    }
    sheet.y += 10.0;
    let (shown, hidden) = plot.rows.split_at(plot.rows.len().min(ROWS_MAX));
    if shown.is_empty() && plot.curves.is_empty() {
        sheet.small("nothing is compared in this record");
    }
    let spans: Vec<_> = shown.iter().filter_map(|row| row.span).collect();
    let axis = (!spans.is_empty()).then(|| axis_of(&spans, plot.margin));
    let ruler = axis.map(|axis| Ruler {
        axis,
        marks: apart(axis),
        margin: plot.margin,
    });
    shown.iter().for_each(|row| sheet.row(row, ruler.as_ref()));
    if let Some(ruler) = &ruler {
        sheet.named(ruler);
        let metric = plot
            .metric
            .map(|metric| format!("{metric}, "))
            .unwrap_or_default();
        let shaded = format!("; shaded: the margin of {}", share(plot.margin));
        let shaded = if plot.margin > 0.0 {
            shaded
        } else {
            String::new()
        };
        sheet.small(&format!(
            "{metric}candidate over baseline, 95 % intervals, log axis{shaded}"
        ));
    }
    if !hidden.is_empty() {
        sheet.small(&format!(
            "and {} more verdicts that are not drawn: see the report",
            hidden.len()
        ));
    }
    plot.curves.iter().for_each(|curve| sheet.curve(curve));
    sheet.y += 8.0;
    plot.foot.iter().for_each(|text| sheet.small(text));
    let told = shown
        .iter()
        .map(|row| format!("{}: {}, {}", row.word, line(&row.name), row.told));
    let told = told.chain(plot.curves.iter().map(|curve| curve.told.join("; ")));
    Drawing {
        width: WIDTH,
        height: (sheet.y + MARGIN).ceil(),
        ground: GROUND,
        title: line(&plot.title),
        description: told.collect::<Vec<_>>().join("\n"),
        shapes: sheet.shapes,
    }
}

/// Selects marks whose labels do not overlap, from no difference outwards.
fn apart(axis: Axis) -> Vec<Mark> {
    let (below, above): (Vec<Mark>, Vec<Mark>) =
        axis.marks().into_iter().partition(|mark| mark.ratio < 1.0);
    let width = |mark: &Mark| text_width(&mark.label, SMALL_SIZE);
    let mut kept: Vec<Mark> = Vec::new();
    for mark in above.into_iter().chain(below.into_iter().rev()) {
        let apart = |other: &Mark| (x(axis, mark.ratio) - x(axis, other.ratio)).abs();
        if kept
            .iter()
            .all(|other| apart(other) >= (width(&mark) + width(other)) / 2.0 + 8.0)
        {
            kept.push(mark);
        }
    }
    kept
}

impl PlotSheet {
    fn text(&mut self, at: (f64, f64), size: f64, fill: Colour, text: &str) {
        self.held(at, size, (fill, TextAnchor::Begin), text);
    }

    fn held(&mut self, at: (f64, f64), size: f64, (fill, hold): (Colour, TextAnchor), text: &str) {
        self.shapes.push(PlotShape::Text(PlotText {
            at,
            size,
            hold,
            fill,
            text: text.to_owned(),
        }));
    }

    fn area(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), fill: Colour) {
        let (right, bottom) = (x + width, y + height);
        self.shapes.push(PlotShape::Polygon(
            vec![(x, y), (right, y), (right, bottom), (x, bottom)],
            fill,
        ));
    }

    /// A line of small text below everything so far.
    fn small(&mut self, text: &str) {
        for text in wrapped(&line(text), SMALL_SIZE, RIGHT - MARGIN, 2) {
            self.y += SMALL_SIZE + 5.0;
            self.text((MARGIN, self.y), SMALL_SIZE, FAINT, &text);
        }
    }

    /// Background of an interval: the margin, and the marks of the axis.
    fn lane(&mut self, ruler: &Ruler, (top, height): (f64, f64)) {
        let axis = ruler.axis;
        if ruler.margin > 0.0 {
            let (low, high) = (
                x(axis, 1.0 / (1.0 + ruler.margin)),
                x(axis, 1.0 + ruler.margin),
            );
            self.area((low, top), (high - low, height), BAND);
        }
        for Mark { ratio, .. } in &ruler.marks {
            let (width, fill) = if *ratio == 1.0 {
                (1.5, ONE)
            } else {
                (1.0, GRID)
            };
            self.area((x(axis, *ratio) - width / 2.0, top), (width, height), fill);
        }
    }

    /// The labels of the marks below all rows, as far as they do not overlap. No difference is always labelled.
    fn named(&mut self, ruler: &Ruler) {
        let mut marks: Vec<&Mark> = ruler.marks.iter().collect();
        marks.sort_by_key(|mark| mark.ratio != 1.0);
        let mut taken: Vec<(f64, f64)> = Vec::new();
        for Mark { ratio, label } in marks {
            // Labels at the ends would extend beyond them.
            let half = text_width(label, SMALL_SIZE) / 2.0;
            let x = x(ruler.axis, *ratio).clamp(MARGIN + half, AXIS.1 + MARGIN - half);
            let (low, high) = (x - half - LABEL_GAP, x + half + LABEL_GAP);
            if taken.iter().any(|other| low < other.1 && other.0 < high) {
                continue;
            }
            taken.push((x - half, x + half));
            self.held(
                (x, self.y + 16.0),
                SMALL_SIZE,
                (FAINT, TextAnchor::Middle),
                label,
            );
        }
        self.y += 26.0;
    }

    fn row(&mut self, row: &PlotRow, ruler: Option<&Ruler>) {
        let fill = colour_of(row.outcome);
        let (label, lane) = (self.y + 20.0, self.y + 38.0);
        let word = text_width(&row.word, FIGURE_SIZE);
        let named = cut(&line(&row.name), LABEL_SIZE, RIGHT - MARGIN - word - 16.0);
        self.text((MARGIN, label), LABEL_SIZE, INK, &named);
        self.held(
            (RIGHT, label),
            FIGURE_SIZE,
            (fill, TextAnchor::End),
            &row.word,
        );
        let mut begin = MARGIN;
        if let Some((span, ruler)) = row.span.zip(ruler) {
            self.lane(ruler, (lane - 12.0, 24.0));
            self.interval(ruler.axis, span, (lane, fill));
            begin = FIGURES;
        }
        let told = cut(&line(&row.told), FIGURE_SIZE, RIGHT - begin);
        self.text((begin, lane + 4.5), FIGURE_SIZE, INK, &told);
        self.y += ROW;
    }

    /// A bar with its ends, which are arrows if it continues beyond the axis, and the estimate on it.
    fn interval(
        &mut self,
        axis: Axis,
        Ratio {
            estimate,
            low,
            high,
        }: Ratio,
        (y, fill): (f64, Colour),
    ) {
        let (left, right) = (x(axis, low), x(axis, high));
        self.area((left, y - 3.0), ((right - left).max(1.0), 6.0), fill);
        for (end, outwards) in [(low, -1.0), (high, 1.0)] {
            let x = x(axis, end);
            if axis.holds(end) {
                self.area((x - 1.0, y - 8.0), (2.0, 16.0), fill);
            } else {
                let points = vec![(x, y - 8.0), (x, y + 8.0), (x + outwards * 9.0, y)];
                self.shapes.push(PlotShape::Polygon(points, fill));
            }
        }
        // A ring in the background's colour keeps it visible on a shorter bar.
        let at = (x(axis, estimate), y);
        self.shapes.extend([
            PlotShape::Circle(at, 6.5, GROUND),
            PlotShape::Circle(at, 5.0, fill),
        ]);
    }
}

const GROUND: Colour = [0xffffff, 0x14171b];
const INK: Colour = [0x16191d, 0xeef0f3];
const FAINT: Colour = [0x59616b, 0xa4acb6];
/// Colours of axis lines, of the line at no difference, and of the margin.
const GRID: Colour = [0xe2e5e9, 0x2c3138];
const ONE: Colour = [0x868e98, 0x7d8590];
const BAND: Colour = [0xe6ecf6, 0x232d3d];
const BETTER: Colour = [0x0b63b5, 0x6fb1f5];
const WORSE: Colour = [0xb3420a, 0xf5914e];
const EQUIVALENT: Colour = [0x1a6b59, 0x5cc9ad];
const INCONCLUSIVE: Colour = [0x626873, 0xb1b7c0];
const VOID: Colour = [0xa3123f, 0xff86a5];

/// The colour of a verdict.
fn colour_of(outcome: Outcome) -> Colour {
    match outcome {
        Outcome::Better => BETTER,
        Outcome::Worse => WORSE,
        Outcome::Equivalent => EQUIVALENT,
        Outcome::Inconclusive => INCONCLUSIVE,
        Outcome::Invalid | Outcome::NoSuccess => VOID,
    }
}

// Response times over the rate as a picture: the rate on a linear axis, times on a logarithmic one, the
// limits, and the capacity with its interval.
//
// ```text
//   ms ┤            ╭─ p99      ─ ─ limit
//      │ ──────────╯  ▒│▒       ▒ capacity, 95 %
//      └──────────────────────  requests/s
// ```

const HEIGHT: f64 = 220.0;
/// Room for the labels of times.
const LEFT: f64 = MARGIN + 58.0;
/// Extension of the axis beyond the highest rate, and beyond the longest limit.
const ROOM: f64 = 1.05;
const ABOVE_LIMIT: f64 = 6.0;

/// The curve of one variant.
#[derive(Debug)]
pub(crate) struct Curve {
    told: Vec<String>,
    limits_us: Vec<f64>,
    of: Capacity,
}

/// Curves of all variants. Empty if capacity was not measured.
fn all(of: &MeasuredRecord<'_>) -> Vec<Curve> {
    let slo = &of.record.header.plan.design.slo;
    let times = slo
        .iter()
        .filter(|limit| limit.figure != LimitFigure::Failed)
        .map(|limit| limit.bound.value());
    let limits_us: Vec<f64> = times.collect();
    let curve = |(variant, capacity): (usize, &Capacity)| Curve {
        told: lines(of.record, of.conclusion, variant, capacity),
        limits_us: limits_us.clone(),
        of: capacity.clone(),
    };
    of.conclusion
        .capacities
        .iter()
        .enumerate()
        .map(curve)
        .collect()
}

impl Curve {
    /// The shortest and the longest time on the axis.
    fn times_us(&self) -> Option<(f64, f64)> {
        let medians = self.of.curve.iter().filter_map(|point| point.p50_us);
        let low = medians
            .reduce(f64::min)?
            .min(self.limits_us.iter().copied().fold(f64::INFINITY, f64::min));
        let p99 = self
            .of
            .curve
            .iter()
            .filter_map(|point| point.p99_us)
            .fold(0.0, f64::max);
        let limit = self.limits_us.iter().copied().fold(low, f64::max);
        Some((low * 0.7, p99.clamp(limit * 1.5, limit * ABOVE_LIMIT)))
    }
}

impl PlotSheet {
    fn curve(&mut self, curve: &Curve) {
        self.y += 12.0;
        curve.told.iter().for_each(|text| self.small(text));
        let Capacity {
            curve: points,
            reached_interval,
            at_least,
            ..
        } = &curve.of;
        // With only a lower bound, only the lower end is drawn.
        let band = reached_interval.filter(|_| !at_least);
        let line = curve.of.capacity_per_s;
        let highest = band.map(|interval| interval.high);
        let rates = points.iter().map(|point| point.per_s);
        let most = rates.chain(line).chain(highest).fold(0.0, f64::max) * ROOM;
        let Some((low, high)) = curve.times_us().filter(|_| most > 0.0) else {
            return;
        };
        let (top, bottom) = (self.y + 14.0, self.y + 14.0 + HEIGHT);
        let x = |per_s: f64| LEFT + (per_s / most).clamp(0.0, 1.0) * (RIGHT - LEFT);
        let times = Axis::between(low, high, 0.0);
        let y = |us: f64| bottom - times.place(us.clamp(low, high)) * HEIGHT;
        if let Some(Interval { low, high }) = band {
            self.area((x(low), top), ((x(high) - x(low)).max(1.0), HEIGHT), BAND);
        }
        for us in times.round() {
            self.area((LEFT, y(us)), (RIGHT - LEFT, 1.0), GRID);
            let label = Quantity::us(us).to_string();
            self.held(
                (LEFT - 6.0, y(us) + 4.0),
                SMALL_SIZE,
                (FAINT, TextAnchor::End),
                &label,
            );
        }
        let step = round_step(most / 5.0);
        for number in 0..=(most / step) as u32 {
            let per_s = step * f64::from(number);
            let label = Quantity::per_s(per_s).to_string();
            self.held(
                (x(per_s), bottom + 16.0),
                SMALL_SIZE,
                (FAINT, TextAnchor::Middle),
                &label,
            );
        }
        curve
            .limits_us
            .iter()
            .for_each(|us| self.area((LEFT, y(*us) - 1.0), (RIGHT - LEFT, 2.0), WORSE));
        line.iter()
            .for_each(|per_s| self.area((x(*per_s) - 1.0, top), (2.0, HEIGHT), ONE));
        type Time = fn(&RatePoint) -> Option<f64>;
        let lines: [(&str, Time, Colour); 3] = [
            ("p50", |point| point.p50_us, EQUIVALENT),
            ("p90", |point| point.p90_us, INCONCLUSIVE),
            ("p99", |point| point.p99_us, BETTER),
        ];
        for (name, time, fill) in lines {
            let points = points
                .iter()
                .filter_map(|point| Some((x(point.per_s), y(time(point)?))));
            let points: Vec<(f64, f64)> = points.collect();
            self.line(&points, fill);
            if let Some((x, y)) = points.first() {
                self.text((x + 8.0, y - 6.0), SMALL_SIZE, fill, name);
            }
        }
        self.y = bottom + 24.0;
        let vertical = match at_least {
            true => "vertical line: the capacity, at least",
            false => {
                "vertical line: the capacity; band: the 95 % interval of where the limit is reached"
            }
        };
        self.small(&format!(
            "response time over requests per second; horizontal line: the SLO; {vertical}"
        ));
    }

    /// A line through these points, with a mark at each.
    fn line(&mut self, points: &[(f64, f64)], fill: Colour) {
        for pair in points.windows(2) {
            let ((x1, y1), (x2, y2)) = (pair[0], pair[1]);
            let length = (x2 - x1).hypot(y2 - y1).max(f64::MIN_POSITIVE);
            let (dx, dy) = ((y2 - y1) / length, (x1 - x2) / length);
            let points = vec![
                (x1 + dx, y1 + dy),
                (x2 + dx, y2 + dy),
                (x2 - dx, y2 - dy),
                (x1 - dx, y1 - dy),
            ];
            self.shapes.push(PlotShape::Polygon(points, fill));
        }
        self.shapes
            .extend(points.iter().map(|at| PlotShape::Circle(*at, 3.0, fill)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_without_end_does_not_squeeze_the_others() {
        let wide = Ratio {
            estimate: 1.02,
            low: 1e-9,
            high: 1e9,
        };
        let axis = axis_of(
            &[
                wide,
                Ratio {
                    estimate: 1.1,
                    low: 1.05,
                    high: 1.15,
                },
            ],
            0.03,
        );
        assert!(!axis.holds(wide.low) && !axis.holds(wide.high));
        assert_eq!((x(axis, wide.low), x(axis, wide.high)), AXIS);
        assert!((x(axis, 1.15) - x(axis, 1.05)) > 40.0);
    }
}
