//! The place in the block counts
//!
//! **Seen.** `throughput of the one that is started last in its block differs by -3.1 % from that of the
//! first`.
//!
//! **Why.** The first affects the next (a cache, a hot processor), and few blocks do not balance that.
//!
//! **What to do.** A longer `design.warmup`, or more blocks.
//!
//! **Threshold.** More than chance, and more than `MARGIN_SHARE_MIN = 0.5` of your margin from the first
//! place to the last.

use model::evidence;
use model::quantity::{change_alone, counted, with_sign};
use stats::RegressionEffect;

use super::chance::{MARGIN_SHARE_MIN, SERIES_ALPHA, chance};
use super::finding::{CheckFinding, warning};
use super::input::{CheckedBlock, CheckedRun};
use super::row::{CheckRow, Maker, OFF, Subject, WARNING, row};
use crate::metric::BlockFigures;
use crate::only_if;

pub(super) static ROW: CheckRow =
    row(Subject::Design, WARNING, &[Maker::Whole(order_effect)]).alone(OFF);

/// Reports the effect of being started later in a block, over all variants.
fn order_effect(run: &CheckedRun<'_>) -> Option<CheckFinding> {
    let design = &run.plan.design;
    let has_all = |index: &usize| {
        run.figures
            .iter()
            .all(|of| of.log_value(design.metric, *index).is_some())
    };
    let complete: Vec<usize> = (0..run.variants.len()).filter(has_all).collect();
    let row = |(block, figures): (&CheckedBlock<'_>, &BlockFigures)| -> Option<Vec<(f64, f64)>> {
        let place = |variant: usize| block.order.iter().position(|of| *of == variant);
        let value = |variant: usize| figures.compared(design.metric, variant).map(f64::ln);
        complete
            .iter()
            .map(|variant| Some((place(*variant)? as f64, value(*variant)?)))
            .collect()
    };
    let rows: Vec<_> = run
        .complete_blocks()
        .zip(run.figures)
        .map(row)
        .collect::<Option<_>>()?;
    let RegressionEffect { value, t, p } = stats::place_effect(&rows)?;
    let places = run.variants.len().checked_sub(1)? as f64;
    let whole = (value * places).exp() - 1.0;
    only_if(p <= SERIES_ALPHA && whole.abs() > design.margin * MARGIN_SHARE_MIN)?;
    let (metric, change, chance) = (
        design.metric.name(),
        change_alone(1.0 + whole, 1),
        chance(p),
    );
    Some(warning(
        evidence!(
            "whatever the variant, {metric} of the one that is started last in its block differs by {change} from that of the first (t \
             {}, by chance in {chance}, {blocks})", with_sign(t, 1);
            blocks = counted(rows.len() as u64, "block")),
        "the order is drawn anew for each block, so this widens the intervals and favours nobody in the long run; in few blocks one variant \
         may have had the better places more often. What comes first leaves something behind (a cache, a hot processor, connections), or is \
         warmed up longer ago: set a longer design.warmup, or ask for more blocks",
    ))
}
