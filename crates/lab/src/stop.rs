//! The user's request to stop, for the current activity.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::Counts;

/// A request to stop, shared between the user interface and the lab.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<StopShared>);

#[derive(Debug, Default)]
struct StopShared {
    wanted: AtomicBool,
    /// Ends the current slice early, and reports its progress.
    slice: Mutex<Option<load::Handle>>,
}

impl Stop {
    /// Requests a stop: the current slice ends early and nothing new begins.
    pub fn request(&self) {
        self.0.wanted.store(true, Ordering::SeqCst);
        if let Some(slice) = self.slice().as_ref() {
            slice.stop();
        }
    }

    /// Whether a stop was requested.
    pub fn is_requested(&self) -> bool {
        self.0.wanted.load(Ordering::SeqCst)
    }

    /// Complete responses so far in the current or last slice. 0 if the load comes from other processes.
    pub fn responses(&self) -> u64 {
        self.slice().as_ref().map_or(0, load::Handle::done)
    }

    /// Counts of the current window so far. `None` between windows, and if the load comes from other
    /// processes. Takes a tenth of a second.
    pub fn so_far(&self) -> Option<Counts> {
        let slice = self.slice().clone();
        slice?.so_far()
    }

    /// Registers the handle of the next slice, and ends it at once if a stop was already requested.
    pub(crate) fn watch(&self, slice: load::Handle) {
        *self.slice() = Some(slice);
        if self.is_requested() {
            self.request();
        }
    }

    fn slice(&self) -> MutexGuard<'_, Option<load::Handle>> {
        // The value is always consistent, so a panic elsewhere does not invalidate it.
        self.0.slice.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
