//! How far a result must be from nothing, so that one may look after every block and still err in 5 % of runs at most.
//!
//! Looking after every block with the interval of a fixed number of blocks finds a "difference" between equal variants in a
//! quarter of all runs. So every look has the same boundary, which is higher, as Pocock's (1977): from the fourth block to the last that
//! a run can have, 4 % of runs without a difference cross it. A run spends 5 % in all. What its looks have left belongs to the block
//! at which it ends, whose boundary is lower:
//!
//! ```text
//! |z|   3.0 ● ● ● ● ● ● ● ● ● ● ● ●           every look alike, whatever the budget
//!                                    ● 2.1    the last block of a run that ends here
//!       └─┬───────────────────────┬──┬──► blocks
//!         4                         ends
//! ```
//!
//! No look depends on the budget, so a larger one never asks more of a clear difference. The end may come at any block, as long as
//! it does not depend on the result: a spent budget, a number of blocks from the file. Who stops when it suits has the boundary of
//! the looks.
//!
//! The spread of the blocks is estimated, so z becomes the t of n − 1 degrees of freedom with the same two-sided tail. With few blocks
//! that step is only nearly right, so the constants are not those of normal theory: `looks.csv` comes from a simulation of the t
//! statistics themselves, by `examples/make_looks.rs`.
//!
//! Must not: see data.

use crate::critical_t_at;
use crate::student::two_sided;

/// Two-sided chance, over all looks and all comparisons of a run, of a difference where there is none.
pub const ALPHA: f64 = 0.05;
/// Fewest blocks from which a verdict is given.
pub const BLOCKS_MIN: u32 = 4;
/// Most blocks a run can have.
pub const BLOCKS_MAX: u32 = 120;
/// Most comparisons that can share [`ALPHA`].
pub const COMPARISONS_MAX: u32 = 64;

/// One line for each number of comparisons, below a head of `#` lines: the number, z of every look, and z of the last block for each
/// number of blocks from [`BLOCKS_MIN`] to [`BLOCKS_MAX`].
const TABLE: &str = include_str!("looks.csv");

/// The boundary of every look, and of the end.
#[derive(Clone, Debug, PartialEq)]
pub struct Looks {
    look: f64,
    ends: Vec<f64>,
}

impl Looks {
    /// Those of a run in which `comparisons` comparisons share [`ALPHA`] (Bonferroni: each has α/m, so the chance that *any* of
    /// them errs is at most α however they depend on each other). `None` outside 1 to [`COMPARISONS_MAX`].
    pub fn new(comparisons: u32) -> Option<Self> {
        let comparisons = shared(comparisons)?;
        let row = |line: &str| {
            let (of, values) = line.split_once(',')?;
            let enough = of.parse().is_ok_and(|of: u32| of >= comparisons);
            let values: Vec<f64> = values.split(',').map_while(|value| value.parse().ok()).collect();
            enough.then(|| values.split_first().map(|(look, ends)| (*look, ends.to_vec())))?
        };
        // The lines rise, and where a number has none the next larger one has a higher boundary.
        let (look, ends) = TABLE.lines().filter(|line| !line.starts_with('#')).find_map(row)?;
        Some(Self { look, ends })
    }

    /// The critical t of the look after `blocks` blocks; `None` below [`BLOCKS_MIN`] and above [`BLOCKS_MAX`].
    ///
    /// The intervals mean ± t s/√n are repeated confidence intervals: with probability 95 % *all* of those of a run contain the truth,
    /// so they also carry a verdict of equivalence, or none.
    pub fn look_t(&self, blocks: u32) -> Option<f64> {
        (BLOCKS_MIN..=BLOCKS_MAX).contains(&blocks).then(|| critical_t_at(self.look, blocks))?
    }

    /// The confidence of an interval that is not made by t and shall hold at a look, or at the end of a run after so many blocks: as much
    /// lies within the boundary's z.
    pub fn level(&self, blocks: u32, ended: bool) -> f64 {
        let place = blocks.clamp(BLOCKS_MIN, BLOCKS_MAX) - BLOCKS_MIN;
        let end = self.ends.get(place as usize).filter(|_| ended);
        1.0 - two_sided(*end.unwrap_or(&self.look))
    }

    /// The critical t of a run that ends after `blocks` blocks for a reason that does not depend on the result. Beyond [`BLOCKS_MAX`], which
    /// is for forecasts: as there. `None` below [`BLOCKS_MIN`].
    pub fn end_t(&self, blocks: u32) -> Option<f64> {
        let place = blocks.min(BLOCKS_MAX).checked_sub(BLOCKS_MIN)?;
        critical_t_at(*self.ends.get(place as usize)?, blocks)
    }
}

/// A number of comparisons that can share [`ALPHA`].
pub(crate) fn shared(comparisons: u32) -> Option<u32> {
    Some(comparisons).filter(|comparisons| (1..=COMPARISONS_MAX).contains(comparisons))
}

#[cfg(test)]
mod tests;
