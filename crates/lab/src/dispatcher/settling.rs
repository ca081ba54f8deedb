//! What the first blocks settle for the later ones: warm-up, slices, blocks. From times and variances, blind to outcomes.
//!
//! Blocks that were dropped count for nothing here either, except that the first has watched the warm-up.

use plan::LookRule;
use record::{Event, WarmUp};

use super::Dispatcher;
use crate::environment::Failure;
use crate::tuning::{self, BLOCKS_MIN};

/// The block after which slices and blocks are settled from measurements, of those that count.
const SETTLED_AFTER: u32 = 3;

/// Share of the time left that the blocks of a verdict may fill: the next ones may take a little longer.
const SLACK: f64 = 0.97;

impl Dispatcher<'_> {
    /// Settles warm-up and length of slices after the first whole block, which watched the warm-up whether it counts or not; their
    /// number and that of blocks after the third that counts.
    pub(super) fn settle(&mut self, counts: bool) -> Result<(), Failure> {
        if self.writer.record().warm_up.is_none() {
            self.settle_warm_up()?;
        }
        if counts && self.blocks_kept() == SETTLED_AFTER {
            self.settle_slices()?;
            self.settle_blocks()?;
        } else if counts && (SETTLED_AFTER..BLOCKS_MIN).contains(&self.blocks_kept()) {
            self.trim_slices()?;
        }
        Ok(())
    }

    /// Takes slices from the trials to come where blocks have turned out longer than they were when that was settled, so that a verdict's
    /// six still fit: by times alone.
    fn trim_slices(&mut self) -> Result<(), Failure> {
        let (costs, allocation) =
            (tuning::costs(self.writer.record()), self.writer.record().allocation.clone());
        let (Some(costs), Some(mut allocation)) = (costs, allocation) else { return Ok(()) };
        let (left_s, kept, variants) = (self.left_s(), self.blocks_kept(), self.plan.variants.len());
        let most = tuning::slices_within(left_s * SLACK, kept, variants, &self.settings, &costs);
        if self.plan.design.slices.is_some() || most >= allocation.slices {
            return Ok(());
        }
        (allocation.slices, self.settings.slices) = (most, most);
        self.keep(Event::SlicesChosen(allocation))
    }

    fn settle_warm_up(&mut self) -> Result<(), Failure> {
        let costs = tuning::costs(self.writer.record());
        let variants = self.plan.variants.len();
        if let Some(costs) = &costs {
            self.settings.gap_s = costs.own_gap_s;
            self.settings = self.settings.with_slices_for(&self.plan.design, costs.turn_gap_s);
        }
        let left_s = self.left_s();
        let chosen = match costs.filter(|_| self.settings.watched) {
            Some(costs) => {
                let kept = self.blocks_kept();
                let room_s = tuning::warm_up_room_s(left_s, kept, variants, &self.settings, &costs);
                tuning::warm_up(self.writer.record(), self.settings.warm_up_s, room_s)
            }
            None => {
                let steady_after_s = vec![None; variants];
                WarmUp { seconds: self.settings.warm_up_s, measured: false, steady_after_s }
            }
        };
        self.settings.warm_up_s = chosen.seconds;
        if let Some(costs) = costs.filter(|_| self.plan.design.slices.is_none()) {
            let most = tuning::slices_within(left_s, self.blocks_kept(), variants, &self.settings, &costs);
            self.settings.slices = self.settings.slices.min(most);
        }
        self.keep(Event::WarmUpChosen(chosen))
    }

    fn settle_slices(&mut self) -> Result<(), Failure> {
        let Some(costs) = tuning::costs(self.writer.record()) else { return Ok(()) };
        let mut allocation = tuning::allocation(self.writer.record(), &self.settings, &costs);
        if let Some(given) = self.plan.design.slices {
            allocation.slices = given;
            allocation.measured = false;
        } else {
            let variants = self.plan.variants.len();
            let left_s = self.left_s();
            let most = tuning::slices_within(left_s, self.blocks_kept(), variants, &self.settings, &costs);
            allocation.slices = allocation.slices.min(most);
        }
        self.settings.slices = allocation.slices;
        self.keep(Event::SlicesChosen(allocation))
    }

    fn settle_blocks(&mut self) -> Result<(), Failure> {
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
        let blocks = match self.plan.design.looks {
            // Only so many blocks have a boundary.
            LookRule::Planned => stats::Looks::plan(most, 1).map_or(most, |looks| looks.last()),
            LookRule::Always | LookRule::Once => most,
        };
        self.keep(Event::BlocksChosen { blocks })
    }
}
