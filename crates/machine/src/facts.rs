//! Facts about a machine, as values with units. Fields are `None` if the kernel does not report them.
//!
//! This module parses texts and makes no judgements. [`crate::hazards`] identifies hazards.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;

use rustix::fs::{Access, access};
use serde::Serialize;

use crate::counters::CpuTicks;
use crate::groups::{counted, counting, hierarchies, throttled_ns};
use crate::process::{field, parse_list};
use crate::sockets::parse_ports;
use crate::texts::Texts;
use crate::watch::MachineWatched;

/// All facts about a machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Facts {
    /// Processors, and those available to this process.
    pub processors: Processors,
    /// Their frequency.
    pub frequency: Frequency,
    /// The machine, its kernel and its environment.
    pub host: Host,
    /// Memory and swap.
    pub memory: Memory,
    /// Limits on descriptors, connections and ports.
    pub limits: Limits,
    /// Privileges of this process.
    pub rights: ProcessRights,
    /// Results of trying features of the kernel.
    pub asked: Probed,
    /// Activity while the machine was watched. `None` if it was not watched.
    pub watched: Option<MachineWatched>,
}

/// Facts that are in no file and come from trying a feature. `None` means not tried.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Probed {
    /// io_uring, for the load engine.
    pub io_uring: Option<Granted>,
    /// A link between network namespaces, for `load.network`.
    pub link: Option<Granted>,
    /// Stacks of compiled code and of the kernel, for `--explain`. The reason of a refusal ends with a hint.
    pub stacks: Option<Granted>,
    /// Whether a control group that counts CPU time can be created.
    pub group_writable: Option<bool>,
    /// Free space for records.
    pub storage: Option<Storage>,
    /// The requested programs, with their version if they are installed.
    pub programs: Vec<(String, Option<String>)>,
}

/// The result of trying a feature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Granted {
    /// Whether it is available.
    pub granted: bool,
    /// The reason if it is not.
    pub reason: Option<String>,
}

/// A file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Storage {
    /// The folder in it.
    pub folder: String,
    /// Free space for this user in bytes.
    pub free_bytes: u64,
}

impl Facts {
    /// Reads this machine's files. Takes a few milliseconds, without watching the machine or trying features.
    pub fn look() -> Facts {
        Facts::of(&Texts::look())
    }

    /// Parses the facts from these texts.
    pub fn of(texts: &Texts) -> Facts {
        Facts {
            processors: Processors::of(texts),
            frequency: Frequency::of(texts),
            host: Host::of(texts),
            memory: Memory::of(texts),
            limits: Limits::of(texts),
            rights: ProcessRights::of(texts),
            ..Facts::default()
        }
    }
}

impl Granted {
    /// Creates it from the result of a call.
    pub fn of<E: std::fmt::Display>(answer: Result<(), E>) -> Granted {
        Granted {
            granted: answer.is_ok(),
            reason: answer.err().map(|error| error.to_string()),
        }
    }
}

impl Storage {
    /// Reads the free space of the file system of `folder`. `None` if this fails.
    pub fn of(folder: &str) -> Option<Storage> {
        let told = rustix::fs::statvfs(folder).ok()?;
        let free_bytes = told.f_bavail.saturating_mul(told.f_frsize);
        Some(Storage {
            folder: folder.to_owned(),
            free_bytes,
        })
    }
}

const CPUS: &str = "/sys/devices/system/cpu";

/// The processors of a machine, and those available to this process.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Processors {
    /// Name in /proc/cpuinfo.
    pub model: Option<String>,
    /// Number of processors online on the machine.
    pub online: Option<usize>,
    /// Number of processors on which this process may run, by affinity or cpuset.
    pub allowed: Option<usize>,
    /// Physical cores among the allowed ones: processors that share a core are counted once.
    pub cores: Option<usize>,
    /// The control group of this process, as far as it concerns CPU time and memory.
    pub group: ProcessGroup,
}

