//! The figures of a screening as they come in: halves of mirrored pairs, whole pairs, and what settings do alone and in pairs. Pure.

use std::collections::BTreeMap;

use model::Metric;
use stats::{Mirrored, ScreenEffect, ScreenLooks, Screened};

use super::figures::Figures;
use super::step::Row;

/// The error rate that all effects of a screening share.
pub(crate) const ALPHA: f64 = 0.05;

/// Mirrored pairs in open loop: more where so few settings make a design of four rows.
pub(crate) fn latency_pairs(settings: usize) -> u32 {
    if settings < 4 { 4 } else { 2 }
}

/// Rows of a block, and what each came to.
#[derive(Debug, Clone)]
pub(crate) struct Half {
    pub rows: Vec<Row>,
    pub figures: Vec<Option<Figures>>,
}

/// The screening so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Screen {
    pub pairs_max: u32,
    pub pairs: u32,
    /// Halves of the pair under way that are still to be measured, the last first: rows, and behind them their mirror images.
    pub wanted: Vec<Vec<Row>>,
    /// What came of the others.
    pub halves: Vec<Half>,
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
        let all = halves.iter().flat_map(|half| half.figures.iter().flatten());
        let per_core = all.clone().next().is_some() && all.clone().all(|figures| figures.per_core);
        self.per_core = Some(self.per_core.unwrap_or(true) && per_core);
        for metric in Metric::ALL.iter().copied() {
            let rows = halves.chunks_exact(2).map(|pair| mirrored(pair, varied, metric));
            self.blocks.entry(metric).or_default().extend(rows);
        }
        self.pairs += 1;
    }

    /// The effects on a metric, and the t at which they are sure.
    pub fn screened(&self, metric: Metric) -> Option<(Screened, f64)> {
        // Per core-second it is the inverse of what a request costs.
        let inverse = metric == Metric::Throughput && self.per_core == Some(true);
        let source = if inverse { Metric::CpuPerRequest } else { metric };
        let mut screened = stats::screened(self.blocks.get(&source)?)?;
        if inverse {
            screened.effects.iter_mut().flatten().for_each(|effect| effect.log = -effect.log);
        }
        let critical_t = self.looks.as_ref()?.critical_t(self.pairs, screened.freedom);
        Some((screened, critical_t))
    }

    /// What pairs of these settings surely do to each other.
    pub fn interactions(&self, among: &[usize], metric: Metric) -> Vec<([usize; 2], f64)> {
        let blocks = self.blocks.get(&metric).filter(|_| among.len() > 1);
        let Some(found) = blocks.and_then(|blocks| stats::interactions(blocks, among)) else {
            return Vec::new();
        };
        let looks = ScreenLooks::new(&[1], found.pairs.len(), ALPHA);
        let Ok(critical_t) = looks.map(|looks| looks.critical_t(1, found.freedom)) else { return Vec::new() };
        let sure = |effect: &ScreenEffect| effect.log.abs() > critical_t * effect.error;
        let sure = found.pairs.into_iter().filter(|(_, effect)| sure(effect));
        sure.map(|(pair, effect)| (pair, effect.log)).collect()
    }
}

/// What settings do to a metric: main effects, and what two of them surely do to each other, as logarithms.
pub(crate) struct Model {
    pub logs: Vec<f64>,
    pub pairs: Vec<([usize; 2], f64)>,
}

impl Model {
    /// What these do together, against none.
    pub fn log(&self, on: &[usize]) -> f64 {
        let sign = |of: usize| if on.contains(&of) { 1.0 } else { -1.0 };
        let both = self.pairs.iter().map(|([one, other], log)| log * (sign(*one) * sign(*other) - 1.0));
        on.iter().map(|of| self.logs.get(*of).copied().unwrap_or(0.0)).sum::<f64>() + both.sum::<f64>()
    }
}

/// The rows of one block and their mirror images, for a metric; rows of which one side has no figure are left out.
fn mirrored(pair: &[Half], open: &[usize], metric: Metric) -> Vec<Mirrored> {
    let [Half { rows, figures }, Half { figures: mirror, .. }] = pair else { return Vec::new() };
    let value = |figures: &Option<Figures>| figures.as_ref()?.value(metric).map(f64::ln);
    let row = |((row, one), other): ((&Row, &Option<Figures>), &Option<Figures>)| {
        let on = (0..row.len()).map(|of| open.contains(&of).then(|| row[of] > 0)).collect();
        Some(Mirrored { on, logs: [value(one)?, value(other)?] })
    };
    rows.iter().zip(figures).zip(mirror).filter_map(row).collect()
}
