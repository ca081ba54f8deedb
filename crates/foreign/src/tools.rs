//! The load generators with supported output and command lines: one table, and a file for each.
//!
//! A new tool is a variant of [`Tool`], a row of the table and a file. Its lines, its counting and its
//! requests are described only in its file. The quality of its figures is judged elsewhere.

mod ab;
mod autocannon;
mod bombardier;
mod h2load;
mod hey;
mod k6;
mod rewrk;
mod siege;
mod vegeta;
mod wrk;

use serde_json::Value;

use crate::compatibility::{ToolRefusal, Translation};
use crate::draft::{LineTaken, RunDraft, keep};
use crate::number::{self, Lone};
use crate::run::ToolRun;
use crate::tool::Tool;

/// All tools, in the order of [`Tool`] and of the pages that list them.
static TOOLS: [&ToolRow; 12] = [
    &wrk::WRK,
    &wrk::WRK2,
    &ab::AB,
    &hey::OHA,
    &autocannon::AUTOCANNON,
    &hey::HEY,
    &h2load::H2LOAD,
    &k6::K6,
    &vegeta::VEGETA,
    &bombardier::BOMBARDIER,
    &siege::SIEGE,
    &rewrk::REWRK,
];

/// Unsupported tools, and the first lines of those that have a line of their own.
const UNREAD: [(&str, Option<&str>); 20] = [
    ("Locust", Some("Type     Name ")),
    ("JMeter", Some("summary =")),
    ("Gatling", Some("---- Global Information")),
    ("artillery", Some("All VUs finished. Total time:")),
    ("plow", Some("Benchmarking http")),
    ("go-stress-testing", Some("耗时│ 并发数│ 成功数")),
    ("ghz", None),
    ("drill", None),
    ("gcannon", None),
    ("zrk", None),
    ("go-wrk", None),
    ("tsung", None),
    ("hyperfoil", None),
    ("fortio", Some("Fortio ")),
    ("boom", Some("Successful calls")),
    ("welle", Some("Total Completed Requests:")),
    ("ddosify", None),
    ("cassowary", None),
    ("loadtest", None),
    ("httperf", None),
];

/// Whether a program is an unsupported tool: a known one, or one that calls itself a benchmark. Scripts are
/// none, because these start other tools.
pub(crate) fn is_unread(program: &str) -> bool {
    let listed = UNREAD
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case(program));
    let plain = program
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    listed || plain && program.contains("-bench")
}

/// The unsupported tool that prints this line.
pub(crate) fn unread(text: &str) -> Option<&str> {
    let listed = UNREAD
        .into_iter()
        .find(|(name, first)| {
            // `summary = {` is also code, and others begin with a name.
            let sure = match *name {
                "JMeter" => text.contains(" Avg:"),
                "fortio" => text.contains(" running at "),
                _ => true,
            };
            first.is_some_and(|first| text.starts_with(first)) && sure
        })
        .map(|(name, _)| name);
    // `This is ws-benchmark, Version 1.0`, in the manner of ab.
    let named = || {
        let name = between(text, "This is ", ", Version ")?;
        (!name.contains(' ') && name != "ApacheBench").then_some(name)
    };
    // `[Mon Feb 27 2023 14:50:26 GMT+0000] INFO Completed requests: 5000`
    let logged = || {
        let (_, rest) = text.split_once("] INFO ")?;
        rest.starts_with("Completed requests:")
            .then_some("loadtest")
    };
    listed.or_else(named).or_else(logged)
}

/// The tool that wrote a JSON value that is not supported.
pub(crate) fn unread_json(value: &Value) -> Option<&'static str> {
    let spec = value.get("spec")?.get("numberOfConnections")?;
    (spec.is_u64() && value.get("result").is_some()).then_some("bombardier (JSON)")
}

/// Information from the first line of a tool's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Beginning {
    /// Whether it is unique to the tool.
    pub certain: bool,
    /// Whether it can only be the first line of a run.
    pub first: bool,
}

impl Beginning {
    /// The first line, unique to this tool.
    pub const FIRST: Option<Beginning> = Some(Beginning {
        certain: true,
        first: true,
    });
    /// The first line of several tools.
    pub const FIRST_OF_SEVERAL: Option<Beginning> = Some(Beginning {
        certain: false,
        first: true,
    });
    /// A line of this tool whose first ones may be missing.
    pub const LATER: Option<Beginning> = Some(Beginning {
        certain: false,
        first: false,
    });
}

