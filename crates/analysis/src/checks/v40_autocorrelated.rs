//! Blocks resemble their neighbours
//!
//! **Seen.** `the blocks' ratios of throughput resemble those of their neighbours`.
//!
//! **Why.** Intervals assume independent blocks. At a correlation of 0.4 verdicts are false in 19 % of runs
//! of 10 blocks, not 5 %.
//!
//! **What to do.** Check [V29](#v29) and [V31](#v31), and run again.
//!
//! **Threshold.** A correlation above `LAG1_MAX = 0.4`, from `LAG1_BLOCKS_MIN = 8` blocks on, or a trend of
//! more than half the margin; more than chance.

use model::quantity::with_sign;
use model::{Quantity, evidence};

use super::chance::{MARGIN_SHARE_MIN, SERIES_ALPHA, chance, change};
use super::finding::{CheckFinding, labelled, warning};
use super::input::CheckedRun;
use super::row::{CheckRow, Maker, OFF, Subject, WARNING, row};
use crate::comparison::ratios;

pub(super) static ROW: CheckRow =
    row(Subject::Design, WARNING, &[Maker::Whole(autocorrelated)]).alone(OFF);

/// Maximum lag-1 correlation of blocks. Above it intervals are too narrow: at 0.4 blocks are worth less than
/// half their number, (1 − 0.4)/(1 + 0.4) of it.
const LAG1_MAX: f64 = 0.4;
/// Minimum number of blocks for judging autocorrelation. With fewer, any correlation could be chance at this
/// level.
pub(crate) const LAG1_BLOCKS_MIN: u32 = 8;

/// Reports the comparison whose blocks are most dependent, if that exceeds chance among all comparisons.
fn autocorrelated(run: &CheckedRun<'_>) -> Option<CheckFinding> {
    let plan = run.plan;
    let verdicts = plan.comparisons.len() * plan.design.metrics().count();
    // Two tests each.
    let alpha = SERIES_ALPHA / (2 * verdicts.max(1)) as f64;
    let asked = plan
        .comparisons
        .iter()
        .flat_map(|asked| plan.design.metrics().map(move |of| (asked, of)));
    let found = asked.filter_map(|(asked, metric)| {
        let d = ratios(run.figures, asked, metric)?;
        Some((
            alike(&d, alpha, plan.design.margin)?,
            asked,
            metric,
            d.len(),
        ))
    });
    // A comparison decided early has fewer blocks than the run.
    let (alike, asked, metric, count) =
        found.max_by(|one, other| one.0.strength().total_cmp(&other.0.strength()))?;
    let ratios = format!("the blocks' ratios of {}", metric.name());
    let evidence = match alike {
        Alike::Trend { slope, p } => {
            let (each, whole, chance) =
                (change(slope), change(slope * (count - 1) as f64), chance(p));
            evidence!(
                "{ratios} go one way, by {each} a block and {whole} from the first to the last of {count}; by chance in {chance}"
            )
        }
        Alike::Neighbours { lag1, critical } => {
            let chance = chance(alpha);
            evidence!(
                "{ratios} resemble those of their neighbours, with a correlation of {correlation} over {count} blocks; by chance it is above \
                 {} in {chance}", with_sign(critical, 2);
                correlation = Quantity::number(lag1))
        }
    };
    let remedy = "intervals take blocks for independent, and are narrower here than they may be: something slow favours one variant for blocks \
                  on end. End what else runs on this machine, look at `steal` and `other_processes`, and run again; a verdict that stands in \
                  both runs is worth more than this one alone";
    Some(labelled(asked, warning(evidence, remedy)))
}

/// Kind of dependence between the blocks of a comparison.
enum Alike {
    /// A trend.
    Trend { slope: f64, p: f64 },
    /// Neighbouring blocks are correlated.
    Neighbours { lag1: f64, critical: f64 },
}

impl Alike {
    /// Priority for reporting. A trend also causes a correlation, so it is reported first. Among several, the
    /// least likely by chance.
    fn strength(&self) -> f64 {
        match self {
            // A correlation is at most 1.
            Alike::Trend { p, .. } => 2.0 - p,
            Alike::Neighbours { lag1, .. } => *lag1,
        }
    }
}

/// Detects a trend, or otherwise a correlation of neighbours, that exceeds chance and is large enough to
/// matter. With ten blocks even a straight line has a correlation of at most 0.7, which chance reaches in one
/// of a thousand runs. So a trend needs a separate test.
fn alike(d: &[f64], alpha: f64, margin: f64) -> Option<Alike> {
    let steps = d.len().saturating_sub(1) as f64;
    let large = |slope: f64| (slope * steps).abs() > margin * MARGIN_SHARE_MIN;
    if let Some(trend) =
        stats::mann_kendall(d).filter(|trend| trend.p <= alpha && large(trend.slope))
    {
        return Some(Alike::Trend {
            slope: trend.slope,
            p: trend.p,
        });
    }
    let blocks = u32::try_from(d.len())
        .ok()
        .filter(|blocks| *blocks >= LAG1_BLOCKS_MIN)?;
    let critical = stats::lag1_critical(blocks, alpha)?;
    let lag1 = stats::lag1(d).filter(|lag1| *lag1 > critical.max(LAG1_MAX))?;
    Some(Alike::Neighbours { lag1, critical })
}
