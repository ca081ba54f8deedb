//! An experiment over time: each comparison with its intervals one below the other, each variant in a line, and where they change.

use analysis::{Line, LineOf, Point, Shifted, TREND_SEED, Trend};
use anstyle::{AnsiColor, Style};
use record::Environment;
use serde_json::{Value, json};
use stats::{CHANGE_LEVEL, CHANGE_SIDE_MIN};
use textwrap::core::display_width;

use super::drawn::Axis;
use super::grid::{clean, cut_end};
use super::words::minute;
use super::{VERSION, table};
use crate::drawing::{BOLD, FAINT, wrapped};
use crate::figure::{change_alone, interval, share};
use crate::sheet::{machine_line, metric_name};

/// Columns of the time, and two before it.
const WHEN: usize = 18;
/// Widest picture of an interval: more is no more exact.
const BAR_MAX: usize = 60;
/// From so many columns on, intervals are told in figures too.
const WIDE: usize = 96;
const CHANGED: Style = AnsiColor::Magenta.on_default().bold();

/// A trend and what it was drawn from.
#[derive(Debug)]
pub struct Trended<'a> {
    /// Name of the experiment.
    pub experiment: &'a str,
    /// What is drawn.
    pub trend: &'a Trend,
    /// The machine of its records, with the letters by which lists name it.
    pub machine: (&'a str, &'a Environment),
    /// Records of the experiment that were made on others, or with other software.
    pub elsewhere: usize,
    /// At most so many records are shown one below the other.
    pub rows: usize,
}

