//! The three ways to look at a result while it grows, behind one face: when to look, and how wide the interval then is.
//!
//! ```text
//!              looks                       ends                        critical t at 30 blocks
//! planned      after 6, 10, 15, 22, 30     at the first that decides   2.25   (6.42 after 6)
//! always       after every block           whenever you like           3.35   (5.45 after 6)
//! once         after the last              there                       2.05
//! ```
//!
//! Must not: see data. Which rule holds is settled before the first block.

use crate::{ALPHA, BLOCKS_MAX, BLOCKS_MIN, COMPARISONS_MAX, Error, Looks, SEQUENCE_G, plain_t, sequence_t};

/// When an experiment looks, and how far a result must then be from nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// A group-sequential plan: looks fixed beforehand.
    Planned(Looks),
    /// A confidence sequence: every block is a look, and there is no last one.
    Always {
        /// Comparisons that share the error rate (Bonferroni).
        comparisons: u32,
    },
    /// One look after a number of blocks fixed beforehand.
    Once {
        /// That number.
        blocks: u32,
        /// Comparisons that share the error rate (Bonferroni).
        comparisons: u32,
    },
}

impl Rule {
    /// A confidence sequence for so many comparisons.
    ///
    /// # Errors
    /// [`Error::Comparisons`] outside 1 to [`COMPARISONS_MAX`].
    pub fn always(comparisons: u32) -> Result<Rule, Error> {
        Ok(Rule::Always { comparisons: checked(comparisons)? })
    }

    /// One look after `blocks` blocks.
    ///
    /// # Errors
    /// [`Error::TooFewBlocks`] below [`BLOCKS_MIN`], [`Error::Comparisons`] outside 1 to [`COMPARISONS_MAX`].
    pub fn once(blocks: u32, comparisons: u32) -> Result<Rule, Error> {
        if blocks < BLOCKS_MIN {
            return Err(Error::TooFewBlocks { blocks, least: BLOCKS_MIN });
        }
        Ok(Rule::Once { blocks, comparisons: checked(comparisons)? })
    }

    /// Comparisons that share the error rate.
    pub fn comparisons(&self) -> u32 {
        match self {
            Rule::Planned(looks) => looks.comparisons(),
            Rule::Always { comparisons } | Rule::Once { comparisons, .. } => *comparisons,
        }
    }

    /// The number of blocks after which there is nothing more to look at; `None` where there is no such number.
    pub fn last(&self) -> Option<u32> {
        match self {
            Rule::Planned(looks) => Some(looks.last()),
            Rule::Always { .. } => None,
            Rule::Once { blocks, .. } => Some(*blocks),
        }
    }

    /// Whether a result may be looked at, and the run end by it, after `blocks` blocks.
    pub fn is_look(&self, blocks: u32) -> bool {
        match self {
            Rule::Planned(looks) => looks.is_look(blocks),
            Rule::Always { .. } => blocks >= BLOCKS_MIN,
            Rule::Once { blocks: last, .. } => blocks == *last,
        }
    }

    /// The critical t of a run that has, or ended after, `blocks` blocks. `None` below [`BLOCKS_MIN`], beyond the last look, and
    /// where there is no interval yet.
    ///
    /// With planned looks and between them, or before the one look: for an end that has nothing to do with the result
    /// (see [`Looks::final_critical_t`]).
    pub fn critical_t(&self, blocks: u32) -> Option<f64> {
        if blocks < BLOCKS_MIN || self.last().is_some_and(|last| blocks > last) {
            return None;
        }
        match self {
            Rule::Planned(looks) => looks.final_critical_t(blocks),
            Rule::Always { .. } | Rule::Once { .. } => self.unplanned_t(blocks),
        }
    }

    /// The critical t that a run of about `blocks` blocks would have at its end: a longer plan, or the same rule later.
    pub fn forecast_t(&self, blocks: u32) -> Option<f64> {
        match self {
            Rule::Planned(looks) if blocks <= looks.last() => looks.final_critical_t(blocks),
            Rule::Planned(looks) => {
                // The constant hardly changes from one plan to the next.
                let plan = Looks::plan(blocks.min(BLOCKS_MAX), looks.comparisons()).ok()?;
                Some(plan.final_boundary(blocks))
            }
            Rule::Always { .. } | Rule::Once { .. } => self.unplanned_t(blocks),
        }
    }

    fn unplanned_t(&self, blocks: u32) -> Option<f64> {
        let alpha = ALPHA / f64::from(self.comparisons());
        match self {
            Rule::Always { .. } => sequence_t(blocks, SEQUENCE_G, alpha).ok()?,
            _ => plain_t(blocks, 1.0 - alpha).ok(),
        }
    }
}

fn checked(comparisons: u32) -> Result<u32, Error> {
    if !(1..=COMPARISONS_MAX).contains(&comparisons) {
        return Err(Error::Comparisons { comparisons, most: COMPARISONS_MAX });
    }
    Ok(comparisons)
}
