//! The ways to look at a result while it grows, behind one face: when to look, and how wide the interval then is.
//!
//! ```text
//!              looks                       ends                        critical t at 6, 30 blocks
//! each block   after each from the fourth  at the first that decides   5.4, 3.2; at the end 2.6, 2.2
//! once         after the last              there                       2.6, 2.0
//! ```
//! Records made before 2026-11-23 have two others, with which nothing new runs: planned looks, and a confidence sequence.
//!
//! Must not: see data. Which rule holds is settled before the first block.

use crate::looks::check_comparisons;
use crate::{ALPHA, BLOCKS_MAX, BLOCKS_MIN, Error, Looks, PlannedLooks, SEQUENCE_G, plain_t, sequence_t};

/// When an experiment looks, and how far a result must then be from nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// A look after every block.
    EachBlock {
        /// The boundaries.
        looks: Looks,
        /// How many blocks a run has that has ended for a reason that does not depend on the result: that many have the boundary of
        /// the end, fewer are what a comparison had when it was decided at a look.
        ended: Option<u32>,
    },
    /// One look when the run ends.
    Once {
        /// Comparisons that share the error rate (Bonferroni).
        comparisons: u32,
    },
    /// Of old records: looks fixed beforehand.
    Planned(PlannedLooks),
    /// Of old records: a confidence sequence.
    Sequence {
        /// Comparisons that share the error rate (Bonferroni).
        comparisons: u32,
    },
}

impl Rule {
    /// A look after every block, for so many comparisons.
    ///
    /// # Errors
    /// [`Error::Refused`] outside 1 to [`COMPARISONS_MAX`](crate::COMPARISONS_MAX).
    pub fn each_block(comparisons: u32, ended: Option<u32>) -> Result<Rule, Error> {
        Ok(Rule::EachBlock { looks: Looks::new(comparisons)?, ended })
    }

    /// One look at the end.
    ///
    /// # Errors
    /// [`Error::Refused`] outside 1 to [`COMPARISONS_MAX`](crate::COMPARISONS_MAX).
    pub fn once(comparisons: u32) -> Result<Rule, Error> {
        Ok(Rule::Once { comparisons: check_comparisons(comparisons)? })
    }

    /// The confidence sequence of an old record.
    ///
    /// # Errors
    /// [`Error::Refused`] outside 1 to [`COMPARISONS_MAX`](crate::COMPARISONS_MAX).
    pub fn sequence(comparisons: u32) -> Result<Rule, Error> {
        Ok(Rule::Sequence { comparisons: check_comparisons(comparisons)? })
    }

    /// Comparisons that share the error rate.
    pub fn comparisons(&self) -> u32 {
        match self {
            Rule::EachBlock { looks, .. } => looks.comparisons(),
            Rule::Planned(looks) => looks.comparisons(),
            Rule::Once { comparisons } | Rule::Sequence { comparisons } => *comparisons,
        }
    }

    /// The fewest blocks from which it gives a verdict.
    pub fn least(&self) -> u32 {
        match self {
            Rule::EachBlock { .. } | Rule::Once { .. } => BLOCKS_MIN,
            Rule::Planned(_) | Rule::Sequence { .. } => PlannedLooks::BLOCKS_MIN,
        }
    }

    /// The confidence of an interval that is not made by t, and shares the chance to err with those that are.
    pub fn level(&self, blocks: u32) -> f64 {
        let alpha = ALPHA / f64::from(self.comparisons());
        match self {
            Rule::EachBlock { looks, ended } => looks.level(blocks, *ended == Some(blocks)),
            Rule::Once { .. } => 1.0 - alpha,
            Rule::Planned(looks) => 1.0 - alpha / f64::from(looks.looks()),
            // Without a last look: shares 1 / (n (n + 1)) of all n add up to 1.
            Rule::Sequence { .. } => 1.0 - alpha / (f64::from(blocks) * (f64::from(blocks) + 1.0)).max(1.0),
        }
    }

    /// Whether a run may end by its result after `blocks` blocks.
    pub fn is_look(&self, blocks: u32) -> bool {
        match self {
            Rule::EachBlock { .. } => (BLOCKS_MIN..=BLOCKS_MAX).contains(&blocks),
            Rule::Once { .. } | Rule::Planned(_) | Rule::Sequence { .. } => false,
        }
    }

    /// The critical t of a run that has, or ended after, `blocks` blocks; `None` where there is no interval yet, or none any more.
    pub fn critical_t(&self, blocks: u32) -> Option<f64> {
        match self {
            Rule::EachBlock { looks, ended } if *ended == Some(blocks) && blocks <= BLOCKS_MAX => {
                looks.end_t(blocks)
            }
            Rule::EachBlock { looks, .. } => looks.look_t(blocks),
            Rule::Planned(looks) => looks.critical_t(blocks),
            Rule::Once { .. } | Rule::Sequence { .. } => self.forecast_t(blocks),
        }
    }

    /// The critical t that a run of so many blocks would have at its end; `None` below [`BLOCKS_MIN`].
    pub fn forecast_t(&self, blocks: u32) -> Option<f64> {
        let alpha = ALPHA / f64::from(self.comparisons());
        match self {
            Rule::EachBlock { looks, .. } => looks.end_t(blocks),
            Rule::Once { .. } if blocks >= BLOCKS_MIN => plain_t(blocks, 1.0 - alpha).ok(),
            Rule::Once { .. } => None,
            // What was asked for then is asked of a run of today.
            Rule::Planned(_) => Looks::new(self.comparisons()).ok()?.end_t(blocks),
            Rule::Sequence { .. } if blocks < self.least() => None,
            Rule::Sequence { .. } => sequence_t(blocks, SEQUENCE_G, alpha).ok()?,
        }
    }
}
