//! Checks of a single run: what the tool really sent, for how long, and whether its output is complete.
//! Failures that the figures include or omit. Whether the printed latencies were measured, for which
//! requests, and their meaning. This module does not compare runs.

use model::quantity::{count, decimal, many, rate};
use model::{Evidence, Grade, Quantity, evidence};

use super::{RunFinding, graded, share};
use crate::counting::KEPT_UP;
use crate::run::{ToolRun, parts};
use crate::tools::{Divides, RateOf, ToolPace};

/// A runtime compiles and caches fill during the first seconds. Proofload's own warm-ups take 2 to 6 s.
const SECONDS_MIN: f64 = 10.0;
/// Requests per connection below which most of a run is its start and its end.
const REQUESTS_PER_CONNECTION_MIN: f64 = 5.0;
/// Maximum relative deviation of requests / seconds from the printed rate.
const CONTRADICTION: f64 = 0.1;

/// The number of requests after `before`, if known.
fn requests(before: &str, run: &ToolRun) -> String {
    run.requests
        .map(|requests| format!("{before}{}", many(requests, "request")))
        .unwrap_or_default()
}

/// The tool aborted early.
pub fn gave_up(run: &ToolRun) -> Option<RunFinding> {
    let words = format!("{}{}", run.abort.as_ref()?, requests(" after ", run));
    Some((
        Grade::Invalid,
        Evidence::new(
            words,
            [("requests", Quantity::count(run.requests.unwrap_or(0)))],
        ),
    ))
}

/// Fewer requests than connections.
pub fn start_up(run: &ToolRun) -> Option<RunFinding> {
    let (all, connections) = (
        run.requests?,
        run.connections_opened()
            .filter(|connections| *connections > 0)?,
    );
    let each = all as f64 / connections as f64;
    let judged = run.is_closed_loop() && run.abort.is_none();
    if !judged || run.rounded || all == 0 || each >= REQUESTS_PER_CONNECTION_MIN {
        return None;
    }
    let seen = evidence!("{} on {}: {requests_per_connection} each", many(all, "request"), many(connections, "connection");
        requests_per_connection = Quantity::number(each));
    Some((
        if each > 1.0 {
            Grade::Warning
        } else {
            Grade::Invalid
        },
        seen,
    ))
}

/// Too short to be past the start.
pub fn short(run: &ToolRun) -> Option<RunFinding> {
    let length = run
        .seconds()
        .filter(|length| *length < SECONDS_MIN * 0.98 && run.abort.is_none())?;
    let words = format!("{}{}", Quantity::seconds(length), requests(", ", run));
    Some((
        Grade::Warning,
        Evidence::new(words, [("duration_s", Quantity::number(length))]),
    ))
}

/// wrk opens the same number of connections on each thread, hey sends the same number of requests on each
/// connection.
pub fn uneven(run: &ToolRun) -> Option<RunFinding> {
    let load = &run.load;
    let (all, into, did, noun) = match run.tool.row().divides {
        Divides::ConnectionsByThreads => (load.connections, load.threads, "opened", "threads"),
        Divides::RequestsByConnections => (load.requests, load.connections, "sent", "connections"),
        Divides::Nothing => return None,
    };
    let (asked, into) = (all?, into.filter(|into| *into > 0)?);
    let done = asked / into * into;
    let [done_told, asked_told, each] = [done, asked, asked / into].map(count);
    let words = format!("{done_told} {did}, not {asked_told}: {into} {noun} with {each} each");
    let figures = [
        (did, Quantity::count(done)),
        ("asked", Quantity::count(asked)),
    ];
    (done != asked).then(|| (Grade::Note, Evidence::new(words, figures)))
}

