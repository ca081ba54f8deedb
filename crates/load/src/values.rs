//! Rows of named values, which requests are filled with: read from CSV or JSON lines, whole and checked, before a load.
//!
//! Text in, table out. Pure: it must not open a file, and it must not know where in a request a value goes.

use std::fmt;
use std::io::Read;
use std::sync::Arc;

use csv::{ByteRecord, Reader, ReaderBuilder};
use model::quantity::many;
use model::text;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// As much as the requests that are rendered from it may take.
const TEXT_MAX: usize = 512 << 20;
const COLUMNS_MAX: usize = 1000;
const ROWS_MAX: usize = 10_000_000;

/// A table of text: at least one row, and in each row a value for each column. A clone shares it.
#[derive(Clone, PartialEq, Eq)]
pub struct Values {
    table: Arc<Table>,
}

/// Cell `row * columns + column` of `text` begins where the one before ends.
#[derive(Default, PartialEq, Eq)]
struct Table {
    columns: Vec<String>,
    text: String,
    ends: Vec<u32>,
    /// The line of the source where each row begins, from 1.
    lines: Vec<u32>,
}

/// Why a text is no table of values, with the line and column that are to blame, and what to do. It does not know the text's file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ValuesError(String);

impl Values {
    /// Reads CSV as spreadsheets write it (RFC 4180): commas, double quotes, the columns' names in the first row.
    /// UTF-8, with or without a byte order mark; lines end in LF or CRLF; empty lines are skipped. Spaces belong to
    /// the value.
    ///
    /// # Errors A row with more or fewer values than there are columns, a quote that is never closed, what is not
    /// UTF-8, a column without a name or with another's, no row at all, or too much of anything: 512 MiB, 1000
    /// columns, 10 million rows.
    pub fn csv(text: &[u8]) -> Result<Values, ValuesError> {
        csv_table(within_limit(text)?)
    }

    /// Reads JSON lines: an object in each line, with the same keys as in the first. A string is taken as it is, a
    /// number, `true` or `false` as it is written. UTF-8, with or without a byte order mark; lines end in LF or CRLF;
    /// empty lines are skipped.
    ///
    /// # Errors A line that is no object, a key that is missing or new or there twice, `null`, an object or a list as
    /// a value, no line at all, or too much of anything: 512 MiB, 1000 columns, 10 million rows.
    pub fn jsonl(text: &[u8]) -> Result<Values, ValuesError> {
        json_table(within_limit(text)?)
    }

    /// The columns' names, in the order of the text.
    pub fn columns(&self) -> &[String] {
        &self.table.columns
    }

    /// How many rows there are; at least one.
    pub fn rows(&self) -> usize {
        self.table.lines.len()
    }

    /// The value; both numbers are from 0 and within the table.
    pub(crate) fn cell(&self, row: usize, column: usize) -> &str {
        let Table { columns, text, ends, lines: _ } = &*self.table;
        let index = row * columns.len() + column;
        let start = if index == 0 { 0 } else { ends[index - 1] };
        &text[start as usize..ends[index] as usize]
    }

    /// The line of the source where the row begins, from 1.
    pub(crate) fn line(&self, row: usize) -> u32 {
        self.table.lines[row]
    }
}

/// As JSON: the columns' names, then rows of cells.
#[derive(Serialize, Deserialize)]
struct Form {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Serialize for Values {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let columns = self.columns().to_vec();
        let cells = |row| (0..columns.len()).map(|column| self.cell(row, column).to_owned()).collect();
        let rows = (0..self.rows()).map(cells).collect();
        Form { columns, rows }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Values, D::Error> {
        let Form { columns, rows } = Form::deserialize(deserializer)?;
        let width = columns.len();
        let mut table = Table::new(columns, 1).map_err(D::Error::custom)?;
        for (number, row) in rows.iter().enumerate() {
            if row.len() != width {
                let found = format!(
                    "row {} has {} for {}",
                    number + 1,
                    many(row.len() as u64, "value"),
                    many(width as u64, "column")
                );
                return Err(D::Error::custom(found));
            }
            table.begin_row(u32::try_from(number + 1).unwrap_or(u32::MAX)).map_err(D::Error::custom)?;
            row.iter().for_each(|value| table.push(value));
        }
        if rows.is_empty() {
            return Err(D::Error::custom("a table of values without a row"));
        }
        Ok(table.finish())
    }
}

/// Millions of rows are nothing to look at.
impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows of {:?}", self.rows(), self.columns())
    }
}

