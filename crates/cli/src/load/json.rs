//! The result as JSON: everything that was measured, each name with its unit.
//!
//! Names are an interface: they are added to, never changed.

use std::collections::BTreeMap;

use load::Until;
use serde::Serialize;
use stats::{Latencies, Quantile};

use super::outcome::{Outcome, QUANTILES};
use super::text::what;

/// The whole document.
#[derive(Debug, Serialize)]
struct Document<'a> {
    /// Version of this form.
    version: u32,
    /// Version of the program.
    proofload: &'static str,
    method: &'a str,
    url: &'a str,
    /// Address and port that were loaded.
    address: String,
    /// `closed`: each connection sends its next request when it has its answer. `open`: requests are due at a rate.
    #[serde(rename = "loop")]
    kind: &'static str,
    /// Null in closed loop.
    open: Option<Open<'a>>,
    connections: u32,
    threads: u32,
    /// What moved the bytes: `completion` (io_uring) or `readiness` (epoll).
    driver: &'static str,
    /// How long it should send; null where a count was the limit.
    asked_s: Option<f64>,
    /// How many requests it should send; null where time was the limit.
    asked_requests: Option<u64>,
    timeout_s: f64,
    /// A signal ended it early.
    interrupted: bool,
    /// Why there is nothing to measure; null where there is.
    void: Option<String>,
    /// First send allowed to sending stopped; with `asked_requests`, until the last one had ended.
    window_s: f64,
    /// Waiting for what was in flight then.
    drain_s: f64,
    /// Good answers in the window over its length.
    throughput_per_s: Option<f64>,
    /// Bytes received, heads included, for answers in the window over its length.
    transfer_bytes_per_s: Option<f64>,
    requests: Requests,
    bytes_wire: u64,
    bytes_body: u64,
    /// From intended (due) to done: what a user waits. Null in closed loop, where nothing is due.
    response: Option<Times<'a>>,
    /// From sent to done: service time.
    latency: Times<'a>,
    /// From sent to the first byte of the answer.
    first_byte: Times<'a>,
    /// Answers by status code.
    status: &'a BTreeMap<u16, u64>,
    errors: Vec<Error>,
    contract_failures: Vec<Failure<'a>>,
    /// Good answers in each 100 ms of the window; the last may be shorter.
    ok_per_100_ms: &'a [u32],
    connections_alive_start: u32,
    connections_alive_end: u32,
    connections_opened: u64,
    reconnects: u64,
    client: Vec<Thread>,
    caveats: Vec<String>,
    /// What the tool of `--as` would have done or shown otherwise; empty without one.
    differences: &'a [String],
}

/// The rate asked for, and what came of it. `intended = sent + unsent`, and `intended = schedule_lag.count + queued`.
#[derive(Debug, Serialize)]
struct Open<'a> {
    rate_per_s: f64,
    /// `constant` or `poisson`.
    arrivals: &'static str,
    /// Decides when requests are due if arrivals are random.
    seed: u64,
    /// Requests due in the window.
    intended: u64,
    sent_in_window: u64,
    /// `sent_in_window` over the window.
    sent_per_s: Option<f64>,
    /// `sent_in_window` over `intended`.
    sent_share: Option<f64>,
    /// Due, and never sent because no connection was free before the drain ended. Censored samples of `response`.
    unsent: u64,
    /// Found no connection free when they were due. Their wait is in `response`.
    queued: u64,
    /// From intended to sent where a connection was free: how late the client itself was.
    schedule_lag: Times<'a>,
}

/// `sent = answered + timed_out + broken + unfinished`.
#[derive(Debug, Serialize)]
struct Requests {
    sent: u64,
    answered: u64,
    answered_in_window: u64,
    ok: u64,
    ok_in_window: u64,
    timed_out: u64,
    broken: u64,
    unfinished: u64,
}

#[derive(Debug, Serialize)]
struct Times<'a> {
    count: u64,
    /// Samples known only to be at least so long: requests without a complete answer.
    censored: u64,
    /// Microseconds by quantile; null where there are too few samples.
    quantiles_us: BTreeMap<&'static str, Option<Bound>>,
    /// All samples in nanoseconds: HdrHistogram V2, compressed, base64.
    histogram_ns: &'a Latencies,
}

/// A quantile: its value, or what it is at least.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Bound {
    Exact(f64),
    AtLeast { at_least: f64 },
}

#[derive(Debug, Serialize)]
struct Error {
    phase: String,
    cause: String,
    count: u64,
}

#[derive(Debug, Serialize)]
struct Failure<'a> {
    what: String,
    count: u64,
    /// What came instead, the first time.
    example: &'a str,
}

/// One thread of the client over window and drain.
#[derive(Debug, Serialize)]
struct Thread {
    cpu_s: f64,
    wall_s: f64,
    /// Ready to run and without a core; null where the kernel does not say.
    run_delay_s: Option<f64>,
}

