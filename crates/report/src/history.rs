//! Many records as documents: a list, a summary of one, an experiment over time. Also as JSON and CSV. Pure.
//!
//! The contents come from [`Essentials`]. Nothing is concluded here.

use analysis::{
    ComparedMetric, Conclusion, Essentials, ExperimentTrend, LineOf, Outcome, Shifted, TREND_SEED,
    TrendLine as Course, TrendPoint,
};
use model::document::{
    Cell, Column, ColumnFit, Document, DocumentPart, NamedText, QuestionAnswer, Table, TableRow,
    Tone,
};
use model::quantity::{
    Quantity, Unit, bytes, change, change_alone, change_told, decimal, interval, many, share, span,
};
use record::{EndKind, MachineFingerprint, Record};
use serde_json::{Value, json};
use stats::{CHANGE_LEVEL, CHANGE_SIDE_MIN};

use crate::advice::Advice;
use crate::csv::{self, CsvRows, unit_name};
use crate::experiment::{answer, machine_line, typed};
use crate::form::Report;
use crate::validity::explained_by;

/// A record in a list.
#[derive(Debug, Clone)]
pub struct ListedRecord<'a> {
    /// Name of its folder.
    pub name: &'a str,
    /// When it was made, RFC 3339 in UTC.
    pub created: &'a str,
    /// Its contents, or why it cannot be read.
    pub found: Result<&'a Essentials, &'a str>,
    /// Whether a run is writing it at the moment.
    pub running: bool,
    /// The letters of its machine among all records' machines. `None` if the record cannot be read.
    pub machine: Option<String>,
}

/// `2026-11-21 14:50` of `2026-11-21T14:50:57Z`.
fn minute(created: &str) -> String {
    let shown: String = created.chars().take(16).collect();
    shown.replacen('T', " ", 1)
}

/// Number of characters shown of a commit.
const COMMIT_LETTERS: usize = 7;

/// Records in display order.
#[derive(Debug)]
pub struct RecordList<'a> {
    /// The newest first.
    pub records: &'a [ListedRecord<'a>],
    /// Tunings by the names of their folders, newest first.
    pub tunings: &'a [(&'a str, &'a Advice)],
    /// Number of older records that are not shown.
    pub hidden: usize,
}

impl Report for RecordList<'_> {
    fn document(&self) -> Document {
        // Most names contain the time, and the name is then the first column.
        let dated = self.records.iter().all(|listed| has_stamp(listed.name));
        let columns = vec![
            Column::text("record", ColumnFit::CutMiddle),
            Column::text("when (UTC)", ColumnFit::Whole).spare(if dated { 9 } else { 4 }),
            Column::text("verdict", ColumnFit::CutEnd),
            Column::figure("blocks").spare(5),
            Column::figure("length").spare(6),
            Column::text("on", ColumnFit::Whole),
            Column::text("source", ColumnFit::Whole).spare(8),
        ];
        let mut table = Table::new("", columns);
        // Records keep their order, which the clock alone does not determine.
        let mut tunings = self.tunings.iter().peekable();
        for listed in self.records {
            while let Some((name, advice)) =
                tunings.next_if(|(_, advice)| advice.created.as_str() >= listed.created)
            {
                table.push(tuned(name, advice));
            }
            table.push(row(listed));
        }
        tunings.for_each(|(name, advice)| table.push(tuned(name, advice)));
        if self.hidden > 0 {
            let (hidden, all) = (self.hidden, self.hidden + self.records.len());
            table.rows.push(TableRow::Note(
                Tone::Faint,
                format!("{hidden} older not shown: --limit {all}"),
            ));
        }
        let unreadable = self.records.iter().filter_map(|listed| {
            Some(DocumentPart::Paragraph(
                Tone::Plain,
                format!("{}: {}", listed.name, listed.found.err()?),
            ))
        });
        // Meaning of the machine letters.
        let known = self.records.iter();
        let known =
            known.filter_map(|listed| Some((listed.machine.as_deref()?, listed.found.ok()?)));
        let mut known = model::grouped(known);
        known.sort_by_key(|(mark, _)| (mark.len(), *mark));
        let machine = |(mark, found): (&str, Vec<&Essentials>)| {
            NamedText::new(format!("on {mark}"), machine_line(&found[0].environment))
        };
        let machines = DocumentPart::Lines(known.into_iter().map(machine).collect());
        let blocks = std::iter::once(DocumentPart::Table(table))
            .chain(unreadable)
            .chain([machines]);
        let records = many((self.records.len() + self.hidden) as u64, "record");
        let title = match self.tunings.len() {
            0 => records,
            tunings => format!("{records}, {}", many(tunings as u64, "tuning")),
        };
        Document::new(title, blocks)
    }

    fn data(&self) -> Value {
        let one = |listed: &ListedRecord<'_>| {
            json!({
                "record": listed.name,
                "created": listed.created,
                "in_words": summary(listed).1,
                "running": listed.running,
                "machine": listed.machine,
                "unreadable": listed.found.err(),
                "essentials": listed.found.ok(),
            })
        };
        json!({
            "records": self.records.iter().map(one).collect::<Vec<_>>(),
            "tunings": self.tunings.iter().map(tuning).collect::<Vec<_>>(),
            "older_not_shown": self.hidden,
        })
    }
}

