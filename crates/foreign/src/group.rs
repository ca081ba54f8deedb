//! Repeats of one label: their number, their spread, and the resulting interval.

use indexmap::IndexMap;
use serde::Serialize;
use stats::Estimate;

use crate::run::ToolRun;

/// Confidence level of every interval here.
pub const LEVEL: f64 = 0.95;

/// The runs of one label.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RunGroup {
    /// Its name.
    pub label: String,
    /// The label in parts, outermost first.
    #[serde(skip)]
    pub path: Vec<String>,
    /// Indices into the list of runs.
    pub runs: Vec<usize>,
    /// Requests per second of the runs that have them, in order.
    pub rates: Vec<f64>,
    /// Their mean with its interval, for at least two runs that differ.
    pub pooled: Option<Pooled>,
}

/// A mean over runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Pooled {
    /// Number of runs.
    pub runs: u32,
    /// Geometric mean of the requests per second.
    pub rate_per_s: f64,
    /// Lower end of its 95 % interval.
    pub low_per_s: f64,
    /// Upper end.
    pub high_per_s: f64,
    /// Standard deviation of the logarithms: 0.05 is a spread of about 5 %.
    pub sd_log: f64,
}

impl RunGroup {
    /// Geometric mean of the requests per second.
    pub fn rate(&self) -> Option<f64> {
        let logs = self.rates.iter().map(|rate| rate.ln()).sum::<f64>();
        (!self.rates.is_empty()).then(|| (logs / self.rates.len() as f64).exp())
    }
}

/// Groups runs by their labels, in the order in which these first appear.
pub fn groups(runs: &[ToolRun]) -> Vec<RunGroup> {
    let mut groups: IndexMap<&str, RunGroup> = IndexMap::new();
    for (index, run) in runs.iter().enumerate() {
        let new = || RunGroup {
            label: run.label.clone(),
            path: run.path.clone(),
            ..RunGroup::default()
        };
        let group = groups.entry(&run.label).or_insert_with(new);
        group.runs.push(index);
        group.rates.extend(run.rate());
    }
    groups
        .into_values()
        .map(|group| RunGroup {
            pooled: pooled(&group.rates),
            ..group
        })
        .collect()
}

/// The t interval of the logarithms. Settings change ratios, and the mean of ratios is geometric.
fn pooled(rates: &[f64]) -> Option<Pooled> {
    let logs: Vec<f64> = rates.iter().map(|rate| rate.ln()).collect();
    let runs = u32::try_from(logs.len()).ok()?;
    let estimate = Estimate::of(&logs, stats::plain_t(runs, LEVEL)?).ok()?;
    let Estimate {
        ratio,
        low,
        high,
        sd_log,
        ..
    } = estimate;
    Some(Pooled {
        runs,
        rate_per_s: ratio,
        low_per_s: low,
        high_per_s: high,
        sd_log,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_and_runs_without_spread_give_no_interval() {
        assert_eq!(pooled(&[5455.0]), None);
        assert_eq!(pooled(&[5455.0, 5455.0]), None);
    }
}
