//! What goes on here for two seconds: who else uses the processors, what the host takes, how evenly a processor works.
//!
//! For one second it is quiet, so that what others use can be told; then it works, because a host takes time only from those
//! who want some. It must not take longer, and it starts nothing.

use std::collections::BTreeMap;
use std::fs;
use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

/// How long others are watched.
const QUIET: Duration = Duration::from_millis(1000);
/// How long a processor works.
const WORK: Duration = Duration::from_millis(800);
/// Rounds in a piece of work: about two milliseconds of a processor of 3 GHz.
const ROUNDS: u32 = 1_000_000;
/// Fewer pieces than these say nothing about evenness.
const PIECES_MIN: usize = 20;
/// Of the pieces the first eighth is left out: the processor may still raise its frequency.
const WARM_UP: usize = 8;
/// Others that are named, at most.
const BUSIEST_MAX: usize = 3;
/// Who uses less of a processor than this is not named: one tick of the kernel's in the time watched.
const NAMED_MIN: f64 = 0.015;

/// What was seen.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Watched {
    /// How long, in seconds.
    pub seconds: f64,
    /// Share of all CPU time that the hypervisor gave to others meanwhile, 0 to 1.
    pub steal_share: f64,
    /// Processors' worth of time that was used while this process was quiet: 0.5 is half of one.
    pub others: f64,
    /// Who used most of it, as far as can be seen from here.
    pub busiest: Vec<Busy>,
    /// How evenly the same work was done; `None` where the machine was too slow for enough of it.
    pub spin: Option<Spin>,
}

/// A process that uses a processor.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Busy {
    /// Its number.
    pub pid: u32,
    /// Its name, as the kernel has it: 15 bytes at the most.
    pub name: String,
    /// Share of one processor.
    pub share: f64,
}

/// The same arithmetic, time and again.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spin {
    /// Pieces of it.
    pub pieces: usize,
    /// CPU time of the middle one, in microseconds.
    pub median_us: f64,
    /// Standard deviation of their CPU times over the mean.
    pub cv: f64,
}

/// Time of all processors since boot, in ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CpuTimes {
    total: u64,
    idle: u64,
    steal: u64,
    processors: u64,
}

/// The machine at one moment.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    times: CpuTimes,
    /// By number and start: name and ticks used so far.
    processes: BTreeMap<(u32, u64), (String, u64)>,
}

/// Watches this machine for two seconds.
pub fn watch() -> Watched {
    let begin = Instant::now();
    let before = Reading::take();
    thread::sleep(QUIET);
    let after = Reading::take();
    let spin = Spin::of(&spin(WORK));
    let end = Reading::times();
    Watched {
        seconds: begin.elapsed().as_secs_f64(),
        steal_share: end.steal_share_since(&before.times),
        spin,
        ..Watched::between(&before, &after, std::process::id())
    }
}

impl Watched {
    /// What others used between two readings. `own` is the process that watched.
    pub fn between(before: &Reading, after: &Reading, own: u32) -> Watched {
        let Some(ticks) = after.times.per_processor_since(&before.times) else { return Watched::default() };
        let mut busiest = Vec::new();
        let mut own_ticks = 0;
        for (id, (name, now)) in &after.processes {
            let then = before.processes.get(id).map_or(0, |(_, then)| *then);
            let used = now.saturating_sub(then);
            if id.0 == own {
                own_ticks = used;
            } else if used as f64 / ticks >= NAMED_MIN {
                busiest.push(Busy { pid: id.0, name: name.clone(), share: used as f64 / ticks });
            }
        }
        busiest.sort_by(|one, other| other.share.total_cmp(&one.share));
        busiest.truncate(BUSIEST_MAX);
        // Counted by the kernel and not summed up: in a container most processes cannot be seen.
        let busy = after.times.busy_since(&before.times).saturating_sub(own_ticks);
        Watched {
            steal_share: after.times.steal_share_since(&before.times),
            others: busy as f64 / ticks,
            busiest,
            ..Watched::default()
        }
    }
}

