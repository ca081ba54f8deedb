//! Generators on other machines: what is said to them and what they answer, their clocks, and one slice made of theirs.
//!
//! ```text
//!   Fleet ── orders, a JSON line each ──► stdin   proofload generate ── load::Generator
//!         ◄── answers, a JSON line each ── stdout
//! ```
//! A generator is this same program, started anywhere, that is told everything on its stdin and tells everything on its stdout. It
//! listens on no port. How it was started, and by which channel its lines travel, is none of this crate's business: it is given
//! readers and writers. It must not start processes, print, or judge what was measured.

mod beat;
mod clock;
mod compare;
mod error;
mod fleet;
mod line;
mod member;
mod merging;
mod order;
mod remote;
mod serve;
mod silence;

pub use clock::{ClockOffset, Ping};
pub use compare::compare_clocks;
pub use error::{FleetError, ServeError};
pub use fleet::{Fleet, Generator, Ran};
pub use member::Part;
pub use order::{Answer, Order, VERSION};
pub use remote::Remote;
pub use serve::{Host, serve};
