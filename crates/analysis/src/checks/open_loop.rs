//! Open-loop counts of a variant, and whether the experiment judges response times.

use record::OpenLoop;

use super::input::{CheckedRun, CheckedVariant};

pub(super) fn opens<'a>(variant: &CheckedVariant<'a>) -> Vec<&'a OpenLoop> {
    variant
        .slices
        .iter()
        .filter_map(|slice| slice.counts.open.as_deref())
        .collect()
}

/// Whether a conclusion rests on response times: a wrong one only qualifies CPU per request.
pub(super) fn judges_latency(run: &CheckedRun<'_>) -> bool {
    run.plan
        .judged_metrics()
        .iter()
        .any(|metric| metric.quantile().is_some())
}
