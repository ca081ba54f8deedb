//! The two tables of the live view: comparisons with their intervals, variants with what their slices gave. Pure.

use analysis::Outcome;
use ratatui_core::style::{Color, Style};
use ratatui_core::text::{Line, Span};
use report::{micros, rate, share};

use super::bar::{Drawn, Mark, axis, sparkline};
use super::drawing::{BAD, BOLD, FAINT, WARN};
use super::state::{Compared, PERCENT, SoFar, State, Trace};
use super::words;

/// From this width on a comparison has all in one line.
const ONE_LINE_FROM: usize = 96;
/// Columns of a label, and of a name, at the most.
const NAME_MAX: usize = 40;
/// Columns of an interval's drawing, with a middle.
const AXIS: usize = 25;
/// Columns of a figure: `1,230,000/s`.
const FIGURE: usize = 11;
/// Columns of a sparkline.
const SPARK: std::ops::RangeInclusive<usize> = 6..=24;

/// Both tables, as far as they fit.
#[derive(Debug, Default)]
pub struct Body {
    /// Lines of the comparisons.
    pub comparisons: Vec<Line<'static>>,
    /// Lines of the variants.
    pub variants: Vec<Line<'static>>,
    /// Lines of one comparison.
    lines_each: usize,
    /// The variants' lines that are kept longest: places in `variants`, those measured last first.
    latest: Vec<usize>,
}

impl Body {
    /// All there is to show, however long.
    pub fn of(state: &State, width: usize) -> Body {
        let lines_each = if width >= ONE_LINE_FROM { 1 } else { 2 };
        let labels = state.comparisons.iter().map(|compared| columns(&compared.label));
        let widest = labels.max().unwrap_or(0).min(NAME_MAX);
        let mut comparisons: Vec<Line> = state
            .comparisons
            .iter()
            .flat_map(|compared| comparison(compared, state.plan().design.margin, (width, widest)))
            .collect();
        if !comparisons.is_empty() {
            comparisons.push(legend(state));
        }
        let table = Table::of(state, width);
        let mut variants = vec![table.heading()];
        variants.extend(state.variants.iter().map(|trace| table.line(trace)));
        let mut latest: Vec<usize> = (0..state.variants.len()).collect();
        latest.sort_by_key(|index| std::cmp::Reverse(state.variants[*index].touched));
        Body { comparisons, variants, lines_each, latest }
    }

    /// What of it fits into so many lines: the first comparisons, the variants measured last, and how many more there are.
    pub fn within(self, room: usize) -> Body {
        let (all, variants) = (self.comparisons.len(), self.variants.len());
        if all + variants <= room {
            return self;
        }
        let for_comparisons = all.min((room / 2).max(room.saturating_sub(variants)));
        let lines_each = self.lines_each;
        let comparisons = first(self.comparisons, for_comparisons, lines_each);
        let rows = room.saturating_sub(comparisons.len());
        let variants = last_measured(self.variants, &self.latest, rows);
        Body { comparisons, variants, lines_each, latest: self.latest }
    }
}

