//! The control groups of this process: a quota of CPU time, what it has cost so far, and where accounts are kept.
//!
//! Control groups come in two versions, often side by side. Both are read; nothing is made or written.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use serde::Serialize;

use crate::texts::Texts;

/// What is read in each folder of a group.
pub(crate) const FILES: &[&str] =
    &["cpu.cfs_period_us", "cpu.cfs_quota_us", "cpu.max", "cpu.stat", "memory.limit_in_bytes", "memory.max"];
/// What v1 says where memory has no limit: the largest multiple of a page that fits. Anything near it is no limit.
const UNLIMITED_BYTES: u64 = 1 << 60;

/// The groups of this process.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Group {
    /// The tightest quota of CPU time of this group and those around it, as far as they can be seen.
    pub quota: Option<Quota>,
    /// The tightest limit on memory, in bytes.
    pub memory_max_bytes: Option<u64>,
    /// Folder below which a group that only counts CPU time might be made.
    pub accounts: Option<String>,
}

/// CPU time that a group may use in each period; who has used it up waits for the next.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Quota {
    /// CPU time per time: 1.5 is one and a half processors.
    pub processors: f64,
    /// The period, in microseconds.
    pub period_us: u64,
    /// Periods in which the group was held back so far.
    pub throttled: u64,
    /// For how long in all, in nanoseconds.
    pub throttled_ns: u64,
    /// The file that sets it.
    pub file: String,
}

/// A hierarchy of groups that this process is in.
struct Hierarchy {
    /// From the own group up to where it is mounted.
    folders: Vec<PathBuf>,
    /// Controllers of v1; empty is v2.
    controllers: Vec<String>,
}

impl Group {
    pub(super) fn of(texts: &Texts) -> Group {
        let hierarchies = hierarchies(texts);
        let folders = || hierarchies.iter().flat_map(|hierarchy| &hierarchy.folders);
        let quotas = folders().filter_map(|folder| quota(texts, &folder.display().to_string()));
        let memory = folders().filter_map(|folder| memory_max(texts, &folder.display().to_string()));
        Group {
            quota: quotas.reduce(|one, other| if other.processors < one.processors { other } else { one }),
            memory_max_bytes: memory.min(),
            accounts: accounts(&hierarchies),
        }
    }
}

impl Group {
    /// Whether a group that counts and does nothing else may be made, as far as can be told without making one.
    pub fn can_account(&self) -> bool {
        let Some(folder) = &self.accounts else { return false };
        let handed_down = fs::read_to_string(format!("{folder}/cgroup.subtree_control")).unwrap_or_default();
        let divides = handed_down.split_ascii_whitespace().any(|name| name == "cpu");
        !divides && access(folder.as_str(), Access::WRITE_OK).is_ok()
    }
}

/// All folders whose files tell about the groups of this process.
pub(crate) fn folders(texts: &Texts) -> Vec<String> {
    let folders = hierarchies(texts).into_iter().flat_map(|hierarchy| hierarchy.folders);
    folders.map(|folder| folder.display().to_string()).collect()
}

/// The first hierarchy that counts CPU time without dividing it: `cpuacct` alone, or v2.
fn accounts(hierarchies: &[Hierarchy]) -> Option<String> {
    let has = |hierarchy: &&Hierarchy, name: &str| hierarchy.controllers.iter().any(|one| one == name);
    let counting = hierarchies.iter().find(|one| has(one, "cpuacct") && !has(one, "cpu"));
    let unified = || hierarchies.iter().find(|one| one.controllers.is_empty());
    counting.or_else(unified)?.folders.first().map(|folder| folder.display().to_string())
}

fn hierarchies(texts: &Texts) -> Vec<Hierarchy> {
    let mounts = texts.get("/proc/self/mountinfo").unwrap_or_default();
    let groups = texts.get("/proc/self/cgroup").unwrap_or_default();
    mounts.lines().filter_map(|line| hierarchy(line, groups)).collect()
}

/// One line of mountinfo: `31 23 0:28 ROOT MOUNT_POINT OPTIONS [TAGS] - TYPE SOURCE SUPER_OPTIONS`.
fn hierarchy(mount: &str, groups: &str) -> Option<Hierarchy> {
    let (place, kind) = mount.split_once(" - ")?;
    let mut place = place.split(' ').skip(3);
    let (root, mount_point) = (place.next()?, Path::new(place.next()?));
    let mut kind = kind.split(' ');
    let controllers: Vec<String> = match kind.next()? {
        "cgroup2" => Vec::new(),
        "cgroup" => kind.nth(1)?.split(',').map(str::to_owned).collect(),
        _ => return None,
    };
    // Where nothing but `rw` and other options of the mount are named, it is no hierarchy that is looked for.
    let own = groups.lines().find_map(|line| own_path(line, &controllers))?;
    // In a container the mount may show a part of the hierarchy only.
    let below = Path::new(own).strip_prefix(root).unwrap_or(Path::new(""));
    // Put together anew, for to join nothing leaves a slash at the end.
    let ours: PathBuf = mount_point.join(below).components().collect();
    let folders = ours.ancestors().take_while(|folder| folder.starts_with(mount_point)).map(Path::to_owned);
    Some(Hierarchy { folders: folders.collect(), controllers })
}

/// The path in a line of /proc/self/cgroup, `NUMBER:CONTROLLERS:PATH`, if it is this hierarchy's.
fn own_path<'t>(line: &'t str, controllers: &[String]) -> Option<&'t str> {
    let (named, path) = line.split_once(':')?.1.split_once(':')?;
    let same = match named {
        "" => controllers.is_empty(),
        named => named.split(',').all(|name| controllers.iter().any(|one| one == name)),
    };
    same.then_some(path)
}

fn quota(texts: &Texts, folder: &str) -> Option<Quota> {
    let v2 = format!("{folder}/cpu.max");
    let v1 = format!("{folder}/cpu.cfs_quota_us");
    let (quota_us, period_us, file) = match texts.line(&v2) {
        Some(line) => {
            let (quota, period) = line.split_once(' ')?;
            (quota.parse::<u64>().ok()?, period.trim().parse::<u64>().ok()?, v2)
        }
        // −1 is none.
        None => {
            let period = texts.number(&format!("{folder}/cpu.cfs_period_us"))?;
            (u64::try_from(texts.number(&v1)?).ok()?, u64::try_from(period).ok()?, v1)
        }
    };
    let told = texts.get(&format!("{folder}/cpu.stat")).unwrap_or_default();
    let counted = |name: &str| {
        let value = told.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.and_then(|value| value.trim().parse::<u64>().ok())
    };
    let throttled_ns = counted("throttled_usec").map(|us| us.saturating_mul(1000));
    (period_us > 0).then(|| Quota {
        processors: quota_us as f64 / period_us as f64,
        period_us,
        throttled: counted("nr_throttled").unwrap_or(0),
        throttled_ns: throttled_ns.or_else(|| counted("throttled_time")).unwrap_or(0),
        file,
    })
}

fn memory_max(texts: &Texts, folder: &str) -> Option<u64> {
    let line = |file: &str| texts.line(&format!("{folder}/{file}"));
    let bytes = line("memory.max").or_else(|| line("memory.limit_in_bytes"))?.parse().ok()?;
    Some(bytes).filter(|bytes| *bytes < UNLIMITED_BYTES)
}
