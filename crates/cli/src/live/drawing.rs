//! The live view as styled lines: maps a state and the size of a terminal to its contents. Pure.
//!
//! Contents that do not fit are truncated or counted. The most important parts are kept longest: the position
//! of the run, comparisons, variants.

use analysis::{ComparisonResult, Outcome};
use anstyle::{AnsiColor, Style};
use model::thresholds::{CpuLoss, CpuLossLevel};
use report::{count, micros, rate, share};
use unicode_width::UnicodeWidthStr;

use super::screen::ScreenRequests;
use super::{LiveState, PERCENT, Trace};

/// From this height on, parts are separated by empty lines.
const AIRY_ROWS: usize = 18;
/// From this width on, the time is also drawn as a bar.
const TIME_BAR_FROM: usize = 72;
/// From this width on, a comparison takes one line.
const ONE_LINE_FROM: usize = 96;
/// Maximum width of a label and of a name.
const NAME_MAX: usize = 40;
/// Width of an interval's drawing, odd to have a middle.
const AXIS: usize = 25;
/// Width of a figure: `1,230,000/s`.
const FIGURE: usize = 11;
/// Width of a sparkline.
const SPARK: std::ops::RangeInclusive<usize> = 6..=24;

const PLAIN: Style = Style::new();
const BOLD: Style = PLAIN.bold();
const FAINT: Style = PLAIN.dimmed();
const WARN: Style = AnsiColor::Yellow.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const GOOD: Style = AnsiColor::Green.on_default();
const CYAN: Style = AnsiColor::Cyan.on_default();

/// A part of a line, and its style.
pub type StyledText = (String, Style);
pub type StyledLine = Vec<StyledText>;

#[derive(Clone, Copy)]
pub struct LiveFrame<'a> {
    pub state: &'a LiveState,
    /// The user's choices.
    pub shown: &'a ScreenRequests,
    /// The last lines of the services' logs, if they are shown.
    pub logs: &'a [String],
    /// Seconds since the last update of the state.
    pub since_s: f64,
}

/// Draws a view for a terminal of `columns` and `rows`. It has at most one line less than the terminal, and
/// leaves the last column empty, because text in it wraps on some terminals.
pub fn draw(frame: LiveFrame<'_>, columns: u16, rows: u16) -> Vec<StyledLine> {
    let width = usize::from(columns.saturating_sub(1)).max(1);
    let mut lines = lines(frame, width, usize::from(rows.saturating_sub(1)).max(1));
    lines.iter_mut().for_each(|line| clip(line, width));
    lines
}

/// Truncates a line to the available columns, and removes control characters.
fn clip(line: &mut StyledLine, mut room: usize) {
    for (text, _) in &mut *line {
        text.retain(|letter| !letter.is_control());
        while text.width() > room {
            text.pop();
        }
        room -= text.width();
    }
    // Trailing spaces would wrap in a window that gets narrower.
    if let Some((text, _)) = line.last_mut() {
        text.truncate(text.trim_end().len());
    }
}

fn lines(frame: LiveFrame<'_>, width: usize, height: usize) -> Vec<StyledLine> {
    let LiveFrame { state, shown, .. } = frame;
    let mut head = vec![title(state, width), place(frame, width), doing(frame)];
    let mut foot = alerts(state);
    foot.extend(extra(frame, height));
    let airy = height >= AIRY_ROWS;
    let gaps = if airy { 3 } else { 0 };
    let room = height.saturating_sub(head.len() + foot.len() + 1 + gaps);
    for part in body(state, width, room) {
        if airy && !part.is_empty() {
            head.push(StyledLine::new());
        }
        head.extend(part);
    }
    if airy {
        head.push(StyledLine::new());
    }
    head.extend(foot);
    // The line with the keys always stays.
    head.truncate(height.saturating_sub(1));
    head.push(keys(shown, width));
    head
}

fn title(state: &LiveState, width: usize) -> StyledLine {
    let (name, question) = (
        state.plan().name.clone(),
        state.plan().question.clone().unwrap_or_default(),
    );
    let room = width.saturating_sub(name.width() + 2);
    vec![
        span(name, BOLD),
        span("  ", PLAIN),
        span(cut(&question, room), FAINT),
    ]
}