/// The meaning of a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    Connections,
    Threads,
    Duration,
    Requests,
    Rate,
    /// A rate per connection.
    RateEach,
    Pipelining,
    Header,
    Keep,
    Close,
    NoCompression,
    Timeout,
}

/// The handling of requests whose response exceeds the tool's limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LateResponses {
    /// Given up, and in no latency.
    Lost,
    /// Counted as a timeout and as a request, and in no latency (wrk).
    Counted,
    /// Recorded. Timeouts are checks that found a connection waiting (wrk2).
    Checked,
    /// Given up, and in the latencies with the time of the limit.
    AtLimit,
}

/// The definition of a tool's requests per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RateOf {
    /// Requests per time, regardless of their result.
    Requests,
    /// Responses of any status per time.
    Responses,
    /// Successes per time.
    Successes,
    /// The mean of samples, one per second.
    Samples,
}

/// The trigger for sending a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolPace {
    /// The previous response, or a rate if a flag sets one.
    Responses,
    /// Always a rate. The output contains the achieved rate.
    Rate,
    /// A script, which may send more than one request.
    Script,
}

/// A divisibility requirement for the tool to do all that was requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Divides {
    Nothing,
    ConnectionsByThreads,
    RequestsByConnections,
}

/// A tool: its output and command lines, its counting and its requests, verified on the wire or in its
/// source. docs/audit.md has the versions. All functions are pure.
pub(crate) struct ToolRow {
    pub tool: Tool,
    /// Its name on the command line.
    pub name: &'static str,
    /// Whether a line may begin its output.
    pub begins: Begins,
    /// Adds a line to the current run.
    pub take: TakeLine,
    /// Another tool with the same output, so that only a command line distinguishes them.
    pub prints_as: Option<Tool>,
    /// Whether the line is its whole output if it cannot connect. The flag says that its command line stands
    /// above.
    pub fails_alone: fn(&str, bool) -> bool,
    /// Converts a JSON value into a run, if the tool wrote it. The keys, with their quotes, together identify
    /// its JSON.
    pub json: Option<(FromJson, &'static [&'static str])>,
    /// Translates its command line, without its name, into one of `proofload load`. With a valid example, for
    /// a hint.
    pub translate: Option<(Translate, &'static str)>,
    /// The relevant flags, short ones by their letter.
    pub flags: &'static [(&'static [&'static str], Meaning)],
    /// Whether long names have one dash, as Go's flags do.
    pub long_behind_one_dash: bool,
    /// Default number of connections, for tools with a rate per connection.
    pub connections: u64,
    /// Words after its name that start a load.
    pub verbs: &'static [&'static str],
    /// Whether it is usually the end of a pipe, all of which is then its command line.
    pub reads_pipe: bool,
    /// Whether it sends Accept-Encoding by default.
    pub sends_accept_encoding: bool,
    /// Whether it counts bytes of decoded content.
    pub counts_unpacked_bytes: bool,
    /// Whether its text has sizes with two digits, too coarse for the length of a response.
    pub rounds_bytes: bool,
    /// Whether its requests include those without a response.
    pub failures_within: bool,
    pub late: LateResponses,
    /// Its limit for a response without a flag, in seconds.
    pub limit_s: Option<f64>,
    pub rate_of: RateOf,
    pub pace: ToolPace,
    pub divides: Divides,
    /// Whether it uses HTTP/1.0, and closes connections by default.
    pub http_1_0: bool,
    /// Whether it prints lines that look like headings while it runs.
    pub prints_headings: bool,
}

type Begins = fn(&str) -> Option<Beginning>;
type TakeLine = fn(&str, &mut RunDraft) -> LineTaken;
type FromJson = fn(&Value) -> Option<ToolRun>;
type Translate = fn(&[String]) -> Result<Translation, ToolRefusal>;

/// A row with the most common values.
const fn usual(tool: Tool, name: &'static str, begins: Begins, take: TakeLine) -> ToolRow {
    ToolRow {
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
        rounds_bytes: false,
        failures_within: false,
        late: LateResponses::Lost,
        limit_s: None,
        rate_of: RateOf::Responses,
        pace: ToolPace::Responses,
        divides: Divides::Nothing,
        http_1_0: false,
        prints_headings: false,
    }
}

