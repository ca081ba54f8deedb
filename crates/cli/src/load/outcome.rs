//! What a slice amounted to: the figures that text and JSON share, and the caveats that belong to them. Pure.

use std::time::Duration;

use analysis::checks::GENERATOR_SHARE_MAX;
use load::{Address, Arrivals, Until};
use model::{Counts, Phase};
use report::{count, seconds, share};

use super::rate::Ask;
use super::setup::Setup;

/// The quantiles shown, with their names.
pub const QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p75", 0.75), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

/// Share of the time a generator thread may wait for a core before client and server are said to share one.
const RUN_DELAY_SHARE_MAX: f64 = 0.05;
/// A window shorter than this says little about a service that has only begun to warm up.
const WINDOW_MIN_NS: u64 = 1_000_000_000;

/// How many kinds of caveats there are.
pub const CAVEATS: usize = 17;

/// One slice: what was asked, and what came of it.
#[derive(Debug)]
pub struct Outcome {
    pub url: String,
    /// The first request's.
    pub method: String,
    pub setup: Setup,
    pub address: Address,
    pub arrivals: Arrivals,
    /// The rate as it was asked for; `None` in closed loop.
    pub ask: Option<Ask>,
    pub connections: u32,
    pub threads: u32,
    pub timeout: Duration,
    pub until: Until,
    pub interrupted: bool,
    /// Whether text shows more of the latency distribution.
    pub distribution: bool,
    /// What another tool, whose command line was given, would have done or shown otherwise.
    pub differences: Vec<String>,
    pub slice: Counts,
}

impl Outcome {
    /// Good responses per second of the window; `None` without a window.
    pub fn throughput_per_s(&self) -> Option<f64> {
        self.per_second(self.slice.successful_in_window as f64)
    }

    /// Bytes per second: the rate of answers times the bytes of one, so that the drain does not count.
    pub fn transfer_per_s(&self) -> Option<f64> {
        let slice = &self.slice;
        self.per_second(self.bytes_per_answer()? * slice.responses_in_window as f64)
    }

    /// Bytes received for each answer, head included.
    pub fn bytes_per_answer(&self) -> Option<f64> {
        let slice = &self.slice;
        (slice.responses > 0).then(|| slice.wire_bytes as f64 / slice.responses as f64)
    }

    /// What was requested: method and URL, or the mix.
    pub fn title(&self) -> String {
        match (&self.setup.mix, self.setup.requests) {
            (None, _) => format!("{} {}", self.method, self.url),
            (Some(mix), 1) => format!("{mix} at {}, 1 request", self.url),
            (Some(mix), several) => format!("{mix} at {}, {several} requests", self.url),
        }
    }

    /// CPU share of the busiest generator thread, 0 to 1.
    pub fn busiest_share(&self) -> Option<f64> {
        self.slice.generator.busiest_share().map(at_most_all)
    }

    /// The greatest share of its time that a generator thread waited for a core; `None` where the kernel does not say.
    pub fn waiting_share(&self) -> Option<f64> {
        self.slice.generator.waiting_share().map(at_most_all)
    }

    /// Why there is nothing to measure, if so.
    pub fn void(&self) -> Option<String> {
        let slice = &self.slice;
        match slice {
            _ if slice.successful > 0 => None,
            _ if slice.responses > 0 => {
                Some("No answer was good: there is no throughput to speak of.".into())
            }
            _ if slice.connections_opened == 0 && slice.connections_alive_at_start == 0 => {
                let why = match &slice.tls_error {
                    Some(error) => format!("TLS with {} failed: {error}", self.address),
                    // It took connections, and what it said then is no HTTP/2.
                    None if self.setup.speaks_http2() && slice.connect.count() > slice.connect.censored() => {
                        format!("{} does not speak HTTP/2", self.address)
                    }
                    None => format!("no connection to {} could be opened", self.address),
                };
                Some(format!("No request was answered: {why}."))
            }
            _ => Some(format!("No request was answered, of {} sent.", count(slice.sent))),
        }
    }

    /// What a reader must know before using the figures.
    pub fn caveats(&self) -> Vec<String> {
        self.caveats_by_kind().into_iter().flatten().collect()
    }

