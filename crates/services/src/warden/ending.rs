//! The signals that end a tree: SIGTERM once to each process, SIGKILL until there is none.
//!
//! It sends what it is told to; when, is [`super::shutdown`]'s to say.

use std::collections::HashSet;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::message::Leftover;
use crate::process::{ProcessId, Stat, describe};
use crate::tree::descendants;

/// Whom we signalled.
#[derive(Debug, Default)]
pub(super) struct Ending {
    asked: HashSet<ProcessId>,
    killed: HashSet<ProcessId>,
}

/// Those below the warden that can still do something.
fn alive() -> Vec<Stat> {
    descendants(std::process::id()).into_iter().filter(Stat::is_alive).collect()
}

impl Ending {
    /// Asks everyone who has not been asked, as long as there is a `head` only that. Once only: many programs take a second
    /// SIGTERM as "at once".
    pub fn ask(&mut self, head: Option<u32>) {
        let alive = alive();
        let head = alive.iter().find(|stat| Some(stat.id.pid) == head).copied();
        for stat in head.map_or(alive, |head| vec![head]) {
            if self.asked.insert(stat.id) && stat.id.signal(Signal::TERM) {
                // One that is stopped could not heed it.
                stat.id.signal(Signal::CONT);
            }
        }
    }

    /// Kills one that was to end the others and does not.
    pub fn kill_head(&mut self, head: Option<u32>) {
        if let Some(stat) = alive().iter().find(|stat| Some(stat.id.pid) == head) {
            self.killed.insert(stat.id);
            stat.id.signal(Signal::KILL);
        }
    }

    /// Kills everyone, whole process groups first: no fork slips through a group's signal.
    pub fn kill(&mut self) {
        let alive = alive();
        // All groups below are of our session or of sessions begun below, so none has strangers in it.
        let own = std::process::id();
        let groups: HashSet<u32> =
            alive.iter().map(|stat| stat.process_group).filter(|group| *group != own).collect();
        for group in groups {
            // Group 1 or 0 would mean everybody.
            if let Some(group) = i32::try_from(group).ok().filter(|group| *group > 1).and_then(Pid::from_raw)
            {
                let _ = kill_process_group(group, Signal::KILL);
            }
        }
        for stat in alive {
            self.killed.insert(stat.id);
            stat.id.signal(Signal::KILL);
        }
    }

    /// How many had to be killed, and who is still there.
    pub fn result(&self) -> (u32, Vec<Leftover>) {
        let leftovers = alive().into_iter().map(|stat| stat.id.pid);
        let leftovers = leftovers.map(|pid| Leftover { pid, description: describe(pid) }).collect();
        (u32::try_from(self.killed.len()).unwrap_or(u32::MAX), leftovers)
    }
}