impl Tool {
    /// All tools, in the order in which pages list them.
    pub fn all() -> impl Iterator<Item = Tool> {
        TOOLS.iter().map(|row| row.tool)
    }

    /// The tools with supported command lines.
    pub fn compatible() -> impl Iterator<Item = Tool> {
        TOOLS
            .iter()
            .filter(|row| row.translate.is_some())
            .map(|row| row.tool)
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// A valid command line without its name. `None` if they are not supported.
    pub fn example(self) -> Option<&'static str> {
        self.row().translate.map(|(_, example)| example)
    }

    /// Translates its command line, without its name, into one of `proofload load`.
    ///
    /// # Errors
    /// Returns an error with a hint for unsupported or invalid options.
    pub fn translate(self, arguments: &[String]) -> Result<Translation, ToolRefusal> {
        match self.row().translate {
            Some((translate, _)) => translate(arguments),
            None => Err(ToolRefusal::new(
                self,
                "its command lines are not known here",
            )),
        }
    }

    pub(crate) fn prints_as(self, other: Tool) -> bool {
        let printer = |tool: Tool| tool.row().prints_as.unwrap_or(tool);
        printer(self) == printer(other)
    }

    pub(crate) fn row(self) -> &'static ToolRow {
        TOOLS[self as usize]
    }
}

/// Whether this line can only be the first of a run.
pub(crate) fn is_first(text: &str) -> bool {
    TOOLS
        .iter()
        .filter_map(|row| (row.begins)(text))
        .any(|beginning| beginning.first)
}

/// Whether this line begins the output of one tool.
pub(crate) fn is_certain(text: &str) -> bool {
    begins(text).is_some_and(|(_, certain)| certain)
}

/// The tool whose output probably begins with this line, and whether the line is unique to it.
pub(crate) fn begins(text: &str) -> Option<(Tool, bool)> {
    let found = || {
        TOOLS
            .iter()
            .filter_map(|row| Some((row.tool, (row.begins)(text)?.certain)))
    };
    found()
        .find(|(_, certain)| *certain)
        .or_else(|| found().next())
}

/// The tool that printed only this line, because it could not connect. `commanded` is the tool of the command
/// line above.
pub(crate) fn fails_alone(text: &str, commanded: Option<Tool>) -> Option<Tool> {
    let named = |tool: Tool| commanded.is_some_and(|commanded| commanded.prints_as(tool));
    TOOLS
        .iter()
        .find(|row| (row.fails_alone)(text, named(row.tool)))
        .map(|row| row.tool)
}

/// Whether a line may be this tool's.
pub(crate) fn prints(tool: Tool, text: &str) -> bool {
    take(text, &mut RunDraft::new(tool)) == LineTaken::Ours
}

pub(crate) fn take(text: &str, draft: &mut RunDraft) -> LineTaken {
    (draft.run.tool.row().take)(text, draft)
}

pub(crate) fn from_json(value: &Value) -> Option<ToolRun> {
    let mut run = TOOLS.iter().find_map(|row| (row.json?.0)(value))?;
    run.json = true;
    Some(run)
}

/// The tool that wrote truncated JSON, identified by its keys.
pub(crate) fn json_tool(text: &str) -> Option<Tool> {
    let wrote = |row: &&&ToolRow| {
        row.json
            .is_some_and(|(_, keys)| keys.iter().all(|key| text.contains(key)))
    };
    TOOLS.iter().find(wrote).map(|row| row.tool)
}

/// The counts of an object in a JSON value, by name.
fn counts_at<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = (&'v str, u64)> {
    let counts = value
        .get(key)
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    counts.map(|(name, count)| (name.as_str(), count_at(count, &[]).unwrap_or(0)))
}

/// Completes the run of a JSON value. Adds the quantiles of `times` whose keys name them, with `us`
/// microseconds per unit.
fn ended<'k>(
    mut draft: RunDraft,
    times: &'k Value,
    us: f64,
    percent: impl Fn(&'k str) -> Option<&'k str>,
) -> Option<ToolRun> {
    for (key, time) in times.as_object().into_iter().flatten() {
        let digits = percent(key).map(|digits| digits.replace('_', "."));
        draft.quantile(
            number::decimal(&digits.unwrap_or_default()),
            at(time, &[]).map(|time| time * us),
        );
    }
    draft
        .run
        .latency
        .quantiles
        .sort_by(|one, other| one.percent.total_cmp(&other.percent));
    draft.whole = true;
    draft.finish()
}

