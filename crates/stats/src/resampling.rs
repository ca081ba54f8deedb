//! Seeded random draws for the methods that resample: whole blocks with replacement, signs of whole
//! blocks, or the order of records.
//!
//! The same seed gives the same answer on every machine and in every version, so that a report can be made again from
//! its record. Must not: take a seed from anywhere but the caller, or draw anything below a block. Blocks are the
//! unit of statistics; to resample requests would claim that requests are independent.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// Fewest blocks that are drawn from.
pub(crate) const BLOCKS_MIN: u32 = 6;
/// Fewest resamples: below, an end of a 95 % interval rests on fewer than 25 of them.
pub const RESAMPLES_MIN: u32 = 1_000;
/// Most resamples, which bounds memory and time: more would sharpen digits that the blocks do not carry.
pub const RESAMPLES_MAX: u32 = 1_000_000;

/// How often to draw, and from which seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resampling {
    /// Resamples (B), from [`RESAMPLES_MIN`] to [`RESAMPLES_MAX`]; 10,000 moves an end by about 1 % of the interval.
    pub resamples: u32,
    /// Any number; belongs into the record of whatever is made with it.
    pub seed: u64,
}

impl Resampling {
    /// The draws of one method; `purpose` keeps those of one method apart from those of another with the same seed. `None` for a number
    /// of resamples outside its range.
    pub(crate) fn draws(self, purpose: [u8; 8]) -> Option<Draws> {
        let seed = self.seed ^ u64::from_be_bytes(purpose);
        let is_allowed = (RESAMPLES_MIN..=RESAMPLES_MAX).contains(&self.resamples);
        is_allowed.then(|| Draws(Pcg64Mcg::seed_from_u64(seed)))
    }
}

/// A stream of draws without end.
pub(crate) struct Draws(Pcg64Mcg);

impl Draws {
    /// One of 0 to `count` − 1, each as likely as another to within 2⁻⁶⁴ `count`.
    pub(crate) fn index(&mut self, count: usize) -> usize {
        ((u128::from(self.0.next_u64()) * count as u128) >> 64) as usize
    }

    /// Puts things into a random order, each as likely as another (Fisher & Yates 1938).
    pub(crate) fn shuffle<T>(&mut self, things: &mut [T]) {
        for last in (1..things.len()).rev() {
            things.swap(last, self.index(last + 1));
        }
    }

    /// A fresh sign, +1 or −1 as by a fair coin, for each place.
    pub(crate) fn signs(&mut self, signs: &mut [f64]) {
        for word in signs.chunks_mut(64) {
            let bits = self.0.next_u64();
            for (bit, sign) in word.iter_mut().enumerate() {
                *sign = if bits >> bit & 1 == 1 { -1.0 } else { 1.0 };
            }
        }
    }
}
