//! The files of /proc and /sys that tell about a machine, as text by path: read here, or kept from another machine.
//!
//! A file that is not there is no error: it tells that the kernel has no such thing. It must not understand what it reads.

use std::collections::BTreeMap;
use std::fs;

use crate::facts::{GROUP_FILES, group_folders};
use crate::process::field;

/// Files of which there is one.
const FILES: &[&str] = &[
    "/.dockerenv",
    "/proc/cpuinfo",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/self/cgroup",
    "/proc/self/limits",
    "/proc/self/mountinfo",
    "/proc/self/status",
    "/proc/stat",
    "/proc/sys/kernel/io_uring_disabled",
    "/proc/sys/kernel/kptr_restrict",
    "/proc/sys/kernel/numa_balancing",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/kernel/perf_event_paranoid",
    "/proc/sys/kernel/randomize_va_space",
    "/proc/sys/net/core/somaxconn",
    "/proc/sys/net/ipv4/ip_local_port_range",
    "/proc/sys/net/ipv4/tcp_max_syn_backlog",
    "/proc/sys/net/ipv4/tcp_tw_reuse",
    "/proc/sys/net/netfilter/nf_conntrack_count",
    "/proc/sys/net/netfilter/nf_conntrack_max",
    "/proc/sys/vm/swappiness",
    "/run/.containerenv",
    "/sys/class/dmi/id/product_name",
    "/sys/class/dmi/id/sys_vendor",
    "/sys/devices/system/clocksource/clocksource0/available_clocksource",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "/sys/devices/system/cpu/cpufreq/boost",
    "/sys/devices/system/cpu/intel_pstate/no_turbo",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/node/online",
    "/sys/hypervisor/type",
    "/sys/kernel/mm/transparent_hugepage/enabled",
];

/// Folders with an entry for each of something: the folder, how its entries begin, and what is read of each.
const ENTRIES: &[(&str, &str, &[&str])] = &[
    (
        "/sys/devices/system/cpu",
        "cpu",
        &[
            "cpufreq/cpuinfo_max_freq",
            "cpufreq/cpuinfo_min_freq",
            "cpufreq/scaling_driver",
            "cpufreq/scaling_governor",
            "thermal_throttle/core_throttle_count",
            "topology/thread_siblings_list",
        ],
    ),
    ("/sys/class/power_supply", "", &["online", "scope", "status", "type"]),
    ("/sys/devices/system/cpu/vulnerabilities", "", &[""]),
];

/// What is before a path in kept texts.
const HEADING: &str = "== ";

/// Text by absolute path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Texts {
    files: BTreeMap<String, String>,
}

impl Texts {
    /// Reads this machine's.
    pub fn look() -> Texts {
        let mut texts = Texts::default();
        FILES.iter().for_each(|path| texts.read(path));
        for (folder, begin, files) in ENTRIES {
            let names = fs::read_dir(folder).into_iter().flatten().flatten();
            let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
            for name in names.filter(|name| name.starts_with(begin)) {
                let path = |file: &&str| format!("{folder}/{name}/{file}");
                files.iter().map(path).for_each(|path| texts.read(path.trim_end_matches('/')));
            }
        }
        // Where the groups of this process stand is told by two of the files above.
        for folder in group_folders(&texts) {
            GROUP_FILES.iter().for_each(|file| texts.read(&format!("{folder}/{file}")));
        }
        texts
    }

    /// Reads what was kept of a machine: each file below a line `== PATH`.
    pub fn kept(text: &str) -> Texts {
        let mut texts = Texts::default();
        let mut path = None;
        for line in text.lines() {
            if let Some(next) = line.strip_prefix(HEADING) {
                path = Some(next.trim().to_owned());
                texts.files.entry(next.trim().to_owned()).or_default();
            } else if let Some(file) = path.as_ref().and_then(|path| texts.files.get_mut(path)) {
                file.push_str(line);
                file.push('\n');
            }
        }
        texts
    }

    /// The same machine with another text in one place.
    #[must_use]
    pub fn with(mut self, path: &str, text: &str) -> Texts {
        self.files.insert(path.to_owned(), text.to_owned());
        self
    }

    /// The whole file.
    pub(crate) fn get(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Its first line.
    pub(crate) fn line(&self, path: &str) -> Option<&str> {
        self.get(path)?.lines().next().map(str::trim)
    }

    /// The number that it begins with.
    pub(crate) fn number(&self, path: &str) -> Option<i64> {
        self.line(path)?.split_ascii_whitespace().next()?.parse().ok()
    }

    /// What follows `name` and a colon, in the first line that begins so.
    pub(crate) fn field(&self, path: &str, name: &str) -> Option<&str> {
        field(self.get(path)?, name)
    }

    /// Each file below `folder` that is called `name`, by its path.
    pub(crate) fn called<'a>(
        &'a self,
        folder: &'a str,
        name: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        let below =
            self.files.range(folder.to_owned()..).take_while(move |(path, _)| path.starts_with(folder));
        let called = below.filter(move |(path, _)| path.rsplit('/').next() == Some(name));
        called.map(|(path, text)| (path.as_str(), text.trim()))
    }

    /// Each file directly in `folder`: its name and its text.
    pub(crate) fn inside<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let files = self.files.iter();
        files.filter_map(move |(path, text)| {
            let name = path.strip_prefix(folder)?.strip_prefix('/')?;
            (!name.contains('/')).then(|| (name, text.trim()))
        })
    }

    fn read(&mut self, path: &str) {
        if let Ok(bytes) = fs::read(path) {
            self.files.insert(path.to_owned(), String::from_utf8_lossy(&bytes).into_owned());
        }
    }
}
