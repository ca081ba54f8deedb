//! Tables of named values that fill requests. They are read from CSV or JSON lines and checked in full before
//! a load.
//!
//! Pure: this module opens no file and does not depend on where a value goes in a request.

use std::fmt;
use std::io::Read;
use std::sync::Arc;

use csv::{ByteRecord, Reader, ReaderBuilder};
use model::quantity::many;
use model::text;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// Same limit as for the requests rendered from it.
const TEXT_MAX: usize = 512 << 20;
const COLUMNS_MAX: usize = 1000;
const ROWS_MAX: usize = 10_000_000;

/// A table of text: at least one row, and in each row a value for each column. Clones share the data.
#[derive(Clone, PartialEq, Eq)]
pub struct Values {
    table: Arc<ValuesTable>,
}

/// Cell `row * columns + column` of `text` begins where the previous one ends.
#[derive(Default, PartialEq, Eq)]
struct ValuesTable {
    columns: Vec<String>,
    text: String,
    ends: Vec<u32>,
    /// The line of the source where each row begins, from 1.
    lines: Vec<u32>,
}

/// The error for a text that is not a table of values: line, column and a hint. It does not name the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ValuesError(String);

impl Values {
    /// Reads CSV as spreadsheets write it (RFC 4180): commas, double quotes, column names in the first row.
    /// UTF-8, with or without a byte order mark. Lines end in LF or CRLF, and empty lines are skipped. Spaces
    /// are part of the value.
    ///
    /// # Errors
    /// Returns an error for a row with more or fewer values than columns, an unclosed quote, text that is not
    /// UTF-8, a column without a name or with a duplicate name, or no rows. Also if it exceeds 512 MiB, 1000
    /// columns or 10 million rows.
    pub fn csv(text: &[u8]) -> Result<Values, ValuesError> {
        csv_table(within_limit(text)?)
    }

    /// Reads JSON lines: one object per line, with the same keys as the first. A string is taken as it is. A
    /// number, `true` or `false` is taken as written. UTF-8, with or without a byte order mark. Lines end in
    /// LF or CRLF, and empty lines are skipped.
    ///
    /// # Errors
    /// Returns an error for a line that is not an object, a missing, new or duplicate key, `null`, an object
    /// or a list as a value, or no lines. Also if it exceeds 512 MiB, 1000 columns or 10 million rows.
    pub fn jsonl(text: &[u8]) -> Result<Values, ValuesError> {
        json_table(within_limit(text)?)
    }

    /// Column names, in the order of the text.
    pub fn columns(&self) -> &[String] {
        &self.table.columns
    }

    /// Number of rows, at least one.
    pub fn rows(&self) -> usize {
        self.table.lines.len()
    }

    /// Returns one value. Both indices start at 0 and must be within the table.
    pub(crate) fn cell(&self, row: usize, column: usize) -> &str {
        let ValuesTable {
            columns,
            text,
            ends,
            lines: _,
        } = &*self.table;
        let index = row * columns.len() + column;
        let start = if index == 0 { 0 } else { ends[index - 1] };
        &text[start as usize..ends[index] as usize]
    }

    /// The source line where the row begins, from 1.
    pub(crate) fn line(&self, row: usize) -> u32 {
        self.table.lines[row]
    }
}

/// The JSON form: column names, then rows of cells.
#[derive(Serialize, Deserialize)]
struct ValuesJson {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Serialize for Values {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let columns = self.columns().to_vec();
        let cells = |row| {
            (0..columns.len())
                .map(|column| self.cell(row, column).to_owned())
                .collect()
        };
        let rows = (0..self.rows()).map(cells).collect();
        ValuesJson { columns, rows }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Values, D::Error> {
        let ValuesJson { columns, rows } = ValuesJson::deserialize(deserializer)?;
        let width = columns.len();
        let mut table = ValuesTable::new(columns, 1).map_err(D::Error::custom)?;
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
            table
                .begin_row(u32::try_from(number + 1).unwrap_or(u32::MAX))
                .map_err(D::Error::custom)?;
            row.iter().for_each(|value| table.push(value));
        }
        if rows.is_empty() {
            return Err(D::Error::custom("a table of values without a row"));
        }
        Ok(table.finish())
    }
}

/// Prints only the row count and column names, because there may be millions of rows.
impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows of {:?}", self.rows(), self.columns())
    }
}

impl ValuesTable {
    /// `line` is the line of the column names.
    fn new(columns: Vec<String>, line: u32) -> Result<ValuesTable, ValuesError> {
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
            return Err(in_column(
                line,
                pair[0],
                "is there twice",
                "give each column a name of its own",
            ));
        }
        Ok(ValuesTable {
            columns,
            ..ValuesTable::default()
        })
    }

    /// Begins a row. A value for each column must follow.
    fn begin_row(&mut self, line: u32) -> Result<(), ValuesError> {
        if self.lines.len() == ROWS_MAX {
            return Err(at(
                line,
                format!("there are more than {ROWS_MAX} rows"),
                "use fewer",
            ));
        }
        self.lines.push(line);
        Ok(())
    }

    fn push(&mut self, value: &str) {
        self.text.push_str(value);
        // No value is longer than its source, which is within TEXT_MAX.
        self.ends.push(self.text.len() as u32);
    }

    fn finish(mut self) -> Values {
        self.text.shrink_to_fit();
        self.ends.shrink_to_fit();
        self.lines.shrink_to_fit();
        Values {
            table: Arc::new(self),
        }
    }
}