fn tuning((name, advice): &(&str, &Advice)) -> Value {
    json!({
        "record": name,
        "created": advice.created,
        "in_words": advice.in_short().1,
        "experiment": advice.experiment_name,
        "seconds": advice.seconds,
    })
}

/// The row of a tuning, whose blocks and machine are those of its steps.
fn tuned(name: &str, advice: &Advice) -> Vec<Cell> {
    let (tone, words) = advice.in_short();
    vec![
        Cell::text(name),
        Cell::Text(minute(&advice.created)),
        Cell::Word(tone, words),
        Cell::Missing,
        Cell::text(span(advice.seconds)),
        Cell::Missing,
        Cell::Missing,
    ]
}

fn row(listed: &ListedRecord<'_>) -> Vec<Cell> {
    let (tone, summary) = summary(listed);
    let found = listed.found.ok();
    let length = found.and_then(|found| Some(span(found.ended.as_ref()?.seconds)));
    vec![
        Cell::text(listed.name),
        Cell::Text(minute(listed.created)),
        Cell::Word(tone, summary),
        Cell::optional(found.map(|found| found.blocks.to_string())),
        Cell::optional(length),
        Cell::optional(listed.machine.clone()),
        Cell::optional(source(listed)),
    ]
}

/// Whether a name ends in its creation time: `-20261121-145057`, possibly followed by a number.
fn has_stamp(name: &str) -> bool {
    let digits = |part: &str, count: usize| {
        part.len() == count && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    let parts: Vec<&str> = name.split('-').collect();
    let is_stamp = |at: &[&str]| digits(at[0], 8) && digits(at[1], 6);
    parts.windows(2).skip(1).rev().take(2).any(is_stamp)
}

/// The services' commit, or the version of Proofload if there is none.
fn source(listed: &ListedRecord<'_>) -> Option<String> {
    let found = listed.found.ok()?;
    let commit = found.environment.commit.as_ref().map(|commit| {
        let dirty = if commit.ends_with('+') { "+" } else { "" };
        commit
            .trim_end_matches('+')
            .chars()
            .take(COMMIT_LETTERS)
            .collect::<String>()
            + dirty
    });
    Some(commit.unwrap_or_else(|| format!("v{}", found.proofload)))
}

/// Short result of a record, or why there is none.
fn summary(listed: &ListedRecord<'_>) -> (Tone, String) {
    let Ok(essentials) = listed.found else {
        return (Tone::Bad, "unreadable".to_owned());
    };
    let blocks = many(essentials.blocks.into(), "block");
    let (tone, text) = match essentials.ended.as_ref().map(|ended| ended.reason.kind()) {
        None if listed.running => return (Tone::Good, format!("running, {blocks} so far")),
        None => return (Tone::Faint, format!("cut off after {blocks}")),
        Some(EndKind::Failed(part)) => (Tone::Bad, part.short),
        _ if essentials.compared.is_empty()
            && essentials.blocks == 0
            && essentials.captures > 0 =>
        {
            (Tone::Faint, "captures")
        }
        Some(EndKind::Interrupted) => return verdicts(essentials, true),
        Some(EndKind::Decided | EndKind::Planned | EndKind::BudgetTooSmall | EndKind::Void) => {
            return verdicts(essentials, false);
        }
    };
    (tone, text.to_owned())
}

fn verdicts(essentials: &Essentials, interrupted: bool) -> (Tone, String) {
    let judged: Vec<(&ComparedMetric, Outcome)> = essentials.judged().collect();
    let decided = judged.iter().any(|(_, outcome)| outcome.is_decided());
    let void = || {
        (
            Tone::Bad,
            format!("invalid {}", essentials.void.join(", "))
                .trim_end()
                .to_owned(),
        )
    };
    match judged.as_slice() {
        [] if !essentials.void.is_empty() => void(),
        _ if interrupted && !decided => (Tone::Faint, "interrupted".to_owned()),
        // Such as a capacity for which the budget was too small.
        [] if essentials.blocks == 0 => (Tone::Bad, "nothing measured".to_owned()),
        [] => (Tone::Faint, "measured".to_owned()),
        all if all.iter().all(|(_, outcome)| *outcome == Outcome::Invalid) => void(),
        [(compared, outcome)] => (Tone::from(*outcome), one(compared, *outcome)),
        several => counted(several),
    }
}

fn one(compared: &ComparedMetric, outcome: Outcome) -> String {
    let (word, metric) = (
        answer::word(outcome, compared.metric),
        compared.metric.name(),
    );
    let estimate = compared.estimate.as_ref().map(change_told);
    estimate.map_or_else(
        || word.to_owned(),
        |told| format!("{word}: {told} {metric}"),
    )
}

/// Counts of several verdicts by word, most important first.
fn counted(judged: &[(&ComparedMetric, Outcome)]) -> (Tone, String) {
    use Outcome::{Better, Equivalent, Inconclusive, Invalid, NoSuccess, Worse};
    const ORDER: [Outcome; 6] = [Invalid, NoSuccess, Worse, Better, Equivalent, Inconclusive];
    let in_order = ORDER
        .iter()
        .flat_map(|outcome| judged.iter().filter(move |(_, of)| of == outcome));
    let words =
        in_order.map(|(compared, outcome)| (answer::word(*outcome, compared.metric), *outcome));
    let words = model::grouped(words);
    let text: Vec<String> = words
        .iter()
        .map(|(word, all)| format!("{} {word}", all.len()))
        .collect();
    (
        words
            .first()
            .map_or(Outcome::Inconclusive, |(_, all)| all[0])
            .into(),
        text.join(", "),
    )
}

/// A record and the files in its folder.
#[derive(Debug)]
pub struct Short<'a> {
    /// The record.
    pub record: &'a Record,
    /// The conclusion.
    pub conclusion: &'a Conclusion,
    /// Whether a run is writing it at the moment.
    pub running: bool,
    /// Files and folders with their sizes in bytes. A folder's size includes everything below it.
    pub files: &'a [(String, u64)],
}

