//! The messages. Times are those of the agent's own CLOCK_MONOTONIC: how far it is from ours is known from pings.

use load::{LoadSpec, Until};
use model::Counts;
use serde::{Deserialize, Serialize};

use crate::services::message::{ServicesRequest, ServicesResponse};
use crate::{Blame, Error};

/// Version of the protocol. Both sides must have the same: they are the same program.
pub const VERSION: u32 = 5;

/// Why nothing can be done with a program that speaks this version.
pub(crate) fn other_version(version: u32, proofload: &str) -> String {
    format!(
        "it speaks version {version} of the protocol (Proofload {proofload}), and this is version {VERSION} (Proofload {}); have the same \
         Proofload at both ends: see `generators.program`, or the image of the pods",
        env!("CARGO_PKG_VERSION")
    )
}

/// From Proofload to its agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Comes first.
    Hello {
        /// See [`VERSION`].
        version: u32,
    },
    /// Compares clocks. The number comes back at once.
    Ping(u64),
    /// We are still there.
    Heartbeat,
    /// Breaks off the request under way.
    Cancel,
    /// To a generator.
    Generator(GeneratorRequest),
    /// To services.
    Services(ServicesRequest),
    /// Ends whatever is under way, and the agent.
    End,
}

/// From an agent to Proofload.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Response {
    /// To [`Request::Hello`].
    Ready {
        /// See [`VERSION`].
        version: u32,
        /// Version of the program.
        proofload: String,
        /// Name of the machine.
        host: String,
        /// Processors that the agent may use.
        processors: u32,
    },
    /// To [`Request::Ping`].
    Pong {
        /// Its number.
        ping: u64,
        /// CLOCK_MONOTONIC when it was read, in nanoseconds.
        clock_ns: u64,
    },
    /// From a generator.
    Generator(GeneratorResponse),
    /// From services.
    Services(ServicesResponse),
    /// The request could not be carried out, or was not understood.
    Failed(Failed),
    /// The agent ends, in good order.
    Ended,
}

/// A request to a generator.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GeneratorRequest {
    /// What to load from now on. Connections of an earlier load are closed.
    Begin {
        /// What to load.
        spec: Box<LoadSpec>,
    },
    /// Opens connections for a window of load.
    Prepare {
        /// Number of the window.
        number: u64,
        /// How long it will last.
        until: Until,
    },
    /// Runs the window that was prepared.
    Run {
        /// Its number.
        number: u64,
        /// When it begins, in nanoseconds of the agent's CLOCK_MONOTONIC. A time in the past means at once.
        start_at_ns: u64,
    },
    /// Closes all connections: nothing is to be loaded for now.
    Rest,
}

/// A response of a generator.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GeneratorResponse {
    /// To [`GeneratorRequest::Begin`]: threads are there.
    Begun,
    /// To [`GeneratorRequest::Prepare`]: connections are open, as far as they can be.
    Prepared {
        /// The number of the window.
        number: u64,
    },
    /// To [`GeneratorRequest::Run`].
    Slice {
        /// The number of the window.
        number: u64,
        /// How much later than agreed the window began, in nanoseconds: the request came late, or the machine had no time.
        late_ns: u64,
        /// CPU steal as a share of the machine's CPU time, 0 to 1; `None` where the kernel does not say.
        steal_share: Option<f64>,
        /// What was counted.
        counts: Box<Counts>,
    },
    /// To [`GeneratorRequest::Rest`]: no connection is open.
    Resting,
}

/// A request that could not be carried out.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Failed {
    /// Why.
    #[serde(flatten)]
    pub error: Error,
    /// All that is kept of a service's output, in base64.
    pub log: Option<String>,
}

impl Failed {
    pub(crate) fn new(blame: Blame, message: impl Into<String>) -> Failed {
        Error::new(message).by(blame).into()
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Failed {
        Failed { error, log: None }
    }
}
