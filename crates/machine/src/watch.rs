//! Watches the machine for two seconds: other processes' CPU use, the time taken by the host, and the
//! evenness of a processor.
//!
//! For one second it is quiet, to measure other processes. Then it works, because a host takes time only from
//! busy guests. It takes no longer, and starts nothing.

use std::collections::BTreeMap;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::clock::arithmetic_ns;
use crate::counters::CpuTicks;
use crate::process::{ProcessId, Stat, everyone};

/// Time for watching other processes.
const QUIET: Duration = Duration::from_millis(1000);
/// Time for which a processor works.
const WORK: Duration = Duration::from_millis(800);
/// Rounds in a piece of work: about two milliseconds of a processor of 3 GHz.
const ROUNDS: u64 = 1_500_000;
/// Minimum number of pieces to determine evenness.
const PIECES_MIN: usize = 20;
/// The first eighth of the pieces is excluded, because the processor may still raise its frequency.
const WARM_UP: usize = 8;
/// Maximum number of named processes.
const BUSIEST_MAX: usize = 3;
/// Minimum share of a processor for a process to be named: one tick of the kernel in the time watched.
const NAMED_MIN: f64 = 0.015;

/// The result of watching.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct MachineWatched {
    /// Duration in seconds.
    pub seconds: f64,
    /// Share of all CPU time that the hypervisor gave to other guests meanwhile, 0 to 1.
    pub steal_share: f64,
    /// Number of processors used while this process was quiet: 0.5 is half of one.
    pub others: f64,
    /// The processes that used most of it, as far as visible.
    pub busiest: Vec<Busy>,
    /// The evenness of identical work. `None` if the machine was too slow for enough of it.
    pub spin: Option<Spin>,
}

/// A process that uses a processor.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Busy {
    /// Its PID.
    pub pid: u32,
    /// Its name in the kernel: at most 15 bytes.
    pub name: String,
    /// Share of one processor.
    pub share: f64,
}

/// Repeated identical arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spin {
    /// Number of pieces.
    pub pieces: usize,
    /// Median CPU time of a piece, in microseconds.
    pub median_us: f64,
    /// Standard deviation of their CPU times over the mean.
    pub cv: f64,
}

/// The machine at one moment.
struct MachineReading {
    times: CpuTicks,
    processors: u64,
    /// Names, and ticks used so far.
    processes: BTreeMap<ProcessId, (String, u64)>,
}

/// Watches this machine for two seconds.
pub fn watch() -> MachineWatched {
    let begin = Instant::now();
    let take = || {
        MachineReading::of(
            &fs::read_to_string("/proc/stat").unwrap_or_default(),
            everyone(),
        )
    };
    let before = take();
    thread::sleep(QUIET);
    let after = take();
    let spin = Spin::of(&spin(WORK));
    let end = CpuTicks::read().unwrap_or_default();
    MachineWatched {
        seconds: begin.elapsed().as_secs_f64(),
        steal_share: end.since(before.times).steal_share(),
        spin,
        ..MachineWatched::between(&before, &after, std::process::id())
    }
}

impl MachineWatched {
    /// The CPU use of other processes between two readings. `own` is the process that watched.
    fn between(before: &MachineReading, after: &MachineReading, own: u32) -> MachineWatched {
        let passed = after.times.since(before.times);
        if passed.total() == 0 || after.processors == 0 {
            return MachineWatched::default();
        }
        // For one processor, so the length of a tick need not be known.
        let ticks = passed.total() as f64 / after.processors as f64;
        let mut busiest = Vec::new();
        let mut own_ticks = 0;
        for (id, (name, now)) in &after.processes {
            let then = before.processes.get(id).map_or(0, |(_, then)| *then);
            let used = now.saturating_sub(then);
            if id.pid == own {
                own_ticks = used;
            } else if used as f64 / ticks >= NAMED_MIN {
                busiest.push(Busy {
                    pid: id.pid,
                    name: name.clone(),
                    share: used as f64 / ticks,
                });
            }
        }
        busiest.sort_by(|one, other| other.share.total_cmp(&one.share));
        busiest.truncate(BUSIEST_MAX);
        // Counted by the kernel instead of summed up, because most processes are not visible in a container.
        let busy = passed.busy().saturating_sub(own_ticks);
        MachineWatched {
            steal_share: passed.steal_share(),
            others: busy as f64 / ticks,
            busiest,
            ..MachineWatched::default()
        }
    }
}

