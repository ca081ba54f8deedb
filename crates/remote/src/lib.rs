//! Runs this program on other machines: copies and starts it, exchanges messages with it, and ends it.
//!
//! ```text
//!   generators                 the work that a run needs from other machines
//!      agent · protocol        the loop of the agent; frames, messages, heartbeats
//!   here · ssh · kubernetes    transports: each is a Channel, the stdin and stdout of one remote proofload
//! ```
//! Nothing is configured on the other machine and nothing listens there: a user who may log in may generate
//! load. This crate does not judge measurements, or decide whether a run continues without a machine.

mod agent;
mod channel;
mod control;
pub mod generators;
pub mod kubernetes;
mod open;
mod program;
pub mod protocol;
pub mod ssh;

pub use ::services::{Blame, Error};
pub use agent::{AgentHost, ServeError, serve};
pub use channel::{Channel, here};
pub use open::{WantedGenerators, again, generators, together};
pub use program::Program;

/// Entry points for fuzz targets.
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::protocol::same_when_sent_again;
}