/// ab opens a connection per request, unless keep-alive is requested and the service supports it.
pub fn new_connections(run: &ToolRun) -> Option<RunFinding> {
    let all = run.requests.filter(|requests| *requests > 0)?;
    let whole = !run.truncated && run.abort.is_none();
    let (words, kept) = match (run.tool.row().http_1_0, run.keep_alive_requests) {
        (true, None) if whole && run.load.keep_alive != Some(true) => (
            format!("{} for {}", many(all, "connection"), many(all, "request")),
            0,
        ),
        (true, Some(kept)) if (kept as f64) < 0.9 * all as f64 => (
            format!("asked to be kept, {} of {} were", count(kept), count(all)),
            kept,
        ),
        (false, _) if run.load.keep_alive == Some(false) => ("as asked for".to_owned(), 0),
        _ => return None,
    };
    Some((
        Grade::Warning,
        Evidence::new(words, [("kept", Quantity::count(kept))]),
    ))
}

/// ab's protocol.
pub fn http_1_0(run: &ToolRun) -> Option<RunFinding> {
    run.tool
        .row()
        .http_1_0
        .then(|| (Grade::Note, Evidence::default()))
}

/// Requests, seconds and rate that contradict each other.
pub fn contradicting(run: &ToolRun) -> Option<RunFinding> {
    let of_all = matches!(run.tool.row().rate_of, RateOf::Requests | RateOf::Responses);
    let exact = !run.rounded && of_all && run.abort.is_none();
    let (all, length) = (
        run.requests.filter(|_| exact)?,
        run.duration_s.filter(|length| *length > 0.0)?,
    );
    let printed = run.requests_per_s.filter(|rate| *rate > 0.0)?;
    let counted = all as f64 / length;
    // A value printed with two decimals may be off by one unit in the last place.
    let off = (counted / printed - 1.0).abs();
    if off <= CONTRADICTION || length < 0.1 {
        return None;
    }
    let seen = evidence!("{} in {} are {counted_per_s}; printed: {printed_per_s} ({} apart)",
        many(all, "request"), Quantity::seconds(length), Quantity::share(off);
        counted_per_s = Quantity::per_s(counted), printed_per_s = Quantity::per_s(printed));
    Some((Grade::Warning, seen))
}

/// Truncated output.
pub fn cut_off(run: &ToolRun) -> Option<RunFinding> {
    let what = if run.has_figures() {
        "ends too early"
    } else {
        "no figures"
    };
    (run.truncated && run.abort.is_none()).then(|| (Grade::Warning, what.into()))
}

/// Client and service on one machine.
pub fn same_machine(run: &ToolRun) -> Option<RunFinding> {
    let (host, _) = parts(run.url.as_deref()?);
    let local = ["127.", "localhost", "[::1]", "0.0.0.0"]
        .iter()
        .any(|start| host.starts_with(start));
    // The port is irrelevant here, and a bracket belongs to an IPv6 address.
    let host = host
        .rsplit_once(':')
        .filter(|(_, port)| !port.ends_with(']'))
        .map_or(host, |(host, _)| host);
    local.then(|| (Grade::Note, host.into()))
}

/// Error responses counted as requests, and requests without a response if the tool counts these too.
pub fn statuses(run: &ToolRun) -> Option<RunFinding> {
    let (of, counts_all) = (&run.failures, run.tool.row().rate_of == RateOf::Requests);
    let bad = if counts_all { of.total() } else { of.status? };
    if bad == 0 {
        return None;
    }
    let requests = run.requests.unwrap_or(bad);
    let noun = if counts_all { "request" } else { "response" };
    let part = share(bad, requests);
    let printed = run
        .rate()
        .filter(|_| run.tool.row().rate_of != RateOf::Successes);
    let without = printed.map(|all| {
        format!(
            "; {} without them, not {}",
            rate(all * (1.0 - part)),
            rate(all)
        )
    });
    let without = without.unwrap_or_default();
    let seen = evidence!("{failed} of {} ({failed_share}){without}", many(requests, noun);
        failed = Quantity::count(bad), failed_share = Quantity::share(part));
    Some((graded(part), seen))
}

