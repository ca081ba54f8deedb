//! When an experiment may look at its result, and how far the result must then be from nothing.
//!
//! Looking after every block with the interval of a fixed number of blocks finds a "difference" between equal variants
//! in a fifth of all runs. A group-sequential plan fixes a few looks beforehand and gives each a boundary, such that the
//! chance of *ever* crossing stays at 5 %. The boundary is that of Wang & Tsiatis (1987) with Δ = 0.25, a middle between
//! Pocock's (Δ = 0.5, all looks alike) and O'Brien & Fleming's (Δ = 0, hardly ever early):
//!
//! ```text
//! |z|                          c_k = C (n_k / N)^(Δ − ½)        n_k blocks at look k, N at the last
//!  │ 3.2 ●
//!  │        ● 2.8
//!  │             ● 2.5
//!  │                      ● 2.3
//!  │                               ● 2.1 = C
//!  └─────┬──┬────┬────────┬────────┬──► blocks
//!        6  10   15       22       30
//! ```
//!
//! The spread of the blocks is estimated, so c_k becomes the t of n_k − 1 degrees of freedom with the same two-sided tail
//! (Jennison & Turnbull 2000, section 3.8). With so few blocks that step is only nearly right, so C is not taken from
//! normal theory but from a simulation of the t statistics themselves: `looks.csv`, made by `examples/make_looks.rs`.
//!
//! Must not: see data. A plan depends on its budget and number of comparisons alone, both known beforehand.

use crate::{Error, critical_t_at};

/// Two-sided chance, over all looks and all comparisons of a plan, of a difference where there is none.
pub const ALPHA: f64 = 0.05;
/// Fewest blocks from which a verdict is given.
pub const BLOCKS_MIN: u32 = 6;
/// Most blocks a plan can have.
pub const BLOCKS_MAX: u32 = 120;
/// Most comparisons that can share [`ALPHA`].
pub const COMPARISONS_MAX: u32 = 64;

/// Blocks at which one may look, besides the last.
const LOOKS: [u32; 9] = [6, 10, 15, 22, 30, 45, 60, 90, 120];
/// Blocks a plan may end with. A budget in between is rounded down.
const FINALS: [u32; 16] = [6, 7, 8, 9, 10, 12, 15, 18, 22, 26, 30, 36, 45, 60, 90, 120];
/// The exponent Δ − ½ of the boundary.
const SHAPE: f64 = 0.25 - 0.5;
/// `final_blocks,comparisons,c` lines below a head of `#` lines that tells seed, paths and date.
const TABLE: &str = include_str!("looks.csv");

/// A plan of looks: after how many blocks, and with which critical t.
#[derive(Clone, Debug, PartialEq)]
pub struct Looks {
    at: Vec<u32>,
    comparisons: u32,
    constant: f64,
}

impl Looks {
    /// The plan for at most `blocks_max` blocks, in which `comparisons` comparisons share [`ALPHA`] (Bonferroni: each
    /// has α/m, so the chance that *any* of them errs is at most α however they depend on each other).
    ///
    /// `blocks_max` is rounded down to a final number there is a table for; beyond [`BLOCKS_MAX`] it is that.
    ///
    /// # Errors
    /// [`Error::TooFewBlocks`] below [`BLOCKS_MIN`], [`Error::Comparisons`] outside 1 to [`COMPARISONS_MAX`].
    pub fn plan(blocks_max: u32, comparisons: u32) -> Result<Self, Error> {
        let too_few = Error::TooFewBlocks { blocks: blocks_max, least: BLOCKS_MIN };
        let last = FINALS.into_iter().rfind(|&n| n <= blocks_max).ok_or(too_few)?;
        if !(1..=COMPARISONS_MAX).contains(&comparisons) {
            return Err(Error::Comparisons { comparisons, most: COMPARISONS_MAX });
        }
        Ok(Self { at: Self::set(last), comparisons, constant: constant(last, comparisons) })
    }

    /// The numbers of blocks a plan may end with, rising.
    pub fn finals() -> &'static [u32] {
        &FINALS
    }

    /// The looks of a plan that ends with `last` blocks: the usual ones below it, and `last` itself.
    pub fn set(last: u32) -> Vec<u32> {
        LOOKS.into_iter().filter(|&n| n < last).chain([last]).collect()
    }

    /// Numbers of blocks at which to look, rising; the last is [`Looks::last`].
    pub fn looks(&self) -> &[u32] {
        &self.at
    }

    /// The number of blocks at which the plan ends, whatever it shows.
    pub fn last(&self) -> u32 {
        *self.at.last().expect("a plan has its final look")
    }

    /// Comparisons that share the error rate.
    pub fn comparisons(&self) -> u32 {
        self.comparisons
    }

    /// Whether the plan looks after `blocks` blocks.
    pub fn is_look(&self, blocks: u32) -> bool {
        self.at.contains(&blocks)
    }

    /// The critical t after `blocks` blocks, or `None` where the plan does not look.
    ///
    /// The interval mean ± t s/√n at a look is a repeated confidence interval: with probability 95 % *all* of
    /// those of a run hold the truth, so it also carries a verdict of equivalence, or none.
    pub fn critical_t(&self, blocks: u32) -> Option<f64> {
        self.is_look(blocks).then(|| self.boundary(blocks))
    }

    /// The critical t for a run that ended after `blocks` blocks before its plan did, because time ran out; at a look
    /// the same as [`Looks::critical_t`]. `None` below [`BLOCKS_MIN`] or beyond the plan's last block.
    ///
    /// It is the plan's own boundary at that n. The one look replaces all later ones, and its boundary is higher
    /// than any of theirs, so the chance of crossing becomes smaller than planned. That holds when the end has
    /// nothing to do with the result: a clock, a full disk. Whoever watches and stops when it suits, does not
    /// have this protection (`docs/methodology.md` gives the price).
    pub fn final_critical_t(&self, blocks: u32) -> Option<f64> {
        (BLOCKS_MIN..=self.last()).contains(&blocks).then(|| self.boundary(blocks))
    }

    /// C (n/N)^(Δ − ½), as a t.
    fn boundary(&self, blocks: u32) -> f64 {
        let share = f64::from(blocks) / f64::from(self.last());
        critical_t_at(self.constant * share.powf(SHAPE), blocks)
            .expect("boundaries lie between 1 and 8, and plans begin at six blocks")
    }

    /// C as a t of `blocks` blocks: what the final look of a plan of about that length asks for.
    pub(crate) fn final_boundary(&self, blocks: u32) -> f64 {
        critical_t_at(self.constant, blocks)
            .expect("constants lie between 1 and 5, and plans begin at six blocks")
    }
}

/// C for a final number of blocks and the next number of comparisons, not below, that the table has.
fn constant(last: u32, comparisons: u32) -> f64 {
    table()
        .filter(|row| row.last == last && row.comparisons >= comparisons)
        .min_by_key(|row| row.comparisons)
        .map(|row| row.constant)
        .expect("looks.csv has every final number up to the most comparisons")
}

struct Row {
    last: u32,
    comparisons: u32,
    constant: f64,
}

fn table() -> impl Iterator<Item = Row> {
    let is_data = |line: &&str| line.starts_with(|c: char| c.is_ascii_digit());
    TABLE.lines().filter(is_data).map(|line| row(line).expect("looks.csv is part of the program"))
}

fn row(line: &str) -> Option<Row> {
    let mut fields = line.split(',');
    Some(Row {
        last: fields.next()?.parse().ok()?,
        comparisons: fields.next()?.parse().ok()?,
        constant: fields.next()?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests;
