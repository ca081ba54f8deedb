//! Data of a screening as it arrives: halves of mirrored pairs, complete pairs, main effects and
//! interactions. Also races of levels: all levels are measured block by block, and those that are behind
//! leave. A race finds the best level, but does not estimate how good it is. Pure.

use std::collections::BTreeMap;

use model::Metric;
use stats::{MeasuredPoint, Mirrored, ScreenLooks, Screened};

use super::step::{LevelRow, RowFigures};
use crate::throughput::judged_by;

/// Error rate shared by all effects of a screening.
pub(crate) const ALPHA: f64 = 0.05;

/// Number of mirrored pairs in open loop. More for designs of only four rows.
pub(crate) fn latency_pairs(settings: usize) -> u32 {
    if settings < 4 { 4 } else { 2 }
}

/// Rows of a block, and their figures.
pub(crate) type Half = (Vec<LevelRow>, Vec<Option<RowFigures>>);

/// State of the screening.
#[derive(Debug, Clone, Default)]
pub(crate) struct Screening {
    pub pairs_max: u32,
    /// Number of pairs that fit if no setting is decided.
    pub pairs_fit: u32,
    pub pairs: u32,
    /// Halves of the current pair still to be measured, last first: rows, and after them their mirror images.
    pub wanted: Vec<Vec<LevelRow>>,
    /// The measured halves of the current pair.
    pub halves: Vec<Half>,
    /// Number of pairs in which each setting varied.
    pub pairs_of: BTreeMap<usize, u32>,
    /// The blocks of complete pairs, for each metric.
    pub blocks: BTreeMap<Metric, Vec<Vec<Mirrored>>>,
    /// Whether all results can be judged per core-second.
    pub per_core: Option<bool>,
    pub looks: Option<ScreenLooks>,
}

impl Screening {
    /// Completes a pair in which these settings varied.
    pub fn end_pair(&mut self, varied: &[usize]) {
        let halves = std::mem::take(&mut self.halves);
        let all = halves
            .iter()
            .flat_map(|(_, figures)| figures.iter().flatten());
        let per_core = all.clone().next().is_some() && all.clone().all(|figures| figures.per_core);
        self.per_core = Some(self.per_core.unwrap_or(true) && per_core);
        for metric in Metric::ALL.iter().copied() {
            let rows = halves
                .chunks_exact(2)
                .map(|pair| mirrored(pair, varied, metric));
            self.blocks.entry(metric).or_default().extend(rows);
        }
        self.pairs += 1;
        for of in varied {
            *self.pairs_of.entry(*of).or_default() += 1;
        }
    }

    /// The effects on a metric.
    pub fn screened(&self, metric: Metric) -> Option<Screened> {
        let (source, sign) = judged_by(metric, self.per_core == Some(true));
        let mut screened = stats::screened(self.blocks.get(&source)?)?;
        screened
            .effects
            .iter_mut()
            .flatten()
            .for_each(|effect| effect.value *= sign);
        Some(screened)
    }

    /// Effect of a setting on a metric, and the critical t for it. A setting decided early has the critical t
    /// of its last look.
    pub fn effect(&self, of: usize, metric: Metric) -> Option<(MeasuredPoint, f64)> {
        let (looks, pairs) = (self.looks.as_ref()?, *self.pairs_of.get(&of)?);
        let screened = self.screened(metric)?;
        let effect = screened.effects.get(of).copied().flatten()?;
        Some((effect, looks.critical_t(pairs, screened.freedom)))
    }

    /// Certain interactions between pairs of these settings. `None` without data.
    pub fn interactions(&self, among: &[usize], metric: Metric) -> Option<Vec<([usize; 2], f64)>> {
        let (source, sign) = judged_by(metric, self.per_core == Some(true));
        let found =
            stats::interactions(self.blocks.get(&source).filter(|_| among.len() > 1)?, among)?;
        let critical_t =
            ScreenLooks::new(&[1], found.pairs.len(), ALPHA)?.critical_t(1, found.freedom);
        let sure = |effect: &MeasuredPoint| effect.value.abs() > critical_t * effect.standard_error;
        let sure = found.pairs.into_iter().filter(|(_, effect)| sure(effect));
        Some(
            sure.map(|(pair, effect)| (pair, sign * effect.value))
                .collect(),
        )
    }
}

