//! CSV into a table. The `csv` crate splits it; this says where, and refuses what that crate would let pass.
//!
//! The crate takes the end of the text for a closing quote, and would so make one value of all rows after a quote
//! that was forgotten. A row of our own behind the text brings it to light: it is swallowed too. Its line numbers are
//! those of the end of the row before (CRLF and empty lines move them), so that lines are counted here.

use std::io::Read;

use ::csv::{ByteRecord, Reader, ReaderBuilder};

use super::listed;
use super::{Table, UTF8_HINT, Values, ValuesError, at, in_column, not_utf8, nowhere};

/// The row behind the text, and the line break that ends the text where it has none.
const SENTINEL: &[u8] = b"\nend";

/// Reads the columns' names and all rows; the text has no byte order mark.
pub(super) fn read(text: &[u8]) -> Result<Values, ValuesError> {
    let mut rows = Rows::new(text);
    let Some(line) = rows.next()? else {
        let hint = "expected the columns' names in the first line and a row in each line below";
        return Err(nowhere("there are no values: the text is empty".into(), hint));
    };
    let mut table = Table::new(names(&rows.record, line)?, line)?;
    while let Some(line) = rows.next()? {
        push_row(&mut table, &rows.record, line)?;
    }
    if table.lines.is_empty() {
        return Err(at(line, "there is no row below the columns' names".into(), "expected at least one"));
    }
    Ok(table.finish())
}

fn names(record: &ByteRecord, line: u32) -> Result<Vec<String>, ValuesError> {
    let name = |(index, field): (usize, &[u8])| match std::str::from_utf8(field) {
        Ok(name) => Ok(name.to_owned()),
        Err(_) => Err(at(line, format!("the name of column {} {}", index + 1, not_utf8(field)), UTF8_HINT)),
    };
    record.iter().enumerate().map(name).collect()
}

fn push_row(table: &mut Table, record: &ByteRecord, line: u32) -> Result<(), ValuesError> {
    let (given, expected) = (record.len(), table.columns.len());
    if given != expected {
        let names = listed(&table.columns);
        let problem = format!("the row has {given} values, expected {expected}: {names}");
        return Err(at(line, problem, "a value that contains a comma is written in double quotes"));
    }
    table.begin_row(line)?;
    for (column, field) in record.iter().enumerate() {
        match std::str::from_utf8(field) {
            Ok(value) => table.push(value),
            Err(_) => return Err(in_column(line, table.columns[column].clone(), not_utf8(field), UTF8_HINT)),
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
        read.map_err(|error| at(self.line, error.to_string(), "expected CSV"))?;
        // A row ends with its own line break or with the one that begins the sentinel, and never behind it.
        if self.reader.position().byte() as usize > self.text.len() + 1 {
            let problem = "a double quote is opened in this row and never closed".into();
            return Err(at(self.line, problem, "close it; inside of a quoted value it is written twice"));
        }
        Ok(Some(self.line))
    }
}
