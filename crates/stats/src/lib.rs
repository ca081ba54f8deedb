//! Statistics for all results of Proofload: estimates, intervals and verdicts.
//!
//! This crate is pure: no files, no clocks, and no random numbers except from a seed given by the caller. The
//! same input gives the same result on every machine, so a report can be reproduced from its record.
//! Simulations are in `tests/` and `examples/`. `docs/methodology.md` describes the whole method.

mod allocation;
mod bootstrap;
mod change;
mod error;
mod estimate;
mod factorial;
mod guard;
mod histogram;
mod looks;
mod max_t;
mod median;
mod regression;
mod resampling;
mod rule;
mod screen;
mod series;
mod student;
mod verdict;
mod warmup;

pub mod capacity;

pub use allocation::{Components, SLICES_MAX, SLICES_MIN, components, slices};
pub use bootstrap::bootstrap_t;
pub use change::{
    CHANGE_LEVEL, CHANGE_POINTS_MAX, CHANGE_SIDE_MIN, Change, MeasuredPoint, changes,
};
pub use error::Error;
pub use estimate::{Estimate, Interval, MeanInterval, Welch, lag1, mean, welch, wilson};
pub use factorial::{COMBINATIONS_MAX, Contrast, FactorLevels, Term, contrasts};
pub use guard::{GUARD_RHO, guard};
pub use histogram::{Band, HIGHEST_NS, Latencies, Quantile, quantile_bands};
pub use looks::{ALPHA, BLOCKS_MAX, BLOCKS_MIN, COMPARISONS_MAX, Looks};
pub use max_t::{EXACT_BLOCKS_MAX, JOINT_BLOCKS_MIN, joint_t};
pub use median::{median, middle_by};
pub use regression::{RegressionEffect, mean_effect, place_effect, slope};
pub use resampling::{RESAMPLES_MAX, RESAMPLES_MIN, Resampling};
pub use rule::{Rule, Way};
pub use screen::{
    Interactions, Mirrored, SETTINGS_MAX, ScreenLooks, Screened, SettingRows, designs,
    interactions, screened,
};
pub use series::{
    LevelShift, SERIES_MAX, STEP_SIDE_MIN, SeriesTrend, lag1_critical, mann_kendall, step,
};
pub use student::{critical_t_at, plain_t};
pub use verdict::{
    BLOCKS_NEEDED_MAX, Direction, Verdict, blocks_for, effect_found, judge, judge_constant,
};
pub use warmup::{BUCKETS_MIN, Truncation, mser5, steady_after};
