//! Rules for looking at a growing result: when to look, and the width of the interval at each look.
//!
//! ```text
//!              looks                       ends                        critical t at 6, 30 blocks
//! each block   after each from the fourth  at the first that decides   5.4, 3.2; at the end 2.6, 2.2
//! once         after the last              there                       2.6, 2.0
//! ```
//! This module does not see data. The rule is fixed before the first block.

use crate::looks::shared;
use crate::{ALPHA, BLOCKS_MAX, BLOCKS_MIN, Looks, plain_t};

/// Looking rule of an experiment and the resulting critical values.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Number of comparisons that share the error rate (Bonferroni).
    pub comparisons: u32,
    /// When the experiment looks.
    pub way: Way,
}

/// When an experiment looks.
#[derive(Clone, Debug, PartialEq)]
pub enum Way {
    /// After every block.
    EachBlock {
        /// The boundaries.
        looks: Looks,
        /// Number of blocks of a run that ended for a reason independent of the result. This number of blocks
        /// has the boundary of the end. A comparison with fewer blocks was decided at a look.
        ended: Option<u32>,
    },
    /// Once, when the run ends.
    Once,
}

impl Rule {
    /// Looks after every block, for the given number of comparisons. `None` outside 1 to
    /// [`crate::COMPARISONS_MAX`].
    pub fn each_block(comparisons: u32, ended: Option<u32>) -> Option<Rule> {
        Some(Rule {
            comparisons,
            way: Way::EachBlock {
                looks: Looks::new(comparisons)?,
                ended,
            },
        })
    }

    /// Looks once at the end. `None` outside 1 to [`COMPARISONS_MAX`].
    pub fn once(comparisons: u32) -> Option<Rule> {
        Some(Rule {
            comparisons: shared(comparisons)?,
            way: Way::Once,
        })
    }

    /// Confidence level for an interval that is not based on t but shares the error rate with those that are.
    pub fn level(&self, blocks: u32) -> f64 {
        let alpha = ALPHA / f64::from(self.comparisons);
        match &self.way {
            Way::EachBlock { looks, ended } => looks.level(blocks, *ended == Some(blocks)),
            Way::Once => 1.0 - alpha,
        }
    }

    /// Whether a run may end by its result after `blocks` blocks.
    pub fn is_look(&self, blocks: u32) -> bool {
        match self.way {
            Way::EachBlock { .. } => (BLOCKS_MIN..=BLOCKS_MAX).contains(&blocks),
            Way::Once => false,
        }
    }

    /// Critical t of a run with `blocks` blocks, or that ended after them. `None` if there is no interval at
    /// this number of blocks.
    pub fn critical_t(&self, blocks: u32) -> Option<f64> {
        match &self.way {
            Way::EachBlock { looks, ended } if *ended == Some(blocks) && blocks <= BLOCKS_MAX => {
                looks.end_t(blocks)
            }
            Way::EachBlock { looks, .. } => looks.look_t(blocks),
            Way::Once => self.forecast_t(blocks),
        }
    }

    /// Critical t of a run at its end, after `blocks` blocks. `None` below [`BLOCKS_MIN`].
    pub fn forecast_t(&self, blocks: u32) -> Option<f64> {
        let alpha = ALPHA / f64::from(self.comparisons);
        match &self.way {
            Way::EachBlock { looks, .. } => looks.end_t(blocks),
            Way::Once if blocks < BLOCKS_MIN => None,
            Way::Once => plain_t(blocks, 1.0 - alpha),
        }
    }
}
