//! The load generators whose output is read, and whose command lines are understood: one table, and a file for each of them.
//!
//! A new one is a variant of [`Tool`], a row of the table and a file. Which lines are whose, how a tool counts and what it sends is
//! told in its file, and only there; what the figures are worth is not.

mod ab;
mod autocannon;
mod h2load;
mod hey;
mod k6;
mod oha;
mod vegeta;
mod wrk;

use serde::Serialize;
use serde_json::Value;

use crate::compatibility::{Refusal, Translation};
use crate::draft::{Draft, Taken};
use crate::run::Run;

/// A load generator whose output is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tool {
    /// wrk 3 and 4
    Wrk,
    /// wrk2
    Wrk2,
    /// ApacheBench
    Ab,
    /// oha
    Oha,
    /// autocannon
    Autocannon,
    /// hey
    Hey,
    /// h2load, of nghttp2
    H2load,
    /// Grafana k6
    K6,
    /// vegeta
    Vegeta,
}

/// A row of the table of tools.
struct Row {
    tool: Tool,
    /// What it is called on the command line.
    name: &'static str,
    reader: &'static dyn Reader,
}

/// All of them, in the order of [`Tool`] and of the pages that list them.
static TOOLS: [Row; 9] = [
    Row { tool: Tool::Wrk, name: "wrk", reader: &wrk::WRK },
    Row { tool: Tool::Wrk2, name: "wrk2", reader: &wrk::WRK2 },
    Row { tool: Tool::Ab, name: "ab", reader: &ab::Ab },
    Row { tool: Tool::Oha, name: "oha", reader: &oha::Oha },
    Row { tool: Tool::Autocannon, name: "autocannon", reader: &autocannon::Autocannon },
    Row { tool: Tool::Hey, name: "hey", reader: &hey::Hey },
    Row { tool: Tool::H2load, name: "h2load", reader: &h2load::H2load },
    Row { tool: Tool::K6, name: "k6", reader: &k6::K6 },
    Row { tool: Tool::Vegeta, name: "vegeta", reader: &vegeta::Vegeta },
];

/// What a tool prints and takes. All of it is pure: text goes in, values come out.
pub(crate) trait Reader: Sync {
    /// How it counts and what it sends.
    fn facts(&self) -> &'static Facts;

    /// Whether a line may begin its output.
    fn begins(&self, text: &str) -> Option<Beginning>;

    /// Puts a line into the run under way.
    fn take(&self, text: &str, draft: &mut Draft) -> Taken;

    /// Whether the line is all that it prints where it cannot even connect. `commanded`: its command line stands above.
    fn fails_alone(&self, _text: &str, _commanded: bool) -> bool {
        false
    }

    /// The run that a JSON value is, if the tool wrote it.
    fn json(&self, _value: &Value) -> Option<Run> {
        None
    }

    /// Keys, with their quotes, that together tell its JSON from that of others.
    fn json_keys(&self) -> &'static [&'static str] {
        &[]
    }

    /// A command line of it whose meaning [`Reader::translate`] knows, for a hint; `None` where it knows none.
    fn example(&self) -> Option<&'static str> {
        None
    }

    /// What its command line, without its name, means as one of `proofload load`; `None` where that is not known.
    fn translate(&self, _arguments: &[String]) -> Option<Result<Translation, Refusal>> {
        None
    }
}

/// What the first line of a tool's output tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Beginning {
    /// Whether it can be no other tool's.
    pub certain: bool,
    /// Whether it can only be the first line of a run.
    pub first: bool,
}

impl Beginning {
    /// The first line, of this tool alone.
    pub const FIRST: Option<Beginning> = Some(Beginning { certain: true, first: true });
    /// The first line of several tools.
    pub const FIRST_OF_SEVERAL: Option<Beginning> = Some(Beginning { certain: false, first: true });
    /// A line of this tool whose first ones may be missing.
    pub const LATER: Option<Beginning> = Some(Beginning { certain: false, first: false });
}

/// What a flag means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    Connections,
    Threads,
    Duration,
    Requests,
    Rate,
    /// A rate for each connection.
    RateEach,
    Pipelining,
    Header,
    Keep,
    Close,
    NoCompression,
}

/// What a tool's requests per second are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RateOf {
    /// Responses of any status over the time.
    Responses,
    /// Successes over the time.
    Successes,
    /// The mean of samples, one a second.
    Samples,
}

/// What decides when a request is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// The response before it; a rate where a flag gives one.
    Responses,
    /// Always a rate; what is printed is the rate that was reached.
    Rate,
    /// A script, which may do more than one request.
    Script,
}

/// What has to divide what, so that the tool does all that it was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Divides {
    Nothing,
    ConnectionsByThreads,
    RequestsByConnections,
}

/// How a tool counts and what it sends, checked on the wire or in its source: docs/audit.md has the versions.
#[derive(Debug)]
pub(crate) struct Facts {
    /// The flags that matter, the short ones by their letter.
    pub flags: &'static [(&'static str, Meaning)],
    /// Whether long names stand behind one dash, as Go's flags do.
    pub long_behind_one_dash: bool,
    /// Words that follow its name where it loads something.
    pub verbs: &'static [&'static str],
    /// Whether it is mostly the end of a pipe, all of which is then its command line.
    pub reads_pipe: bool,
    /// Whether it sends Accept-Encoding unasked.
    pub sends_accept_encoding: bool,
    /// Whether its bytes are those of unpacked content.
    pub counts_unpacked_bytes: bool,
    /// Whether requests that timed out are among its requests.
    pub counts_timeouts: bool,
    /// What becomes of responses that took longer than its limit, where that needs telling.
    pub late_responses: Option<&'static str>,
    pub rate_of: RateOf,
    pub pace: Pace,
    pub divides: Divides,
    /// Whether it speaks HTTP/1.0, and closes connections unless told not to.
    pub http_1_0: bool,
    /// Whether it prints lines that look like headings while it runs.
    pub prints_headings: bool,
}

