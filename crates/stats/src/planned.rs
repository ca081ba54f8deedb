//! The looks of records made before 2026-11-23, by which these are still judged: few looks, fixed beforehand, with the boundary of
//! Wang & Tsiatis (1987) with Δ = 0.25,
//!
//! ```text
//! |z| ≥ C (n / N)^(Δ − ½)        n blocks so far, N at the last look
//! ```
//! as the t of n − 1 degrees of freedom with the same two-sided tail. C comes from a simulation of 32 million runs for each N:
//! `planned.csv`. New runs have [`crate::Looks`].

use crate::looks::check_comparisons;
use crate::{COMPARISONS_MAX, Error, critical_t_at};

/// Numbers of blocks at which was looked, besides the last.
const LOOKS: [u32; 9] = [6, 10, 15, 22, 30, 45, 60, 90, 120];
/// The exponent Δ − ½ of the boundary.
const SHAPE: f64 = 0.25 - 0.5;
/// `final_blocks,comparisons,c` lines, rising, below a head of `#` lines.
const TABLE: &str = include_str!("planned.csv");

/// A plan of looks that ends with a number of blocks settled in the run.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedLooks {
    last: u32,
    comparisons: u32,
    constant: f64,
}

impl PlannedLooks {
    /// Fewest blocks from which these gave a verdict.
    pub(crate) const BLOCKS_MIN: u32 = 6;

    /// The plan of a run that settled on at most `blocks_max` blocks, in which `comparisons` comparisons share 5 % (Bonferroni). It ends
    /// with the largest number of blocks not above that in the table.
    ///
    /// # Errors
    /// [`Error::TooFewBlocks`] below six, [`Error::Refused`] outside 1 to [`COMPARISONS_MAX`].
    pub fn plan(blocks_max: u32, comparisons: u32) -> Result<Self, Error> {
        check_comparisons(comparisons)?;
        let fits = |(last, of, _): &(u32, u32, f64)| *last <= blocks_max && *of >= comparisons;
        // The last of those that fit, with the fewest comparisons: rows rise in both.
        let best = rows().filter(fits).max_by_key(|(last, of, _)| (*last, COMPARISONS_MAX - *of));
        let (last, _, constant) =
            best.ok_or(Error::TooFewBlocks { blocks: blocks_max, least: Self::BLOCKS_MIN })?;
        Ok(Self { last, comparisons, constant })
    }

    /// How many looks there were at the most.
    pub fn looks(&self) -> u32 {
        LOOKS.iter().map(|at| u32::from(*at < self.last)).sum::<u32>() + 1
    }

    /// Comparisons that share the error rate.
    pub fn comparisons(&self) -> u32 {
        self.comparisons
    }

    /// The critical t after `blocks` blocks, at a look or where time ran out; `None` below six and beyond the last.
    pub fn critical_t(&self, blocks: u32) -> Option<f64> {
        let share = f64::from(blocks) / f64::from(self.last);
        let within = (Self::BLOCKS_MIN..=self.last).contains(&blocks);
        within.then(|| critical_t_at(self.constant * share.powf(SHAPE), blocks).ok()).flatten()
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
            PlannedLooks::plan(last, comparisons)
                .ok()?
                .critical_t(blocks)
                .map(|t| (t * 100.0).round() / 100.0)
        };
        let thirty = [6, 10, 11, 15, 22, 30].map(|blocks| t(31, 1, blocks));
        assert_eq!(thirty, [6.42, 3.71, 3.48, 2.94, 2.5, 2.25].map(Some));
        assert_eq!((t(30, 1, 5), t(30, 1, 31), t(5, 1, 5), t(30, 65, 6)), (None, None, None, None));
        assert!(t(30, 13, 30) == t(30, 14, 30) && t(30, 14, 30) > t(30, 12, 30));
    }
}
