//! What the first blocks settle for the later ones: warm-up, slices, blocks. From times and variances, blind to outcomes.
//!
//! Blocks that were dropped count for nothing here either, except that the first has watched the warm-up.

use record::{Event, WarmUp};

use super::Dispatcher;
use crate::environment::{Failure, Result};
use crate::tuning::{self, BLOCKS_MIN};

/// The block after which slices and blocks are settled from measurements, of those that count.
const SETTLED_AFTER: u32 = 3;

/// Share of the time left that the blocks aimed at may fill: the next ones may take a little longer.
const SLACK: f64 = 0.97;

impl Dispatcher<'_> {
    /// Settles warm-up and length of slices after the first whole block, which watched the warm-up whether it counts or not; the number of
    /// blocks after the third that counts, and that of slices from then on after each, for the spread becomes known as blocks come in.
    pub(super) fn settle(&mut self, counts: bool) -> Result<()> {
        if self.writer.record().warm_up.is_none() {
            self.settle_warm_up()?;
        }
        if self.search.is_some() {
            self.fit_windows();
            return Ok(());
        }
        if counts && self.blocks_kept() >= SETTLED_AFTER {
            self.settle_slices()?;
        }
        if counts && self.blocks_kept() == SETTLED_AFTER {
            self.settle_blocks()?;
        }
        Ok(())
    }

    fn settle_warm_up(&mut self) -> Result<()> {
        // What was measured tells more of who waits than the warm-ups did.
        if analysis::waiting_variants(self.writer.record(), self.block) != self.waiting {
            self.fit_turns();
        }
        let costs = self.costs;
        let variants = self.plan.variants.len();
        if let Some(costs) = &costs {
            self.settings.gap_s = costs.own_gap_s;
            self.settings = self.settings.with_slices_for(&self.plan.design, variants, costs.turn_gap_s);
        }
        let left_s = self.left_s();
        let chosen = match costs.filter(|_| self.settings.watched) {
            Some(costs) => {
                let kept = self.blocks_kept();
                let room_s = match &self.search {
                    Some(search) => search.warm_up_room_s(),
                    None => self.settings.warm_up_room_s(left_s, kept, variants, &costs),
                };
                tuning::warm_up(self.writer.record(), self.settings.warm_up_s, room_s)
            }
            None => {
                let steady_after_s = vec![None; variants];
                WarmUp { seconds: self.settings.warm_up_s, measured: false, steady_after_s }
            }
        };
        self.settings.warm_up_s = chosen.seconds;
        if let Some(costs) = costs.filter(|_| self.plan.design.slices.is_none()) {
            let most = self.settings.slices_within(left_s, self.blocks_kept(), variants, &costs);
            self.settings.slices = self.settings.slices.min(most);
        }
        self.keep(Event::WarmUpChosen(chosen))
    }

    fn settle_slices(&mut self) -> Result<()> {
        let Some(costs) = self.costs else { return Ok(()) };
        let mut allocation = tuning::allocation(self.writer.record(), &self.settings, &costs);
        if let Some(given) = self.plan.design.slices {
            allocation.slices = given;
            allocation.measured = false;
        } else {
            let variants = self.measured.len();
            let left_s = self.left_s();
            let kept = self.blocks_kept();
            let most = self.settings.slices_within(left_s * SLACK, kept, variants, &costs);
            allocation.slices = allocation.slices.min(most);
        }
        let first = self.writer.record().allocation.is_none();
        if first || allocation.slices != self.settings.slices {
            self.settings.slices = allocation.slices;
            self.keep(Event::SlicesChosen(allocation))?;
        }
        Ok(())
    }

    pub(super) fn settle_blocks(&mut self) -> Result<()> {
        if self.plan.comparisons.is_empty() {
            return Ok(());
        }
        let (kept, block_s) = (self.blocks_kept(), self.settled_block_s().unwrap_or(f64::INFINITY));
        let fit = tuning::blocks_within(kept, self.left_s(), block_s);
        let most = self.plan.design.blocks.map_or(fit, |blocks| blocks.min(fit));
        if most < BLOCKS_MIN {
            let needed_s = self.elapsed_s() + f64::from(BLOCKS_MIN.saturating_sub(kept)) * block_s;
            // A tenth more, for blocks that take a little longer than the last ones.
            return Err(Failure::BudgetTooSmall { needed_s: (needed_s * 1.1).ceil() as u64 });
        }
        self.keep(Event::BlocksChosen { blocks: most.min(stats::BLOCKS_MAX) })
    }
}
