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

use crate::looks::shared;
use crate::{
    ALPHA, BLOCKS_MAX, BLOCKS_MIN, COMPARISONS_MAX, Looks, SEQUENCE_G, critical_t_at, plain_t, sequence_t,
};

/// When an experiment looks, and how far a result must then be from nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Comparisons that share the error rate (Bonferroni).
    pub comparisons: u32,
    /// When it looks.
    pub way: Way,
}

/// When an experiment looks.
#[derive(Clone, Debug, PartialEq)]
pub enum Way {
    /// After every block.
    EachBlock {
        /// The boundaries.
        looks: Looks,
        /// How many blocks a run has that has ended for a reason that does not depend on the result: that many have the boundary of
        /// the end, fewer are what a comparison had when it was decided at a look.
        ended: Option<u32>,
    },
    /// Once, when the run ends.
    Once,
    /// Of old records: after numbers of blocks fixed beforehand.
    Planned(PlannedLooks),
    /// Of old records: at any time, by a confidence sequence.
    Sequence,
}

impl Rule {
    /// A look after every block, for so many comparisons; `None` outside 1 to [`COMPARISONS_MAX`].
    pub fn each_block(comparisons: u32, ended: Option<u32>) -> Option<Rule> {
        Some(Rule { comparisons, way: Way::EachBlock { looks: Looks::new(comparisons)?, ended } })
    }

    /// One look at the end; likewise.
    pub fn once(comparisons: u32) -> Option<Rule> {
        Some(Rule { comparisons: shared(comparisons)?, way: Way::Once })
    }

    /// The confidence sequence of an old record; likewise.
    pub fn sequence(comparisons: u32) -> Option<Rule> {
        Some(Rule { comparisons: shared(comparisons)?, way: Way::Sequence })
    }

    /// The looks of an old record that settled on at most `blocks_max` blocks; likewise, and `None` below six of them.
    pub fn planned(blocks_max: u32, comparisons: u32) -> Option<Rule> {
        let looks = PlannedLooks::of(blocks_max, shared(comparisons)?)?;
        Some(Rule { comparisons, way: Way::Planned(looks) })
    }

    /// The fewest blocks from which it gives a verdict.
    pub fn least(&self) -> u32 {
        match self.way {
            Way::EachBlock { .. } | Way::Once => BLOCKS_MIN,
            Way::Planned(_) | Way::Sequence => PlannedLooks::BLOCKS_MIN,
        }
    }

    /// The confidence of an interval that is not made by t, and shares the chance to err with those that are.
    pub fn level(&self, blocks: u32) -> f64 {
        let alpha = ALPHA / f64::from(self.comparisons);
        match &self.way {
            Way::EachBlock { looks, ended } => looks.level(blocks, *ended == Some(blocks)),
            Way::Once => 1.0 - alpha,
            Way::Planned(looks) => 1.0 - alpha / f64::from(looks.looks()),
            // Without a last look: shares 1 / (n (n + 1)) of all n add up to 1.
            Way::Sequence => 1.0 - alpha / (f64::from(blocks) * (f64::from(blocks) + 1.0)).max(1.0),
        }
    }

    /// Whether a run may end by its result after `blocks` blocks.
    pub fn is_look(&self, blocks: u32) -> bool {
        match self.way {
            Way::EachBlock { .. } => (BLOCKS_MIN..=BLOCKS_MAX).contains(&blocks),
            Way::Once | Way::Planned(_) | Way::Sequence => false,
        }
    }

    /// The critical t of a run that has, or ended after, `blocks` blocks; `None` where there is no interval yet, or none any more.
    pub fn critical_t(&self, blocks: u32) -> Option<f64> {
        match &self.way {
            Way::EachBlock { looks, ended } if *ended == Some(blocks) && blocks <= BLOCKS_MAX => {
                looks.end_t(blocks)
            }
            Way::EachBlock { looks, .. } => looks.look_t(blocks),
            Way::Planned(looks) => looks.critical_t(blocks),
            Way::Once | Way::Sequence => self.forecast_t(blocks),
        }
    }

