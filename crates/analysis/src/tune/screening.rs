//! The figures of a screening as they come in: halves of mirrored pairs, whole pairs, and what settings do alone and in pairs. And a race of
//! levels: all are measured block by block, and who is behind leaves. It finds the best, and claims nothing of how good it is. Pure.

use std::collections::BTreeMap;

use model::Metric;
use stats::{Measured, Mirrored, ScreenLooks, Screened};

use super::step::{Figures, Row};

/// The error rate that all effects of a screening share.
pub(crate) const ALPHA: f64 = 0.05;

/// Mirrored pairs in open loop: more where so few settings make a design of four rows.
pub(crate) fn latency_pairs(settings: usize) -> u32 {
    if settings < 4 { 4 } else { 2 }
}

/// Rows of a block, and what each came to.
pub(crate) type Half = (Vec<Row>, Vec<Option<Figures>>);

/// The screening so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Screen {
    pub pairs_max: u32,
    /// As many as there is room for if no setting is decided.
    pub pairs_fit: u32,
    pub pairs: u32,
    /// Halves of the pair under way that are still to be measured, the last first: rows, and behind them their mirror images.
    pub wanted: Vec<Vec<Row>>,
    /// What came of the others.
    pub halves: Vec<Half>,
    /// In how many pairs each setting varied that did.
    pub pairs_of: BTreeMap<usize, u32>,
    /// The blocks of whole pairs, for each metric.
    pub blocks: BTreeMap<Metric, Vec<Vec<Mirrored>>>,
    /// Whether all of it can be judged per core-second.
    pub per_core: Option<bool>,
    pub looks: Option<ScreenLooks>,
}

impl Screen {
    /// Puts the halves of a pair together, in which these settings varied.
    pub fn end_pair(&mut self, varied: &[usize]) {
        let halves = std::mem::take(&mut self.halves);
        let all = halves.iter().flat_map(|(_, figures)| figures.iter().flatten());
        let per_core = all.clone().next().is_some() && all.clone().all(|figures| figures.per_core);
        self.per_core = Some(self.per_core.unwrap_or(true) && per_core);
        for metric in Metric::ALL.iter().copied() {
            let rows = halves.chunks_exact(2).map(|pair| mirrored(pair, varied, metric));
            self.blocks.entry(metric).or_default().extend(rows);
        }
        self.pairs += 1;
        for of in varied {
            *self.pairs_of.entry(*of).or_default() += 1;
        }
    }

    /// The effects on a metric.
    pub fn screened(&self, metric: Metric) -> Option<Screened> {
        let (source, sign) = told_by(metric, self.per_core == Some(true));
        let mut screened = stats::screened(self.blocks.get(&source)?)?;
        screened.effects.iter_mut().flatten().for_each(|effect| effect.value *= sign);
        Some(screened)
    }

    /// What a setting does to a metric, and the t at which that is sure: of one that was decided early it is that of its last look.
    pub fn effect(&self, of: usize, metric: Metric) -> Option<(Measured, f64)> {
        let (looks, pairs) = (self.looks.as_ref()?, *self.pairs_of.get(&of)?);
        let screened = self.screened(metric)?;
        let effect = screened.effects.get(of).copied().flatten()?;
        Some((effect, looks.critical_t(pairs, screened.freedom)))
    }

    /// What pairs of these settings surely do to each other; `None` where nothing tells.
    pub fn interactions(&self, among: &[usize], metric: Metric) -> Option<Vec<([usize; 2], f64)>> {
        let (source, sign) = told_by(metric, self.per_core == Some(true));
        let found = stats::interactions(self.blocks.get(&source).filter(|_| among.len() > 1)?, among)?;
        let critical_t = ScreenLooks::new(&[1], found.pairs.len(), ALPHA)?.critical_t(1, found.freedom);
        let sure = |effect: &Measured| effect.value.abs() > critical_t * effect.standard_error;
        let sure = found.pairs.into_iter().filter(|(_, effect)| sure(effect));
        Some(sure.map(|(pair, effect)| (pair, sign * effect.value)).collect())
    }
}

