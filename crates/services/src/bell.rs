//! A value that threads change and other threads wait for.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Poll interval for cancellation.
const GLANCE: Duration = Duration::from_millis(100);

/// A value with a condition variable that is notified on changes.
#[derive(Debug, Default)]
pub(crate) struct Bell<T> {
    value: Mutex<T>,
    changed: Condvar,
}

impl<T> Bell<T> {
    /// Locks the value. A panic never leaves it half changed.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the value and notifies waiters.
    pub fn change<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let result = change(&mut self.lock());
        self.changed.notify_all();
        result
    }

    /// Waits until `wanted` finds something in the value, at most for `patience`, and until `cancelled`
    /// returns true.
    pub fn wait<R>(
        &self,
        patience: Duration,
        cancelled: &dyn Fn() -> bool,
        mut wanted: impl FnMut(&mut T) -> Option<R>,
    ) -> Option<R> {
        let deadline = Instant::now() + patience;
        let mut value = self.lock();
        loop {
            if let Some(found) = wanted(&mut value) {
                return Some(found);
            }
            let left = deadline
                .saturating_duration_since(Instant::now())
                .min(GLANCE);
            if left.is_zero() || cancelled() {
                return None;
            }
            value = self
                .changed
                .wait_timeout(value, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}
