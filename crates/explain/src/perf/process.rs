//! What `/proc` says of a process and its threads. It reads; it keeps nothing.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;

/// Numbers of a process's threads; empty where it is gone.
pub(crate) fn threads(pid: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// The name of a thread, if it is still there.
pub(crate) fn thread_name(pid: u32, tid: u32) -> Option<String> {
    let name = fs::read(format!("/proc/{pid}/task/{tid}/comm")).ok()?;
    Some(String::from_utf8_lossy(&name).trim_end_matches('\n').to_owned())
}

/// CPUs that a thread may run on.
pub(crate) fn cpus(pid: u32, tid: u32) -> BTreeSet<u32> {
    let status = text(&format!("/proc/{pid}/task/{tid}/status"));
    cpu_list(field(&status, "Cpus_allowed_list:").unwrap_or_default())
}

/// Its number as it knows it itself: in a container another than ours.
pub(crate) fn own_number(pid: u32) -> u32 {
    let status = text(&format!("/proc/{pid}/status"));
    let innermost = field(&status, "NSpid:").and_then(|numbers| numbers.split_ascii_whitespace().last());
    innermost.and_then(|number| number.parse().ok()).unwrap_or(pid)
}

/// Its user.
pub(crate) fn user(pid: u32) -> Option<u32> {
    fs::metadata(format!("/proc/{pid}")).ok().map(|metadata| metadata.uid())
}

/// `/proc/PID/maps`; empty where the process is gone or may not be looked into.
pub(crate) fn maps(pid: u32) -> String {
    text(&format!("/proc/{pid}/maps"))
}

/// The value of a line of `/proc/PID/status`.
pub(crate) fn field<'t>(status: &'t str, name: &str) -> Option<&'t str> {
    status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

fn text(path: &str) -> String {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// `0-3,7`.
fn cpu_list(text: &str) -> BTreeSet<u32> {
    let ranges = text.split(',').filter_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
    });
    ranges.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_read_from_ranges() {
        assert_eq!(cpu_list("0-2,7").into_iter().collect::<Vec<_>>(), [0, 1, 2, 7]);
        assert!(cpu_list("").is_empty());
    }

    #[test]
    fn a_field_of_status_is_not_mistaken_for_one_that_begins_alike() {
        let status = "Name:\tNSpid:\nNSpid:\t812\t7\nSeccomp:\t2\nSeccomp_filters:\t1\n";
        assert_eq!(field(status, "NSpid:"), Some("812\t7"));
        assert_eq!(field(status, "Seccomp:"), Some("2"));
        assert_eq!(field(status, "CapEff:"), None);
    }
}
