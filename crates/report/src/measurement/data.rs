//! A measurement as JSON. A single slice has its values at the top level, several are in `steps`.

use analysis::measurement::{Bend, RateKept};
use analysis::{Check, Finding, MeasuredWindow, Measurement};
use model::{Ask, AskedOpen, Counts, EndpointCounts, Protocol, RampPart, RateLevel, Until};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use stats::{Latencies, Quantile};

use super::{LoadedRecord, QUANTILES, all_outcomes, failed_of, shown};
use crate::csv::{self, CsvRows};
use crate::experiment::{INVALID, quantiles};

/// Quantiles in the document, in per cent. 100 is the maximum.
const PERCENT: [f64; 6] = [50.0, 75.0, 90.0, 99.0, 99.9, 100.0];

/// A load measurement. With several rates, the figures of each are in `steps`. All other fields are described
/// in docs/formats.md.
#[derive(Serialize, JsonSchema)]
pub(crate) struct LoadData<'a> {
    #[serde(flatten)]
    outcome: LoadOutcome,
    /// Findings, most severe first.
    findings: &'a [Finding<Check>],
    #[serde(flatten)]
    validity: LoadValidity<'a>,
    /// Version of the Proofload that measured.
    proofload: &'a str,
    /// The slice that measured saturation, if a rate is a share of it.
    capacity: Option<LoadStep<'a>>,
    #[serde(flatten)]
    steps: Option<LoadSteps<'a>>,
    #[serde(flatten)]
    details: Map<String, Value>,
}

/// Slices at several rates.
#[derive(Serialize, JsonSchema)]
struct LoadSteps<'a> {
    /// Number of requested steps.
    asked_steps: usize,
    /// The measured steps.
    steps: Vec<LoadStep<'a>>,
}

/// One slice.
#[derive(Serialize, JsonSchema)]
struct LoadStep<'a> {
    #[serde(flatten)]
    outcome: LoadOutcome,
    #[serde(flatten)]
    validity: LoadValidity<'a>,
    #[serde(flatten)]
    details: Map<String, Value>,
}

/// Requests of a slice, or of all steps.
#[derive(Serialize, JsonSchema)]
struct LoadOutcome {
    /// Number of requests: those due in open loop, those sent in closed loop.
    requests: u64,
    /// Number of expected responses.
    successful: u64,
    /// Number of requests that did not end in an expected response.
    failed: u64,
    /// Successful responses per second. Null if invalid, and over several steps.
    throughput_per_s: Option<f64>,
    /// Response times in open loop, service times in closed loop. Null if invalid, and over several steps.
    latency_ms: Option<LatencyMs>,
}

/// Whether figures may be used.
#[derive(Serialize, JsonSchema)]
struct LoadValidity<'a> {
    /// Whether a signal ended the measurement.
    interrupted: bool,
    /// Why the measurement is invalid. Null if it is valid.
    invalid: Option<&'a str>,
    /// Findings as sentences.
    caveats: Vec<String>,
}

/// Times in milliseconds. A quantile is null with fewer than ten requests beyond it.
#[derive(Serialize, JsonSchema)]
struct LatencyMs {
    /// Median.
    p50: Option<TimeMs>,
    /// 90 % quantile.
    p90: Option<TimeMs>,
    /// 99 % quantile.
    p99: Option<TimeMs>,
    /// 99.9 % quantile.
    p99_9: Option<TimeMs>,
    /// Longest time.
    max: Option<TimeMs>,
    /// Arithmetic mean.
    mean: Option<TimeMs>,
}

/// A time in milliseconds.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum TimeMs {
    /// The time.
    Exact(f64),
    /// A lower bound, because requests got no response.
    AtLeast {
        /// The bound.
        at_least: f64,
    },
}

