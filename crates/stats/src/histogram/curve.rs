//! Many quantiles of one histogram at a time, for curves: its cells are added up once.
//!
//! Must not: give another answer than [`Latencies::quantile`] would.

use super::layout::lowest;
use super::table::Both;
use super::{Latencies, Quantile, rank};

impl Latencies {
    /// [`Latencies::quantile`] of each of these shares, in their order.
    pub fn quantiles(&self, shares: &[f64]) -> Vec<Option<Quantile>> {
        let answered = Sums::of(self.exact.cells());
        let censored = !self.censored.is_empty();
        let everything = censored.then(|| Sums::of(Both::of(self.exact.cells(), self.censored.cells())));
        let count = self.count();
        let one = |share: &f64| {
            if count == 0 || !(0.0..=1.0).contains(share) {
                return None;
            }
            let rank = rank(*share, count);
            let high = answered.nth(rank);
            let low = everything.as_ref().unwrap_or(&answered).nth(rank)?;
            Some(if high == Some(low) { Quantile::Exact(low) } else { Quantile::AtLeast(low) })
        };
        shares.iter().map(one).collect()
    }
}

/// The lower end of each cell that was hit, rising, with the samples up to and in it.
struct Sums(Vec<(u64, u64)>);

impl Sums {
    fn of(cells: impl Iterator<Item = (u32, u64)>) -> Sums {
        let running = |seen: &mut u64, (cell, count): (u32, u64)| {
            *seen += count;
            Some((lowest(cell), *seen))
        };
        Sums(cells.scan(0, running).collect())
    }

    /// The cell of the sample of `rank` (from 1); `None` where there are fewer.
    fn nth(&self, rank: u64) -> Option<u64> {
        let at = self.0.partition_point(|(_, up_to)| *up_to < rank);
        self.0.get(at).map(|(cell, _)| *cell)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_quantiles_at_once_are_those_taken_one_by_one() {
        let shares: Vec<f64> = (-1..=1001).map(|part| f64::from(part) / 1000.0).collect();
        let mut latencies = Latencies::new();
        for censored in [0, 1, 40] {
            (0..500_u64).for_each(|index| latencies.record(1_000 + index * index * 37));
            (0..censored).for_each(|index| latencies.censor(900_000 + 100_000 * index));
            let singly: Vec<_> = shares.iter().map(|share| latencies.quantile(*share)).collect();
            assert_eq!(latencies.quantiles(&shares), singly, "with {censored} censored");
            latencies.pack();
            assert_eq!(latencies.quantiles(&shares), singly, "packed, with {censored} censored");
        }
        assert_eq!(Latencies::new().quantiles(&[0.5]), [None]);
    }
}
