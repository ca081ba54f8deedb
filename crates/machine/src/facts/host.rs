//! What the machine is: its kernel and clock, and whether it is virtual, a container, or shared. It reads texts and asks
//! nobody.

use std::collections::BTreeMap;

use serde::Serialize;

use super::parse_list;
use crate::texts::Texts;
use crate::watch::CpuTimes;

const CLOCKS: &str = "/sys/devices/system/clocksource/clocksource0";

/// A machine and its kernel.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Host {
    /// Kernel release.
    pub kernel: Option<String>,
    /// Under which hypervisor it runs, as far as that tells its name; `None` is none that shows itself.
    pub hypervisor: Option<String>,
    /// In which kind of container this process is; `None` is none that shows itself.
    pub container: Option<String>,
    /// Share of all CPU time since boot that the hypervisor gave to others, 0 to 1.
    pub steal_share: Option<f64>,
    /// The clock that the kernel reads.
    pub clock: Option<String>,
    /// The clocks that it could read.
    pub clocks: Vec<String>,
    /// Nodes of memory.
    pub nodes: Option<usize>,
    /// Whether the kernel moves memory between them by itself.
    pub numa_balancing: Option<bool>,
    /// Load average over one minute.
    pub load_average: Option<f64>,
    /// Random addresses for programs: 0 none, 1 without the heap, 2 all.
    pub address_layout: Option<i64>,
    /// What the kernel does about each flaw of these processors that it knows.
    pub flaws: BTreeMap<String, String>,
}

impl Host {
    pub(super) fn of(texts: &Texts) -> Host {
        let clocks = texts.line(&format!("{CLOCKS}/available_clocksource")).unwrap_or_default();
        let flaws = texts.inside("/sys/devices/system/cpu/vulnerabilities");
        let times = texts.get("/proc/stat").and_then(CpuTimes::parse);
        let nodes = texts.line("/sys/devices/system/node/online").map(|list| parse_list(list).len());
        Host {
            kernel: texts.line("/proc/sys/kernel/osrelease").map(str::to_owned),
            hypervisor: hypervisor(texts),
            container: container(texts).map(str::to_owned),
            steal_share: times.map(|times| times.steal_share_since(&CpuTimes::default())),
            clock: texts.line(&format!("{CLOCKS}/current_clocksource")).map(str::to_owned),
            clocks: clocks.split_ascii_whitespace().map(str::to_owned).collect(),
            nodes: nodes.filter(|count| *count > 0),
            numa_balancing: texts.number("/proc/sys/kernel/numa_balancing").map(|on| on != 0),
            load_average: texts.line("/proc/loadavg").and_then(|line| line.split(' ').next()?.parse().ok()),
            address_layout: texts.number("/proc/sys/kernel/randomize_va_space"),
            flaws: flaws.map(|(name, text)| (name.to_owned(), text.to_owned())).collect(),
        }
    }

    /// Flaws against which the kernel does something, each of which costs.
    pub fn mitigated(&self) -> usize {
        self.flaws.values().filter(|text| text.starts_with("Mitigation")).count()
    }
}

/// The flag that processors show their guests; a name where firmware or clocks tell one.
fn hypervisor(texts: &Texts) -> Option<String> {
    let flags = texts.field("/proc/cpuinfo", "flags").unwrap_or_default();
    let flagged = flags.split(' ').any(|flag| flag == "hypervisor");
    let named = name_of_hypervisor(texts);
    // Processors other than x86 have no such flag.
    let x86 = !flags.is_empty();
    (flagged || !x86 && named.is_some()).then(|| named.unwrap_or("unnamed").to_owned())
}

fn name_of_hypervisor(texts: &Texts) -> Option<&'static str> {
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
    const CLOCK_NAMES: [(&str, &str); 3] = [("kvm-clock", "KVM"), ("hyperv", "Hyper-V"), ("xen", "Xen")];
    let metal = texts.line("/sys/class/dmi/id/product_name").is_some_and(|name| name.contains("metal"));
    let vendor = texts.line("/sys/class/dmi/id/sys_vendor").filter(|_| !metal).unwrap_or_default();
    let clocks = texts.line(&format!("{CLOCKS}/available_clocksource")).unwrap_or_default();
    let first = |table: &[(&'static str, &'static str)], text: &str| {
        table.iter().find(|(part, _)| text.contains(part)).map(|(_, name)| *name)
    };
    let xen = texts.line("/sys/hypervisor/type").filter(|kind| *kind == "xen").map(|_| "Xen");
    first(&VENDORS, vendor).or(xen).or_else(|| first(&CLOCK_NAMES, clocks))
}

fn container(texts: &Texts) -> Option<&'static str> {
    const NAMES: [(&str, &str); 5] = [
        ("kubepods", "Kubernetes"),
        ("libpod", "Podman"),
        ("docker", "Docker"),
        ("containerd", "containerd"),
        ("lxc", "LXC"),
    ];
    let groups = texts.get("/proc/self/cgroup").unwrap_or_default();
    // Services of the host are in groups named after the engine itself.
    let paths = || groups.lines().filter(|line| !line.contains(".service"));
    let named = NAMES.iter().find(|(part, _)| paths().any(|line| line.contains(part)));
    let marked = || {
        let docker = texts.get("/.dockerenv").map(|_| "Docker");
        docker.or_else(|| texts.get("/run/.containerenv").map(|_| "Podman"))
    };
    named.map(|(_, name)| *name).or_else(marked)
}
