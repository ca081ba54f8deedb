//! What metrics want of a trial's response times.
//!
//! Must not: keep the histogram. There is one for each block and variant, and a long run has tens of thousands.

use plan::Metric;
use stats::{Latencies, Quantile};

/// Requests without an answer that a quantile bears, as a share of those beyond it.
const CENSORED_SHARE_MAX: f64 = 0.1;

/// The quantiles that are metrics, of one trial.
#[derive(Debug)]
pub(super) struct Quantiles {
    /// Requests that they are of.
    pub requests: u64,
    /// In the order of [`Metric::LATENCIES`]; `None` where too few requests bear it.
    values: [Option<Quantile>; 4],
}

impl Quantiles {
    pub fn of(response: &Latencies) -> Quantiles {
        let values = Metric::LATENCIES.map(|metric| of_one(response, metric.quantile()?));
        Quantiles { requests: response.count(), values }
    }

    /// `None` where too few requests bear it, and where the metric is no latency.
    pub fn get(&self, metric: Metric) -> Option<Quantile> {
        self.values[Metric::LATENCIES.iter().position(|known| *known == metric)?]
    }
}

/// A single request without an answer moves a quantile by up to one rank, which is nothing beside the chance in it. So where
/// they are few they count as slower than all others, which is what they were to whoever waited; else it is bounded.
fn of_one(response: &Latencies, q: f64) -> Option<Quantile> {
    if !response.resolves(q) {
        return None;
    }
    let few = response.count() as f64 * (1.0 - q) * CENSORED_SHARE_MAX;
    match response.bounds(q)? {
        (_, Some(high)) if response.censored() as f64 <= few => Some(Quantile::Exact(high)),
        _ => response.quantile(q),
    }
}
