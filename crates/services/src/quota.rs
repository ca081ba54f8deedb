//! Where the kernel tells how long a quota of CPU time has held processes back.
//!
//! A quota may be set on any control group above a process, by whoever made that group. It finds their files and reads none of
//! their figures.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The files `cpu.stat` of the control groups that this process and `pids` are in and of all groups above them, as far as they can be
/// seen: in a container the outer ones cannot. Empty where groups are not mounted.
pub fn quota_files(pids: &[u32]) -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let processes = std::iter::once("self".to_owned()).chain(pids.iter().map(u32::to_string));
    let groups = processes.map(|pid| fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default());
    let mut files: Vec<PathBuf> = groups.flat_map(|groups| files(&mounts, &groups)).collect();
    files.sort_unstable();
    files.dedup();
    // A hierarchy may be mounted at several places.
    let mut seen = HashSet::new();
    files.retain(|file| fs::metadata(file).is_ok_and(|file| seen.insert((file.dev(), file.ino()))));
    files
}

/// By the texts of `/proc/self/mountinfo` and of a process's `/proc/PID/cgroup`.
fn files(mounts: &str, groups: &str) -> Vec<PathBuf> {
    let mounted = mounts.lines().filter_map(Mount::read);
    let places = mounted.filter_map(|mount| {
        let path = groups.lines().find_map(|line| mount.path_of(line))?;
        let below = Path::new(path).strip_prefix(mount.root).ok()?;
        Some((Path::new(mount.point).join(below), mount.point))
    });
    places.flat_map(|(group, top)| of_all_above(&group, Path::new(top))).collect()
}

/// The group's file, and those of the groups above it up to the mount.
fn of_all_above(group: &Path, top: &Path) -> Vec<PathBuf> {
    let above = group.ancestors().take_while(|folder| folder.starts_with(top));
    above.map(|folder| folder.join("cpu.stat")).collect()
}

/// A hierarchy of groups that can have quotas.
struct Mount<'a> {
    root: &'a str,
    point: &'a str,
    unified: bool,
}

impl<'a> Mount<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let (place, kind) = line.split_once(" - ")?;
        let mut kind = kind.split(' ');
        let (file_system, options) = (kind.next()?, kind.nth(1)?);
        let unified = file_system == "cgroup2";
        let limits = file_system == "cgroup" && options.split(',').any(|option| option == "cpu");
        let mut place = place.split(' ').skip(3);
        (unified || limits).then_some(Self { root: place.next()?, point: place.next()?, unified })
    }

    /// The path of a line of `/proc/PID/cgroup`, if it is about this hierarchy.
    fn path_of<'b>(&self, line: &'b str) -> Option<&'b str> {
        let mut parts = line.splitn(3, ':');
        let (number, controllers) = (parts.next()?, parts.next()?);
        let fits = match self.unified {
            true => number == "0" && controllers.is_empty(),
            false => controllers.split(',').any(|controller| controller == "cpu"),
        };
        fits.then_some(parts.next()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(mounts: &str, groups: &str) -> Vec<String> {
        files(mounts, groups).iter().map(|file| file.display().to_string()).collect()
    }

    #[test]
    fn a_quota_is_looked_for_in_every_group_above_a_process_and_only_where_quotas_can_be() {
        let groups = "3:cpuset:/x\n2:cpuacct:/x\n1:cpu,pids:/a/b\n0::/user.slice/a:b\n";
        let old = "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu\n\
                   33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct\n";
        let of_old = ["/sys/fs/cgroup/cpu/a/b", "/sys/fs/cgroup/cpu/a", "/sys/fs/cgroup/cpu"];
        assert_eq!(found(old, groups), of_old.map(|folder| format!("{folder}/cpu.stat")));
        let new = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
        let of_new = ["/sys/fs/cgroup/user.slice/a:b", "/sys/fs/cgroup/user.slice", "/sys/fs/cgroup"];
        assert_eq!(found(new, groups), of_new.map(|folder| format!("{folder}/cpu.stat")));
    }

    #[test]
    fn of_a_container_only_what_is_mounted_is_read() {
        let mount = "30 23 0:26 /pods/one /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
        assert_eq!(
            found(mount, "0::/pods/one/app\n"),
            ["/sys/fs/cgroup/app/cpu.stat", "/sys/fs/cgroup/cpu.stat"]
        );
        assert!(found(mount, "0::/elsewhere\n").is_empty());
        assert!(found("", "0::/\n").is_empty() && found(mount, "garbage").is_empty());
    }
}
