//! Connections that cost more than necessary or could not be opened, from the counters of TCP and of the
//! generator.
//!
//! TCP counts for a whole network namespace. If slices took turns, its counters include the other trials, and
//! are used only for findings about all variants. The checks do not apply to records without the figures.

use model::quantity::{counted, many};
use model::{Cause, FAILED_SHARE_MAX, Phase, Quantity, evidence, header};
use record::Slice;

use super::machine::{WatchedSpan, stretches, stretches_beside};
use super::{CheckFinding, CheckedRun, CheckedVariant, either, warning};
use crate::only_if;
use crate::sums::{outcome, total};
use crate::usage::{GENERATOR_SHARE_MAX, generator_share};
use crate::window::MeasuredWindow;

/// Connections opened among services per response from which on they are not reused. With a pool there are
/// hundreds of responses per connection, without one at most one.
const UPSTREAM_OPENED_MIN: f64 = 0.5;
/// Minimum number of responses for a share of connections.
const RESPONSES_MIN: u64 = 100;
/// Maximum share of the local ports in TIME_WAIT. Above it new connections are hard to get: Linux first tries
/// every other port, and if those are taken it tries the rest one by one.
const TIME_WAIT_SHARE_MAX: f64 = 0.5;
/// Minimum share of the local ports that enter TIME_WAIT within a variant's own slice for the variant to be
/// reported.
const TIME_WAIT_GROWN_MIN: f64 = 0.1;
/// Time that a connection loses if its first packet is dropped, in nanoseconds: Linux retransmits after a
/// second (RFC 6298).
const RETRY_NS: u64 = 1_000_000_000;
/// Maximum share of all connections' time that may be lost in this way. Above it a result is invalid.
const HELD_UP_SHARE_MAX: f64 = 0.01;
/// Maximum number of additional connections opened per response. A connection costs about as much as a small
/// response, so below this share the effect is smaller than usual margins.
const CHURN_SHARE_MAX: f64 = 0.02;
/// The lab reopens connections after a pause of one second, and windows differ in length.
const REST_NS: u64 = 500_000_000;
/// Minimum share of the streams of all connections in use, in a closed loop.
const STREAMS_SHARE_MIN: f64 = 0.8;

/// Reports a service that opens a connection to the next one for each request.
pub(super) fn upstream_connections(
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

/// Slices of a variant during which no other trial's connections were counted.
fn own<'a>(run: &CheckedRun<'a>, variant: usize, on_link: bool) -> Vec<&'a Slice> {
    if on_link {
        return run.slices(variant).collect();
    }
    let all = stretches_beside(run).into_iter().chain(stretches(run));
    all.filter(|stretch| stretch.belongs_to(variant))
        .flat_map(|stretch| stretch.slices)
        .collect()
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

/// Reports that no local port was left for a new connection, or soon none would be.
pub(super) fn ports_exhausted(
    run: &CheckedRun<'_>,
    variant: &CheckedVariant<'_>,
) -> Option<CheckFinding> {
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
pub(super) fn backlog_full(run: &CheckedRun<'_>) -> Vec<CheckFinding> {
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

fn says_close(name: &str, value: &str) -> bool {
    header::is_same(name, "connection")
        && value
            .split(',')
            .any(|word| word.trim().eq_ignore_ascii_case("close"))
}

/// Reports connections that were reopened without a request to do so, or carried fewer streams than
/// requested.
pub(super) fn connection_churn(
    run: &CheckedRun<'_>,
    variant: &CheckedVariant<'_>,
) -> Option<CheckFinding> {
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
pub(super) fn connections_missing(window: &MeasuredWindow<'_>) -> Option<CheckFinding> {
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

pub(super) fn certificates_unchecked(run: &CheckedRun<'_>) -> Option<CheckFinding> {
    let unchecked = |variant: &&CheckedVariant<'_>| {
        variant
            .plan
            .load
            .tls
            .as_ref()
            .is_some_and(|tls| tls.insecure)
    };
    let insecure = run
        .variants
        .iter()
        .filter(unchecked)
        .map(|variant| (variant.index, variant.name));
    let (about, names): (Vec<usize>, Vec<&str>) = insecure.unzip();
    let evidence = format!(
        "{}: certificates were not checked: who responded is not known",
        names.join(", ")
    );
    let remedy = "the handshakes cost what they would otherwise; load.tls.ca trusts an authority of your own";
    (!about.is_empty()).then(|| CheckFinding::note((), evidence, remedy).about(about))
}
