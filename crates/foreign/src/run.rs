//! The form that every tool's output is brought into. It must not hold a judgement: what a figure means is for findings.

use serde::Serialize;

use crate::tools::{Divides, Pace, RateOf, Tool};

/// A tool that sent less than this share of its rate fell behind.
pub(crate) const KEPT_UP: f64 = 0.99;

/// Lines of a file, counted from 1, both ends within.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
pub struct Lines {
    /// The first.
    pub first: u64,
    /// The last.
    pub last: u64,
}

/// What was asked of the tool, as far as its output or the command above it says.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Load {
    /// Connections, clients or virtual users.
    pub connections: Option<u64>,
    /// Threads or worker processes of the tool.
    pub threads: Option<u64>,
    /// Seconds.
    pub duration_s: Option<f64>,
    /// Requests, where their number was fixed beforehand.
    pub requests: Option<u64>,
    /// Requests per second, where a rate was fixed beforehand (open loop).
    pub rate_per_s: Option<f64>,
    /// Whether connections were to be kept.
    pub keep_alive: Option<bool>,
    /// Requests under way on a connection at a time.
    pub pipelining: Option<u64>,
    /// The request's Accept-Encoding, where a header flag gave one.
    pub accept_encoding: Option<String>,
}

/// What went wrong, by kind. `None` is what the output does not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Failures {
    /// Requests that took longer than the tool's limit.
    pub timeouts: Option<u64>,
    /// Connections that were not made.
    pub connect: Option<u64>,
    /// Reads that failed, resets included.
    pub read: Option<u64>,
    /// Writes that failed.
    pub write: Option<u64>,
    /// Responses with a status that the tool does not take as good.
    pub status: Option<u64>,
    /// Responses whose length differed from the first one's (ab).
    pub length: Option<u64>,
    /// Failures that the tool does not tell apart.
    pub other: Option<u64>,
}

impl Failures {
    /// Failures of connections: none of them is a response.
    pub fn socket(&self) -> u64 {
        // Each field is named, so that none is forgotten.
        let Failures { connect, read, write, other, timeouts: _, status: _, length: _ } = self;
        [connect, read, write, other].into_iter().flatten().fold(0, |sum, more| sum.saturating_add(*more))
    }

    /// Requests that got no response.
    pub fn unanswered(&self) -> u64 {
        self.socket().saturating_add(self.timeouts.unwrap_or(0))
    }

    /// All but differing lengths, which are no failures.
    pub fn total(&self) -> u64 {
        self.unanswered().saturating_add(self.status.unwrap_or(0))
    }
}

/// A quantile as printed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Quantile {
    /// 99 is p99.
    pub percent: f64,
    /// Microseconds.
    pub us: f64,
}

/// Latency as printed.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Latency {
    /// Microseconds.
    pub mean_us: Option<f64>,
    /// Standard deviation, microseconds.
    pub sd_us: Option<f64>,
    /// Microseconds.
    pub max_us: Option<f64>,
    /// Quantiles, in the order printed.
    pub quantiles: Vec<Quantile>,
    /// Whether the tool printed zeros or `nan` in place of figures.
    pub unmeasured: bool,
}

impl Latency {
    /// The quantile, where it was printed.
    pub fn quantile(&self, percent: f64) -> Option<f64> {
        self.quantiles.iter().find(|one| (one.percent - percent).abs() < 1e-9).map(|one| one.us)
    }
}

