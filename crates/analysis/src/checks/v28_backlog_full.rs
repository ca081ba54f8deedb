//! The accept queue was full
//!
//! **Seen.** `listening sockets dropped 340 attempts to connect`, with retries.
//!
//! **Why.** Clients retry after 1, 3 and 7 s. The kernel counts per network, so another server may be the
//! cause.
//!
//! **What to do.** A longer backlog (`listen()`, `net.core.somaxconn`), kept connections, or fewer
//! `load.connections`. Check other servers: `ss -lnt` (`Recv-Q` above `Send-Q`).
//!
//! **Threshold.** Invalid above `FAILED_SHARE_MAX = 0.001` of the requests, or `HELD_UP_SHARE_MAX = 0.01` of
//! all connections' time. A warning for a single one.

use model::quantity::counted;
use model::{FAILED_SHARE_MAX, Quantity, evidence};

use super::finding::{CheckFinding, either};
use super::input::{CheckedRun, CheckedVariant};
use super::row::{CheckRow, EITHER, Maker, Subject, row};
use super::watched_span::{WatchedSpan, stretches};

pub(super) static ROW: CheckRow = row(Subject::Network, EITHER, &[Maker::Several(backlog_full)]);

/// Time that a connection loses if its first packet is dropped, in nanoseconds: Linux retransmits after a
/// second (RFC 6298).
const RETRY_NS: u64 = 1_000_000_000;
/// Maximum share of all connections' time that may be lost in this way. Above it a result is invalid.
const HELD_UP_SHARE_MAX: f64 = 0.01;

/// Connections that a listening socket dropped while a variant was measured, and the totals to relate them
/// to.
#[derive(Default, PartialEq, Eq)]
struct SocketDrops {
    drops: u64,
    overflows: u64,
    sent_again: u64,
    due: u64,
    /// Connections times time, in nanoseconds.
    connections_ns: u128,
}

impl SocketDrops {
    fn of(stretches: &[WatchedSpan<'_>], variant: usize) -> Self {
        let mut held = Self::default();
        for stretch in stretches {
            let Some(slice) = stretch.slices.iter().find(|slice| slice.variant == variant) else {
                continue;
            };
            let Some(tcp) = slice.machine.tcp else {
                continue;
            };
            held.drops += tcp.listen_drops.max(tcp.listen_overflows);
            held.overflows += tcp.listen_overflows;
            held.sent_again += tcp.syn_retransmits;
            // On a link each trial has its own network namespace, with separate counters.
            for slice in stretch
                .slices
                .iter()
                .filter(|other| other.machine.tcp == slice.machine.tcp)
            {
                held.due += slice.counts.due();
                held.connections_ns +=
                    u128::from(slice.connections) * u128::from(slice.counts.wall_ns());
            }
        }
        held
    }

    /// Each drop costs a second: whether too many requests waited for that, or too large a share of all
    /// connections' time was lost.
    fn is_void(&self) -> bool {
        let requests = self.drops as f64 / self.due.max(1) as f64;
        let time = self.drops as f64 * RETRY_NS as f64 / self.connections_ns.max(1) as f64;
        requests > FAILED_SHARE_MAX || time > HELD_UP_SHARE_MAX
    }
}

/// Reports connections that waited because the accept queue was full. Retransmitted SYNs without a drop are
/// not counted, because connection attempts to unreachable hosts on this machine cause some too.
fn backlog_full(run: &CheckedRun<'_>) -> Vec<CheckFinding> {
    let stretches = stretches(run);
    // With turns, all variants have the same counts, which is one finding.
    let held = run
        .variants
        .iter()
        .map(|variant| (SocketDrops::of(&stretches, variant.index), variant));
    let found = model::grouped(held.filter(|(held, _)| held.drops > 0));
    found
        .into_iter()
        .map(|(held, variants)| held_up(&held, &variants))
        .collect()
}

fn held_up(held: &SocketDrops, variants: &[&CheckedVariant<'_>]) -> CheckFinding {
    let (about, names): (Vec<usize>, Vec<&str>) =
        variants.iter().map(|of| (of.index, of.name)).unzip();
    let evidence = evidence!(
        "{}: listening sockets dropped {dropped} to connect during {requests}, {overflows} of them because the accept \
         queue was full; {sent_again} were sent again", names.join(", ");
        dropped = counted(held.drops, "attempt"), requests = counted(held.due, "request"), overflows = Quantity::count(held.overflows),
        sent_again = Quantity::count(held.sent_again));
    let remedy = "who is dropped tries again after 1, 3 and 7 s, and that wait is what was measured; give listen() a longer backlog (and \
                  net.core.somaxconn), keep connections, or open fewer (load.connections)";
    either(held.is_void(), evidence, remedy).about(about)
}