/// The rows of one block and their mirror images, for a metric. Rows with a missing figure on either side are
/// left out.
fn mirrored(pair: &[Half], open: &[usize], metric: Metric) -> Vec<Mirrored> {
    let [(rows, figures), (_, mirror)] = pair else {
        return Vec::new();
    };
    let value = |figures: &Option<RowFigures>| figures.as_ref()?.value(metric).map(f64::ln);
    let row = |((row, one), other): ((&LevelRow, &Option<RowFigures>), &Option<RowFigures>)| {
        let on = (0..row.len())
            .map(|of| open.contains(&of).then(|| row[of] > 0))
            .collect();
        Some(Mirrored {
            on,
            logs: [value(one)?, value(other)?],
        })
    };
    rows.iter()
        .zip(figures)
        .zip(mirror)
        .filter_map(row)
        .collect()
}

/// Minimum number of blocks before levels leave.
pub(crate) const RACE_BLOCKS_MIN: u32 = 3;
/// Maximum number of blocks.
const RACE_BLOCKS_MAX: usize = 8;
/// Maximum advantage of the best level over a cheaper one that is preferred to it, as a logarithm.
const NEAR: f64 = 0.02;
/// Number of standard errors of a difference from which a level is behind and leaves.
const BEHIND: f64 = 2.0;

/// A race of levels in progress, cheapest first.
#[derive(Debug, Clone)]
pub(crate) struct Race {
    /// Levels still in the race.
    racing: Vec<usize>,
    /// Figure of each level in each block, as a logarithm of which more is better.
    blocks: Vec<Vec<Option<f64>>>,
    /// Excess of each level over a limit, as logarithms, in blocks with data.
    excess: Vec<Vec<f64>>,
}

impl Race {
    /// Starts a race.
    pub fn of(levels: usize) -> Race {
        Race {
            racing: (0..levels).collect(),
            blocks: Vec::new(),
            excess: vec![Vec::new(); levels],
        }
    }

    /// The levels of the next block. `None` if the race is over.
    pub fn racing(&self) -> Option<&[usize]> {
        (self.racing.len() > 1 && self.blocks.len() < RACE_BLOCKS_MAX).then_some(&self.racing)
    }

    /// Adds a block: for each level in the race its figure, and its excess over a limit. A level without a
    /// figure leaves. After enough blocks, levels that exceed a limit leave too, before others that keep it.
    pub fn take(&mut self, came: Vec<(Option<f64>, Option<f64>)>) {
        let mut block = vec![None; self.excess.len()];
        for (level, (log, excess)) in self.racing.iter().zip(came) {
            block[*level] = log;
            self.excess[*level].extend(excess);
        }
        self.racing.retain(|level| block[*level].is_some());
        self.blocks.push(block);
        if self.blocks.len() as u32 >= RACE_BLOCKS_MIN {
            let excess = &self.excess;
            self.racing.retain(|level| keeps(&excess[*level]));
            let means = self.means();
            let n = self.blocks.len() as f64;
            let behind = BEHIND * self.sd(&means) * (2.0 / n).sqrt();
            let best = means.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let mut means = means.into_iter();
            self.racing
                .retain(|_| means.next().is_some_and(|mean| best - mean <= behind));
        }
    }

    /// The cheapest level that is about as good as the best, of those that keep the limits. `None` before the
    /// first block, or if none keeps them.
    pub fn cheapest(&self) -> Option<usize> {
        let all = self.racing.iter().zip(self.means());
        let kept: Vec<_> = all
            .filter(|(level, _)| keeps(&self.excess[**level]))
            .collect();
        let best = kept.iter().map(|(_, mean)| *mean).reduce(f64::max)?;
        kept.into_iter()
            .find(|(_, mean)| best - mean <= NEAR)
            .map(|(level, _)| *level)
    }