impl Facts {
    /// What holds for most tools.
    pub const USUAL: Facts = Facts {
        flags: &[],
        long_behind_one_dash: false,
        verbs: &[],
        reads_pipe: false,
        sends_accept_encoding: false,
        counts_unpacked_bytes: false,
        counts_timeouts: false,
        late_responses: None,
        rate_of: RateOf::Responses,
        pace: Pace::Responses,
        divides: Divides::Nothing,
        http_1_0: false,
        prints_headings: false,
    };
}

impl Tool {
    /// All of them, in the order in which pages list them.
    pub fn all() -> impl Iterator<Item = Tool> {
        TOOLS.iter().map(|row| row.tool)
    }

    /// Those whose command lines are understood.
    pub fn compatible() -> impl Iterator<Item = Tool> {
        TOOLS.iter().filter(|row| row.reader.example().is_some()).map(|row| row.tool)
    }

    /// What it is called on the command line.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// A command line of it, without its name, that is understood; `None` where none is.
    pub fn example(self) -> Option<&'static str> {
        self.row().reader.example()
    }

    /// What its command line, without its name, means as one of `proofload load`.
    ///
    /// # Errors
    /// What of it cannot be done or is none of that tool's, with what to do instead.
    pub fn translate(self, arguments: &[String]) -> Result<Translation, Refusal> {
        let unknown = || Err(Refusal::new(self, "its command lines are not known here"));
        self.row().reader.translate(arguments).unwrap_or_else(unknown)
    }

    pub(crate) fn facts(self) -> &'static Facts {
        self.row().reader.facts()
    }

    /// Whether the two print the same, so that only a command line tells them apart.
    pub(crate) fn prints_as(self, other: Tool) -> bool {
        std::ptr::eq(self.facts(), other.facts())
    }

    fn row(self) -> &'static Row {
        &TOOLS[self as usize]
    }
}

/// Whether this line can only be the first of a run.
pub(crate) fn is_first(text: &str) -> bool {
    TOOLS.iter().filter_map(|row| row.reader.begins(text)).any(|beginning| beginning.first)
}

/// The tool whose output begins with this line, as far as can be told.
pub(crate) fn begins(text: &str) -> Option<(Tool, Beginning)> {
    let found = || TOOLS.iter().filter_map(|row| Some((row.tool, row.reader.begins(text)?)));
    found().find(|(_, beginning)| beginning.certain).or_else(|| found().next())
}

/// The tool that printed this line and nothing else, because it could not connect. `commanded` is the one whose command line
/// stands above.
pub(crate) fn fails_alone(text: &str, commanded: Option<Tool>) -> Option<Tool> {
    let named = |tool: Tool| commanded.is_some_and(|commanded| commanded.prints_as(tool));
    TOOLS.iter().find(|row| row.reader.fails_alone(text, named(row.tool))).map(|row| row.tool)
}

/// Puts a line into the run under way.
pub(crate) fn take(text: &str, draft: &mut Draft) -> Taken {
    draft.run.tool.row().reader.take(text, draft)
}

/// The run that a JSON value is, if a tool wrote it.
pub(crate) fn from_json(value: &Value) -> Option<Run> {
    let mut run = TOOLS.iter().find_map(|row| row.reader.json(value))?;
    run.json = true;
    Some(run)
}

/// The tool that JSON which ends too early comes from, by its keys.
pub(crate) fn json_tool(text: &str) -> Option<Tool> {
    let wrote = |keys: &[&str]| !keys.is_empty() && keys.iter().all(|key| text.contains(key));
    TOOLS.iter().find(|row| wrote(row.reader.json_keys())).map(|row| row.tool)
}

/// A figure of a JSON object by its path, finite and not negative.
fn at(value: &Value, path: &[&str]) -> Option<f64> {
    let found = path.iter().try_fold(value, |value, key| value.get(key))?;
    found.as_f64().filter(|number| number.is_finite() && *number >= 0.0)
}

/// The same as a count.
fn count_at(value: &Value, path: &[&str]) -> Option<u64> {
    at(value, path).filter(|number| *number <= 1e15).map(|number| number.round() as u64)
}

/// `words` between two others in a text: `between("a 5 b", "a", "b")` is `5`.
fn between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(before)?;
    let (found, _) = rest.split_once(after)?;
    Some(found.trim())
}

/// Whether a text begins with one of these.
fn starts(text: &str, beginnings: &[&str]) -> bool {
    beginnings.iter().any(|beginning| text.starts_with(beginning))
}

/// `50%` and `50.000%` and hey's `50%%`.
fn percent(word: &str) -> Option<f64> {
    let digits = word.strip_suffix('%')?.trim_end_matches('%');
    crate::number::figure(digits, crate::number::Lone::Decimal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tool_has_its_row() {
        for (place, row) in TOOLS.iter().enumerate() {
            assert_eq!(row.tool as usize, place, "{}", row.name);
            assert_eq!(serde_json::to_value(row.tool).unwrap(), row.name);
        }
    }
}