impl Table {
    /// `line` is the one that names the columns.
    fn new(columns: Vec<String>, line: u32) -> Result<Table, ValuesError> {
        if columns.len() > COLUMNS_MAX {
            let problem = format!("there are {} columns, at most {COLUMNS_MAX}", columns.len());
            return Err(at(line, problem, "leave out those that no request uses"));
        }
        if let Some(index) = columns.iter().position(String::is_empty) {
            let problem = format!("column {} has no name", index + 1);
            return Err(at(line, problem, "name it, or take it out of every row"));
        }
        let mut sorted: Vec<&String> = columns.iter().collect();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(in_column(line, pair[0], "is there twice", "give each column a name of its own"));
        }
        Ok(Table { columns, ..Table::default() })
    }

    /// Begins a row; a value for each column must follow.
    fn begin_row(&mut self, line: u32) -> Result<(), ValuesError> {
        if self.lines.len() == ROWS_MAX {
            return Err(at(line, format!("there are more than {ROWS_MAX} rows"), "use fewer"));
        }
        self.lines.push(line);
        Ok(())
    }

    fn push(&mut self, value: &str) {
        self.text.push_str(value);
        // No value is longer than its source, and that is within TEXT_MAX.
        self.ends.push(self.text.len() as u32);
    }

    fn finish(mut self) -> Values {
        self.text.shrink_to_fit();
        self.ends.shrink_to_fit();
        self.lines.shrink_to_fit();
        Values { table: Arc::new(self) }
    }
}

/// The text without a byte order mark, if it is not too long.
fn within_limit(text: &[u8]) -> Result<&[u8], ValuesError> {
    if text.len() > TEXT_MAX {
        let problem = format!("there are {} bytes of values, at most {TEXT_MAX}", text.len());
        return Err(nowhere(&problem, "use fewer rows"));
    }
    Ok(text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text))
}

fn nowhere(problem: &str, hint: &str) -> ValuesError {
    ValuesError(format!("{problem}; {hint}"))
}

fn at(line: u32, problem: impl fmt::Display, hint: &str) -> ValuesError {
    ValuesError(format!("line {line}: {problem}; {hint}"))
}

fn in_column(line: u32, column: &str, problem: impl fmt::Display, hint: &str) -> ValuesError {
    ValuesError(format!("line {line}, column {}: {problem}; {hint}", shown(column)))
}

fn not_utf8(value: &[u8]) -> String {
    format!("is not UTF-8: {}", shown_bytes(value))
}

const UTF8_HINT: &str = "save the file as UTF-8";
const EMPTY: &str = "there are no values: the text is empty";

// How values and columns are shown in messages: short, on one line, and with the name that was probably meant.
//
// Text for people. It must not decide what is wrong.

/// Longer texts are cut in messages.
const SHOWN_CHARS_MAX: usize = 40;
/// As many columns are named where none is near.
const LISTED_MAX: usize = 10;

/// In back quotes.
pub(crate) fn shown(text: &str) -> String {
    format!("`{}`", text::quoted(text, SHOWN_CHARS_MAX))
}

/// The same of bytes that are no text; what is not ASCII is shown as `\xNN`.
pub(crate) fn shown_bytes(bytes: &[u8]) -> String {
    let (start, cut) = match bytes.get(..SHOWN_CHARS_MAX) {
        Some(start) if start.len() < bytes.len() => (start, "…"),
        _ => (bytes, ""),
    };
    format!("`{}{cut}`", start.escape_ascii())
}

/// A hint for a word that is no column: the nearest one, or else their names.
pub(crate) fn did_you_mean(word: &str, columns: &[String]) -> String {
    match text::nearest(word, columns.iter().map(String::as_str)) {
        Some(column) => format!("did you mean {}?", shown(column)),
        None => format!("columns: {}", listed(columns)),
    }
}

/// Names separated by commas, the first of them where they are many.
pub(crate) fn listed(columns: &[String]) -> String {
    let mut names: Vec<String> = columns.iter().take(LISTED_MAX).map(|column| shown(column)).collect();
    if columns.len() > LISTED_MAX {
        names.push(format!("and {} more", columns.len() - LISTED_MAX));
    }
    names.join(", ")
}

