//! Ctrl-C, SIGTERM and a closed terminal: the first asks to stop, the second does not wait. And Ctrl-Z, which leaves the terminal as it
//! was found.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::process::{getpgrp, getsid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;
use signal_hook::low_level::{emulate_default_handler, exit, register};

use crate::exit::INTERRUPTED;
use crate::live;

const SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Calls `stop` on the first signal, from a thread of its own; a second signal ends the program at once, and the wardens
/// clean up.
///
/// # Errors
/// If the handlers cannot be installed.
pub fn on_first(stop: impl FnOnce() + Send + 'static) -> anyhow::Result<()> {
    let armed = Arc::new(AtomicBool::new(false));
    for signal in SIGNALS {
        let armed = Arc::clone(&armed);
        let again = move || {
            if armed.swap(true, Ordering::SeqCst) {
                live::leave();
                exit(i32::from(INTERRUPTED));
            }
        };
        // SAFETY: all that it does may be done in a signal handler: an atomic, `live::leave`, which says so of itself, and `_exit`.
        unsafe { register(signal, again) }?;
    }
    let mut signals = Signals::new(SIGNALS)?;
    thread::Builder::new().name("signals".into()).spawn(move || {
        if signals.forever().next().is_some() {
            stop();
        }
    })?;
    Ok(())
}

/// Does this before a Ctrl-Z stops the program. It must be fit for a signal handler: no memory, no locks.
///
/// # Errors
/// If the handler cannot be installed.
pub fn on_suspend(first: fn()) -> io::Result<()> {
    let suspend = move || {
        // Where no shell is above us nobody would have us go on; the kernel stops no such program either.
        if getsid(None).is_ok_and(|session| session == getpgrp()) {
            return;
        }
        first();
        let _ = emulate_default_handler(SIGTSTP);
    };
    // SAFETY: the caller's part is fit for it, and the default handler's stand-in is made for it.
    unsafe { register(SIGTSTP, suspend) }?;
    Ok(())
}