/// Connections that failed.
pub fn connections(run: &ToolRun) -> Option<RunFinding> {
    let all = run.failures.socket();
    let of = &run.failures;
    let kinds = [
        (of.connect, "connect"),
        (of.read, "read"),
        (of.write, "write"),
        (of.other, "other"),
    ];
    let kinds = kinds
        .iter()
        .filter_map(|(number, name)| Some((number.filter(|number| *number > 0)?, name)));
    let kinds: Vec<String> = kinds
        .map(|(number, name)| format!("{} {name}", count(number)))
        .collect();
    // Some tools include them in the requests.
    let more = if run.tool.row().rate_of == RateOf::Requests {
        0
    } else {
        all
    };
    let part = run
        .requests
        .map_or(1.0, |requests| share(all, requests.saturating_add(more)));
    let beside = |requests| {
        format!(
            " beside {} ({})",
            many(requests, "request"),
            Quantity::share(part)
        )
    };
    let beside = run.requests.map(beside);
    let words = kinds.join(", ") + &beside.unwrap_or_default();
    let figures = [
        ("failed", Quantity::count(all)),
        ("failed_share", Quantity::share(part)),
    ];
    (all > 0).then(|| (graded(part), Evidence::new(words, figures)))
}

/// ab's failures that are none.
pub fn lengths(run: &ToolRun) -> Option<RunFinding> {
    let other = run.failures.length.filter(|other| *other > 0)?;
    let seen = run
        .requests
        .map(|requests| format!("{} of {}", count(other), many(requests, "response")));
    let seen = seen.unwrap_or_else(|| many(other, "response"));
    Some((
        Grade::Note,
        Evidence::new(seen, [("responses", Quantity::count(other))]),
    ))
}

/// From this share of timeouts on, the rest is not a usable sample.
const ALL: f64 = 0.999;
/// Minimum number of requests beyond a quantile, as in Proofload's own experiments.
const BEYOND: f64 = 10.0;
/// JSON has higher percentiles by default.
const JSON_PERCENT_MAX: f64 = 99.0;
/// Maximum relative deviation of connections / throughput from the latency to count as equal.
const LITTLE_WITHIN: f64 = 0.1;

/// Timeouts, the requests that include them, and their share. Some tools count a request that timed out,
/// others do not.
fn timeouts_of(run: &ToolRun) -> (u64, u64, f64) {
    let timeouts = run.failures.timeouts.unwrap_or(0);
    let requests = run.requests.unwrap_or(0);
    let all = match run.tool.row().counts_timeouts {
        true => requests.max(timeouts),
        false => requests.saturating_add(timeouts),
    };
    (timeouts, all, share(timeouts, all))
}

fn timed_out(words: String, timeouts: u64, share: f64) -> Evidence {
    Evidence::new(
        words,
        [
            ("timeouts", Quantity::count(timeouts)),
            ("timeout_share", Quantity::share(share)),
        ],
    )
}

/// Every request timed out, or the latencies are zeros.
pub fn never_measured(run: &ToolRun) -> Option<RunFinding> {
    let (timeouts, requests, share) = timeouts_of(run);
    let (all, zeros) = (
        timeouts > 0 && share >= ALL,
        run.latency.unmeasured && requests > 0,
    );
    let what = match timeouts {
        0 => format!("{} and no latency", many(requests, "request")),
        _ => format!(
            "{} of {} timed out",
            count(timeouts),
            many(requests, "request")
        ),
    };
    let printed = if run.latency.unmeasured {
        "; latency printed as 0 or nan"
    } else {
        ""
    };
    let seen = || timed_out(format!("{what}{printed}{}", wait(run)), timeouts, share);
    (all || zeros).then(|| (Grade::Invalid, seen()))
}

/// Some requests timed out, and are missing in the latencies.
pub fn timeouts(run: &ToolRun) -> Option<RunFinding> {
    let (timeouts, requests, share) = timeouts_of(run);
    if timeouts == 0 || share >= ALL || run.latency.unmeasured {
        return None;
    }
    let rest = count(requests.saturating_sub(timeouts));
    let rest = match share > 0.5 {
        true => format!("; what is printed is the latency of the other {rest}"),
        false => String::new(),
    };
    let part = Quantity::share(share);
    let words = format!(
        "{} of {} ({part}){rest}{}",
        count(timeouts),
        many(requests, "request"),
        wait(run)
    );
    Some((graded(share), timed_out(words, timeouts, share)))
}