impl Report for Short<'_> {
    fn document(&self) -> Document {
        let essentials = Essentials::of(self.record, self.conclusion);
        let answers = essentials
            .judged()
            .map(|(compared, outcome)| verdict(compared, outcome))
            .collect();
        let mut blocks = vec![DocumentPart::Answers(answers)];
        if !essentials.void.is_empty() {
            let command = explained_by(self.conclusion.findings.iter()).unwrap_or_default();
            let text = format!(
                "invalid by {}; {command} explains",
                essentials.void.join(", ")
            );
            blocks.push(DocumentPart::Paragraph(Tone::Plain, text));
        }
        blocks.extend([
            DocumentPart::Lines(self.lines(&essentials)),
            DocumentPart::Steps(self.steps(&essentials)),
        ]);
        Document::new(essentials.question.unwrap_or(essentials.experiment), blocks)
    }

    fn data(&self) -> Value {
        let file = |(name, bytes): &(String, u64)| json!({ "name": name, "bytes": bytes });
        json!({
            "record": self.record.directory.display().to_string(),
            "running": self.running,
            "essentials": Essentials::of(self.record, self.conclusion),
            "files": self.files.iter().map(file).collect::<Vec<_>>(),
        })
    }
}

impl Short<'_> {
    fn lines(&self, essentials: &Essentials) -> Vec<NamedText> {
        let end = match (&essentials.ended, self.running) {
            (Some(ended), _) => {
                format!("{} after {}", ended.reason.sentence(), span(ended.seconds))
            }
            (None, true) => "unfinished: a run is writing it right now".to_owned(),
            (None, false) => "unfinished: its run was killed, or broke off".to_owned(),
        };
        let Essentials {
            created,
            proofload,
            seed,
            environment,
            plan,
            ..
        } = essentials;
        let commit = environment
            .commit
            .as_ref()
            .map(|commit| format!(", services at commit {commit}"));
        let mut lines = vec![
            NamedText::new("record", self.record.directory.display().to_string()),
            NamedText::new(
                "made",
                format!("{created} by Proofload {proofload}, seed {seed}"),
            ),
            NamedText::new(
                "run",
                format!("{}; {end}", many(essentials.blocks.into(), "block")),
            ),
            NamedText::new("machine", machine_line(environment)),
            NamedText::new("plan", format!("mark {plan}{}", commit.unwrap_or_default())),
        ];
        lines.extend(
            essentials
                .damage
                .iter()
                .map(|damage| NamedText::new("damage", damage)),
        );
        let files: Vec<String> = self
            .files
            .iter()
            .map(|(name, size)| format!("{name} {}", bytes(*size as f64)))
            .collect();
        lines.push(NamedText::new("files", files.join(", ")));
        lines
    }

    fn steps(&self, essentials: &Essentials) -> Vec<String> {
        let directory = typed(self.record);
        let experiment = plan::command_line([essentials.experiment.to_owned()]);
        let mut steps = vec![
            format!("the whole report: proofload report {directory}"),
            format!("the same in a browser: proofload report --open {directory}"),
            format!("over time: proofload history trend {experiment}"),
        ];
        if essentials.captures > 0 {
            steps.push(format!(
                "where the CPU time goes: proofload profile {directory}"
            ));
        }
        steps
    }
}

