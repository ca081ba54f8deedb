//! Calibration: the difference between two copies of one variant on this machine, and the differences that
//! can be found in a given time.
//!
//! This module does not judge: [`crate::conclude`] decides whether the record is invalid, and then nothing
//! from here may be shown.

use plan::{Design, Metric};
use record::{Record, Slice, Trial};
use serde::Serialize;
use stats::{BLOCKS_MAX, BLOCKS_MIN, Components, Estimate, Rule, lag1, plain_t};

use crate::comparison::ratios;
use crate::failure;
use crate::metric::{self, BlockFigures, log_over, metrics};
use crate::rule::{self, BlockPace, POWER, rule_of};
use crate::sums::mean;

/// Confidence level of the interval of the copies.
const LEVEL: f64 = 0.95;
/// Budgets to evaluate, in seconds.
const BUDGETS_S: [f64; 3] = [60.0, 300.0, 1800.0];

/// Noise of the machine, from a record of two copies.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibration {
    /// Number of complete blocks, each with both copies.
    pub blocks: u32,
    /// Seconds of a block with both copies, once the lengths of its parts are settled.
    pub block_s: f64,
    /// Seconds of the first block, which observes the warm-up.
    pub first_block_s: f64,
    /// Each metric that has a value in every block and is not equal in all of them.
    pub metrics: Vec<Noise>,
    /// CPU steal, including dropped blocks.
    pub steal: Steal,
}

/// Variation of one metric between copies.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Noise {
    /// The metric.
    pub metric: Metric,
    /// One copy over the other.
    pub copies: Copies,
    /// Standard deviation of the blocks' log ratios.
    pub sd_log: f64,
    /// Correlation of neighbouring blocks' log ratios, from −1 to 1.
    pub blocks_lag1: Option<f64>,
    /// Standard deviation of the log between processes of one variant, for throughput and CPU per request.
    pub processes_sd: Option<f64>,
    /// Standard deviation of the log between slices of one process.
    pub slices_sd: Option<f64>,
    /// Correlation of neighbouring slices of a process, without the common variation of both copies. Mean
    /// over trials.
    pub slices_lag1: Option<f64>,
    /// The differences that a run with one comparison finds, by budget.
    pub found: Vec<BudgetReach>,
}

/// Ratio of two copies, which is 1 except for chance and the machine.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Copies {
    /// One over the other: geometric mean of the blocks' ratios.
    pub ratio: f64,
    /// Lower end of the 95 % interval for a single look.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Whether the interval excludes 1, as in one of twenty calibrations by chance.
    pub differ: bool,
}

/// Sensitivity of a run with a given budget.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BudgetReach {
    /// The budget in seconds.
    pub budget_s: f64,
    /// Maximum number of blocks of two variants in the budget.
    pub blocks: u32,
    /// Smallest true difference found with a probability of 80 %, as a share: 0.03 is 3 %. `None` below four
    /// blocks.
    pub difference: Option<f64>,
}

/// Shares of CPU time that the hypervisor gave to others, 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Steal {
    /// Mean over measured slices.
    pub mean_share: f64,
    /// Maximum over measured slices.
    pub max_share: f64,
}

impl Calibration {
    /// Computes the calibration from a record with one comparison, of two copies. `None` below four complete
    /// blocks.
    ///
    /// See [`plan::Plan::calibration`]. The result is meaningless for variants that are not copies.
    pub fn of(record: &Record) -> Option<Calibration> {
        let figures = BlockFigures::all(record);
        let blocks = Some(figures.len() as u32).filter(|blocks| *blocks >= BLOCKS_MIN)?;
        let copies = record.header.plan.comparisons.first()?;
        let pace = BlockPace::of(record)?;
        let noise = |metric| Noise::of(record, &ratios(&figures, copies, metric)?, metric, pace);
        let (metrics, steal) = (
            metrics(record).filter_map(noise).collect(),
            Steal::of(record),
        );
        let BlockPace {
            first_block_s,
            block_s,
            ..
        } = pace;
        Some(Calibration {
            blocks,
            block_s,
            first_block_s,
            metrics,
            steal,
        })
    }

