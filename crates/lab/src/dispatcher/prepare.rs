//! Data that services need: made or found before the first block, and before the budget begins.
//!
//! It is the same for every variant and every block, and no run is to be shorter for having been the first.

use record::Event;

use super::{Dispatcher, Notice, Progress};
use crate::world::Failure;

impl Dispatcher<'_> {
    /// Has all of it made; then the run begins.
    pub(super) fn prepare(&mut self) -> Result<(), Failure> {
        let left_s = self.plan.design.budget.as_secs_f64();
        for step in self.plan.prepare.clone() {
            let watch = &mut *self.watch;
            let mut tell = |preparing| {
                let notice = &Notice::Preparing(&step.name, preparing);
                let (block, dropped, elapsed_s) = (0, 0, 0.0);
                watch(&Progress { block, dropped, blocks_planned: None, elapsed_s, left_s, notice });
            };
            let prepared = self.world.prepare(&step, &mut tell)?;
            self.notify(&Notice::Prepared(&prepared));
            self.keep(Event::Prepared(prepared))?;
        }
        (self.began_s, self.paused_s) = (self.world.now_s(), 0.0);
        Ok(())
    }
}
