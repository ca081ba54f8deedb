//! The last net: processes of a service whose warden was killed, found by every trace they bear, and killed.
//!
//! Wardens clean up by themselves; this is for the case that one cannot. It must never touch a process that bears no
//! trace of ours.

use std::collections::HashSet;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::group::CpuGroup;
use crate::marker::{Marker, VARIABLE};
use crate::process::{self, ProcessId, ProcessInfo, Stat};
use crate::{scratch, tree};

/// How long the net is cast again and again before the rest is left.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(10);

/// By what the processes of one service are known once their warden is gone.
#[derive(Debug)]
pub(crate) struct Kin {
    pub marker: Marker,
    warden: u32,
    group: Mutex<Option<CpuGroup>>,
    /// Processes that samples saw below the warden.
    seen: Mutex<HashSet<ProcessId>>,
}

impl Kin {
    pub fn new(marker: Marker, warden: u32) -> Self {
        Self { marker, warden, group: Mutex::default(), seen: Mutex::default() }
    }

    pub fn set_group(&self, group: Option<CpuGroup>) {
        *lock(&self.group) = group;
    }

    pub fn group(&self) -> Option<CpuGroup> {
        lock(&self.group).clone()
    }

    /// Keeps in mind who is below the warden now.
    pub fn remember(&self, processes: &[Stat]) {
        *lock(&self.seen) = processes.iter().map(|stat| stat.id).collect();
    }

    /// Kills all that is left of the service and removes its group and its folder; what could not be killed. For when the
    /// warden has ended without doing so.
    pub fn end(&self) -> Vec<ProcessId> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = self.survivors();
            if left.is_empty() || Instant::now() >= deadline {
                if let Some(group) = self.group() {
                    group.remove();
                }
                scratch::remove(&self.marker);
                return left;
            }
            left.iter().for_each(|id| {
                id.signal(Signal::KILL);
            });
            thread::sleep(PAUSE);
        }
    }

    /// By session: a number of a session is not given away while it has members. By having been seen. By the group.
    /// By the marker. And by descent from any of these.
    fn survivors(&self) -> Vec<ProcessId> {
        let members: HashSet<u32> =
            self.group().map(|group| group.members().into_iter().collect()).unwrap_or_default();
        let seen = lock(&self.seen).clone();
        let all: Vec<Stat> = tree::everyone().into_iter().filter(Stat::is_alive).collect();
        let is_kin = |stat: &&Stat| {
            let pid = stat.id.pid;
            stat.session == self.warden
                || members.contains(&pid)
                || seen.contains(&stat.id)
                || marker_of(pid).is_some_and(|marker| marker == self.marker)
        };
        let heads: Vec<Stat> = all.iter().filter(is_kin).copied().collect();
        let below = heads.iter().flat_map(|head| tree::by_parents(head.id.pid, &all));
        let everyone: HashSet<ProcessId> = below.chain(heads.iter().copied()).map(|stat| stat.id).collect();
        // The warden itself may be there still, when it closed its output without ending.
        everyone.into_iter().filter(|id| id.pid != self.warden).collect()
    }
}

/// A panic elsewhere does not make what we know of processes wrong.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn marker_of(pid: u32) -> Option<Marker> {
    let variables = process::environ(pid, |name| name == VARIABLE)?;
    Marker::parse(variables.get(VARIABLE)?)
}

/// Processes of services whose Proofload is no longer there: both it and the warden were killed, or the warden is
/// about to end them this moment. Reads the environment of every process of this user; takes some milliseconds.
///
/// In a container processes have other numbers there than they have here, so that nobody here can tell whether the Proofload of a marker
/// lives: what runs in one is left to whoever starts Proofload in it.
pub fn orphans() -> Vec<ProcessInfo> {
    let is_orphan = |stat: &Stat| {
        stat.is_alive()
            && marker_of(stat.id.pid).is_some_and(|marker| !marker.proofload().is_alive())
            && process::is_numbered_as_we_are(stat.id.pid)
    };
    tree::everyone().into_iter().filter(is_orphan).map(|stat| stat.info(&[])).collect()
}

/// Kills such processes and removes the folders of their services: those of them that could not be killed.
pub fn end_orphans(orphans: &[ProcessInfo]) -> Vec<ProcessId> {
    let deadline = Instant::now() + PATIENCE;
    let mut left: Vec<ProcessId> = orphans.iter().map(|orphan| orphan.id).collect();
    loop {
        left.retain(|id| id.is_alive());
        if left.is_empty() || Instant::now() >= deadline {
            scratch::remove_all_abandoned();
            return left;
        }
        left.iter().for_each(|id| {
            id.signal(Signal::KILL);
        });
        thread::sleep(PAUSE);
    }
}
