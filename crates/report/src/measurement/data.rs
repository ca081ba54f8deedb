//! A measurement as JSON: all measured values, with units in the names. A single slice has its values at the
//! top level, several are in `steps`. Names are an interface: they are added, never changed.

use analysis::measurement::{Bend, RateKept};
use analysis::{Finding, MeasuredWindow, Measurement};
use model::{Ask, AskedOpen, EndpointCounts, Protocol, RateLevel, Until};
use serde_json::{Map, Value, json};
use stats::Latencies;

use super::{LoadedRecord, QUANTILES, shown};
use crate::csv::{self, CsvRows};
use crate::experiment::INVALID;

/// The document of a measurement.
pub(crate) fn data(of: &LoadedRecord<'_>) -> Value {
    let measured = &of.of;
    let warmup = of
        .measured
        .record
        .header
        .plan
        .measure
        .as_ref()
        .and_then(plan::Measure::capacity);
    let capacity = measured.capacity.as_ref().map(|window| {
        let mut capacity = body(of, window);
        capacity.insert(
            "warmup_s".to_owned(),
            json!(warmup.map(|(warmup, _)| warmup.as_secs_f64())),
        );
        capacity
    });
    let findings = &of.measured.conclusion.findings;
    let mut document = object(json!({
        "version": 1,
        "proofload": of.measured.record.header.proofload,
        "capacity": capacity,
        "findings": findings,
    }));
    match measured.only() {
        Some(only) => document.extend(body(of, only)),
        None => {
            let steps: Vec<_> = measured
                .windows
                .iter()
                .map(|window| body(of, window))
                .collect();
            document.extend(object(
                json!({ "asked_steps": measured.planned, "steps": steps }),
            ));
        }
    }
    // Totals, replacing a single slice's values with the same names.
    document.extend(object(json!({
        "interrupted": measured.interrupted,
        "void": measured.void().map(|finding| finding.evidence.as_str()),
        "caveats": caveats(findings.iter().chain(&measured.findings), of.notes()),
    })));
    document.into()
}

fn object(value: Value) -> Map<String, Value> {
    if let Value::Object(object) = value {
        object
    } else {
        Map::new()
    }
}

/// Caveats for the reader, as sentences.
fn caveats<'a>(findings: impl Iterator<Item = &'a Finding>, notes: Vec<String>) -> Vec<String> {
    let told = findings.map(|finding| match finding.remedy.is_empty() {
        true => finding.evidence.to_string(),
        false => format!("{}: {}", finding.evidence, finding.remedy),
    });
    told.chain(notes).collect()
}

fn body(of: &LoadedRecord<'_>, window: &MeasuredWindow<'_>) -> Map<String, Value> {
    let counts = &window.slice.counts;
    let (asked_s, asked_requests) = match window.asked.until {
        Until::Elapsed(length) => (Some(length.as_secs_f64()), None),
        Until::Requests(total) => (None, Some(total)),
    };
    let (sampled, void) = (window.sampled(), window.void().or(of.of.void()));
    let mut body = setup(of);
    body.extend(object(json!({
        "loop": if window.asked.open.is_some() { "open" } else { "closed" },
        "open": open(window),
        "connections": window.slice.connections,
        "threads": counts.generator.wall_ns.len(),
        "driver": counts.generator.driver,
        "asked_s": asked_s,
        "asked_requests": asked_requests,
        "interrupted": window.interrupted,
        "void": void.map(|finding| finding.evidence.as_str()),
        "window_s": in_seconds(counts.window_ns),
        "drain_s": in_seconds(counts.drain_ns),
        "throughput_per_s": window.throughput_per_s().filter(|_| void.is_none()),
        "transfer_bytes_per_s": window.transfer_per_s(),
        "requests": {
            "sent": counts.sent,
            "answered": counts.responses,
            "answered_in_window": counts.responses_in_window,
            "ok": counts.successful,
            "ok_in_window": counts.successful_in_window,
            "timed_out": counts.timed_out,
            "broken": counts.broken,
            "unfinished": counts.unfinished,
            "log_ins": counts.log_ins,
        },
        "bytes_wire": counts.wire_bytes,
        "bytes_body": counts.body_bytes,
        "sampled": {
            "count": sampled.count,
            "encoded_bytes": sampled.encoded_bytes,
            "decoded_bytes": sampled.decoded_bytes,
            "different": sampled.different,
        },
        "endpoints": counts.endpoints.iter().map(|one| endpoint(window, one)).collect::<Vec<_>>(),
        "status": counts.status,
        "errors": counts.errors,
        "contract_failures": counts.contract_failures.iter()
            .map(|failure| json!({ "what": failure.kind.to_string(), "count": failure.count, "example": failure.example }))
            .collect::<Vec<_>>(),
        "ok_per_100_ms": counts.successful_per_100_ms,
        "connections_alive_start": counts.connections_alive_at_start,
        "connections_alive_end": counts.connections_alive,
        "connections_opened": counts.connections_opened,
        "reconnects": counts.reconnects,
        "tls_resumed": counts.tls_resumed,
        "client": threads(window),
        "services_cpu_s": in_seconds(window.slice.services_cpu_ns()),
        "caveats": caveats(window.findings.iter(), Vec::new()),
        "differences": of.measured.differences,
        "response": counts.open.as_ref().map(|open| times(&open.response)),
        "latency": times(&counts.latency),
        "first_byte": times(&counts.first_byte),
        "connect": times(&counts.connect),
        "handshake": times(&counts.handshake),
    })));
    body
}

