//! A control group that counts the CPU time of a service's tree, also of children too short-lived to be seen.
//!
//! It counts and nothing else: where a new group would come with a scheduling group of its own (the `cpu` controller),
//! which would change what is measured, there is none. It is made and removed by the warden; Proofload reads it.
//! Joining it makes the kernel wait for a grace period, so a start takes up to 15 ms longer, without work for any CPU.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::marker::Marker;

/// Beginning of the names of our groups; a marker follows.
const PREFIX: &str = "proofload-";
/// A group can be removed some moments after its last process has gone.
const REMOVAL_TRIES: u32 = 50;
const REMOVAL_PAUSE: Duration = Duration::from_millis(4);

/// Which hierarchy a group is in, and so where its CPU time stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Hierarchy {
    /// cgroup v1 with `cpuacct` mounted without `cpu`: `cpuacct.usage`, nanoseconds.
    Accounting,
    /// cgroup v2: `usage_usec` of `cpu.stat`.
    Unified,
}

/// One group, by its folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CpuGroup {
    directory: PathBuf,
    hierarchy: Hierarchy,
}

impl CpuGroup {
    /// Makes a group below our own, in the first hierarchy that lets us; `None` where none does.
    pub fn create(marker: &Marker) -> Option<Self> {
        [Hierarchy::Accounting, Hierarchy::Unified]
            .into_iter()
            .find_map(|hierarchy| Self::create_in(hierarchy, marker))
    }

    fn create_in(hierarchy: Hierarchy, marker: &Marker) -> Option<Self> {
        let parent = own_directory(hierarchy)?;
        remove_abandoned(&parent);
        let group = Self { directory: parent.join(format!("{PREFIX}{marker}")), hierarchy };
        fs::create_dir(&group.directory).ok()?;
        let counts_only = !group.directory.join("cpu.weight").exists() && group.cpu_ns().is_some();
        if counts_only && group.entrance().is_ok() {
            return Some(group);
        }
        group.remove();
        None
    }

    /// A process that writes `0` to this file has joined, with all children it will have.
    pub fn entrance(&self) -> io::Result<File> {
        OpenOptions::new().write(true).open(self.directory.join("cgroup.procs"))
    }

    /// CPU time of all processes that are or were in the group. That of a thread running this moment is up to a
    /// scheduler tick (1 to 10 ms) old.
    pub fn cpu_ns(&self) -> Option<u64> {
        match self.hierarchy {
            Hierarchy::Accounting => self.read("cpuacct.usage")?.trim().parse().ok(),
            Hierarchy::Unified => {
                let statistics = self.read("cpu.stat")?;
                let usage = statistics.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
                Some(usage.trim().parse::<u64>().ok()? * 1000)
            }
        }
    }

    /// Numbers of the processes in it.
    pub fn members(&self) -> Vec<u32> {
        let list = self.read("cgroup.procs").unwrap_or_default();
        list.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Removes it, once it is empty; gives up after a fifth of a second.
    pub fn remove(&self) {
        for _ in 0..REMOVAL_TRIES {
            match fs::remove_dir(&self.directory) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => thread::sleep(REMOVAL_PAUSE),
                _ => return,
            }
        }
    }

    fn read(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.directory.join(file)).ok()
    }
}

