//! What about this machine bears on a measurement: facts read from the kernel, and the hazards among them.
//!
//! ```text
//! /proc, /sys ──► Texts ──► Facts ──► hazards: name, grade, evidence, remedy
//!                             ▲
//!           two watched seconds, and what others asked the kernel for
//! ```
//! All kernel files are understood here and nowhere else, also those of single processes, sockets and control groups.
//! Everything behind [`Texts`] is pure, so that a kept text of another machine is judged as this one. It changes nothing on
//! the machine but [`write_whole`]'s files and [`private_folder`]s, and must not know what an experiment is: whether a run was hurt is told by the checks of its record.

pub mod clock;
mod counters;
mod facts;
mod files;
mod git;
pub mod groups;
mod hazards;
pub mod process;
mod programs;
pub mod sockets;
mod texts;
mod watch;

pub use counters::{CounterTexts, CpuTicks, Look, TcpCounters};
pub use facts::{
    Asked, Conntrack, Facts, Frequency, Granted, Group, Host, Limits, Memory, Processors, Quota, Rights,
    Storage,
};
pub use files::{private_folder, temporary_folder, write_whole};
pub use git::{ELSEWHERE, Filters, GIT_DIFF, commit_of, git};
pub use hazards::{Hazard, all as hazards};
pub use programs::{
    CI_VARIABLES, answer_of, command, ended_within, is_ci_variable, output_of, run, run_keeping, version_of,
};
pub use texts::Texts;
pub use watch::{Busy, Spin, Watched, watch};
