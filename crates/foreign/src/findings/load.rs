//! What a tool really sent, for how long, and whether its output is whole. It must not compare runs.

use super::{About, Finding, Grade, Seen, above, cases, finding, graded};
use crate::figure::{count, digits, many, seconds, share as percent};
use crate::run::Run;
use crate::tools::{Divides, Pace, RateOf};

/// A runtime compiles and caches fill during the first seconds: Proofload's own warm-ups take 2 to 6 s.
const SECONDS_MIN: f64 = 10.0;
/// Requests a connection, below which most of a run is its start and its end.
const REQUESTS_PER_CONNECTION_MIN: f64 = 5.0;
/// How far requests / seconds may be from the rate that is printed.
const CONTRADICTION: f64 = 0.1;

/// The tool ended before its time.
pub fn gave_up(runs: &[Run]) -> Option<Finding> {
    let cases = cases(runs, |run| {
        let why = run.abort.as_ref()?;
        let after =
            run.requests.map(|requests| format!(" after {}", many(requests, "request"))).unwrap_or_default();
        Seen::new(format!("{why}{after}"), [("requests", run.requests.unwrap_or(0) as f64)])
    });
    finding(
        "gave_up",
        (Grade::Void, About::Run),
        cases,
        "the tool gave up: there is no result",
        "ab ends at the first reset unless it is told not to (-r). That another side was not reset is no result either: it tells \
         of one moment, and of a backlog, not of speed. See `ss -ltn` (Send-Q is the backlog) and the service's log.",
    )
}

/// Fewer requests than connections.
pub fn start_up(runs: &[Run]) -> Vec<Finding> {
    let cases = cases(runs, |run| {
        let (requests, connections) =
            (run.requests?, run.connections_opened().filter(|connections| *connections > 0)?);
        let open = run.is_open_loop() || run.tool.facts().pace == Pace::Rate || run.abort.is_some();
        let each = requests as f64 / connections as f64;
        if open || run.rounded || requests == 0 || each >= REQUESTS_PER_CONNECTION_MIN {
            return None;
        }
        let evidence =
            format!("{} on {}: {each:.1} each", many(requests, "request"), many(connections, "connection"));
        Seen::new(evidence, [("requests_per_connection", each)])
    });
    let remedy = "Requests that were under way at the end are not counted, and the first ones met an idle service. Take fewer connections, \
                  or run many times longer.";
    let text = ("few requests for so many connections: the run was all start and end", remedy);
    graded("start_up", About::Run, cases, |case| !above(case, "requests_per_connection", 1.0), text)
}

/// Too short to be past the start.
pub fn short(runs: &[Run]) -> Option<Finding> {
    let cases = cases(runs, |run| {
        let length = run.seconds().filter(|length| *length < SECONDS_MIN * 0.98 && run.abort.is_none())?;
        let requests =
            run.requests.map(|requests| format!(", {}", many(requests, "request"))).unwrap_or_default();
        Seen::new(format!("{}{requests}", seconds(length)), [("duration_s", length)])
    });
    finding(
        "short",
        (Grade::Warning, About::Run),
        cases,
        format!("runs shorter than {SECONDS_MIN:.0} s"),
        "A runtime that compiles while it runs is slower in its first seconds; so is whatever fills a cache. Warm up first, and \
         leave that out.",
    )
}

/// wrk opens the same number of connections on each thread, hey the same number of requests on each connection.
pub fn uneven(runs: &[Run]) -> Option<Finding> {
    let cases = cases(runs, |run| match run.tool.facts().divides {
        Divides::ConnectionsByThreads => {
            let (connections, threads) =
                (run.load.connections?, run.load.threads.filter(|threads| *threads > 0)?);
            let opened = connections / threads * threads;
            let evidence = format!(
                "{} opened, not {}: {threads} threads with {} each",
                count(opened),
                count(connections),
                count(connections / threads)
            );
            if opened == connections {
                None
            } else {
                Seen::new(evidence, [("opened", opened as f64), ("asked", connections as f64)])
            }
        }
        Divides::RequestsByConnections => {
            let (asked, clients) = (run.load.requests?, run.load.connections.filter(|clients| *clients > 0)?);
            let sent = asked / clients * clients;
            let evidence = format!(
                "{} sent, not {}: {clients} connections with {} each",
                count(sent),
                count(asked),
                count(asked / clients)
            );
            if sent == asked {
                None
            } else {
                Seen::new(evidence, [("sent", sent as f64), ("asked", asked as f64)])
            }
        }
        Divides::Nothing => None,
    });
    finding(
        "uneven",
        (Grade::Note, About::Run),
        cases,
        "the numbers do not divide, and the tool did less than it says",
        "Take a number of connections that the threads divide, and of requests that the connections divide.",
    )
}