/// The first comparisons, as many as fit, with the legend or how many more there are as the last line.
fn first(mut lines: Vec<Line<'static>>, room: usize, each: usize) -> Vec<Line<'static>> {
    if lines.len() <= room {
        return lines;
    }
    let all = lines.len().saturating_sub(1) / each;
    let fit = room.saturating_sub(1) / each;
    lines.truncate(fit * each);
    if room > 0 {
        lines.push(more(all - fit, "comparison"));
    }
    lines
}

/// The heading and the variants measured last, in their own order, as many as fit.
fn last_measured(lines: Vec<Line<'static>>, latest: &[usize], room: usize) -> Vec<Line<'static>> {
    if lines.len() <= room {
        return lines;
    }
    let fit = room.saturating_sub(2);
    let shown: Vec<usize> = latest.iter().take(fit).map(|index| index + 1).collect();
    let left = latest.len() - shown.len();
    let is_kept = |index: usize| index == 0 && fit > 0 || shown.contains(&index);
    let lines = lines.into_iter().enumerate();
    let mut kept: Vec<Line> = lines.filter(|(index, _)| is_kept(*index)).map(|(_, line)| line).collect();
    if room > 0 {
        kept.push(more(left, "variant"));
    }
    kept
}

fn more(count: usize, what: &str) -> Line<'static> {
    let plural = if count == 1 { "" } else { "s" };
    Line::styled(format!("and {count} more {what}{plural}, which this terminal has no room for"), FAINT)
}

/// A comparison in one line, or in two where it is narrow: label, drawing, words.
fn comparison(compared: &Compared, margin: f64, (width, widest): (usize, usize)) -> Vec<Line<'static>> {
    let drawn = match &compared.so_far {
        SoFar::Ratio(ratio) | SoFar::Same(ratio) => Drawn::Ratio(*ratio),
        SoFar::Interval(estimate) => Drawn::Interval(estimate),
        _ => Drawn::Nothing,
    };
    let style = style(compared);
    let mut drawing: Vec<Span> = Vec::new();
    for (cell, mark) in axis(drawn, margin, AXIS) {
        let style = match mark {
            Mark::Axis => FAINT,
            Mark::Interval => style,
            Mark::Point => style.patch(BOLD),
        };
        drawing.push(Span::styled(cell.to_string(), style));
    }
    let text = words::so_far(compared).unwrap_or_else(|| "no block is complete yet".to_owned());
    let one_line = width >= ONE_LINE_FROM;
    let before = if one_line { widest } else { 0 };
    let room = width.saturating_sub(before + 2 + AXIS + 2 + columns(&text) + 2);
    let mut after = vec![Span::raw("  "), Span::styled(text, style)];
    after.extend(standing(compared, room).map(|text| Span::styled(format!("  {text}"), FAINT)));
    let label = cut(&compared.label, if one_line { widest } else { width });
    let mut spans =
        vec![Span::raw(if one_line { padded(&label, widest) } else { String::new() }), Span::raw("  ")];
    spans.extend(drawing);
    spans.extend(after);
    if one_line { vec![Line::from(spans)] } else { vec![Line::from(label), Line::from(spans)] }
}

fn style(compared: &Compared) -> Style {
    match (&compared.so_far, compared.outcome) {
        (SoFar::Nothing | SoFar::Withheld, _) => FAINT,
        (_, Outcome::Better) => Style::new().fg(Color::Green),
        (_, Outcome::Worse | Outcome::NoSuccess | Outcome::Void) => BAD,
        (_, Outcome::Equivalent) => Style::new().fg(Color::Cyan),
        (SoFar::Interval(_), Outcome::Inconclusive) => WARN,
        (_, Outcome::Inconclusive) => Style::new(),
    }
}

/// What the interval says, for who does not see colours, in so many columns.
fn standing(compared: &Compared, room: usize) -> Option<String> {
    let SoFar::Interval(_) = &compared.so_far else { return None };
    let words = match (compared.outcome, compared.blocks_needed) {
        (Outcome::Better, _) => vec!["better".to_owned()],
        (Outcome::Worse, _) => vec!["worse".to_owned()],
        (Outcome::Equivalent, _) => vec!["equivalent".to_owned()],
        (Outcome::Inconclusive, needed) => {
            let about = |blocks| {
                [
                    format!("inconclusive; about {blocks} blocks would decide"),
                    format!("needs about {blocks} blocks"),
                ]
            };
            let told = needed.map(about).into_iter().flatten();
            told.chain(["inconclusive".to_owned(), "unclear".to_owned()]).collect()
        }
        (Outcome::NoSuccess | Outcome::Void, _) => Vec::new(),
    };
    words.into_iter().find(|words| columns(words) <= room)
}

fn legend(state: &State) -> Line<'static> {
    let margin = share(state.plan().design.margin);
    Line::styled(format!("  │ no difference  ┊ margin {margin}  ● estimate  ━ interval"), FAINT)
}

