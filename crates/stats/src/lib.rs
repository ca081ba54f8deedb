//! Numbers in, estimates, intervals and verdicts out: the statistics behind everything Proofload claims.
//!
//! Pure: no file, no clock, no random number. The same input gives the same answer on every machine, so a report
//! can be made again from its record. Simulation, which needs random numbers, lives in `tests/` and `examples/`.
//! The method as a whole is told in `docs/methodology.md`.

mod allocation;
mod error;
mod estimate;
mod histogram;
mod looks;
mod proportion;
mod student;
mod verdict;
mod warmup;

pub use allocation::{Components, SLICES_MAX, SLICES_MIN, components, slices};
pub use error::Error;
pub use estimate::{Estimate, lag1};
pub use histogram::{HIGHEST_NS, IntervalLog, Latencies, Quantile, Tag};
pub use looks::{ALPHA, BLOCKS_MAX, BLOCKS_MIN, COMPARISONS_MAX, Looks};
pub use proportion::{Interval, wilson};
pub use student::{critical_t_at, plain_t};
pub use verdict::{BLOCKS_NEEDED_MAX, Direction, Verdict, blocks_needed, judge};
pub use warmup::{BUCKETS_MIN, Truncation, mser5};