/// Returns the text without a byte order mark, if it is not too long.
fn within_limit(text: &[u8]) -> Result<&[u8], ValuesError> {
    if text.len() > TEXT_MAX {
        let problem = format!(
            "there are {} bytes of values, at most {TEXT_MAX}",
            text.len()
        );
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
    ValuesError(format!(
        "line {line}, column {}: {problem}; {hint}",
        shown(column)
    ))
}

fn not_utf8(value: &[u8]) -> String {
    format!("is not UTF-8: {}", shown_bytes(value))
}

const UTF8_HINT: &str = "save the file as UTF-8";
const EMPTY: &str = "there are no values: the text is empty";

// Formats values and columns for messages: short, on one line, with a suggestion for misspelled names.
//
// This part finds no errors itself.

/// Longer texts are truncated in messages.
const SHOWN_CHARS_MAX: usize = 40;
/// Number of columns listed if no name is similar.
const LISTED_MAX: usize = 10;

/// Formats text in back quotes.
pub(crate) fn shown(text: &str) -> String {
    format!("`{}`", text::quoted(text, SHOWN_CHARS_MAX))
}

/// The same for bytes that are not text. Bytes outside ASCII are shown as `\xNN`.
pub(crate) fn shown_bytes(bytes: &[u8]) -> String {
    let (start, cut) = match bytes.get(..SHOWN_CHARS_MAX) {
        Some(start) if start.len() < bytes.len() => (start, "…"),
        _ => (bytes, ""),
    };
    format!("`{}{cut}`", start.escape_ascii())
}

/// Returns a hint for an unknown column: the nearest name, or a list of names.
pub(crate) fn did_you_mean(word: &str, columns: &[String]) -> String {
    match text::nearest(word, columns.iter().map(String::as_str)) {
        Some(column) => format!("did you mean {}?", shown(column)),
        None => format!("columns: {}", listed(columns)),
    }
}

/// Joins names with commas, and lists only the first of many.
pub(crate) fn listed(columns: &[String]) -> String {
    let mut names: Vec<String> = columns
        .iter()
        .take(LISTED_MAX)
        .map(|column| shown(column))
        .collect();
    if columns.len() > LISTED_MAX {
        names.push(format!("and {} more", columns.len() - LISTED_MAX));
    }
    names.join(", ")
}

// CSV into a table. The `csv` crate splits the text. This part adds line numbers and rejects what that crate
// accepts.
//
// The crate treats the end of the text as a closing quote, so an unclosed quote would merge all rows after it
// into one value. A sentinel row after the text detects this, because it is swallowed too. The crate's line
// numbers refer to the end of the previous row (CRLF and empty lines shift them), so lines are counted here.

/// The sentinel row, and the line break that ends the text if it has none.
const SENTINEL: &[u8] = b"\nend";

/// Reads the column names and all rows. The text has no byte order mark.
fn csv_table(text: &[u8]) -> Result<Values, ValuesError> {
    let mut rows = ValueRows::new(text);
    let Some(line) = rows.next()? else {
        let hint = "expected the columns' names in the first line and a row in each line below";
        return Err(nowhere(EMPTY, hint));
    };
    let mut table = ValuesTable::new(csv_names(&rows.record, line)?, line)?;
    while let Some(line) = rows.next()? {
        push_csv_row(&mut table, &rows.record, line)?;
    }
    if table.lines.is_empty() {
        return Err(at(
            line,
            "there is no row below the columns' names",
            "expected at least one",
        ));
    }
    Ok(table.finish())
}

fn csv_names(record: &ByteRecord, line: u32) -> Result<Vec<String>, ValuesError> {
    let name = |(index, field): (usize, &[u8])| match std::str::from_utf8(field) {
        Ok(name) => Ok(name.to_owned()),
        Err(_) => Err(at(
            line,
            format!("the name of column {} {}", index + 1, not_utf8(field)),
            UTF8_HINT,
        )),
    };
    record.iter().enumerate().map(name).collect()
}

fn push_csv_row(
    table: &mut ValuesTable,
    record: &ByteRecord,
    line: u32,
) -> Result<(), ValuesError> {
    let (given, expected) = (record.len(), table.columns.len());
    if given != expected {
        let names = listed(&table.columns);
        let problem = format!(
            "the row has {}, expected {expected}: {names}",
            many(given as u64, "value")
        );
        return Err(at(
            line,
            problem,
            "a value that contains a comma is written in double quotes",
        ));
    }
    table.begin_row(line)?;
    for (column, field) in record.iter().enumerate() {
        match std::str::from_utf8(field) {
            Ok(value) => table.push(value),
            Err(_) => {
                return Err(in_column(
                    line,
                    &table.columns[column],
                    not_utf8(field),
                    UTF8_HINT,
                ));
            }
        }
    }
    Ok(())
}

/// Iterates over the rows of a text, each with its line.
struct ValueRows<'t> {
    text: &'t [u8],
    reader: Reader<std::io::Chain<&'t [u8], &'static [u8]>>,
    record: ByteRecord,
    /// Offset up to which lines are counted, and the line number there.
    counted: usize,
    line: u32,
}

