//! Ctrl-C, SIGTERM, a closed terminal and the end of a parent: the first requests a stop, a second ends at
//! once. Ctrl-Z, which restores the terminal first. And the file size limit, which is reported like any other
//! error.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::{env, io};

use anyhow::Context;
use lab::Stop;
use machine::clock::monotonic_ns;
use machine::process::{field, text};
use rustix::process::{Pid, Signal, getpgrp, getppid, getsid, set_parent_process_death_signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGTSTP, SIGUSR1, SIGXFSZ};
use signal_hook::iterator::Signals;
use signal_hook::low_level::{emulate_default_handler, exit, register};

use crate::exit::INTERRUPTED;
use crate::{live, print};

const SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Variable in which a wrapper program, such as the npm package, passes its process ID.
const PARENT: &str = "PROOFLOAD_PARENT";
/// Sent by the kernel when the wrapper ends. Not one of [`SIGNALS`]: after a Ctrl-C it must not count as a
/// second one.
const PARENT_ENDED: i32 = SIGUSR1;

/// A repeated signal within this time is an echo: npm, npx and `timeout` forward signals that the terminal,
/// or they themselves, have sent to all processes.
const ECHO_NS: u64 = 500_000_000;

/// Whether signals are handled: see [`on_first`].
static HEARD: AtomicBool = AtomicBool::new(false);

/// Makes the end of the parent in [`PARENT`] stop this program like Ctrl-C, also if the parent was killed.
/// Call it first in `main`: services must not inherit the variable, and no thread may run while it is
/// removed.
pub fn stop_with_parent() {
    let Ok(parent) = env::var(PARENT) else { return };
    // SAFETY: no other thread runs yet.
    unsafe { env::remove_var(PARENT) };
    let _ = set_parent_process_death_signal(Some(Signal::USR1));
    // The parent may have ended before that.
    if getppid().map(Pid::as_raw_pid).map(|pid| pid.to_string()) != Some(parent) {
        exit(i32::from(INTERRUPTED));
    }
}

/// Makes signals end the program if it is the first process of a container, where the kernel ignores signals
/// without a handler. Everything that it started ends with it.
pub fn end_as_first_process() {
    let end = || {
        if !HEARD.load(Ordering::SeqCst) {
            exit(i32::from(INTERRUPTED));
        }
    };
    for signal in heeded().into_iter().filter(|_| std::process::id() == 1) {
        // SAFETY: the handler only uses an atomic and `_exit`, which are async-signal-safe.
        let _ = unsafe { register(signal, end) };
    }
}

/// The [`SIGNALS`] that the caller of the program had not ignored: with `nohup` it should outlive its
/// terminal.
fn heeded() -> Vec<i32> {
    let status = text(std::process::id(), "status");
    let ignored = field(&status, "SigIgn").and_then(|mask| u64::from_str_radix(mask, 16).ok());
    let is_heeded = |signal: &i32| ignored.unwrap_or(0) >> (signal - 1) & 1 == 0;
    SIGNALS.into_iter().filter(is_heeded).collect()
}

/// Calls `stop` on the first signal, from a separate thread. A second one that is no echo ends the program at
/// once, and the wardens clean up. Ignored signals stay ignored.
pub fn on_first(stop: impl FnOnce() + Send + 'static) -> anyhow::Result<()> {
    let armed = Arc::new(AtomicBool::new(false));
    let heeded = heeded();
    for &signal in &heeded {
        let armed = Arc::clone(&armed);
        let first_ns = AtomicU64::new(0);
        let again = move || {
            let now_ns = monotonic_ns();
            let before = first_ns
                .compare_exchange(0, now_ns, Ordering::SeqCst, Ordering::SeqCst)
                .err();
            let is_echo =
                before.is_some_and(|before_ns| now_ns.saturating_sub(before_ns) < ECHO_NS);
            if armed.swap(true, Ordering::SeqCst) && !is_echo {
                live::leave();
                exit(i32::from(INTERRUPTED));
            }
        };
        // SAFETY: the handler only uses a clock, atomics, `live::leave`, which is documented as safe in a
        // signal handler, and `_exit`.
        unsafe { register(signal, again) }?;
    }
    let mut signals = Signals::new(heeded.iter().chain([&PARENT_ENDED]))?;
    HEARD.store(true, Ordering::SeqCst);
    let wait = move || {
        if signals.forever().next().is_some() {
            stop();
        }
    };
    thread::Builder::new()
        .name("signals".into())
        .spawn(wait)
        .context("cannot start a thread")?;
    Ok(())
}

/// Makes the first signal request a stop of the run, with a message.
pub fn stop_on_first(stop: Stop, told: &'static str) -> anyhow::Result<()> {
    on_first(move || {
        stop.request();
        print::talk(told);
    })
}

/// Makes a write beyond `ulimit -f` fail instead of ending the program. The signal is not ignored, because
/// services would inherit that.
pub fn outlive_file_limit() {
    // SAFETY: an empty handler is safe.
    let _ = unsafe { register(SIGXFSZ, || {}) };
}

/// Calls `first` before a Ctrl-Z stops the program. It must be safe in a signal handler: no allocations, no
/// locks.
pub fn on_suspend(first: fn()) -> io::Result<()> {
    let suspend = move || {
        // Without a parent shell nothing would continue this program. The kernel does not stop such a program
        // either.
        if getsid(None).is_ok_and(|session| session == getpgrp()) {
            return;
        }
        first();
        let _ = emulate_default_handler(SIGTSTP);
    };
    // SAFETY: `first` is required to be safe in a signal handler, and the emulation of the default handler is
    // made for that.
    unsafe { register(SIGTSTP, suspend) }?;
    Ok(())
}
