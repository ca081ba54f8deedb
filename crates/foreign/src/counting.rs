//! Figures of a run as its tool counts them: attempts, responses, rates, and connections really opened.

use crate::run::ToolRun;
use crate::tools::{Divides, RateOf, ToolPace};

/// A tool that sent less than this share of its rate fell behind.
pub(crate) const KEPT_UP: f64 = 0.99;

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
        let requests = self
            .responses()
            .filter(|requests| *requests > 0 && !self.rounded)?;
        self.bytes.map(|bytes| bytes / requests as f64)
    }

    /// The requests without those that got no response, if the tool counts these too.
    pub(crate) fn responses(&self) -> Option<u64> {
        let failed = self.failures.unanswered();
        let counted = self.tool.row().rate_of == RateOf::Requests;
        self.requests.map(|requests| {
            if counted {
                requests.saturating_sub(failed)
            } else {
                requests
            }
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
        rate.is_some_and(|(asked, done)| done >= KEPT_UP * asked)
    }

    /// Whether each connection sent its next request after the previous response.
    pub fn is_closed_loop(&self) -> bool {
        self.load.rate_per_s.is_none() && self.tool.row().pace == ToolPace::Responses
    }
}
