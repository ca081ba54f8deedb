//! The user's wish to stop, as it reaches whatever is under way.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A wish to stop, shared between the signal handler's thread and the lab.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    wanted: AtomicBool,
    /// Ends the slice under way early.
    slice: Mutex<Option<load::Interrupt>>,
}

impl Stop {
    /// Asks to stop: the slice under way ends early and nothing new is begun.
    pub fn request(&self) {
        self.0.wanted.store(true, Ordering::SeqCst);
        if let Some(interrupt) = self.slice().as_ref() {
            interrupt.stop();
        }
    }

    /// Whether somebody asked.
    pub fn is_requested(&self) -> bool {
        self.0.wanted.load(Ordering::SeqCst)
    }

    /// Registers what ends the slice that is about to begin, and ends it at once if somebody asked before.
    pub(crate) fn watch(&self, interrupt: load::Interrupt) {
        *self.slice() = Some(interrupt);
        if self.is_requested() {
            self.request();
        }
    }

    fn slice(&self) -> std::sync::MutexGuard<'_, Option<load::Interrupt>> {
        // The guarded value is whole at every moment, so a panic elsewhere does not spoil it.
        self.0.slice.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
