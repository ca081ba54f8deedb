//! The workers of a service: whether all are there when it is started, and whether any is gone later.
//!
//! A worker is a process that serves beside others of its kind: one of a cluster of Node.js, whoever started that, or the
//! process that PM2 started. They are counted, never believed. It must not touch them.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use plan::Launcher;

use super::{LOOK_AGAIN, Running};
use crate::error::TargetError;
use crate::process::{ProcessId, Stat, cpu_ns, environ, run_delay_ns};
use crate::tree;

/// In the environment of each worker that the cluster module of Node.js starts. It takes it out of `process.env`, so
/// that it is in no child of theirs.
const OF_CLUSTER: &str = "NODE_UNIQUE_ID";
/// In the environment of what PM2 starts, and of all its children.
const OF_PM2: &str = "pm_id";

/// A service is idle once its processes were busy for at most so long in this time, and is not waited for any longer than
/// that.
const IDLE_BUSY_NS: u64 = 10_000_000;
const IDLE_FOR: Duration = Duration::from_millis(100);
const IDLE_PATIENCE: Duration = Duration::from_secs(3);

/// Which workers a service is to have, and which it had when it became ready.
#[derive(Debug)]
pub(super) struct Crew {
    launcher: Launcher,
    wanted: Option<u32>,
    seen: Vec<ProcessId>,
}

impl Crew {
    pub fn new(launcher: Launcher, wanted: Option<u32>) -> Self {
        Self { launcher, wanted, seen: Vec::new() }
    }

    /// How many there must be, where so many have been `found`. A program that is started as it is may make its processes
    /// in its own way, which we do not know; where it makes a cluster, it is one of as many as it was told.
    fn needed(&self, found: usize) -> usize {
        let counts = self.launcher != Launcher::Exec || found > 0;
        self.wanted.filter(|_| counts).map_or(0, |wanted| usize::try_from(wanted).unwrap_or(usize::MAX))
    }

    /// The workers among the processes of a service.
    fn among(&self, processes: &[Stat]) -> Vec<ProcessId> {
        let word = if self.launcher == Launcher::Pm2Fork { OF_PM2 } else { OF_CLUSTER };
        let has_it = |stat: &&Stat| {
            let variables = environ(stat.id.pid, |name| name == word);
            stat.is_alive() && variables.is_some_and(|variables| !variables.is_empty())
        };
        let bearers: Vec<Stat> = processes.iter().filter(has_it).copied().collect();
        let numbers: HashSet<u32> = bearers.iter().map(|stat| stat.id.pid).collect();
        // What PM2's process starts inherits its variable.
        bearers.iter().filter(|stat| !numbers.contains(&stat.ppid)).map(|stat| stat.id).collect()
    }
}

impl Running {
    /// Workers that it had when it became ready; `None` where it has none that can be told from its other processes.
    pub fn workers(&self) -> Option<u32> {
        u32::try_from(self.crew.seen.len()).ok().filter(|workers| *workers > 0)
    }

    /// How many of them are gone, also if others have taken their places.
    pub fn workers_lost(&self) -> u32 {
        let lost = self.crew.seen.iter().filter(|worker| !worker.is_alive()).count();
        u32::try_from(lost).unwrap_or(u32::MAX)
    }

    /// Waits until all its workers are there. A server deals connections to its workers when they are opened, so one that
    /// comes later never gets any.
    pub(super) fn wait_workers(
        &mut self,
        begin: Instant,
        patience: Duration,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(), TargetError> {
        loop {
            let (found, needed) = self.count_workers();
            if found.len() >= needed {
                // Of one that had to be there it is known that it is: it answered.
                if needed != 1 && !found.is_empty() {
                    self.wait_idle(cancelled)?;
                }
                let (found, needed) = self.count_workers();
                if found.len() >= needed {
                    self.crew.seen = found;
                    return Ok(());
                }
            }
            self.check_start(begin, cancelled)?;
            if begin.elapsed() >= patience {
                return Err(self.too_few_workers(found.len(), begin.elapsed()));
            }
            self.link.wait(LOOK_AGAIN, |news| news.end());
        }
    }

    /// The workers that there are, and how many there must be.
    fn count_workers(&self) -> (Vec<ProcessId>, usize) {
        let processes = tree::descendants(self.link.pid());
        self.link.kin.remember(&processes);
        let found = self.crew.among(&processes);
        let needed = self.crew.needed(found.len());
        (found, needed)
    }

    /// Waits until workers that have only just begun are done with loading their program, and whoever started them with
    /// doing so.
    fn wait_idle(&mut self, cancelled: &dyn Fn() -> bool) -> Result<(), TargetError> {
        let begin = Instant::now();
        let mut before = self.busy_ns();
        while begin.elapsed() < IDLE_PATIENCE {
            self.link.wait(IDLE_FOR, |news| news.end());
            self.check_start(begin, cancelled)?;
            let now = self.busy_ns();
            if now.saturating_sub(before) <= IDLE_BUSY_NS {
                break;
            }
            before = now;
        }
        Ok(())
    }

    /// CPU time that its processes have used or waited for: on a busy machine one that has much to do may get to nothing.
    fn busy_ns(&self) -> u64 {
        let processes = tree::descendants(self.link.pid());
        processes.iter().map(|stat| cpu_ns(stat.id.pid).unwrap_or(0) + run_delay_ns(stat.id.pid)).sum()
    }

    fn check_start(&mut self, begin: Instant, cancelled: &dyn Fn() -> bool) -> Result<(), TargetError> {
        if cancelled() {
            return Err(TargetError::Cancelled { service: self.name.clone() });
        }
        match self.exited() {
            Some(exit) => Err(self.exited_early(exit, begin.elapsed())),
            None => Ok(()),
        }
    }

    fn too_few_workers(&self, running: usize, after: Duration) -> TargetError {
        TargetError::TooFewWorkers {
            service: self.name.clone(),
            command: self.command.clone(),
            running,
            wanted: self.crew.wanted.unwrap_or_default(),
            after,
            tail: self.tail().into(),
        }
    }
}
