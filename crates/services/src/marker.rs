//! The mark on every process of a service: a variable of its environment that says whose it is.
//!
//! A name and its reading, no more; who looks for it is [`crate::orphans`].

use std::fmt;

use crate::process::ProcessId;

/// The environment variable that carries it.
pub(crate) const VARIABLE: &str = "PROOFLOAD_TRIAL";

/// Which Proofload started a service, and which of its services it is: `PID-START-RANDOM`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Marker {
    text: String,
    proofload: ProcessId,
}

impl Marker {
    /// One for a service that this process starts.
    pub fn new() -> Self {
        let pid = std::process::id();
        // Without /proc nothing could be found by it later either, so any start does.
        let proofload = ProcessId::of(pid).unwrap_or(ProcessId { pid, start_ticks: 0 });
        let text = format!("{}-{}-{:016x}", proofload.pid, proofload.start_ticks, rand::random::<u64>());
        Self { text, proofload }
    }

    /// Reads the value of a variable, or the end of a group's name.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '-');
        let pid = parts.next()?.parse().ok()?;
        let start_ticks = parts.next()?.parse().ok()?;
        u64::from_str_radix(parts.next()?, 16).ok()?;
        Some(Self { text: text.to_owned(), proofload: ProcessId { pid, start_ticks } })
    }

    /// The Proofload that started it.
    pub fn proofload(&self) -> ProcessId {
        self.proofload
    }

    /// The variable's value.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_names_its_proofload() {
        let marker = Marker::new();
        assert_eq!(Marker::parse(marker.as_str()), Some(marker.clone()));
        assert_eq!(marker.proofload().pid, std::process::id());
        assert_ne!(Marker::new(), marker);
        assert_eq!(Marker::parse("12-34"), None);
    }
}
