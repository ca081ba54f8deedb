//! Structure of a report before rendering: blocks of typed values in reading order.
//!
//! Builders (an experiment, a gate, an explanation, ...) choose the wording and provide figures with units.
//! Renderers (text, Markdown, CSV) draw blocks and do not know their meaning. This module does not know
//! output formats, widths or colours.

use crate::finding::{Finding, FindingCode};
use crate::grade::Grade;
use crate::quantity::{self, NONE, Quantity, Unit};

/// A report, from top to bottom.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// Subject of the report.
    pub title: String,
    /// The answer in one sentence, if there is one. A pull request shows it first.
    pub headline: Option<String>,
    /// The body of the report.
    pub blocks: Vec<DocumentPart>,
}

/// A part of a document.
#[derive(Debug, Clone, PartialEq)]
pub enum DocumentPart {
    /// Title of the following blocks.
    Heading(Tone, String),
    /// One or more sentences.
    Paragraph(Tone, String),
    /// Answers to the questions of the report.
    Answers(Vec<QuestionAnswer>),
    /// Answers as a list that begins with the verdict words. Each answer has exactly one verdict.
    Verdicts(Vec<QuestionAnswer>),
    /// Rows of names and figures.
    Table(Table),
    /// Measured points with a limit.
    Chart(Chart),
    /// Findings that qualify the answers, most severe first, and the command that explains them.
    Findings(Vec<Remark>, Option<String>),
    /// Named lines.
    Lines(Vec<NamedText>),
    /// Next steps for the user: sentences, or commands with their reason.
    Steps(Vec<String>),
    /// A title and blocks that a reader may skip.
    Folded(String, Vec<DocumentPart>),
}

impl Document {
    /// Creates a document without a headline. Empty blocks are left out.
    pub fn new(
        title: impl Into<String>,
        blocks: impl IntoIterator<Item = DocumentPart>,
    ) -> Document {
        let blocks = blocks
            .into_iter()
            .filter(|block| !block.is_empty())
            .collect();
        Document {
            title: title.into(),
            headline: None,
            blocks,
        }
    }
}

impl DocumentPart {
    /// Whether the block has no content.
    pub fn is_empty(&self) -> bool {
        match self {
            DocumentPart::Heading(_, text) | DocumentPart::Paragraph(_, text) => text.is_empty(),
            DocumentPart::Answers(answers) | DocumentPart::Verdicts(answers) => answers.is_empty(),
            DocumentPart::Table(table) => table.rows.is_empty(),
            DocumentPart::Chart(chart) => {
                chart.series.iter().all(|series| series.points.is_empty())
            }
            DocumentPart::Findings(findings, _) => findings.is_empty(),
            DocumentPart::Lines(lines) => lines.is_empty(),
            DocumentPart::Steps(steps) => steps.is_empty(),
            DocumentPart::Folded(_, blocks) => blocks.iter().all(DocumentPart::is_empty),
        }
    }
}

/// Meaning of a text, from which renderers choose its style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// A better candidate, or a limit that passes.
    Good,
    /// A worse candidate, a limit that fails, or an invalid result.
    Bad,
    /// No relevant difference.
    Same,
    /// Inconclusive, or a warning.
    Doubtful,
    /// Notable, neither good nor bad.
    Notable,
    /// Normal text.
    Plain,
    /// Text that readers look for first.
    Strong,
    /// Text that most readers skip.
    Faint,
}

impl From<Grade> for Tone {
    fn from(grade: Grade) -> Tone {
        match grade {
            Grade::Invalid => Tone::Bad,
            Grade::Warning => Tone::Doubtful,
            Grade::Note => Tone::Faint,
            Grade::Fine => Tone::Good,
        }
    }
}

/// Returns the word for a grade.
pub fn grade_word(grade: Grade) -> &'static str {
    match grade {
        Grade::Invalid => "invalid",
        Grade::Warning => "warning",
        Grade::Note => "note",
        Grade::Fine => "fine",
    }
}

/// Answer to one question.
#[derive(Debug, Clone, PartialEq)]
pub struct QuestionAnswer {
    /// Subject of the question: `production vs development`.
    pub subject: String,
    /// The verdicts, at least one.
    pub verdicts: Vec<VerdictBlock>,
    /// Further observations.
    pub notes: Vec<String>,
}

impl QuestionAnswer {
    /// Creates an answer with one verdict and no notes.
    pub fn new(
        subject: impl Into<String>,
        tone: Tone,
        word: &str,
        detail: impl Into<String>,
    ) -> QuestionAnswer {
        let verdict = VerdictBlock {
            tone,
            word: word.to_owned(),
            detail: detail.into(),
        };
        QuestionAnswer {
            subject: subject.into(),
            verdicts: vec![verdict],
            notes: Vec::new(),
        }
    }
}

