//! A race of levels: all are measured block by block, and who is behind leaves. It finds the best, and claims nothing of how good it is. Pure.

/// Blocks before anybody leaves.
pub(crate) const BLOCKS_MIN: u32 = 3;
/// Most blocks.
const BLOCKS_MAX: usize = 8;
/// A cheaper level is taken where the best is no more than this better, as a logarithm.
const NEAR: f64 = 0.02;
/// Who is behind by so many standard errors of a difference leaves.
const BEHIND: f64 = 2.0;

/// A race under way, for levels from the cheapest on.
#[derive(Debug, Clone)]
pub(crate) struct Race {
    /// Those that are still in it.
    racing: Vec<usize>,
    /// What each level came to in each block, as a logarithm of which more is better.
    blocks: Vec<Vec<Option<f64>>>,
    levels: usize,
}

impl Race {
    /// A race of so many.
    pub fn of(levels: usize) -> Race {
        Race { racing: (0..levels).collect(), blocks: Vec::new(), levels }
    }

    /// Who is in the next block; `None` where the race is over.
    pub fn racing(&self) -> Option<&[usize]> {
        (self.racing.len() > 1 && self.blocks.len() < BLOCKS_MAX).then_some(&self.racing)
    }

    /// Takes in a block: what each came to of those that are still in the race. Who has no figure leaves.
    pub fn take(&mut self, logs: Vec<Option<f64>>) {
        let mut block = vec![None; self.levels];
        for (level, log) in self.racing.iter().zip(logs) {
            block[*level] = log;
        }
        self.racing.retain(|level| block[*level].is_some());
        self.blocks.push(block);
        if self.blocks.len() as u32 >= BLOCKS_MIN {
            let means = self.means();
            let n = self.blocks.len() as f64;
            let behind = BEHIND * self.sd(&means) * (2.0 / n).sqrt();
            let best = means.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let stays: Vec<bool> = means.iter().map(|mean| best - mean <= behind).collect();
            let mut stays = stays.into_iter();
            self.racing.retain(|_| stays.next() == Some(true));
        }
    }

    /// The cheapest that is about as good as the best; `None` before the first block.
    pub fn cheapest(&self) -> Option<usize> {
        let means = self.means();
        let best = means.iter().copied().reduce(f64::max)?;
        self.racing.iter().zip(&means).find(|(_, mean)| best - *mean <= NEAR).map(|(level, _)| *level)
    }

    /// The mean of each that is still in the race; none before the first block.
    fn means(&self) -> Vec<f64> {
        let n = self.blocks.len() as f64;
        let mean = |level: &usize| self.blocks.iter().filter_map(|block| block[*level]).sum::<f64>() / n;
        self.racing.iter().filter(|_| n > 0.0).map(mean).collect()
    }

    /// The standard deviation of one figure, less what levels and blocks have in common.
    fn sd(&self, means: &[f64]) -> f64 {
        let count = self.racing.len() as f64;
        let of_block = |block: &Vec<Option<f64>>| {
            let rests = self.racing.iter().zip(means).filter_map(|(level, mean)| Some(block[*level]? - mean));
            let rests: Vec<f64> = rests.collect();
            let common = rests.iter().sum::<f64>() / count;
            rests.into_iter().map(|rest| (rest - common).powi(2)).sum::<f64>()
        };
        let freedom = (count - 1.0) * (self.blocks.len() as f64 - 1.0);
        (self.blocks.iter().map(of_block).sum::<f64>() / freedom.max(1.0)).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_behind_leaves_and_the_cheaper_of_two_alike_is_taken() {
        let mut race = Race::of(4);
        for noise in [0.0, 0.01, -0.01, 0.005] {
            let logs = [0.0, 0.395 + noise, 0.4 - noise, 0.2];
            let racing = race.racing().unwrap().to_vec();
            race.take(racing.iter().map(|level| Some(logs[*level])).collect());
        }
        assert_eq!(race.racing(), Some(&[1, 2][..]));
        assert_eq!(race.cheapest(), Some(1));
    }

    #[test]
    fn who_falls_over_leaves_at_once() {
        let mut race = Race::of(2);
        assert_eq!(race.cheapest(), None);
        race.take(vec![Some(0.0), None]);
        assert_eq!((race.racing(), race.cheapest()), (None, Some(0)));
    }
}
