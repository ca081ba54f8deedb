//! Figures of a run as its tool counts them: attempts, responses, rates, and connections really opened.

use crate::run::ToolRun;
use crate::tools::{Divides, LateResponses, ToolPace};

/// A tool that sent less than this share of its rate fell behind.
pub(crate) const KEPT_UP: f64 = 0.99;
/// A latency may exceed the tool's limit by this factor.
const LIMIT_MARGIN: f64 = 1.02;
/// The last response may take up to this share of a run at a fixed rate.
const LAST_RESPONSE_MAX: f64 = 0.1;

impl ToolRun {
    /// Number of connections that the tool really opened: wrk gives each thread an equal number, without the
    /// remainder.
    pub fn connections_opened(&self) -> Option<u64> {
        let asked = self.load.connections?;
        let divides = self.tool.row().divides == Divides::ConnectionsByThreads;
        let threads = self.load.threads.filter(|threads| divides && *threads > 0);
        Some(threads.map_or(asked, |threads| asked / threads * threads))
    }

    /// Bytes per response, including the header if the tool counts it.
    pub fn bytes_per_response(&self) -> Option<f64> {
        let coarse = self.tool.row().rounds_bytes && !self.json;
        let requests = self
            .responses()
            .filter(|requests| *requests > 0 && !self.rounded && !coarse)?;
        self.bytes.map(|bytes| bytes / requests as f64)
    }

    /// All requests, with and without a response.
    pub(crate) fn attempts(&self) -> Option<u64> {
        let row = self.tool.row();
        let unanswered = self.failures.unanswered();
        let beside = match (row.failures_within, row.late) {
            (true, _) => return Some(self.requests?.max(self.failures.total())),
            (false, LateResponses::Counted | LateResponses::Checked) => self.failures.socket(),
            (false, LateResponses::Lost | LateResponses::AtLimit) => unanswered,
        };
        Some(self.requests?.saturating_add(beside))
    }

    /// The requests without those that got no response, if the tool counts these too.
    pub(crate) fn responses(&self) -> Option<u64> {
        let failed = self.failures.unanswered();
        let within = self.tool.row().failures_within;
        self.requests
            .map(|requests| requests.saturating_sub(if within { failed } else { 0 }))
    }

    /// The tool's limit for a response in seconds. `None` if a latency beyond the usual limit shows that a flag
    /// set another, except that the longest one is the limit where that is recorded.
    pub(crate) fn limit_s(&self) -> Option<f64> {
        let usual = self.tool.row().limit_s;
        let max_s = self.latency.max_us.map(|us| us / 1e6);
        let beyond = max_s
            .zip(usual)
            .is_some_and(|(max, usual)| max > usual * LIMIT_MARGIN);
        let recorded = self.tool.row().late == LateResponses::AtLimit
            && self.failures.timeouts.unwrap_or(0) > 0;
        self.load.timeout_s.or(match (beyond, recorded) {
            (false, _) => usual,
            (true, true) => max_s,
            (true, false) => None,
        })
    }

    /// Duration in seconds, as measured, otherwise as requested.
    pub fn seconds(&self) -> Option<f64> {
        self.duration_s.or(self.load.duration_s)
    }

    /// Requests per second as printed, otherwise computed from requests and seconds.
    pub fn rate(&self) -> Option<f64> {
        let counted =
            || Some(self.requests? as f64 / self.duration_s.filter(|seconds| *seconds > 0.0)?);
        self.requests_per_s
            .or_else(counted)
            .filter(|rate| *rate > 0.0)
    }

    /// Whether it was sent at a fixed rate, completely.
    pub(crate) fn keeps_its_rate(&self) -> bool {
        let rate = self.load.rate_per_s.zip(self.rate());
        rate.is_some_and(|(asked, done)| done >= KEPT_UP * self.rate_due(asked))
    }

    /// The rate that a run at this fixed rate can show: it ends a response after the last request was due.
    pub(crate) fn rate_due(&self, asked: f64) -> f64 {
        let slowest_s = self.latency.max_us.map_or(0.0, |us| us / 1e6);
        match self.seconds() {
            Some(seconds) if seconds > 0.0 => {
                asked * (1.0 - (slowest_s / seconds).min(LAST_RESPONSE_MAX))
            }
            _ => asked,
        }
    }

    /// Whether each connection sent its next request after the previous response.
    pub fn is_closed_loop(&self) -> bool {
        // wrk2 always has a rate, even if its command line is not known.
        let paced =
            self.load.rate_per_s.is_some() || self.tool.row().late == LateResponses::Checked;
        !paced && self.tool.row().pace == ToolPace::Responses
    }
}
