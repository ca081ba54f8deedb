//! The file as a tree in which every key and value has its place in the text.
//!
//! It keeps the order of the file, and knows TOML but not the meaning of keys.

use serde::de::value::{Error, MapDeserializer, SeqDeserializer};
use serde::de::{self, IntoDeserializer, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};
use toml::de::{DeTable, DeValue};

use crate::problem::{Problem, TextSpan};

/// Deeper than any experiment file needs. Limits every recursion over a tree.
const DEPTH_MAX: usize = 32;

/// A value and its place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TomlNode {
    pub span: TextSpan,
    pub value: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    String(String),
    /// With its text in the file.
    Integer(i64, String),
    /// With its text in the file.
    Float(f64, String),
    Boolean(bool),
    /// A value that no key of the file accepts, by its name in messages: "a date or time".
    Unusable(&'static str),
    Array(Vec<TomlNode>),
    Table(TomlTable),
}

/// A table's entries in the order of the file, each key once.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct TomlTable {
    pub entries: Vec<TomlEntry>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TomlEntry {
    pub key: String,
    pub key_span: TextSpan,
    pub node: TomlNode,
}

impl TomlNode {
    /// Parses TOML, or returns the first syntax error of each line.
    pub fn parse(text: &str) -> Result<Self, Vec<Problem>> {
        let (document, errors) = DeTable::parse_recoverable(text);
        if !errors.is_empty() {
            return Err(syntax_problems(text, &errors));
        }
        let table = TomlTable::from_toml(document.into_inner(), (text, 0));
        Ok(Self {
            span: 0..0,
            value: Value::Table(table),
        })
    }

    /// Converts a value. `file` is the text of the whole file, and the value's depth in it.
    fn from_toml(node: toml::Spanned<DeValue<'_>>, file @ (text, depth): (&str, usize)) -> Self {
        let span = node.span();
        let typed = || text.get(span.clone()).unwrap_or_default().to_owned();
        let below = (file.0, depth + 1);
        let value = match node.into_inner() {
            DeValue::String(text) => Value::String(text.into_owned()),
            DeValue::Integer(digits) => i64::from_str_radix(digits.as_str(), digits.radix())
                .map_or(
                    Value::Unusable("an integer of more than 64 bits"),
                    |number| Value::Integer(number, typed()),
                ),
            DeValue::Float(digits) => {
                Value::Float(digits.as_str().parse().unwrap_or(f64::NAN), typed())
            }
            DeValue::Boolean(value) => Value::Boolean(value),
            DeValue::Datetime(_) => Value::Unusable("a date or time"),
            DeValue::Array(_) | DeValue::Table(_) if depth == DEPTH_MAX => {
                Value::Unusable("nested too deep")
            }
            DeValue::Array(items) => Value::Array(
                items
                    .into_iter()
                    .map(|item| Self::from_toml(item, below))
                    .collect(),
            ),
            DeValue::Table(table) => Value::Table(TomlTable::from_toml(table, below)),
        };
        Self { span, value }
    }

    /// Deserializes typed values. Tables keep their order.
    pub fn read<'de, T: Deserialize<'de>>(&'de self) -> Result<T, Problem> {
        // The schema only permits values that serde can read. If they should ever differ, the file's author
        // gets this message.
        T::deserialize(self)
            .map_err(|error| Problem::new(0..0, error.to_string(), "this cannot be read"))
    }

    /// Converts all numbers that are values of variables to text: for a process 1.10 is not 1.1.
    pub fn keep_typed_numbers(&mut self) {
        self.keep_typed(&mut Vec::new());
    }

    fn keep_typed(&mut self, path: &mut Vec<String>) {
        let is_env = is_env(&path.iter().map(String::as_str).collect::<Vec<_>>());
        for entry in self.entries_mut() {
            match &mut entry.node.value {
                Value::Integer(_, text) | Value::Float(_, text) if is_env => {
                    entry.node.value = Value::String(std::mem::take(text));
                }
                _ => {
                    path.push(entry.key.clone());
                    entry.node.keep_typed(path);
                    path.pop();
                }
            }
        }
    }

