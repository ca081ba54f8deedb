//! Data that services need: made or found before the first block, and before the budget begins.
//!
//! It is the same for every variant and every block, and no run is to be shorter for having been the first.

use record::Event;

use super::{Dispatcher, News, Progress, Update};
use crate::environment::Failure;

impl Dispatcher<'_> {
    /// Has all of it made; then the run begins.
    pub(super) fn prepare(&mut self) -> Result<(), Failure> {
        let left_s = self.plan.design.budget.as_secs_f64();
        for step in self.plan.prepare.clone() {
            let watch = &mut *self.watch;
            let mut tell = |preparing| {
                let news = News::Progress(Progress::Preparing { name: &step.name, doing: preparing });
                watch(&Update { elapsed_s: 0.0, left_s, news });
            };
            let prepared = self.environment.prepare(&step, &mut tell)?;
            self.keep(Event::Prepared(prepared))?;
        }
        (self.began_s, self.paused_s) = (self.environment.now_s(), 0.0);
        Ok(())
    }
}