/// How the service was reached, and the protocol.
fn setup(of: &LoadedRecord<'_>) -> Map<String, Value> {
    let (record, load) = (of.measured.record, &of.variant.load);
    let only = load.requests.first().filter(|_| !load.is_mix());
    let trial = record
        .blocks
        .iter()
        .flat_map(|block| &block.trials)
        .next_back();
    let tls_error = || {
        trial?
            .slices
            .iter()
            .find_map(|slice| slice.counts.tls_error.as_ref())
    };
    object(json!({
        "method": only.map(|request| &request.method),
        "url": url(of, only.map(|request| request.path.as_str())),
        "address": trial.and_then(|trial| Some(&trial.started.deployed.as_ref()?.address)),
        "mix": only.is_none().then(|| load.title()),
        "protocol": match load.protocol {
            Protocol::Http1 { .. } => "HTTP/1.1",
            Protocol::Http2 { .. } => "HTTP/2",
        },
        "requests_per_connection": load.protocol.lanes(),
        "keep_alive": load.keep_alive,
        "tls": load.tls.as_ref().map(|tls| json!({
            "server_name": tls.server_name,
            "checked": !tls.insecure,
            "resumption": tls.resumption,
            "error": tls_error(),
        })),
        "sources": load.sources,
        "request_seed": record.header.seed,
        "sample_every": load.sample_every,
        "timeout_s": load.timeout.as_secs_f64(),
    }))
}

/// The target. For a started service its name and path.
fn url(of: &LoadedRecord<'_>, path: Option<&str>) -> Option<String> {
    let entry = of.variant.entry_service()?;
    let origin = entry
        .url()
        .map_or_else(|| entry.name.clone(), plan::Url::origin);
    Some(origin + path.unwrap_or_default())
}

fn open(window: &MeasuredWindow<'_>) -> Option<Value> {
    let (asked, open) = (window.asked.open?, window.slice.counts.open.as_ref()?);
    Some(json!({
        "rate_per_s": asked.rate.constant_per_s(),
        "share_of_capacity": asked.ask.share(),
        "verdict": window.kept().map(RateKept::name),
        "ramp": ramp(window, asked),
        "arrivals": asked.process.name(),
        "seed": asked.seed,
        "intended": open.intended,
        "sent_in_window": open.sent_in_window,
        "sent_per_s": window.per_s(open.sent_in_window),
        "sent_share": open.sent_share(),
        "unsent": open.unsent,
        "queued": open.queued,
        "schedule_lag": times(&open.schedule_lag),
    }))
}