    pub fn table(&self) -> Option<&TomlTable> {
        if let Value::Table(table) = &self.value {
            Some(table)
        } else {
            None
        }
    }

    /// The entries, mutable. Empty if it is not a table.
    pub fn entries_mut(&mut self) -> &mut [TomlEntry] {
        if let Value::Table(table) = &mut self.value {
            &mut table.entries
        } else {
            &mut []
        }
    }

    /// The entries of the table at `path`. Empty if there is no table.
    pub fn entries(&self, path: &[&str]) -> &[TomlEntry] {
        let table = self.entry(path).and_then(|entry| entry.node.table());
        table.map_or(&[], |table| &table.entries)
    }

    /// The entry at the end of a path of keys.
    pub fn entry(&self, path: &[&str]) -> Option<&TomlEntry> {
        let (last, parents) = path.split_last()?;
        let parent = parents
            .iter()
            .try_fold(self, |node, key| Some(&node.table()?.get(key)?.node))?;
        parent.table()?.get(last)
    }

    /// The `index`-th item of the array at `path`.
    pub fn item(&self, path: &[&str], index: usize) -> Option<&TomlNode> {
        let Value::Array(items) = &self.entry(path)?.node.value else {
            return None;
        };
        items.get(index)
    }

    /// Place of the value at `path`. If it does not exist, place of the deepest existing key on the path.
    pub fn place(&self, path: &[&str]) -> TextSpan {
        if let Some(entry) = self.entry(path) {
            return entry.node.span.clone();
        }
        let parents = (1..path.len())
            .rev()
            .find_map(|length| self.entry(&path[..length]));
        parents.map_or(self.span.clone(), |entry| entry.key_span.clone())
    }

    /// Place of the `index`-th item of the array at `path`. Place of the value itself if it is not an array.
    pub fn item_place(&self, path: &[&str], index: usize) -> TextSpan {
        self.item(path, index)
            .map_or_else(|| self.place(path), |item| item.span.clone())
    }

    /// Place of the key at the end of `path`. If it does not exist, place of its parents.
    pub fn key_place(&self, path: &[&str]) -> TextSpan {
        self.entry(path)
            .map_or_else(|| self.place(path), |entry| entry.key_span.clone())
    }
}

/// Whether the table at a path contains variables.
fn is_env(path: &[&str]) -> bool {
    match path {
        ["services", _, rest @ ..] | ["factors", _, _, _, rest @ ..] => {
            matches!(rest, ["env"] | ["container", "env"])
        }
        ["prepare", _, "env"] | ["generators", "env"] | ["generators", _, "env"] => true,
        _ => false,
    }
}

impl TomlTable {
    fn from_toml(table: DeTable<'_>, file: (&str, usize)) -> Self {
        let mut entries: Vec<TomlEntry> = table
            .into_iter()
            .map(|(key, value)| TomlEntry {
                key_span: key.span(),
                key: key.into_inner().into_owned(),
                node: TomlNode::from_toml(value, file),
            })
            .collect();
        // The toml crate sorts by name. The order of the file follows from the keys' places.
        entries.sort_by_key(|entry| entry.key_span.start);
        Self { entries }
    }

    pub fn get(&self, key: &str) -> Option<&TomlEntry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// Merges `over` into this table: tables are merged, anything else is replaced, places included. Names of
    /// header fields are compared without case.
    ///
    /// Returns the places of `over`'s keys that replaced something.
    pub fn lay(&mut self, over: &TomlTable) -> Vec<TextSpan> {
        self.lay_where(over, |one, other| one == other)
    }

