//! The load generator was at its limit
//!
//! **Seen.** `a generator thread was busy 97 % of the time while the services kept 0.41 cores busy`.
//!
//! **Why.** It may be the generator's throughput. A warning in open loop ([V13](#v13)), and if the services
//! are busy too.
//!
//! **What to do.** More `load.threads`, one core each. On two cores: more work per request, or
//! `cpu_per_request`.
//!
//! **Threshold.** `GENERATOR_SHARE_MAX = 0.85` of a core for the busiest thread, mean over slices. Invalid
//! only if throughput is judged and in most trials the services used less than `LIMITING_MIN = 0.85` of their
//! processors, and no process that share of one.

use std::collections::BTreeMap;

use model::quantity::decimal;
use model::{Grade, Quantity, evidence};
use record::Slice;

use super::finding::{CheckFinding, either};
use super::input::{CheckedRun, CheckedTrial, CheckedVariant};
use super::row::{Alone, CheckRow, EITHER, Maker, Subject, row};
use crate::only_if;
use crate::sums::mean;
use crate::usage::{GENERATOR_SHARE_MAX, generator_share, most, services_limited, wall_ns};

pub(super) static ROW: CheckRow = row(Subject::Client, EITHER, &[Maker::Succeeding(generator_saturated)]).alone(Alone::As(
        Grade::Warning,
        "the client was at its limit, and the service may do more than this: more threads, or another machine",
    ));

/// Reports that the busiest thread of all, or of one of several generators, was at the limit of its core.
fn generator_saturated(run: &CheckedRun<'_>, variant: &CheckedVariant<'_>) -> Option<CheckFinding> {
    let (generator, share) = busiest(&variant.slices);
    only_if(share > GENERATOR_SHARE_MAX)?;
    let busy = variant.sum(Slice::services_cpu_ns) as f64 / wall_ns(&variant.slices);
    // A busy client does not affect CPU per request. In open loop its effects are reported by `client_late`.
    let judged = run.plan.judges_throughput();
    // The use of a service that was not started is unknown. A client at its limit then counts as the limit.
    let unknown = variant.is_unseen();
    let limited = |trial: &CheckedTrial<'_>| {
        let slices: Vec<&Slice> = trial.measured().collect();
        services_limited(run.machine, trial.started, &slices)
    };
    let busy_services = most(variant.trials.iter().map(limited));
    let idle = judged && (unknown || !busy_services) && !run.is_open_loop();
    let services = match unknown {
        true => "CPU of the services is unknown, because they ran already".to_owned(),
        false => format!("the services kept {} cores busy", decimal(busy, 2)),
    };
    let thread = generator.map_or("a generator thread".to_owned(), |name| {
        format!("a thread of {name}")
    });
    let remedy = if run.is_open_loop() {
        "a client at its limit sees responses late, and response times look longer; give it more threads (load.threads) and cores"
    } else if idle {
        "the client was the limit, so this is its throughput and not the service's; give it more threads (load.threads) and cores"
    } else {
        "the service was at its limit too, or throughput is not judged; yet a generator with a core to spare would tell more"
    };
    let evidence = evidence!("{thread} was busy {busy_share} of the time while {services}";
        busy_share = Quantity::share(share));
    Some(either(idle, evidence, remedy))
}

/// Name of the busiest of several generators, and the share of its core that its busiest thread used, as the
/// mean over slices.
fn busiest<'a>(slices: &[&'a Slice]) -> (Option<&'a str>, f64) {
    let mut of_each: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for part in slices.iter().flat_map(|slice| &slice.generators) {
        of_each
            .entry(&part.name)
            .or_default()
            .extend(part.busiest_share);
    }
    let means = of_each
        .into_iter()
        .filter_map(|(name, shares)| Some((Some(name), mean(shares)?)));
    let busiest = means.max_by(|(_, one), (_, other)| one.total_cmp(other));
    busiest.unwrap_or_else(|| (None, generator_share(slices)))
}
