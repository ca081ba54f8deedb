//! Generators on other machines: their clocks, and one slice made of theirs.
//!
//! It must not start processes, print, or judge what was measured.

mod agent;
mod clock;
mod error;
mod fleet;
mod member;
mod merging;

pub(crate) use agent::GeneratorAgent;
pub use clock::{ClockOffset, Ping, compare_clocks};
pub use error::FleetError;
pub use fleet::{Fleet, Generator, Ran};
pub use member::Part;
