//! Everything below a process: its descendants, found from the top down.
//!
//! It reads `/proc` only. A snapshot of a tree in motion is never exact; whoever needs certainty (the warden, which
//! stops trees) asks again until nothing is left.

use std::collections::HashSet;
use std::fs;
use std::sync::OnceLock;

use crate::process::Stat;

/// Every descendant of `root`, parents before their children; ended ones that nobody has waited for are among them.
pub(crate) fn descendants(root: u32) -> Vec<Stat> {
    if kernel_lists_children() { by_children(root) } else { by_parents(root, &everyone()) }
}

/// Every process that may be seen.
pub(crate) fn everyone() -> Vec<Stat> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter_map(Stat::read)
        .collect()
}

/// Whether the kernel was built with CONFIG_PROC_CHILDREN. Without it all of `/proc` has to be read.
fn kernel_lists_children() -> bool {
    static LISTS: OnceLock<bool> = OnceLock::new();
    *LISTS.get_or_init(|| fs::exists("/proc/thread-self/children").unwrap_or(false))
}

fn by_children(root: u32) -> Vec<Stat> {
    let mut found = Vec::new();
    let mut seen = HashSet::from([root]);
    let mut waiting = children(root);
    while !waiting.is_empty() {
        while let Some(pid) = waiting.pop() {
            if seen.insert(pid)
                && let Some(stat) = Stat::read(pid)
            {
                found.push(stat);
                waiting.extend(children(pid));
            }
        }
        // Those whose parent ended while we looked have moved up to `root`, which adopts orphans.
        waiting = children(root).into_iter().filter(|pid| !seen.contains(pid)).collect();
    }
    found
}

/// A child belongs to the thread that started it, so each thread has its own list.
fn children(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    for thread in threads(pid) {
        let list = fs::read_to_string(format!("/proc/{pid}/task/{thread}/children")).unwrap_or_default();
        found.extend(list.split_ascii_whitespace().filter_map(|child| child.parse::<u32>().ok()));
    }
    found
}

/// Numbers of the threads of a process.
pub(crate) fn threads(pid: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// The descendants of `root` among `all`.
pub(crate) fn by_parents(root: u32, all: &[Stat]) -> Vec<Stat> {
    let mut found = Vec::new();
    let mut generation = vec![root];
    while !generation.is_empty() {
        let children: Vec<Stat> =
            all.iter().filter(|stat| generation.contains(&stat.ppid)).copied().collect();
        generation = children.iter().map(|stat| stat.id.pid).collect();
        found.extend(children);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn both_ways_of_looking_see_a_grandchild() {
        let mut child =
            Command::new("/bin/sh").args(["-c", "sleep 30 & wait"]).stdin(Stdio::null()).spawn().unwrap();
        let me = std::process::id();
        let of_child = |stats: Vec<Stat>| stats.iter().any(|stat| stat.ppid == child.id());
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
        while !of_child(descendants(me)) {
            assert!(std::time::Instant::now() < deadline, "the grandchild was never seen");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(of_child(by_parents(me, &everyone())));
        for stat in descendants(child.id()) {
            stat.id.signal(rustix::process::Signal::KILL);
        }
        child.wait().unwrap();
    }
}
