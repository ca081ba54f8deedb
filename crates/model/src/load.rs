//! Words that a plan and the engine share: what is spoken, what a response must be, and how many requests are due per second in open loop,
//! and in all by some time: the law behind arrivals. Plain data.
//!
//! ```text
//! rate                                   count due by t:   Λ(t) = ∫ rate
//!   to ┤           ╭──────────
//!      │        ╱                        constant:  Λ(t) = r·t
//!      │     ╱                           ramp:      Λ(t) = r₀·t + (r₁ − r₀)·t² / 2D    until D
//! from ┤  ╱                                         Λ(D) + r₁·(t − D)                  from then on
//!      └──┴────────┴──────────► t
//!         0        D = over
//! ```
//! Its inverse, which says when the next request is due, is the engine's. It must not know threads or clocks, nor open, resolve or measure
//! anything.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Digest;
use crate::ask::Ask;

/// One response in so many is read in full, unless somebody says otherwise.
pub const SAMPLE_EVERY: u64 = 10_000;

/// The protocol above the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// HTTP/1.1.
    Http1 {
        /// Requests that a connection sends without waiting for their responses: 1, unless pipelining is asked for.
        pipeline: u32,
    },
    /// HTTP/2, by ALPN with TLS and by prior knowledge without.
    Http2 {
        /// Requests under way on a connection, if the server allows as many.
        streams: u32,
    },
}

impl Default for Protocol {
    fn default() -> Protocol {
        Protocol::Http1 { pipeline: 1 }
    }
}

impl Protocol {
    /// Requests under way on a connection, at most.
    pub fn lanes(self) -> u32 {
        match self {
            Protocol::Http1 { pipeline: lanes } | Protocol::Http2 { streams: lanes } => lanes,
        }
    }

    /// Whether the first bytes of a server are HTTP/2. It sends its settings first: a frame of type 4 on stream 0 (RFC 9113, section 3.4).
    pub fn is_http2(first_bytes: &[u8]) -> bool {
        matches!(first_bytes, [0, _, _, 4, 0, 0, 0, 0, 0, ..])
    }

    /// Streams of a connection, at most; `None` if the protocol has none.
    pub fn streams(self) -> Option<u32> {
        match self {
            Protocol::Http1 { .. } => None,
            Protocol::Http2 { streams } => Some(streams),
        }
    }

    /// Whether a connection sends a request before the response to the last one is there, and gets responses in that order.
    pub fn pipelines(self) -> bool {
        match self {
            Protocol::Http1 { pipeline } => pipeline > 1,
            Protocol::Http2 { .. } => false,
        }
    }

    /// Whether a response names its request. If not, a second response to one request is taken for that to the next.
    pub fn names_requests(self) -> bool {
        match self {
            Protocol::Http1 { .. } => false,
            Protocol::Http2 { .. } => true,
        }
    }
}

/// What a response must be to count as a success. The default accepts any 2xx.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contract {
    /// The accepted status codes; empty: any 2xx.
    pub status: Vec<u16>,
    /// For each header name the accepted values, compared without regard to case. No value at all: the header must
    /// be there. An empty string among the values: it may be absent.
    pub headers: BTreeMap<String, Vec<String>>,
    /// The length of the content (after removal of the chunked coding, before that of a content coding), in bytes.
    pub body_bytes: Option<u64>,
    /// The SHA-256 of the content when its content coding is undone. Only sampled responses are compared with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Digest>,
}

impl Contract {
    /// Whether a response of this status may be a success.
    pub fn accepts_status(&self, status: u16) -> bool {
        if self.status.is_empty() { (200..300).contains(&status) } else { self.status.contains(&status) }
    }
}

/// Where in a response the value is that later requests of the same user are filled with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseField {
    /// The header of this name, of several the first.
    Header(String),
    /// The string, number or boolean that this JSON pointer (RFC 6901) leads to in the content.
    Json(String),
}

/// How long a user waits after a response before the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Think {
    /// Always so long.
    Constant(Duration),
    /// At random, exponentially distributed with this mean.
    Exponential(Duration),
}

/// Beyond it arrivals are not even 100 ns apart, and no client keeps up.
pub const RATE_MAX_PER_S: f64 = 1e7;

/// Requests due per second over a slice, over all threads. It begins anew with each slice.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rate {
    /// The same all the time; above 0 and at most [`RATE_MAX_PER_S`].
    Constant(f64),
    /// Changes linearly from the start of the window, and stays at `to_per_s` once `over` has passed.
    ///
    /// A ramp to 0 has an end: `over` · `from_per_s` / 2 requests are due and then none, so that a slice of more
    /// requests ([`Until::Requests`]) would wait for an interrupt.
    Ramp {
        /// The rate at the start; from 0 to [`RATE_MAX_PER_S`].
        from_per_s: f64,
        /// The rate from `over` on; the same limits, and not 0 if `from_per_s` is.
        to_per_s: f64,
        /// How long the change takes; not 0.
        over: Duration,
    },
}

