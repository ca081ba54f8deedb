//! Connections that are not kept, or carry too little
//!
//! **Seen.** `64 connections asked for and 4,210 opened, one for every 7.87 responses`, or
//! `1,000 requests were under way in the mean and not 2,000`.
//!
//! **Why.** Opening one costs as much as a small request. Or an HTTP/2 server allows fewer streams
//! (`SETTINGS_MAX_CONCURRENT_STREAMS`) than requested.
//!
//! **What to do.** `keepalive_requests` of nginx; `keepAliveTimeout` and `maxRequestsPerSocket` of Node.js.
//! More connections with fewer streams.
//!
//! **Threshold.** `CHURN_SHARE_MAX = 0.02` extra connections per response, of `RESPONSES_MIN = 100` or more.
//! `STREAMS_SHARE_MIN = 0.8` of the streams in use, if no request was lost.

use model::quantity::{counted, many};
use model::{Quantity, evidence, header};
use record::Slice;

use super::finding::{CheckFinding, warning};
use super::input::{CheckedRun, CheckedVariant};
use super::row::{CheckRow, Maker, Subject, WARNING, row};
use super::v25_upstream_connections::RESPONSES_MIN;
use crate::only_if;
use crate::sums::total;
use crate::usage::{GENERATOR_SHARE_MAX, generator_share};
use crate::window::MeasuredWindow;

pub(super) static ROW: CheckRow = row(
    Subject::Network,
    WARNING,
    &[
        Maker::Each(connection_churn),
        Maker::Slice(connections_missing),
    ],
);

/// Maximum number of additional connections opened per response. A connection costs about as much as a small
/// response, so below this share the effect is smaller than usual margins.
const CHURN_SHARE_MAX: f64 = 0.02;
/// The lab reopens connections after a pause of one second, and windows differ in length.
const REST_NS: u64 = 500_000_000;
/// Minimum share of the streams of all connections in use, in a closed loop.
const STREAMS_SHARE_MIN: f64 = 0.8;

fn says_close(name: &str, value: &str) -> bool {
    header::is_same(name, "connection")
        && value
            .split(',')
            .any(|word| word.trim().eq_ignore_ascii_case("close"))
}

/// Reports connections that were reopened without a request to do so, or carried fewer streams than
/// requested.
fn connection_churn(run: &CheckedRun<'_>, variant: &CheckedVariant<'_>) -> Option<CheckFinding> {
    reopened(run, variant).or_else(|| streams_unused(variant))
}

/// Reports fewer concurrent requests than the requested streams, although no request was lost.
fn streams_unused(variant: &CheckedVariant<'_>) -> Option<CheckFinding> {
    let load = &variant.plan.load;
    let streams = load.protocol.streams()?;
    // At a rate, concurrency follows from the load. With a request count, it decreases toward the end.
    let counts = |slice: &Slice| {
        slice
            .asked
            .is_some_and(|asked| asked.until.requests().is_some())
    };
    let is_full = |slice: &&Slice| slice.counts.open.is_none() && !counts(slice);
    let slices: Vec<&Slice> = variant.slices.iter().copied().filter(is_full).collect();
    let is_whole = slices.iter().all(|slice| slice.counts.errors.is_empty());
    // A client at its limit reads pending responses before it sends more.
    let is_idle = generator_share(&slices) <= GENERATOR_SHARE_MAX;
    only_if(streams > 1 && load.settings.keep_alive && is_whole && is_idle)?;
    let window_ns = total(&slices, |slice| slice.counts.window_ns).max(1) as f64;
    let under_way = total(&slices, |slice| slice.counts.in_flight_ns) as f64 / window_ns;
    let connections = slices.first()?.connections;
    let asked = u64::from(connections) * u64::from(streams);
    only_if(under_way > 0.0 && under_way < STREAMS_SHARE_MIN * asked as f64)?;
    let (connections, streams) = (
        many(connections.into(), "connection"),
        many(streams.into(), "stream"),
    );
    let evidence = evidence!(
        "{under_way} requests were under way in the mean and not {asked}: {connections}, up to {streams} on each";
        under_way = Quantity::number(under_way), asked = Quantity::count(asked));
    let remedy = "the server allows fewer streams on a connection (SETTINGS_MAX_CONCURRENT_STREAMS), or ends connections in good order; ask for \
                  more connections with fewer streams, or have it allow more";
    Some(warning(evidence, remedy))
}

/// Reports connections that were not open when the window of a slice began.
fn connections_missing(window: &MeasuredWindow<'_>) -> Option<CheckFinding> {
    let slice = window.slice;
    let (alive, asked) = (slice.counts.connections_alive_at_start, slice.connections);
    let kept = window.load().is_none_or(|load| load.settings.keep_alive);
    let evidence = evidence!("{open} of {asked} were open when the window began";
        open = Quantity::count(alive), asked = counted(asked, "connection"));
    let is_missing = alive < asked && kept && window.has_success();
    is_missing.then(|| warning(evidence, "the others joined when they could"))
}

/// Reports connections that were repeatedly opened beyond the requested number.
fn reopened(run: &CheckedRun<'_>, variant: &CheckedVariant<'_>) -> Option<CheckFinding> {
    // Each window may open all its connections once: in open loop it does, and after a pause for the turns of
    // other variants.
    let rests = |slice: &Slice| {
        let others = (run.plan.variants.len() as u64).saturating_sub(1);
        slice.counts.open.is_some()
            || others * slice.counts.window_ns / u64::from(slice.turns.max(1)) > REST_NS
    };
    let windows = |slice: &Slice| if rests(slice) { slice.turns } else { 1 };
    let asked = |slice: &Slice| u64::from(slice.connections) * u64::from(windows(slice));
    let beyond = variant.sum(|slice| slice.counts.connections_opened.saturating_sub(asked(slice)));
    let opened = variant.sum(|slice| slice.counts.connections_opened);
    let answered = variant.sum(|slice| slice.counts.responses);
    only_if(answered >= RESPONSES_MIN && beyond as f64 > CHURN_SHARE_MAX * answered as f64)?;
    let mut headers = variant
        .plan
        .load
        .requests
        .iter()
        .flat_map(|request| &request.headers);
    only_if(
        variant.plan.load.settings.keep_alive
            && !headers.any(|(name, value)| says_close(name, value)),
    )?;
    let witnesses = variant
        .trials
        .iter()
        .flat_map(|trial| &trial.started.witnesses);
    let closes = witnesses
        .flat_map(|witness| &witness.headers)
        .any(|(name, value)| says_close(name, value));
    let closes = if closes {
        "; it responds with `connection: close`"
    } else {
        ""
    };
    let evidence = evidence!("{asked} asked for and {opened} opened, one for every {each} responses{closes}";
        asked = counted(variant.sum(asked), "connection"), each = Quantity::number(answered as f64 / opened as f64),
        opened = Quantity::count(opened));
    let remedy = "the service closes connections, and opening one costs as much as a small request; let it keep them (nginx \
                  keepalive_requests, Node.js keepAliveTimeout and maxRequestsPerSocket), or mind that this is part of every figure";
    Some(warning(evidence, remedy))
}
