//! A proxy that opens a connection per request
//!
//! **Seen.** `its services opened 33,110 connections for 33,122 responses, 1.00 for each`, by the kernel's
//! count.
//!
//! **Why.** Each costs as much as a small request.
//!
//! **What to do.** nginx: `keepalive` in `upstream`, `proxy_http_version 1.1` and
//! `proxy_set_header Connection ""`. Node.js: an `http.Agent` with `keepAlive`.
//!
//! **Threshold.** `UPSTREAM_OPENED_MIN = 0.5` per response, of `RESPONSES_MIN = 100` or more. Only if a
//! service needs another.

use model::quantity::counted;
use model::{Phase, Quantity, evidence};
use record::Slice;

use super::finding::{CheckFinding, warning};
use super::input::{CheckedRun, CheckedVariant};
use super::row::{CheckRow, Maker, Subject, WARNING, row};
use super::watched_span::own;
use crate::only_if;

pub(super) static ROW: CheckRow = row(
    Subject::Network,
    WARNING,
    &[Maker::Each(upstream_connections)],
);

/// Connections opened among services per response from which on they are not reused. With a pool there are
/// hundreds of responses per connection, without one at most one.
const UPSTREAM_OPENED_MIN: f64 = 0.5;
/// Minimum number of responses for a share of connections.
pub(super) const RESPONSES_MIN: u64 = 100;

/// Reports a service that opens a connection to the next one for each request.
fn upstream_connections(
    run: &CheckedRun<'_>,
    variant: &CheckedVariant<'_>,
) -> Option<CheckFinding> {
    let plan = variant.plan;
    let before = plan
        .services
        .iter()
        .filter(|service| !service.needs.is_empty());
    let before: Vec<&str> = before.map(|service| service.name.as_str()).collect();
    only_if(!before.is_empty())?;
    let on_link = plan.load.network.is_some();
    let slices = own(run, variant.index, on_link);
    let apart = on_link || plan.runs_already();
    let seen: Vec<_> = slices
        .iter()
        .filter_map(|slice| opened_by_services(slice, apart))
        .collect();
    let opened: u64 = seen.iter().map(|(opened, _)| opened).sum();
    let answered: u64 = seen.iter().map(|(_, answered)| answered).sum();
    only_if(answered >= RESPONSES_MIN && opened as f64 >= UPSTREAM_OPENED_MIN * answered as f64)?;
    let each = opened as f64 / answered as f64;
    Some(warning(
        evidence!("its services opened {opened} for {responses}, {each} for each";
            opened = counted(opened, "connection"), responses = counted(answered, "response"),
            each = Quantity::number(each)),
        format!(
            "{} does not keep its connections to what it needs, and opening one costs as much as a small request; nginx needs \
             `keepalive` in `upstream`, `proxy_http_version 1.1` and `proxy_set_header Connection \"\"`, Node.js an http.Agent with \
             keepAlive",
            before.join(", ")
        ),
    ))
}

/// Connections opened by others than the generator, and responses. If the entry is `apart`, on a link or not
/// started here, or if the generators are on other machines, their connections are not included in the services'
/// counters.
fn opened_by_services(slice: &Slice, apart: bool) -> Option<(u64, u64)> {
    let failed = slice
        .counts
        .errors
        .iter()
        .filter(|error| error.phase == Phase::Connect);
    let failed: u64 = failed.map(|error| error.count).sum();
    // The record does not contain which generator failed to connect.
    let here = slice.generators.is_empty() || slice.generators.iter().any(|part| part.here);
    let generators = if apart || !here {
        0
    } else {
        slice.connections_opened_here() + failed
    };
    Some((
        slice.machine.tcp?.opened.saturating_sub(generators),
        slice.counts.responses,
    ))
}