/// The three values of `1234 requests in 10.01s, 5.00MB read`. Remarks may follow.
fn total_parts(text: &str) -> Option<(&str, &str, &str)> {
    let (count, rest) = text.split_once(" requests in ")?;
    let (time, rest) = rest.split_once(", ")?;
    let (size, after) = rest.split_once(" read")?;
    let counts = count.starts_with(|c: char| c.is_ascii_digit()) && !count.contains(' ');
    let ends = !after.starts_with(char::is_alphanumeric);
    (counts && ends).then_some((count, time, size))
}

/// Whether a line is such a total. autocannon puts a blank before the unit, wrk does not.
fn is_total(text: &str, blank: bool) -> bool {
    total_parts(text).is_some_and(|(_, _, size)| size.contains(' ') == blank)
}

/// Reads the values of such a line except the number of requests.
fn take_total(text: &str, draft: &mut RunDraft, lone: Lone, kilo: f64) {
    let Some((_, time, size)) = total_parts(text) else {
        return;
    };
    let us = number::micros(time, lone);
    keep(&mut draft.run.duration_s, us.map(|us| us / 1e6));
    draft.run.bytes = number::bytes(size, kilo);
    if us.is_none() || draft.run.bytes.is_none() {
        draft.not_understood();
    }
}

/// `Running 10s test @ http://…`, of wrk and autocannon: the duration or number of requests, and the address.
fn is_start(text: &str, draft: &mut RunDraft) -> bool {
    let Some(rest) = text.strip_prefix("Running ") else {
        return false;
    };
    let Some((what, url)) = rest
        .split_once(" test @ ")
        .or_else(|| rest.split_once(" warmup @ "))
    else {
        return false;
    };
    draft.run.load.duration_s = number::seconds(what);
    draft.run.load.requests = what.strip_suffix(" requests").and_then(number::whole);
    let address = url.split_whitespace().next();
    draft.run.url = address.map(|url| url.trim_matches(['<', '>']).to_owned());
    // autocannon's title: `Running 10s test @ http://localhost:3000 (after)`.
    if let Some(title) = between(url, " (", ")") {
        title.clone_into(&mut draft.run.near);
    }
    true
}

/// Counts with their names, such as `read 3, write 4` or `3 read, 4 write`.
fn named_counts(text: &str, count_first: bool) -> impl Iterator<Item = (&str, Option<u64>)> {
    text.split([',', ':']).filter_map(move |part| {
        let (one, other) = part.trim().split_once(' ')?;
        let (name, count) = if count_first {
            (other.split_whitespace().next()?, one)
        } else {
            (one, other)
        };
        // Remarks may follow a count.
        Some((name, number::whole(count.split_whitespace().next()?)))
    })
}

/// A figure of a JSON object by its path, finite and not negative.
fn at(value: &Value, path: &[&str]) -> Option<f64> {
    let found = path.iter().try_fold(value, |value, key| value.get(key))?;
    found
        .as_f64()
        .filter(|number| number.is_finite() && *number >= 0.0)
}

/// The same as a count.
fn count_at(value: &Value, path: &[&str]) -> Option<u64> {
    whole(at(value, path)?)
}

/// A figure as a count. None if it exceeds any plausible count.
fn whole(number: f64) -> Option<u64> {
    (number <= 1e15).then_some(number.round() as u64)
}

/// The text between two others: `between("a 5 b", "a", "b")` is `5`.
fn between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(before)?;
    let (found, _) = rest.split_once(after)?;
    Some(found.trim())
}

/// Whether a text begins with one of these, which are separated by `|`.
fn starts(text: &str, beginnings: &str) -> bool {
    beginnings
        .split('|')
        .any(|beginning| text.starts_with(beginning))
}

/// `50%` and `50.000%` and hey's `50%%`. Edited output may add a colon.
fn percent(word: &str) -> Option<f64> {
    let digits = word
        .trim_end_matches(':')
        .strip_suffix('%')?
        .trim_end_matches('%');
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
