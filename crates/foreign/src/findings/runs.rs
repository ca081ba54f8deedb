//! Checks of a single run: what the tool really sent, for how long, and whether its output is complete.
//! Failures that the figures include or omit. This module does not compare runs.

use model::quantity::{count, many, rate, span};
use model::{Evidence, Grade, Quantity, evidence};

use super::{RunFinding, graded, share};
use crate::run::{ToolRun, parts};
use crate::tools::{Divides, RateOf};

/// A runtime compiles and caches fill during the first seconds. Proofload's own warm-ups take 2 to 6 s.
const SECONDS_MIN: f64 = 10.0;
/// Requests per connection below which most of a run is its start and its end.
const REQUESTS_PER_CONNECTION_MIN: f64 = 5.0;
/// Maximum relative deviation of requests / seconds from the printed rate.
const CONTRADICTION: f64 = 0.1;
/// A duration this many times that asked for is an error. hey waits 20 s for the last responses.
const LENGTH_FACTOR: f64 = 100.0;
/// Maximum deviation of a printed share of successes with two decimals in percent.
const SUCCESS_WITHIN: f64 = 0.0002;

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
    let asked = run.load.requests.filter(|_| run.command.is_some());
    let all = run.requests.or(asked).filter(|requests| *requests > 0)?;
    // A missing line may say that connections were kept, but not if the command did not ask for it.
    let whole = (!run.truncated || run.command.is_some()) && run.abort.is_none();
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
    if let Some(seen) = sent_beyond_answered(run).or_else(|| other_success(run)) {
        return Some(seen);
    }
    let of_all = matches!(run.tool.row().rate_of, RateOf::Requests | RateOf::Responses);
    if let Some(seen) = other_length(run) {
        return Some(seen);
    }
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

/// A run that took far longer than asked for: its clock, or its duration, is wrong.
fn other_length(run: &ToolRun) -> Option<RunFinding> {
    let (took, asked) = (run.duration_s?, run.load.duration_s?);
    if asked < 1.0 || took < LENGTH_FACTOR * asked {
        return None;
    }
    let times = count((took / asked).min(1e15) as u64);
    let seen = evidence!("the run was to take {asked_s}, and took {times} times as long by its own output";
        asked_s = Quantity::seconds(asked));
    Some((Grade::Warning, seen))
}

/// Far more requests were sent than the rate of responses allows for.
fn sent_beyond_answered(run: &ToolRun) -> Option<RunFinding> {
    let (sent, seconds) = (run.sent?, run.duration_s?);
    let answered = run.requests_per_s? * seconds;
    // Failures have their own finding.
    let lost = (sent as f64) - answered - run.failures.total() as f64;
    let in_flight = run.connections_opened().unwrap_or(0) * run.load.pipelining.unwrap_or(1).max(1);
    if answered <= 0.0 || lost < answered || lost < 2.0 * in_flight as f64 {
        return None;
    }
    let seen = evidence!("{sent} sent; {} for {} are {answered_responses} answered",
        Quantity::per_s(run.requests_per_s?), span(seconds);
        sent = Quantity::count(sent), answered_responses = Quantity::count(answered.round() as u64));
    Some((Grade::Invalid, seen))
}

/// The printed share of successes, within its rounding, is that of the counts.
fn other_success(run: &ToolRun) -> Option<RunFinding> {
    let (printed, all) = (run.success_share?, run.attempts().filter(|all| *all > 0)?);
    let counted = 1.0 - share(run.failures.total(), all);
    if (printed - counted).abs() <= SUCCESS_WITHIN {
        return None;
    }
    let seen = evidence!("{printed_share} succeeded as printed; by the counts {counted_share}";
        printed_share = Quantity::share(printed), counted_share = Quantity::share(counted));
    Some((Grade::Warning, seen))
}

/// Lines of the tool without figures here.
pub fn not_understood(run: &ToolRun) -> Option<RunFinding> {
    let first = run.unread.first()?;
    let more = match run.unread.len() {
        1 => String::new(),
        all => format!(", and {} more", all - 1),
    };
    let words = format!("line {}: `{}`{more}", first.line, first.text);
    let figures = [("lines", Quantity::count(run.unread.len() as u64))];
    Some((Grade::Warning, Evidence::new(words, figures)))
}

/// The tool's own verdict.
pub fn own_warning(run: &ToolRun) -> Option<RunFinding> {
    let words = run.warnings.join("; ");
    (!run.warnings.is_empty()).then(|| (Grade::Warning, words.into()))
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
    let named = |host: &str| host.ends_with(".localhost");
    // The port is irrelevant here, and a bracket belongs to an IPv6 address.
    let host = host
        .rsplit_once(':')
        .filter(|(_, port)| !port.ends_with(']'))
        .map_or(host, |(host, _)| host);
    (local || named(host)).then(|| (Grade::Note, host.into()))
}

/// Error responses counted as requests, and requests without a response if the tool counts these too.
pub fn statuses(run: &ToolRun) -> Option<RunFinding> {
    let (of, counts_all) = (&run.failures, run.tool.row().rate_of == RateOf::Requests);
    let bad = if counts_all { of.total() } else { of.status? };
    if bad == 0 {
        return None;
    }
    let noun = if counts_all { "request" } else { "response" };
    let counted = || Some((run.rate()? * run.seconds()?).round() as u64);
    let all = if counts_all {
        run.attempts()
    } else {
        run.responses()
    };
    let Some(requests) = all.or_else(counted).filter(|all| *all >= bad) else {
        // The whole is not known, and is never the failures themselves.
        let seen = evidence!("{failed} {noun}s"; failed = Quantity::count(bad));
        return Some((Grade::Warning, seen));
    };
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
    let within = run.tool.row().failures_within;
    let nothing = within && (run.requests <= Some(all) || run.requests_per_s == Some(0.0));
    let part = match run.requests {
        Some(requests) if within && !nothing => share(all, requests),
        Some(requests) if !within => share(all, requests.saturating_add(all)),
        Some(_) | None => 1.0,
    };
    let told = Quantity::share(part);
    let beside = |requests: u64| match (nothing, within) {
        (true, _) => format!(": not one of {} was answered", many(requests, "request")),
        (false, true) => format!(" of {} ({told})", many(requests, "request")),
        (false, false) => format!(" beside {} ({told})", many(requests, "request")),
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
