//! A report before it is drawn: blocks of typed values, in the order in which people read them.
//!
//! Makers (an experiment, a gate, an explanation, ...) choose each word once and give figures with their unit. Renderers (text,
//! Markdown, CSV) draw blocks and know nothing of what they say. Must not: know a form, a width or a colour.

use crate::finding::{Code, Finding, Grade};
use crate::quantity::{self, NONE, Quantity};

/// What is reported, from top to bottom.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// What it is about.
    pub title: String,
    /// The answer in one sentence, where there is one: a pull request shows it first.
    pub headline: Option<String>,
    /// All else.
    pub blocks: Vec<Block>,
}

/// A part of a document.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// What the following blocks are.
    Heading(Tone, String),
    /// A sentence or several.
    Paragraph(Tone, String),
    /// What came of each question.
    Answers(Vec<Answer>),
    /// The same as a list with the verdicts' words in front; each has one verdict.
    Verdicts(Vec<Answer>),
    /// Rows of names and figures.
    Table(Table),
    /// What qualifies the answers, the gravest first; and the command that explains them.
    Findings(Vec<Remark>, Option<String>),
    /// Lines that have a name each.
    Lines(Vec<Line>),
    /// What to do next, for whoever ran it: sentences or commands with their reason.
    Steps(Vec<String>),
    /// Blocks that a reader may skip, and what they are.
    Folded(String, Vec<Block>),
}

impl Document {
    /// One without a headline. Blocks that have nothing in them are left out.
    pub fn new(title: impl Into<String>, blocks: impl IntoIterator<Item = Block>) -> Document {
        let blocks = blocks.into_iter().filter(|block| !block.is_empty()).collect();
        Document { title: title.into(), headline: None, blocks }
    }
}

impl Block {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        match self {
            Block::Heading(_, text) | Block::Paragraph(_, text) => text.is_empty(),
            Block::Answers(answers) | Block::Verdicts(answers) => answers.is_empty(),
            Block::Table(table) => table.rows.is_empty(),
            Block::Findings(findings, _) => findings.is_empty(),
            Block::Lines(lines) => lines.is_empty(),
            Block::Steps(steps) => steps.is_empty(),
            Block::Folded(_, blocks) => blocks.iter().all(Block::is_empty),
        }
    }
}

/// What a text means to the eye.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// A better candidate, a limit that passes.
    Good,
    /// A worse candidate, a limit that fails, what is invalid.
    Bad,
    /// No difference that matters.
    Same,
    /// Inconclusive, or a warning.
    Doubtful,
    /// There, and neither good nor bad.
    Notable,
    /// The usual.
    Plain,
    /// What is looked for first.
    Strong,
    /// What most readers skip.
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

/// A grade as a word.
pub fn grade_word(grade: Grade) -> &'static str {
    match grade {
        Grade::Invalid => "invalid",
        Grade::Warning => "warning",
        Grade::Note => "note",
        Grade::Fine => "fine",
    }
}

/// What came of one question.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// What was asked about: `production vs development`.
    pub subject: String,
    /// The verdicts, at least one.
    pub verdicts: Vec<Verdict>,
    /// What else was seen.
    pub notes: Vec<String>,
}

impl Answer {
    /// One verdict, and nothing else.
    pub fn new(subject: impl Into<String>, tone: Tone, word: &str, detail: impl Into<String>) -> Answer {
        let verdict = Verdict { tone, word: word.to_owned(), detail: detail.into() };
        Answer { subject: subject.into(), verdicts: vec![verdict], notes: Vec::new() }
    }
}

/// One verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Its kind.
    pub tone: Tone,
    /// In a word: `faster`.
    pub word: String,
    /// The figures behind it, or why there are none.
    pub detail: String,
}

/// A finding, whoever found it.
#[derive(Debug, Clone, PartialEq)]
pub struct Remark {
    /// How grave it is.
    pub grade: Grade,
    /// Its number, or which figures it is about.
    pub mark: Option<String>,
    /// What was found.
    pub statement: String,
    /// Where, with the figures of each place.
    pub cases: Vec<String>,
    /// What to do; empty where that was said before.
    pub remedy: String,
    /// The command that does it.
    pub command: Option<String>,
}

impl<C: Code> From<&Finding<C>> for Remark {
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
    /// Its grade, and its number: `warning V40`.
    pub fn head(&self) -> String {
        let mark = self.mark.as_ref().map(|mark| format!(" {mark}")).unwrap_or_default();
        format!("{}{mark}", grade_word(self.grade))
    }
}

/// A text with its name.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// How the name looks.
    pub tone: Tone,
    /// The text.
    pub text: String,
    /// What else is to be said; may be empty.
    pub detail: String,
    /// A command that belongs to it.
    pub command: Option<String>,
}

impl Line {
    /// A name and a text.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Line {
        Line { name: name.into(), tone: Tone::Faint, text: text.into(), detail: String::new(), command: None }
    }
}

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// What it shows, without a full stop; empty where that is plain.
    pub heading: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows.
    pub rows: Vec<Row>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// What stands above it.
    pub heading: String,
    /// What becomes of it where there is little room.
    pub fit: Fit,
    /// Where there is no room for all: 0 stays, of the others the greatest goes first.
    pub spare: u8,
}