// CSV into a table. The `csv` crate splits it; this says where, and refuses what that crate would let pass.
//
// The crate takes the end of the text for a closing quote, and would so make one value of all rows after a quote
// that was forgotten. A row of our own behind the text brings it to light: it is swallowed too. Its line numbers are
// those of the end of the row before (CRLF and empty lines move them), so that lines are counted here.

/// The row behind the text, and the line break that ends the text where it has none.
const SENTINEL: &[u8] = b"\nend";

/// Reads the columns' names and all rows; the text has no byte order mark.
fn csv_table(text: &[u8]) -> Result<Values, ValuesError> {
    let mut rows = Rows::new(text);
    let Some(line) = rows.next()? else {
        let hint = "expected the columns' names in the first line and a row in each line below";
        return Err(nowhere(EMPTY, hint));
    };
    let mut table = Table::new(csv_names(&rows.record, line)?, line)?;
    while let Some(line) = rows.next()? {
        push_csv_row(&mut table, &rows.record, line)?;
    }
    if table.lines.is_empty() {
        return Err(at(line, "there is no row below the columns' names", "expected at least one"));
    }
    Ok(table.finish())
}

fn csv_names(record: &ByteRecord, line: u32) -> Result<Vec<String>, ValuesError> {
    let name = |(index, field): (usize, &[u8])| match std::str::from_utf8(field) {
        Ok(name) => Ok(name.to_owned()),
        Err(_) => Err(at(line, format!("the name of column {} {}", index + 1, not_utf8(field)), UTF8_HINT)),
    };
    record.iter().enumerate().map(name).collect()
}

fn push_csv_row(table: &mut Table, record: &ByteRecord, line: u32) -> Result<(), ValuesError> {
    let (given, expected) = (record.len(), table.columns.len());
    if given != expected {
        let names = listed(&table.columns);
        let problem = format!("the row has {}, expected {expected}: {names}", many(given as u64, "value"));
        return Err(at(line, problem, "a value that contains a comma is written in double quotes"));
    }
    table.begin_row(line)?;
    for (column, field) in record.iter().enumerate() {
        match std::str::from_utf8(field) {
            Ok(value) => table.push(value),
            Err(_) => return Err(in_column(line, &table.columns[column], not_utf8(field), UTF8_HINT)),
        }
    }
    Ok(())
}

/// The rows of a text, one at a time, each with its line.
struct Rows<'t> {
    text: &'t [u8],
    reader: Reader<std::io::Chain<&'t [u8], &'static [u8]>>,
    record: ByteRecord,
    /// How far lines are counted, and the line there.
    counted: usize,
    line: u32,
}

impl<'t> Rows<'t> {
    fn new(text: &'t [u8]) -> Rows<'t> {
        let reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.chain(SENTINEL));
        Rows { text, reader, record: ByteRecord::new(), counted: 0, line: 1 }
    }

    /// Reads the next row into `record`; its line, or `None` behind the last.
    fn next(&mut self) -> Result<Option<u32>, ValuesError> {
        let from = self.reader.position().byte() as usize;
        let blank = |byte: &u8| matches!(byte, b'\r' | b'\n');
        let start = from + self.text.get(from..).unwrap_or_default().iter().take_while(|b| blank(b)).count();
        if start >= self.text.len() {
            return Ok(None);
        }
        self.line += self.text[self.counted..start].iter().filter(|byte| **byte == b'\n').count() as u32;
        self.counted = start;
        let read = self.reader.read_byte_record(&mut self.record);
        // It reads from memory and takes rows of any length, so that nothing is left that could fail.
        read.map_err(|error| at(self.line, error, "expected CSV"))?;
        // A row ends with its own line break or with the one that begins the sentinel, and never behind it.
        if self.reader.position().byte() as usize > self.text.len() + 1 {
            let problem = "a double quote is opened in this row and never closed";
            return Err(at(self.line, problem, "close it; inside of a quoted value it is written twice"));
        }
        Ok(Some(self.line))
    }
}

// JSON lines into a table. Numbers keep the text they have in the file: a number type would make `1e3` another text,
// and round what is long.
//
// It must not reach into a value: what is nested has no one text, and is refused.