/// One verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct VerdictBlock {
    /// Tone in which the verdict is shown.
    pub tone: Tone,
    /// The verdict in one word: `faster`.
    pub word: String,
    /// The figures behind the verdict, or why there are none.
    pub detail: String,
}

/// A finding from any source.
#[derive(Debug, Clone, PartialEq)]
pub struct Remark {
    /// Severity.
    pub grade: Grade,
    /// Number of the check, or the figures the remark is about.
    pub mark: Option<String>,
    /// Description of the finding.
    pub statement: String,
    /// Affected places, each with its figures.
    pub cases: Vec<String>,
    /// Recommended action. Empty if an earlier remark already gave it.
    pub remedy: String,
    /// Command for the recommended action.
    pub command: Option<String>,
}

impl<C: FindingCode> From<&Finding<C>> for Remark {
    fn from(finding: &Finding<C>) -> Remark {
        Remark {
            grade: finding.grade,
            mark: finding.check.mark().map(str::to_owned),
            statement: finding.evidence.to_string(),
            cases: Vec::new(),
            remedy: finding.remedy.to_string(),
            command: finding.remedy.command.as_deref().map(str::to_owned),
        }
    }
}

impl Remark {
    /// Grade and number: `warning V40`.
    pub fn head(&self) -> String {
        let mark = self
            .mark
            .as_ref()
            .map(|mark| format!(" {mark}"))
            .unwrap_or_default();
        format!("{}{mark}", grade_word(self.grade))
    }
}

/// A named text.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedText {
    /// Name of the line.
    pub name: String,
    /// Tone of the name.
    pub tone: Tone,
    /// The text.
    pub text: String,
    /// Additional text. May be empty.
    pub detail: String,
    /// A related command.
    pub command: Option<String>,
}

impl NamedText {
    /// Creates a line with a name and a text.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> NamedText {
        NamedText {
            name: name.into(),
            tone: Tone::Faint,
            text: text.into(),
            detail: String::new(),
            command: None,
        }
    }
}

/// A chart of measured points, with a limit on the vertical axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// Content of the chart, without a full stop.
    pub heading: String,
    /// Unit of the horizontal axis.
    pub across: Unit,
    /// Unit of the vertical axis.
    pub up: Unit,
    /// The limit, and its text.
    pub limit: (f64, String),
    /// The series, in the order of their marks.
    pub series: Vec<ChartSeries>,
}

/// Points of a chart with the same mark.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartSeries {
    /// Name in the legend. Empty if there is only one series.
    pub name: String,
    /// The points, in any order.
    pub points: Vec<ChartPoint>,
    /// Value on the horizontal axis that the report is about, and its text.
    pub marked: Option<(f64, String)>,
}

/// A point of a chart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChartPoint {
    /// Value on the horizontal axis.
    pub across: f64,
    /// Value on the vertical axis. May be infinite.
    pub up: f64,
    /// Whether the point is within all limits.
    pub is_kept: bool,
}

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Content of the table, without a full stop. Empty if the context makes it clear.
    pub heading: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows.
    pub rows: Vec<TableRow>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Text above the column.
    pub heading: String,
    /// How cells are shortened if space is short.
    pub fit: ColumnFit,
    /// Priority for removal if not all columns fit. Columns with 0 are never removed. The greatest number
    /// goes first.
    pub spare: u8,
}

/// How the cells of a column are shortened if space is short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnFit {
    /// Figures: right-aligned and never cut.
    Figure,
    /// Text that is never cut.
    Whole,
    /// Text that wraps between words.
    Wrapped,
    /// Text that is cut at the end.
    CutEnd,
    /// Text that is cut at the start.
    CutStart,
    /// Text that is cut in the middle, for names whose start and end both matter.
    CutMiddle,
    /// A drawing that takes the remaining width.
    Drawing,
}

impl Column {
    /// Creates a column of figures.
    pub fn figure(heading: impl Into<String>) -> Column {
        Column {
            heading: heading.into(),
            fit: ColumnFit::Figure,
            spare: 0,
        }
    }

    /// Creates a column of text.
    pub fn text(heading: impl Into<String>, fit: ColumnFit) -> Column {
        Column {
            heading: heading.into(),
            fit,
            spare: 0,
        }
    }

    /// Marks the column as removable if space is short.
    pub fn spare(self, spare: u8) -> Column {
        Column { spare, ..self }
    }
}

