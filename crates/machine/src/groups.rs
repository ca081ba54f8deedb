//! Control groups of processes, with their CPU time and memory.
//!
//! There are two versions, often in parallel. Both are read. Nothing is created or written.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use procfs_core::process::MountInfo;
use procfs_core::{FromRead, ProcessCGroups};
use serde::{Deserialize, Serialize};

use crate::process::{Stat, everyone, names, patiently, text};

/// A control group hierarchy, as mounted here.
#[derive(Debug, Clone)]
pub(crate) struct Hierarchy {
    mount: MountInfo,
    unified: bool,
}

/// The hierarchies in a text of `/proc/PID/mountinfo`.
pub(crate) fn hierarchies(mounts: &str) -> Vec<Hierarchy> {
    let mounts = mounts
        .lines()
        .filter_map(|line| MountInfo::from_line(line).ok());
    let groups = mounts.filter(|mount| matches!(mount.fs_type.as_str(), "cgroup" | "cgroup2"));
    groups
        .map(|mount| Hierarchy {
            unified: mount.fs_type == "cgroup2",
            mount,
        })
        .collect()
}

/// A mount point in a folder or on it, as visible to this process.
pub fn mounted_in(folder: &Path) -> Option<PathBuf> {
    let (folder, mounts) = (
        folder.canonicalize().ok()?,
        text(std::process::id(), "mountinfo"),
    );
    let mut points = mounts
        .lines()
        .filter_map(|line| Some(MountInfo::from_line(line).ok()?.mount_point));
    points.find(|point| point.starts_with(&folder))
}

impl Hierarchy {
    /// Whether it is a version 1 hierarchy with this controller.
    fn has(&self, controller: &str) -> bool {
        !self.unified && self.mount.super_options.contains_key(controller)
    }

    /// The folder of a process's group by its `/proc/PID/cgroup`, and its ancestors up to the mount. In a
    /// container the outer ones are not visible. Empty if this hierarchy does not show the group.
    pub fn folders(&self, groups: &str) -> Vec<PathBuf> {
        let Ok(ProcessCGroups(groups)) = ProcessCGroups::from_read(groups.as_bytes()) else {
            return Vec::new();
        };
        let own = groups.iter().find(|group| match self.unified {
            true => group.controllers.is_empty(),
            false => {
                !group.controllers.is_empty() && group.controllers.iter().all(|name| self.has(name))
            }
        });
        let below =
            own.and_then(|own| Path::new(&own.pathname).strip_prefix(&self.mount.root).ok());
        // A group above our own cgroup namespace is shown as a path with `..`, which is not within this
        // mount.
        let is_shown = |below: &&Path| !below.components().any(|part| part == Component::ParentDir);
        let Some(below) = below.filter(is_shown) else {
            return Vec::new();
        };
        // Rebuilt from components, because joining an empty path leaves a trailing slash.
        let own: PathBuf = self.mount.mount_point.join(below).components().collect();
        let top = &self.mount.mount_point;
        own.ancestors()
            .take_while(|folder| folder.starts_with(top))
            .map(Path::to_owned)
            .collect()
    }
}

/// The files `cpu.stat` of this process's control groups and all their visible ancestors, because any of them
/// may have a quota. Empty if no groups are mounted.
pub fn quota_files() -> Vec<PathBuf> {
    quota_files_around(&[std::process::id()])
}

/// The files around these processes but not around us: of a container, of a systemd unit, of a process's own
/// group.
pub fn quota_files_beside(pids: &[u32]) -> Vec<PathBuf> {
    let ours = quota_files();
    quota_files_around(pids)
        .into_iter()
        .filter(|file| !ours.contains(file))
        .collect()
}

fn quota_files_around(pids: &[u32]) -> Vec<PathBuf> {
    let groups: Vec<String> = pids.iter().map(|pid| text(*pid, "cgroup")).collect();
    let mut files = quota_files_of(&text(std::process::id(), "mountinfo"), &groups);
    // Processes may share a group, and a hierarchy may be mounted in several places.
    let mut seen = HashSet::new();
    files.retain(|file| fs::metadata(file).is_ok_and(|file| seen.insert((file.dev(), file.ino()))));
    files
}

