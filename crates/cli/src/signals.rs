//! Ctrl-C, SIGTERM and a closed terminal: the first asks to stop, the second does not wait.

use std::process;
use std::thread;

use lab::Stop;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::{exit, print};

/// Calls `stop` on the first signal; a second one ends the program at once, and the wardens clean up.
///
/// # Errors
/// If the handlers cannot be installed.
pub fn on_first(stop: Stop) -> anyhow::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    thread::Builder::new().name("signals".into()).spawn(move || {
        for (count, _) in signals.forever().enumerate() {
            if count > 0 {
                process::exit(i32::from(exit::INTERRUPTED));
            }
            print::talk(
                "stopping: the services are ended and the record is closed; once more to leave at once",
            );
            stop.request();
        }
    })?;
    Ok(())
}