/// The current block, the time passed and the time left. With enough room, the time is also a bar.
fn place(frame: LiveFrame<'_>, width: usize) -> StyledLine {
    let (elapsed_s, left_s) = frame.state.times(frame.since_s);
    let text = super::position(frame.state, frame.since_s);
    let room = width.saturating_sub(text.width() + 2).min(30);
    if width < TIME_BAR_FROM || room < 8 || left_s <= 0.0 {
        return vec![span(cut(&text, width), PLAIN)];
    }
    let done = (elapsed_s / (elapsed_s + left_s) * room as f64).round() as usize;
    vec![
        span(text + "  ", PLAIN),
        span("━".repeat(done), CYAN),
        span("─".repeat(room - done), FAINT),
    ]
}

fn doing(frame: LiveFrame<'_>) -> StyledLine {
    match frame.shown.stops {
        true => vec![span(
            "stopping: services are ended, then the report is drawn",
            WARN,
        )],
        false => vec![span(&frame.state.doing, PLAIN)],
    }
}

/// Problems, one line each, or one line if there are none.
fn alerts(state: &LiveState) -> Vec<StyledLine> {
    let alert = |name, text, style| vec![span(name, FAINT), span(text, style)];
    let mut lines = Vec::new();
    let all = model::quantity::many(state.requests, "request");
    if state.failed > 0 {
        let way = state.most_frequent_failure();
        let way = way.map_or(String::new(), |(way, times)| {
            format!(": {way} ({})", count(times))
        });
        let text = format!("{} of {all} failed{way}", count(state.failed));
        lines.push(alert("errors  ", text, BAD));
    } else if state.requests > 0 {
        lines.push(alert("errors  ", format!("none in {all}"), FAINT));
    }
    let steal = CpuLoss::Steal.level(state.steal_share);
    if steal >= CpuLossLevel::WidensIntervals {
        let text = format!(
            "{} of the CPU time: {}",
            share(state.steal_share),
            steal.effect()
        );
        lines.push(alert("steal   ", text, WARN));
    }
    lines
}

/// Parts that are only shown on request: help, logs.
fn extra(frame: LiveFrame<'_>, height: usize) -> Vec<StyledLine> {
    let mut lines = Vec::new();
    if frame.shown.help {
        lines.extend(
            HELP.iter()
                .map(|(key, text)| vec![span(format!("{key:<8}"), BOLD), span(*text, FAINT)]),
        );
    }
    if frame.shown.logs {
        lines.push(vec![span(
            "the services' last words, from the record's logs",
            FAINT,
        )]);
        let logs = &frame.logs[frame.logs.len().saturating_sub((height / 3).max(3))..];
        lines.extend(
            logs.iter()
                .map(|line| vec![span(format!("  {line}"), PLAIN)]),
        );
        if logs.is_empty() {
            lines.push(vec![span("  nothing so far", FAINT)]);
        }
    }
    lines
}

/// Functions of the keys, in lines that fit the narrowest terminal.
const HELP: [(&str, &str); 5] = [
    ("q, s", "stop early with what there is, as Ctrl-C does: the"),
    ("", "record is closed and the report printed; once more"),
    ("", "leaves at once"),
    ("l", "show or hide what the services said last"),
    ("?", "show or hide this"),
];

fn keys(shown: &ScreenRequests, width: usize) -> StyledLine {
    let stop = if width < 60 {
        "stop"
    } else {
        "stop with what there is"
    };
    let keys = [("q", stop), ("l", "logs"), ("?", "help")];
    if !shown.keys {
        return vec![span("Ctrl-C stops with what there is", FAINT)];
    }
    let key = |(key, text)| [span(key, BOLD), span(format!(" {text}   "), FAINT)];
    keys.into_iter().flat_map(key).collect()
}

