//! Memory and swap, and the size of pages. It reads texts and allocates nothing for a try.

use serde::Serialize;

use crate::texts::Texts;

/// Memory of the machine, in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// All there is.
    pub total_bytes: Option<u64>,
    /// What programs can have without swapping, as the kernel estimates it.
    pub available_bytes: Option<u64>,
    /// Room for swapped pages.
    pub swap_bytes: Option<u64>,
    /// How much of it is taken.
    pub swapped_bytes: Option<u64>,
    /// How readily the kernel swaps, 0 to 200.
    pub swappiness: Option<i64>,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub huge_pages: Option<String>,
}

impl Memory {
    pub(super) fn of(texts: &Texts) -> Memory {
        let bytes = |name: &str| texts.field("/proc/meminfo", name).and_then(kilobytes);
        let (swap, free) = (bytes("SwapTotal"), bytes("SwapFree"));
        let pages = texts.line("/sys/kernel/mm/transparent_hugepage/enabled");
        Memory {
            total_bytes: bytes("MemTotal"),
            available_bytes: bytes("MemAvailable"),
            swap_bytes: swap,
            swapped_bytes: swap.zip(free).map(|(swap, free)| swap.saturating_sub(free)),
            swappiness: texts.number("/proc/sys/vm/swappiness"),
            // The one in brackets is in force: `always [madvise] never`.
            huge_pages: pages.and_then(|line| Some(line.split_once('[')?.1.split_once(']')?.0.to_owned())),
        }
    }
}

fn kilobytes(text: &str) -> Option<u64> {
    text.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}
