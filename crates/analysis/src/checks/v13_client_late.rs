//! The load generator sent late
//!
//! **Seen.** `with a connection free the client sent up to 610 µs late (p99), 34 % of the response time`.
//!
//! **Why.** All response times contain the delay, so differences look smaller.
//!
//! **What to do.** Stop other processes, or give the client a separate core. With [CPU steal](#v29) lag is
//! unavoidable.
//!
//! **Threshold.** More than `LAG_MAX_NS = 200_000` (0.2 ms) *and* `LAG_SHARE_MAX = 0.1` of the response time,
//! both at p99. Invalid above `LAG_SHARE_VOID = 0.5`, unless CPU per request is judged.

use model::{Grade, Quantity, evidence};
use stats::Latencies;

use super::finding::{CheckFinding, either};
use super::input::{CheckedRun, CheckedVariant};
use super::open_loop::{judges_latency, opens};
use super::row::{Alone, CheckRow, EITHER, Maker, Subject, row};
use crate::only_if;
use crate::sums::merged;

pub(super) static ROW: CheckRow = row(Subject::Client, EITHER, &[Maker::Succeeding(client_late)]).alone(Alone::As(
        Grade::Warning,
        "the client's own lateness is part of the response times: give it a core of its own, or more threads",
    ));

/// Maximum delay of the client for one request in a hundred that does not matter, in nanoseconds.
pub(crate) const LAG_MAX_NS: u64 = 200_000;
/// Maximum share of the client's delay in the response time, both at p99.
pub(crate) const LAG_SHARE_MAX: f64 = 0.1;
/// Share above which mainly the client was measured.
const LAG_SHARE_VOID: f64 = 0.5;

/// Reports that the client had a free connection and sent late, which is part of the response time.
fn client_late(run: &CheckedRun<'_>, variant: &CheckedVariant<'_>) -> Option<CheckFinding> {
    let opens = opens(variant);
    let p99_ns = |latencies: Latencies| {
        latencies
            .quantile(0.99)
            .filter(|_| latencies.resolves(0.99))
            .map(stats::Quantile::ns)
    };
    let lag_ns = p99_ns(merged(opens.iter().map(|open| &open.schedule_lag)))?;
    let response_ns = p99_ns(merged(opens.iter().map(|open| &open.response)))?;
    let share = lag_ns as f64 / response_ns.max(1) as f64;
    only_if(lag_ns > LAG_MAX_NS && share > LAG_SHARE_MAX)?;
    let parts = variant.slices.iter().flat_map(|slice| &slice.generators);
    let latest = parts
        .filter_map(|part| Some((part.lag_p99_ns?, &part.name)))
        .max();
    let told = |(ns, name)| format!("; {name} up to {} in a slice", Quantity::ns(ns));
    let latest = latest.map(told).unwrap_or_default();
    let evidence = evidence!(
        "with a connection free the client sent up to {lag} late (p99), {part} of the response time of {response} (p99){latest}";
        lag = Quantity::ns(lag_ns), part = Quantity::share(share), response = Quantity::ns(response_ns));
    let rather_the_client = share > LAG_SHARE_VOID;
    let remedy = if rather_the_client {
        "what was measured is rather the client than the service; give it a core of its own, or end what else runs on this machine"
    } else {
        "the client's lateness is part of every figure, for all variants alike, and makes differences look smaller; give it a core of \
         its own"
    };
    Some(either(
        rather_the_client && judges_latency(run),
        evidence,
        remedy,
    ))
}
