//! What of the facts will hurt a measurement, what one should know, and what is fine; with figures, and what to do.
//!
//! Pure. A hazard whose facts are not known is not told: silence is better than a guess. It must not print.

use serde::Serialize;

use crate::facts::Facts;

pub mod activity;
pub mod host;
pub mod memory;
pub mod network;
pub mod processors;
pub mod rights;

/// How much it matters, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// It makes figures wrong, or intervals much wider. Change it before you measure.
    Bad,
    /// It bears on what a result is worth, or on what can be measured here.
    Know,
    /// As it should be.
    Fine,
}

/// One thing about a machine that measurements depend on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hazard {
    /// Its name, which stays the same from version to version.
    pub name: &'static str,
    /// How it is here.
    pub grade: Grade,
    /// What was seen, with figures.
    pub evidence: String,
    /// What it does to a measurement and what helps; empty where all is fine.
    pub remedy: String,
    /// The command that changes it, if there is one.
    pub command: Option<String>,
}

impl Hazard {
    fn fine(name: &'static str, evidence: impl Into<String>) -> Hazard {
        Hazard { name, grade: Grade::Fine, evidence: evidence.into(), remedy: String::new(), command: None }
    }

    fn know(name: &'static str, evidence: impl Into<String>, remedy: impl Into<String>) -> Hazard {
        Hazard { grade: Grade::Know, remedy: remedy.into(), ..Hazard::fine(name, evidence) }
    }

    fn bad(name: &'static str, evidence: impl Into<String>, remedy: impl Into<String>) -> Hazard {
        Hazard { grade: Grade::Bad, ..Hazard::know(name, evidence, remedy) }
    }

    fn run(self, command: impl Into<String>) -> Hazard {
        Hazard { command: Some(command.into()), ..self }
    }
}

/// Each thing that is looked at, in the order in which those of one grade are told.
const ALL: &[fn(&Facts) -> Option<Hazard>] = &[
    processors::processors,
    processors::quota,
    processors::siblings,
    host::steal,
    activity::others,
    activity::spin,
    processors::governor,
    processors::turbo,
    processors::heat,
    processors::battery,
    host::clock,
    memory::memory,
    memory::swap,
    memory::huge_pages,
    memory::storage,
    network::open_files,
    network::accept_queue,
    network::ports,
    network::conntrack,
    network::link,
    host::hypervisor,
    host::container,
    host::numa,
    host::address_layout,
    host::kernel,
    host::flaws,
    rights::io_uring,
    rights::accounts,
    rights::profiles,
    rights::programs,
];

/// All that can be said, the worst first.
pub fn all(facts: &Facts) -> Vec<Hazard> {
    let mut hazards: Vec<Hazard> = ALL.iter().filter_map(|hazard| hazard(facts)).collect();
    hazards.sort_by_key(|hazard| hazard.grade);
    hazards
}
