//! JSON lines into a table. Numbers keep the text they have in the file: a number type would make `1e3` another text,
//! and round what is long.
//!
//! It must not reach into a value: what is nested has no one text, and is refused.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{Table, UTF8_HINT, Values, ValuesError, at, did_you_mean, in_column, nowhere, shown};
use super::{listed, shown_bytes};

const LINE_HINT: &str = r#"expected an object in each line, such as {"id": 1, "name": "a"}"#;
const KIND_HINT: &str = "expected a string, a number, true or false";

/// Reads all lines; the text has no byte order mark.
pub(super) fn read(text: &[u8]) -> Result<Values, ValuesError> {
    let mut table: Option<Table> = None;
    // There are fewer lines than bytes, and those fit in.
    for (line, bytes) in (1u32..).zip(text.split(|byte| *byte == b'\n')) {
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        let Object(members) = object(bytes, line)?;
        let table = match &mut table {
            Some(table) => table,
            none => none.insert(Table::new(names(&members, line)?, line)?),
        };
        push_row(table, &members, line)?;
    }
    let table = table.ok_or_else(|| nowhere("there are no values: the text is empty".into(), LINE_HINT))?;
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

fn names(members: &[(String, &RawValue)], line: u32) -> Result<Vec<String>, ValuesError> {
    if members.is_empty() {
        return Err(at(line, "the object is empty".into(), LINE_HINT));
    }
    Ok(members.iter().map(|(name, _)| name.clone()).collect())
}

fn push_row(table: &mut Table, members: &[(String, &RawValue)], line: u32) -> Result<(), ValuesError> {
    table.begin_row(line)?;
    let mut row: Vec<Option<&RawValue>> = vec![None; table.columns.len()];
    for (place, (name, value)) in members.iter().enumerate() {
        // Nearly always they come in the order of the first line.
        let here = table.columns.get(place).is_some_and(|column| column == name);
        let found = if here { Some(place) } else { table.columns.iter().position(|column| column == name) };
        let Some(column) = found else {
            let problem = "is not in the first line".into();
            return Err(in_column(line, name.clone(), problem, did_you_mean(name, &table.columns)));
        };
        if row[column].replace(value).is_some() {
            return Err(in_column(line, name.clone(), "is there twice".into(), "leave one out"));
        }
    }
    for (column, value) in row.into_iter().enumerate() {
        let name = &table.columns[column];
        let Some(value) = value else {
            let hint = format!("each line has the columns of the first: {}", listed(&table.columns));
            return Err(in_column(line, name.clone(), "is missing".into(), hint));
        };
        push_value(table, column, value.get(), line)?;
    }
    Ok(())
}

/// `text` is one JSON value without spaces around it.
fn push_value(table: &mut Table, column: usize, text: &str, line: u32) -> Result<(), ValuesError> {
    let refuse = |problem, hint| Err(in_column(line, table.columns[column].clone(), problem, hint));
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
