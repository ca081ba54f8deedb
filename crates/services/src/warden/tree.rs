//! Finds and ends the processes below a warden. This module does not touch processes that are not below it.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use machine::process::{ProcessId, Stat, children, descendants_until};
use rustix::process::{
    Signal, WaitOptions, getppid, kill_process, kill_process_group,
    set_parent_process_death_signal, setpgid, wait,
};

use crate::marker;
use crate::message::{Exit, Leftover, WardenSpec};
use crate::sample::{pid_of, signal};

// The root process of the service. The warden starts it such that it cannot outlive the warden, and does not
// inherit its signal state.
//
// This module starts the process and reaps children. It decides nothing about them.

/// Starts the service with its output connected to `output` and its CPU time counted in the group of
/// `entrance`. Returns its process number.
///
/// It gets its own process group, so that a signal to the group never reaches the warden. It stays in the
/// warden's session, which has no terminal: as a session leader it could acquire a terminal by opening one.
pub(super) fn spawn(spec: &WardenSpec, output: OwnedFd, entrance: Option<File>) -> io::Result<u32> {
    let mut command = Command::new(&spec.program);
    command
        .args(spec.command.iter().skip(1))
        .current_dir(&spec.directory)
        .stdin(Stdio::null());
    if let Some(name) = spec.command.first() {
        command.arg0(name);
    }
    command.stdout(output.try_clone()?).stderr(output);
    for name in &spec.env_withheld {
        command.env_remove(name);
    }
    let env = spec
        .env
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    command.envs(env.chain([(marker::VARIABLE, spec.marker.as_str())]));
    let warden = rustix::process::getpid();
    let prepare = move || {
        setpgid(None, None)?;
        set_parent_process_death_signal(Some(Signal::KILL))?;
        if getppid() != Some(warden) {
            // The warden was killed before that could take effect.
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        reset_signals();
        entrance.as_ref().map_or(Ok(()), join)
    };
    // SAFETY: between fork and exec the closure makes system calls only: it allocates nothing and takes no locks. It
    // touches a file that was opened before. The warden has a single thread anyway.
    unsafe { command.pre_exec(prepare) };
    Ok(command.spawn()?.id())
}

/// Joins the control group with this `cgroup.procs` file.
fn join(entrance: &File) -> io::Result<()> {
    // SAFETY: a write of one byte that lives as long as the program, to a descriptor that is open.
    let written = unsafe { libc::write(entrance.as_raw_fd(), b"0".as_ptr().cast(), 1) };
    if written == 1 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Resets the service's signals to the state in a fresh shell. The warden blocks all signals, and the service
/// would inherit signals that Proofload's caller ignores (`nohup`, a shell's `&`). The service would then
/// behave differently when another user runs the experiment.
fn reset_signals() {
    for signal in 1..=libc::SIGRTMAX() {
        // SAFETY: restoring the default runs none of our code. Numbers that cannot be set are refused, which is fine.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // SAFETY: the set is filled before it is used.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// Returns a child that has ended, including adopted ones. `None` if all are still running.
///
/// # Errors
/// There is no child, and so no descendant either, because the warden adopts orphans.
pub(super) fn reap() -> rustix::io::Result<Option<(u32, Exit)>> {
    while let Some((pid, status)) = rustix::io::retry_on_intr(|| wait(WaitOptions::NOHANG))? {
        let exit = status.exit_status().map(Exit::Status);
        let exit = exit.or_else(|| status.terminating_signal().map(Exit::Signal));
        // A child that asked to be traced is also reported here when it stops, before others that have ended.
        if let (Ok(pid), Some(exit)) = (u32::try_from(pid.as_raw_nonzero().get()), exit) {
            return Ok(Some((pid, exit)));
        }
    }
    Ok(None)
}

// Signals that end a tree: SIGTERM once to each process, SIGKILL until none is left.
//
// [`super::shutdown`] decides when to send them.

/// Processes that were signalled.
#[derive(Debug, Default)]
pub(super) struct SignalledProcesses {
    asked: HashSet<ProcessId>,
    killed: HashSet<ProcessId>,
}

/// Time limit for finding descendants if nothing else is due.
const LOOKING: Duration = Duration::from_secs(1);

/// Living processes below the warden, as far as they are found by then.
fn alive(until: Instant) -> Vec<Stat> {
    descendants_until(std::process::id(), Some(until))
        .into_iter()
        .filter(Stat::is_alive)
        .collect()
}

/// Kills the process groups of these processes. All belong to our session or to sessions started below, so no
/// other process is in them.
fn kill_groups(stats: &[Stat]) {
    let own = std::process::id();
    let groups: HashSet<u32> = stats.iter().map(|stat| stat.process_group).collect();
    // Group 1 or 0 would mean all processes.
    for group in groups
        .into_iter()
        .filter(|group| *group != own && *group > 1)
        .filter_map(pid_of)
    {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

impl SignalledProcesses {
    /// Sends SIGTERM to every process that has not got it yet, or only to the `head` if there is one. Each
    /// process gets it once, because many programs take a second SIGTERM as "at once".
    pub fn ask(&mut self, head: Option<u32>, until: Instant) {
        let alive = alive(until);
        let head = alive.iter().find(|stat| Some(stat.id.pid) == head).cloned();
        for stat in head.map_or(alive, |head| vec![head]) {
            if self.asked.insert(stat.id) && signal(stat.id, Signal::TERM) {
                // A stopped process could not handle it.
                signal(stat.id, Signal::CONT);
            }
        }
    }

    /// Kills a head that should have ended the others and did not.
    pub fn kill_head(&mut self, head: Option<u32>) {
        if let Some(stat) = alive(Instant::now() + LOOKING)
            .iter()
            .find(|stat| Some(stat.id.pid) == head)
        {
            self.killed.insert(stat.id);
            signal(stat.id, Signal::KILL);
        }
    }

    /// Kills all processes, whole process groups first, because no fork escapes a group's signal.
    pub fn kill(&mut self) {
        let alive = alive(Instant::now() + LOOKING);
        kill_groups(&alive);
        for stat in alive {
            self.killed.insert(stat.id);
            signal(stat.id, Signal::KILL);
        }
    }

    /// Kills the warden's own children, including orphans, and their process groups, as fast as possible.
    /// Returns whether there were children other than `known`. A process that forks and ends within
    /// microseconds is gone before it can be looked up. A child and its group keep their numbers until the
    /// warden reaps it, so no lookup is needed.
    pub fn kill_children(&mut self, known: &mut HashSet<u32>) -> bool {
        let mut new = children(std::process::id());
        new.retain(|pid| known.insert(*pid));
        new.iter()
            .filter_map(|pid| pid_of(*pid))
            .for_each(|pid| _ = kill_process(pid, Signal::KILL));
        let stats: Vec<Stat> = new.iter().filter_map(|pid| Stat::read(*pid)).collect();
        kill_groups(&stats);
        self.killed.extend(stats.iter().map(|stat| stat.id));
        !new.is_empty()
    }

    /// Number of killed processes, and the processes that are still there.
    pub fn result(&self) -> (u32, Vec<Leftover>) {
        let leftovers = alive(Instant::now() + LOOKING)
            .iter()
            .map(|stat| Leftover::of(stat.id.pid))
            .collect();
        (
            u32::try_from(self.killed.len()).unwrap_or(u32::MAX),
            leftovers,
        )
    }
}

// How a tree is ended: asked, then killed, then given up. Pure: time and the tree's state are parameters.
//
// ```text
// off ──begin──► asking ──stop timeout──► killing ──5 s──► over
//                   └───────empty───────────┴──────────────►
// ```
// The first half of the stop timeout is early: a daemon then still has time to end the others itself.

/// Time that processes may take to end after SIGKILL. Only processes stuck in the kernel need any.
pub(super) const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// Progress of the shutdown, and the next action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shutdown {
    /// No action: no shutdown was requested.
    Off,
    /// Send SIGTERM to every process that has not got it yet.
    Asking {
        early_until: Instant,
        until: Instant,
    },
    /// Send SIGKILL to every process.
    Killing { until: Instant },
    /// Report, and exit.
    Over,
}

impl Shutdown {
    /// Starts the shutdown. A second call changes nothing.
    pub fn begin(&mut self, now: Instant, stop_timeout: Duration) {
        if *self == Self::Off {
            *self = Self::Asking {
                early_until: now + stop_timeout / 2,
                until: now + stop_timeout,
            };
        }
    }

    /// Advances the state.
    pub fn step(&mut self, now: Instant, empty: bool) -> Self {
        *self = match *self {
            Self::Asking { .. } | Self::Killing { .. } if empty => Self::Over,
            Self::Asking { until, .. } if now >= until => Self::Killing {
                until: now + KILL_PATIENCE,
            },
            Self::Killing { until } if now >= until => Self::Over,
            same => same,
        };
        *self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STOP_TIMEOUT: Duration = Duration::from_secs(2);

    #[test]
    fn a_tree_is_asked_once_then_killed_then_given_up_and_finished_at_once_when_it_is_empty() {
        let start = Instant::now();
        let after = |seconds: u64| start + Duration::from_secs(seconds);
        let mut shutdown = Shutdown::Off;
        assert_eq!(shutdown.step(start, true), Shutdown::Off);
        shutdown.begin(start, STOP_TIMEOUT);
        let mut other = shutdown;
        // A daemon that does not end the others must not block the shutdown.
        let asking = Shutdown::Asking {
            early_until: after(1),
            until: after(2),
        };
        assert_eq!(shutdown.step(after(1), false), asking);
        shutdown.begin(after(1), STOP_TIMEOUT);
        let killing = Shutdown::Killing { until: after(7) };
        assert_eq!(
            [2, 6].map(|at| shutdown.step(after(at), false)),
            [killing; 2]
        );
        assert_eq!(shutdown.step(after(7), false), Shutdown::Over);
        assert_eq!(
            [0, 0].map(|at| other.step(after(at), true)),
            [Shutdown::Over; 2]
        );
    }
}
