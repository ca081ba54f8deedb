//! A conclusion as JSON for other programs, with units in the field names and one version number. Also the
//! schema of it.

use std::borrow::Cow;

use analysis::Conclusion;
use explain::Explanation;
use plan::{Against, ArrivalProcess};
use record::{DeployedSeen, Ended, MachineFingerprint, Prepared, RateChosen, Record};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use serde::Serialize;
use serde_json::Value;
use stats::{Band, Latencies, Resampling};

/// Quantiles in the report, in per cent.
const PERCENT: [f64; 5] = [50.0, 75.0, 90.0, 99.0, 99.9];
/// Number of resamples of whole blocks for the bands of quantiles, and their level.
const BAND_RESAMPLES: u32 = 1_000;
const BAND_LEVEL: f64 = 0.95;
/// Above this number of blocks, neighbours are grouped for resampling: the cost grows with the number of
/// blocks, and the information does not.
const BAND_BLOCKS_MAX: usize = 200;

/// The report of a record of Proofload. Within a version, fields are added, and never renamed or removed.
/// Ratios are candidate over baseline: 1.1 is ten per cent more. Names of fields end in their unit. Null
/// means "not known" or "not measured", never 0.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Proofload report")]
struct ReportData<'a> {
    /// Version of this format.
    report_version: u32,
    /// Name of the experiment.
    experiment: &'a str,
    /// The question of the experiment, if the file has one.
    question: Option<&'a str>,
    /// Folder of the record, as it was given.
    record: String,
    /// When the record was made, RFC 3339 in UTC.
    created: &'a str,
    /// Version of the Proofload that ran it.
    proofload: &'a str,
    /// Seed of every random choice of the run.
    seed: u64,
    /// How the run ended. Null if it was killed, or is still running.
    ended: Option<&'a Ended>,
    /// The machine on which it was run.
    environment: &'a MachineFingerprint,
    /// The commit with which the code of the working tree was compared. `None` if variants were compared with
    /// each other.
    against: Option<&'a Against>,
    /// The prepared data of the services. Empty if they need none.
    prepared: &'a [Prepared],
    /// Services that were already running and were loaded as they were, each in its state at the first trial.
    /// Omitted if all were started.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    deployed: Vec<&'a DeployedSeen>,
    #[serde(flatten)]
    conclusion: &'a Conclusion,
    /// From sent to done in closed loop. It depends on the connections and must not be compared. Empty in
    /// open loop.
    closed_loop_latency: Vec<LatencyData<'a>>,
    /// The common rate and its results. Null in closed loop.
    open_loop: Option<OpenLoopData<'a>>,
    /// Explanation of the difference from captures. Null without captures.
    why: Option<&'a Explanation>,
}

/// Additional data of an open loop.
#[derive(Serialize, JsonSchema)]
struct OpenLoopData<'a> {
    /// Distribution of requests in time.
    arrivals: ArrivalProcess,
    /// The rate. Null if the run ended before it was determined.
    rate: Option<&'a RateChosen>,
    /// From due to done, all trials of a variant together.
    response_time: Vec<LatencyData<'a>>,
    /// From sent to done.
    service_time: Vec<LatencyData<'a>>,
}

/// Times of one variant.
#[derive(Serialize, JsonSchema)]
struct LatencyData<'a> {
    /// Its name.
    variant: &'a str,
    /// Number of requests.
    requests: u64,
    /// Number of requests without a response. Their waiting times are lower bounds.
    censored: u64,
    /// Quantiles with at least ten requests beyond them.
    quantiles: Vec<LatencyQuantile>,
}

/// A quantile of times.
#[derive(Serialize, JsonSchema)]
struct LatencyQuantile {
    /// The percentage: 99 is p99.
    percent: f64,
    /// The time in microseconds.
    us: f64,
    /// True if the value is a lower bound, because requests were given up or unfinished.
    at_least: bool,
    /// Variation of the value when blocks are resampled. Null with fewer than six blocks, or if a block has
    /// no request. Too narrow with few blocks, and for display only.
    band_us: Option<BandUs>,
}

/// The band of a quantile, in microseconds.
#[derive(Serialize, JsonSchema)]
struct BandUs {
    /// Lower end.
    low: f64,
    /// Upper end. Null if requests without a response leave it open.
    high: Option<f64>,
}

