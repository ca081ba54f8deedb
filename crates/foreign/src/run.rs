//! The common form of every tool's output. It contains no judgement: findings interpret the figures.

use serde::Serialize;

use crate::tool::Tool;

/// Lines of a file, counted from 1, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
pub struct LineRange {
    /// The first.
    pub first: u64,
    /// The last.
    pub last: u64,
}

/// The settings of the tool, as far as its output or the command above it shows them.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct ToolLoad {
    /// Connections, clients or virtual users.
    pub connections: Option<u64>,
    /// Threads or worker processes of the tool.
    pub threads: Option<u64>,
    /// Seconds.
    pub duration_s: Option<f64>,
    /// Number of requests, if it was fixed in advance.
    pub requests: Option<u64>,
    /// Requests per second, if a rate was fixed in advance (open loop).
    pub rate_per_s: Option<f64>,
    /// Whether connections were to be kept open.
    pub keep_alive: Option<bool>,
    /// Requests in flight per connection.
    pub pipelining: Option<u64>,
    /// The request's Accept-Encoding, if a header flag set it.
    pub accept_encoding: Option<String>,
    /// The limit for a response in seconds, if a flag set it.
    pub timeout_s: Option<f64>,
}

/// A line that a tool printed and that was not understood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnreadLine {
    /// Its number in the file.
    pub line: u64,
    /// The text, shortened.
    pub text: String,
}

/// Figures of a script that sends requests.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct ToolScript {
    /// Completed iterations.
    pub iterations: Option<u64>,
    /// Mean duration of an iteration, microseconds.
    pub iteration_us: Option<f64>,
    /// Iterations that the end of the run interrupted.
    pub interrupted: Option<u64>,
    /// The stages of the load, if it changed: `1,000 looping VUs for 11m30s over 9 stages`.
    pub stages: Option<String>,
}

/// Failures by kind. `None` if the output does not contain them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct ToolFailures {
    /// Requests that took longer than the tool's limit.
    pub timeouts: Option<u64>,
    /// Connections that failed to open.
    pub connect: Option<u64>,
    /// Reads that failed, including resets.
    pub read: Option<u64>,
    /// Writes that failed.
    pub write: Option<u64>,
    /// Responses with a status that the tool treats as an error.
    pub status: Option<u64>,
    /// Responses whose length differed from the first one's (ab).
    pub length: Option<u64>,
    /// Failures of unspecified kind.
    pub other: Option<u64>,
}

impl ToolFailures {
    /// Failures of connections, none of which is a response.
    pub fn socket(&self) -> u64 {
        // Every field is named, so that none is forgotten.
        let ToolFailures {
            connect,
            read,
            write,
            other,
            timeouts: _,
            status: _,
            length: _,
        } = self;
        [connect, read, write, other]
            .into_iter()
            .flatten()
            .fold(0, |sum, more| sum.saturating_add(*more))
    }

    /// Requests without a response.
    pub fn unanswered(&self) -> u64 {
        self.socket().saturating_add(self.timeouts.unwrap_or(0))
    }

    /// All failures except for differing lengths, which are none.
    pub fn total(&self) -> u64 {
        self.unanswered().saturating_add(self.status.unwrap_or(0))
    }
}

/// A quantile as printed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PrintedQuantile {
    /// 99 is p99.
    pub percent: f64,
    /// Microseconds.
    pub us: f64,
}

/// Latency as printed.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct PrintedLatency {
    /// Microseconds.
    pub mean_us: Option<f64>,
    /// Standard deviation, microseconds.
    pub sd_us: Option<f64>,
    /// Microseconds.
    pub max_us: Option<f64>,
    /// Quantiles, in the order printed.
    pub quantiles: Vec<PrintedQuantile>,
    /// Whether the tool printed zeros or `nan` instead of figures.
    pub unmeasured: bool,
    /// Whether the mean is connections divided by throughput, as in ab's `Time per request`.
    pub mean_computed: bool,
}

impl PrintedLatency {
    /// The quantile, if it was printed.
    pub fn quantile(&self, percent: f64) -> Option<f64> {
        self.quantiles
            .iter()
            .find(|one| (one.percent - percent).abs() < 1e-9)
            .map(|one| one.us)
    }
}

/// One run of a tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ToolRun {
    /// The tool.
    pub tool: Tool,
    /// Whether it was read from JSON.
    pub json: bool,
    /// Its name here. Runs with the same label are repeats.
    pub label: String,
    /// The label in parts, outermost first: headings, and settings if headings do not distinguish it.
    #[serde(skip)]
    pub path: Vec<String>,
    /// The headings above it, outermost first.
    pub headings: Vec<String>,
    /// The last short line before it that is not a heading, and the loads that make it up. Runs that differ
    /// in these are no repeats.
    #[serde(skip)]
    pub near: String,
    /// User and host of the prompt at which the tool was started.
    #[serde(skip)]
    pub prompt: Option<String>,
    /// The turn of a loop with different work in each turn, from 1.
    #[serde(skip)]
    pub turn: Option<u32>,
    /// The file that contains it.
    pub file: String,
    /// Its position in the file.
    pub lines: LineRange,
    /// The command line above it, if there is one.
    pub command: Option<String>,
    /// The loaded URL.
    pub url: Option<String>,
    /// The requested load.
    pub load: ToolLoad,
    /// Duration in seconds.
    pub duration_s: Option<f64>,
    /// Number of requests as counted by the tool.
    pub requests: Option<u64>,
    /// Requests per second as printed by the tool.
    pub requests_per_s: Option<f64>,
    /// Requests due at a fixed rate that the tool did not send.
    pub unsent: Option<u64>,
    /// Whether counts were rounded, as in `24k requests`.
    pub rounded: bool,
    /// Requests that were sent, if the tool counts these apart from the responses.
    pub sent: Option<u64>,
    /// Bytes received.
    pub bytes: Option<f64>,
    /// Failures.
    pub failures: ToolFailures,
    /// Requests on kept-alive connections (ab).
    pub keep_alive_requests: Option<u64>,
    /// The share of successes as printed.
    pub success_share: Option<f64>,
    /// Latency.
    pub latency: PrintedLatency,
    /// Figures of the script.
    pub script: Option<ToolScript>,
    /// The tool's own warnings about its figures.
    pub warnings: Vec<String>,
    /// Lines of the tool that were not understood.
    pub unread: Vec<UnreadLine>,
    /// The tool's own message about aborting.
    pub abort: Option<String>,
    /// Whether the output is truncated.
    pub truncated: bool,
}

impl ToolRun {
    /// An empty run.
    pub(crate) fn new(tool: Tool) -> Self {
        Self {
            tool,
            ..Self::default()
        }
    }

    /// The path of the URL.
    pub(crate) fn path(&self) -> Option<&str> {
        let (_, path) = parts(self.url.as_deref()?);
        Some(if path.is_empty() { "/" } else { path })
    }

    /// Whether it has any figures.
    pub(crate) fn has_figures(&self) -> bool {
        self.requests.is_some() || self.requests_per_s.is_some() || self.latency.mean_us.is_some()
    }
}

/// Host with port, and path with query, of a URL.
pub(crate) fn parts(url: &str) -> (&str, &str) {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split_at(rest.find('/').unwrap_or(rest.len()))
}