/// The wait of each request if all connections always have one in flight (Little's law), if that is long.
fn wait(run: &ToolRun) -> String {
    let closed = run.is_closed_loop();
    match (run.connections_opened(), run.rate()) {
        (Some(connections), Some(rate)) if closed && connections as f64 / rate >= 1.0 => {
            let (rate, each) = (
                Quantity::per_s(rate),
                Quantity::seconds(connections as f64 / rate),
            );
            format!(
                "; {} at {rate} wait {each} each",
                many(connections, "connection")
            )
        }
        _ => String::new(),
    }
}

/// The handling of requests that exceed the tool's limit.
pub fn why(run: &ToolRun) -> &'static str {
    let usual = "What took longer than the tool's limit is in no percentile, so these look better than what users saw.";
    run.tool.row().late_responses.unwrap_or(usual)
}

/// Open loop: the tool could not keep the rate.
pub fn fell_behind(run: &ToolRun) -> Option<RunFinding> {
    if let Some(unsent) = run.unsent {
        let sent = run.requests.unwrap_or(0);
        let seen = evidence!("{unsent_requests} were not sent, beside {}", many(sent, "request");
            unsent_requests = Quantity::count(unsent));
        return (share(unsent, sent.saturating_add(unsent)) > 1.0 - KEPT_UP)
            .then_some((Grade::Invalid, seen));
    }
    let told = run.tool.row().pace == ToolPace::Responses;
    let (asked, rate) = (run.load.rate_per_s.filter(|_| told)?, run.rate()?);
    let seen = evidence!("{asked_per_s} requested, {done_per_s} done";
        asked_per_s = Quantity::per_s(asked), done_per_s = Quantity::per_s(rate));
    (rate < KEPT_UP * asked).then_some((Grade::Invalid, seen))
}

/// Too few requests for the highest quantile shown.
pub fn tail(run: &ToolRun) -> Option<RunFinding> {
    let all = run
        .responses()
        .filter(|responses| *responses > 0 && !run.latency.unmeasured)?;
    let told = |percent: f64| percent < 100.0 && !(run.json && percent > JSON_PERCENT_MAX);
    let shown = run
        .latency
        .quantiles
        .iter()
        .map(|one| one.percent)
        .filter(|percent| told(*percent));
    let highest = shown.fold(0.0, f64::max);
    let beyond = all as f64 * (100.0 - highest) / 100.0;
    if highest == 0.0 || beyond >= BEYOND {
        return None;
    }
    let wanted = (BEYOND / (1.0 - highest / 100.0)).round() as u64;
    let seen = evidence!("p{highest} is a matter of {} of {}; it takes {requests_wanted}", decimal(beyond, 1), many(all, "request");
        requests_wanted = Quantity::count(wanted));
    let named = [
        ("percent", Quantity::number(highest)),
        ("requests", Quantity::count(all)),
    ];
    Some((Grade::Warning, seen.with(named)))
}

/// Closed loop: the mean latency is just connections / throughput.
pub fn little(run: &ToolRun) -> Option<RunFinding> {
    if !run.is_closed_loop() {
        return None;
    }
    let (connections, rate, mean) = (run.connections_opened()?, run.rate()?, run.latency.mean_us?);
    let at_once = connections.saturating_mul(run.load.pipelining.unwrap_or(1).max(1));
    let little = at_once as f64 / rate * 1e6;
    if little <= 0.0 || (mean / little - 1.0).abs() > LITTLE_WITHIN {
        return None;
    }
    let seen = evidence!("{} / {} = {connections_over_rate_us}; printed: {mean_us}", count(at_once), Quantity::per_s(rate);
        connections_over_rate_us = Quantity::us(little), mean_us = Quantity::us(mean));
    Some((Grade::Warning, seen))
}