impl<'t> ValueRows<'t> {
    fn new(text: &'t [u8]) -> ValueRows<'t> {
        let reader = ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .from_reader(text.chain(SENTINEL));
        ValueRows {
            text,
            reader,
            record: ByteRecord::new(),
            counted: 0,
            line: 1,
        }
    }

    /// Reads the next row into `record`. Returns its line, or `None` after the last row.
    fn next(&mut self) -> Result<Option<u32>, ValuesError> {
        let from = self.reader.position().byte() as usize;
        let blank = |byte: &u8| matches!(byte, b'\r' | b'\n');
        let start = from
            + self
                .text
                .get(from..)
                .unwrap_or_default()
                .iter()
                .take_while(|b| blank(b))
                .count();
        if start >= self.text.len() {
            return Ok(None);
        }
        self.line += self.text[self.counted..start]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count() as u32;
        self.counted = start;
        let read = self.reader.read_byte_record(&mut self.record);
        // Reading from memory with rows of any length cannot fail otherwise.
        read.map_err(|error| at(self.line, error, "expected CSV"))?;
        // A row ends with its own line break or with the one that begins the sentinel, never after it.
        if self.reader.position().byte() as usize > self.text.len() + 1 {
            let problem = "a double quote is opened in this row and never closed";
            return Err(at(
                self.line,
                problem,
                "close it; inside of a quoted value it is written twice",
            ));
        }
        Ok(Some(self.line))
    }
}

// JSON lines into a table. Numbers keep their text from the file, because a number type would change `1e3`
// and round long numbers.
//
// Nested values have no single text and are rejected.

const LINE_HINT: &str = r#"expected an object in each line, such as {"id": 1, "name": "a"}"#;
const KIND_HINT: &str = "expected a string, a number, true or false";

/// Reads all lines. The text has no byte order mark.
fn json_table(text: &[u8]) -> Result<Values, ValuesError> {
    let mut table: Option<ValuesTable> = None;
    // The number of lines is below the number of bytes, which fits into u32.
    for (line, bytes) in (1u32..).zip(text.split(|byte| *byte == b'\n')) {
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        let Object(members) = object(bytes, line)?;
        let table = match &mut table {
            Some(table) => table,
            none => none.insert(ValuesTable::new(json_names(&members, line)?, line)?),
        };
        push_json_row(table, &members, line)?;
    }
    let table = table.ok_or_else(|| nowhere(EMPTY, LINE_HINT))?;
    Ok(table.finish())
}

fn object(bytes: &[u8], line: u32) -> Result<Object<'_>, ValuesError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let from = error.valid_up_to().saturating_sub(10);
        at(
            line,
            format!("the line is not UTF-8: {}", shown_bytes(&bytes[from..])),
            UTF8_HINT,
        )
    })?;
    serde_json::from_str(text).map_err(|error| {
        let byte = match error.column() {
            0 => String::new(),
            byte => format!(" at byte {byte}"),
        };
        at(
            line,
            format!(
                "the line is no JSON object: {}{byte}",
                without_place(&error)
            ),
            LINE_HINT,
        )
    })
}

fn json_names(members: &[(String, &RawValue)], line: u32) -> Result<Vec<String>, ValuesError> {
    if members.is_empty() {
        return Err(at(line, "the object is empty", LINE_HINT));
    }
    Ok(members.iter().map(|(name, _)| name.clone()).collect())
}

fn push_json_row(
    table: &mut ValuesTable,
    members: &[(String, &RawValue)],
    line: u32,
) -> Result<(), ValuesError> {
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
            let hint = format!(
                "each line has the columns of the first: {}",
                listed(&table.columns)
            );
            return Err(in_column(line, name, "is missing", &hint));
        };
        push_value(table, column, value.get(), line)?;
    }
    Ok(())
}

/// Stores `text`, one JSON value without surrounding spaces.
fn push_value(
    table: &mut ValuesTable,
    column: usize,
    text: &str,
    line: u32,
) -> Result<(), ValuesError> {
    let refuse =
        |problem: String, hint| Err(in_column(line, &table.columns[column], problem, hint));
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

/// Removes the position, which counts within the line but would read as one in the file.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split_once(" at line ")
        .map_or(text.clone(), |(problem, _)| problem.to_owned())
}

/// The members of an object in their order, including duplicates.
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