/// The document of a measurement.
pub(crate) fn data(of: &LoadedRecord<'_>) -> Value {
    let measured = &of.of;
    let findings = &of.measured.conclusion.findings;
    let step = |window| step(of, window);
    let only = measured.only();
    let document = LoadData {
        outcome: only.map_or_else(|| totals(measured), |only| outcome(of, only)),
        findings,
        validity: LoadValidity {
            interrupted: measured.interrupted,
            invalid: measured.void().map(|finding| finding.evidence.as_str()),
            caveats: caveats(findings.iter().chain(&measured.findings), of.notes()),
        },
        proofload: &of.measured.record.header.proofload,
        capacity: measured
            .capacity
            .as_ref()
            .map(|window| capacity(of, window)),
        steps: only.is_none().then(|| LoadSteps {
            asked_steps: measured.planned,
            steps: measured.windows.iter().map(step).collect(),
        }),
        details: only.map(|only| details(of, only)).unwrap_or_default(),
    };
    // Plain structs with string keys and finite numbers always convert to JSON.
    serde_json::to_value(document).unwrap_or_default()
}

fn object(value: Value) -> Map<String, Value> {
    if let Value::Object(object) = value {
        object
    } else {
        Map::new()
    }
}

/// Caveats for the reader, as sentences.
fn caveats<'a>(
    findings: impl Iterator<Item = &'a Finding<Check>>,
    notes: Vec<String>,
) -> Vec<String> {
    let told = findings.map(|finding| match finding.remedy.is_empty() {
        true => finding.evidence.to_string(),
        false => format!("{}: {}", finding.evidence, finding.remedy),
    });
    told.chain(notes).collect()
}

fn outcome(of: &LoadedRecord<'_>, window: &MeasuredWindow<'_>) -> LoadOutcome {
    let counts = &window.slice.counts;
    let is_valid = window.void().or(of.of.void()).is_none();
    LoadOutcome {
        requests: counts.due(),
        successful: counts.successful,
        failed: counts.failed(),
        throughput_per_s: window.throughput_per_s().filter(|_| is_valid),
        latency_ms: is_valid.then(|| latency_ms(latencies(window))),
    }
}

/// The requests of all steps. Steps have different rates, so there is no common throughput or latency.
fn totals(measured: &Measurement<'_>) -> LoadOutcome {
    let total = |of: fn(&Counts) -> u64| -> u64 {
        let windows = measured.windows.iter();
        windows.map(|window| of(&window.slice.counts)).sum()
    };
    LoadOutcome {
        requests: total(Counts::due),
        successful: total(|counts| counts.successful),
        failed: total(Counts::failed),
        throughput_per_s: None,
        latency_ms: None,
    }
}

fn step<'a>(of: &'a LoadedRecord<'_>, window: &'a MeasuredWindow<'_>) -> LoadStep<'a> {
    let invalid = window.void().or(of.of.void());
    LoadStep {
        outcome: outcome(of, window),
        validity: LoadValidity {
            interrupted: window.interrupted,
            invalid: invalid.map(|finding| finding.evidence.as_str()),
            caveats: caveats(window.findings.iter(), Vec::new()),
        },
        details: details(of, window),
    }
}

fn capacity<'a>(of: &'a LoadedRecord<'_>, window: &'a MeasuredWindow<'_>) -> LoadStep<'a> {
    let asked = of.measured.record.header.plan.measure.as_ref();
    let warmup = asked.and_then(plan::Measure::capacity);
    let mut capacity = step(of, window);
    capacity.details.insert(
        "warmup_s".to_owned(),
        json!(warmup.map(|(warmup, _)| warmup.as_secs_f64())),
    );
    capacity
}

