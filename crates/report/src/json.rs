//! A conclusion as JSON: field names with units, one version number, for other programs.

use audit::Conclusion;
use plan::Arrivals;
use record::{Ended, Environment, Prepared, RateChosen, Record};
use serde::Serialize;
use serde_json::Value;
use stats::{Band, Latencies, Quantile, Resampling};

/// Version of this form; fields may be added within a version, never renamed or removed.
const VERSION: u32 = 1;

/// The quantiles given, in per cent.
const PERCENT: [f64; 5] = [50.0, 75.0, 90.0, 99.0, 99.9];
/// Draws of whole blocks for the bands of quantiles, and their level.
const BAND_RESAMPLES: u32 = 1_000;
const BAND_LEVEL: f64 = 0.95;

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
    /// The data that services were given; empty where they need none.
    prepared: &'a [Prepared],
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
    /// How far it scatters when other blocks are drawn; `None` below six blocks, or where one has no request. Too narrow with
    /// few blocks, and for display only (see `stats::quantile_band`).
    band_us: Option<BandUs>,
}

#[derive(Serialize)]
struct BandUs {
    low: f64,
    /// `None` where requests without an answer leave it open.
    high: Option<f64>,
}

/// The whole report.
pub fn json(record: &Record, conclusion: &Conclusion) -> Value {
    let header = &record.header;
    let service_time = latencies(conclusion, record, audit::latencies);
    let (open_loop, closed_loop_latency) = if record.is_open_loop() {
        let response_time = latencies(conclusion, record, audit::responses);
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
        prepared: &record.prepared,
        conclusion,
        closed_loop_latency,
        open_loop,
    };
    // Plain structs with text keys and finite numbers cannot fail to become JSON.
    serde_json::to_value(report).unwrap_or(Value::Null)
}

/// The times of each variant, from those of its blocks.
fn latencies<'a>(
    conclusion: &'a Conclusion,
    record: &Record,
    of: fn(&Record, usize) -> Vec<Latencies>,
) -> Vec<Latency<'a>> {
    let variants = conclusion.variants.iter().enumerate();
    let seed = record.header.seed;
    variants.map(|(index, variant)| summary(&variant.name, &of(record, index), seed)).collect()
}

fn summary<'a>(variant: &'a str, blocks: &[Latencies], seed: u64) -> Latency<'a> {
    let mut all = Latencies::new();
    blocks.iter().for_each(|block| all.merge(block));
    // A quantile wants ten requests beyond it; one that rests on fewer is left out.
    let shares = PERCENT.map(|percent| percent / 100.0);
    let resolved: Vec<f64> = shares.into_iter().filter(|share| all.resolves(*share)).collect();
    let resampling = Resampling { resamples: BAND_RESAMPLES, seed };
    let bands = stats::quantile_bands(blocks, &resolved, BAND_LEVEL, resampling);
    let band = |index: usize| Some(band_us(bands.as_ref().ok()?.get(index)?));
    let quantile = |(index, share): (usize, &f64)| {
        let (ns, at_least) = match all.quantile(*share)? {
            Quantile::Exact(ns) => (ns, false),
            Quantile::AtLeast(ns) => (ns, true),
        };
        Some(LatencyQuantile { percent: PERCENT[index], us: us(ns), at_least, band_us: band(index) })
    };
    Latency {
        variant,
        requests: all.count(),
        censored: all.censored(),
        // Higher ones are left out first, so that places among the resolved are those among all.
        quantiles: resolved.iter().enumerate().filter_map(quantile).collect(),
    }
}

fn band_us(band: &Band) -> BandUs {
    let high = match band.high {
        Quantile::Exact(ns) => Some(us(ns)),
        Quantile::AtLeast(_) => None,
    };
    BandUs { low: us(band.low_ns), high }
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}
