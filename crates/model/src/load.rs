//! Data types shared by plans and the load engine: protocol, response contract, and the requested load of a
//! slice. Plain data.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Digest;
use crate::ask::Ask;
use crate::rate::{ArrivalProcess, Rate};

/// Default sampling interval: one in this many responses is read in full.
pub const SAMPLE_EVERY: u64 = 10_000;

/// The protocol above the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// HTTP/1.1.
    Http1 {
        /// Requests that a connection sends without waiting for their responses. 1 unless pipelining is
        /// requested.
        pipeline: u32,
    },
    /// HTTP/2, negotiated by ALPN with TLS, and by prior knowledge without TLS.
    Http2 {
        /// Maximum concurrent requests per connection, if the server allows that number.
        streams: u32,
    },
}

impl Default for Protocol {
    fn default() -> Protocol {
        Protocol::Http1 { pipeline: 1 }
    }
}

impl Protocol {
    /// Maximum concurrent requests per connection.
    pub fn lanes(self) -> u32 {
        match self {
            Protocol::Http1 { pipeline: lanes } | Protocol::Http2 { streams: lanes } => lanes,
        }
    }

    /// Whether the first bytes from a server are HTTP/2. An HTTP/2 server begins with its settings: a frame
    /// of type 4 on stream 0 (RFC 9113, section 3.4).
    pub fn is_http2(first_bytes: &[u8]) -> bool {
        matches!(first_bytes, [0, _, _, 4, 0, 0, 0, 0, 0, ..])
    }

    /// Maximum number of streams per connection. `None` if the protocol has no streams.
    pub fn streams(self) -> Option<u32> {
        match self {
            Protocol::Http1 { .. } => None,
            Protocol::Http2 { streams } => Some(streams),
        }
    }

    /// Whether a connection sends requests before the response to the last one arrived, and gets responses in
    /// that order.
    pub fn pipelines(self) -> bool {
        match self {
            Protocol::Http1 { pipeline } => pipeline > 1,
            Protocol::Http2 { .. } => false,
        }
    }

    /// Whether a response identifies its request. If not, a second response to one request is taken for the
    /// response to the next.
    pub fn names_requests(self) -> bool {
        match self {
            Protocol::Http1 { .. } => false,
            Protocol::Http2 { .. } => true,
        }
    }
}

/// Conditions that a successful response must meet. The default accepts any 2xx status.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contract {
    /// The accepted status codes. Empty accepts any 2xx.
    pub status: Vec<u16>,
    /// The accepted values for each header name, compared case-insensitively. An empty list requires the
    /// header to be present. An empty string in the list allows it to be absent.
    pub headers: BTreeMap<String, Vec<String>>,
    /// Length of the content in bytes, without chunked framing and before content decoding.
    pub body_bytes: Option<u64>,
    /// SHA-256 of the content after content decoding. Only sampled responses are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Digest>,
}

impl Contract {
    /// Whether a response with this status may be a success.
    pub fn accepts_status(&self, status: u16) -> bool {
        if self.status.is_empty() {
            (200..300).contains(&status)
        } else {
            self.status.contains(&status)
        }
    }
}

/// Location in a response of the value that is inserted into later requests of the same user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseField {
    /// The header of this name. If there are several, the first.
    Header(String),
    /// The string, number or boolean at this JSON pointer (RFC 6901) in the content.
    Json(String),
}

/// Time a user waits after a response before the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Think {
    /// Constant time.
    Constant(Duration),
    /// Random time, exponentially distributed with this mean.
    Exponential(Duration),
}

/// End of a slice. In open loop it determines the arrivals that belong to the slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    /// Ends after this time, and requests in flight are drained. In open loop, requests that were due by then
    /// and found no connection are still sent during the drain.
    Elapsed(Duration),
    /// Ends after exactly this number of requests. The slice lasts until the last of them ended.
    Requests(u64),
}

impl Until {
    /// The length of the window. `None` if a request count ends it.
    pub fn length(self) -> Option<Duration> {
        match self {
            Until::Elapsed(length) => Some(length),
            Until::Requests(_) => None,
        }
    }

    /// The request count that ends the slice. `None` if a time ends it.
    pub fn requests(self) -> Option<u64> {
        match self {
            Until::Elapsed(_) => None,
            Until::Requests(total) => Some(total),
        }
    }
}

/// The requested load of one slice, if nothing is compared. Slices may then differ.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SliceRequest {
    /// Requested end of the slice.
    pub until: Until,
    /// Requested arrivals. `None` in closed loop.
    pub open: Option<AskedOpen>,
}

/// A requested open loop and the resulting rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AskedOpen {
    /// The request as given, possibly as a share of capacity.
    pub ask: Ask,
    /// The resulting rate.
    pub rate: Rate,
    /// Distribution of the arrivals in time.
    pub process: ArrivalProcess,
    /// Seed for random arrival times.
    pub seed: u64,
}
