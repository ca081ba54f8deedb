//! A conclusion as JSON: field names with units, one version number, for other programs.

use audit::Conclusion;
use plan::Arrivals;
use record::{Ended, Environment, RateChosen, Record};
use serde::Serialize;
use serde_json::Value;
use stats::{Latencies, Quantile};

/// Version of this form; fields may be added within a version, never renamed or removed.
const VERSION: u32 = 1;

/// The quantiles given, in per cent.
const PERCENT: [f64; 5] = [50.0, 75.0, 90.0, 99.0, 99.9];

#[derive(Serialize)]
struct Report<'a> {
    report_version: u32,
    experiment: &'a str,
    question: Option<&'a str>,
    record: String,
    created: &'a str,
    proofload: &'a str,
    seed: u64,
    ended: Option<&'a Ended>,
    environment: &'a Environment,
    #[serde(flatten)]
    conclusion: &'a Conclusion,
    /// From sent to done in closed loop, so it depends on the connections and compares nothing; empty in open loop.
    closed_loop_latency: Vec<Latency<'a>>,
    /// The common rate and what came of it; `None` in closed loop.
    open_loop: Option<OpenLoop<'a>>,
}

#[derive(Serialize)]
struct OpenLoop<'a> {
    arrivals: Arrivals,
    /// `None` where the run ended before it was settled.
    rate: Option<&'a RateChosen>,
    /// From due to done, all trials of a variant together.
    response_time: Vec<Latency<'a>>,
    /// From sent to done.
    service_time: Vec<Latency<'a>>,
}

/// Times of one variant.
#[derive(Serialize)]
struct Latency<'a> {
    variant: &'a str,
    requests: u64,
    censored: u64,
    quantiles: Vec<LatencyQuantile>,
}

#[derive(Serialize)]
struct LatencyQuantile {
    percent: f64,
    us: f64,
    /// True where the value is a lower bound, because requests were given up or unfinished.
    at_least: bool,
}

/// The whole report.
pub fn json(record: &Record, conclusion: &Conclusion) -> Value {
    let header = &record.header;
    let service_time = latencies(conclusion, |index| audit::latency(record, index));
    let (open_loop, closed_loop_latency) = if record.is_open_loop() {
        let response_time = latencies(conclusion, |index| audit::response(record, index));
        let arrivals = header.plan.design.arrivals;
        (Some(OpenLoop { arrivals, rate: record.rate.as_ref(), response_time, service_time }), Vec::new())
    } else {
        (None, service_time)
    };
    let report = Report {
        report_version: VERSION,
        experiment: &header.plan.name,
        question: header.plan.question.as_deref(),
        record: record.directory.display().to_string(),
        created: &header.created,
        proofload: &header.proofload,
        seed: header.seed,
        ended: record.ended.as_ref(),
        environment: &header.environment,
        conclusion,
        closed_loop_latency,
        open_loop,
    };
    // Plain structs with text keys and finite numbers cannot fail to become JSON.
    serde_json::to_value(report).unwrap_or(Value::Null)
}

fn latencies(conclusion: &Conclusion, of: impl Fn(usize) -> Latencies) -> Vec<Latency<'_>> {
    let variants = conclusion.variants.iter().enumerate();
    variants.map(|(index, variant)| summary(&variant.name, &of(index))).collect()
}

fn summary<'a>(variant: &'a str, latency: &Latencies) -> Latency<'a> {
    // A quantile wants ten requests beyond it; one that rests on fewer is left out.
    let resolved = PERCENT.into_iter().filter(|percent| latency.resolves(percent / 100.0));
    let quantile = |percent: f64| {
        let (ns, at_least) = match latency.quantile(percent / 100.0)? {
            Quantile::Exact(ns) => (ns, false),
            Quantile::AtLeast(ns) => (ns, true),
        };
        Some(LatencyQuantile { percent, us: ns as f64 / 1e3, at_least })
    };
    Latency {
        variant,
        requests: latency.count(),
        censored: latency.censored(),
        quantiles: resolved.filter_map(quantile).collect(),
    }
}