fn verdict(compared: &ComparedMetric, outcome: Outcome) -> QuestionAnswer {
    let metric = compared.metric.row().title;
    let detail = compared.estimate.as_ref().map(change);
    let detail = detail.map(|(value, interval)| format!("{value} {metric} ({interval})"));
    let word = answer::word(outcome, compared.metric);
    QuestionAnswer::new(
        &compared.label,
        outcome.into(),
        word,
        detail.unwrap_or_default(),
    )
}

const HEADINGS: &str = "of name metric unit record created value low high standard_error_log blocks plan \
    change_ratio change_p";

/// A trend and its records.
#[derive(Debug)]
pub struct Trended<'a> {
    /// Name of the experiment.
    pub experiment: &'a str,
    /// The trend.
    pub trend: &'a ExperimentTrend,
    /// The machine of its records, with its letters in lists.
    pub machine: (&'a str, &'a MachineFingerprint),
    /// Number of records of the experiment from other machines, or with other software.
    pub elsewhere: usize,
    /// Maximum number of records that are listed.
    pub rows: usize,
}

impl Report for Trended<'_> {
    fn document(&self) -> Document {
        let metric = self.metric();
        let records = many(self.trend.records.len() as u64, "record");
        let (mark, machine) = self.machine;
        let mut blocks = vec![DocumentPart::Paragraph(
            Tone::Plain,
            format!("on {mark}: {}", machine_line(machine)),
        )];
        blocks.extend(
            self.left_out()
                .map(|text| DocumentPart::Paragraph(Tone::Plain, text)),
        );
        blocks.push(DocumentPart::Table(self.overview()));
        let is = |of| self.trend.lines.iter().filter(move |line| line.of == of);
        // Figures of variants are listed if there are no ratios.
        let ratios: Vec<&Course> = is(LineOf::Ratio).collect();
        let shown = if ratios.is_empty() {
            is(LineOf::Figure).collect()
        } else {
            ratios
        };
        blocks.extend(
            shown
                .into_iter()
                .map(|line| DocumentPart::Table(self.table(line))),
        );
        blocks.extend(
            self.notes()
                .into_iter()
                .map(|note| DocumentPart::Paragraph(Tone::Faint, note)),
        );
        Document::new(
            format!("{}: {metric} of {records}", self.experiment),
            blocks,
        )
    }

    fn data(&self) -> Value {
        json!({
            "experiment": self.experiment,
            "machine": { "mark": self.machine.0, "environment": self.machine.1 },
            "elsewhere": self.elsewhere,
            "level": CHANGE_LEVEL,
            "seed": TREND_SEED,
            "trend": self.trend,
        })
    }

    /// One row for each point. Fields without a value are empty.
    fn figures(&self) -> Option<CsvRows> {
        let points = |line: &'_ Course| {
            (0..line.points.len())
                .map(|index| self.fields(line, index))
                .collect()
        };
        let rows = self.trend.lines.iter().flat_map::<CsvRows, _>(points);
        let headings: Vec<String> = HEADINGS.split(' ').map(str::to_owned).collect();
        Some(std::iter::once(headings).chain(rows).collect())
    }
}