impl MachineReading {
    /// Parses the text of `/proc/stat`.
    fn of(stat: &str, processes: impl IntoIterator<Item = Stat>) -> MachineReading {
        // Names are chosen by the processes and go to a terminal.
        let name = |name: String| model::text::line(&name);
        let processes = processes
            .into_iter()
            .map(|stat| (stat.id, (name(stat.name), stat.cpu_ticks)));
        MachineReading {
            times: CpuTicks::parse(stat, "cpu").unwrap_or_default(),
            processors: stat
                .lines()
                .skip(1)
                .take_while(|line| line.starts_with("cpu"))
                .count() as u64,
            processes: processes.collect(),
        }
    }
}

impl Spin {
    /// From the CPU time of each piece, in nanoseconds and in order.
    fn of(pieces_ns: &[u64]) -> Option<Spin> {
        let kept: Vec<f64> = pieces_ns[pieces_ns.len() / WARM_UP..]
            .iter()
            .map(|ns| *ns as f64)
            .collect();
        if kept.len() < PIECES_MIN {
            return None;
        }
        let mean = kept.iter().sum::<f64>() / kept.len() as f64;
        let squares: f64 = kept.iter().map(|ns| (ns - mean).powi(2)).sum();
        let deviation = (squares / (kept.len() - 1) as f64).sqrt();
        let median_us = model::median(kept.iter().copied())? / 1e3;
        (mean > 0.0).then(|| Spin {
            pieces: kept.len(),
            median_us,
            cv: deviation / mean,
        })
    }
}

/// CPU time of each piece of work done within this time.
fn spin(time: Duration) -> Vec<u64> {
    let deadline = Instant::now() + time;
    std::iter::from_fn(|| (Instant::now() < deadline).then(|| arithmetic_ns(ROUNDS))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, name: &str, user: u64, start: u64) -> Stat {
        let rest = "0 ".repeat(30);
        let text = format!(
            "{pid} ({name}) R 1 7 7 0 -1 4194560 100 0 0 0 {user} 0 0 0 20 0 1 0 {start} {rest}"
        );
        Stat::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn who_used_a_processor_is_named_and_the_watcher_is_not() {
        let stat = |idle: u64, user: u64, steal: u64| {
            format!(
                "cpu  {user} 0 0 {idle} 0 0 0 {steal} 0 0\ncpu0 0 0 0 0\ncpu1 0 0 0 0\nintr 1\n"
            )
        };
        let (odd, own, gone) = (
            process(20, "a) b(", 50, 9),
            process(30, "proofload", 10, 8),
            process(40, "old", 900, 7),
        );
        let before = MachineReading::of(&stat(1000, 500, 0), [odd, own, gone]);
        // 200 ticks of two processors: 100 are a second.
        let (odd, own) = (process(20, "a) b(", 90, 9), process(30, "proofload", 30, 8));
        // A later process with the same PID has its own count.
        let (later, idle) = (process(40, "ne\x1bw", 12, 99), process(41, "idle", 1, 98));
        let after = MachineReading::of(&stat(1100, 590, 10), [odd, own, later, idle]);
        let seen = MachineWatched::between(&before, &after, 30);
        let named: Vec<(&str, f64)> = seen
            .busiest
            .iter()
            .map(|busy| (busy.name.as_str(), busy.share))
            .collect();
        assert_eq!(named, [("a) b(", 0.4), ("ne\u{fffd}w", 0.12)]);
        // 90 ticks of work, of which 20 were the watcher's own.
        assert_eq!((seen.others, seen.steal_share), (0.7, 0.05));
        assert_eq!(
            MachineWatched::between(&before, &before, 30),
            MachineWatched::default()
        );
    }

    #[test]
    fn equal_work_spreads_as_its_times_do() {
        let pieces: Vec<u64> = (0..160)
            .map(|index| if index % 2 == 0 { 1_900_000 } else { 2_100_000 })
            .collect();
        let spin = Spin::of(&pieces).expect("enough of them");
        assert_eq!(spin.pieces, 140);
        assert!((spin.cv - 0.05).abs() < 0.001, "{spin:?}");
        // Slow pieces before the processor has sped up are excluded.
        let mut pieces = vec![2_000_000; 80];
        pieces[..10].fill(9_000_000);
        assert_eq!(Spin::of(&pieces).map(|spin| spin.cv), Some(0.0));
        assert_eq!(Spin::of(&pieces[..20]), None);
    }
}
