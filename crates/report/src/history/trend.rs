//! An experiment over time: each comparison and each variant in a line, each comparison with its intervals one below the other, and
//! where they change.

use analysis::{Line, LineOf, Point, Shifted, TREND_SEED, Trend};
use model::quantity::{Quantity, Unit, change_alone, interval, many, share};
use record::Environment;
use serde_json::{Value, json};
use stats::{CHANGE_LEVEL, CHANGE_SIDE_MIN};

use super::{VERSION, minute};
use crate::csv::{Field, Figures, unit_name};
use crate::document::{Block, Cell, Column, Document, Fit, Row, Table, Tone};
use crate::experiment::machine_line;
use crate::form::Report;

const HEADINGS: [&str; 14] = [
    "of",
    "name",
    "metric",
    "unit",
    "record",
    "created",
    "value",
    "low",
    "high",
    "standard_error_log",
    "blocks",
    "plan",
    "change_ratio",
    "change_p",
];

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

impl Report for Trended<'_> {
    fn document(&self) -> Document {
        let metric = self.metric();
        let records = many(self.trend.records.len() as u64, "record");
        let (mark, machine) = self.machine;
        let mut blocks = vec![Block::Paragraph(Tone::Plain, format!("on {mark}: {}", machine_line(machine)))];
        blocks.extend(self.left_out().map(|text| Block::Paragraph(Tone::Plain, text)));
        blocks.push(Block::Table(self.overview()));
        let is = |of| self.trend.lines.iter().filter(move |line| line.of == of);
        // Figures of variants one below the other are shown where there are no ratios.
        let ratios: Vec<&Line> = is(LineOf::Ratio).collect();
        let shown = if ratios.is_empty() { is(LineOf::Figure).collect() } else { ratios };
        blocks.extend(shown.into_iter().map(|line| Block::Table(self.table(line))));
        blocks.extend(self.notes().into_iter().map(|note| Block::Paragraph(Tone::Faint, note)));
        blocks.retain(|block| !block.is_empty());
        let title = format!("{}: {metric} of {records}", self.experiment);
        Document { title, headline: None, blocks }
    }

    fn data(&self) -> Value {
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

    /// One row a point. Fields without a value are empty.
    fn figures(&self) -> Option<Figures> {
        let rows = self.trend.lines.iter();
        let rows = rows.flat_map(|line| (0..line.points.len()).map(|index| self.fields(line, index)));
        Some(Figures { headings: HEADINGS.map(str::to_owned).into(), rows: rows.collect() })
    }
}

