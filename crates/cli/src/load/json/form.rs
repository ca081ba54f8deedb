//! The forms of the JSON document: [`One`] slice alone, or the [`Steps`] of a rate. Both have `version`, `proofload`,
//! `interrupted`, `void`, `capacity` and `caveats`.
//!
//! Names are an interface: they are added to, never changed.

use std::collections::BTreeMap;

use serde::Serialize;
use stats::Latencies;

use super::super::content::Sampled;
use super::detail::{OfEndpoint, Setup};

/// One slice: its body is at the top.
#[derive(Debug, Serialize)]
pub(super) struct One<'a> {
    /// Version of this form.
    pub(super) version: u32,
    /// Version of the program.
    pub(super) proofload: &'static str,
    #[serde(flatten)]
    pub(super) body: Body<'a>,
    pub(super) capacity: Option<Capacity<'a>>,
}

/// Steps, each with a body as one slice alone has it.
#[derive(Debug, Serialize)]
pub(super) struct Steps<'a> {
    pub(super) version: u32,
    pub(super) proofload: &'static str,
    /// A signal ended it early: the last step may be short, and others missing.
    pub(super) interrupted: bool,
    /// Why there is nothing to measure; null if any step had a good answer.
    pub(super) void: Option<String>,
    pub(super) capacity: Option<Capacity<'a>>,
    /// How many steps were asked for.
    pub(super) asked_steps: usize,
    /// Those that were begun; none where shares were asked of a capacity that could not be measured.
    pub(super) steps: Vec<Body<'a>>,
    /// Those that belong to no step alone.
    pub(super) caveats: Vec<String>,
}

/// The capacity that shares were asked of: `throughput_per_s` of a slice in closed loop.
#[derive(Debug, Serialize)]
pub(super) struct Capacity<'a> {
    /// Loaded before that slice, and left out.
    pub(super) warmup_s: f64,
    #[serde(flatten)]
    pub(super) body: Body<'a>,
}

/// A slice.
#[derive(Debug, Serialize)]
pub(super) struct Body<'a> {
    /// Null where there are several requests.
    pub(super) method: Option<&'a str>,
    pub(super) url: &'a str,
    /// Address and port that were loaded.
    pub(super) address: String,
    /// `closed`: each connection sends its next request when it has its answer. `open`: requests are due at a rate.
    #[serde(rename = "loop")]
    pub(super) kind: &'static str,
    /// Null in closed loop.
    pub(super) open: Option<Open<'a>>,
    #[serde(flatten)]
    pub(super) setup: Setup<'a>,
    pub(super) connections: u32,
    pub(super) threads: u32,
    /// What moved the bytes: `completion` (io_uring) or `readiness` (epoll).
    pub(super) driver: &'a str,
    /// How long it should send; null where a count was the limit.
    pub(super) asked_s: Option<f64>,
    /// How many requests it should send; null where time was the limit.
    pub(super) asked_requests: Option<u64>,
    pub(super) timeout_s: f64,
    /// A signal ended it early.
    pub(super) interrupted: bool,
    /// Why there is nothing to measure; null where there is.
    pub(super) void: Option<String>,
    /// First send allowed to sending stopped; with `asked_requests`, until the last one had ended.
    pub(super) window_s: f64,
    /// Waiting for what was in flight then.
    pub(super) drain_s: f64,
    /// Good answers in the window over its length.
    pub(super) throughput_per_s: Option<f64>,
    /// Bytes received, heads included, for answers in the window over its length.
    pub(super) transfer_bytes_per_s: Option<f64>,
    pub(super) requests: Requests,
    pub(super) bytes_wire: u64,
    pub(super) bytes_body: u64,
    /// From intended (due) to done: what a user waits. Null in closed loop, where nothing is due.
    pub(super) response: Option<Times<'a>>,
    /// From sent to done: service time.
    pub(super) latency: Times<'a>,
    /// From sent to the first byte of the answer.
    pub(super) first_byte: Times<'a>,
    /// From the beginning to connect to connected.
    pub(super) connect: Times<'a>,
    /// From there to the end of the TLS handshake.
    pub(super) handshake: Times<'a>,
    /// Handshakes that took up an earlier session.
    pub(super) tls_resumed: u64,
    /// Answers that were read in full and decoded, of all requests.
    pub(super) sampled: Sampled,
    /// Each of the requests, in order.
    pub(super) endpoints: Vec<OfEndpoint<'a>>,
    /// Answers by status code.
    pub(super) status: &'a BTreeMap<u16, u64>,
    pub(super) errors: Vec<Error>,
    pub(super) contract_failures: Vec<Failure<'a>>,
    /// Good answers in each 100 ms of the window; the last may be shorter.
    pub(super) ok_per_100_ms: &'a [u32],
    pub(super) connections_alive_start: u32,
    pub(super) connections_alive_end: u32,
    pub(super) connections_opened: u64,
    pub(super) reconnects: u64,
    pub(super) client: Vec<Thread>,
    pub(super) caveats: Vec<String>,
    /// What the tool of `--as` would have done or shown otherwise; empty without one.
    pub(super) differences: &'a [String],
}

