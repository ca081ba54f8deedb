//! How a tree is ended: asked, then killed, then given up. Pure: time and the tree's state are passed in.
//!
//! ```text
//! off ──begin──► asking ──stop timeout──► killing ──5 s──► over
//!                   └───────empty───────────┴──────────────►
//! ```
//! The first half of the stop timeout is early: a daemon then still has the time to end the others itself.

use std::time::{Duration, Instant};

/// How long processes may take to end after SIGKILL. Only those stuck in the kernel take any time at all.
pub(super) const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// What to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing: nobody has asked for an end.
    Rest,
    /// Send SIGTERM to whoever has not got it yet.
    Ask,
    /// Send SIGKILL to everything.
    Kill,
    /// Report, and end.
    Finish,
}

/// How far the end has come.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shutdown {
    Off,
    Asking { early_until: Instant, until: Instant },
    Killing { until: Instant },
    Over,
}

impl Shutdown {
    /// Begins the end; a second call changes nothing.
    pub fn begin(&mut self, now: Instant, stop_timeout: Duration) {
        if matches!(self, Self::Off) {
            *self = Self::Asking { early_until: now + stop_timeout / 2, until: now + stop_timeout };
        }
    }

    /// Moves on, and says what to do.
    pub fn step(&mut self, now: Instant, empty: bool) -> Step {
        *self = match *self {
            Self::Off => Self::Off,
            Self::Asking { .. } | Self::Killing { .. } if empty => Self::Over,
            Self::Asking { until, .. } if now >= until => Self::Killing { until: now + KILL_PATIENCE },
            Self::Killing { until } if now >= until => Self::Over,
            same => same,
        };
        match self {
            Self::Off => Step::Rest,
            Self::Asking { .. } => Step::Ask,
            Self::Killing { .. } => Step::Kill,
            Self::Over => Step::Finish,
        }
    }

    /// Whether a daemon that ends the others itself still has the time.
    pub fn is_early(&self, now: Instant) -> bool {
        matches!(self, Self::Asking { early_until, .. } if now < *early_until)
    }

    /// Whether the tree is being ended, so that it has to be looked at again and again.
    pub fn is_under_way(&self) -> bool {
        matches!(self, Self::Asking { .. } | Self::Killing { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STOP_TIMEOUT: Duration = Duration::from_secs(2);

    #[test]
    fn a_tree_is_asked_once_then_killed_then_given_up() {
        let start = Instant::now();
        let after = |seconds: u64| start + Duration::from_secs(seconds);
        let mut shutdown = Shutdown::Off;
        assert_eq!(shutdown.step(start, true), Step::Rest);
        shutdown.begin(start, STOP_TIMEOUT);
        assert!(shutdown.is_early(start));
        assert_eq!(shutdown.step(after(1), false), Step::Ask);
        assert!(
            !shutdown.is_early(after(1)),
            "a daemon that does not end the others must not keep them for ever"
        );
        shutdown.begin(after(1), STOP_TIMEOUT);
        assert_eq!(shutdown.step(after(2), false), Step::Kill);
        assert_eq!(shutdown.step(after(6), false), Step::Kill);
        assert_eq!(shutdown.step(after(7), false), Step::Finish);
    }

    #[test]
    fn an_empty_tree_is_finished_at_once() {
        let now = Instant::now();
        let mut shutdown = Shutdown::Off;
        shutdown.begin(now, STOP_TIMEOUT);
        assert_eq!(shutdown.step(now, true), Step::Finish);
        assert_eq!(shutdown.step(now, true), Step::Finish);
    }
}