impl Trended<'_> {
    /// All of it, in lines of at most `width` columns where that can be.
    pub fn text(&self, width: usize) -> String {
        let mut out = self.head(width);
        let ratios = self.trend.lines.iter().filter(|line| line.of == LineOf::Ratio);
        let figures: Vec<&Line> = self.trend.lines.iter().filter(|line| line.of == LineOf::Figure).collect();
        let ratios: Vec<&Line> = ratios.collect();
        for line in &ratios {
            out += &format!("\n{}", self.rows_of(line, width));
        }
        if !figures.is_empty() {
            let heading =
                format!("Each variant's own {}, from the oldest record to the newest", self.metric());
            out += &format!("\n{BOLD}{}{BOLD:#}\n", wrapped(&heading, "", "", width).trim_end());
        }
        for line in figures {
            out += &if ratios.is_empty() { self.rows_of(line, width) } else { self.in_one(line, width) };
        }
        out + &self.notes(width)
    }

    /// One row a point.
    pub fn csv(&self) -> String {
        table::csv(self.trend)
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        json!({
            "history_version": VERSION,
            "experiment": self.experiment,
            "machine": { "mark": self.machine.0, "environment": self.machine.1 },
            "elsewhere": self.elsewhere,
            "level": CHANGE_LEVEL,
            "seed": TREND_SEED,
            "trend": self.trend,
        })
    }

    fn metric(&self) -> &'static str {
        metric_name(self.trend.metric)
    }

    fn head(&self, width: usize) -> String {
        let Trend { records, void, unfinished, without, .. } = self.trend;
        let (mark, machine) = self.machine;
        let plural = if records.len() == 1 { "" } else { "s" };
        let title = format!("{}: {} of {} record{plural}", self.experiment, self.metric(), records.len());
        let mut out = format!("{BOLD}{}{BOLD:#}\n", wrapped(&clean(&title), "", "", width).trim_end());
        out += &wrapped(&format!("on {mark}: {}", clean(&machine_line(machine))), "  ", "  ", width);
        let metric = self.metric();
        let left_out = [
            (*void, "void".to_owned()),
            (*unfinished, "unfinished".to_owned()),
            (*without, format!("without {metric}")),
            (self.elsewhere, "of other machines or software".to_owned()),
        ];
        let told = left_out.iter().filter(|(count, _)| *count > 0);
        let told: Vec<String> = told.map(|(count, what)| format!("{count} {what}")).collect();
        if !told.is_empty() {
            out += &wrapped(&format!("left out: {}", told.join(", ")), "  ", "  ", width);
        }
        out
    }

    /// A line's points one below the other.
    fn rows_of(&self, line: &Line, width: usize) -> String {
        let axis = Axis::of(&line.points);
        let mut out = format!("{BOLD}{}{BOLD:#}\n", cut_end(&clean(&line.name), width));
        out += &format!("  {}\n", self.in_characters(line, axis, width - 2));
        let hidden = line.points.len().saturating_sub(self.rows.max(1));
        if hidden > 0 {
            let text = format!("  {hidden} earlier ones: --limit {}", line.points.len());
            out += &format!("{FAINT}{}{FAINT:#}\n", cut_end(&text, width));
        }
        let told: Vec<(String, String)> = line.points.iter().map(|point| self.told(line, point)).collect();
        let widest = |of: fn(&(String, String)) -> &String| {
            told.iter().map(|told| display_width(of(told))).max().unwrap_or(0)
        };
        let (values, intervals) = (widest(|told| &told.0), widest(|told| &told.1));
        let intervals = if width >= WIDE { intervals + 2 } else { 0 };
        let columns = width.saturating_sub(WHEN + 2 + values + intervals + 2).clamp(8, BAR_MAX);
        for (index, (point, (value, interval))) in line.points.iter().zip(&told).enumerate().skip(hidden) {
            out += &self.before(line, index, hidden, width);
            let blanks = " ".repeat(values - display_width(value));
            let interval = match intervals {
                0 => String::new(),
                room => format!("  {interval}{}", " ".repeat(room - 2 - display_width(interval))),
            };
            let when = minute(&self.trend.records[point.record].created);
            let bar = axis.bar(point, columns, line.of == LineOf::Ratio);
            let row = format!("  {when:16}  {blanks}{value}{interval}  {bar}");
            out += &format!("{}\n", row.trim_end());
        }
        out + &self.scale(line, axis, (WHEN + 2 + values + intervals + 2, columns))
    }

    /// What is told before a point: that the plan changed, or the level.
    fn before(&self, line: &Line, index: usize, first: usize, width: usize) -> String {
        let mut out = String::new();
        let record = line.points[index].record;
        if index > first && self.stretch(record) != self.stretch(line.points[index - 1].record) {
            let text = "  ── another plan: nothing is joined across this line";
            out += &format!("{FAINT}{}{FAINT:#}\n", cut_end(text, width));
        }
        for change in line.changes.iter().filter(|change| change.at == index) {
            out += &format!("{CHANGED}{}{CHANGED:#}\n", cut_end(&self.changed(line, change, "  ── "), width));
        }
        out
    }

    /// A variant in one line, and its changes below.
    fn in_one(&self, line: &Line, width: usize) -> String {
        let axis = Axis::of(&line.points);
        let newest = line.points.last().map(|point| self.told(line, point).0).unwrap_or_default();
        let name = cut_end(&clean(&line.name), width / 3);
        let room = width.saturating_sub(display_width(&name) + display_width(&newest) + 6);
        let mut out = format!("  {name}  {}  {newest}\n", self.in_characters(line, axis, room));
        for change in &line.changes {
            out += &format!("{CHANGED}{}{CHANGED:#}\n", cut_end(&self.changed(line, change, "    "), width));
        }
        out
    }

    fn in_characters(&self, line: &Line, axis: Axis, columns: usize) -> String {
        let new = |index: &usize| {
            let points = &line.points;
            let changed = line.changes.iter().any(|change| change.at == *index);
            changed
                || *index > 0
                    && self.stretch(points[*index].record) != self.stretch(points[*index - 1].record)
        };
        let breaks: Vec<usize> = (0..line.points.len()).filter(new).collect();
        axis.line(&line.points, &breaks, columns)
    }

    fn changed(&self, line: &Line, change: &Shifted, indent: &str) -> String {
        let ratio = change.after / change.before;
        let size = change_alone(ratio, 1);
        let from = &self.trend.records[line.points[change.at].record].name;
        // The name last: it is what may be cut.
        clean(&format!("{indent}{size} from here on (p = {:.4}): {from}", change.p))
    }

    fn stretch(&self, record: usize) -> usize {
        self.trend.stretches.partition_point(|stretch| stretch.first <= record)
    }

    /// A point's value and its interval, as figures.
    fn told(&self, line: &Line, point: &Point) -> (String, String) {
        let figure = |value: f64| self.trend.metric.unit().text(value);
        match (line.of, point.interval) {
            (LineOf::Ratio, Some((low, high))) => interval(point.value, low, high),
            (LineOf::Ratio, None) => (format!("×{:.2}", point.value), String::new()),
            (LineOf::Figure, Some((low, high))) => {
                (figure(point.value), format!("{} to {}", figure(low), figure(high)))
            }
            (LineOf::Figure, None) => (figure(point.value), String::new()),
        }
    }

    /// The ends of the axis, below it.
    fn scale(&self, line: &Line, axis: Axis, (indent, columns): (usize, usize)) -> String {
        let (low, high) = axis.ends();
        let end = |value: f64| {
            let point =
                Point { record: 0, value, interval: Some((low, high)), standard_error: None, blocks: 0 };
            self.told(line, &point).0
        };
        let (low, high) = (end(low), end(high));
        let between = columns.saturating_sub(display_width(&low) + display_width(&high));
        if between == 0 {
            return String::new();
        }
        format!("{FAINT}{}{low}{}{high}{FAINT:#}\n", " ".repeat(indent), " ".repeat(between))
    }

    fn notes(&self, width: usize) -> String {
        let any = |of| self.trend.lines.iter().any(|line| line.of == of);
        let level = share(CHANGE_LEVEL);
        let changes = format!(
            "Changes of level are tested at {level} for each line and plan (orders of the records, from seed {TREND_SEED}): of a \
             hundred lines without any, one shows one, and more where you look again after each record. A slow drift shows \
             as steps. It takes {CHANGE_SIDE_MIN} records on either side, and about ten in all."
        );
        let ratios = "Ratios were measured side by side within each record, and may stand beside older ones also where the \
                      machine is noisy.";
        let figures = "A variant's own figure holds whatever else changed on the machine between the runs: beside an older one \
                       it says less, and a change of all variants alike is mostly the machine's.";
        let mut out = String::from("\n");
        for (told, note) in
            [(true, changes.as_str()), (any(LineOf::Ratio), ratios), (any(LineOf::Figure), figures)]
        {
            if told {
                out += &format!("{FAINT}{}{FAINT:#}", wrapped(note, "", "", width));
            }
        }
        out
    }
}
