//! What about this machine bears on a measurement: facts read from the kernel, and the hazards among them.
//!
//! ```text
//! /proc, /sys ──► Texts ──► Facts ──► hazards: name, grade, evidence, remedy
//!                             ▲
//!           two watched seconds, and what others asked the kernel for
//! ```
//! Everything behind [`Texts`] is pure, so that a kept text of another machine is judged as this one. It changes nothing on
//! the machine, and must not know what an experiment is: whether a run was hurt is told by the checks of its record.

mod facts;
mod hazards;
mod programs;
mod texts;
mod watch;
mod wording;

pub use facts::{
    Asked, Conntrack, Facts, Frequency, Granted, Group, Host, Limits, Memory, Processors, Quota, Rights,
    Storage,
};
pub use hazards::{Grade, Hazard, activity, all as hazards, host, memory, network, processors, rights};
pub use programs::{output_of, version_of};
pub use texts::Texts;
pub use watch::{Busy, Reading, Spin, Watched, watch};