    /// The same, each kind in its place.
    pub fn caveats_by_kind(&self) -> [Option<String>; CAVEATS] {
        [
            self.stopped_early(),
            self.client_limited(),
            self.client_late(),
            self.connections_busy(),
            self.cores_shared(),
            self.unanswered(),
            self.not_good(),
            self.content_unchecked(),
            self.contents_differ(),
            self.identity_refused(),
            self.connections_missing(),
            self.connections_lost(),
            self.short(),
            self.identity_unknown(),
            self.pipelined(),
            self.connecting_included(),
            self.closed_loop(),
        ]
    }

    pub(super) fn per_second(&self, amount: f64) -> Option<f64> {
        let window_ns = self.slice.window_ns;
        (window_ns > 0).then(|| amount * 1e9 / window_ns as f64)
    }

    fn stopped_early(&self) -> Option<String> {
        let window = seconds(self.slice.window_ns as f64 / 1e9);
        self.interrupted.then(|| format!("Stopped early, after {window}."))
    }

    pub(super) fn client_limited(&self) -> Option<String> {
        let busy = self.busiest_share().filter(|&busy| busy > GENERATOR_SHARE_MAX)?;
        Some(format!(
            "The client was the bottleneck: a thread of it used {} of a core. The service can do more than this; \
             try more --threads, or another machine.",
            share(busy)
        ))
    }

    fn cores_shared(&self) -> Option<String> {
        let waiting = self.waiting_share().filter(|&waiting| waiting > RUN_DELAY_SHARE_MAX)?;
        Some(format!(
            "The client waited for a core {} of the time: something else ran on it, perhaps the service. Latencies \
             contain that wait.",
            share(waiting)
        ))
    }

    fn unanswered(&self) -> Option<String> {
        let left = self.slice.due() - self.slice.responses;
        let unsent = match self.slice.open.as_ref().map_or(0, |open| open.unsent) {
            0 => String::new(),
            unsent => format!(", {} of them because they could not even be sent", count(unsent)),
        };
        (left > 0).then(|| {
            format!(
                "{} of {} requests got no complete answer{unsent}. They are in the percentiles as \"at least as long as they \
                 were waited for\" (≥).",
                count(left),
                count(self.slice.due())
            )
        })
    }

    fn not_good(&self) -> Option<String> {
        let bad = self.slice.responses - self.slice.successful;
        (bad > 0).then(|| {
            format!("{} answers were not good: throughput leaves them out, latency does not.", count(bad))
        })
    }

    fn connections_missing(&self) -> Option<String> {
        let alive = self.slice.connections_alive_at_start;
        (alive < self.connections && self.setup.keep_alive).then(|| {
            format!(
                "Only {} of {} connections were open when the window began.",
                count(alive.into()),
                self.connections
            )
        })
    }

    fn connections_lost(&self) -> Option<String> {
        let slice = &self.slice;
        let idle: u64 = slice.errors.iter().filter(|e| e.phase == Phase::Idle).map(|e| e.count).sum();
        // A hundredth is what a limit of requests for a connection may amount to.
        let many = slice.reconnects.max(idle) * 100 > slice.responses.max(100);
        (many && slice.connections_opened > 0 && self.setup.keep_alive).then(|| {
            format!(
                "The service ended connections: {} had to be reopened, which costs both sides more than a request.",
                count(slice.reconnects)
            )
        })
    }

    fn short(&self) -> Option<String> {
        let short = matches!(self.until, Until::Elapsed(_)) && self.slice.window_ns < WINDOW_MIN_NS;
        (short && !self.interrupted)
            .then(|| "The window was shorter than a second: a first impression only.".into())
    }

    pub(super) fn closed_loop(&self) -> Option<String> {
        let closed = self.asked().is_none();
        let under_way = if self.setup.lanes() > 1 { "requests under way" } else { "connections" };
        (closed && self.slice.responses > 0).then(|| {
            format!(
                "Closed loop: each connection asks again only when it has its answer. Once the service is saturated, latency \
                 is {under_way} ÷ throughput and says nothing more."
            )
        })
    }
}

/// The clocks are not read in the same instant: in a short run a part may be more than the whole.
fn at_most_all(share: f64) -> f64 {
    share.min(1.0)
}
