//! What a slice of load amounted to: counts, errors and latencies, merged over all threads.
//!
//! Plain data. Rates and verdicts are for the reader to derive.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use stats::Latencies;

use crate::{Digest, ErrorCount};

/// The length of one of [`Slice::buckets`].
pub const BUCKET_NS: u64 = 100_000_000;

/// One uninterrupted window of load, with its drain.
///
/// ```text
///   connect phase │◄────────── window ──────────►│◄── drain ──►│
///                 started        sending         stopped       nothing in flight
/// ```
/// The four times of a request are those of the glossary: *intended* (due; in open loop only), *sent*, *first byte* and
/// *done*.
///
/// ```text
///   intended            sent              first byte      done
///      │◄─ queue, lag ──►│◄── first_byte ─────►│            │
///      │                 │◄──────────── latency ───────────►│   service time: what the service took
///      │◄──────────────────────── response ────────────────►│   response time: what a user waits
/// ```
/// Always: `intended == sent + unsent`, `sent == answered + timed_out + broken + unfinished`, and the samples of
/// `latency` (recorded and censored) are as many as `sent`. In open loop the samples of `response` are as many as
/// `intended`, and so are those of `schedule_lag` and `queued` together.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Slice {
    /// What moved the bytes: `readiness`, `completion`, or `mixed` where the kernel refused the latter to some threads.
    pub driver: String,
    /// When the window began, nanoseconds of `CLOCK_MONOTONIC`.
    pub started_ns: u64,
    /// How long requests could be sent. For [`Until::Requests`](crate::Until::Requests): until the last one had ended.
    pub window_ns: u64,
    /// How long the engine then waited for what was in flight.
    pub drain_ns: u64,
    /// Requests that were due in the window; in closed loop those sent.
    pub intended: u64,
    /// Requests that were begun, in the window or (open loop) in the drain: given to an open connection, or with a connection
    /// begun for it.
    pub sent: u64,
    /// Those of them in the window: over `window_ns` it is the rate achieved.
    pub sent_in_window: u64,
    /// Requests that were due and had found no connection when the drain ended. 0 in closed loop.
    pub unsent: u64,
    /// Requests that found no connection free when they were due, because all were busy or not open. 0 in closed loop.
    pub queued: u64,
    /// Complete responses, those of the drain included, whatever their status.
    pub answered: u64,
    /// Complete responses within the window.
    pub answered_in_window: u64,
    /// Complete responses that met the contract.
    pub ok: u64,
    /// The same within the window: throughput is this over `window_ns`.
    pub ok_in_window: u64,
    /// Requests given up after the spec's time limit.
    pub timed_out: u64,
    /// Requests whose connection, or stream, failed under them, and those that a server refused unseen.
    pub broken: u64,
    /// Requests without a result when the drain ended.
    pub unfinished: u64,
    /// The same for each endpoint, in the order of the spec's requests.
    pub endpoints: Vec<Endpoint>,
    /// Complete responses by status code.
    pub status: BTreeMap<u16, u64>,
    /// Every error since the slice's connect phase began, by phase and cause, sorted.
    pub errors: Vec<ErrorCount>,
    /// In what complete responses broke the contract; one failure is counted for each such response.
    pub contract_failures: Vec<ContractFailure>,
    /// Bytes received since the connect phase began: heads, framing and bodies, also of responses that were never complete,
    /// and whatever TLS and HTTP/2 add.
    pub bytes_wire: u64,
    /// Bytes of content of complete responses, before any content decoding.
    pub bytes_body: u64,
    /// From intended to done (response time), nanoseconds. A request without a complete response is censored at its
    /// age, one that was never sent included. Empty in closed loop, where nothing is due.
    pub response: Latencies,
    /// From sent to done (service time), nanoseconds. A request without a complete response is censored at its age.
    pub latency: Latencies,
    /// From sent to the first byte of the response (HTTP/2: to its head), nanoseconds; censored where none came.
    pub first_byte: Latencies,
    /// From intended to sent where a connection was free at the intended time, nanoseconds: how late the engine itself
    /// was. What waited for a connection is counted by `queued` and is no sample here. Empty in closed loop.
    ///
    /// A connection is free from the time at which the engine saw its last response: an engine without a core sees all
    /// responses late and takes its connections for busy meanwhile, which `thread_run_delay_ns` shows.
    pub schedule_lag: Latencies,
    /// From the beginning to connect to connected, for each connection that was opened since the connect phase began,
    /// nanoseconds.
    pub connect: Latencies,
    /// From there to the end of the TLS handshake, nanoseconds.
    pub handshake: Latencies,
    /// Handshakes that took up an earlier session.
    pub resumed: u64,
    /// What the first TLS error said.
    pub tls_error: Option<String>,
    /// Good responses for each 100 ms of the window; the last bucket may be shorter.
    pub buckets: Vec<u32>,
    /// Connections open when the window began.
    pub connections_alive_start: u32,
    /// Connections open when the drain had ended.
    pub connections_alive_end: u32,
    /// Connections opened, in the connect phase and later.
    pub opened: u64,
    /// Those of them that took the place of an earlier one.
    pub reconnects: u64,
    /// CPU time of each engine thread over window and drain (`CLOCK_THREAD_CPUTIME_ID`), nanoseconds.
    pub thread_cpu_ns: Vec<u64>,
    /// Wall time of each engine thread over window and drain, nanoseconds.
    pub thread_wall_ns: Vec<u64>,
    /// How long each engine thread waited for a CPU meanwhile (`/proc/thread-self/schedstat`), nanoseconds; `None`
    /// where the kernel does not say.
    pub thread_run_delay_ns: Vec<Option<u64>>,
}

