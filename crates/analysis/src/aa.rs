//! The baseline vs its copy: a difference between the two is no difference, and shows what the machine makes up.

use model::{Check, Finding, Metric, evidence, quantity};
use record::Record;
use schemars::JsonSchema;
use serde::Serialize;
use stats::Estimate;

use crate::comparison::ratios;
use crate::metric::BlockFigures;
use crate::rule;

/// The check errs in 1 of 100 experiments: 5 % shared among this many.
const SHARES: usize = 5;

/// The baseline vs its copy.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AaCheck {
    /// Reads as "X vs itself".
    pub label: String,
    /// The metric, that of the verdict.
    pub metric: Metric,
    /// Copy over baseline, with an interval that holds 1 in 99 of 100 experiments whenever it is looked at. `None` below four blocks.
    pub estimate: Option<Estimate>,
    /// Whether the interval excludes 1.
    pub differs: bool,
}

/// Judges the copy; `None` where the experiment has none.
pub(crate) fn check(record: &Record, blocks: &[BlockFigures]) -> Option<AaCheck> {
    let plan = &record.header.plan;
    let asked = plan.aa.as_ref()?;
    let metric = plan.design.metric;
    let estimate = || {
        let d = ratios(blocks, asked, metric)?;
        let rule = rule::family(record, SHARES)?;
        let critical_t = rule.critical_t(u32::try_from(d.len()).ok()?)?;
        Estimate::of(&d, critical_t).ok().filter(|_| rule::may_look(record))
    };
    let estimate = estimate();
    let differs = estimate.as_ref().is_some_and(|estimate| estimate.low > 1.0 || estimate.high < 1.0);
    Some(AaCheck { label: asked.label.clone(), metric, estimate, differs })
}

pub(crate) fn finding(aa: &AaCheck) -> Option<Finding> {
    let estimate = aa.estimate.as_ref().filter(|_| aa.differs)?;
    let (label, metric) = (&aa.label, aa.metric.name());
    Some(Finding::void(
        Check::AaDiffers,
        evidence!(
            "{label}: {metric} differs by {}, and the two are the same",
            quantity::change_told(estimate)
        ),
        "the machine makes up differences of this size, or the copies share something that the one takes from the other (a port, a file, a \
         cache); no difference of this run may be believed",
    ))
}