impl Processors {
    fn of(texts: &Texts) -> Processors {
        let count = |count: usize| Some(count).filter(|count| *count > 0);
        let list = |text: Option<String>| parse_list(&text.unwrap_or_default());
        let online = list(texts.line("/sys/devices/system/cpu/online")).len();
        let told = texts.get("/proc/cpuinfo").unwrap_or_default();
        let listed = told
            .lines()
            .filter(|line| line.starts_with("processor"))
            .count();
        let allowed = list(texts.field("/proc/self/status", "Cpus_allowed_list"));
        // Distinct sets of siblings. None if the kernel does not report all of them.
        let siblings = |cpu: &usize| {
            Some(parse_list(&texts.line(&format!(
                "{CPUS}/cpu{cpu}/topology/thread_siblings_list"
            ))?))
        };
        let cores: Option<BTreeSet<Vec<usize>>> = allowed.iter().map(siblings).collect();
        Processors {
            model: field(&told, "model name")
                .filter(|name| !name.is_empty())
                .map(str::to_owned),
            online: count(online).or(count(listed)),
            allowed: count(allowed.len()),
            cores: cores.and_then(|sets| count(sets.len())),
            group: ProcessGroup::of(texts),
        }
    }
}

/// Version 1 reports no memory limit as the largest multiple of a page. Values near it mean no limit.
const UNLIMITED_BYTES: u64 = 1 << 60;

/// Limits of the control groups of this process.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ProcessGroup {
    /// The tightest CPU quota of this group and its ancestors, as far as they are visible.
    pub quota: Option<Quota>,
    /// The tightest memory limit, in bytes.
    pub memory_max_bytes: Option<u64>,
    /// Folder below which a group that only counts CPU time might be created.
    pub accounts: Option<String>,
}

/// CPU time that a group may use in each period. Once it is used up, its processes wait for the next period.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Quota {
    /// CPU time per time: 1.5 is one and a half processors.
    pub processors: f64,
    /// The period, in microseconds.
    pub period_us: u64,
    /// Number of periods in which the group was throttled so far.
    pub throttled: u64,
    /// Total throttled time in nanoseconds.
    pub throttled_ns: u64,
    /// The file that sets it.
    pub file: String,
}

impl ProcessGroup {
    fn of(texts: &Texts) -> ProcessGroup {
        let text = |path: &str| texts.get(path).unwrap_or_default();
        let (mounts, groups) = (text("/proc/self/mountinfo"), text("/proc/self/cgroup"));
        let folders = hierarchies(&mounts)
            .into_iter()
            .flat_map(|hierarchy| hierarchy.folders(&groups));
        let folders: Vec<String> = folders.map(|folder| folder.display().to_string()).collect();
        let quotas = folders.iter().filter_map(|folder| quota(texts, folder));
        ProcessGroup {
            quota: quotas.min_by(|one, other| one.processors.total_cmp(&other.processors)),
            memory_max_bytes: folders
                .iter()
                .filter_map(|folder| memory_max(texts, folder))
                .min(),
            accounts: counting(&mounts, &groups)
                .first()
                .map(|group| group.folder.display().to_string()),
        }
    }

    /// Whether a group that only counts can be created, as far as can be seen without creating one.
    pub fn can_account(&self) -> bool {
        let Some(folder) = &self.accounts else {
            return false;
        };
        let handed_down = fs::read_to_string(Path::new(folder).join("cgroup.subtree_control"))
            .unwrap_or_default();
        let divides = handed_down
            .split_ascii_whitespace()
            .any(|name| name == "cpu");
        !divides && access(folder.as_str(), Access::WRITE_OK).is_ok()
    }
}