/// Removes groups whose Proofload and warden were both killed: nobody else will. Busy ones refuse.
fn remove_abandoned(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let marker = name.to_str().and_then(|name| name.strip_prefix(PREFIX)).and_then(Marker::parse);
        if marker.is_some_and(|marker| !marker.proofload().is_alive()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// The folder of the group that this process is in.
fn own_directory(hierarchy: Hierarchy) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let (root, mount_point) = mounts.lines().find_map(|line| mount_of(hierarchy, line))?;
    let own = groups.lines().find_map(|line| path_in(hierarchy, line))?;
    // In a container the mount may show a part of the hierarchy only.
    Some(Path::new(mount_point).join(Path::new(own).strip_prefix(root).ok()?))
}

/// Root and mount point of a line of `/proc/self/mountinfo`, if it mounts this hierarchy.
fn mount_of(hierarchy: Hierarchy, line: &str) -> Option<(&str, &str)> {
    let (place, kind) = line.split_once(" - ")?;
    let mut kind = kind.split(' ');
    let (file_system, options) = (kind.next()?, kind.nth(1)?);
    let fits = match hierarchy {
        Hierarchy::Unified => file_system == "cgroup2",
        Hierarchy::Accounting => {
            let has = |wanted| options.split(',').any(|option| option == wanted);
            file_system == "cgroup" && has("cpuacct") && !has("cpu")
        }
    };
    let mut place = place.split(' ').skip(3);
    fits.then_some((place.next()?, place.next()?))
}

/// The path of a line of `/proc/self/cgroup`, if it is about this hierarchy.
fn path_in(hierarchy: Hierarchy, line: &str) -> Option<&str> {
    let mut parts = line.splitn(3, ':');
    let (number, controllers) = (parts.next()?, parts.next()?);
    let fits = match hierarchy {
        Hierarchy::Unified => number == "0" && controllers.is_empty(),
        Hierarchy::Accounting => controllers.split(',').any(|controller| controller == "cpuacct"),
    };
    fits.then_some(parts.next()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::time::Instant;

    #[test]
    fn a_hierarchy_that_would_change_scheduling_is_not_taken() {
        let line = |kind, options| {
            format!("31 24 0:27 / /sys/fs/cgroup/x rw,nosuid shared:9 - {kind} {kind} {options}")
        };
        let accounting = line("cgroup", "rw,cpuacct");
        assert_eq!(mount_of(Hierarchy::Accounting, &accounting), Some(("/", "/sys/fs/cgroup/x")));
        assert_eq!(mount_of(Hierarchy::Accounting, &line("cgroup", "rw,cpu,cpuacct")), None);
        assert_eq!(mount_of(Hierarchy::Unified, &line("cgroup2", "rw")), Some(("/", "/sys/fs/cgroup/x")));
        assert_eq!(path_in(Hierarchy::Unified, "0::/user.slice/a:b"), Some("/user.slice/a:b"));
        assert_eq!(path_in(Hierarchy::Accounting, "4:cpu,cpuacct:/a"), Some("/a"));
        assert_eq!(path_in(Hierarchy::Accounting, "0::/a"), None);
    }

    #[test]
    fn a_group_counts_what_its_processes_use() {
        for hierarchy in [Hierarchy::Accounting, Hierarchy::Unified] {
            let Some(group) = CpuGroup::create_in(hierarchy, &Marker::new()) else { continue };
            let mut child = Command::new("/bin/sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
            fs::write(group.directory.join("cgroup.procs"), child.id().to_string()).unwrap();
            let deadline = Instant::now() + Duration::from_secs(20);
            while group.cpu_ns().unwrap() < 50_000_000 && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(5));
            }
            let (used_ns, members) = (group.cpu_ns().unwrap(), group.members());
            child.kill().unwrap();
            child.wait().unwrap();
            group.remove();
            assert!(used_ns >= 50_000_000, "{hierarchy:?}: {used_ns}");
            assert_eq!(members, [child.id()]);
        }
    }

    #[test]
    fn a_group_goes_when_its_maker_removes_it_and_an_abandoned_one_with_the_next() {
        for hierarchy in [Hierarchy::Accounting, Hierarchy::Unified] {
            let Some(group) = CpuGroup::create_in(hierarchy, &Marker::new()) else { continue };
            let abandoned = group.directory.with_file_name(format!("{PREFIX}4194305-1-00"));
            fs::create_dir(&abandoned).unwrap();
            let next = CpuGroup::create_in(hierarchy, &Marker::new()).unwrap();
            assert!(!abandoned.exists() && group.directory.exists());
            group.remove();
            next.remove();
            assert!(!group.directory.exists() && !next.directory.exists());
        }
    }
}