fn details(of: &LoadedRecord<'_>, window: &MeasuredWindow<'_>) -> Map<String, Value> {
    let counts = &window.slice.counts;
    let (asked_s, asked_requests) = match window.asked.until {
        Until::Elapsed(length) => (Some(length.as_secs_f64()), None),
        Until::Requests(total) => (None, Some(total)),
    };
    let sampled = window.sampled();
    let mut details = setup(of);
    details.extend(object(json!({
        "loop": if window.asked.open.is_some() { "open" } else { "closed" },
        "open": open(window),
        "connections": window.slice.connections,
        "threads": counts.generator.wall_ns.len(),
        "driver": counts.generator.driver,
        "asked_s": asked_s,
        "asked_requests": asked_requests,
        "window_s": in_seconds(counts.window_ns),
        "drain_s": in_seconds(counts.drain_ns),
        "transfer_bytes_per_s": window.transfer_per_s(),
        "sent": counts.sent,
        "responses": counts.responses,
        "responses_in_window": counts.responses_in_window,
        "successful_in_window": counts.successful_in_window,
        "timed_out": counts.timed_out,
        "broken": counts.broken,
        "unfinished": counts.unfinished,
        "log_ins": counts.log_ins,
        "wire_bytes": counts.wire_bytes,
        "body_bytes": counts.body_bytes,
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
        "successful_per_100_ms": counts.successful_per_100_ms,
        "connections_alive_start": counts.connections_alive_at_start,
        "connections_alive_end": counts.connections_alive,
        "connections_opened": counts.connections_opened,
        "reconnects": counts.reconnects,
        "tls_resumed": counts.tls_resumed,
        "client": threads(window),
        "services_cpu_s": in_seconds(window.slice.services_cpu_ns()),
        "differences": of.measured.differences,
        "response_time": counts.open.as_ref().map(|open| times(&open.response)),
        "service_time": times(&counts.latency),
        "first_byte": times(&counts.first_byte),
        "connect": times(&counts.connect),
        "handshake": times(&counts.handshake),
    })));
    details
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
        "keep_alive": load.settings.keep_alive,
        "tls": load.tls.as_ref().map(|tls| json!({
            "server_name": tls.server_name,
            "checked": !tls.insecure,
            "resumption": tls.resumption,
            "error": tls_error(),
        })),
        "sources": load.settings.sources,
        "request_seed": record.header.seed,
        "sample_every": load.settings.sample_every,
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
        "capacity_share": asked.ask.share(),
        "result": window.kept().map(RateKept::name),
        "ramp": ramp(window, asked),
        "arrivals": asked.process.name(),
        "seed": asked.seed,
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
    let parts = window.ramp_parts().iter().map(Some);
    let parts = parts.chain(std::iter::repeat(None));
    let stretch = |(of, part): (&analysis::measurement::WindowPart, Option<&RampPart>)| {
        json!({
            "failed": part.map(failed_of),
            "response_time": part.map(|part| times(&part.response)),
            "from_s": of.from_s,
            "to_s": of.to_s,
            "due_per_s": of.due_per_s(),
            "throughput_per_s": of.ok_per_s(),
            "kept_up": of.kept,
        })
    };
    Some(json!({
        "from_per_s": from_per_s,
        "to_per_s": to_per_s,
        "over_s": over.as_secs_f64(),
        "from_capacity_share": from,
        "to_capacity_share": to,
        "stretches": window.stretches().iter().zip(parts).map(stretch).collect::<Vec<_>>(),
        "kept_up_to_per_s": kept_up_to_per_s,
        "bent": bent,
    }))
}

fn endpoint(window: &MeasuredWindow<'_>, of: &EndpointCounts) -> Value {
    let outcomes = of.outcomes.iter().map(|ended| {
        json!({
            "status": ended.status,
            "response_time": window.asked.open.map(|_| times(&ended.response)),
            "service_time": times(&ended.latency),
        })
    });
    json!({
        "name": of.name,
        "sent": of.sent,
        "successful": of.successful,
        "failed": of.failed(),
        "successful_in_window": of.successful_in_window,
        "throughput_per_s": window.per_s(of.successful_in_window),
        "body_bytes": of.body_bytes,
        "outcomes": outcomes.collect::<Vec<_>>(),
        "contents": of.contents,
    })
}

