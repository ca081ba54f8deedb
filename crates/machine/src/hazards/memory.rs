//! Hazards of memory and disk: too little of either, pages that were swapped out, pages that grow together.

use crate::Facts;
use crate::hazards::Hazard;
use crate::wording::{bytes, percent};

/// Memory below which a service and a generator with some thousand connections may push each other into swap.
pub const AVAILABLE_BAD_BYTES: u64 = 512 << 20;
/// Memory below which services of several workers may.
pub const AVAILABLE_KNOW_BYTES: u64 = 2 << 30;
/// What an idle machine has swapped out is less than this.
pub const SWAPPED_KNOW_BYTES: u64 = 64 << 20;
/// Room below which a record may not find its place: some 100 kB a block, and logs of up to a few megabytes a service.
pub const FREE_BAD_BYTES: u64 = 256 << 20;
/// Room below which prepared data, such as two gigabytes of JSON, may not.
pub const FREE_KNOW_BYTES: u64 = 4 << 30;

/// What programs can have.
pub fn memory(facts: &Facts) -> Option<Hazard> {
    let available = facts.memory.available_bytes?;
    let limit = facts.processors.group.memory_max_bytes;
    let limit = limit.filter(|limit| facts.memory.total_bytes.is_none_or(|total| *limit < total));
    let of = facts.memory.total_bytes.map(|total| format!(" of {}", bytes(total))).unwrap_or_default();
    let group = limit.map(|limit| format!(", {} allowed to this control group", bytes(limit)));
    let evidence = format!("{} available{of}{}", bytes(available), group.unwrap_or_default());
    let remedy =
        "what does not fit is swapped or killed, and the file cache goes first; end what is not needed";
    Some(match available.min(limit.unwrap_or(u64::MAX)) {
        least if least < AVAILABLE_BAD_BYTES => Hazard::bad("memory", evidence, remedy),
        least if least < AVAILABLE_KNOW_BYTES => Hazard::know("memory", evidence, remedy),
        _ => Hazard::fine("memory", evidence),
    })
}

/// Pages that were swapped out come back in the middle of a request.
pub fn swap(facts: &Facts) -> Option<Hazard> {
    let (room, used) = (facts.memory.swap_bytes?, facts.memory.swapped_bytes?);
    if room == 0 {
        return Some(Hazard::fine("swap", "none"));
    }
    let swappiness = facts.memory.swappiness.map(|value| format!("; swappiness {value}")).unwrap_or_default();
    let share = percent(used as f64 / room as f64);
    let evidence = format!("{} of {} taken ({share}){swappiness}", bytes(used), bytes(room));
    Some(match used > SWAPPED_KNOW_BYTES {
        false => Hazard::fine("swap", evidence),
        true => Hazard::know(
            "swap",
            evidence,
            "pages that are read back take milliseconds in the middle of a request; do without swap while you measure",
        )
        .run("swapoff -a"),
    })
}

/// Pages that the kernel puts together behind the programs' back.
pub fn huge_pages(facts: &Facts) -> Option<Hazard> {
    let mode = facts.memory.huge_pages.as_deref()?;
    let evidence = format!("transparent huge pages: {mode}");
    Some(match mode {
        "always" => Hazard::know(
            "huge_pages",
            evidence,
            "whether a heap gets them depends on how memory lies at its start, so equal processes differ in memory and speed; leave \
             them to programs that ask",
        )
        .run("echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"),
        _ => Hazard::fine("huge_pages", evidence),
    })
}

/// Room for records.
pub fn storage(facts: &Facts) -> Option<Hazard> {
    let storage = facts.asked.storage.as_ref()?;
    let evidence = format!("{} free where records go ({})", bytes(storage.free_bytes), storage.folder);
    Some(match storage.free_bytes {
        free if free < FREE_BAD_BYTES => {
            Hazard::bad("storage", evidence, "a record that cannot be written ends the run; make room")
        }
        free if free < FREE_KNOW_BYTES => Hazard::know(
            "storage",
            evidence,
            "enough for records, but perhaps not for prepared data; make room",
        ),
        _ => Hazard::fine("storage", evidence),
    })
}