/// The same from the texts of `/proc/self/mountinfo` and of each process's `/proc/PID/cgroup`, whether or not
/// the files exist.
fn quota_files_of(mounts: &str, groups: &[String]) -> Vec<PathBuf> {
    let limiting = hierarchies(mounts)
        .into_iter()
        .filter(|one| one.unified || one.has("cpu"));
    let folders =
        limiting.flat_map(|one| groups.iter().flat_map(move |groups| one.folders(groups)));
    folders.map(|folder| folder.join("cpu.stat")).collect()
}

/// Total time that quotas have throttled processes so far, by these files, in nanoseconds. A removed file
/// counts as zero.
pub fn held_back_ns(quota_files: &[PathBuf]) -> u64 {
    let now = |file: &PathBuf| patiently(|| fs::read_to_string(file)).unwrap_or_default();
    quota_files
        .iter()
        .map(|file| throttled_ns(&now(file)))
        .sum()
}

/// The groups of a process in hierarchies that count CPU time without dividing it, by its `mountinfo` and
/// `cgroup`. Version 2 comes first, whose groups can be killed at once, then `cpuacct` without `cpu`.
pub fn counting(mounts: &str, groups: &str) -> Vec<ControlGroup> {
    let counting = |one: &Hierarchy| one.unified || one.has("cpuacct") && !one.has("cpu");
    let mut found: Vec<ControlGroup> = groups_in(mounts, groups, counting)
        .map(|(group, _)| group)
        .collect();
    found.sort_by_key(|group| !group.unified);
    found
}

/// The group of a process in each of these hierarchies, and whether it has a parent.
fn groups_in(
    mounts: &str,
    groups: &str,
    wanted: impl Fn(&Hierarchy) -> bool,
) -> impl Iterator<Item = (ControlGroup, bool)> {
    hierarchies(mounts)
        .into_iter()
        .filter(wanted)
        .filter_map(move |one| {
            let folders = one.folders(groups);
            Some((
                ControlGroup {
                    folder: folders.first()?.clone(),
                    unified: one.unified,
                },
                folders.len() > 1,
            ))
        })
}

/// The group that counts the CPU time of a process and others in it. Excludes the root group, which counts
/// everything.
pub fn of(pid: u32) -> Option<ControlGroup> {
    let (mounts, groups) = (text(std::process::id(), "mountinfo"), text(pid, "cgroup"));
    let found = groups_in(&mounts, &groups, |one| one.unified || one.has("cpuacct"));
    // If both versions exist, engines use the older one.
    found
        .filter(|(_, is_below)| *is_below)
        .map(|(group, _)| group)
        .min_by_key(|group| group.unified)
}

/// Whether pods with any of these UIDs run on this machine, including pods of a cluster in containers (kind,
/// minikube).
pub fn have_pods_here<'a>(uids: impl IntoIterator<Item = &'a str>) -> bool {
    let uids: Vec<&str> = uids.into_iter().filter(|uid| !uid.is_empty()).collect();
    let is_in_one = |stat: &Stat| {
        let groups = text(stat.id.pid, "cgroup");
        uids.iter().any(|uid| is_of_pod(&groups, uid))
    };
    !uids.is_empty() && everyone().iter().any(is_in_one)
}

/// Kubelets name the control group of a pod by its UID, in which systemd requires `_` for `-`.
fn is_of_pod(groups: &str, uid: &str) -> bool {
    [uid, &uid.replace('-', "_")]
        .iter()
        .any(|uid| groups.contains(&format!("pod{uid}")))
}

/// A control group, by its folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlGroup {
    /// Its folder in a hierarchy that counts CPU time.
    pub folder: PathBuf,
    /// Whether it is of version 2.
    pub unified: bool,
}

impl ControlGroup {
    /// CPU time of all processes that are or were in the group, in nanoseconds. The part of a currently
    /// running thread is up to a scheduler tick (1 to 10 ms) old.
    pub fn cpu_ns(&self) -> Option<u64> {
        match self.unified {
            true => Some(counted(&self.read("cpu.stat")?, "usage_usec")? * 1000),
            false => self.read("cpuacct.usage")?.trim().parse().ok(),
        }
    }

