//! How an agent's threads end the current window.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use load::Handle;

/// Ends the current window. The request to end may come before there is a load to interrupt.
#[derive(Clone, Default)]
pub(crate) struct Control(Arc<Mutex<Wishes>>);

#[derive(Default)]
pub(crate) struct Wishes {
    pub is_over: bool,
    pub is_timed_out: bool,
    load: Option<Handle>,
}

impl Control {
    pub fn wishes(&self) -> MutexGuard<'_, Wishes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers the load to interrupt at the end. Returns false if the end has already been requested.
    pub fn watch(&self, load: Handle) -> bool {
        let mut wishes = self.wishes();
        wishes.load = Some(load);
        !wishes.is_over
    }

    pub fn cancel(&self) {
        self.wishes().load.iter().for_each(Handle::stop);
    }

    pub fn end(&self, is_timed_out: bool) {
        let mut wishes = self.wishes();
        (wishes.is_over, wishes.is_timed_out) = (true, wishes.is_timed_out || is_timed_out);
        wishes.load.iter().for_each(Handle::stop);
    }
}