impl Rate {
    /// The rate if it is the same all the time.
    pub fn constant_per_s(&self) -> Option<f64> {
        match *self {
            Rate::Constant(per_s) => Some(per_s),
            Rate::Ramp { .. } => None,
        }
    }

    /// Where the rate starts and ends, and how long the change takes; `None` if it does not change.
    pub fn ramp(&self) -> Option<(f64, f64, Duration)> {
        match *self {
            Rate::Constant(_) => None,
            Rate::Ramp { from_per_s, to_per_s, over } => Some((from_per_s, to_per_s, over)),
        }
    }

    /// The rate at `elapsed_s` seconds from the start of the window.
    pub fn at(&self, elapsed_s: f64) -> f64 {
        match *self {
            Rate::Constant(per_s) => per_s,
            Rate::Ramp { from_per_s, to_per_s, over } => {
                let part = (elapsed_s / over.as_secs_f64()).min(1.0);
                from_per_s + (to_per_s - from_per_s) * part
            }
        }
    }

    /// How many requests are due in the first `elapsed_s` seconds of the window: the integral of the rate. Constant
    /// arrivals are so many within one; of Poisson arrivals it is the mean.
    pub fn due_by(&self, elapsed_s: f64) -> f64 {
        match *self {
            Rate::Constant(per_s) => per_s * elapsed_s,
            Rate::Ramp { from_per_s, over, .. } => {
                let ramp_s = elapsed_s.min(over.as_secs_f64());
                // A trapezium, and a rectangle after it.
                let on_ramp = (from_per_s + self.at(ramp_s)) / 2.0 * ramp_s;
                on_ramp + (elapsed_s - ramp_s) * self.at(elapsed_s)
            }
        }
    }

    /// The mean over the first `elapsed_s` seconds of the window.
    pub fn mean(&self, elapsed_s: f64) -> f64 {
        match *self {
            Rate::Constant(per_s) => per_s,
            Rate::Ramp { from_per_s, .. } if elapsed_s <= 0.0 => from_per_s,
            Rate::Ramp { .. } => self.due_by(elapsed_s) / elapsed_s,
        }
    }

    /// What is wrong with it, if anything.
    pub fn problem(&self) -> Option<String> {
        let limit = RATE_MAX_PER_S;
        match *self {
            Rate::Constant(per_s) => (!(per_s > 0.0 && per_s <= limit))
                .then(|| format!("{per_s} requests a second, above 0 and at most {limit}")),
            Rate::Ramp { from_per_s, to_per_s, over } => {
                let ends = [from_per_s, to_per_s];
                match ends.iter().find(|end| !(0.0..=limit).contains(*end)) {
                    Some(end) => Some(format!("a ramp with {end} requests a second, from 0 to {limit}")),
                    None if ends == [0.0, 0.0] => {
                        Some("a ramp from 0 to 0 requests a second, one of them above 0".into())
                    }
                    None => over.is_zero().then(|| "a ramp over no time, above 0 s".into()),
                }
            }
        }
    }
}

/// How arrivals are spread in time in open loop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Process {
    /// Evenly: one every 1 / rate, the first at the start of the window. Where the rate changes, arrival k comes when k were
    /// due.
    Constant,
    /// At random and independent of each other, as from many users: gaps are exponential with mean 1 / rate. Where the rate
    /// changes, a Poisson process that changes with it.
    #[default]
    Poisson,
}

impl Process {
    /// As flags and files have it.
    pub fn name(self) -> &'static str {
        match self {
            Process::Constant => "constant",
            Process::Poisson => "poisson",
        }
    }
}

/// How long a slice sends. In open loop: which arrivals belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    /// For this long; what is in flight then is drained. Open loop: what was due by then and found no connection is
    /// still sent while the drain lasts.
    Elapsed(Duration),
    /// Exactly this many requests; the slice lasts until the last of them has ended.
    Requests(u64),
}

impl Until {
    /// The length of the window; `None` if a number of requests ends it.
    pub fn length(self) -> Option<Duration> {
        match self {
            Until::Elapsed(length) => Some(length),
            Until::Requests(_) => None,
        }
    }

    /// The number of requests that ends the slice; `None` if its time does.
    pub fn requests(self) -> Option<u64> {
        match self {
            Until::Elapsed(_) => None,
            Until::Requests(total) => Some(total),
        }
    }
}

/// What a slice was to be, where nothing is compared: each may be another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// How long it was to send.
    pub until: Until,
    /// When requests were due; `None` in closed loop.
    pub open: Option<AskedOpen>,
}

/// An open loop as it was asked for, and what that came to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AskedOpen {
    /// As it was asked for: perhaps as a share of capacity.
    pub ask: Ask,
    /// The rate that it is.
    pub rate: Rate,
    /// How requests were spread in time.
    pub process: Process,
    /// Decides the times of those at random.
    pub seed: u64,
}
