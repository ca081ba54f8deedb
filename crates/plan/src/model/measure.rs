//! A measurement of one variant without a comparison.

use std::time::Duration;

use ::model::{ArrivalProcess, Rates, Until};
use serde::{Deserialize, Serialize};

/// Load before capacity is measured: connections, caches and compilers warm up for the first time.
const CAPACITY_WARMUP: Duration = Duration::from_secs(1);
/// Time for which capacity is measured.
const CAPACITY_LENGTH: Duration = Duration::from_secs(3);

/// A measurement of one variant instead of comparisons: a single block, and no verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// Length of each slice.
    pub until: Until,
    /// One slice for each rate. `None` is one slice in closed loop.
    pub rates: Option<Rates>,
    /// Distribution of requests in time in open loop.
    pub arrivals: ArrivalProcess,
    /// Load before the first slice, at the limit of the connections. 0 for none.
    pub warmup: Duration,
}

impl Measure {
    /// Number of slices.
    pub fn slices(&self) -> usize {
        self.rates.as_ref().map_or(1, |rates| rates.asks().len())
    }

    /// Length of each slice. Zero if a number of requests ends it.
    pub fn length(&self) -> Duration {
        self.until.length().unwrap_or_default()
    }

    /// Unmeasured and measured time in closed loop before the first slice, if a share of capacity is
    /// requested.
    pub fn capacity(&self) -> Option<(Duration, Duration)> {
        let shares = self
            .rates
            .iter()
            .flat_map(Rates::asks)
            .any(|ask| ask.needs_capacity());
        shares.then_some((CAPACITY_WARMUP, CAPACITY_LENGTH))
    }

    /// Total time, without the slices if a number of requests ends them.
    pub fn total(&self) -> Duration {
        let slices = self
            .length()
            .saturating_mul(u32::try_from(self.slices()).unwrap_or(u32::MAX));
        let capacity = self
            .capacity()
            .map_or(Duration::ZERO, |(warmup, length)| warmup + length);
        slices.saturating_add(capacity).saturating_add(self.warmup)
    }
}