fn quota(texts: &Texts, folder: &str) -> Option<Quota> {
    let v2 = format!("{folder}/cpu.max");
    let v1 = format!("{folder}/cpu.cfs_quota_us");
    let (quota, period, file) = match texts.line(&v2) {
        Some(line) => {
            let (quota, period) = line.split_once(' ')?;
            (quota.parse().ok()?, period.trim().parse().ok()?, v2)
        }
        None => (
            texts.number(&v1)?,
            texts.number(&format!("{folder}/cpu.cfs_period_us"))?,
            v1,
        ),
    };
    // −1 means none.
    let (quota_us, period_us) = (
        u64::try_from(quota).ok()?,
        u64::try_from(period).ok().filter(|us| *us > 0)?,
    );
    let told = texts.get(&format!("{folder}/cpu.stat")).unwrap_or_default();
    Some(Quota {
        processors: quota_us as f64 / period_us as f64,
        period_us,
        throttled: counted(&told, "nr_throttled").unwrap_or(0),
        throttled_ns: throttled_ns(&told),
        file,
    })
}

fn memory_max(texts: &Texts, folder: &str) -> Option<u64> {
    let line = |file: &str| texts.line(&format!("{folder}/{file}"));
    let bytes = line("memory.max")
        .or_else(|| line("memory.limit_in_bytes"))?
        .parse()
        .ok()?;
    Some(bytes).filter(|bytes| *bytes < UNLIMITED_BYTES)
}

/// Frequency information of the kernel. In a virtual machine it is mostly missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Frequency {
    /// The governors in use, each once.
    pub governors: BTreeSet<String>,
    /// The driver of the first processor, such as `intel_pstate`.
    pub driver: Option<String>,
    /// The lowest frequency of any processor, in kHz.
    pub min_khz: Option<u64>,
    /// The highest frequency of any processor, in kHz.
    pub max_khz: Option<u64>,
    /// Whether turbo frequencies are allowed.
    pub turbo: Option<bool>,
    /// The file that allows or forbids them.
    pub turbo_file: Option<String>,
    /// Number of thermal throttling events since boot, over all cores.
    pub throttled: Option<u64>,
    /// Whether the machine runs on battery power.
    pub on_battery: Option<bool>,
}

impl Frequency {
    fn of(texts: &Texts) -> Frequency {
        let numbers = |file: &'static str| {
            texts
                .of_each(CPUS, file)
                .filter_map(|text| text.parse().ok())
        };
        let (turbo, turbo_file) = turbo(texts).unzip();
        Frequency {
            governors: texts.of_each(CPUS, "cpufreq/scaling_governor").collect(),
            driver: texts.of_each(CPUS, "cpufreq/scaling_driver").next(),
            min_khz: numbers("cpufreq/cpuinfo_min_freq").min(),
            max_khz: numbers("cpufreq/cpuinfo_max_freq").max(),
            turbo,
            turbo_file: turbo_file.map(str::to_owned),
            throttled: numbers("thermal_throttle/core_throttle_count").reduce(u64::saturating_add),
            on_battery: on_battery(texts),
        }
    }
}

/// Whether turbo is on, and the file that controls it. The two drivers use opposite values.
fn turbo(texts: &Texts) -> Option<(bool, &'static str)> {
    let no_turbo = "/sys/devices/system/cpu/intel_pstate/no_turbo";
    let boost = "/sys/devices/system/cpu/cpufreq/boost";
    let pstate = texts.number(no_turbo).map(|off| (off == 0, no_turbo));
    pstate.or_else(|| texts.number(boost).map(|on| (on != 0, boost)))
}

/// Whether the machine runs on battery: it has one that is discharging, and no mains supply online. A mouse
/// has a battery too, with the scope `Device`.
fn on_battery(texts: &Texts) -> Option<bool> {
    const SUPPLIES: &str = "/sys/class/power_supply";
    let is = |name: &str, file: &str, value: &str| {
        texts
            .line(&format!("{SUPPLIES}/{name}/{file}"))
            .is_some_and(|told| told == value)
    };
    let mut supplies = texts.inside(SUPPLIES);
    supplies.retain(|name| !is(name, "scope", "Device"));
    let any = |kind, file, value| {
        supplies
            .iter()
            .any(|name| is(name, "type", kind) && is(name, file, value))
    };
    let has_battery = any("Battery", "type", "Battery");
    has_battery.then(|| any("Battery", "status", "Discharging") && !any("Mains", "online", "1"))
}