    fn lay_where(&mut self, over: &TomlTable, same: fn(&str, &str) -> bool) -> Vec<TextSpan> {
        let mut replaced = Vec::new();
        for entry in &over.entries {
            match self
                .entries
                .iter_mut()
                .find(|under| same(&under.key, &entry.key))
            {
                None => self.entries.push(entry.clone()),
                Some(under) => match (&mut under.node.value, &entry.node.value) {
                    (Value::Table(below), Value::Table(above)) if entry.key == "headers" => {
                        replaced.extend(below.lay_where(above, ::model::header::is_same));
                    }
                    (Value::Table(below), Value::Table(above)) => replaced.extend(below.lay(above)),
                    _ => {
                        replaced.push(entry.key_span.clone());
                        *under = entry.clone();
                    }
                },
            }
        }
        replaced
    }

    /// Every value in it that is not a table, with its path and the place of its key.
    pub fn leaves(&self) -> Vec<(String, TextSpan)> {
        let of_entry = |TomlEntry {
                            key,
                            key_span,
                            node,
                        }: &TomlEntry| match &node.value {
            Value::Table(table) => table
                .leaves()
                .into_iter()
                .map(|(path, span)| (format!("{key}.{path}"), span))
                .collect(),
            _ => vec![(key.clone(), key_span.clone())],
        };
        self.entries.iter().flat_map(of_entry).collect()
    }
}

/// More syntax errors only mean that the file is something else.
const SYNTAX_PROBLEMS_MAX: usize = 20;

/// The parser continues after an error and may report consequences of it. So only the first error of a line
/// counts, and nothing after a bracket or quote that is never closed.
fn syntax_problems(text: &str, errors: &[toml::de::Error]) -> Vec<Problem> {
    let mut found: Vec<Problem> = errors.iter().map(syntax_problem).collect();
    found.sort_by_key(|problem| problem.span.start);
    let mut problems = Vec::new();
    let mut line_end = 0;
    for problem in found {
        let start = problem.span.start.min(text.len());
        if start < line_end {
            continue;
        }
        let length = text.get(start..).and_then(|rest| rest.find('\n'));
        line_end = length.map_or(text.len(), |length| start + length + 1);
        let last = leaves_open(&problem.message) || problems.len() + 1 == SYNTAX_PROBLEMS_MAX;
        problems.push(problem);
        if last {
            break;
        }
    }
    problems
}

fn leaves_open(message: &str) -> bool {
    ["missing comma", "missing key", "unclosed"]
        .iter()
        .any(|beginning| message.starts_with(beginning))
}

fn syntax_problem(error: &toml::de::Error) -> Problem {
    let span = error.span().unwrap_or(0..0);
    let said = error.message().replace('\n', " ");
    let (message, label) = match said.split_once(", expected ") {
        Some((message, expected)) => (message.to_owned(), format!("expected {expected}")),
        None if said == "duplicate key" => (said, "there before".to_owned()),
        None => (said, "not TOML".to_owned()),
    };
    let hint = "a bracket, brace or quote before this may have been left open".to_owned();
    let hint = leaves_open(&message).then_some(hint);
    Problem {
        hint,
        ..Problem::new(span, message, label)
    }
}

impl<'de> IntoDeserializer<'de> for &'de TomlNode {
    type Deserializer = Self;
    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> de::Deserializer<'de> for &'de TomlNode {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.value {
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Integer(number, _) => visitor.visit_i64(*number),
            Value::Float(number, _) => visitor.visit_f64(*number),
            Value::Boolean(value) => visitor.visit_bool(*value),
            Value::Unusable(what) => {
                Err(de::Error::custom(format_args!("{what} has no place here")))
            }
            Value::Array(items) => visitor.visit_seq(SeqDeserializer::new(items.iter())),
            Value::Table(table) => visitor.visit_map(MapDeserializer::new(
                table
                    .entries
                    .iter()
                    .map(|entry| (entry.key.as_str(), &entry.node)),
            )),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match &self.value {
            Value::String(text) => visitor.visit_enum(text.as_str().into_deserializer()),
            _ => Err(de::Error::custom("expected a string")),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}
