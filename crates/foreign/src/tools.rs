//! The load generators whose output is read, and whose command lines are understood: one table, and a file for each of them.
//!
//! A new one is a variant of [`Tool`], a row of the table and a file. Which lines are whose, how a tool counts and what it sends is
//! told in its file, and only there; what the figures are worth is not.

mod ab;
mod autocannon;
mod h2load;
mod hey;
mod k6;
mod vegeta;
mod wrk;

use serde::Serialize;
use serde_json::Value;

use crate::compatibility::{Refusal, Translation};
use crate::draft::{Draft, Taken, keep};
use crate::number::{self, Lone};
use crate::run::Run;

/// A load generator whose output is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tool {
    /// wrk 3 and 4
    #[default]
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

/// All of them, in the order of [`Tool`] and of the pages that list them.
static TOOLS: [&Row; 9] = [
    &wrk::WRK,
    &wrk::WRK2,
    &ab::AB,
    &hey::OHA,
    &autocannon::AUTOCANNON,
    &hey::HEY,
    &h2load::H2LOAD,
    &k6::K6,
    &vegeta::VEGETA,
];

/// How the output of other tools begins, which is not read.
const UNREAD: [(&str, &str); 5] = [
    ("bombardier", "Bombarding "),
    ("siege", "** SIEGE "),
    ("Locust", "Type     Name "),
    ("JMeter", "summary ="),
    ("Gatling", "---- Global Information"),
];

/// Whether a program is such a tool.
pub(crate) fn is_unread(program: &str) -> bool {
    UNREAD.iter().any(|(name, _)| name.eq_ignore_ascii_case(program))
}

/// The tool that prints this line, where its output is not read.
pub(crate) fn unread(text: &str) -> Option<&'static str> {
    UNREAD.into_iter().find(|(_, first)| text.starts_with(first)).map(|(name, _)| name)
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
    /// Requests over the time, whatever became of them.
    Requests,
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

/// A tool: what it prints and takes, how it counts and what it sends, checked on the wire or in its source; docs/audit.md has the
/// versions. All of it is pure: text goes in, values come out.
pub(crate) struct Row {
    pub tool: Tool,
    /// What it is called on the command line.
    pub name: &'static str,
    /// Whether a line may begin its output.
    pub begins: Begins,
    /// Puts a line into the run under way.
    pub take: Take,
    /// Another tool that prints the same, so that only a command line tells the two apart.
    pub prints_as: Option<Tool>,
    /// Whether the line is all that it prints where it cannot even connect. The flag: its command line stands above.
    pub fails_alone: fn(&str, bool) -> bool,
    /// The run that a JSON value is, if the tool wrote it; and the keys, with their quotes, that together tell its JSON from that of others.
    pub json: Option<(FromJson, &'static [&'static str])>,
    /// What its command line, without its name, means as one of `proofload load`, and one that is understood, for a hint.
    pub translate: Option<(Translate, &'static str)>,
    /// The flags that matter, the short ones by their letter.
    pub flags: &'static [(&'static [&'static str], Meaning)],
    /// Whether long names stand behind one dash, as Go's flags do.
    pub long_behind_one_dash: bool,
    /// Connections that it opens unless told how many; of tools that take a rate for each.
    pub connections: u64,
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

type Begins = fn(&str) -> Option<Beginning>;
type Take = fn(&str, &mut Draft) -> Taken;
type FromJson = fn(&Value) -> Option<Run>;
type Translate = fn(&[String]) -> Result<Translation, Refusal>;

/// A tool of which holds what holds for most.
const fn usual(tool: Tool, name: &'static str, begins: Begins, take: Take) -> Row {
    Row {
        tool,
        name,
        begins,
        take,
        prints_as: None,
        fails_alone: |_, _| false,
        json: None,
        translate: None,
        flags: &[],
        long_behind_one_dash: false,
        connections: 1,
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
    }
}

impl Tool {
    /// All of them, in the order in which pages list them.
    pub fn all() -> impl Iterator<Item = Tool> {
        TOOLS.iter().map(|row| row.tool)
    }

    /// Those whose command lines are understood.
    pub fn compatible() -> impl Iterator<Item = Tool> {
        TOOLS.iter().filter(|row| row.translate.is_some()).map(|row| row.tool)
    }

    /// What it is called on the command line.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// A command line of it, without its name, that is understood; `None` where none is.
    pub fn example(self) -> Option<&'static str> {
        self.row().translate.map(|(_, example)| example)
    }

    /// What its command line, without its name, means as one of `proofload load`.
    ///
    /// # Errors
    /// What of it cannot be done or is none of that tool's, with what to do instead.
    pub fn translate(self, arguments: &[String]) -> Result<Translation, Refusal> {
        match self.row().translate {
            Some((translate, _)) => translate(arguments),
            None => Err(Refusal::new(self, "its command lines are not known here")),
        }
    }

    pub(crate) fn prints_as(self, other: Tool) -> bool {
        let printer = |tool: Tool| tool.row().prints_as.unwrap_or(tool);
        printer(self) == printer(other)
    }

    pub(crate) fn row(self) -> &'static Row {
        TOOLS[self as usize]
    }
}

/// Whether this line can only be the first of a run.
pub(crate) fn is_first(text: &str) -> bool {
    TOOLS.iter().filter_map(|row| (row.begins)(text)).any(|beginning| beginning.first)
}

/// The tool whose output begins with this line, as far as can be told, and whether it can be no other's.
pub(crate) fn begins(text: &str) -> Option<(Tool, bool)> {
    let found = || TOOLS.iter().filter_map(|row| Some((row.tool, (row.begins)(text)?.certain)));
    found().find(|(_, certain)| *certain).or_else(|| found().next())
}