/// Comparisons with their intervals, and variants with the results of their slices, as far as they fit: the
/// first comparisons, the most recently measured variants, and the number of others.
fn body(state: &LiveState, width: usize, room: usize) -> [Vec<StyledLine>; 2] {
    let each = if width >= ONE_LINE_FROM { 1 } else { 2 };
    let widest = state
        .comparisons()
        .map(|(label, _)| label.width())
        .max()
        .unwrap_or(0)
        .min(NAME_MAX);
    let drawn = state
        .comparisons()
        .flat_map(|(label, one)| comparison(state, &label, one, (width, widest)));
    let mut comparisons: Vec<StyledLine> = drawn.collect();
    if !comparisons.is_empty() {
        let margin = share(state.plan().design.margin);
        let legend = format!("  │ no difference  ┊ margin {margin}  ● estimate  ━ interval");
        comparisons.push(vec![span(legend, FAINT)]);
    }
    let table = VariantsLayout::of(state, width);
    let mut variants = vec![table.heading()];
    variants.extend(state.variants.iter().map(|trace| table.line(trace)));
    if comparisons.len() + variants.len() <= room {
        return [comparisons, variants];
    }
    let for_comparisons = comparisons
        .len()
        .min((room / 2).max(room.saturating_sub(variants.len())));
    if comparisons.len() > for_comparisons {
        let (all, fit) = (
            (comparisons.len() - 1) / each,
            for_comparisons.saturating_sub(1) / each,
        );
        comparisons.truncate(fit * each);
        comparisons.extend((for_comparisons > 0).then(|| more(all - fit, "comparison")));
    }
    let room = room.saturating_sub(comparisons.len());
    if variants.len() > room {
        let fit = room.saturating_sub(2).min(state.variants.len());
        let mut row = 0..;
        // The heading, and the most recently measured variants in their own order.
        variants.retain(|_| match row.next() {
            Some(0) | None => fit > 0,
            Some(row) => state.latest[..fit].contains(&(row - 1)),
        });
        variants.extend((room > 0).then(|| more(state.variants.len() - fit, "variant")));
    }
    [comparisons, variants]
}

fn more(number: usize, what: &str) -> StyledLine {
    let more = model::quantity::many(number as u64, &format!("more {what}"));
    vec![span(
        format!("and {more}, which this terminal has no room for"),
        FAINT,
    )]
}

/// A comparison in one line, or in two if it is narrow: label, drawing, words.
fn comparison(
    state: &LiveState,
    label: &str,
    comparison: &ComparisonResult,
    (width, widest): (usize, usize),
) -> Vec<StyledLine> {
    let drawn = drawn(state, comparison);
    let style = style(comparison.outcome, drawn, state.is_withheld());
    let text = report::known(&state.conclusion, comparison);
    let text = text.unwrap_or_else(|| "no block is complete yet".to_owned());
    let one_line = width >= ONE_LINE_FROM;
    let before = if one_line { widest } else { 0 };
    let room = width.saturating_sub(before + 2 + AXIS + 2 + text.width() + 2);
    let label = cut(label, if one_line { widest } else { width });
    let mut spans = vec![span(
        if one_line {
            padded(&label, widest)
        } else {
            String::new()
        } + "  ",
        PLAIN,
    )];
    spans.extend(axis(drawn, state.plan().design.margin, AXIS, style));
    spans.extend([span("  ", PLAIN), span(text, style)]);
    spans.extend(standing(comparison, room).map(|text| span(format!("  {text}"), FAINT)));
    if one_line {
        vec![spans]
    } else {
        vec![vec![span(label, PLAIN)], spans]
    }
}

fn style(outcome: Outcome, drawn: Option<DrawnRatio>, withheld: bool) -> Style {
    match (outcome, drawn) {
        (Outcome::NoSuccess | Outcome::Invalid, _) => BAD,
        _ if withheld => FAINT,
        (Outcome::Worse, _) => BAD,
        (Outcome::Better, _) => GOOD,
        (Outcome::Equivalent, _) => CYAN,
        (Outcome::Inconclusive, None) => FAINT,
        (Outcome::Inconclusive, Some((_, None))) => PLAIN,
        (Outcome::Inconclusive, Some((_, Some(_)))) => WARN,
    }
}

/// The state of the interval in words, for users who do not see colours, within a width.
fn standing(comparison: &ComparisonResult, room: usize) -> Option<&'static str> {
    comparison.estimate?;
    let words: &[&str] = match comparison.outcome {
        Outcome::Better => &["better"],
        Outcome::Worse => &["worse"],
        Outcome::Equivalent => &["equivalent"],
        Outcome::Inconclusive => &["inconclusive so far", "unclear"],
        Outcome::NoSuccess | Outcome::Invalid => &[],
    };
    words.iter().find(|words| words.width() <= room).copied()
}

/// A ratio on an axis, with its interval once there is one.
type DrawnRatio = (f64, Option<(f64, f64)>);

