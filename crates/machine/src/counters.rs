//! The machine's counters: processors, pressure, quotas, swap and TCP. The difference of two readings
//! describes the time between them.
//!
//! Missing values count as zero. This module makes no judgements.

use std::fs;
use std::path::{Path, PathBuf};

use model::{MachineUse, TcpUse};

use crate::clock;
use crate::groups::{counted, throttled_ns};
use crate::process::{patiently, ticks_to_ns};
use crate::sockets::parse_ports;

/// Time of all processors since boot, or of one of them, in ticks: user nice system idle iowait irq softirq
/// steal. Guest time, which follows, is already included in user time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTicks([u64; 8]);

impl CpuTicks {
    /// Parses `/proc/stat`, for all processors, `cpu`, or one, `cpu3`. Old kernels have fewer numbers.
    pub fn parse(stat: &str, name: &str) -> Option<CpuTicks> {
        let mut lines = stat.lines().map(str::split_ascii_whitespace);
        let mut words =
            lines.find_map(|mut words| (words.next() == Some(name)).then_some(words))?;
        let mut next = || words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
        Some(CpuTicks(std::array::from_fn(|_| next())))
    }

    /// The current values of all processors. `None` if the kernel does not report them.
    pub fn read() -> Option<CpuTicks> {
        CpuTicks::parse(&fs::read_to_string("/proc/stat").ok()?, "cpu")
    }

    /// The total.
    pub fn total(self) -> u64 {
        self.0
            .iter()
            .fold(0, |sum, ticks| sum.saturating_add(*ticks))
    }

    /// Time in which tasks ran. Excludes interrupts, because the interrupts of a load are packets in transit,
    /// which belong to no process.
    fn tasks(self) -> u64 {
        self.0[..3]
            .iter()
            .fold(0, |sum, ticks| sum.saturating_add(*ticks))
    }

    /// The difference from `earlier`, for each value.
    pub fn since(self, earlier: CpuTicks) -> CpuTicks {
        CpuTicks(std::array::from_fn(|at| {
            self.0[at].saturating_sub(earlier.0[at])
        }))
    }

    /// Time in which a processor worked for anything on this machine.
    pub(crate) fn busy(self) -> u64 {
        self.total().saturating_sub(
            self.0[3]
                .saturating_add(self.0[4])
                .saturating_add(self.0[7]),
        )
    }

    /// Share that the hypervisor gave to other guests, 0 to 1.
    pub fn steal_share(self) -> f64 {
        let total = self.total();
        if total == 0 {
            0.0
        } else {
            self.0[7] as f64 / total as f64
        }
    }
}

/// Counter files of a machine as text. Empty if the kernel does not have them.
#[derive(Debug, Clone, Default)]
pub struct CounterTexts {
    /// `/proc/stat`.
    pub stat: String,
    /// `/proc/pressure/cpu`.
    pub pressure: String,
    /// `/proc/vmstat`.
    pub vmstat: String,
    /// `cpu.stat` of each control group whose quota may throttle us or the services.
    pub quotas: Vec<String>,
}

impl CounterTexts {
    /// Reads this machine's files now. A removed file of `quota_files` is empty.
    pub fn read(quota_files: &[PathBuf]) -> CounterTexts {
        CounterTexts {
            stat: read("/proc/stat"),
            pressure: read("/proc/pressure/cpu"),
            vmstat: read("/proc/vmstat"),
            quotas: quota_files.iter().map(read).collect(),
        }
    }
}

fn read(path: impl AsRef<Path>) -> String {
    // A failed read followed by a successful one would count everything since boot.
    patiently(|| fs::read_to_string(&path)).unwrap_or_default()
}

/// The counters of a machine at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineCounters {
    /// Nanoseconds on CLOCK_MONOTONIC.
    at_ns: u64,
    all: CpuTicks,
    /// Time in which the processors that we use ran tasks.
    busy_ns: u64,
    /// Time in which some task waited for a processor. `None` if the kernel does not report it.
    pressure_us: Option<u64>,
    throttled_ns: u64,
    swapped_in_pages: u64,
    /// CPU time of Proofload itself, including its wardens and generators, read before the counters and again
    /// after them.
    ours_ns: (u64, u64),
}

impl MachineCounters {
    /// Reads the counters now. `cpus` are the processors of Proofload and the services. `helpers_ns` returns
    /// the CPU time of Proofload's helper processes.
    pub fn now(
        cpus: &[usize],
        quota_files: &[PathBuf],
        helpers_ns: impl Fn() -> u64,
    ) -> MachineCounters {
        let ours_ns = || clock::process_cpu_ns() + helpers_ns();
        let (at_ns, first) = (clock::monotonic_ns(), ours_ns());
        let texts = CounterTexts::read(quota_files);
        MachineCounters {
            ours_ns: (first, ours_ns()),
            ..MachineCounters::of(&texts, cpus, at_ns, 0)
        }
    }