const LINE_HINT: &str = r#"expected an object in each line, such as {"id": 1, "name": "a"}"#;
const KIND_HINT: &str = "expected a string, a number, true or false";

/// Reads all lines; the text has no byte order mark.
fn json_table(text: &[u8]) -> Result<Values, ValuesError> {
    let mut table: Option<Table> = None;
    // There are fewer lines than bytes, and those fit in.
    for (line, bytes) in (1u32..).zip(text.split(|byte| *byte == b'\n')) {
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        let Object(members) = object(bytes, line)?;
        let table = match &mut table {
            Some(table) => table,
            none => none.insert(Table::new(json_names(&members, line)?, line)?),
        };
        push_json_row(table, &members, line)?;
    }
    let table = table.ok_or_else(|| nowhere(EMPTY, LINE_HINT))?;
    Ok(table.finish())
}

fn object(bytes: &[u8], line: u32) -> Result<Object<'_>, ValuesError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let from = error.valid_up_to().saturating_sub(10);
        at(line, format!("the line is not UTF-8: {}", shown_bytes(&bytes[from..])), UTF8_HINT)
    })?;
    serde_json::from_str(text).map_err(|error| {
        let byte = match error.column() {
            0 => String::new(),
            byte => format!(" at byte {byte}"),
        };
        at(line, format!("the line is no JSON object: {}{byte}", without_place(&error)), LINE_HINT)
    })
}

fn json_names(members: &[(String, &RawValue)], line: u32) -> Result<Vec<String>, ValuesError> {
    if members.is_empty() {
        return Err(at(line, "the object is empty", LINE_HINT));
    }
    Ok(members.iter().map(|(name, _)| name.clone()).collect())
}

fn push_json_row(table: &mut Table, members: &[(String, &RawValue)], line: u32) -> Result<(), ValuesError> {
    table.begin_row(line)?;
    let mut row: Vec<Option<&RawValue>> = vec![None; table.columns.len()];
    for (name, value) in members {
        let Some(column) = table.columns.iter().position(|column| column == name) else {
            let hint = did_you_mean(name, &table.columns);
            return Err(in_column(line, name, "is not in the first line", &hint));
        };
        if row[column].replace(value).is_some() {
            return Err(in_column(line, name, "is there twice", "leave one out"));
        }
    }
    for (column, value) in row.into_iter().enumerate() {
        let name = &table.columns[column];
        let Some(value) = value else {
            let hint = format!("each line has the columns of the first: {}", listed(&table.columns));
            return Err(in_column(line, name, "is missing", &hint));
        };
        push_value(table, column, value.get(), line)?;
    }
    Ok(())
}

/// `text` is one JSON value without spaces around it.
fn push_value(table: &mut Table, column: usize, text: &str, line: u32) -> Result<(), ValuesError> {
    let refuse = |problem: String, hint| Err(in_column(line, &table.columns[column], problem, hint));
    match text.as_bytes().first() {
        Some(b'"') => match serde_json::from_str::<String>(text) {
            Ok(string) => table.push(&string),
            Err(error) => {
                let problem = format!("{} cannot be read: {}", shown(text), without_place(&error));
                return refuse(problem, "expected a JSON string");
            }
        },
        Some(b'n') => return refuse("is null".into(), KIND_HINT),
        Some(b'{') => return refuse(format!("is an object: {}", shown(text)), KIND_HINT),
        Some(b'[') => return refuse(format!("is a list: {}", shown(text)), KIND_HINT),
        _ => table.push(text),
    }
    Ok(())
}

/// Its place is one in the line, which would read as one in the file.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split_once(" at line ").map_or(text.clone(), |(problem, _)| problem.to_owned())
}

/// The members of an object in their order, those that are there twice too.
struct Object<'t>(Vec<(String, &'t RawValue)>);

impl<'t> Deserialize<'t> for Object<'t> {
    fn deserialize<D: Deserializer<'t>>(deserializer: D) -> Result<Object<'t>, D::Error> {
        struct Members;

        impl<'t> Visitor<'t> for Members {
            type Value = Object<'t>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<Object<'t>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Object(members))
            }
        }

        deserializer.deserialize_map(Members)
    }
}

#[cfg(test)]
mod tests;