    /// The mean of each level in the race. Empty before the first block.
    fn means(&self) -> Vec<f64> {
        let n = self.blocks.len() as f64;
        let mean = |level: &usize| {
            self.blocks
                .iter()
                .filter_map(|block| block[*level])
                .sum::<f64>()
                / n
        };
        self.racing.iter().filter(|_| n > 0.0).map(mean).collect()
    }

    /// Standard deviation of one figure, without the means of levels and blocks.
    fn sd(&self, means: &[f64]) -> f64 {
        let count = self.racing.len() as f64;
        let of_block = |block: &Vec<Option<f64>>| {
            let rests = self
                .racing
                .iter()
                .zip(means)
                .filter_map(|(level, mean)| Some(block[*level]? - mean));
            let rests: Vec<f64> = rests.collect();
            let common = rests.iter().sum::<f64>() / count;
            rests
                .into_iter()
                .map(|rest| (rest - common).powi(2))
                .sum::<f64>()
        };
        let freedom = (count - 1.0) * (self.blocks.len() as f64 - 1.0);
        (self.blocks.iter().map(of_block).sum::<f64>() / freedom.max(1.0)).sqrt()
    }
}

/// Whether a level keeps the limits, on average over its blocks.
fn keeps(excess: &[f64]) -> bool {
    excess.iter().sum::<f64>() <= 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_decided_early_keeps_the_boundary_of_its_look() {
        let mut screen = Screening {
            looks: ScreenLooks::new(&[2, 4], 2, ALPHA),
            ..Screening::default()
        };
        for varied in [&[0, 1][..], &[0, 1], &[1], &[1]] {
            for rows in [
                [[1_usize, 1], [0, 1], [1, 0], [0, 0]],
                [[0, 0], [1, 0], [0, 1], [1, 1]],
            ] {
                let figures = RowFigures {
                    values: [(Metric::Throughput, 100.0)].into(),
                    per_core: false,
                };
                screen
                    .halves
                    .push((rows.map(LevelRow::from).to_vec(), vec![Some(figures); 4]));
            }
            screen.end_pair(varied);
        }
        let critical_t = |of| screen.effect(of, Metric::Throughput).unwrap().1;
        assert!(
            critical_t(0) > 1.1 * critical_t(1),
            "{} and {}",
            critical_t(0),
            critical_t(1)
        );
    }

    #[test]
    fn who_is_behind_leaves_and_the_cheaper_of_two_alike_is_taken() {
        let mut race = Race::of(4);
        for noise in [0.0, 0.01, -0.01, 0.005] {
            let logs = [0.0, 0.395 + noise, 0.4 - noise, 0.2];
            let racing = race.racing().unwrap().to_vec();
            race.take(
                racing
                    .iter()
                    .map(|level| (Some(logs[*level]), None))
                    .collect(),
            );
        }
        assert_eq!(race.racing(), Some(&[1, 2][..]));
        assert_eq!(race.cheapest(), Some(1));
    }

    #[test]
    fn who_passes_a_limit_drives_nobody_out() {
        let mut race = Race::of(3);
        let came = [(0.0, -0.1), (0.2, -0.05), (0.4, 0.1)];
        for blocks in 1..=3 {
            race.take(came.map(|(log, excess)| (Some(log), Some(excess))).to_vec());
            assert_eq!(race.cheapest(), Some(1), "{blocks}");
        }
        assert_eq!(race.racing(), None);
    }

    #[test]
    fn who_falls_over_leaves_at_once() {
        let mut race = Race::of(2);
        assert_eq!(race.cheapest(), None);
        race.take(vec![(Some(0.0), None), (None, None)]);
        assert_eq!((race.racing(), race.cheapest()), (None, Some(0)));
    }
}
