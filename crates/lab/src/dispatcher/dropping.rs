//! Blocks that count for nothing, because the machine was not ours while they ran, or generators did not begin together: found by rules
//! that see nothing of what was measured in them, kept as dropped, and replaced. Must not: drop a block that nothing can take the place of.

use record::{Block, Event};

use super::Dispatcher;
use crate::disturbance::{Taken, begun_apart, stood_still};
use crate::environment::Result;
use crate::schedule::take_turns;
use crate::tuning::{self, BLOCKS_AIM};

/// So many blocks may be dropped whatever their share.
const DROPPED_MIN: u32 = 3;

impl Dispatcher<'_> {
    /// Drops the block that just ended, if something was the matter with it and another can take its place; whether it was dropped.
    pub(super) fn drop_if_disturbed(&mut self) -> Result<bool> {
        let block = self.writer.record().blocks.iter().rev().find(|block| block.number == self.block);
        let Some(block) = block else { return Ok(false) };
        // A block without load is none, whether or not another can take its place.
        let halted = stood_still(block);
        let Some(why) = halted.clone().or_else(|| self.fault_of(block)) else { return Ok(false) };
        if halted.is_none() && !self.is_replaceable() {
            return Ok(false);
        }
        self.keep(Event::BlockDropped { block: self.block, why })?;
        Ok(true)
    }

    /// Whether the run can do without the block that just ended. On a machine that is disturbed all the time another would be no better,
    /// and a wide interval is an answer where none is none.
    fn is_replaceable(&mut self) -> bool {
        let others = self.blocks_kept().saturating_sub(1);
        // A tenth more: it is no gain to drop one if the next does not fit after all.
        let block_s = self.settled_block_s().unwrap_or(0.0) * 1.1;
        let wanted = self.plan.design.blocks.unwrap_or(BLOCKS_AIM);
        self.may_drop_one_more(others) && tuning::blocks_within(others, self.left_s(), block_s) >= wanted
    }

    /// Blocks that are complete and count.
    pub(super) fn blocks_kept(&self) -> u32 {
        self.writer.record().blocks_kept()
    }

    /// Why a block should count for nothing: what was taken from it, where such blocks are to be dropped, or generators that did not
    /// begin together.
    fn fault_of(&self, block: &Block) -> Option<String> {
        let taken = if self.plan.design.drop_disturbed { self.taken_from(block).why() } else { None };
        taken.or_else(|| begun_apart(block))
    }

    fn taken_from(&self, block: &Block) -> Taken {
        let turns = block.trials.len() > 1 && take_turns(&self.plan);
        Taken::of(block, turns, &self.writer.record().header.environment)
    }

    /// Whether one more block may be dropped, with so many others that count.
    pub(super) fn may_drop_one_more(&self, others: u32) -> bool {
        is_spared(self.writer.record().blocks_dropped(), others, self.was_quiet())
    }

    /// Whether a block before this one had nothing the matter.
    fn was_quiet(&self) -> bool {
        let mut others = self.writer.record().complete_blocks().filter(|block| block.number != self.block);
        others.any(|block| self.fault_of(block).is_none())
    }
}

/// Whether one more block may be dropped: few were, or at most one for two that count, on a machine that is quiet at times.
fn is_spared(dropped: u32, others: u32, was_quiet: bool) -> bool {
    dropped < DROPPED_MIN || was_quiet && dropped < others / 2
}