/// One run of a tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Run {
    /// What made it.
    pub tool: Tool,
    /// Whether it was read from JSON.
    pub json: bool,
    /// What it is called here. Runs with the same label are repeats.
    pub label: String,
    /// The same in parts, the outermost first: headings, and what was asked of it where these do not tell it apart.
    #[serde(skip)]
    pub path: Vec<String>,
    /// The headings it stands under, the outermost first.
    pub headings: Vec<String>,
    /// The line of few words before it that is no heading, and the loads that it says it is made of: where these differ, runs are no
    /// repeats.
    #[serde(skip)]
    pub near: String,
    /// Of the turns of a loop that does something else in each, which one it is, from 1.
    #[serde(skip)]
    pub turn: Option<u32>,
    /// The file it stands in.
    pub file: String,
    /// Where in the file.
    pub lines: Lines,
    /// The command line above it, where one was seen.
    pub command: Option<String>,
    /// What was loaded.
    pub url: Option<String>,
    /// What was asked for.
    pub load: Load,
    /// Seconds it took.
    pub duration_s: Option<f64>,
    /// Requests as the tool counts them.
    pub requests: Option<u64>,
    /// Requests per second as the tool printed it.
    pub requests_per_s: Option<f64>,
    /// Requests that a fixed rate asked for and the tool did not send.
    pub unsent: Option<u64>,
    /// Whether counts were printed rounded, as in `24k requests`.
    pub rounded: bool,
    /// Bytes received.
    pub bytes: Option<f64>,
    /// What went wrong.
    pub failures: Failures,
    /// Requests on connections that were kept (ab).
    pub keep_alive_requests: Option<u64>,
    /// Latency.
    pub latency: Latency,
    /// Why the tool gave up, in its own words.
    pub abort: Option<String>,
    /// Whether the output ends before it is whole.
    pub truncated: bool,
}

impl Run {
    /// A run of which nothing is known yet.
    pub(crate) fn new(tool: Tool) -> Self {
        Self { tool, ..Self::default() }
    }

    /// Connections that the tool really opened: wrk gives each thread as many as go without a rest.
    pub fn connections_opened(&self) -> Option<u64> {
        let asked = self.load.connections?;
        let divides = self.tool.row().divides == Divides::ConnectionsByThreads;
        let threads = self.load.threads.filter(|threads| divides && *threads > 0);
        Some(threads.map_or(asked, |threads| asked / threads * threads))
    }

    /// The path of the address.
    pub(crate) fn path(&self) -> Option<&str> {
        let (_, path) = parts(self.url.as_deref()?);
        Some(if path.is_empty() { "/" } else { path })
    }

    /// Bytes of a response, the header included where the tool counts it.
    pub fn bytes_per_response(&self) -> Option<f64> {
        let requests = self.responses().filter(|requests| *requests > 0 && !self.rounded)?;
        self.bytes.map(|bytes| bytes / requests as f64)
    }

    /// The requests without those that got no response, where the tool counts these too.
    pub(crate) fn responses(&self) -> Option<u64> {
        let failed = self.failures.unanswered();
        let counted = self.tool.row().rate_of == RateOf::Requests;
        self.requests.map(|requests| if counted { requests.saturating_sub(failed) } else { requests })
    }

    /// Seconds of the run, as measured or else as asked for.
    pub fn seconds(&self) -> Option<f64> {
        self.duration_s.or(self.load.duration_s)
    }

    /// Requests per second: as printed, else from requests and seconds.
    pub fn rate(&self) -> Option<f64> {
        let counted = || Some(self.requests? as f64 / self.duration_s.filter(|seconds| *seconds > 0.0)?);
        self.requests_per_s.or_else(counted).filter(|rate| *rate > 0.0)
    }

    /// Whether it was sent at a fixed rate, all of it.
    pub(crate) fn keeps_its_rate(&self) -> bool {
        let rate = self.load.rate_per_s.zip(self.rate());
        rate.is_some_and(|(asked, done)| done >= KEPT_UP * asked)
    }

    /// Whether each connection sent its next request once it had the response to the one before.
    pub fn is_closed_loop(&self) -> bool {
        self.load.rate_per_s.is_none() && self.tool.row().pace == Pace::Responses
    }

    /// Whether there is any figure in it.
    pub(crate) fn has_figures(&self) -> bool {
        self.requests.is_some() || self.requests_per_s.is_some() || self.latency.mean_us.is_some()
    }
}

/// Host with port, and path with query, of an address.
pub(crate) fn parts(url: &str) -> (&str, &str) {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split_at(rest.find('/').unwrap_or(rest.len()))
}
