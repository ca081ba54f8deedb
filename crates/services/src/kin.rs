//! Last-resort cleanup: finds processes of a service whose warden was killed, by all their traces, and kills
//! them.
//!
//! Wardens normally clean up. This module covers the case that a warden cannot. It must never touch a process
//! without a trace of Proofload.

use std::collections::HashSet;
use std::thread;
use std::time::{Duration, Instant};

use machine::groups::ControlGroup;
use machine::process::{self, Environ, ProcessId, Stat};
use rustix::process::Signal;

use crate::bell::Bell;
use crate::container;
use crate::marker::{
    Marker, VARIABLE, kill_group, parent, remove_abandoned, remove_group, remove_unheld,
    scratch_directory,
};
use crate::message::Cleanup;
use crate::sample::{ProcessInfo, signal};

/// Maximum time for repeated kills before the remaining processes are left.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(10);

/// Traces that identify the processes of one service after its warden has ended.
#[derive(Debug)]
pub(crate) struct Kin {
    pub marker: Marker,
    warden: u32,
    pub group: Bell<Option<ControlGroup>>,
    /// Removes the rest of the service.
    cleanup: Option<Cleanup>,
    /// Processes that samples found below the warden.
    seen: Bell<HashSet<ProcessId>>,
}

impl Kin {
    pub fn new(marker: Marker, warden: u32, cleanup: Option<Cleanup>) -> Self {
        Self {
            marker,
            warden,
            group: Bell::default(),
            cleanup,
            seen: Bell::default(),
        }
    }

    /// Remembers the current descendants of the warden.
    pub fn remember(&self, processes: &[Stat]) {
        *self.seen.lock() = processes.iter().map(|stat| stat.id).collect();
    }

    /// Kills all remaining processes of the service, and removes its group and its folder. Returns the
    /// processes that could not be killed. Used when the warden has ended without doing so.
    pub fn end(&self) -> Vec<ProcessId> {
        let group = self.group.lock().clone();
        let left = kill(|| {
            group.as_ref().map(kill_group);
            self.survivors(group.as_ref())
        });
        self.cleanup.as_ref().map(container::clean_up);
        group.as_ref().map(remove_group);
        remove_unheld(&scratch_directory(&self.marker));
        left
    }

    /// Finds survivors by five traces. By session: the number is not reused while the session has members. By
    /// earlier samples. By the group. By the marker. And by descent from any of these.
    fn survivors(&self, group: Option<&ControlGroup>) -> Vec<ProcessId> {
        let members: HashSet<u32> = group
            .map(ControlGroup::members)
            .into_iter()
            .flatten()
            .collect();
        let seen = self.seen.lock().clone();
        let all: Vec<Stat> = process::everyone()
            .into_iter()
            .filter(Stat::is_alive)
            .collect();
        let is_kin = |stat: &&Stat| {
            let pid = stat.id.pid;
            stat.session == self.warden
                || members.contains(&pid)
                || seen.contains(&stat.id)
                || marker_of(pid).is_some_and(|marker| marker == self.marker)
        };
        let heads: Vec<&Stat> = all.iter().filter(is_kin).collect();
        let below = heads
            .iter()
            .flat_map(|head| process::by_parents(head.id.pid, &all));
        let everyone: HashSet<ProcessId> = below
            .map(|stat| stat.id)
            .chain(heads.iter().map(|stat| stat.id))
            .collect();
        // The warden may still be there if it closed its output without ending.
        everyone
            .into_iter()
            .filter(|id| id.pid != self.warden)
            .collect()
    }
}

/// Kills the remaining processes repeatedly until none is left or the time is over.
fn kill(mut left: impl FnMut() -> Vec<ProcessId>) -> Vec<ProcessId> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let now = left();
        if now.is_empty() || Instant::now() >= deadline {
            return now;
        }
        now.iter().for_each(|id| _ = signal(*id, Signal::KILL));
        thread::sleep(PAUSE);
    }
}

fn marker_of(pid: u32) -> Option<Marker> {
    Marker::parse(
        Environ::read(pid)?
            .variables(|name| name == VARIABLE)
            .get(VARIABLE)?,
    )
}

/// Returns processes of services whose Proofload has ended: it and the warden were killed, or the warden is
/// about to end them. Reads the environment of every process of this user, which takes some milliseconds.
///
/// Processes in a container have other numbers inside it, so the state of such a marker's Proofload is
/// unknown here. Processes of a Proofload in a container are left to the next Proofload in that container.
pub fn orphans() -> Vec<ProcessInfo> {
    let is_orphan = |stat: &Stat| {
        stat.is_alive()
            && marker_of(stat.id.pid).is_some_and(|marker| marker.proofload.is_gone())
            && process::is_numbered_as_we_are(stat.id.pid)
    };
    process::everyone()
        .into_iter()
        .filter(is_orphan)
        .map(|stat| ProcessInfo::of(&stat, &[]))
        .collect()
}

/// Kills such processes and removes the folders of their services. Returns those that could not be killed.
pub fn end_orphans(orphans: &[ProcessInfo]) -> Vec<ProcessId> {
    let alive = || {
        orphans
            .iter()
            .map(|orphan| orphan.id)
            .filter(|id| id.is_alive())
            .collect()
    };
    let left = kill(alive);
    remove_abandoned(&parent());
    left
}