/// The tool that printed this line and nothing else, because it could not connect. `commanded` is the one whose command line
/// stands above.
pub(crate) fn fails_alone(text: &str, commanded: Option<Tool>) -> Option<Tool> {
    let named = |tool: Tool| commanded.is_some_and(|commanded| commanded.prints_as(tool));
    TOOLS.iter().find(|row| (row.fails_alone)(text, named(row.tool))).map(|row| row.tool)
}

/// Whether a line may be this tool's.
pub(crate) fn prints(tool: Tool, text: &str) -> bool {
    take(text, &mut Draft::new(tool)) == Taken::Ours
}

pub(crate) fn take(text: &str, draft: &mut Draft) -> Taken {
    (draft.run.tool.row().take)(text, draft)
}

pub(crate) fn from_json(value: &Value) -> Option<Run> {
    let mut run = TOOLS.iter().find_map(|row| (row.json?.0)(value))?;
    run.json = true;
    Some(run)
}

/// The tool that JSON which ends too early comes from, by its keys.
pub(crate) fn json_tool(text: &str) -> Option<Tool> {
    let wrote = |row: &&&Row| row.json.is_some_and(|(_, keys)| keys.iter().all(|key| text.contains(key)));
    TOOLS.iter().find(wrote).map(|row| row.tool)
}

/// The counts of an object in a JSON value, by their names.
fn counts_at<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = (&'v str, u64)> {
    let counts = value.get(key).and_then(Value::as_object).into_iter().flatten();
    counts.map(|(name, count)| (name.as_str(), count_at(count, &[]).unwrap_or(0)))
}

/// The run of a JSON value, once its quantiles are read: those of `times` whose keys name them, each in so many microseconds.
fn ended<'k>(
    mut draft: Draft,
    times: &'k Value,
    us: f64,
    percent: impl Fn(&'k str) -> Option<&'k str>,
) -> Option<Run> {
    for (key, time) in times.as_object().into_iter().flatten() {
        let digits = percent(key).map(|digits| digits.replace('_', "."));
        draft.quantile(number::decimal(&digits.unwrap_or_default()), at(time, &[]).map(|time| time * us));
    }
    draft.run.latency.quantiles.sort_by(|one, other| one.percent.total_cmp(&other.percent));
    draft.whole = true;
    draft.finish()
}

/// `1234 requests in 10.01s, 5.00MB read` of wrk; autocannon puts a blank before the unit, and wrk none.
fn is_total(text: &str, blank: bool) -> bool {
    let size = text.strip_suffix(" read").and_then(|rest| rest.rsplit_once(", ")).map(|(_, size)| size);
    text.starts_with(|c: char| c.is_ascii_digit())
        && text.contains(" requests in ")
        && size.is_some_and(|size| size.contains(' ') == blank)
}

/// Takes what such a line says beside the number of requests.
fn take_total(text: &str, draft: &mut Draft, lone: Lone, kilo: f64) {
    let us = between(text, " requests in ", ", ").and_then(|time| number::micros(time, lone));
    keep(&mut draft.run.duration_s, us.map(|us| us / 1e6));
    let size = text.rsplit_once(", ").and_then(|(_, size)| size.strip_suffix(" read"));
    draft.run.bytes = size.and_then(|size| number::bytes(size, kilo));
}

/// `Running 10s test @ http://…`, of wrk and autocannon alike: how long, or how many requests, and the address.
fn is_start(text: &str, draft: &mut Draft) -> bool {
    let Some(rest) = text.strip_prefix("Running ") else { return false };
    let Some((what, url)) = rest.split_once(" test @ ").or_else(|| rest.split_once(" warmup @ ")) else {
        return false;
    };
    draft.run.load.duration_s = number::seconds(what);
    draft.run.load.requests = what.strip_suffix(" requests").and_then(number::whole);
    draft.run.url = url.split_whitespace().next().map(str::to_owned);
    true
}

/// Counts that stand with their names between others, such as `read 3, write 4` or `3 read, 4 write`.
fn named_counts(text: &str, count_first: bool) -> impl Iterator<Item = (&str, Option<u64>)> {
    text.split([',', ':']).filter_map(move |part| {
        let (one, other) = part.trim().split_once(' ')?;
        let (name, count) = if count_first { (other, one) } else { (one, other) };
        Some((name, number::whole(count.trim())))
    })
}

/// A figure of a JSON object by its path, finite and not negative.
fn at(value: &Value, path: &[&str]) -> Option<f64> {
    let found = path.iter().try_fold(value, |value, key| value.get(key))?;
    found.as_f64().filter(|number| number.is_finite() && *number >= 0.0)
}

/// The same as a count.
fn count_at(value: &Value, path: &[&str]) -> Option<u64> {
    whole(at(value, path)?)
}

/// A figure as a count, which is none beyond what any tool counts.
fn whole(number: f64) -> Option<u64> {
    (number <= 1e15).then_some(number.round() as u64)
}

/// `words` between two others in a text: `between("a 5 b", "a", "b")` is `5`.
fn between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(before)?;
    let (found, _) = rest.split_once(after)?;
    Some(found.trim())
}

/// Whether a text begins with one of these, which strokes set apart.
fn starts(text: &str, beginnings: &str) -> bool {
    beginnings.split('|').any(|beginning| text.starts_with(beginning))
}

/// `50%` and `50.000%` and hey's `50%%`.
fn percent(word: &str) -> Option<f64> {
    let digits = word.strip_suffix('%')?.trim_end_matches('%');
    number::decimal(digits)
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