/// What becomes of a column's cells where there is little room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// Figures: right-aligned, and never cut.
    Figure,
    /// Text that stays as it is.
    Whole,
    /// Text that is broken between words.
    Wrapped,
    /// Text whose end, begin or middle is left out.
    CutEnd,
    /// See [`Fit::CutEnd`].
    CutStart,
    /// See [`Fit::CutEnd`]: for names that begin with what and end with when.
    CutMiddle,
    /// A drawing that takes the room that others leave.
    Drawing,
}

impl Column {
    /// A column of figures.
    pub fn figure(heading: impl Into<String>) -> Column {
        Column { heading: heading.into(), fit: Fit::Figure, spare: 0 }
    }

    /// A column of text.
    pub fn text(heading: impl Into<String>, fit: Fit) -> Column {
        Column { heading: heading.into(), fit, spare: 0 }
    }

    /// The same, to be left out where there is no room.
    pub fn spare(self, spare: u8) -> Column {
        Column { spare, ..self }
    }
}

impl<T: Into<String>> From<(T, Fit)> for Column {
    fn from((heading, fit): (T, Fit)) -> Column {
        Column::text(heading, fit)
    }
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Row {
    /// As many cells as there are columns.
    Cells(Vec<Cell>),
    /// A remark across all columns.
    Note(Tone, String),
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Nothing was measured: a zero would be a figure.
    Missing,
    /// Any text; empty where the row above says it already.
    Text(String),
    /// A verdict or a state.
    Word(Tone, String),
    /// A figure. All of a column have one unit where that reads well.
    Figure(Quantity),
    /// A figure that is only bounded from below.
    AtLeast(Quantity),
    /// A value with its interval, on the logarithmic axis that its column shares; and whether 1 is marked.
    Interval(Quantity, Option<(f64, f64)>),
    /// Many values in a line, and before which of them something changed.
    Course(Vec<f64>, Vec<usize>),
}

impl Cell {
    /// A text.
    pub fn text(text: impl Into<String>) -> Cell {
        Cell::Text(text.into())
    }

    /// A figure, where there is one.
    pub fn figure(quantity: Option<Quantity>) -> Cell {
        quantity.map_or(Cell::Missing, Cell::Figure)
    }

    /// A text, where there is one.
    pub fn optional(text: Option<String>) -> Cell {
        text.map_or(Cell::Missing, Cell::Text)
    }

    /// Its figure, where it is one that is printed.
    fn quantity(&self) -> Option<Quantity> {
        match self {
            Cell::Figure(quantity) | Cell::AtLeast(quantity) => Some(*quantity),
            Cell::Missing | Cell::Text(_) | Cell::Word(..) | Cell::Interval(..) | Cell::Course(..) => None,
        }
    }
}

impl Table {
    /// A table of which nothing is known yet but its columns.
    pub fn new<C: Into<Column>>(heading: impl Into<String>, columns: impl IntoIterator<Item = C>) -> Table {
        let columns = columns.into_iter().map(Into::into).collect();
        Table { heading: heading.into(), columns, rows: Vec::new() }
    }

    /// One whose first columns are names, and the others figures.
    pub fn of_figures<'a>(
        heading: impl Into<String>,
        names: impl IntoIterator<Item = (&'a str, Fit)>,
        figures: impl IntoIterator<Item = &'a str>,
    ) -> Table {
        let figures = figures.into_iter().map(|name| (name, Fit::Figure));
        Table::new(heading, names.into_iter().chain(figures))
    }

    /// Adds a row.
    pub fn push(&mut self, cells: Vec<Cell>) {
        self.rows.push(Row::Cells(cells));
    }

    /// The cells of all rows, without the remarks between them.
    pub fn cells(&self) -> impl Iterator<Item = &Vec<Cell>> {
        self.rows.iter().filter_map(|row| match row {
            Row::Cells(cells) => Some(cells),
            Row::Note(..) => None,
        })
    }

    /// The same as text, figures with one unit a column; drawings are empty.
    pub fn texts(&self) -> Vec<Vec<String>> {
        let columns: Vec<Vec<String>> = (0..self.columns.len()).map(|at| self.column(at)).collect();
        let rows = columns.first().map_or(0, Vec::len);
        (0..rows).map(|row| columns.iter().map(|column| column[row].clone()).collect()).collect()
    }

    fn column(&self, at: usize) -> Vec<String> {
        let cells = || self.cells().map(move |cells| cells.get(at).unwrap_or(&Cell::Missing));
        let unit = cells().find_map(Cell::quantity).map(|quantity| quantity.unit);
        let values: Vec<Option<f64>> = cells().map(|cell| Some(cell.quantity()?.value)).collect();
        let figures = unit.map(|unit| quantity::column(unit, &values)).unwrap_or_default();
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
