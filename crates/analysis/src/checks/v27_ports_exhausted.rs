//! No local ports left
//!
//! **Seen.** `812 connections found no local port free (EADDRNOTAVAIL)`, or sockets in TIME_WAIT.
//!
//! **Why.** The closing side keeps its port for a minute.
//!
//! **What to do.** Keep connections (a proxy may not: [V25](#v25)), or widen `net.ipv4.ip_local_port_range`.
//!
//! **Threshold.** Invalid if one connection found no port, or if more than `TIME_WAIT_SHARE_MAX = 0.5` of the
//! ports are in TIME_WAIT and [V8](#v8) applies. A warning for the ports alone, if the variant put more than
//! `TIME_WAIT_GROWN_MIN = 0.1` of them there.

use model::Cause;
use model::quantity::many;
use record::Slice;

use super::finding::{CheckFinding, either};
use super::input::{CheckedRun, CheckedVariant};
use super::row::{CheckRow, EITHER, Maker, Subject, row};
use super::watched_span::own;
use crate::only_if;
use crate::sums::outcome;

pub(super) static ROW: CheckRow = row(Subject::Network, EITHER, &[Maker::Each(ports_exhausted)]);

/// Maximum share of the local ports in TIME_WAIT. Above it new connections are hard to get: Linux first tries
/// every other port, and if those are taken it tries the rest one by one.
const TIME_WAIT_SHARE_MAX: f64 = 0.5;
/// Minimum share of the local ports that enter TIME_WAIT within a variant's own slice for the variant to be
/// reported.
const TIME_WAIT_GROWN_MIN: f64 = 0.1;

/// Reports that no local port was left for a new connection, or soon none would be.
fn ports_exhausted(run: &CheckedRun<'_>, variant: &CheckedVariant<'_>) -> Option<CheckFinding> {
    let slices: Vec<&Slice> = run.slices(variant.index).collect();
    let errors = slices.iter().flat_map(|slice| &slice.counts.errors);
    let refused = errors.filter(|error| error.cause == Cause::AddressExhausted);
    let refused: u64 = refused.map(|error| error.count).sum();
    let share = |slice: &&Slice| {
        // Sockets left by others only decrease. Every window adds a few.
        let grown = |tcp: &record::TcpUse| tcp.time_wait.saturating_sub(tcp.time_wait_before);
        let own =
            |tcp: &record::TcpUse| grown(tcp) as f64 > TIME_WAIT_GROWN_MIN * tcp.local_ports as f64;
        let tcp = slice
            .machine
            .tcp
            .filter(|tcp| tcp.local_ports > 0 && own(tcp))?;
        Some((tcp.time_wait as f64 / tcp.local_ports as f64, tcp))
    };
    // With turns, all variants see the sockets that one of them leaves behind. Only that one is reported.
    let own = own(run, variant.index, variant.plan.load.network.is_some());
    let most = own
        .iter()
        .filter_map(share)
        .max_by(|(one, _), (other, _)| one.total_cmp(other));
    let waiting = most
        .filter(|(share, _)| *share > TIME_WAIT_SHARE_MAX)
        .map(|(_, tcp)| tcp);
    only_if(refused > 0 || waiting.is_some())?;
    let ports = most.map(|(_, tcp)| {
        let (waiting, ports) = (
            many(tcp.time_wait, "socket"),
            many(tcp.local_ports, "local port"),
        );
        format!("{waiting} in TIME_WAIT, of {ports}")
    });
    let told = || {
        format!(
            "{} found no local port free (EADDRNOTAVAIL)",
            many(refused, "connection")
        )
    };
    let told: Vec<String> = (refused > 0).then(told).into_iter().chain(ports).collect();
    // The kernel can reuse such ports on loopback (tcp_tw_reuse), so a large number alone is not a failure.
    let is_void = outcome(&slices).is_void();
    let remedy = "who closes a connection keeps its port for a minute, so that this measures how fast ports come back; keep connections (HTTP \
                  keep-alive, and a proxy's to its upstream), or widen net.ipv4.ip_local_port_range";
    Some(either(refused > 0 || is_void, told.join(", and "), remedy))
}