    /// The critical t that a run of so many blocks would have at its end; `None` below [`BLOCKS_MIN`].
    pub fn forecast_t(&self, blocks: u32) -> Option<f64> {
        let alpha = ALPHA / f64::from(self.comparisons);
        match &self.way {
            Way::EachBlock { looks, .. } => looks.end_t(blocks),
            Way::Once | Way::Sequence if blocks < self.least() => None,
            Way::Once => plain_t(blocks, 1.0 - alpha),
            // What was asked for then is asked of a run of today.
            Way::Planned(_) => Looks::new(self.comparisons)?.end_t(blocks),
            Way::Sequence => sequence_t(blocks, SEQUENCE_G, alpha),
        }
    }
}

/// Numbers of blocks at which was looked, besides the last.
const LOOKS: [u32; 9] = [6, 10, 15, 22, 30, 45, 60, 90, 120];
/// The exponent Δ − ½ of the boundary.
const SHAPE: f64 = 0.25 - 0.5;
/// `final_blocks,comparisons,c` lines, rising, below a head of `#` lines.
const TABLE: &str = include_str!("planned.csv");

/// The looks of records made before 2026-11-23, by which these are still judged: few looks, fixed beforehand, the last at a number of blocks
/// settled in the run, with the boundary of Wang & Tsiatis (1987) with Δ = 0.25,
///
/// ```text
/// |z| ≥ C (n / N)^(Δ − ½)        n blocks so far, N at the last look
/// ```
/// as the t of n − 1 degrees of freedom with the same two-sided tail. C comes from a simulation of 32 million runs for each N:
/// `planned.csv`.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedLooks {
    last: u32,
    constant: f64,
}

impl PlannedLooks {
    /// Fewest blocks from which these gave a verdict.
    const BLOCKS_MIN: u32 = 6;

    /// It ends with the largest number of blocks in the table that is not above `blocks_max`.
    fn of(blocks_max: u32, comparisons: u32) -> Option<Self> {
        let fits = |(last, of, _): &(u32, u32, f64)| *last <= blocks_max && *of >= comparisons;
        // The last of those that fit, with the fewest comparisons: rows rise in both.
        let (last, _, constant) =
            rows().filter(fits).max_by_key(|(last, of, _)| (*last, COMPARISONS_MAX - *of))?;
        Some(Self { last, constant })
    }

    /// How many looks there were at the most.
    fn looks(&self) -> u32 {
        LOOKS.iter().map(|at| u32::from(*at < self.last)).sum::<u32>() + 1
    }

    /// The critical t after `blocks` blocks, at a look or where time ran out; `None` below six and beyond the last.
    fn critical_t(&self, blocks: u32) -> Option<f64> {
        let share = f64::from(blocks) / f64::from(self.last);
        let within = (Self::BLOCKS_MIN..=self.last).contains(&blocks);
        within.then(|| critical_t_at(self.constant * share.powf(SHAPE), blocks))?
    }
}

fn rows() -> impl Iterator<Item = (u32, u32, f64)> {
    TABLE.lines().filter_map(|line| {
        let mut fields = line.split(',');
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_records_keep_their_boundaries() {
        let t = |last, comparisons, blocks| {
            let t = Rule::planned(last, comparisons)?.critical_t(blocks)?;
            Some((t * 100.0).round() / 100.0)
        };
        let thirty = [6, 10, 11, 15, 22, 30].map(|blocks| t(31, 1, blocks));
        assert_eq!(thirty, [6.42, 3.71, 3.48, 2.94, 2.5, 2.25].map(Some));
        assert_eq!((t(30, 1, 5), t(30, 1, 31), t(5, 1, 5), t(30, 65, 6)), (None, None, None, None));
        assert!(t(30, 13, 30) == t(30, 14, 30) && t(30, 14, 30) > t(30, 12, 30));
    }
}
