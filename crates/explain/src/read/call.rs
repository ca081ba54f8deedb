//! A function as V8 tells of it, in all its formats. It must not judge whose code it is.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Error, Visitor};

use crate::label::clean;

/// The most that is kept of an address: inline modules have all their code in it.
const URL_CHARS_MAX: usize = 2048;

/// A function, and where it begins.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CallFrame {
    /// Its name; empty where it has none.
    pub function: Box<str>,
    /// Address of its script; empty where there is none.
    pub url: Box<str>,
    /// Whether it belongs to a script. What has neither script nor address is not JavaScript.
    pub scripted: bool,
    /// Line at which it begins, from 1; 0 where unknown.
    pub line: u32,
    /// Column at which it begins, from 0.
    pub column: u32,
}

impl CallFrame {
    /// A function that has a name and nothing else.
    pub fn named(function: &str) -> Self {
        Self { function: clean(function).into(), url: "".into(), scripted: false, line: 0, column: 0 }
    }

    /// Whether it is WebAssembly.
    pub fn is_wasm(&self) -> bool {
        self.url.starts_with("wasm:")
    }

    /// Whether it is JavaScript, whose callees without a script are named by it.
    pub fn is_javascript(&self) -> bool {
        self.scripted && !self.is_wasm()
    }

    pub fn at(function: &str, url: &str, line: u32, column: u32) -> Self {
        Self {
            function: clean(function).into(),
            url: short(url).into(),
            scripted: !url.is_empty(),
            line,
            column,
        }
    }
}

fn short(url: &str) -> &str {
    url.char_indices().nth(URL_CHARS_MAX).map_or(url, |(end, _)| &url[..end])
}

/// The same as JSON has it: lines and columns from 0, -1 where unknown.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RawCall<'a> {
    #[serde(borrow, default)]
    function_name: Cow<'a, str>,
    #[serde(default)]
    script_id: ScriptId,
    #[serde(borrow, default)]
    url: Cow<'a, str>,
    #[serde(default = "unknown")]
    line_number: i64,
    #[serde(default = "unknown")]
    column_number: i64,
}

const fn unknown() -> i64 {
    -1
}

impl RawCall<'_> {
    pub fn frame(&self) -> CallFrame {
        CallFrame {
            function: clean(&self.function_name).into(),
            url: short(&self.url).into(),
            scripted: self.script_id.0 || !self.url.is_empty(),
            line: u32::try_from(self.line_number.saturating_add(1)).unwrap_or(0),
            column: u32::try_from(self.column_number).unwrap_or(0),
        }
    }
}

/// Whether the number of a script says that there is one. Most write it as text, some as a number.
#[derive(Debug, Clone, Copy, Default)]
struct ScriptId(bool);

impl<'de> Deserialize<'de> for ScriptId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = ScriptId;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the number of a script")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<ScriptId, E> {
                Ok(ScriptId(!matches!(text, "" | "0")))
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<ScriptId, E> {
                Ok(ScriptId(number > 0))
            }
            fn visit_i64<E: Error>(self, _: i64) -> Result<ScriptId, E> {
                Ok(ScriptId(false))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// Functions, each once.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    numbers: HashMap<CallFrame, u32>,
}

impl Calls {
    /// Its number. There are never more than there are nodes, of which there is a limit.
    pub fn number(&mut self, frame: CallFrame) -> u32 {
        let next = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
        *self.numbers.entry(frame).or_insert(next)
    }

    /// All of them, by number.
    pub fn into_frames(self) -> Vec<CallFrame> {
        let mut frames: Vec<(u32, CallFrame)> =
            self.numbers.into_iter().map(|(frame, number)| (number, frame)).collect();
        frames.sort_unstable_by_key(|(number, _)| *number);
        frames.into_iter().map(|(_, frame)| frame).collect()
    }
}
