//! Rules for looking at a growing result: when to look, and the width of the interval at each look.
//!
//! ```text
//!              looks                       ends                        critical t at 6, 30 blocks
//! each block   after each from the fourth  at the first that decides   5.4, 3.2; at the end 2.6, 2.2
//! once         after the last              there                       2.6, 2.0
//! ```
//! Records made before 2026-11-23 have two other rules, which new runs do not use: planned looks, and a
//! confidence sequence.
//!
//! This module does not see data. The rule is fixed before the first block.

use crate::looks::shared;
use crate::{
    ALPHA, BLOCKS_MAX, BLOCKS_MIN, COMPARISONS_MAX, Looks, SEQUENCE_G, critical_t_at, plain_t, sequence_t,
};

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
    /// In old records: after numbers of blocks fixed beforehand.
    Planned(PlannedLooks),
    /// In old records: at any time, by a confidence sequence.
    Sequence,
}

impl Rule {
    /// Looks after every block, for the given number of comparisons. `None` outside 1 to [`COMPARISONS_MAX`].
    pub fn each_block(comparisons: u32, ended: Option<u32>) -> Option<Rule> {
        Some(Rule { comparisons, way: Way::EachBlock { looks: Looks::new(comparisons)?, ended } })
    }

    /// Looks once at the end. `None` outside 1 to [`COMPARISONS_MAX`].
    pub fn once(comparisons: u32) -> Option<Rule> {
        Some(Rule { comparisons: shared(comparisons)?, way: Way::Once })
    }

    /// Uses the confidence sequence of an old record. `None` outside 1 to [`COMPARISONS_MAX`].
    pub fn sequence(comparisons: u32) -> Option<Rule> {
        Some(Rule { comparisons: shared(comparisons)?, way: Way::Sequence })
    }

    /// Uses the planned looks of an old record with at most `blocks_max` blocks. `None` outside 1 to
    /// [`COMPARISONS_MAX`], and below six blocks.
    pub fn planned(blocks_max: u32, comparisons: u32) -> Option<Rule> {
        let looks = PlannedLooks::of(blocks_max, shared(comparisons)?)?;
        Some(Rule { comparisons, way: Way::Planned(looks) })
    }

    /// Minimum number of blocks for a verdict.
    pub fn least(&self) -> u32 {
        match self.way {
            Way::EachBlock { .. } | Way::Once => BLOCKS_MIN,
            Way::Planned(_) | Way::Sequence => PlannedLooks::BLOCKS_MIN,
        }
    }

    /// Confidence level for an interval that is not based on t but shares the error rate with those that are.
    pub fn level(&self, blocks: u32) -> f64 {
        let alpha = ALPHA / f64::from(self.comparisons);
        match &self.way {
            Way::EachBlock { looks, ended } => looks.level(blocks, *ended == Some(blocks)),
            Way::Once => 1.0 - alpha,
            Way::Planned(looks) => 1.0 - alpha / f64::from(looks.looks()),
            // There is no last look. The shares 1 / (n (n + 1)) of all n add up to 1.
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

    /// Critical t of a run with `blocks` blocks, or that ended after them. `None` if there is no interval at
    /// this number of blocks.
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

    /// Critical t of a run at its end, after `blocks` blocks. `None` below [`BLOCKS_MIN`].
    pub fn forecast_t(&self, blocks: u32) -> Option<f64> {
        let alpha = ALPHA / f64::from(self.comparisons);
        match &self.way {
            Way::EachBlock { looks, .. } => looks.end_t(blocks),
            Way::Once | Way::Sequence if blocks < self.least() => None,
            Way::Once => plain_t(blocks, 1.0 - alpha),
            // The forecast is for a new run, which uses the current rule.
            Way::Planned(_) => Looks::new(self.comparisons)?.end_t(blocks),
            Way::Sequence => sequence_t(blocks, SEQUENCE_G, alpha),
        }
    }
}

/// Numbers of blocks of the looks before the last one.
const LOOKS: [u32; 9] = [6, 10, 15, 22, 30, 45, 60, 90, 120];
/// Exponent Δ − ½ of the boundary.
const SHAPE: f64 = 0.25 - 0.5;
/// Lines of `final_blocks,comparisons,c`, ascending, below a head of `#` lines.
const TABLE: &str = include_str!("planned.csv");

/// The looks of records made before 2026-11-23, which are still judged by them. There are few looks, fixed
/// beforehand. The last is at a number of blocks determined in the run. The boundary is that of Wang &
/// Tsiatis (1987) with Δ = 0.25,
///
/// ```text
/// |z| ≥ C (n / N)^(Δ − ½)        n blocks so far, N at the last look
/// ```
/// converted to the t of n − 1 degrees of freedom with the same two-sided tail. C comes from a simulation of
/// 32 million runs for each N: `planned.csv`.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedLooks {
    last: u32,
    constant: f64,
}

impl PlannedLooks {
    /// Minimum number of blocks for a verdict.
    const BLOCKS_MIN: u32 = 6;

    /// The last look is at the largest number of blocks in the table that is at most `blocks_max`.
    fn of(blocks_max: u32, comparisons: u32) -> Option<Self> {
        let fits = |(last, of, _): &(u32, u32, f64)| *last <= blocks_max && *of >= comparisons;
        // The last matching row, with the fewest comparisons. Rows are ascending in both.
        let (last, _, constant) =
            rows().filter(fits).max_by_key(|(last, of, _)| (*last, COMPARISONS_MAX - *of))?;
        Some(Self { last, constant })
    }

    /// Maximum number of looks.
    fn looks(&self) -> u32 {
        LOOKS.iter().map(|at| u32::from(*at < self.last)).sum::<u32>() + 1
    }

    /// Critical t after `blocks` blocks, at a look or at the end of the time budget. `None` below six and
    /// beyond the last.
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
