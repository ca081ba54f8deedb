//! Whether the blocks' values depend on what they must not: a trial's place in the order, and the block before.
//!
//! The tests are blind to which variant is ahead. Their level is that of one clean run in a thousand, because nobody looks at
//! the one finding that he expects by chance: see `tests/series.rs` for how often they fire where nothing is the matter.

use model::{Check, Finding, Metric, Quantity, evidence, quantity::signed};
use record::{Block, Record};
use stats::Effect;

use super::SERIES_ALPHA;
use crate::comparison::ratios;
use crate::metric::BlockFigures;

/// Part of the margin above which a difference that is none of the variants' may turn a verdict.
pub const MARGIN_SHARE_MIN: f64 = 0.5;
/// Correlation of neighbouring blocks above which intervals are too narrow to be believed: at 0.4 blocks are worth less than half
/// their number, (1 − 0.4)/(1 + 0.4) of it.
pub const LAG1_MAX: f64 = 0.4;
/// Fewer blocks have no correlation that could not be chance at this level.
pub const LAG1_BLOCKS_MIN: usize = 8;

/// How the blocks of a comparison hang together.
enum Alike {
    /// Neighbours have a correlation, and chance reaches this one.
    Neighbours { lag1: f64, critical: f64 },
    /// The ratio goes one way all the time. Of ten blocks even a straight line has a correlation of no more than 0.7, which chance reaches
    /// in one of a thousand: a trend needs a test of its own.
    Trend { slope: f64, p: f64 },
}

/// What is changed by being started later, all variants together.
pub(super) fn order_effect(record: &Record, blocks: &[BlockFigures]) -> Vec<Finding> {
    by_place(record, blocks).into_iter().collect()
}

fn by_place(record: &Record, blocks: &[BlockFigures]) -> Option<Finding> {
    let design = &record.header.plan.design;
    let counted = succeeding(record, blocks, design.metric);
    let pairs = record.complete_blocks().zip(blocks);
    let rows = pairs.map(|(block, figures)| row(block, figures, &counted, design.metric));
    let rows = rows.collect::<Option<Vec<Vec<(f64, f64)>>>>()?;
    let Effect { value, t, p } = stats::place_effect(&rows)?;
    let places = record.header.plan.variants.len().checked_sub(1)? as f64;
    let whole = (value * places).exp() - 1.0;
    if p > SERIES_ALPHA || whole.abs() <= design.margin * MARGIN_SHARE_MIN {
        return None;
    }
    let (metric, change, chance) = (design.metric.name(), signed(whole * 100.0, 1), chance(p));
    Some(Finding::warning(
        Check::OrderEffect,
        evidence!(
            "whatever the variant, {metric} of the one that is started last in its block differs by {change} from that of the first (t \
             {t:+.1}, by chance in {chance}, {blocks} blocks)";
            blocks = Quantity::count(rows.len() as u64)),
        "the order is drawn anew for each block, so this widens the intervals and favours nobody in the long run; in few blocks one variant \
         may have had the better places more often. What comes first leaves something behind (a cache, a hot processor, connections), or is \
         warmed up longer ago: set design.warmup longer, or ask for more blocks",
    ))
}

/// Variants that have a value in every block.
fn succeeding(record: &Record, blocks: &[BlockFigures], metric: Metric) -> Vec<usize> {
    let has = |index: &usize| blocks.iter().all(|block| block.log_value(metric, *index).is_some());
    (0..record.header.plan.variants.len()).filter(has).collect()
}

/// Place and value of each variant that counts.
fn row(block: &Block, figures: &BlockFigures, counted: &[usize], metric: Metric) -> Option<Vec<(f64, f64)>> {
    let place = |variant: usize| block.order.iter().position(|of| *of == variant);
    counted
        .iter()
        .map(|variant| Some((place(*variant)? as f64, figures.log_value(metric, *variant)?)))
        .collect()
}

/// The comparison whose blocks hang together the most, where that is more than chance among so many.
pub(super) fn autocorrelated(record: &Record, blocks: &[BlockFigures]) -> Vec<Finding> {
    hang_together(record, blocks).into_iter().collect()
}

fn hang_together(record: &Record, blocks: &[BlockFigures]) -> Option<Finding> {
    let plan = &record.header.plan;
    let verdicts = plan.comparisons.len() * plan.design.metrics().count();
    // Two tests for each.
    let alpha = SERIES_ALPHA / (2 * verdicts.max(1)) as f64;
    let asked =
        plan.comparisons.iter().flat_map(|asked| plan.design.metrics().map(move |metric| (asked, metric)));
    let found = |(asked, metric): (_, Metric)| {
        let alike = alike(&ratios(blocks, asked, metric)?, alpha, plan.design.margin)?;
        Some((alike, asked, metric))
    };
    let (alike, asked, metric) =
        asked.filter_map(found).max_by(|one, other| one.0.strength().total_cmp(&other.0.strength()))?;
    let (ratios, count) = (format!("{}: the blocks' ratios of {}", asked.label, metric.name()), blocks.len());
    let evidence = match alike {
        Alike::Neighbours { lag1, critical } => {
            let chance = chance(alpha);
            evidence!(
                "{ratios} resemble those of their neighbours, with a correlation of {correlation} over {count} blocks; by chance it is above \
                 {critical:+.2} in {chance}";
                correlation = Quantity::number(lag1))
        }
        Alike::Trend { slope, p } => {
            let (each, whole, chance) = (change(slope), change(slope * (count - 1) as f64), chance(p));
            evidence!(
                "{ratios} go one way, by {each} a block and {whole} from the first to the last of {count}; by chance in {chance}"
            )
        }
    };
    let remedy = "intervals take blocks for independent, and are narrower here than they may be: something slow favours one variant for blocks \
                  on end. End what else runs on this machine, look at `steal` and `other_processes`, and run again; a verdict that stands in \
                  both runs is worth more than this one alone";
    Some(Finding::warning(Check::Autocorrelated, evidence, remedy).about([asked.baseline, asked.candidate]))
}

/// A trend, or else a correlation, that is beyond chance and large enough to matter.
fn alike(ratios: &[f64], alpha: f64, margin: f64) -> Option<Alike> {
    let steps = ratios.len().saturating_sub(1) as f64;
    let trend = stats::mann_kendall(ratios)
        .filter(|trend| trend.p <= alpha && (trend.slope * steps).abs() > margin * MARGIN_SHARE_MIN);
    if let Some(trend) = trend {
        return Some(Alike::Trend { slope: trend.slope, p: trend.p });
    }
    if ratios.len() < LAG1_BLOCKS_MIN {
        return None;
    }
    let critical = stats::lag1_critical(u32::try_from(ratios.len()).ok()?, alpha).ok()?;
    let lag1 = stats::lag1(ratios).filter(|lag1| *lag1 > critical.max(LAG1_MAX))?;
    Some(Alike::Neighbours { lag1, critical })
}

impl Alike {
    /// A trend makes a correlation, so that it is told first; of several the one that is least chance.
    fn strength(&self) -> f64 {
        match self {
            Alike::Neighbours { lag1, .. } => *lag1,
            Alike::Trend { p, .. } => 2.0 - p,
        }
    }
}

/// A small probability in words that are read without counting zeros.
pub(super) fn chance(p: f64) -> String {
    if p < 1e-6 { "less than 1 run in a million".to_owned() } else { format!("1 run in {:.0}", 1.0 / p) }
}

/// A change of so much in the log as per cent, with its sign.
pub(super) fn change(log: f64) -> String {
    let percent = log.exp_m1() * 100.0;
    signed(percent, if percent.abs() < 10.0 { 2 } else { 0 })
}