/// Response times in open loop, service times in closed loop.
fn latencies<'a>(window: &MeasuredWindow<'a>) -> &'a Latencies {
    let counts = &window.slice.counts;
    counts
        .open
        .as_ref()
        .map_or(&counts.latency, |open| &open.response)
}

fn latency_ms(latencies: &Latencies) -> LatencyMs {
    let at = |q| shown(latencies, q).map(time_ms);
    LatencyMs {
        p50: at(0.5),
        p90: at(0.9),
        p99: at(0.99),
        p99_9: at(0.999),
        max: latencies.max().map(time_ms),
        mean: latencies.mean().map(time_ms),
    }
}

fn time_ms(quantile: Quantile) -> TimeMs {
    let ms = quantile.ns() as f64 / 1e6;
    match quantile {
        Quantile::Exact(_) => TimeMs::Exact(ms),
        Quantile::AtLeast(_) => TimeMs::AtLeast { at_least: ms },
    }
}

/// All samples: quantiles with enough samples, and an HdrHistogram V2, compressed, base64.
fn times(latencies: &Latencies) -> Value {
    json!({
        "count": latencies.count(),
        "censored": latencies.censored(),
        "quantiles": quantiles(latencies, &PERCENT),
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

/// One row for each slice and figure, then for each figure of each of several requests.
pub(super) fn figures(measured: &Measurement<'_>) -> CsvRows {
    let headings = ["slice", "metric", "unit", "value", "request", INVALID];
    let mut rows = vec![headings.map(str::to_owned).to_vec()];
    for window in measured.capacity.iter().chain(&measured.windows) {
        let counts = &window.slice.counts;
        let invalid = Finding::voiding(&window.findings, 0);
        let mut push = |request: &str, (metric, unit, value): (String, &str, Option<f64>)| {
            rows.push(vec![
                csv::name(&window.name),
                metric,
                unit.to_owned(),
                csv::figure(value),
                csv::name(request),
                invalid.clone(),
            ]);
        };
        for (metric, unit, value) in [
            ("throughput", "1/s", window.throughput_per_s()),
            ("requests", "1", Some(counts.due() as f64)),
            ("sent", "1", Some(counts.sent as f64)),
            ("successful", "1", Some(counts.successful as f64)),
            ("failed", "1", Some(counts.failed() as f64)),
        ] {
            push("", (metric.to_owned(), unit, value));
        }
        let by_status = counts.status.iter();
        by_status.for_each(|(status, number)| push("", with_status(Some(*status), *number)));
        times_in(latencies(window)).for_each(|of| push("", of));
        for endpoint in counts
            .endpoints
            .iter()
            .filter(|_| counts.endpoints.len() > 1)
        {
            let per_s = window.per_s(endpoint.successful_in_window);
            let name = &endpoint.name;
            for (metric, unit, value) in [
                ("throughput", "1/s", per_s),
                ("sent", "1", Some(endpoint.sent as f64)),
                ("successful", "1", Some(endpoint.successful as f64)),
                ("failed", "1", Some(endpoint.failed() as f64)),
            ] {
                push(name, (metric.to_owned(), unit, value));
            }
            let outcomes = endpoint.outcomes.iter();
            outcomes.for_each(|of| push(name, with_status(of.status, of.latency.count())));
            times_in(&all_outcomes(window, endpoint)).for_each(|of| push(name, of));
        }
    }
    rows
}

/// Number of requests with a status, or without a response.
fn with_status(status: Option<u16>, number: u64) -> (String, &'static str, Option<f64>) {
    let name = status.map_or("no_response".to_owned(), |status| {
        format!("status_{status}")
    });
    (name, "1", Some(number as f64))
}

/// The quantiles as figures. A bound is not a value.
fn times_in(of: &Latencies) -> impl Iterator<Item = (String, &'static str, Option<f64>)> {
    QUANTILES.iter().map(|(name, q)| {
        let exact = shown(of, *q).filter(|time| time.is_exact());
        (
            (*name).to_owned(),
            "us",
            exact.map(|time| time.ns() as f64 / 1e3),
        )
    })
}
