//! Numbers in, estimates, intervals and verdicts out: the statistics behind everything Proofload claims.
//!
//! Pure: no file, no clock, no random number but those of a seed that the caller gives. The same input gives the same answer
//! on every machine, so a report can be made again from its record. Simulation lives in `tests/` and `examples/`.
//! The method as a whole is told in `docs/methodology.md`.

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
mod mean;
mod proportion;
mod regression;
mod resampling;
mod rule;
mod sequence;
mod series;
mod student;
mod verdict;
mod warmup;
mod welch;

pub use allocation::{Components, SLICES_MAX, SLICES_MIN, components, slices};
pub use bootstrap::{bca, bootstrap_t};
pub use change::{
    CHANGE_LEVEL, CHANGE_POINTS_MAX, CHANGE_SIDE_MIN, Change, Measured, Suspect, changes, suspect,
};
pub use error::Error;
pub use estimate::{Estimate, lag1};
pub use factorial::{BlockValues, COMBINATIONS_MAX, Contrast, Factor, Term, contrasts};
pub use guard::{GUARD_RHO, Guard, guard};
pub use histogram::{Band, HIGHEST_NS, IntervalLog, Latencies, Quantile, Tag, quantile_band, quantile_bands};
pub use looks::{ALPHA, BLOCKS_MAX, BLOCKS_MIN, COMPARISONS_MAX, Looks};
pub use max_t::{Adjusted, EXACT_BLOCKS_MAX, JOINT_BLOCKS_MIN, MaxT, joint_t, max_t};
pub use mean::MeanInterval;
pub use proportion::{Interval, newcombe, wilson};
pub use regression::{Effect, mean_effect, place_effect, slope};
pub use resampling::{RESAMPLES_MAX, RESAMPLES_MIN, Resampling};
pub use rule::Rule;
pub use sequence::{SEQUENCE_G, sequence_t};
pub use series::{SERIES_MAX, STEP_SIDE_MIN, Step, Trend, lag1_critical, mann_kendall, step};
pub use student::{critical_t_at, plain_t};
pub use verdict::{BLOCKS_NEEDED_MAX, Direction, Verdict, blocks_for, blocks_needed, effect_found, judge};
pub use warmup::{BUCKETS_MIN, Truncation, mser5};
pub use welch::{Welch, welch};