impl CpuTimes {
    /// Reads /proc/stat: `cpu user nice system idle iowait irq softirq steal …`, then a line for each processor.
    pub(crate) fn parse(text: &str) -> Option<CpuTimes> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> = line.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
        let at = |place: usize| ticks.get(place).copied().unwrap_or(0);
        let processors = text.lines().skip(1).take_while(|line| line.starts_with("cpu")).count();
        Some(CpuTimes {
            // Guest time, which follows, is inside user time already.
            total: ticks.iter().take(8).fold(0, |sum, more| sum.saturating_add(*more)),
            idle: at(3).saturating_add(at(4)),
            steal: at(7),
            processors: processors as u64,
        })
    }

    /// Share of the time since then that went to other guests.
    pub(crate) fn steal_share_since(&self, earlier: &CpuTimes) -> f64 {
        let total = self.total.saturating_sub(earlier.total);
        if total == 0 { 0.0 } else { self.steal.saturating_sub(earlier.steal) as f64 / total as f64 }
    }

    /// Ticks since then in which a processor worked, for whomever on this machine.
    fn busy_since(&self, earlier: &CpuTimes) -> u64 {
        let rest = |times: &CpuTimes| times.idle.saturating_add(times.steal);
        let total = self.total.saturating_sub(earlier.total);
        total.saturating_sub(rest(self).saturating_sub(rest(earlier)))
    }

    /// Ticks of one processor since then. So nothing has to be known of how long a tick is.
    fn per_processor_since(&self, earlier: &CpuTimes) -> Option<f64> {
        let total = self.total.saturating_sub(earlier.total);
        (total > 0 && self.processors > 0).then(|| total as f64 / self.processors as f64)
    }
}

impl Reading {
    fn take() -> Reading {
        let mut reading = Reading { times: Reading::times(), ..Reading::default() };
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            if let Ok(text) = fs::read(entry.path().join("stat")) {
                reading.add(pid, &String::from_utf8_lossy(&text));
            }
        }
        reading
    }

    fn times() -> CpuTimes {
        fs::read_to_string("/proc/stat").ok().and_then(|text| CpuTimes::parse(&text)).unwrap_or_default()
    }

    /// From texts: /proc/stat, and /proc/PID/stat of each process.
    pub fn of(stat: &str, processes: &[(u32, &str)]) -> Reading {
        let mut reading = Reading { times: CpuTimes::parse(stat).unwrap_or_default(), ..Reading::default() };
        processes.iter().for_each(|(pid, text)| reading.add(*pid, text));
        reading
    }

    /// The name in brackets may hold anything, also brackets: what counts begins after the last one. Fields are numbered
    /// as in proc_pid_stat(5), where the state is field 3.
    fn add(&mut self, pid: u32, text: &str) {
        let Some((head, rest)) = text.rsplit_once(')') else { return };
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |field: usize| fields.get(field - 3).and_then(|text| text.parse::<u64>().ok());
        let (Some(user), Some(system), Some(start)) = (number(14), number(15), number(22)) else { return };
        let name = head.split_once('(').map_or("", |(_, name)| name);
        // Names are the processes' own choice and go to a terminal.
        let name = name.chars().filter(|char| !char.is_control()).collect();
        self.processes.insert((pid, start), (name, user.saturating_add(system)));
    }
}

impl Spin {
    /// From the CPU time of each piece, in nanoseconds and in order.
    pub fn of(pieces_ns: &[u64]) -> Option<Spin> {
        let mut kept: Vec<f64> = pieces_ns[pieces_ns.len() / WARM_UP..].iter().map(|ns| *ns as f64).collect();
        if kept.len() < PIECES_MIN {
            return None;
        }
        let mean = kept.iter().sum::<f64>() / kept.len() as f64;
        let squares: f64 = kept.iter().map(|ns| (ns - mean).powi(2)).sum();
        let deviation = (squares / (kept.len() - 1) as f64).sqrt();
        kept.sort_by(f64::total_cmp);
        let median_us = kept[kept.len() / 2] / 1e3;
        (mean > 0.0).then(|| Spin { pieces: kept.len(), median_us, cv: deviation / mean })
    }
}

/// CPU time of each piece of work that was done until so much time had passed.
fn spin(time: Duration) -> Vec<u64> {
    let deadline = Instant::now() + time;
    let mut pieces = Vec::new();
    while Instant::now() < deadline {
        let begin = cpu_ns();
        piece();
        pieces.push(cpu_ns().saturating_sub(begin));
    }
    pieces
}

/// Arithmetic in which each step needs the one before, in registers alone: its time is the processor's.
fn piece() {
    let mut state = black_box(0x9E37_79B9_7F4A_7C15_u64);
    for _ in 0..ROUNDS {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    black_box(state);
}

fn cpu_ns() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}
