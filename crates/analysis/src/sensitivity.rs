//! The differences that comparisons on a machine can show: from a calibration, from earlier records, or else
//! estimated from the counters of the machine.

use plan::Metric;
use record::Record;
use serde::Serialize;
use stats::{BLOCKS_MIN, Estimate};

use crate::calibration::{BudgetReach, Calibration};
use crate::comparison::ratios;
use crate::metric::BlockFigures;
use crate::rule::BlockPace;

/// Budgets to evaluate, in seconds.
const BUDGETS_S: [f64; 2] = [120.0, 480.0];
/// Standard deviation of blocks' log ratios of two equal Node.js services with little CPU steal, which is assumed,
/// and its increase by the share of time lost: 8.4 % with 36 % (`bench/truth/results/2026-11-21/turns.md`).
const QUIET_SD: f64 = 0.024;
const SD_PER_LOST_SHARE: f64 = 0.22;
/// Seconds of a trial that count. The speed of the processor is assumed to be constant within a second, and
/// independent between seconds.
const TRIAL_S: f64 = 2.5;
/// Blocks of two variants that start within a second, by default.
const PACE: BlockPace = BlockPace {
    first_block_s: 20.0,
    block_s: 12.0,
    variants: 2,
};

/// The difference in throughput that comparisons of two variants on a machine can show.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sensitivity {
    /// Basis of the estimate.
    pub source: SensitivitySource,
    /// Standard deviation of the blocks' log ratios.
    pub sd_log: f64,
    /// The differences that a run with one comparison finds, by budget.
    pub found: Vec<BudgetReach>,
}

/// Basis of a [`Sensitivity`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SensitivitySource {
    /// Two copies of a service on this machine.
    Calibration,
    /// The variance of earlier comparisons on this machine, of this number of records.
    Records(usize),
    /// The counters of the machine, without any service.
    Counters,
}

/// Counters of a machine that noise depends on.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct NoiseCounters {
    /// Standard deviation of the time of equal work over its mean.
    pub work_cv: f64,
    /// Share of the CPU time that the hypervisor gave to other guests, 0 to 1.
    pub steal_share: f64,
    /// Share of the CPU time that other processes used, 0 to 1.
    pub others_share: f64,
}

impl Sensitivity {
    /// From a calibration. `None` if it has no throughput.
    pub fn of_calibration(calibration: &Calibration) -> Option<Sensitivity> {
        let sd_log = calibration.noise(Metric::Throughput)?.sd_log;
        let pace = calibration.pace();
        Some(Sensitivity::at(
            SensitivitySource::Calibration,
            sd_log,
            pace,
        ))
    }

    /// From earlier comparisons of throughput on the same machine: medians over records, because their services
    /// and their block lengths differ. `None` without a record of at least four blocks.
    pub fn of_records<'a>(records: impl IntoIterator<Item = &'a Record>) -> Option<Sensitivity> {
        let each: Vec<Sensitivity> = records.into_iter().filter_map(of_record).collect();
        let middle = |of: &dyn Fn(&Sensitivity) -> Option<f64>| {
            stats::middle_by(each.iter().filter_map(of), |value| *value)
        };
        let reach = |at: usize| BudgetReach {
            budget_s: BUDGETS_S[at],
            blocks: middle(&|of| Some(f64::from(of.found[at].blocks))).unwrap_or(0.0) as u32,
            difference: middle(&|of| of.found[at].difference),
        };
        Some(Sensitivity {
            source: SensitivitySource::Records(each.len()),
            sd_log: middle(&|of| Some(of.sd_log))?,
            found: (0..BUDGETS_S.len()).map(reach).collect(),
        })
    }

    /// Estimated for a service that was never measured here. Variances of independent causes add up.
    pub fn of_counters(counters: NoiseCounters) -> Sensitivity {
        let NoiseCounters {
            work_cv,
            steal_share,
            others_share,
        } = counters;
        let lost = SD_PER_LOST_SHARE * (steal_share + others_share);
        // The ratio of two trials.
        let speed = 2.0 * work_cv.powi(2) / TRIAL_S;
        let sd_log = (QUIET_SD.powi(2) + lost.powi(2) + speed).sqrt();
        Sensitivity::at(SensitivitySource::Counters, sd_log, PACE)
    }

    fn at(source: SensitivitySource, sd_log: f64, pace: BlockPace) -> Sensitivity {
        let found = BUDGETS_S.map(|budget_s| BudgetReach::of(budget_s, pace, sd_log));
        Sensitivity {
            source,
            sd_log,
            found: found.into(),
        }
    }
}

/// `None` if the record compares nothing in closed loop, or has too few blocks.
fn of_record(record: &Record) -> Option<Sensitivity> {
    let figures = BlockFigures::all(record);
    let pace = BlockPace::of(record)?;
    let pace = BlockPace {
        first_block_s: pace.run_s(1, 2),
        block_s: pace.run_s(2, 2) - pace.run_s(1, 2),
        variants: 2,
    };
    let sd_log = |comparison| {
        let d = ratios(&figures, comparison, Metric::Throughput)?;
        let estimate = Estimate::of(&d, 1.0).ok()?;
        (d.len() >= BLOCKS_MIN as usize).then_some(estimate.sd_log)
    };
    let comparisons = record.header.plan.comparisons.iter();
    let sd_log = stats::middle_by(comparisons.filter_map(sd_log), |sd| *sd)?;
    let source = SensitivitySource::Records(1);
    Some(Sensitivity::at(source, sd_log, pace))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(counters: NoiseCounters) -> [f64; 2] {
        let found = Sensitivity::of_counters(counters).found;
        [0, 1].map(|at| found[at].difference.expect("there are four blocks"))
    }

    #[test]
    fn noise_of_the_machine_hides_differences() {
        let quiet = shown(NoiseCounters::default());
        assert!((0.02..0.07).contains(&quiet[0]), "{quiet:?}");
        assert!((0.01..0.025).contains(&quiet[1]), "{quiet:?}");
        let bad = NoiseCounters {
            work_cv: 0.06,
            steal_share: 0.1,
            others_share: 0.2,
        };
        assert!(shown(bad)[0] > 2.0 * quiet[0], "{:?}", shown(bad));
    }
}
