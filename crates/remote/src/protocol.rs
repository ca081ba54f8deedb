//! Protocol between Proofload and its agent on another machine: frames, messages and heartbeats.
//!
//! ```text
//!   here                            there
//!   Fleet ── requests ──► stdin     proofload remote-agent: generates load
//!         ◄─ responses ── stdout
//! ```
//! A frame is one JSON object on one line of limited length. Each request has one response, and responses are
//! in order. There are two exceptions: `heartbeat`, `cancel` and `end` have no response, and the response to
//! `ping` does not wait for others. The agent opens no port. This module does not start agents and does not
//! transport frames.
//!
//! ```text
//! ──► {"hello":{"version":8}}
//! ◄── {"ready":{"version":8,"proofload":"0.1.0","host":"bench-1","processors":8}}
//! ──► {"ping":1}
//! ◄── {"pong":{"ping":1,"clock_ns":81234567890}}
//! ──► "heartbeat"                                            every ten seconds
//! ──► {"generator":{"begin":{"spec":{…}}}}
//! ◄── {"generator":"begun"}
//! ──► {"generator":{"prepare":{"number":1,"until":{"elapsed":{"secs":10,"nanos":0}}}}}
//! ◄── {"generator":{"prepared":{"number":1}}}
//! ──► {"generator":{"run":{"number":1,"start_at_ns":91234567890}}}
//! ◄── {"generator":{"slice":{"number":1,"late_ns":0,"steal_share":0.0,"counts":{…}}}}
//!                                                            instead of any response: {"failed":{"message":"…",…}}
//! ──► "end"                                                  or the end of stdin
//! ◄── "ended"
//! ```

use load::{LoadSpec, Until};
use model::Counts;
use serde::{Deserialize, Serialize};

use crate::Error;

pub(crate) use connection::{
    AgentConnection, FrameMessage, Heartbeat, LastByte, QUEUE_MAX, WatchedInput, read, write,
};

mod connection;

/// Reads frames of both directions up to the first invalid one. Panics if a frame changes when it is sent and
/// read again.
#[cfg(fuzzing)]
pub fn same_when_sent_again(bytes: &[u8]) {
    fn same<T: serde::Serialize + serde::de::DeserializeOwned>(mut input: &[u8]) {
        while let Ok(Some(value)) = read::<T>(&mut input) {
            let mut sent = Vec::new();
            write(&mut sent, &value).expect("what was read can be sent");
            let again: T = read(&mut &sent[..])
                .expect("what was sent is read")
                .expect("and is there");
            let mut twice = Vec::new();
            write(&mut twice, &again).expect("once more");
            assert_eq!(sent, twice);
        }
    }
    same::<AgentResponse>(bytes);
    same::<AgentRequest>(bytes);
}

// Messages. Times are CLOCK_MONOTONIC of the agent's machine. Pings measure its offset from our clock.

/// Version of the protocol. Both sides must have the same version, because they are the same program.
pub const VERSION: u32 = 8;

/// Error message for an agent with a different version of the protocol.
pub(crate) fn other_version(version: u32, proofload: &str) -> String {
    format!(
        "protocol version {version} (Proofload {proofload}) does not match version {VERSION} (Proofload {}); use the same Proofload on both \
         machines: see `generators.program`, or the image of the pods",
        env!("CARGO_PKG_VERSION")
    )
}

/// A request from Proofload to its agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum AgentRequest {
    /// First request, with the [`VERSION`].
    Hello { version: u32 },
    /// Compares clocks. The number is returned at once.
    Ping(u64),
    /// Shows that Proofload still runs.
    Heartbeat,
    /// Ends the current window early, with the counts so far.
    Cancel,
    /// A request to a generator.
    Generator(GeneratorRequest),
    /// Ends the current window and the agent.
    End,
}

/// A response from an agent to Proofload.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum AgentResponse {
    /// Response to [`AgentRequest::Hello`]: the [`VERSION`], the version of the program, the name of the
    /// machine, and the number of processors that the agent may use.
    Ready {
        version: u32,
        proofload: String,
        host: String,
        processors: u32,
    },
    /// Response to [`AgentRequest::Ping`]: its number, and CLOCK_MONOTONIC in nanoseconds when it was read.
    Pong { ping: u64, clock_ns: u64 },
    /// A response from a generator.
    Generator(GeneratorResponse),
    /// The request failed, or could not be parsed.
    Failed(Error),
    /// The agent ends normally.
    Ended,
}

/// A request to a generator. Windows are numbered.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum GeneratorRequest {
    /// Begins a load. Connections of an earlier load are closed.
    Begin { spec: Box<LoadSpec> },
    /// Opens connections for a window of this length.
    Prepare { number: u64, until: Until },
    /// Runs the prepared window from this time on, in nanoseconds of the agent's CLOCK_MONOTONIC. A time in
    /// the past means at once.
    Run { number: u64, start_at_ns: u64 },
    /// Closes all connections until the next load begins.
    Rest,
}

/// A response of a generator.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum GeneratorResponse {
    /// Response to [`GeneratorRequest::Begin`]: the threads are running.
    Begun,
    /// Response to [`GeneratorRequest::Prepare`]: connections are open, except those that could not be
    /// opened.
    Prepared { number: u64 },
    /// Response to [`GeneratorRequest::Run`]: the counts of the window.
    ///
    /// `late_ns` is how much later than agreed the window began, in nanoseconds, because the request arrived
    /// late or the machine was busy. `steal_share` is CPU steal as a share of the machine's CPU time, 0 to 1,
    /// and `None` if the kernel does not report it.
    Slice {
        number: u64,
        late_ns: u64,
        steal_share: Option<f64>,
        counts: Box<Counts>,
    },
    /// Response to [`GeneratorRequest::Rest`]: all connections are closed.
    Resting,
}
