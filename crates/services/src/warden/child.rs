//! The service's first process: started by the warden so that it can neither outlive it nor inherit its habits.
//!
//! It starts and it reads the ends of children. It must not decide anything about them.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::process::{
    Signal, WaitOptions, WaitStatus, getppid, set_parent_process_death_signal, setpgid, wait,
};

use crate::marker;
use crate::message::{Exit, Spec};

/// Starts the service with its output going to `output` and its CPU time to the group of `entrance`; its number.
///
/// Its process group is its own, so that a signal to the group never meets the warden. Its session is the warden's,
/// which has no terminal: were it a session leader itself, opening a terminal would make that its own.
pub(super) fn spawn(spec: &Spec, output: OwnedFd, entrance: Option<File>) -> io::Result<u32> {
    let mut command = Command::new(&spec.program);
    command.args(spec.command.iter().skip(1)).current_dir(&spec.directory).stdin(Stdio::null());
    if let Some(name) = spec.command.first() {
        command.arg0(name);
    }
    command.stdout(output.try_clone()?).stderr(output);
    for name in &spec.env_withheld {
        command.env_remove(name);
    }
    let env = spec.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
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

/// Joins the control group whose `cgroup.procs` this is.
fn join(entrance: &File) -> io::Result<()> {
    // SAFETY: a write of one byte that lives as long as the program, to a descriptor that is open.
    let written = unsafe { libc::write(entrance.as_raw_fd(), b"0".as_ptr().cast(), 1) };
    if written == 1 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Gives the service the signals it would have in a fresh shell: the warden blocks all of them, and what Proofload's
/// caller had ignored (`nohup`, a shell's `&`) would be ignored by the service as well, which would then behave
/// otherwise than when somebody else runs the experiment.
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

/// Takes an end of any child, adopted ones too.
pub(super) enum Reaped {
    /// This process ended.
    Child(u32, Exit),
    /// All living children are still at it.
    NoneNow,
    /// There is no child, so there is no descendant either: orphans come to the warden.
    NoneLeft,
}

pub(super) fn reap() -> Reaped {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => {
                if let (Ok(pid), Some(exit)) = (u32::try_from(pid.as_raw_nonzero().get()), exit_of(status)) {
                    return Reaped::Child(pid, exit);
                }
            }
            Ok(None) => return Reaped::NoneNow,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return Reaped::NoneLeft,
        }
    }
}

fn exit_of(status: WaitStatus) -> Option<Exit> {
    let status = (status.exit_status().map(Exit::Status), status.terminating_signal().map(Exit::Signal));
    status.0.or(status.1)
}
