//! The result as JSON: everything that was measured, each name with its unit.
//!
//! `form` has the names; this fills them in.

mod detail;
mod form;

use load::{Rate, Until};
use stats::{Latencies, Quantile};

use form::{Body, Bound, Capacity, Error, Failure, One, Open, Ramp, Requests, Steps, Stretch, Thread, Times};

use super::kept::{self, Bend, Kept};
use super::outcome::{Outcome, QUANTILES};
use super::rate::Ask;
use super::series::Series;
use super::text::what;

const VERSION: u32 = 1;
const PROOFLOAD: &str = env!("CARGO_PKG_VERSION");

/// Renders a run.
///
/// # Errors
/// None that is known: every value has a form in JSON.
pub fn render(series: &Series) -> serde_json::Result<String> {
    let document = match series.only() {
        Some(only) => serde_json::to_string_pretty(&one(series, only)),
        None => serde_json::to_string_pretty(&steps(series)),
    };
    Ok(document? + "\n")
}

fn one<'a>(series: &'a Series, only: &'a Outcome) -> One<'a> {
    let mut body = body(only);
    body.caveats.extend(series.caveats());
    One { version: VERSION, proofload: PROOFLOAD, body, capacity: capacity(series) }
}

fn steps(series: &Series) -> Steps<'_> {
    Steps {
        version: VERSION,
        proofload: PROOFLOAD,
        interrupted: series.interrupted,
        void: series.void(),
        capacity: capacity(series),
        asked_steps: series.planned,
        steps: series.steps.iter().map(body).collect(),
        caveats: series.caveats(),
    }
}

fn capacity(series: &Series) -> Option<Capacity<'_>> {
    let capacity = series.capacity.as_ref()?;
    Some(Capacity { warmup_s: capacity.warmup.as_secs_f64(), body: body(&capacity.outcome) })
}

fn body(outcome: &Outcome) -> Body<'_> {
    let slice = &outcome.slice;
    let (asked_s, asked_requests) = match outcome.until {
        Until::Elapsed(duration) => (Some(duration.as_secs_f64()), None),
        Until::Requests(total) => (None, Some(total)),
    };
    Body {
        method: Some(outcome.method.as_str()).filter(|_| outcome.setup.mix.is_none()),
        url: &outcome.url,
        address: outcome.address.to_string(),
        kind: if outcome.asked().is_some() { "open" } else { "closed" },
        open: open(outcome),
        setup: detail::setup(outcome),
        connections: outcome.connections,
        threads: outcome.threads,
        driver: &slice.driver,
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
        connect: times(&slice.connect),
        handshake: times(&slice.handshake),
        tls_resumed: slice.resumed,
        sampled: outcome.sampled(),
        endpoints: detail::endpoints(outcome),
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
        rate_per_s: match asked.rate {
            Rate::Constant(per_s) => Some(per_s),
            Rate::Ramp { .. } => None,
        },
        share_of_capacity: outcome.ask.and_then(Ask::share),
        verdict: outcome.kept().map(Kept::name),
        ramp: ramp(outcome),
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

fn ramp(outcome: &Outcome) -> Option<Ramp> {
    let Rate::Ramp { from_per_s, to_per_s, over } = outcome.asked()?.rate else { return None };
    let Ask::Ramp(from, to) = outcome.ask? else { return None };
    let (kept_up_to_per_s, bent) = match outcome.bend() {
        Some(Bend::At(per_s)) => (Some(per_s), Some(true)),
        Some(Bend::Perhaps(per_s)) => (Some(per_s), None),
        Some(Bend::NotUpTo(per_s)) => (Some(per_s), Some(false)),
        Some(Bend::AtLowest(_)) => (None, Some(true)),
        Some(Bend::Uneven { .. }) | None => (None, None),
    };
    Some(Ramp {
        from_per_s,
        to_per_s,
        over_s: over.as_secs_f64(),
        from_share_of_capacity: from.share(),
        to_share_of_capacity: to.share(),
        stretches: outcome.stretches().iter().map(stretch).collect(),
        kept_up_to_per_s,
        bent,
    })
}

fn stretch(stretch: &kept::Stretch) -> Stretch {
    let (due_per_s, ok_per_s) = (stretch.due_per_s(), stretch.ok_per_s());
    Stretch { from_s: stretch.from_s, to_s: stretch.to_s, due_per_s, ok_per_s, kept_up: stretch.kept }
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
