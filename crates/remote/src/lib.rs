//! This same program on other machines: put there, started, talked to, and ended when it is no longer needed.
//!
//! ```text
//!   generators                 what a run wants of other machines
//!          protocol            frames, messages, heartbeats, the agent
//!   here · ssh · kubernetes    transports: each is a Channel, the stdin and stdout of one proofload there
//! ```
//! Nothing is configured on the other machine and nothing listens there: who may log in may load. This crate must not judge what was
//! measured, or decide whether a run goes on without a machine.

mod channel;
pub mod generators;
pub mod kubernetes;
mod open;
mod program;
pub mod protocol;
pub mod ssh;

pub use ::services::{Blame, Error};
pub use channel::{Channel, here};
pub use open::{WantedGenerators, again, generators, together};
pub use program::Program;
pub use protocol::{AgentHost, ServeError, serve};

/// What the fuzz target calls.
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::protocol::same_when_sent_again;
}