impl Trended<'_> {
    fn metric(&self) -> &'static str {
        self.trend.metric.row().title
    }

    fn left_out(&self) -> Option<String> {
        let Trend { void, unfinished, without, .. } = self.trend;
        let left_out = [
            (*void, "invalid".to_owned()),
            (*unfinished, "unfinished".to_owned()),
            (*without, format!("without {}", self.metric())),
            (self.elsewhere, "of other machines or software".to_owned()),
        ];
        let told = left_out.iter().filter(|(count, _)| *count > 0);
        let told: Vec<String> = told.map(|(count, what)| format!("{count} {what}")).collect();
        (!told.is_empty()).then(|| format!("left out: {}", told.join(", ")))
    }

    /// Each line of points in one row, and where its level changes.
    fn overview(&self) -> Table {
        let columns = vec![
            Column::text("", Fit::CutEnd),
            Column::text("from the oldest to the newest", Fit::Drawing),
            Column::figure("newest"),
        ];
        let mut table = Table::new("", columns);
        for line in &self.trend.lines {
            let newest = line.points.last().map(|point| self.told(line, point).0);
            let values = line.points.iter().map(|point| point.value).collect();
            let breaks = (0..line.points.len()).filter(|index| self.breaks(line, *index)).collect();
            table.push(vec![Cell::text(&line.name), Cell::Course(values, breaks), Cell::optional(newest)]);
            table.rows.extend(line.changes.iter().map(|change| self.changed(line, change)));
        }
        table
    }

    /// A line's points one below the other, the newest last.
    fn table(&self, line: &Line) -> Table {
        let columns = vec![
            Column::text("when (UTC)", Fit::Whole),
            Column::figure(self.metric()),
            Column::figure("interval").spare(1),
            Column::text("", Fit::Drawing),
        ];
        let mut table = Table::new(&line.name, columns);
        let hidden = line.points.len().saturating_sub(self.rows.max(1));
        if hidden > 0 {
            let text = format!("{hidden} earlier ones: --limit {}", line.points.len());
            table.rows.push(Row::Note(Tone::Faint, text));
        }
        for (index, point) in line.points.iter().enumerate().skip(hidden) {
            if index > hidden && self.is_other_plan(line, index) {
                let text = "── another plan: nothing is joined across this line";
                table.rows.push(Row::Note(Tone::Faint, text.to_owned()));
            }
            let changes = line.changes.iter().filter(|change| change.at == index);
            table.rows.extend(changes.map(|change| self.changed(line, change)));
            let (value, ends) = self.told(line, point);
            let of = Quantity { value: point.value, unit: self.unit(line) };
            table.push(vec![
                Cell::Text(minute(&self.trend.records[point.record].created)),
                Cell::Text(value),
                Cell::Text(ends),
                Cell::Interval(of, point.interval),
            ]);
        }
        table
    }

    /// Whether something is new from a point on.
    fn breaks(&self, line: &Line, index: usize) -> bool {
        line.changes.iter().any(|change| change.at == index) || index > 0 && self.is_other_plan(line, index)
    }

    /// Whether a point's plan is not that of the one before.
    fn is_other_plan(&self, line: &Line, index: usize) -> bool {
        let stretch = |record: usize| self.trend.stretches.partition_point(|stretch| stretch.first <= record);
        stretch(line.points[index].record) != stretch(line.points[index - 1].record)
    }

    fn changed(&self, line: &Line, change: &Shifted) -> Row {
        let size = change_alone(change.after / change.before, 1);
        let from = &self.trend.records[line.points[change.at].record].name;
        // The name last: it is what may be cut.
        Row::Note(Tone::Notable, format!("── {size} from here on (p = {:.4}): {from}", change.p))
    }

    fn unit(&self, line: &Line) -> Unit {
        match line.of {
            LineOf::Ratio => Unit::Ratio,
            LineOf::Figure => self.trend.metric.unit(),
        }
    }

    /// A point's value and its interval, as figures.
    fn told(&self, line: &Line, point: &Point) -> (String, String) {
        let unit = self.unit(line);
        let figure = |value: f64| Quantity { value, unit }.to_string();
        match (line.of, point.interval) {
            (LineOf::Ratio, Some((low, high))) => interval(point.value, low, high),
            (LineOf::Figure, Some((low, high))) => {
                (figure(point.value), format!("{} to {}", figure(low), figure(high)))
            }
            (LineOf::Ratio | LineOf::Figure, None) => (figure(point.value), String::new()),
        }
    }

    fn notes(&self) -> Vec<String> {
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
        let told = [
            Some(changes),
            any(LineOf::Ratio).then(|| ratios.to_owned()),
            any(LineOf::Figure).then(|| figures.to_owned()),
        ];
        told.into_iter().flatten().collect()
    }

    fn fields(&self, line: &Line, index: usize) -> Vec<Field> {
        let trend = self.trend;
        let Point { record, value, interval, standard_error, blocks } = line.points[index];
        let stamp = &trend.records[record];
        let stretch = trend.stretches.iter().rfind(|stretch| stretch.first <= record);
        let change = line.changes.iter().find(|change| change.at == index);
        vec![
            Field::Word(if line.of == LineOf::Ratio { "ratio" } else { "figure" }),
            Field::Name(line.name.clone()),
            Field::Word(trend.metric.name()),
            Field::Word(unit_name(self.unit(line))),
            Field::Name(stamp.name.clone()),
            Field::Name(stamp.created.clone()),
            Field::Figure(Some(value)),
            Field::Figure(interval.map(|(low, _)| low)),
            Field::Figure(interval.map(|(_, high)| high)),
            Field::Figure(standard_error),
            Field::Count(blocks.into()),
            Field::Name(stretch.map(|stretch| stretch.plan.clone()).unwrap_or_default()),
            Field::Figure(change.map(|change| change.after / change.before)),
            Field::Figure(change.map(|change| change.p)),
        ]
    }
}