/// How the variants' table is laid out.
struct Table {
    name: usize,
    spark: usize,
    /// Whether there is room for the times beside the rates.
    both: bool,
    /// Which quantile is shown, in per cent.
    percent: f64,
    open_loop: bool,
    /// Whether figures are withheld, because they tell who is ahead.
    withheld: bool,
}

impl Table {
    fn of(state: &State, width: usize) -> Table {
        let longest = state.variants.iter().map(|trace| columns(&trace.name)).max().unwrap_or(0);
        let longest = longest.max("variant".len()).min(NAME_MAX);
        // Name, then twice: two blanks, a sparkline, a figure.
        let rest = |columns: usize| width.saturating_sub(longest.min(width / 3) + columns * (2 + FIGURE));
        let both = rest(2) / 2 >= *SPARK.start();
        let columns = if both { 2 } else { 1 };
        let spark = (rest(columns) / columns).clamp(*SPARK.start(), *SPARK.end());
        let name = longest.min(width.saturating_sub(columns * (2 + FIGURE + spark)).max(8));
        let (open_loop, withheld) = (state.record.is_open_loop(), state.is_withheld());
        Table { name, spark, both, percent: percent(state), open_loop, withheld }
    }

    fn heading(&self) -> Line<'static> {
        let column = self.spark + FIGURE;
        let time = match (self.open_loop, self.percent) {
            (false, _) => "median time".to_owned(),
            (true, percent) => format!("p{percent} response time"),
        };
        let time = if self.both { format!("  {:>column$}", cut(&time, column)) } else { String::new() };
        let name = format!("{:1$}", "variant", self.name);
        Line::styled(format!("{name}  {:>column$}{time}", "throughput"), FAINT)
    }

    fn line(&self, trace: &Trace) -> Line<'static> {
        let name = cut(&trace.name, self.name);
        let mut spans = vec![Span::raw(padded(&name, self.name))];
        let rates: Vec<Option<f64>> = trace.slices.iter().map(|slice| Some(slice.rate_per_s)).collect();
        spans.extend(self.column(&rates, rate));
        if self.both {
            let times: Vec<Option<f64>> = trace.slices.iter().map(|slice| slice.us(self.percent)).collect();
            spans.extend(self.column(&times, micros));
        }
        Line::from(spans)
    }

    fn column(&self, values: &[Option<f64>], figure: fn(f64) -> String) -> [Span<'static>; 3] {
        let last = values.iter().rev().flatten().next().map(|value| figure(*value));
        let last = if self.withheld { String::new() } else { last.unwrap_or_default() };
        [
            Span::raw("  "),
            Span::styled(sparkline(values, self.spark), Style::new().fg(Color::Cyan)),
            Span::raw(format!("{last:>FIGURE$}")),
        ]
    }
}

/// The quantile of times that is shown: in closed loop the median; in open loop the highest that all slices so far have enough
/// requests for.
fn percent(state: &State) -> f64 {
    let slices = || state.variants.iter().flat_map(|trace| &trace.slices);
    let known = |percent: &f64| slices().all(|slice| slice.requests == 0 || slice.us(*percent).is_some());
    let highest = PERCENT.iter().rev().copied().find(known);
    highest.filter(|_| state.record.is_open_loop()).unwrap_or(PERCENT[0])
}

/// Columns that a text takes on a terminal.
pub fn columns(text: &str) -> usize {
    Span::raw(text).width()
}

/// A text with blanks behind it, up to so many columns.
fn padded(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(self::columns(text))))
}

/// A text in at most so many columns; what is cut off is shown to be.
pub fn cut(text: &str, columns: usize) -> String {
    if self::columns(text) <= columns {
        return text.to_owned();
    }
    let mut kept = String::new();
    for letter in text.chars() {
        kept.push(letter);
        if self::columns(&kept) >= columns {
            kept.pop();
            break;
        }
    }
    if columns > 0 { format!("{kept}…") } else { String::new() }
}