/// The rate asked for, and what came of it. `intended = sent + unsent`, and `intended = schedule_lag.count + queued`.
#[derive(Debug, Serialize)]
pub(super) struct Open<'a> {
    /// Null on a ramp.
    pub(super) rate_per_s: Option<f64>,
    /// The share of capacity by which that rate was asked for, 1 for all of it; null where it was a number.
    pub(super) share_of_capacity: Option<f64>,
    /// `kept_up`, `fell_behind`, `not_good` (answers), `client_late` or `no_answer`; null on a ramp.
    pub(super) verdict: Option<&'static str>,
    /// Null at a constant rate.
    pub(super) ramp: Option<Ramp>,
    /// `constant` or `poisson`.
    pub(super) arrivals: &'static str,
    /// Decides when requests are due if arrivals are random.
    pub(super) seed: u64,
    /// Requests due in the window.
    pub(super) intended: u64,
    pub(super) sent_in_window: u64,
    /// `sent_in_window` over the window.
    pub(super) sent_per_s: Option<f64>,
    /// `sent_in_window` over `intended`.
    pub(super) sent_share: Option<f64>,
    /// Due, and never sent because no connection was free before the drain ended. Censored samples of `response`.
    pub(super) unsent: u64,
    /// Found no connection free when they were due. Their wait is in `response`.
    pub(super) queued: u64,
    /// From intended to sent where a connection was free: how late the client itself was.
    pub(super) schedule_lag: Times<'a>,
}

/// A rate that changed linearly, and how far it was kept.
#[derive(Debug, Serialize)]
pub(super) struct Ramp {
    pub(super) from_per_s: f64,
    pub(super) to_per_s: f64,
    pub(super) over_s: f64,
    pub(super) from_share_of_capacity: Option<f64>,
    pub(super) to_share_of_capacity: Option<f64>,
    /// Tenths of it, as far as it came.
    pub(super) stretches: Vec<Stretch>,
    /// The rate up to which good answers came as they were due; null where that cannot be said.
    pub(super) kept_up_to_per_s: Option<f64>,
    /// They fell behind beyond it; false: that is the highest rate there was. Null where it cannot be said.
    pub(super) bent: Option<bool>,
}

#[derive(Debug, Serialize)]
pub(super) struct Stretch {
    pub(super) from_s: f64,
    pub(super) to_s: f64,
    /// Requests due in it over its length.
    pub(super) due_per_s: f64,
    /// Good answers in it over its length.
    pub(super) ok_per_s: f64,
    pub(super) kept_up: bool,
}

/// `sent = answered + timed_out + broken + unfinished`.
#[derive(Debug, Serialize)]
pub(super) struct Requests {
    pub(super) sent: u64,
    pub(super) answered: u64,
    pub(super) answered_in_window: u64,
    pub(super) ok: u64,
    pub(super) ok_in_window: u64,
    pub(super) timed_out: u64,
    pub(super) broken: u64,
    pub(super) unfinished: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct Times<'a> {
    pub(super) count: u64,
    /// Samples known only to be at least so long: requests without a complete answer.
    pub(super) censored: u64,
    /// Microseconds by quantile; null where there are too few samples.
    pub(super) quantiles_us: BTreeMap<&'static str, Option<Bound>>,
    /// All samples in nanoseconds: HdrHistogram V2, compressed, base64.
    pub(super) histogram_ns: &'a Latencies,
}

/// A quantile: its value, or what it is at least.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Bound {
    Exact(f64),
    AtLeast { at_least: f64 },
}

#[derive(Debug, Serialize)]
pub(super) struct Error {
    pub(super) phase: String,
    pub(super) cause: String,
    pub(super) count: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct Failure<'a> {
    pub(super) what: String,
    pub(super) count: u64,
    /// What came instead, the first time.
    pub(super) example: &'a str,
}

/// One thread of the client over window and drain.
#[derive(Debug, Serialize)]
pub(super) struct Thread {
    pub(super) cpu_s: f64,
    pub(super) wall_s: f64,
    /// Ready to run and without a core; null where the kernel does not say.
    pub(super) run_delay_s: Option<f64>,
}
