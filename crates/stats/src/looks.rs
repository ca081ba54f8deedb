//! Boundaries for a result that is looked at after every block, with a total error rate of at most 5 % of
//! runs.
//!
//! Looking after every block with the interval of a fixed number of blocks finds a "difference" between equal
//! variants in a quarter of all runs. So every look has the same higher boundary, as in Pocock (1977): from
//! the fourth block to the maximum number of blocks, 4 % of runs without a difference cross it. A run may
//! spend 5 % in total. The rest that its looks have not spent is used at the block at which it ends, whose
//! boundary is lower:
//!
//! ```text
//! |z|   3.0 ● ● ● ● ● ● ● ● ● ● ● ●           every look alike, whatever the budget
//!                                    ● 2.1    the last block of a run that ends here
//!       └─┬───────────────────────┬──┬──► blocks
//!         4                         ends
//! ```
//!
//! No look depends on the budget, so a larger budget never requires a larger difference. The end may come at
//! any block, if it does not depend on the result: a spent budget, a number of blocks from the file. A run
//! that the user stops at will has the boundary of the looks.
//!
//! The spread of the blocks is estimated, so z becomes the t of n − 1 degrees of freedom with the same
//! two-sided tail. With few blocks that step is only approximate, so the constants do not come from normal
//! theory: `looks.csv` comes from a simulation of the t statistics themselves, by `examples/make_looks.rs`.
//!
//! This module does not see data.

use crate::critical_t_at;
use crate::student::two_sided;

/// Two-sided probability, over all looks and all comparisons of a run, to find a difference where there is
/// none.
pub const ALPHA: f64 = 0.05;
/// Minimum number of blocks for a verdict.
pub const BLOCKS_MIN: u32 = 4;
/// Maximum number of blocks of a run.
pub const BLOCKS_MAX: u32 = 120;
/// Maximum number of comparisons that can share [`ALPHA`].
pub const COMPARISONS_MAX: u32 = 64;

/// One line for each number of comparisons, below a head of `#` lines: the number, z of every look, and z of
/// the last block for each number of blocks from [`BLOCKS_MIN`] to [`BLOCKS_MAX`].
const TABLE: &str = include_str!("looks.csv");

/// Boundaries of the looks and of the end.
#[derive(Clone, Debug, PartialEq)]
pub struct Looks {
    look: f64,
    ends: Vec<f64>,
}

impl Looks {
    /// Creates the boundaries of a run in which `comparisons` comparisons share [`ALPHA`]. Each has α/m
    /// (Bonferroni), so the probability that *any* of them errs is at most α for any dependence. `None`
    /// outside 1 to [`COMPARISONS_MAX`].
    pub fn new(comparisons: u32) -> Option<Self> {
        let comparisons = shared(comparisons)?;
        let row = |line: &str| {
            let (of, values) = line.split_once(',')?;
            let enough = of.parse().is_ok_and(|of: u32| of >= comparisons);
            let values: Vec<f64> = values
                .split(',')
                .map_while(|value| value.parse().ok())
                .collect();
            enough.then(|| {
                values
                    .split_first()
                    .map(|(look, ends)| (*look, ends.to_vec()))
            })?
        };
        // The lines are ascending. A number without a line uses the next larger one, whose boundary is
        // higher.
        let (look, ends) = TABLE
            .lines()
            .filter(|line| !line.starts_with('#'))
            .find_map(row)?;
        Some(Self { look, ends })
    }

    /// Critical t of the look after `blocks` blocks. `None` below [`BLOCKS_MIN`] and above [`BLOCKS_MAX`].
    ///
    /// The intervals mean ± t s/√n are repeated confidence intervals: with probability 95 % *all* intervals
    /// of a run contain the true value, so they also support a verdict of equivalence, or none.
    pub fn look_t(&self, blocks: u32) -> Option<f64> {
        (BLOCKS_MIN..=BLOCKS_MAX)
            .contains(&blocks)
            .then(|| critical_t_at(self.look, blocks))?
    }

    /// Confidence level for an interval that is not based on t, at a look or at the end of a run after this
    /// number of blocks. It equals the probability within the z of the boundary.
    pub fn level(&self, blocks: u32, ended: bool) -> f64 {
        let place = blocks.clamp(BLOCKS_MIN, BLOCKS_MAX) - BLOCKS_MIN;
        let end = self.ends.get(place as usize).filter(|_| ended);
        1.0 - two_sided(*end.unwrap_or(&self.look))
    }

    /// Critical t of a run that ends after `blocks` blocks for a reason independent of the result. Beyond
    /// [`BLOCKS_MAX`], which is for forecasts, the last boundary applies. `None` below [`BLOCKS_MIN`].
    pub fn end_t(&self, blocks: u32) -> Option<f64> {
        let place = blocks.min(BLOCKS_MAX).checked_sub(BLOCKS_MIN)?;
        critical_t_at(*self.ends.get(place as usize)?, blocks)
    }
}

/// Checks that a number of comparisons can share [`ALPHA`].
pub(crate) fn shared(comparisons: u32) -> Option<u32> {
    Some(comparisons).filter(|comparisons| (1..=COMPARISONS_MAX).contains(comparisons))
}

#[cfg(test)]
mod tests;