/// Renders a run.
///
/// # Errors
/// None that is known: every value has a form in JSON.
pub fn render(outcome: &Outcome) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(&document(outcome))? + "\n")
}

fn document(outcome: &Outcome) -> Document<'_> {
    let slice = &outcome.slice;
    let (asked_s, asked_requests) = match outcome.until {
        Until::Elapsed(duration) => (Some(duration.as_secs_f64()), None),
        Until::Requests(total) => (None, Some(total)),
    };
    Document {
        version: 1,
        proofload: env!("CARGO_PKG_VERSION"),
        method: &outcome.method,
        url: &outcome.url,
        address: outcome.address.to_string(),
        kind: if outcome.asked().is_some() { "open" } else { "closed" },
        open: open(outcome),
        connections: outcome.connections,
        threads: outcome.threads,
        driver: slice.driver,
        asked_s,
        asked_requests,
        timeout_s: outcome.timeout.as_secs_f64(),
        interrupted: outcome.interrupted,
        void: outcome.void(),
        window_s: in_seconds(slice.window_ns),
        drain_s: in_seconds(slice.drain_ns),
        throughput_per_s: outcome.throughput_per_s(),
        transfer_bytes_per_s: outcome.transfer_per_s(),
        requests: requests(outcome),
        bytes_wire: slice.bytes_wire,
        bytes_body: slice.bytes_body,
        response: outcome.asked().map(|_| times(&slice.response)),
        latency: times(&slice.latency),
        first_byte: times(&slice.first_byte),
        status: &slice.status,
        errors: errors(outcome),
        contract_failures: failures(outcome),
        ok_per_100_ms: &slice.buckets,
        connections_alive_start: slice.connections_alive_start,
        connections_alive_end: slice.connections_alive_end,
        connections_opened: slice.opened,
        reconnects: slice.reconnects,
        client: threads(outcome),
        caveats: outcome.caveats(),
        differences: &outcome.differences,
    }
}

fn open(outcome: &Outcome) -> Option<Open<'_>> {
    let (asked, slice) = (outcome.asked()?, &outcome.slice);
    Some(Open {
        rate_per_s: asked.rate_per_s,
        arrivals: asked.process(),
        seed: asked.seed,
        intended: slice.intended,
        sent_in_window: slice.sent_in_window,
        sent_per_s: outcome.sent_per_s(),
        sent_share: outcome.sent_share(),
        unsent: slice.unsent,
        queued: slice.queued,
        schedule_lag: times(&slice.schedule_lag),
    })
}

fn requests(outcome: &Outcome) -> Requests {
    let slice = &outcome.slice;
    Requests {
        sent: slice.sent,
        answered: slice.answered,
        answered_in_window: slice.answered_in_window,
        ok: slice.ok,
        ok_in_window: slice.ok_in_window,
        timed_out: slice.timed_out,
        broken: slice.broken,
        unfinished: slice.unfinished,
    }
}

fn times(latencies: &Latencies) -> Times<'_> {
    let bound = |q: f64| {
        let quantile = latencies.quantile(q).filter(|_| q == 1.0 || latencies.resolves(q))?;
        let us = quantile.ns() as f64 / 1e3;
        Some(match quantile {
            Quantile::Exact(_) => Bound::Exact(us),
            Quantile::AtLeast(_) => Bound::AtLeast { at_least: us },
        })
    };
    Times {
        count: latencies.count(),
        censored: latencies.censored(),
        quantiles_us: QUANTILES.into_iter().chain([("max", 1.0)]).map(|(name, q)| (name, bound(q))).collect(),
        histogram_ns: latencies,
    }
}

fn errors(outcome: &Outcome) -> Vec<Error> {
    let error = |error: &load::ErrorCount| Error {
        phase: error.phase.to_string(),
        cause: error.cause.to_string(),
        count: error.count,
    };
    outcome.slice.errors.iter().map(error).collect()
}

fn failures(outcome: &Outcome) -> Vec<Failure<'_>> {
    let failures = outcome.slice.contract_failures.iter();
    failures.map(|f| Failure { what: what(&f.kind), count: f.count, example: &f.example }).collect()
}

fn threads(outcome: &Outcome) -> Vec<Thread> {
    let slice = &outcome.slice;
    let times = slice.thread_cpu_ns.iter().zip(&slice.thread_wall_ns).zip(&slice.thread_run_delay_ns);
    let thread = |((cpu, wall), delay): ((&u64, &u64), &Option<u64>)| Thread {
        cpu_s: in_seconds(*cpu),
        wall_s: in_seconds(*wall),
        run_delay_s: delay.map(in_seconds),
    };
    times.map(thread).collect()
}

fn in_seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