/// `None` if there is no ratio yet, or none may be shown.
fn drawn(state: &LiveState, comparison: &ComparisonResult) -> Option<DrawnRatio> {
    if comparison.outcome.has_no_ratio() || state.is_withheld() {
        return None;
    }
    let estimate = comparison
        .estimate
        .as_ref()
        .map(|of| (of.ratio, Some((of.low, of.high))));
    let ratio = comparison.without_spread.or(comparison.ratio_so_far);
    estimate.or(ratio.map(|ratio| (ratio, None)))
}

/// The axis of ratios around 1 with a width of `width` columns (an odd number has a middle): the margin on
/// both sides, and the ratio. The axis is logarithmic, and extends two, four, eight, … margins to both sides,
/// as far as necessary, so that a narrowing interval is visible until it is within the margin.
fn axis(drawn: Option<DrawnRatio>, margin: f64, width: usize, style: Style) -> Vec<StyledText> {
    let margin = margin.max(1e-4).ln_1p();
    let point = drawn.map(|(ratio, _)| ratio.ln());
    let interval = drawn.and_then(|(_, interval)| interval);
    let alone = point.unwrap_or(0.0);
    let (low, high) = interval.map_or((alone, alone), |(low, high)| (low.ln(), high.ln()));
    let reach = low.abs().max(high.abs());
    let mut half = margin * 2.0;
    while half < reach && half < f64::MAX / 4.0 {
        half *= 2.0;
    }
    let at = |value: f64| {
        let share = ((value / half).clamp(-1.0, 1.0) + 1.0) / 2.0;
        (share * (width.saturating_sub(1)) as f64).round() as usize
    };
    let ticks = [at(-margin), at(margin)];
    let cell = |place: usize| {
        let covered = interval.is_some() && (at(low)..=at(high)).contains(&place);
        if point.map(at) == Some(place) {
            return span("●", style.bold());
        }
        match (place == at(0.0), ticks.contains(&place), covered) {
            (true, _, true) | (_, true, true) => span("┿", style),
            (_, _, true) => span("━", style),
            (true, _, _) => span("│", FAINT),
            (_, true, _) => span("┊", FAINT),
            _ => span("·", FAINT),
        }
    };
    (0..width).map(cell).collect()
}

/// Layout of the variants' table.
struct VariantsLayout {
    name: usize,
    spark: usize,
    /// Whether there is room for the times beside the rates.
    both: bool,
    /// The quantile that is shown, in per cent.
    percent: f64,
    open_loop: bool,
    /// Whether figures are withheld, because they show which variant leads.
    withheld: bool,
}

impl VariantsLayout {
    fn of(state: &LiveState, width: usize) -> VariantsLayout {
        let longest = state
            .variants
            .iter()
            .map(|trace| trace.name.width())
            .max()
            .unwrap_or(0);
        let longest = longest.max("variant".len()).min(NAME_MAX);
        // Name, then twice: two spaces, a sparkline, a figure.
        let rest =
            |columns: usize| width.saturating_sub(longest.min(width / 3) + columns * (2 + FIGURE));
        let both = rest(2) / 2 >= *SPARK.start();
        let columns = if both { 2 } else { 1 };
        let spark = (rest(columns) / columns).clamp(*SPARK.start(), *SPARK.end());
        let name = longest.min(width.saturating_sub(columns * (2 + FIGURE + spark)).max(8));
        let (open_loop, withheld) = (state.record.is_open_loop(), state.is_withheld());
        VariantsLayout {
            name,
            spark,
            both,
            percent: percent(state),
            open_loop,
            withheld,
        }
    }

    fn heading(&self) -> StyledLine {
        let column = self.spark + FIGURE;
        let response = format!("p{} response time", self.percent);
        let time = if self.open_loop {
            response.as_str()
        } else {
            "median time"
        };
        let time = if self.both {
            format!("  {:>column$}", cut(time, column))
        } else {
            String::new()
        };
        let name = format!("{:1$}", "variant", self.name);
        vec![span(
            format!("{name}  {:>column$}{time}", "throughput"),
            FAINT,
        )]
    }

    fn line(&self, trace: &Trace) -> StyledLine {
        let mut spans = vec![span(padded(&cut(&trace.name, self.name), self.name), PLAIN)];
        let rates: Vec<Option<f64>> = trace
            .slices
            .iter()
            .map(|slice| Some(slice.rate_per_s))
            .collect();
        spans.extend(self.column(&rates, rate));
        if self.both {
            let times: Vec<Option<f64>> = trace
                .slices
                .iter()
                .map(|slice| slice.us(self.percent))
                .collect();
            spans.extend(self.column(&times, micros));
        }
        spans
    }

