//! The user's wish to stop, as it reaches whatever is under way.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::Counts;

/// A wish to stop, shared between whoever hears the user and the lab.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    wanted: AtomicBool,
    /// Ends the slice under way early, and tells how far it is.
    slice: Mutex<Option<load::Handle>>,
}

impl Stop {
    /// Asks to stop: the slice under way ends early and nothing new is begun.
    pub fn request(&self) {
        self.0.wanted.store(true, Ordering::SeqCst);
        if let Some(slice) = self.slice().as_ref() {
            slice.stop();
        }
    }

    /// Whether somebody asked.
    pub fn is_requested(&self) -> bool {
        self.0.wanted.load(Ordering::SeqCst)
    }

    /// Complete responses so far in the slice under way, or in the last one; 0 where load comes from other processes.
    pub fn responses(&self) -> u64 {
        self.slice().as_ref().map_or(0, load::Handle::done)
    }

    /// What has been counted of the window under way; `None` between windows, and where load comes from other processes. Takes a tenth
    /// of a second.
    pub fn so_far(&self) -> Option<Counts> {
        let slice = self.slice().clone();
        slice?.so_far()
    }

    /// Registers what ends the slice that is about to begin, and ends it at once if somebody asked before.
    pub(crate) fn watch(&self, slice: load::Handle) {
        *self.slice() = Some(slice);
        if self.is_requested() {
            self.request();
        }
    }

    fn slice(&self) -> MutexGuard<'_, Option<load::Handle>> {
        // The guarded value is whole at every moment, so a panic elsewhere does not spoil it.
        self.0.slice.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