fn ramp(window: &MeasuredWindow<'_>, asked: AskedOpen) -> Option<Value> {
    let (from_per_s, to_per_s, over) = asked.rate.ramp()?;
    let (from, to) = match asked.ask {
        Ask::Ramp(from, to) => (RateLevel::share(from), RateLevel::share(to)),
        Ask::At(_) => (None, None),
    };
    let (kept_up_to_per_s, bent) = match window.bend() {
        Some(Bend::At(per_s)) => (Some(per_s), Some(true)),
        Some(Bend::Perhaps(per_s)) => (Some(per_s), None),
        Some(Bend::NotUpTo(per_s)) => (Some(per_s), Some(false)),
        Some(Bend::AtLowest(_)) => (None, Some(true)),
        Some(Bend::Uneven { .. }) | None => (None, None),
    };
    let stretch = |of: &analysis::measurement::WindowPart| {
        json!({
            "from_s": of.from_s,
            "to_s": of.to_s,
            "due_per_s": of.due_per_s(),
            "ok_per_s": of.ok_per_s(),
            "kept_up": of.kept,
        })
    };
    Some(json!({
        "from_per_s": from_per_s,
        "to_per_s": to_per_s,
        "over_s": over.as_secs_f64(),
        "from_share_of_capacity": from,
        "to_share_of_capacity": to,
        "stretches": window.stretches().iter().map(stretch).collect::<Vec<_>>(),
        "kept_up_to_per_s": kept_up_to_per_s,
        "bent": bent,
    }))
}

fn endpoint(window: &MeasuredWindow<'_>, of: &EndpointCounts) -> Value {
    let outcomes = of.outcomes.iter().map(|ended| {
        json!({
            "status": ended.status,
            "response": window.asked.open.map(|_| times(&ended.response)),
            "latency": times(&ended.latency),
        })
    });
    json!({
        "name": of.name,
        "sent": of.sent,
        "ok": of.successful,
        "ok_in_window": of.successful_in_window,
        "throughput_per_s": window.per_s(of.successful_in_window),
        "bytes_body": of.body_bytes,
        "outcomes": outcomes.collect::<Vec<_>>(),
        "contents": of.contents,
    })
}

/// Microseconds by quantile, null with too few samples. Also all samples: HdrHistogram V2, compressed,
/// base64.
fn times(latencies: &Latencies) -> Value {
    let bound = |q: f64| {
        let quantile = super::shown(latencies, q)?;
        let us = quantile.ns() as f64 / 1e3;
        Some(if quantile.is_exact() {
            json!(us)
        } else {
            json!({ "at_least": us })
        })
    };
    let quantiles: Map<String, Value> = QUANTILES
        .iter()
        .map(|(name, q)| ((*name).to_owned(), json!(bound(*q))))
        .collect();
    json!({
        "count": latencies.count(),
        "censored": latencies.censored(),
        "quantiles_us": quantiles,
        "histogram_ns": latencies,
    })
}

/// Each thread of the client over window and drain.
fn threads(window: &MeasuredWindow<'_>) -> Vec<Value> {
    let used = &window.slice.counts.generator;
    let times = used.cpu_ns.iter().zip(&used.wall_ns).enumerate();
    let thread = |(index, (cpu, wall)): (usize, (&u64, &u64))| {
        json!({
            "cpu_s": in_seconds(*cpu),
            "wall_s": in_seconds(*wall),
            "run_delay_s": used.run_delay_ns.get(index).copied().map(in_seconds),
        })
    };
    times.map(thread).collect()
}

fn in_seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// One row for each slice and figure.
pub(super) fn figures(measured: &Measurement<'_>) -> CsvRows {
    let mut rows = vec![
        ["slice", "metric", "unit", "value", INVALID]
            .map(str::to_owned)
            .to_vec(),
    ];
    for window in measured.capacity.iter().chain(&measured.windows) {
        let counts = &window.slice.counts;
        let invalid = Finding::voiding(&window.findings, 0);
        let latencies = counts
            .open
            .as_ref()
            .map_or(&counts.latency, |open| &open.response);
        // A bound is not a value.
        let exact = |q| {
            shown(latencies, q)
                .filter(|of| of.is_exact())
                .map(|of| of.ns() as f64 / 1e3)
        };
        let amounts = [
            ("throughput", "1/s", window.throughput_per_s()),
            ("due", "1", Some(counts.due() as f64)),
            ("sent", "1", Some(counts.sent as f64)),
            ("successful", "1", Some(counts.successful as f64)),
            ("failed", "1", Some(counts.failed() as f64)),
        ];
        let all = amounts
            .into_iter()
            .chain(QUANTILES.map(|(name, q)| (name, "us", exact(q))));
        rows.extend(all.map(|(metric, unit, value)| {
            let (metric, unit) = (metric.to_owned(), unit.to_owned());
            vec![
                csv::name(&window.name),
                metric,
                unit,
                csv::figure(value),
                invalid.clone(),
            ]
        }));
    }
    rows
}