    /// From texts, with the CPU time of Proofload itself at that moment.
    pub fn of(texts: &CounterTexts, cpus: &[usize], at_ns: u64, ours_ns: u64) -> MachineCounters {
        let all = CpuTicks::parse(&texts.stat, "cpu").unwrap_or_default();
        let of_each = cpus
            .iter()
            .filter_map(|cpu| CpuTicks::parse(&texts.stat, &format!("cpu{cpu}")));
        let tasks = if cpus.is_empty() {
            all.tasks()
        } else {
            of_each.map(CpuTicks::tasks).sum()
        };
        MachineCounters {
            at_ns,
            all,
            busy_ns: ticks_to_ns(tasks),
            pressure_us: waited_us(&texts.pressure),
            throttled_ns: texts.quotas.iter().map(|text| throttled_ns(text)).sum(),
            swapped_in_pages: counted(&texts.vmstat, "pswpin").unwrap_or(0),
            ours_ns: (ours_ns, ours_ns),
        }
    }

    /// The use from this moment to `later`, in which the services of this run used `services_ns` of CPU time.
    /// The caller adds what does not concern the whole machine.
    pub fn until(&self, later: &MachineCounters, services_ns: u64) -> MachineUse {
        // Our time is taken over the longest period, so that our use while reading is not counted as that of
        // other processes.
        let ours_ns = later.ours_ns.1.saturating_sub(self.ours_ns.0) + services_ns;
        let elapsed_ns = later.at_ns.saturating_sub(self.at_ns);
        let waited_us = later.pressure_us.zip(self.pressure_us);
        let waited_us = waited_us
            .filter(|_| elapsed_ns > 0)
            .map(|(now, then)| now.saturating_sub(then));
        MachineUse {
            steal_share: later.all.since(self.all).steal_share(),
            cpu_pressure_share: waited_us.map(|us| (us as f64 * 1e3 / elapsed_ns as f64).min(1.0)),
            throttled_ns: later.throttled_ns.saturating_sub(self.throttled_ns),
            strangers_cpu_ns: later
                .busy_ns
                .saturating_sub(self.busy_ns)
                .saturating_sub(ours_ns),
            swapped_in_pages: later.swapped_in_pages.saturating_sub(self.swapped_in_pages),
            // Known only to the caller.
            idle_trials_cpu_ns: 0,
            spin_ns: None,
            tcp: None,
        }
    }
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=12345`
fn waited_us(pressure: &str) -> Option<u64> {
    let line = pressure
        .lines()
        .find_map(|line| line.strip_prefix("some "))?;
    line.split_ascii_whitespace()
        .find_map(|word| word.strip_prefix("total="))?
        .parse()
        .ok()
}

/// The TCP counters of one network since its creation, over all its sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpCounters(TcpUse);

impl TcpCounters {
    /// Reads the calling thread's network. `None` if the kernel does not report it.
    pub fn read() -> Option<TcpCounters> {
        let net = |file: &str| read(format!("/proc/thread-self/net/{file}"));
        let ports = read("/proc/sys/net/ipv4/ip_local_port_range");
        TcpCounters::of(&net("snmp"), &net("netstat"), &net("sockstat"), &ports)
    }

    /// Parses the texts of `net/snmp`, `net/netstat`, `net/sockstat` and `ip_local_port_range`.
    pub fn of(snmp: &str, netstat: &str, sockstat: &str, ports: &str) -> Option<TcpCounters> {
        let extended = |name| value(netstat, "TcpExt:", name).unwrap_or(0);
        Some(TcpCounters(TcpUse {
            opened: value(snmp, "Tcp:", "ActiveOpens")?,
            listen_overflows: extended("ListenOverflows"),
            listen_drops: extended("ListenDrops"),
            syn_retransmits: extended("TCPSynRetrans"),
            time_wait_before: 0,
            time_wait: time_wait(sockstat).unwrap_or(0),
            local_ports: parse_ports(ports).map_or(0, |ports| ports.len() as u64),
        }))
    }

    /// The difference to `later`.
    pub fn until(&self, later: &TcpCounters) -> TcpUse {
        let (then, now) = (self.0, later.0);
        TcpUse {
            opened: now.opened.saturating_sub(then.opened),
            listen_overflows: now.listen_overflows.saturating_sub(then.listen_overflows),
            listen_drops: now.listen_drops.saturating_sub(then.listen_drops),
            syn_retransmits: now.syn_retransmits.saturating_sub(then.syn_retransmits),
            time_wait_before: then.time_wait,
            time_wait: now.time_wait,
            local_ports: now.local_ports,
        }
    }
}

/// A protocol has two lines: the names of its counters, followed by their values.
fn value(text: &str, protocol: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(protocol));
    let (names, values) = (lines.next()?, lines.next()?);
    let at = names
        .split_ascii_whitespace()
        .position(|found| found == name)?;
    values.split_ascii_whitespace().nth(at)?.parse().ok()
}

/// `TCP: inuse 9 orphan 0 tw 4 alloc 9 mem 1`
fn time_wait(sockstat: &str) -> Option<u64> {
    let line = sockstat
        .lines()
        .find_map(|line| line.strip_prefix("TCP:"))?;
    line.split_ascii_whitespace()
        .skip_while(|word| *word != "tw")
        .nth(1)?
        .parse()
        .ok()
}
