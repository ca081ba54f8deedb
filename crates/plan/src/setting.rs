//! Command-line flags as settings of an experiment. They are merged into the tree of the file before it is
//! resolved, so that every check of a key also applies to its flag.
//!
//! Settings get places behind the text of the file. A problem with one is reported at its flag.

use std::borrow::Cow;

use crate::model::{Contract, Request, Think};
use crate::problem::{Problem, TextSpan};
use crate::tree::{TomlEntry, TomlNode, TomlTable, Value};

/// A key of the experiment with the value of a command-line flag.
#[derive(Debug, Clone, PartialEq)]
pub struct FlagSetting {
    /// Path of the key: `load`, `headers`, `accept`.
    pub path: Vec<String>,
    /// The value in the file's notation.
    pub value: toml::Value,
    /// The flag as typed: `-H 'accept: text/plain'`.
    pub from: String,
    /// Whether the value is added to those of the file instead of replacing them.
    pub is_added: bool,
}

impl FlagSetting {
    /// Creates a setting that replaces the value of the file.
    pub fn new(
        path: &[&str],
        value: impl Into<toml::Value>,
        from: impl Into<String>,
    ) -> FlagSetting {
        FlagSetting {
            path: path.iter().map(|key| (*key).to_owned()).collect(),
            value: value.into(),
            from: from.into(),
            is_added: false,
        }
    }

    /// The setting as an addition to the values of the file.
    #[must_use]
    pub fn added(self) -> FlagSetting {
        FlagSetting {
            is_added: true,
            ..self
        }
    }
}

/// Changes of an experiment by a command and its flags.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Overrides {
    /// Keys and values, merged in this order.
    pub settings: Vec<FlagSetting>,
    /// Paths of keys of the file that do not apply. `*` is any key of a table.
    pub removed: Vec<Vec<&'static str>>,
    /// Requests that replace those of `load`.
    pub requests: Option<CommandRequests>,
}

/// Requests of a command line or a mix file. Unlike those of an experiment file they may have any method,
/// think times, and any 2xx as success.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandRequests {
    /// At least one request.
    pub requests: Vec<Request>,
    /// Whether each connection stores and sends cookies.
    pub cookies: bool,
    /// Think times of users.
    pub think: Option<Think>,
    /// Expected responses of requests without their own expectation.
    pub expect: Contract,
}

/// The text of a file, followed by the flags of its settings.
pub(crate) struct FlaggedText<'a> {
    pub text: Cow<'a, str>,
    /// Range of each setting's flag.
    flags: Vec<TextSpan>,
}

impl<'a> FlaggedText<'a> {
    /// Merges settings into the tree of `file`.
    pub fn merge(file: &'a str, tree: &mut TomlNode, overrides: &Overrides) -> FlaggedText<'a> {
        for path in &overrides.removed {
            tree.remove(path);
        }
        let mut flagged = FlaggedText {
            text: file.into(),
            flags: Vec::new(),
        };
        for setting in &overrides.settings {
            let text = flagged.text.to_mut();
            // Separates the flag from the file, and an empty flag from the next one.
            text.push('\n');
            let start = text.len();
            text.push_str(&setting.from);
            flagged.flags.push(start..text.len());
            tree.set(setting, start);
        }
        flagged
    }

    /// Moves the place of a problem with a setting into its flag.
    pub fn at_flag(&self, problem: Problem) -> Problem {
        let is_of =
            |flag: &&TextSpan| flag.start <= problem.span.start && problem.span.end <= flag.end;
        let Some(flag) = self.flags.iter().find(is_of) else {
            return problem;
        };
        Problem {
            span: problem.span.start - flag.start..problem.span.end - flag.start,
            flag: Some(self.text[flag.clone()].to_owned()),
            ..problem
        }
    }
}

impl TomlNode {
    /// Merges a setting. `start` is the place of its flag in the text.
    fn set(&mut self, setting: &FlagSetting, start: usize) {
        let flag = (setting.from.as_str(), start);
        let node = Self::of_value(&setting.value, flag);
        let span = start..start + setting.from.len();
        self.put(&setting.path, span, node, setting.is_added);
    }

    fn put(&mut self, path: &[String], flag: TextSpan, node: TomlNode, is_added: bool) {
        let Some((key, below)) = path.split_first() else {
            return;
        };
        if self.table().is_none() {
            self.value = Value::Table(TomlTable::default());
        }
        let Value::Table(TomlTable { entries }) = &mut self.value else {
            return;
        };
        let found = entries.iter().position(|entry| entry.key == *key);
        match (found, below) {
            (Some(index), [_, ..]) => entries[index].node.put(below, flag, node, is_added),
            (Some(index), []) if is_added => entries[index].node.append(node),
            (Some(index), []) => {
                (entries[index].key_span, entries[index].node) = (flag, node);
            }
            (None, _) => {
                let mut value = TomlNode {
                    span: flag.clone(),
                    value: Value::Table(TomlTable::default()),
                };
                match below {
                    [] => value = node,
                    [_, ..] => value.put(below, flag.clone(), node, is_added),
                }
                entries.push(TomlEntry {
                    key: key.clone(),
                    key_span: flag,
                    node: value,
                });
            }
        }
    }

    /// Appends a value, or each item of a list. A single value becomes a list.
    fn append(&mut self, node: TomlNode) {
        let list = |node: TomlNode| match node {
            TomlNode {
                value: Value::Array(items),
                ..
            } => items,
            single => vec![single],
        };
        let mut items = list(self.clone());
        items.extend(list(node));
        self.value = Value::Array(items);
    }

    /// Removes the value at `path`. `*` is any key of a table.
    fn remove(&mut self, path: &[&str]) {
        let (Some((key, below)), Value::Table(table)) = (path.split_first(), &mut self.value)
        else {
            return;
        };
        let is_meant = |entry: &TomlEntry| *key == "*" || entry.key == *key;
        if below.is_empty() {
            table.entries.retain(|entry| !is_meant(entry));
        } else {
            let entries = table.entries.iter_mut();
            entries
                .filter(|entry| is_meant(entry))
                .for_each(|entry| entry.node.remove(below));
        }
    }

    /// Converts the value of a flag. The place of a part is where the flag contains it.
    fn of_value(value: &toml::Value, flag @ (from, start): (&str, usize)) -> Self {
        let part = |text: &str| {
            let found = from.find(text).filter(|_| !text.is_empty());
            found.map_or(start..start + from.len(), |at| {
                start + at..start + at + text.len()
            })
        };
        let whole = part("");
        let (span, value) = match value {
            toml::Value::String(text) => (part(text), Value::String(text.clone())),
            toml::Value::Integer(number) => {
                let text = number.to_string();
                (part(&text), Value::Integer(*number, text))
            }
            toml::Value::Float(number) => {
                let text = number.to_string();
                (part(&text), Value::Float(*number, text))
            }
            toml::Value::Boolean(value) => (whole, Value::Boolean(*value)),
            toml::Value::Datetime(_) => (whole, Value::Unusable("a date or time")),
            toml::Value::Array(items) => {
                let items = items.iter().map(|item| Self::of_value(item, flag));
                (whole, Value::Array(items.collect()))
            }
            toml::Value::Table(table) => {
                let entries = table.iter().map(|(key, value)| TomlEntry {
                    key: key.clone(),
                    key_span: part(key),
                    node: Self::of_value(value, flag),
                });
                let entries = entries.collect();
                (whole, Value::Table(TomlTable { entries }))
            }
        };
        Self { span, value }
    }
}
