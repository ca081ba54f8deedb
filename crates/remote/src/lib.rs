//! This same program on other machines: reached, put there, started, and gone when nobody needs it any more.
//!
//! What comes of it is always the same: a [`Channel`], which is the stdin and stdout of one `proofload` elsewhere. What is said over it is
//! none of this crate's business. Nothing is configured on the other machine and nothing listens there: who may log in may load.

mod address;
mod channel;
mod error;
pub mod generators;
pub mod kubernetes;
mod open;
mod program;
pub mod ssh;

pub use address::address;
pub use channel::{Channel, here};
pub use error::HostError;
pub use open::{Waiting, Wanted, again, generators, together};
pub use program::Program;
