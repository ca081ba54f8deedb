//! Ctrl-C, SIGTERM and a closed terminal: the first asks to stop, the second does not wait.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use crate::exit;

const SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Calls `stop` on the first signal, from a thread of its own; a second signal ends the program at once, and the wardens
/// clean up.
///
/// # Errors
/// If the handlers cannot be installed.
pub fn on_first(stop: impl FnOnce() + Send + 'static) -> anyhow::Result<()> {
    let armed = Arc::new(AtomicBool::new(false));
    for signal in SIGNALS {
        // In this order: the handler that ends the program runs before the one that arms it.
        flag::register_conditional_shutdown(signal, i32::from(exit::INTERRUPTED), Arc::clone(&armed))?;
        flag::register(signal, Arc::clone(&armed))?;
    }
    let mut signals = Signals::new(SIGNALS)?;
    thread::Builder::new().name("signals".into()).spawn(move || {
        if signals.forever().next().is_some() {
            stop();
        }
    })?;
    Ok(())
}