const CLOCKS: &str = "/sys/devices/system/clocksource/clocksource0";

/// A machine and its kernel.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Host {
    /// Kernel release.
    pub kernel: Option<String>,
    /// The hypervisor's name, if known. `None` if none is visible.
    pub hypervisor: Option<String>,
    /// The kind of container of this process. `None` if none is visible.
    pub container: Option<String>,
    /// Share of all CPU time since boot that the hypervisor gave to other guests, 0 to 1.
    pub steal_share: Option<f64>,
    /// The clock source in use.
    pub clock: Option<String>,
    /// The available clock sources.
    pub clocks: Vec<String>,
    /// Number of NUMA nodes.
    pub nodes: Option<usize>,
    /// Whether the kernel moves memory between NUMA nodes automatically.
    pub numa_balancing: Option<bool>,
    /// Load average over one minute.
    pub load_average: Option<f64>,
    /// Address space randomisation: 0 none, 1 without the heap, 2 full.
    pub address_layout: Option<i64>,
    /// The kernel's mitigation of each known processor vulnerability.
    pub flaws: BTreeMap<String, String>,
}

impl Host {
    fn of(texts: &Texts) -> Host {
        const FLAWS: &str = "/sys/devices/system/cpu/vulnerabilities";
        let clocks = texts
            .line(&format!("{CLOCKS}/available_clocksource"))
            .unwrap_or_default();
        let nodes = texts
            .line("/sys/devices/system/node/online")
            .map(|list| parse_list(&list).len());
        let flaw = |name: String| Some((name.clone(), texts.line(&format!("{FLAWS}/{name}"))?));
        Host {
            kernel: texts.line("/proc/sys/kernel/osrelease"),
            hypervisor: hypervisor(texts, &clocks),
            container: container(texts).map(str::to_owned),
            steal_share: CpuTicks::parse(&texts.get("/proc/stat").unwrap_or_default(), "cpu")
                .map(CpuTicks::steal_share),
            clock: texts.line(&format!("{CLOCKS}/current_clocksource")),
            clocks: clocks.split_ascii_whitespace().map(str::to_owned).collect(),
            nodes: nodes.filter(|count| *count > 0),
            numa_balancing: texts
                .number("/proc/sys/kernel/numa_balancing")
                .map(|on| on != 0),
            load_average: texts
                .line("/proc/loadavg")
                .and_then(|line| line.split(' ').next()?.parse().ok()),
            address_layout: texts.number("/proc/sys/kernel/randomize_va_space"),
            flaws: texts.inside(FLAWS).into_iter().filter_map(flaw).collect(),
        }
    }
}

/// The hypervisor flag of the processor, with a name if firmware or clocks show one.
fn hypervisor(texts: &Texts, clocks: &str) -> Option<String> {
    let flags = texts.field("/proc/cpuinfo", "flags").unwrap_or_default();
    let flagged = flags.split(' ').any(|flag| flag == "hypervisor");
    let named = name_of_hypervisor(texts, clocks);
    // Processors other than x86 have no such flag.
    let x86 = !flags.is_empty();
    (flagged || !x86 && named.is_some()).then(|| named.unwrap_or("unnamed").to_owned())
}

