//! Timing that depends on finished blocks: the first blocks determine warm-up, slices and number of blocks for
//! the later ones, from times and variances, blind to outcomes.
//!
//! Some blocks are dropped, because the machine was disturbed, or generators did not begin together. The
//! rules do not use the measured values. Dropped blocks are recorded and replaced. They determine nothing,
//! except that the first one has watched the warm-up. A disturbed block must not be dropped if it cannot be
//! replaced. A block without load is always dropped.

use analysis::usage::works_unseen;
use record::{Allocation, Block, EndReason, Event, Record};

use super::Dispatcher;
use crate::disturbance::{StolenShares, begun_apart, stood_still};
use crate::environment::{Failure, Result};
use crate::schedule::take_turns;
use crate::timing::{
    self, BLOCKS_AIM, BLOCKS_MIN, BudgetLeft, FirstBlockTimes, MeasuredTimes, ResponseTimes,
};

/// The number of counting blocks after which slices and blocks are determined from measurements.
const SETTLED_AFTER: u32 = 3;

/// Number of blocks that may be dropped regardless of their share.
const DROPPED_MIN: u32 = 3;

impl Dispatcher<'_> {
    /// Determines warm-up and length of slices after the first complete block, which watched the warm-up
    /// whether it counts or not. The number of blocks is determined after the third that counts. The number
    /// of slices is updated after each one from then on, because the spread becomes better known.
    pub(super) fn choose_timing(&mut self, counts: bool) -> Result<()> {
        if self.writer.record().warm_up.is_none() {
            self.choose_warm_up()?;
        }
        if self.search.is_some() {
            self.choose_windows();
            return Ok(());
        }
        if counts && self.blocks_kept() >= SETTLED_AFTER {
            self.choose_slices()?;
        }
        if counts && self.blocks_kept() == SETTLED_AFTER {
            self.choose_blocks()?;
        }
        Ok(())
    }

    /// Computes the timing of the next trials from these measurements and the budget that is left.
    pub(super) fn update_timing(&mut self, measured: MeasuredTimes<'_>) {
        let budget = BudgetLeft {
            seconds: self.left_s(),
            blocks_kept: self.blocks_kept(),
            variants: self.measured.len(),
            warm_up_max_s: self.search.map(|search| search.warm_up_room_s()),
        };
        self.timing = timing::next(self.timing, &self.plan.design, measured, budget);
    }

    /// Fits turns to the responses of the first block's warm-ups.
    pub(super) fn choose_turns(&mut self) {
        if let Some(responses) = self.responses() {
            self.update_timing(MeasuredTimes::WarmUps(&responses));
        }
    }

    /// Reads which variants wait, and the response times of the current block's warm-ups. `None` if trials do
    /// not take turns.
    fn responses(&mut self) -> Option<ResponseTimes> {
        let record = self.writer.record();
        self.waiting = analysis::waiting_variants(record, self.block);
        if !take_turns(&self.plan) {
            return None;
        }
        ResponseTimes::of(record, self.block, &self.waiting)
    }

    fn choose_warm_up(&mut self) -> Result<()> {
        // Measured slices show better than warm-ups which variants wait.
        let waiting = analysis::waiting_variants(self.writer.record(), self.block);
        let responses = if waiting == self.waiting {
            None
        } else {
            self.responses()
        };
        let first = FirstBlockTimes::of(self.writer.record(), self.block, responses, self.costs);
        self.update_timing(MeasuredTimes::FirstBlock(&first));
        let warm_up = first.warm_up(self.timing.warm_up_s, self.timing.watched);
        self.record(Event::WarmUpChosen(warm_up))
    }

    fn choose_slices(&mut self) -> Result<()> {
        let Some(costs) = self.costs else {
            return Ok(());
        };
        let before = self.timing.slices;
        let components = timing::components(self.writer.record(), self.timing.slice_s);
        self.update_timing(MeasuredTimes::Blocks { components, costs });
        let is_first = self.writer.record().allocation.is_none();
        if !is_first && self.timing.slices == before {
            return Ok(());
        }
        let is_given = self.plan.design.slices.is_some();
        self.record(Event::SlicesChosen(Allocation {
            slices: self.timing.slices,
            slice_s: self.timing.slice_s,
            measured: components.is_some() && !is_given,
            between_sd: components.map(|found| found.between.sqrt()),
            within_sd: components.map(|found| found.within.sqrt()),
            trial_s: Some(self.timing.before_slices_s(&costs)),
        }))
    }

    pub(super) fn choose_blocks(&mut self) -> Result<()> {
        if self.plan.comparisons.is_empty() {
            return Ok(());
        }
        let (kept, block_s) = (
            self.blocks_kept(),
            self.estimated_block_s().unwrap_or(f64::INFINITY),
        );
        let fit = timing::blocks_within(kept, self.left_s(), block_s);
        let most = self
            .plan
            .design
            .blocks
            .map_or(fit, |blocks| blocks.min(fit));
        if most < BLOCKS_MIN {
            let elapsed_s = self.elapsed_s();
            return Err(Failure::too_small(self.needed_s(elapsed_s, block_s)));
        }
        self.record(Event::BlocksChosen {
            blocks: most.min(stats::BLOCKS_MAX),
        })
    }

    /// A budget for the blocks of a verdict, if the missing ones begin after `before_s` and take `block_s`
    /// each.
    fn needed_s(&self, before_s: f64, block_s: f64) -> u64 {
        let missing = BLOCKS_MIN.saturating_sub(self.blocks_kept());
        // A tenth more, for blocks that take a little longer than the last ones.
        ((before_s + f64::from(missing) * block_s) * 1.1).ceil() as u64
    }

    /// The end of a run whose budget was over before the current block.
    pub(super) fn end_out_of_budget(&mut self) -> EndReason {
        if self.blocks_kept() >= BLOCKS_MIN || self.plan.comparisons.is_empty() {
            return EndReason::BudgetSpent;
        }
        let under_way_s = self.elapsed_s() - self.block_began_s;
        let whole = self
            .writer
            .record()
            .blocks
            .iter()
            .filter_map(|block| block.seconds);
        let whole_s = whole.fold(0.0, f64::max);
        let block_s = under_way_s
            .max(whole_s)
            .max(self.block_guess_s(timing::longest_start_s));
        let before_s = self.block_began_s + self.watch_more_s();
        EndReason::BudgetTooSmall {
            needed_s: self.needed_s(before_s, block_s),
        }
    }

    /// Ends the run before its first warm-up if the starts alone leave no room for the blocks of a verdict. A
    /// single start of a service is no evidence, because the first start finds no caches.
    pub(super) fn refuse_small_budget(&mut self) -> Result<()> {
        if self.block != 1 || self.plan.comparisons.is_empty() || self.search.is_some() {
            return Ok(());
        }
        let trials = self
            .writer
            .record()
            .blocks
            .iter()
            .map(|block| block.trials.len())
            .sum::<usize>();
        if trials < 2 * self.plan.variants.len() {
            return Ok(());
        }
        let (least_s, elapsed_s) = (
            self.block_guess_s(timing::shortest_start_s),
            self.elapsed_s(),
        );
        let rest_s = f64::from(BLOCKS_MIN) * least_s - (elapsed_s - self.block_began_s);
        if rest_s <= self.left_s() {
            return Ok(());
        }
        let block_s = self.block_guess_s(timing::longest_start_s);
        let before_s = self.block_began_s + self.watch_more_s();
        Err(Failure::too_small(self.needed_s(before_s, block_s)))
    }

    /// Seconds of a block with the shortest warm-up and slices, and these starts.
    fn block_guess_s(&self, start_s: fn(&Record) -> f64) -> f64 {
        self.timing.block_least_s(
            &self.plan.design,
            self.plan.variants.len(),
            start_s(self.writer.record()),
        )
    }

    /// Seconds that the first block takes longer in a larger budget, which has time to watch the warm-up.
    fn watch_more_s(&self) -> f64 {
        self.timing
            .watch_more_s(&self.plan.design, self.plan.variants.len())
    }

    /// Drops the last block if it stood still, or if it was disturbed and can be replaced. Returns whether it
    /// was dropped.
    pub(super) fn drop_if_disturbed(&mut self) -> Result<bool> {
        let block = self
            .writer
            .record()
            .blocks
            .iter()
            .rev()
            .find(|block| block.number == self.block);
        let Some(block) = block else { return Ok(false) };
        // A block without load does not count, whether or not it can be replaced.
        let halted = stood_still(block);
        let Some(why) = halted.clone().or_else(|| self.fault_of(block)) else {
            return Ok(false);
        };
        if halted.is_none() && !self.is_replaceable() {
            return Ok(false);
        }
        self.record(Event::BlockDropped {
            block: self.block,
            why,
        })?;
        Ok(true)
    }

    /// Whether the run can do without the last block. On a machine that is always disturbed another block
    /// would be no better, and a wide interval is better than none.
    fn is_replaceable(&mut self) -> bool {
        let others = self.blocks_kept().saturating_sub(1);
        // A tenth more: dropping gains nothing if the next block does not fit after all.
        let block_s = self.estimated_block_s().unwrap_or(0.0) * 1.1;
        // A number in the file is a maximum, and need not fit.
        let wanted = self
            .plan
            .design
            .blocks
            .map_or(BLOCKS_AIM, |most| most.min(BLOCKS_AIM));
        self.may_drop_one_more(others)
            && timing::blocks_within(others, self.left_s(), block_s) >= wanted
    }

    pub(super) fn blocks_kept(&self) -> u32 {
        self.writer.record().blocks_kept()
    }

    /// Why a block should be dropped: its disturbance, if such blocks are to be dropped, or generators that
    /// did not begin together.
    fn fault_of(&self, block: &Block) -> Option<String> {
        let turns = block.trials.len() > 1 && take_turns(&self.plan);
        let taken = || {
            let taken =
                StolenShares::of(block, turns, self.writer.record().header.environment.cpus);
            let by_others = if works_unseen(block.trials.iter().map(|of| &of.started)) {
                0.0
            } else {
                taken.by_others
            };
            StolenShares { by_others, ..taken }.why()
        };
        self.plan
            .design
            .drop_disturbed
            .then(taken)
            .flatten()
            .or_else(|| begun_apart(block))
    }

    /// Whether one more block may be dropped, with this number of others that count: if few were dropped, or
    /// at most one for every two that count, on a machine that is quiet at times.
    pub(super) fn may_drop_one_more(&self, others: u32) -> bool {
        let dropped = self.writer.record().blocks_dropped();
        dropped < DROPPED_MIN || dropped < others / 2 && self.was_quiet()
    }

    /// Whether an earlier block was undisturbed.
    fn was_quiet(&self) -> bool {
        let mut others = self
            .writer
            .record()
            .complete_blocks()
            .filter(|block| block.number != self.block);
        others.any(|block| self.fault_of(block).is_none())
    }
}
