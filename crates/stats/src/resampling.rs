//! Seeded random draws for resampling methods: whole blocks with replacement, signs of whole blocks, or the
//! order of records.
//!
//! The same seed gives the same result on every machine and in every version, so that a report can be
//! reproduced from its record. The seed always comes from the caller. Nothing below a block is drawn, because
//! blocks are the unit of the statistics, and resampling requests would assume that requests are independent.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// Minimum number of blocks to draw from.
pub(crate) const BLOCKS_MIN: u32 = 6;
/// Minimum number of resamples. With fewer, an end of a 95 % interval depends on fewer than 25 of them.
pub const RESAMPLES_MIN: u32 = 1_000;
/// Maximum number of resamples, which limits memory and time. More would only refine digits that the blocks
/// do not support.
pub const RESAMPLES_MAX: u32 = 1_000_000;

/// Number of resamples and the seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resampling {
    /// Resamples (B), from [`RESAMPLES_MIN`] to [`RESAMPLES_MAX`]. With 10,000 the ends vary by about 1 % of
    /// the interval.
    pub resamples: u32,
    /// Any number. It must be stored in the record of the result.
    pub seed: u64,
}

impl Resampling {
    /// Creates the draws of one method. `purpose` separates methods that use the same seed. `None` for a
    /// number of resamples outside its range.
    pub(crate) fn draws(self, purpose: [u8; 8]) -> Option<Draws> {
        let seed = self.seed ^ u64::from_be_bytes(purpose);
        let is_allowed = (RESAMPLES_MIN..=RESAMPLES_MAX).contains(&self.resamples);
        is_allowed.then(|| Draws(Pcg64Mcg::seed_from_u64(seed)))
    }
}

/// An endless stream of draws.
pub(crate) struct Draws(Pcg64Mcg);

impl Draws {
    /// Draws an index from 0 to `count` − 1, uniform to within 2⁻⁶⁴ `count`.
    pub(crate) fn index(&mut self, count: usize) -> usize {
        ((u128::from(self.0.next_u64()) * count as u128) >> 64) as usize
    }

    /// Shuffles items uniformly (Fisher & Yates 1938).
    pub(crate) fn shuffle<T>(&mut self, things: &mut [T]) {
        for last in (1..things.len()).rev() {
            things.swap(last, self.index(last + 1));
        }
    }

    /// Draws a fair sign, +1 or −1, for each position.
    pub(crate) fn signs(&mut self, signs: &mut [f64]) {
        for word in signs.chunks_mut(64) {
            let bits = self.0.next_u64();
            for (bit, sign) in word.iter_mut().enumerate() {
                *sign = if bits >> bit & 1 == 1 { -1.0 } else { 1.0 };
            }
        }
    }
}