fn name_of_hypervisor(texts: &Texts, clocks: &str) -> Option<&'static str> {
    const VENDORS: [(&str, &str); 8] = [
        ("QEMU", "QEMU"),
        ("VMware", "VMware"),
        ("innotek", "VirtualBox"),
        ("Microsoft", "Hyper-V"),
        ("Amazon EC2", "Amazon EC2"),
        ("Google", "Google Compute Engine"),
        ("Xen", "Xen"),
        ("DigitalOcean", "KVM (DigitalOcean)"),
    ];
    const CLOCK_NAMES: [(&str, &str); 3] =
        [("kvm-clock", "KVM"), ("hyperv", "Hyper-V"), ("xen", "Xen")];
    let line = |path: &str| texts.line(path).unwrap_or_default();
    let metal = line("/sys/class/dmi/id/product_name").contains("metal");
    let vendor = if metal {
        String::new()
    } else {
        line("/sys/class/dmi/id/sys_vendor")
    };
    let xen = (line("/sys/hypervisor/type") == "xen").then_some("Xen");
    first_in(&VENDORS, &vendor)
        .or(xen)
        .or_else(|| first_in(&CLOCK_NAMES, clocks))
}

/// The name of the first row whose part occurs in the text.
fn first_in(table: &[(&str, &'static str)], text: &str) -> Option<&'static str> {
    table
        .iter()
        .find(|(part, _)| text.contains(part))
        .map(|(_, name)| *name)
}

fn container(texts: &Texts) -> Option<&'static str> {
    const NAMES: [(&str, &str); 5] = [
        ("kubepods", "Kubernetes"),
        ("libpod", "Podman"),
        ("docker", "Docker"),
        ("containerd", "containerd"),
        ("lxc", "LXC"),
    ];
    const MARKS: [(&str, &str); 2] = [("/.dockerenv", "Docker"), ("/run/.containerenv", "Podman")];
    let groups = texts.get("/proc/self/cgroup").unwrap_or_default();
    // Services of the host are in groups named after the engine itself.
    let groups: Vec<&str> = groups
        .lines()
        .filter(|line| !line.contains(".service"))
        .collect();
    let marked = || {
        MARKS
            .iter()
            .find(|(path, _)| texts.get(path).is_some())
            .map(|(_, name)| *name)
    };
    first_in(&NAMES, &groups.join("\n")).or_else(marked)
}

/// Memory of the machine, in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// Total memory.
    pub total_bytes: Option<u64>,
    /// Memory available to programs without swapping, as estimated by the kernel.
    pub available_bytes: Option<u64>,
    /// Swap space.
    pub swap_bytes: Option<u64>,
    /// Used swap space.
    pub swapped_bytes: Option<u64>,
    /// The kernel's swappiness, 0 to 200.
    pub swappiness: Option<i64>,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub huge_pages: Option<String>,
}

impl Memory {
    fn of(texts: &Texts) -> Memory {
        let told = texts.get("/proc/meminfo").unwrap_or_default();
        let bytes = |name: &str| kilobytes(field(&told, name)?);
        let (swap, free) = (bytes("SwapTotal"), bytes("SwapFree"));
        let pages = texts.line("/sys/kernel/mm/transparent_hugepage/enabled");
        Memory {
            total_bytes: bytes("MemTotal"),
            available_bytes: bytes("MemAvailable"),
            swap_bytes: swap,
            swapped_bytes: swap.zip(free).map(|(swap, free)| swap.saturating_sub(free)),
            swappiness: texts.number("/proc/sys/vm/swappiness"),
            // The value in brackets is active: `always [madvise] never`.
            huge_pages: pages
                .and_then(|line| Some(line.split_once('[')?.1.split_once(']')?.0.to_owned())),
        }
    }
}

fn kilobytes(text: &str) -> Option<u64> {
    text.strip_suffix("kB")?
        .trim()
        .parse::<u64>()
        .ok()?
        .checked_mul(1024)
}

/// Limits of this process and of its network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// Soft limit of open descriptors, for this process and its children.
    pub files_soft: Option<u64>,
    /// Hard limit, up to which the soft one can be raised. `u64::MAX` means no limit.
    pub files_hard: Option<u64>,
    /// Maximum length of an accept queue, regardless of what a service requests.
    pub somaxconn: Option<i64>,
    /// Maximum number of half-open connections.
    pub syn_backlog: Option<i64>,
    /// Local ports that the kernel assigns to connections, first and last.
    pub ports: Option<(u16, u16)>,
    /// Whether a port in TIME_WAIT may be reused: 0 no, 1 yes, 2 on loopback.
    pub time_wait_reuse: Option<i64>,
    /// Connections tracked by the packet filter. `None` if it tracks none.
    pub conntrack: Option<Conntrack>,
}

