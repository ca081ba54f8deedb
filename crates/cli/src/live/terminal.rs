//! The terminal's modes while the live view is on: keys come one by one and unseen, and the cursor is hidden. Whatever ends the
//! program, they are put back; and a terminal that is not ours at the moment is neither read nor changed.
//!
//! Ctrl-C and Ctrl-Z stay what they are: signals.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Once, OnceLock};
use std::{io, panic};

use rustix::io::write;
use rustix::process::getpgrp;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr,
};

/// The modes as they were found, once they were changed.
static FOUND: OnceLock<Termios> = OnceLock::new();
/// Whether keys come one by one now, and whether the cursor is hidden.
static KEYS: AtomicBool = AtomicBool::new(false);
static HIDDEN: AtomicBool = AtomicBool::new(false);

const HIDE: &[u8] = b"\x1b[?25l";
const SHOW: &[u8] = b"\x1b[?25h";

/// Whether the terminal on stderr is ours to draw on: a shell gives it to one job at a time.
pub fn is_ours() -> bool {
    is_in_front(io::stderr())
}

/// Whether no other job has this terminal. One that controls nobody is everybody's.
fn is_in_front(terminal: impl AsFd) -> bool {
    tcgetpgrp(terminal).map_or(true, |group| group == getpgrp())
}

/// Has a panic told on a terminal as it was.
pub fn leave_on_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            leave();
            before(panic);
        }));
    });
}

/// Columns and rows of the terminal on stderr; `None` where it has none.
pub fn size() -> Option<(u16, u16)> {
    let size = tcgetwinsize(io::stderr()).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then_some((size.ws_col, size.ws_row))
}

/// Whether the modes are set for the view.
pub fn is_taken() -> bool {
    HIDDEN.load(Ordering::SeqCst)
}

/// Sets the modes for the view, with `keys` if stdin is to be read. Only for a terminal that is ours.
pub fn take(keys: bool) {
    HIDDEN.store(true, Ordering::SeqCst);
    let _ = write(io::stderr(), HIDE);
    if !keys || !is_in_front(io::stdin()) {
        return;
    }
    let Ok(found) = tcgetattr(io::stdin()) else { return };
    let found = FOUND.get_or_init(|| found);
    let mut modes = found.clone();
    modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
    modes.special_codes[SpecialCodeIndex::VMIN] = 1;
    modes.special_codes[SpecialCodeIndex::VTIME] = 0;
    KEYS.store(true, Ordering::SeqCst);
    let _ = tcsetattr(io::stdin(), OptionalActions::Now, &modes);
}

/// Puts the modes back. May be called from a signal handler: atomics and system calls, no memory, no locks.
pub fn give_back() {
    if HIDDEN.swap(false, Ordering::SeqCst) {
        let _ = write(io::stderr(), SHOW);
    }
    // From the background it would stop us instead.
    let keys = KEYS.swap(false, Ordering::SeqCst) && is_in_front(io::stdin());
    if let Some(found) = FOUND.get().filter(|_| keys) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, found);
    }
}

/// The same where the view is left as it stands: what comes next begins on a line of its own. Likewise from signal handlers.
pub fn leave() {
    if is_taken() {
        let _ = write(io::stderr(), b"\r\n");
    }
    give_back();
}
