//! The peak memory of a tree, in which pages that its processes share count once.
//!
//! The kernel keeps the peak of each process (`VmHWM`), and in it every resident page, shared or not. Workers of one program share
//! its text, some 40 MB of a Node.js process of 55 MB: summed up, four workers would seem to need twice what they need. The
//! proportional size (PSS) divides a page among all who map it, also among trees of other variants that happen to live at the
//! same time, so that it depends on them. So here:
//!
//! ```text
//!   for each program:  Σ (peak − shared)  +  the largest shared     over its processes; shared: now, of `smaps_rollup`
//! ```
//! Exact for one process, and for processes that share all with one another. Pages shared by different programs (the C library)
//! count for each program. Each process's peak counts whenever it was, and those of ended processes are not known any more. It
//! reads `/proc` only, milliseconds a process, so not during a measurement.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crate::process::Stat;

/// What counts of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Held {
    peak_bytes: u64,
    /// Of it, pages that others map as well; 0 where the kernel does not say.
    shared_bytes: u64,
}

/// Peak resident memory of these processes in bytes.
pub(crate) fn peak_bytes(processes: &[Stat]) -> u64 {
    let alive = processes.iter().filter(|stat| stat.is_alive()).map(|stat| stat.id.pid);
    let mut programs: BTreeMap<Option<PathBuf>, Vec<Held>> = BTreeMap::new();
    for pid in alive {
        // A program that may not be known shares with those that may not be known either.
        let program = fs::read_link(format!("/proc/{pid}/exe")).ok();
        programs.entry(program).or_default().push(Held::of(pid));
    }
    programs.values().map(|held| together_bytes(held)).sum()
}

/// Of processes of one program.
fn together_bytes(held: &[Held]) -> u64 {
    let private: u64 = held.iter().map(|held| held.peak_bytes - held.shared_bytes).sum();
    private + held.iter().map(|held| held.shared_bytes).max().unwrap_or(0)
}

impl Held {
    /// Zeros for a process that has ended.
    fn of(pid: u32) -> Held {
        let read = |file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        Held::parse(
            &String::from_utf8_lossy(&read("status")),
            &String::from_utf8_lossy(&read("smaps_rollup")),
        )
    }

    fn parse(status: &str, rollup: &str) -> Held {
        let peak_bytes = kilobytes(status, "VmHWM:") * 1024;
        let shared = kilobytes(rollup, "Shared_Clean:") + kilobytes(rollup, "Shared_Dirty:");
        // The two are counted in different ways; what is shared cannot be more than all.
        Held { peak_bytes, shared_bytes: (shared * 1024).min(peak_bytes) }
    }
}

/// The number after a name at the beginning of a line; 0 if there is none.
fn kilobytes(text: &str, name: &str) -> u64 {
    let value = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    value.split_ascii_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tnode\nVmPeak:\t 900000 kB\nVmHWM:\t   55000 kB\nVmRSS:\t   50000 kB\n";
    const ROLLUP: &str = "Rss:  50000 kB\nPss:  20000 kB\nShared_Clean:  40000 kB\nShared_Dirty:  1000 kB\n";

    #[test]
    fn what_workers_share_counts_once_and_what_is_their_own_for_each() {
        let node = Held::parse(STATUS, ROLLUP);
        assert_eq!((node.peak_bytes, node.shared_bytes), (55_000 * 1024, 41_000 * 1024));
        assert_eq!(together_bytes(&[node]), node.peak_bytes, "one process holds all that it holds");
        assert_eq!(together_bytes(&[node; 4]), (4 * 14_000 + 41_000) * 1024);
        assert_eq!(together_bytes(&[]), 0);
    }

    #[test]
    fn without_a_word_on_sharing_every_page_counts_and_nothing_is_less_than_nothing() {
        let unknown = Held::parse(STATUS, "");
        assert_eq!(together_bytes(&[unknown; 2]), 2 * 55_000 * 1024);
        let odd = Held::parse("VmHWM: 10 kB\n", ROLLUP);
        assert_eq!(odd.shared_bytes, odd.peak_bytes);
    }
}
