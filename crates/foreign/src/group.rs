//! Repeats of one label put together: how many, how far apart, and the interval that their spread gives.

use serde::Serialize;
use stats::Estimate;

use crate::run::Run;

/// Confidence of every interval here.
pub const LEVEL: f64 = 0.95;

/// The runs of one label.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    /// What it is called.
    pub label: String,
    /// The same in parts, the outermost first.
    #[serde(skip)]
    pub path: Vec<String>,
    /// Places in the list of runs.
    pub runs: Vec<usize>,
    /// Requests per second of those that have any, in their order.
    pub rates: Vec<f64>,
    /// Their mean with its interval, from two runs that differ.
    pub pooled: Option<Pooled>,
}

/// A mean over runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Pooled {
    /// Runs it rests on.
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

impl Group {
    /// Geometric mean of the requests per second.
    pub fn rate(&self) -> Option<f64> {
        let logs = self.rates.iter().map(|rate| rate.ln()).sum::<f64>();
        (!self.rates.is_empty()).then(|| (logs / self.rates.len() as f64).exp())
    }
}

/// Groups runs by their labels, in the order in which these first appear.
pub fn groups(runs: &[Run]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for (index, run) in runs.iter().enumerate() {
        let place = *places.entry(run.label.as_str()).or_insert_with(|| {
            groups.push(Group {
                label: run.label.clone(),
                path: run.path.clone(),
                runs: Vec::new(),
                rates: Vec::new(),
                pooled: None,
            });
            groups.len() - 1
        });
        groups[place].runs.push(index);
        groups[place].rates.extend(run.rate());
    }
    for group in &mut groups {
        group.pooled = pooled(&group.rates);
    }
    groups
}

/// The t interval of the logarithms. Ratios are what settings change, and the mean of ratios is geometric.
fn pooled(rates: &[f64]) -> Option<Pooled> {
    let logs: Vec<f64> = rates.iter().map(|rate| rate.ln()).collect();
    let runs = u32::try_from(logs.len()).ok()?;
    let estimate = Estimate::of(&logs, stats::plain_t(runs, LEVEL).ok()?).ok()?;
    let Estimate { ratio, low, high, sd_log, .. } = estimate;
    Some(Pooled { runs, rate_per_s: ratio, low_per_s: low, high_per_s: high, sd_log })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_give_an_interval_and_one_run_gives_none() {
        // R: exp(t.test(log(c(5455, 5555, 5540)))$conf.int) is 5384.3 to 5649.9.
        let pooled = pooled(&[5455.0, 5555.0, 5540.0]).unwrap();
        assert_eq!(pooled.runs, 3);
        assert!((pooled.rate_per_s - 5516.5).abs() < 0.1, "{pooled:?}");
        assert!(
            (pooled.low_per_s - 5383.0).abs() < 5.0 && (pooled.high_per_s - 5653.0).abs() < 5.0,
            "{pooled:?}"
        );
        assert_eq!(super::pooled(&[5455.0]), None);
        assert_eq!(super::pooled(&[5455.0, 5455.0]), None);
    }
}
