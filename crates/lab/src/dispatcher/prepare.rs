//! Data that services need: made or found before the first block, and before the budget begins.
//!
//! So is where services listen of which only they know: each is started once before the first block, for variants that insist on one port
//! cannot live together.
//!
//! It is the same for every variant and every block, and no run is to be shorter for having been the first.

use plan::{Pacing, Rate};
use record::Event;

use super::{Dispatcher, News, Progress, Update};
use crate::environment::Result;

impl Dispatcher<'_> {
    /// Has all of it made; then the run begins.
    pub(super) fn prepare(&mut self) -> Result<()> {
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

    /// Starts once, in a block 0 that never ends, each variant of which nobody knows where it listens.
    pub(super) fn find_ports(&mut self) -> Result<()> {
        let variants = self.plan.variants.iter().enumerate();
        let unknown =
            variants.filter(|(_, variant)| variant.services.iter().any(plan::Service::chooses_port));
        let order: Vec<usize> = unknown.map(|(index, _)| index).collect();
        // One alone has nobody to fight with, and where capacities are measured, everything is started once in any case.
        if order.is_empty()
            || self.plan.variants.len() < 2
            || matches!(self.plan.design.rate, Some(Rate::ShareOfCapacity(_)))
            || self.plan.design.pacing() == Pacing::Search
        {
            return Ok(());
        }
        self.one_by_one(order, Self::start)?;
        (self.began_s, self.paused_s) = (self.environment.now_s(), 0.0);
        Ok(())
    }
}