    fn column(&self, values: &[Option<f64>], figure: fn(f64) -> String) -> [StyledText; 3] {
        let last = values
            .iter()
            .rev()
            .flatten()
            .next()
            .filter(|_| !self.withheld);
        let last = last.map(|value| figure(*value)).unwrap_or_default();
        let spark = span(sparkline(values, self.spark), CYAN);
        [
            span("  ", PLAIN),
            spark,
            span(format!("{last:>FIGURE$}"), PLAIN),
        ]
    }
}

/// The quantile of times that is shown: the median in closed loop. In open loop the highest for which all
/// slices so far have enough requests.
fn percent(state: &LiveState) -> f64 {
    let slices = || state.variants.iter().flat_map(|trace| &trace.slices);
    let known =
        |percent: &f64| slices().all(|slice| slice.requests == 0 || slice.us(*percent).is_some());
    let highest = PERCENT.iter().rev().copied().find(known);
    highest
        .filter(|_| state.record.is_open_loop())
        .unwrap_or(PERCENT[0])
}

/// The last figures as small bars, the newest on the right. The scale extends from the lowest to the highest,
/// but at least over a tenth, so that steady values look steady.
fn sparkline(values: &[Option<f64>], width: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let shown = &values[values.len().saturating_sub(width)..];
    let known = || shown.iter().flatten().copied();
    let (least, most) = (
        known().fold(f64::INFINITY, f64::min),
        known().fold(0.0, f64::max),
    );
    let middle = (least + most) / 2.0;
    let (bottom, top) = (least.min(middle * 0.95), most.max(middle * 1.05));
    let bar = |value: &Option<f64>| match value {
        Some(value) if top > bottom => {
            let place = (value - bottom) / (top - bottom) * (BARS.len() - 1) as f64;
            BARS[(place.round() as usize).min(BARS.len() - 1)]
        }
        Some(_) => BARS[0],
        None => ' ',
    };
    let bars: String = shown.iter().map(bar).collect();
    format!("{bars:>width$}")
}

fn span(text: impl Into<String>, style: Style) -> StyledText {
    (text.into(), style)
}

/// Pads text with spaces to a width.
fn padded(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(text.width())))
}

/// Truncates text to a width, with a mark at the end.
fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut kept = text.to_owned();
    while kept.width() >= columns.max(1) {
        kept.pop();
    }
    if columns > 0 {
        format!("{kept}…")
    } else {
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_tightens_against_the_margin_and_the_axis_holds_it() {
        let axis = |drawn| {
            axis(drawn, 0.03, 25, PLAIN)
                .into_iter()
                .map(|(cell, _)| cell)
                .collect::<String>()
        };
        let drawn = |low, ratio, high| axis(Some((ratio, Some((low, high)))));
        insta::assert_snapshot!([
            axis(None),
            axis(Some((16.7, None))),
            drawn(0.80, 1.05, 1.38),
            drawn(0.93, 1.03, 1.14),
            drawn(0.99, 1.01, 1.03),
            drawn(0.995, 1.0, 1.005),
            drawn(15.0, 16.7, 18.6),
            drawn(1e-300, 1.0, 1e300),
        ].join("\n"), @r"
        ······┊·····│·····┊······
        ············│········●···
        ······━━━━━┿┿●━━━━━━━····
        ········━━━┿┿━●━━━━━·····
        ······┊···━━┿━●━━━┿······
        ······┊····━●━····┊······
        ············│········●···
        ···━━━━━━━━━●━━━━━━━━━···
        ");
    }

    #[test]
    fn what_is_steady_looks_steady_and_the_newest_is_on_the_right() {
        let some = |values: &[f64]| values.iter().copied().map(Some).collect::<Vec<_>>();
        assert_eq!(sparkline(&some(&[100.0, 101.0, 100.0]), 5), "  ▄▅▄");
        assert_eq!(sparkline(&some(&[1.0, 100.0, 50.0, 100.0]), 3), "█▁█");
        assert_eq!(sparkline(&[None, Some(0.0)], 2), " ▁");
        assert_eq!(sparkline(&[], 3), "   ");
    }
}