/// What a slice amounted to for one of the spec's requests.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Endpoint {
    /// The request's name.
    pub name: String,
    /// Requests that were begun.
    pub sent: u64,
    /// Complete responses that met the contract.
    pub ok: u64,
    /// The same within the window.
    pub ok_in_window: u64,
    /// Bytes of content of complete responses, before any content decoding.
    pub bytes_body: u64,
    /// By how requests ended: status codes in order, then those without a complete response.
    pub outcomes: Vec<Outcome>,
    /// The contents of sampled responses, of each thread the first 16 different ones.
    pub contents: Vec<Seen>,
}

impl Endpoint {
    pub(crate) fn new(name: &str) -> Endpoint {
        let name = name.to_owned();
        Endpoint {
            name,
            sent: 0,
            ok: 0,
            ok_in_window: 0,
            bytes_body: 0,
            outcomes: Vec::new(),
            contents: Vec::new(),
        }
    }
}

/// A content that was seen in the sampled responses of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Of the decoded content.
    pub digest: Digest,
    /// In how many of the sampled responses.
    pub count: u64,
    /// Bytes of all of them as they were sent, without framing.
    pub encoded_bytes: u64,
    /// Bytes of all of them when their content coding is undone.
    pub decoded_bytes: u64,
}

impl Seen {
    pub(crate) fn add(&mut self, more: &Seen) {
        self.count += more.count;
        self.encoded_bytes += more.encoded_bytes;
        self.decoded_bytes += more.decoded_bytes;
    }
}

/// Requests of one endpoint that ended in one way.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    /// The response's status; `None` where there was no complete one: then all samples are censored. 0 for all further ones
    /// where an endpoint showed more than 16 different ones.
    pub status: Option<u16>,
    /// From intended to done, nanoseconds. Empty in closed loop.
    pub response: Latencies,
    /// From sent to done, nanoseconds.
    pub latency: Latencies,
}

/// One way in which complete responses broke the contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContractFailure {
    /// What was not as agreed.
    pub kind: FailureKind,
    /// In how many responses.
    pub count: u64,
    /// What was seen instead, the first time.
    pub example: String,
}

/// What of a response broke the contract.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The status code.
    Status,
    /// The length of the content.
    BodyBytes,
    /// The content coding: what came cannot be decoded, or by nobody here.
    Coding,
    /// The decoded content.
    Content,
    /// The header of this name.
    Header(String),
}

/// As people read it: `header etag`.
impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FailureKind::Status => f.write_str("status"),
            FailureKind::BodyBytes => f.write_str("body length"),
            FailureKind::Coding => f.write_str("content coding"),
            FailureKind::Content => f.write_str("content"),
            FailureKind::Header(name) => write!(f, "header {name}"),
        }
    }
}
