//! Command-line flags as settings of an experiment. They are merged into the tree of the file before it is
//! resolved, so that every check of a key also applies to its flag.
//!
//! Settings get places behind the text of the file. A problem with one is reported at its flag.

use std::borrow::Cow;

use toml::Value;

use crate::model::{Contract, Request, Think};
use crate::problem::{Problem, TextSpan};
use crate::tree::TomlNode;

/// A key of the experiment with the value of a command-line flag.
#[derive(Debug, Clone, PartialEq)]
pub struct FlagSetting {
    /// Path of the key: `load`, `headers`, `accept`.
    pub path: Vec<String>,
    /// The value in the file's notation.
    pub value: Value,
    /// The flag as typed: `-H 'accept: text/plain'`.
    pub from: String,
    /// Whether the value is added to those of the file instead of replacing them.
    pub is_added: bool,
}

impl FlagSetting {
    /// Creates a setting that replaces the value of the file.
    pub fn new(path: &[&str], value: impl Into<Value>, from: impl Into<String>) -> FlagSetting {
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