/// ab opens a connection for each request, unless told not to and the service agrees.
pub fn new_connections(runs: &[Run]) -> Option<Finding> {
    let cases = cases(runs, |run| {
        let asked_to_close = run.load.keep_alive == Some(false);
        let requests = run.requests.filter(|requests| *requests > 0)?;
        let whole = !run.truncated && run.abort.is_none();
        match (run.tool.facts().http_1_0, run.keep_alive_requests) {
            (true, None) if whole && run.load.keep_alive != Some(true) => Seen::new(
                format!("{} for {}", many(requests, "connection"), many(requests, "request")),
                [("kept", 0.0)],
            ),
            (true, Some(kept)) if (kept as f64) < 0.9 * requests as f64 => {
                let evidence = format!("asked to be kept, {} of {} were", count(kept), count(requests));
                Seen::new(evidence, [("kept", kept as f64)])
            }
            (false, _) if asked_to_close => Seen::new("as asked for".to_owned(), [("kept", 0.0)]),
            _ => None,
        }
    });
    finding(
        "new_connections",
        (Grade::Warning, About::Throughput),
        cases,
        "each request opened a connection of its own",
        "Opening and closing is then part of every request: much of it where answers are quick, little where they take long. ab \
         keeps connections with -k, and only where the service answers HTTP/1.0 with a Content-Length.",
    )
}

/// ab's protocol.
pub fn http_1_0(runs: &[Run]) -> Option<Finding> {
    let cases =
        cases(runs, |run| if run.tool.facts().http_1_0 { Seen::new(String::new(), []) } else { None });
    finding(
        "http_1_0",
        (Grade::Note, About::Run),
        cases,
        "ab speaks HTTP/1.0, which no browser does",
        "A service may answer it otherwise: without chunks, without compression, closing the connection. ab also has one thread, \
         and may be the limit itself.",
    )
}

/// Requests, seconds and rate that do not go together.
pub fn contradicting(runs: &[Run]) -> Option<Finding> {
    let cases = cases(runs, |run| {
        let own = run.tool.facts().rate_of != RateOf::Responses;
        let exact = !run.rounded && !own && run.abort.is_none();
        let (requests, length) =
            (run.requests.filter(|_| exact)?, run.duration_s.filter(|length| *length > 0.0)?);
        let printed = run.requests_per_s.filter(|rate| *rate > 0.0)?;
        let counted = requests as f64 / length;
        // What a tool prints with two digits after the comma may be off by one of them.
        let off = (counted / printed - 1.0).abs();
        if off <= CONTRADICTION || length < 0.1 {
            return None;
        }
        let evidence = format!(
            "{} in {} are {}/s; printed: {}/s ({} apart)",
            many(requests, "request"),
            seconds(length),
            digits(counted),
            digits(printed),
            percent(off)
        );
        Seen::new(evidence, [("counted_per_s", counted), ("printed_per_s", printed)])
    });
    finding(
        "contradiction",
        (Grade::Warning, About::Run),
        cases,
        "figures of one run contradict each other",
        "Something was lost or changed in copying, or lines of two runs were mixed. Compare with the original.",
    )
}

/// Output that is not whole.
pub fn cut_off(runs: &[Run]) -> Option<Finding> {
    let cases = cases(runs, |run| {
        let what = if run.has_figures() { "ends too early" } else { "no figures" };
        if run.truncated && run.abort.is_none() { Seen::new(what.to_owned(), []) } else { None }
    });
    finding(
        "cut_off",
        (Grade::Warning, About::Run),
        cases,
        "the output is not whole",
        "It was stopped, or a part of it was left out. What failed may stand in the missing lines.",
    )
}

/// Client and service on one machine.
pub fn same_machine(runs: &[Run]) -> Option<Finding> {
    let cases = cases(runs, |run| {
        let url = run.url.as_ref()?;
        let host = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
        let local = ["127.", "localhost", "[::1]", "0.0.0.0"].iter().any(|start| host.starts_with(start));
        // The port tells nothing here, and a bracket belongs to an address of version 6.
        let host = host.split('/').next().unwrap_or_default();
        let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
        if local { Seen::new(host.to_owned(), []) } else { None }
    });
    finding(
        "same_machine",
        (Grade::Note, About::Throughput),
        cases,
        "client and service shared a machine",
        "What the client burns is taken from the service, and the faster side pays more of it. Give each processors of its own \
         (taskset), or at least know what the client used.",
    )
}
