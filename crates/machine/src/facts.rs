//! What is known of a machine, as values with units. What the kernel does not tell is `None`.
//!
//! It reads texts and must not judge: what of it is a hazard is said in [`crate::hazards`].

use serde::Serialize;

use crate::texts::Texts;
use crate::watch::Watched;

mod frequency;
pub(crate) mod groups;
mod host;
mod limits;
mod memory;
mod processors;
mod rights;

pub use frequency::Frequency;
pub use groups::{Group, Quota};
pub use host::Host;
pub use limits::{Conntrack, Limits};
pub use memory::Memory;
pub use processors::Processors;
pub use rights::Rights;

/// Everything known of a machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Facts {
    /// Processors, and which of them are ours.
    pub processors: Processors,
    /// How fast they run.
    pub frequency: Frequency,
    /// What the machine is, and what it is part of.
    pub host: Host,
    /// Memory and swap.
    pub memory: Memory,
    /// Limits on descriptors, connections and ports.
    pub limits: Limits,
    /// What this process may do.
    pub rights: Rights,
    /// What was asked of the kernel by those who will need it.
    pub asked: Asked,
    /// What was going on while it was watched; `None` where nobody watched.
    pub watched: Option<Watched>,
}

/// Answers that are in no file: those who use a thing ask for it. `None` was not asked.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Asked {
    /// io_uring, for the load engine.
    pub io_uring: Option<Granted>,
    /// A link between network namespaces, for `load.network`.
    pub link: Option<Granted>,
    /// Stacks of compiled code and of the kernel, for `--explain`. The reason of a refusal ends with what to do.
    pub stacks: Option<Granted>,
    /// Whether a control group may be made that counts CPU time.
    pub group_writable: Option<bool>,
    /// Where records go.
    pub storage: Option<Storage>,
    /// Programs that were looked for, with their version if they are there.
    pub programs: Vec<(String, Option<String>)>,
}

/// The answer of whoever was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Granted {
    /// Whether it may be had.
    pub granted: bool,
    /// Why not.
    pub reason: Option<String>,
}

/// A file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Storage {
    /// The folder asked about.
    pub folder: String,
    /// Bytes that this user may still write.
    pub free_bytes: u64,
}

impl Facts {
    /// Reads this machine's files. Takes a few milliseconds, watches nothing and asks for nothing.
    pub fn look() -> Facts {
        Facts::of(&Texts::look())
    }

    /// What these texts tell.
    pub fn of(texts: &Texts) -> Facts {
        Facts {
            processors: Processors::of(texts),
            frequency: Frequency::of(texts),
            host: Host::of(texts),
            memory: Memory::of(texts),
            limits: Limits::of(texts),
            rights: Rights::of(texts),
            ..Facts::default()
        }
    }

    /// Processors' worth of CPU time that this process may use, in all.
    pub fn usable(&self) -> Option<f64> {
        let allowed = self.processors.allowed.or(self.processors.online)? as f64;
        Some(self.processors.group.quota.as_ref().map_or(allowed, |quota| quota.processors.min(allowed)))
    }
}

impl Granted {
    /// From the answer of a call.
    pub fn of<E: std::fmt::Display>(answer: Result<(), E>) -> Granted {
        Granted { granted: answer.is_ok(), reason: answer.err().map(|error| error.to_string()) }
    }
}

impl Storage {
    /// Asks about the file system that `folder` is on; `None` where it cannot be asked.
    pub fn of(folder: &str) -> Option<Storage> {
        let told = rustix::fs::statvfs(folder).ok()?;
        let free_bytes = told.f_bavail.saturating_mul(told.f_frsize);
        Some(Storage { folder: folder.to_owned(), free_bytes })
    }
}

/// Reads the kernel's form of a set of numbers, `0-3,8`. What is no number is left out.
pub(crate) fn parse_list(text: &str) -> Vec<usize> {
    /// More than any kernel has processors or nodes, so that no text takes long.
    const LONGEST: usize = 1 << 14;
    let mut numbers = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.trim().parse::<usize>(), last.trim().parse::<usize>()) {
            numbers.extend((first..=last).take(LONGEST.saturating_sub(numbers.len())));
        }
    }
    numbers
}