    /// PIDs of the processes in it and in its subgroups.
    pub fn members(&self) -> Vec<u32> {
        let list = self.read("cgroup.procs").unwrap_or_default();
        let mut members: Vec<u32> = list.lines().filter_map(|line| line.parse().ok()).collect();
        let entries = names(&self.folder)
            .unwrap_or_default()
            .into_iter()
            .map(|name| self.folder.join(name));
        for folder in entries.filter(|entry| entry.is_dir()) {
            members.extend(
                ControlGroup {
                    folder,
                    unified: self.unified,
                }
                .members(),
            );
        }
        members
    }

    fn read(&self, file: &str) -> Option<String> {
        patiently(|| fs::read_to_string(self.folder.join(file))).ok()
    }
}

/// The number on the line `NAME NUMBER`.
pub(crate) fn counted(text: &str, name: &str) -> Option<u64> {
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    value.trim().parse().ok()
}

/// The throttled time of a group by its `cpu.stat`: nanoseconds as `throttled_time` (version 1), microseconds
/// as `throttled_usec` (version 2). 0 without a quota.
pub(crate) fn throttled_ns(cpu_stat: &str) -> u64 {
    let in_us = || counted(cpu_stat, "throttled_usec").map(|us| us.saturating_mul(1000));
    counted(cpu_stat, "throttled_time")
        .or_else(in_us)
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(mounts: &str, groups: &str) -> Vec<String> {
        let files = quota_files_of(mounts, &[groups.to_owned()]);
        files
            .iter()
            .map(|file| file.display().to_string())
            .collect()
    }

    #[test]
    fn a_quota_is_looked_for_in_every_group_above_a_process_and_only_where_quotas_can_be() {
        let groups = "3:cpuset:/x\n2:cpuacct:/x\n1:cpu:/a/b\n0::/user.slice/a:b\n";
        let old = "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu\n\
                   33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct\n";
        let of_old = [
            "/sys/fs/cgroup/cpu/a/b",
            "/sys/fs/cgroup/cpu/a",
            "/sys/fs/cgroup/cpu",
        ];
        assert_eq!(
            found(old, groups),
            of_old.map(|folder| format!("{folder}/cpu.stat"))
        );
        let new = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
        assert_eq!(
            counting(old, groups)[0].folder,
            Path::new("/sys/fs/cgroup/cpuacct/x")
        );
        let both = format!(
            "{old}{}",
            new.replace("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
        );
        let unified: Vec<bool> = counting(&both, groups)
            .iter()
            .map(|group| group.unified)
            .collect();
        assert_eq!(unified, [true, false]);
        assert!(counting(&old.replace("rw,cpuacct", "rw,cpu,cpuacct"), groups).is_empty());
        let of_new = [
            "/sys/fs/cgroup/user.slice/a:b",
            "/sys/fs/cgroup/user.slice",
            "/sys/fs/cgroup",
        ];
        assert_eq!(
            found(new, groups),
            of_new.map(|folder| format!("{folder}/cpu.stat"))
        );
    }

    #[test]
    fn a_pod_of_a_cluster_in_a_container_is_known_by_its_group() {
        let kind = "0::/docker/4f2a/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod7c1b_09aa.slice/cri-12.scope\n";
        assert!(is_of_pod(kind, "7c1b-09aa") && !is_of_pod(kind, "7c1b-09ab"));
        assert!(is_of_pod(
            "0::/kubepods/burstable/pod7c1b-09aa/12\n",
            "7c1b-09aa"
        ));
    }

    #[test]
    fn of_a_container_only_what_is_mounted_is_read() {
        let mount = "30 23 0:26 /pods/one /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
        let of_app = ["/sys/fs/cgroup/app/cpu.stat", "/sys/fs/cgroup/cpu.stat"];
        assert_eq!(found(mount, "0::/pods/one/app\n"), of_app);
        assert!(found(mount, "0::/elsewhere\n").is_empty());
        assert!(found("", "0::/\n").is_empty() && found(mount, "garbage").is_empty());
        // In a container that shows the host's processes, the group of a neighbour.
        let own = "30 23 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
        assert!(found(own, "0::/../docker-4f2a.scope\n").is_empty());
    }
}