impl<T: Into<String>> From<(T, ColumnFit)> for Column {
    fn from((heading, fit): (T, ColumnFit)) -> Column {
        Column::text(heading, fit)
    }
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum TableRow {
    /// One cell per column.
    Cells(Vec<Cell>),
    /// A remark across all columns.
    Note(Tone, String),
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Not measured. Differs from a measured zero.
    Missing,
    /// Any text. Empty if it repeats the row above.
    Text(String),
    /// A verdict or a state.
    Word(Tone, String),
    /// A figure. All figures of a column share one unit where that is readable.
    Figure(Quantity),
    /// A figure that is only a lower bound.
    AtLeast(Quantity),
    /// A value and the ends of its interval, if known, on the logarithmic axis shared by the column. Ratios have a
    /// mark at 1.
    Interval(Quantity, Option<(f64, f64)>),
    /// A series of values, and the indices before which it changed.
    Course(Vec<f64>, Vec<usize>),
}

impl Cell {
    /// Creates a text cell.
    pub fn text(text: impl Into<String>) -> Cell {
        Cell::Text(text.into())
    }

    /// Creates a figure cell, or a missing cell for `None`.
    pub fn figure(quantity: Option<Quantity>) -> Cell {
        quantity.map_or(Cell::Missing, Cell::Figure)
    }

    /// Creates a text cell, or a missing cell for `None`.
    pub fn optional(text: Option<String>) -> Cell {
        text.map_or(Cell::Missing, Cell::Text)
    }

    /// Returns the figure if the cell prints one.
    fn quantity(&self) -> Option<Quantity> {
        match self {
            Cell::Figure(quantity) | Cell::AtLeast(quantity) => Some(*quantity),
            Cell::Missing
            | Cell::Text(_)
            | Cell::Word(..)
            | Cell::Interval(..)
            | Cell::Course(..) => None,
        }
    }
}

impl Table {
    /// Creates a table without rows.
    pub fn new<C: Into<Column>>(
        heading: impl Into<String>,
        columns: impl IntoIterator<Item = C>,
    ) -> Table {
        let columns = columns.into_iter().map(Into::into).collect();
        Table {
            heading: heading.into(),
            columns,
            rows: Vec::new(),
        }
    }

    /// Creates a table of name columns followed by figure columns.
    pub fn of_figures<'a>(
        heading: impl Into<String>,
        names: impl IntoIterator<Item = (&'a str, ColumnFit)>,
        figures: impl IntoIterator<Item = &'a str>,
    ) -> Table {
        let figures = figures.into_iter().map(|name| (name, ColumnFit::Figure));
        Table::new(heading, names.into_iter().chain(figures))
    }

    /// Adds a row.
    pub fn push(&mut self, cells: Vec<Cell>) {
        self.rows.push(TableRow::Cells(cells));
    }

    /// Iterates over the cells of all rows, without the remarks between them.
    pub fn cells(&self) -> impl Iterator<Item = &Vec<Cell>> {
        self.rows.iter().filter_map(|row| match row {
            TableRow::Cells(cells) => Some(cells),
            TableRow::Note(..) => None,
        })
    }

    /// Returns the cells as text, with one unit per column of figures. Drawings are empty.
    pub fn texts(&self) -> Vec<Vec<String>> {
        let columns: Vec<Vec<String>> = (0..self.columns.len()).map(|at| self.column(at)).collect();
        let rows = columns.first().map_or(0, Vec::len);
        (0..rows)
            .map(|row| columns.iter().map(|column| column[row].clone()).collect())
            .collect()
    }

    fn column(&self, at: usize) -> Vec<String> {
        let cells = || {
            self.cells()
                .map(move |cells| cells.get(at).unwrap_or(&Cell::Missing))
        };
        let unit = cells()
            .find_map(Cell::quantity)
            .map(|quantity| quantity.unit);
        let values: Vec<Option<f64>> = cells().map(|cell| Some(cell.quantity()?.value)).collect();
        let figures = unit
            .map(|unit| quantity::column(unit, &values))
            .unwrap_or_default();
        let text = |(row, cell): (usize, &Cell)| match cell {
            Cell::Missing => NONE.to_owned(),
            Cell::Text(text) | Cell::Word(_, text) => text.clone(),
            Cell::Figure(_) => figures[row].clone(),
            Cell::AtLeast(_) => format!("≥ {}", figures[row]),
            Cell::Interval(..) | Cell::Course(..) => String::new(),
        };
        cells().enumerate().map(text).collect()
    }
}