    /// Returns the variation of a metric.
    pub fn noise(&self, metric: Metric) -> Option<&Noise> {
        self.metrics.iter().find(|noise| noise.metric == metric)
    }

    /// Duration of blocks with two copies.
    pub fn pace(&self) -> BlockPace {
        BlockPace {
            first_block_s: self.first_block_s,
            block_s: self.block_s,
            variants: 2,
        }
    }
}

impl Noise {
    fn of(record: &Record, d: &[f64], metric: Metric, pace: BlockPace) -> Option<Noise> {
        let critical_t = plain_t(d.len() as u32, LEVEL)?;
        let Estimate {
            ratio,
            low,
            high,
            sd_log,
            ..
        } = Estimate::of(d, critical_t).ok()?;
        let slice_s = slice_s(record).filter(|_| metric::is_of_sums(metric));
        let spread = slice_s.map(|slice_s| Spread::of(record, metric, slice_s));
        let components = spread.as_ref().and_then(Spread::components);
        Some(Noise {
            metric,
            copies: Copies {
                ratio,
                low,
                high,
                differ: low > 1.0 || high < 1.0,
            },
            sd_log,
            blocks_lag1: lag1(d),
            processes_sd: components
                .as_ref()
                .map(|components| components.between.sqrt()),
            slices_sd: components
                .as_ref()
                .map(|components| components.within.sqrt()),
            slices_lag1: spread.as_ref().and_then(Spread::slices_lag1),
            found: BUDGETS_S
                .map(|budget_s| BudgetReach::of(budget_s, pace, sd_log))
                .to_vec(),
        })
    }

    /// Number of blocks of the smallest run that finds a true difference (0.03 is 3 %) with a probability of
    /// 80 %. Uses the stop rule of a design in which `estimates` estimates share the error rate. `None` if
    /// even the largest run does not find it.
    pub fn blocks_to_find(
        &self,
        difference: f64,
        design: &Design,
        estimates: usize,
    ) -> Option<u32> {
        let rule = rule_of(design.looks, estimates)?;
        rule::blocks_to_find(difference, self.sd_log, &rule).filter(|blocks| *blocks <= BLOCKS_MAX)
    }

    /// The smallest true difference that the largest run finds, as in [`Noise::blocks_to_find`].
    pub fn least_difference(&self, design: &Design, estimates: usize) -> Option<f64> {
        difference_found(&rule_of(design.looks, estimates)?, BLOCKS_MAX, self.sd_log)
    }
}

impl BudgetReach {
    pub(crate) fn of(budget_s: f64, pace: BlockPace, sd_log: f64) -> BudgetReach {
        let later_s = budget_s - (pace.first_block_s - pace.block_s).max(0.0);
        let fit = (later_s / pace.block_s)
            .floor()
            .clamp(0.0, f64::from(u32::MAX)) as u32;
        let blocks = fit.min(BLOCKS_MAX);
        let rule = Rule::each_block(1, None);
        BudgetReach {
            budget_s,
            blocks,
            difference: rule.and_then(|rule| difference_found(&rule, blocks, sd_log)),
        }
    }
}

impl Steal {
    fn of(record: &Record) -> Steal {
        let blocks = record.blocks.iter().filter(|block| block.seconds.is_some());
        let slices = blocks
            .flat_map(|block| &block.trials)
            .flat_map(Trial::measured);
        let shares: Vec<f64> = slices.map(|slice| slice.machine.steal_share).collect();
        let max_share = shares.iter().copied().fold(0.0, f64::max);
        Steal {
            mean_share: mean(shares).unwrap_or(0.0),
            max_share,
        }
    }
}

/// Smallest difference found at the end of this number of blocks. Earlier looks increase the chance.
fn difference_found(rule: &Rule, blocks: u32, sd_log: f64) -> Option<f64> {
    Some(stats::effect_found(blocks, sd_log, POWER, rule)?.exp_m1())
}

