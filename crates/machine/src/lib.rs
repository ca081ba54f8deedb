//! Properties of this machine that affect a measurement: facts read from the kernel, and the hazards among
//! them.
//!
//! ```text
//! /proc, /sys ──► Texts ──► Facts ──► hazards: name, grade, evidence, remedy
//!                             ▲
//!           two watched seconds, and what others asked the kernel for
//! ```
//! All kernel files are parsed here and nowhere else, including files of single processes, sockets and
//! control groups. Everything behind [`Texts`] is pure, so that a stored text of another machine is judged
//! like this one. This crate changes nothing on the machine except [`write_whole`]'s files and
//! [`private_folder`]s. It does not know experiments: the checks of a record decide whether a run was
//! affected.

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

pub use counters::{CounterTexts, CpuTicks, MachineCounters, TcpCounters};
pub use facts::{
    Conntrack, Facts, Frequency, Granted, Host, Limits, Memory, Probed, ProcessGroup,
    ProcessRights, Processors, Quota, Storage,
};
pub use files::{private_folder, temporary_folder, write_whole};
pub use git::{ELSEWHERE, Filters, GIT_DIFF, commit_of, git};
pub use hazards::{Hazard, all as hazards};
pub use programs::{
    CI_VARIABLES, answer_of, command, ended_within, is_ci_variable, output_of, run, run_keeping,
    version_of,
};
pub use texts::Texts;
pub use watch::{Busy, MachineWatched, Spin, watch};
