//! Where a run waits because the user wants it to: between slices and between blocks, never within a slice. The budget does not run
//! meanwhile.

use record::Event;

use super::{Dispatcher, News, Progress};
use crate::environment::Result;

impl Dispatcher<'_> {
    /// Waits for as long as the user wants it, and keeps for how long that was.
    pub(super) fn pause_if_wanted(&mut self) -> Result<()> {
        let Some((paused, outcome)) = self.waited() else { return Ok(()) };
        self.keep(paused)?;
        outcome
    }

    /// The same between captures, of which nothing is kept: no figure is theirs.
    pub(super) fn pause_captures_if_wanted(&mut self) -> Result<()> {
        let Some((paused, outcome)) = self.waited() else { return Ok(()) };
        self.tell(News::Event(&paused));
        outcome
    }

    /// The pause that the run made, and whether it goes on; `None` where nobody wanted it to wait.
    fn waited(&mut self) -> Option<(Event, Result<()>)> {
        if !self.environment.is_pause_wanted() {
            return None;
        }
        self.tell(News::Progress(Progress::Pausing));
        let began_s = self.environment.now_s();
        let outcome = self.environment.wait_for_user();
        let seconds = self.environment.now_s() - began_s;
        self.paused_s += seconds;
        Some((Event::Paused { block: self.block, seconds }, outcome))
    }
}
