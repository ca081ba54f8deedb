//! What is said between those who want load and a generator: one JSON object a line, with the kind of line as its one key.
//!
//! ```text
//! ──► {"hello":{"version":3}}
//! ◄── {"ready":{"version":3,"proofload":"0.1.0","host":"bench-1","processors":8}}
//! ──► {"ping":1}                                       a few times
//! ◄── {"pong":{"ping":1,"clock_ns":81234567890}}
//! ──► "beat"                                          every ten seconds: we are still there; no answer
//! ──► {"begin":{"spec":{…}}}                           takes the place of what was to be loaded before
//! ◄── "begun"
//! ──► {"prepare":{"number":1,"until":{"elapsed":{"secs":10,"nanos":0}}}}
//! ◄── {"prepared":{"number":1}}
//! ──► {"run":{"number":1,"start_at_ns":91234567890}}
//! ◄── {"slice":{"number":1,"late_ns":0,"steal_share":0.0,"counts":{…}}}
//! ──► "rest"                                           until the next begin
//! ◄── "resting"
//! ──► "end"                                            or the end of stdin
//! ◄── "ended"
//! ```
//! Times are those of the generator's own CLOCK_MONOTONIC: who wants load knows how far it is from the own one, from the pings.

use load::{LoadSpec, Until};
use model::Counts;
use serde::{Deserialize, Serialize};

/// Version of what is said. Both sides must have the same: they are the same program.
pub const VERSION: u32 = 3;

/// What a generator is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Comes first: who is there?
    Hello {
        /// See [`VERSION`].
        version: u32,
    },
    /// To be answered at once, to compare clocks. The number comes back.
    Ping(u64),
    /// We are still there.
    Beat,
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
    /// The window that was prepared.
    Run {
        /// Its number.
        number: u64,
        /// When it begins, in nanoseconds of the generator's CLOCK_MONOTONIC. What has passed means at once.
        start_at_ns: u64,
    },
    /// Closes all connections: nothing is to be loaded for now.
    Rest,
    /// Ends the window under way early, and the generator with it.
    End,
}

/// What a generator answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The answer to [`Order::Hello`].
    Ready {
        /// See [`VERSION`].
        version: u32,
        /// Version of the program.
        proofload: String,
        /// Name of the machine.
        host: String,
        /// Processors that the generator may use.
        processors: u32,
    },
    /// The answer to [`Order::Ping`].
    Pong {
        /// Its number.
        ping: u64,
        /// CLOCK_MONOTONIC when it was read, in nanoseconds.
        clock_ns: u64,
    },
    /// The answer to [`Order::Begin`]: threads are there.
    Begun,
    /// The answer to [`Order::Prepare`]: connections are open, as far as they can be.
    Prepared {
        /// The number of the window.
        number: u64,
    },
    /// The answer to [`Order::Run`].
    Slice {
        /// The number of the window.
        number: u64,
        /// How much later than asked the window began, in nanoseconds: the order came late, or the machine had no time.
        late_ns: u64,
        /// Share of the machine's CPU time that its host gave to others meanwhile, 0 to 1; `None` where the kernel does not say.
        steal_share: Option<f64>,
        /// What came of it.
        counts: Box<Counts>,
    },
    /// The answer to [`Order::Rest`]: no connection is open.
    Resting,
    /// It could not do what it was told, or did not understand: nothing follows.
    Failed {
        /// What, where, the value, the limit.
        message: String,
        /// Whether the specification is to blame, and not the machine.
        by_specification: bool,
    },
    /// It has ended in good order.
    Ended,
}
