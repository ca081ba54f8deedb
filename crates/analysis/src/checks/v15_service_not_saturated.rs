//! Neither services nor generator at their limit
//!
//! **Seen.** `its services kept 0.310 of 1 core busy and the generator 22 % of one`.
//!
//! **Why.** Throughput is capacity only with something at its limit.
//!
//! **What to do.** Raise `load.connections` until throughput stops rising, or judge `cpu_per_request` or
//! latency.
//!
//! **Threshold.** Services below `SATURATED_MIN = 0.7` of their cores, and the generator below its limit.
//! Only for throughput without a link. A note without a comparison, and if the variant differs from all it is
//! compared with.

use model::quantity::many;
use model::{Grade, Quantity, evidence};
use plan::Comparison;

use super::finding::{CheckFinding, warning};
use super::input::{CheckedRun, CheckedVariant};
use super::row::{Alone, CheckRow, Maker, Subject, WARNING_OR_NOTE, row};
use super::v24_same_stall::same_stall;
use super::waiting_variant::{WaitingVariant, judged};
use crate::only_if;

pub(super) static ROW: CheckRow = row(
    Subject::Service,
    WARNING_OR_NOTE,
    &[Maker::Each(service_not_saturated)],
)
.alone(Alone::As(
    Grade::Note,
    "this throughput is no capacity: requests waited (for a timer, a lock, a disk, another machine, or for too few connections); \
     more connections raise it until something is at its limit",
));

/// Reports that a variant waited, unless its stall is reported.
fn service_not_saturated(
    run: &CheckedRun<'_>,
    variant: &CheckedVariant<'_>,
) -> Option<CheckFinding> {
    let waiting = judged(run, variant.index)?;
    let stalls = |asked: &Comparison| {
        [asked.baseline, asked.candidate].contains(&variant.index)
            && same_stall(run, asked).is_some()
    };
    only_if(!run.plan.comparisons.iter().any(stalls))?;
    let WaitingVariant {
        cores,
        under_way,
        per_s,
        cpu_ms,
        generator_share,
        ..
    } = *waiting;
    let at_once = f64::from(under_way);
    let under_way = many(under_way.into(), "request");
    let of = waiting.of.map_or(" cores".to_owned(), |of| {
        format!(" of {}", many(of as u64, "core"))
    });
    let evidence = evidence!(
        "its services kept {cores}{of} busy and the generator {generator} of one, with {under_way} under way and \
         {throughput} responses: each took {took} (requests under way / throughput), of which they computed {computed}";
        cores = Quantity::number(cores), generator = Quantity::share(generator_share),
        took = Quantity::seconds(at_once / per_s), throughput = Quantity::per_s(per_s), computed = Quantity::us(cpu_ms * 1e3));
    let remedy = "its throughput is that of waiting (a timer, a lock, a disk, another machine, too few connections), so what requests cost hardly \
                  shows in it; raise load.connections until throughput rises no more, or judge `cpu_per_request`, or a quantile of the \
                  response time, which is in open loop";
    Some(warning(evidence, remedy))
}
