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
        driver: &slice.generator.driver,
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
        bytes_wire: slice.wire_bytes,
        bytes_body: slice.body_bytes,
        response: slice.open.as_ref().map(|open| times(&open.response)),
        latency: times(&slice.latency),
        first_byte: times(&slice.first_byte),
        connect: times(&slice.connect),
        handshake: times(&slice.handshake),
        tls_resumed: slice.tls_resumed,
        sampled: outcome.sampled(),
        endpoints: detail::endpoints(outcome),
        status: &slice.status,
        errors: errors(outcome),
        contract_failures: failures(outcome),
        ok_per_100_ms: &slice.successful_per_100_ms,
        connections_alive_start: slice.connections_alive_at_start,
        connections_alive_end: slice.connections_alive,
        connections_opened: slice.connections_opened,
        reconnects: slice.reconnects,
        client: threads(outcome),
        caveats: outcome.caveats(),
        differences: &outcome.differences,
    }
}

fn open(outcome: &Outcome) -> Option<Open<'_>> {
    let (asked, open) = (outcome.asked()?, outcome.slice.open.as_ref()?);
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
        intended: open.intended,
        sent_in_window: open.sent_in_window,
        sent_per_s: outcome.sent_per_s(),
        sent_share: outcome.sent_share(),
        unsent: open.unsent,
        queued: open.queued,
        schedule_lag: times(&open.schedule_lag),
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
        answered: slice.responses,
        answered_in_window: slice.responses_in_window,
        ok: slice.successful,
        ok_in_window: slice.successful_in_window,
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
    let error = |error: &model::ErrorCount| Error {
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
    let used = &outcome.slice.generator;
    let times = used.cpu_ns.iter().zip(&used.wall_ns).enumerate();
    let thread = |(index, (cpu, wall)): (usize, (&u64, &u64))| Thread {
        cpu_s: in_seconds(*cpu),
        wall_s: in_seconds(*wall),
        run_delay_s: used.run_delay_ns.get(index).copied().map(in_seconds),
    };
    times.map(thread).collect()
}

fn in_seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
