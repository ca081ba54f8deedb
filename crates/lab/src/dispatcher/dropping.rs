//! Blocks that count for nothing, because the machine was not ours while they ran: found by a rule that sees nothing of what was
//! measured in them, kept as dropped, and replaced.

use record::Event;

use super::{Dispatcher, Notice};
use crate::disturbance::Taken;
use crate::schedule::take_turns;
use crate::world::Failure;

/// Fewer blocks dropped than this may be chance, whatever their share.
const DROPPED_MIN: u32 = 4;

impl Dispatcher<'_> {
    /// Drops the block that just ended, if too much was taken from it; whether it was dropped.
    ///
    /// # Errors
    /// If so many were that this machine, as it is now, gives no answer.
    pub(super) fn drop_if_disturbed(&mut self) -> Result<bool, Failure> {
        let taken = self.taken();
        let Some(why) = taken.why().filter(|_| self.plan.design.drop_disturbed) else {
            return Ok(false);
        };
        self.keep(Event::BlockDropped { block: self.block, why: why.clone() })?;
        self.notify(&Notice::BlockDropped(&why));
        match hopeless(self.blocks_dropped(), self.blocks_kept()) {
            true => Err(Failure::Pointless(format!(
                "{} of the first {} blocks had to be dropped, the last because {why}; {}. With design.drop_disturbed = false \
                 such blocks count, and the intervals are as wide as they make them",
                self.blocks_dropped(),
                self.block,
                taken.remedy()
            ))),
            false => Ok(true),
        }
    }

    /// Blocks that are complete and count.
    pub(super) fn blocks_kept(&self) -> u32 {
        u32::try_from(self.writer.record().complete_blocks().count()).unwrap_or(u32::MAX)
    }

    pub(super) fn blocks_dropped(&self) -> u32 {
        let blocks = self.writer.record().blocks.iter();
        u32::try_from(blocks.filter(|block| block.dropped.is_some()).count()).unwrap_or(u32::MAX)
    }

    fn taken(&self) -> Taken {
        let record = self.writer.record();
        let turns = self.plan.variants.len() > 1 && take_turns(&self.plan);
        let block = record.blocks.iter().rev().find(|block| block.number == self.block);
        block.map(|block| Taken::of(block, turns, record.header.environment.cpus)).unwrap_or_default()
    }
}

/// Whether the machine is so disturbed that dropping what it spoils leaves too little: more than half.
fn hopeless(dropped: u32, kept: u32) -> bool {
    dropped >= DROPPED_MIN && dropped > kept
}