/// The settled length of slices, from the last block.
fn slice_s(record: &Record) -> Option<f64> {
    let slice = record
        .complete_blocks()
        .last()?
        .trials
        .iter()
        .flat_map(Trial::measured)
        .last()?;
    Some(slice.counts.window_ns as f64 / 1e9)
}

/// Maximum relative difference in the length of slices with comparable variation.
const ALIKE: f64 = 0.1;

/// Sources of a record's variation: processes of one variant, and slices of one process. Variation common to
/// a pass over all variants (such as the machine's current speed) cancels in a log ratio and is removed
/// first. Does not depend on which variant is ahead.
///
/// Contains the logarithms of a metric's values in slices, without the common part of their pass: variant →
/// trial → slices.
#[derive(Debug, Clone, PartialEq)]
pub struct Spread(Vec<Vec<Vec<f64>>>);

impl Spread {
    /// Computes the variation over all complete blocks whose measured slices are `slice_s` seconds long.
    /// Blocks in which a slice has no value are left out.
    pub fn of(record: &Record, metric: Metric, slice_s: f64) -> Spread {
        let mut variants = vec![Vec::new(); record.header.plan.variants.len()];
        // A variant that never succeeded has no value in any block, and would exclude all blocks.
        let never: Vec<_> = (0..variants.len())
            .map(|index| failure::measured(record, index))
            .collect();
        // A variant decided early is missing in later blocks, so the means of passes would differ.
        let stays = |variant: usize| {
            record
                .complete_blocks()
                .all(|block| block.trial(variant).is_some())
        };
        let counts: Vec<bool> = (0..variants.len())
            .map(|of| never[of].is_none() && stays(of))
            .collect();
        let counted = |trial: &&Trial| counts[trial.variant()];
        // The first block may have slices of a different length.
        let alike =
            |slice: &Slice| (slice.counts.window_ns as f64 / 1e9 / slice_s - 1.0).abs() < ALIKE;
        let blocks = record.complete_blocks();
        let log = |slice: &Slice| log_over(metric, std::iter::once(slice));
        for block in blocks.filter(|block| block.trials.iter().flat_map(Trial::measured).all(alike))
        {
            let logs = |trial: &&Trial| trial.measured().map(log).collect::<Option<Vec<f64>>>();
            let counted: Vec<&Trial> = block.trials.iter().filter(counted).collect();
            let Some(trials) = counted.iter().map(logs).collect::<Option<Vec<Vec<f64>>>>() else {
                continue;
            };
            let passes = trials.iter().map(Vec::len).min().unwrap_or(0);
            // The slices of one pass are adjacent in time. With a single variant there is nothing in common
            // to remove.
            let shared = |pass: usize| mean(trials.iter().map(|trial| trial[pass]));
            let shared = |pass| {
                if trials.len() > 1 {
                    shared(pass)
                } else {
                    Some(0.0)
                }
            };
            let common: Vec<f64> = (0..passes).filter_map(shared).collect();
            for (trial, logs) in counted.iter().zip(&trials) {
                let centred = logs.iter().zip(&common).map(|(log, common)| log - common);
                variants[trial.variant()].push(centred.collect::<Vec<f64>>());
            }
        }
        variants.retain(|trials: &Vec<Vec<f64>>| !trials.is_empty());
        Spread(variants)
    }

    /// Variances between processes of a variant, and between slices of a process. `None` if they cannot be
    /// computed.
    pub fn components(&self) -> Option<Components> {
        // Removing the mean over the variants also removed that share of each variant's own variation.
        let shrunk = if self.0.len() > 1 {
            1.0 - 1.0 / self.0.len() as f64
        } else {
            1.0
        };
        let found = stats::components(&self.0)?;
        Some(Components {
            between: found.between / shrunk,
            within: found.within / shrunk,
            ..found
        })
    }

    /// Lag-1 autocorrelation of the slices of a trial, as the mean over trials. `None` if no trial has three
    /// slices.
    pub fn slices_lag1(&self) -> Option<f64> {
        mean(
            self.0
                .iter()
                .flatten()
                .filter_map(|slices| stats::lag1(slices)),
        )
    }
}