/// Whose logarithm tells of a metric, and with which sign: per core-second, throughput is the inverse of what a request costs.
pub(crate) fn told_by(metric: Metric, per_core: bool) -> (Metric, f64) {
    let inverse = per_core && metric == Metric::Throughput;
    if inverse { (Metric::CpuPerRequest, -1.0) } else { (metric, 1.0) }
}

/// The rows of one block and their mirror images, for a metric; rows of which one side has no figure are left out.
fn mirrored(pair: &[Half], open: &[usize], metric: Metric) -> Vec<Mirrored> {
    let [(rows, figures), (_, mirror)] = pair else { return Vec::new() };
    let value = |figures: &Option<Figures>| figures.as_ref()?.value(metric).map(f64::ln);
    let row = |((row, one), other): ((&Row, &Option<Figures>), &Option<Figures>)| {
        let on = (0..row.len()).map(|of| open.contains(&of).then(|| row[of] > 0)).collect();
        Some(Mirrored { on, logs: [value(one)?, value(other)?] })
    };
    rows.iter().zip(figures).zip(mirror).filter_map(row).collect()
}

/// Blocks before anybody leaves.
pub(crate) const RACE_BLOCKS_MIN: u32 = 3;
/// Most blocks.
const RACE_BLOCKS_MAX: usize = 8;
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
    /// By how much each level passed a limit, as logarithms, in the blocks that tell.
    excess: Vec<Vec<f64>>,
}

impl Race {
    /// A race of so many.
    pub fn of(levels: usize) -> Race {
        Race { racing: (0..levels).collect(), blocks: Vec::new(), excess: vec![Vec::new(); levels] }
    }

    /// Who is in the next block; `None` where the race is over.
    pub fn racing(&self) -> Option<&[usize]> {
        (self.racing.len() > 1 && self.blocks.len() < RACE_BLOCKS_MAX).then_some(&self.racing)
    }

    /// Takes in a block: what each came to of those that are still in the race, and by how much it passed a limit. Who has no figure
    /// leaves; later also who passes a limit, before it drives out those that keep it.
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
            self.racing.retain(|_| means.next().is_some_and(|mean| best - mean <= behind));
        }
    }

    /// The cheapest that is about as good as the best, of those that keep the limits; `None` before the first block, or if none does.
    pub fn cheapest(&self) -> Option<usize> {
        let all = self.racing.iter().zip(self.means());
        let kept: Vec<_> = all.filter(|(level, _)| keeps(&self.excess[**level])).collect();
        let best = kept.iter().map(|(_, mean)| *mean).reduce(f64::max)?;
        kept.into_iter().find(|(_, mean)| best - mean <= NEAR).map(|(level, _)| *level)
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

/// Whether a level keeps the limits, on average over its blocks.
fn keeps(excess: &[f64]) -> bool {
    excess.iter().sum::<f64>() <= 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_decided_early_keeps_the_boundary_of_its_look() {
        let mut screen = Screen { looks: ScreenLooks::new(&[2, 4], 2, ALPHA), ..Screen::default() };
        for varied in [&[0, 1][..], &[0, 1], &[1], &[1]] {
            for rows in [[[1_usize, 1], [0, 1], [1, 0], [0, 0]], [[0, 0], [1, 0], [0, 1], [1, 1]]] {
                let figures = Figures { values: [(Metric::Throughput, 100.0)].into(), per_core: false };
                screen.halves.push((rows.map(Row::from).to_vec(), vec![Some(figures); 4]));
            }
            screen.end_pair(varied);
        }
        let critical_t = |of| screen.effect(of, Metric::Throughput).unwrap().1;
        assert!(critical_t(0) > 1.1 * critical_t(1), "{} and {}", critical_t(0), critical_t(1));
    }

    #[test]
    fn who_is_behind_leaves_and_the_cheaper_of_two_alike_is_taken() {
        let mut race = Race::of(4);
        for noise in [0.0, 0.01, -0.01, 0.005] {
            let logs = [0.0, 0.395 + noise, 0.4 - noise, 0.2];
            let racing = race.racing().unwrap().to_vec();
            race.take(racing.iter().map(|level| (Some(logs[*level]), None)).collect());
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