impl Trended<'_> {
    fn metric(&self) -> &'static str {
        self.trend.metric.row().title
    }

    fn left_out(&self) -> Option<String> {
        let ExperimentTrend {
            void,
            unfinished,
            without,
            ..
        } = self.trend;
        let left_out = [
            (*void, "invalid".to_owned()),
            (*unfinished, "unfinished".to_owned()),
            (*without, format!("without {}", self.metric())),
            (self.elsewhere, "of other machines or software".to_owned()),
        ];
        let told = left_out.iter().filter(|(count, _)| *count > 0);
        let told: Vec<String> = told
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        (!told.is_empty()).then(|| format!("left out: {}", told.join(", ")))
    }

    /// Each line of points in one row, and where its level changes.
    fn overview(&self) -> Table {
        let columns = [
            ("", ColumnFit::CutEnd),
            ("from the oldest to the newest", ColumnFit::Drawing),
            ("newest", ColumnFit::Figure),
        ];
        let mut table = Table::new("", columns);
        for line in &self.trend.lines {
            let newest = line.points.last().map(|point| self.told(line, point).0);
            let values = line.points.iter().map(|point| point.value).collect();
            let breaks = (0..line.points.len())
                .filter(|index| self.breaks(line, *index))
                .collect();
            table.push(vec![
                Cell::text(&line.name),
                Cell::Course(values, breaks),
                Cell::optional(newest),
            ]);
            table
                .rows
                .extend(line.changes.iter().map(|change| self.changed(line, change)));
        }
        table
    }

    /// A line's points as rows, the newest last.
    fn table(&self, line: &Course) -> Table {
        let columns = vec![
            Column::text("when (UTC)", ColumnFit::Whole),
            Column::figure(self.metric()),
            Column::figure("interval").spare(1),
            Column::text("", ColumnFit::Drawing),
        ];
        let mut table = Table::new(&line.name, columns);
        let hidden = line.points.len().saturating_sub(self.rows);
        if hidden > 0 {
            let text = format!("{hidden} earlier ones: --limit {}", line.points.len());
            table.rows.push(TableRow::Note(Tone::Faint, text));
        }
        for (index, point) in line.points.iter().enumerate().skip(hidden) {
            if index > hidden && self.is_other_plan(line, index) {
                let text = "── another plan: nothing is joined across this line";
                table
                    .rows
                    .push(TableRow::Note(Tone::Faint, text.to_owned()));
            }
            let changes = line.changes.iter().filter(|change| change.at == index);
            table
                .rows
                .extend(changes.map(|change| self.changed(line, change)));
            let (value, ends) = self.told(line, point);
            let of = Quantity {
                value: point.value,
                unit: self.unit(line),
            };
            table.push(vec![
                Cell::Text(minute(&self.trend.records[point.record].created)),
                Cell::Text(value),
                Cell::Text(ends),
                Cell::Interval(of, point.interval),
            ]);
        }
        table
    }

    /// Whether something changed from a point on.
    fn breaks(&self, line: &Course, index: usize) -> bool {
        line.changes.iter().any(|change| change.at == index)
            || index > 0 && self.is_other_plan(line, index)
    }

    /// Whether a point's plan differs from the previous one's.
    fn is_other_plan(&self, line: &Course, index: usize) -> bool {
        let stretch = |record: usize| {
            self.trend
                .stretches
                .partition_point(|stretch| stretch.first <= record)
        };
        stretch(line.points[index].record) != stretch(line.points[index - 1].record)
    }

    fn changed(&self, line: &Course, change: &Shifted) -> TableRow {
        let size = change_alone(change.after / change.before, 1);
        let from = &self.trend.records[line.points[change.at].record].name;
        // The name comes last because it may be truncated.
        TableRow::Note(
            Tone::Notable,
            format!(
                "── {size} from here on (p = {}): {from}",
                decimal(change.p, 4)
            ),
        )
    }

    fn unit(&self, line: &Course) -> Unit {
        match line.of {
            LineOf::Ratio => Unit::Ratio,
            LineOf::Figure => self.trend.metric.unit(),
        }
    }

    /// A point's value and its interval, formatted.
    fn told(&self, line: &Course, point: &TrendPoint) -> (String, String) {
        let unit = self.unit(line);
        let figure = |value: f64| Quantity { value, unit }.to_string();
        match (line.of, point.interval) {
            (LineOf::Ratio, Some((low, high))) => interval(point.value, low, high),
            (_, ends) => {
                let ends = ends.map(|(low, high)| format!("{} to {}", figure(low), figure(high)));
                (figure(point.value), ends.unwrap_or_default())
            }
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

    fn fields(&self, line: &Course, index: usize) -> Vec<String> {
        let trend = self.trend;
        let TrendPoint {
            record,
            value,
            interval,
            standard_error,
            blocks,
        } = line.points[index];
        let stamp = &trend.records[record];
        let stretch = trend
            .stretches
            .iter()
            .rfind(|stretch| stretch.first <= record);
        let change = line.changes.iter().find(|change| change.at == index);
        vec![
            if line.of == LineOf::Ratio {
                "ratio"
            } else {
                "figure"
            }
            .to_owned(),
            csv::name(&line.name),
            trend.metric.name().to_owned(),
            unit_name(self.unit(line)).to_owned(),
            csv::name(&stamp.name),
            csv::name(&stamp.created),
            value.to_string(),
            csv::figure(interval.map(|(low, _)| low)),
            csv::figure(interval.map(|(_, high)| high)),
            csv::figure(standard_error),
            blocks.to_string(),
            csv::name(stretch.map_or("", |stretch| &stretch.plan)),
            csv::figure(change.map(|change| change.after / change.before)),
            csv::figure(change.map(|change| change.p)),
        ]
    }
}