/// The table of tracked connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Conntrack {
    /// Current number of entries.
    pub count: i64,
    /// Maximum number of entries.
    pub max: i64,
}

impl Limits {
    fn of(texts: &Texts) -> Limits {
        let netfilter = |name: &str| texts.number(&format!("/proc/sys/net/netfilter/{name}"));
        let (soft, hard) = files(texts).unzip();
        let ports = texts.line("/proc/sys/net/ipv4/ip_local_port_range");
        let conntrack = netfilter("nf_conntrack_count").zip(netfilter("nf_conntrack_max"));
        Limits {
            files_soft: soft,
            files_hard: hard,
            somaxconn: texts.number("/proc/sys/net/core/somaxconn"),
            syn_backlog: texts.number("/proc/sys/net/ipv4/tcp_max_syn_backlog"),
            ports: ports
                .and_then(|ports| parse_ports(&ports))
                .map(RangeInclusive::into_inner),
            time_wait_reuse: texts.number("/proc/sys/net/ipv4/tcp_tw_reuse"),
            conntrack: conntrack.map(|(count, max)| Conntrack { count, max }),
        }
    }
}

/// Soft and hard limit of open files.
fn files(texts: &Texts) -> Option<(u64, u64)> {
    crate::process::parse_files_limits(&texts.get("/proc/self/limits")?)
}

/// Privileges, and the settings that restrict them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ProcessRights {
    /// Whether this process is root.
    pub root: Option<bool>,
    /// Whether it has CAP_PERFMON or CAP_SYS_ADMIN, which has no effect outside of the initial user
    /// namespace.
    pub perfmon: Option<bool>,
    /// `kernel.perf_event_paranoid`: up to 1 all users may profile including the kernel, with 2 without it.
    pub perf_event_paranoid: Option<i64>,
    /// `kernel.kptr_restrict`: 0 shows the kernel's symbols.
    pub kptr_restrict: Option<i64>,
    /// `kernel.io_uring_disabled`: 0 enabled, 1 disabled for most users, 2 disabled for all.
    pub io_uring_disabled: Option<i64>,
    /// Whether this process's system calls are filtered, as in a container.
    pub filtered: Option<bool>,
}

const CAP_SYS_ADMIN: u64 = 1 << 21;
const CAP_PERFMON: u64 = 1 << 38;

impl ProcessRights {
    /// Parses the rights from these texts.
    pub fn of(texts: &Texts) -> ProcessRights {
        let status = |name: &str| texts.field("/proc/self/status", name);
        let user = |ids: String| Some(ids.split_ascii_whitespace().nth(1)? == "0");
        let perfmon = |set: String| {
            Some(u64::from_str_radix(&set, 16).ok()? & (CAP_PERFMON | CAP_SYS_ADMIN) != 0)
        };
        ProcessRights {
            root: status("Uid").and_then(user),
            perfmon: status("CapEff").and_then(perfmon),
            perf_event_paranoid: texts.number("/proc/sys/kernel/perf_event_paranoid"),
            kptr_restrict: texts.number("/proc/sys/kernel/kptr_restrict"),
            io_uring_disabled: texts.number("/proc/sys/kernel/io_uring_disabled"),
            filtered: status("Seccomp").map(|mode| mode == "2"),
        }
    }
}
