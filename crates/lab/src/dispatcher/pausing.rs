//! Where a run waits because the user wants it to: between slices and between blocks, never within a slice. The budget does not run
//! meanwhile.

use record::Event;

use super::{Dispatcher, Notice};
use crate::world::Failure;

impl Dispatcher<'_> {
    /// Waits for as long as the user wants it, and keeps for how long that was.
    pub(super) fn pause_if_wanted(&mut self) -> Result<(), Failure> {
        match self.waited() {
            None => Ok(()),
            Some((seconds, outcome)) => {
                self.keep(Event::Paused { block: self.block, seconds })?;
                outcome
            }
        }
    }

    /// The same between captures, of which nothing is kept: no figure is theirs.
    pub(super) fn pause_captures_if_wanted(&mut self) -> Result<(), Failure> {
        self.waited().map_or(Ok(()), |(_, outcome)| outcome)
    }

    /// For how long the run waited, and whether it goes on; `None` where nobody wanted it to wait.
    fn waited(&mut self) -> Option<(f64, Result<(), Failure>)> {
        if !self.world.is_pause_wanted() {
            return None;
        }
        self.notify(&Notice::Paused);
        let began_s = self.world.now_s();
        let outcome = self.world.wait_for_user();
        let seconds = self.world.now_s() - began_s;
        self.paused_s += seconds;
        self.notify(&Notice::Resumed { seconds });
        Some((seconds, outcome))
    }
}