/// JSON Schema (draft 2020-12) of the report, generated from its types. Stored as `docs/report.schema.json`.
pub fn schema() -> Value {
    let one_line = RecursiveTransform(|schema: &mut schemars::Schema| {
        if let Some(Value::String(description)) = schema.get_mut("description") {
            // An absent value in Rust is null here, and there is no page to link to.
            *description = description
                .replace('\n', " ")
                .replace("`None`", "null")
                .replace("[`", "`")
                .replace("`]", "`");
        }
    });
    let settings = SchemaSettings::draft2020_12()
        .for_serialize()
        .with(|settings| {
            settings.transforms.push(Box::new(one_line));
        });
    settings
        .into_generator()
        .into_root_schema_for::<ReportData<'static>>()
        .to_value()
}

/// The whole report, with the explanation from its captures.
pub(super) fn data(record: &Record, conclusion: &Conclusion, why: Option<&Explanation>) -> Value {
    let header = &record.header;
    let service_time = latencies(conclusion, record, analysis::latencies);
    let (open_loop, closed_loop_latency) = if record.is_open_loop() {
        let response_time = latencies(conclusion, record, analysis::responses);
        let arrivals = header.plan.design.arrivals;
        (
            Some(OpenLoopData {
                arrivals,
                rate: record.rate.as_ref(),
                response_time,
                service_time,
            }),
            Vec::new(),
        )
    } else {
        (None, service_time)
    };
    let report = ReportData {
        report_version: 1,
        experiment: &header.plan.name,
        question: header.plan.question.as_deref(),
        record: record.directory.display().to_string(),
        created: &header.created,
        proofload: &header.proofload,
        seed: header.seed,
        ended: record.ended.as_ref(),
        environment: &header.environment,
        against: header.plan.against.as_ref(),
        prepared: &record.prepared,
        deployed: record.deployed(),
        conclusion,
        closed_loop_latency,
        open_loop,
        why,
    };
    // Plain structs with string keys and finite numbers always convert to JSON.
    serde_json::to_value(report).unwrap_or(Value::Null)
}

/// The times of each variant, merged from its blocks.
fn latencies<'a>(
    conclusion: &'a Conclusion,
    record: &Record,
    of: fn(&Record, usize) -> Vec<Latencies>,
) -> Vec<LatencyData<'a>> {
    let variants = conclusion.variants.iter().enumerate();
    let seed = record.header.seed;
    variants
        .map(|(index, variant)| summary(&variant.name, &of(record, index), seed))
        .collect()
}

fn summary<'a>(variant: &'a str, blocks: &[Latencies], seed: u64) -> LatencyData<'a> {
    let mut all = Latencies::new();
    blocks.iter().for_each(|block| all.merge(block));
    // Quantiles with fewer than ten requests beyond them are left out.
    let shares = PERCENT.map(|percent| percent / 100.0);
    let resolved: Vec<f64> = shares
        .into_iter()
        .filter(|share| all.resolves(*share))
        .collect();
    let resampling = Resampling {
        resamples: BAND_RESAMPLES,
        seed,
    };
    let bands = stats::quantile_bands(&grouped(blocks), &resolved, BAND_LEVEL, resampling);
    let band = |index: usize| {
        let Band { low_ns, high, .. } = bands.as_ref()?.get(index)?;
        Some(BandUs {
            low: us(*low_ns),
            high: high.is_exact().then(|| us(high.ns())),
        })
    };
    let quantile = |(index, share): (usize, &f64)| {
        let found = all.quantile(*share)?;
        let (us, at_least) = (us(found.ns()), !found.is_exact());
        Some(LatencyQuantile {
            percent: PERCENT[index],
            us,
            at_least,
            band_us: band(index),
        })
    };
    LatencyData {
        variant,
        requests: all.count(),
        censored: all.censored(),
        // The highest ones are left out first, so indices among the resolved quantiles are indices among all.
        quantiles: resolved.iter().enumerate().filter_map(quantile).collect(),
    }
}

/// Groups neighbouring blocks if there are too many to resample.
fn grouped(blocks: &[Latencies]) -> Cow<'_, [Latencies]> {
    if blocks.len() <= BAND_BLOCKS_MAX {
        return Cow::Borrowed(blocks);
    }
    let groups = blocks
        .chunks(blocks.len().div_ceil(BAND_BLOCKS_MAX))
        .map(|group| {
            let mut all = Latencies::new();
            group.iter().for_each(|block| all.merge(block));
            all.pack();
            all
        });
    Cow::Owned(groups.collect())
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}
