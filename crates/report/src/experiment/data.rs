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

use crate::form::JsonDocument;
use crate::measurement::LoadData;

/// Quantiles in the report, in per cent.
const PERCENT: [f64; 5] = [50.0, 75.0, 90.0, 99.0, 99.9];
/// Number of resamples of whole blocks for the bands of quantiles, and their level.
const BAND_RESAMPLES: u32 = 1_000;
const BAND_LEVEL: f64 = 0.95;
/// Above this number of blocks, neighbours are grouped for resampling: the cost grows with the number of
/// blocks, and the information does not.
const BAND_BLOCKS_MAX: usize = 200;

/// The report of a record.
#[derive(Serialize, JsonSchema)]
struct ReportData<'a> {
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
    /// The common rate. Null in closed loop.
    open_loop: Option<OpenLoopData<'a>>,
    /// From due to done, all trials of a variant together. Empty in closed loop.
    response_time: Vec<LatencyData<'a>>,
    /// From sent to done. In closed loop it depends on the connections and must not be compared.
    service_time: Vec<LatencyData<'a>>,
    /// Explanation of the difference from captures. Null without captures.
    why: Option<&'a Explanation>,
}

/// Requests that are due at a rate.
#[derive(Serialize, JsonSchema)]
struct OpenLoopData<'a> {
    /// Distribution of requests in time.
    arrivals: ArrivalProcess,
    /// The rate. Null if the run ended before it was determined.
    rate: Option<&'a RateChosen>,
}

/// Times of one variant.
#[derive(Serialize, JsonSchema)]
struct LatencyData<'a> {
    /// Its name.
    variant: &'a str,
    /// Number of requests.
    count: u64,
    /// Number of requests without a response. Their waiting times are lower bounds.
    censored: u64,
    /// Quantiles with at least ten requests beyond them.
    quantiles: Vec<BandedQuantile>,
}

/// A quantile of times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct LatencyQuantile {
    /// The percentage: 99 is p99.
    pub percent: f64,
    /// The time in microseconds.
    pub us: f64,
    /// True if the value is a lower bound, because requests were given up or unfinished.
    pub at_least: bool,
}

/// A quantile of times over several blocks.
#[derive(Serialize, JsonSchema)]
struct BandedQuantile {
    #[serde(flatten)]
    quantile: LatencyQuantile,
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

/// JSON Schema (draft 2020-12) of a report of an experiment. Stored as `docs/report.schema.json`.
pub fn schema() -> Value {
    schema_of::<ReportData<'static>>()
}

/// JSON Schema of a load measurement. Stored as `docs/load.schema.json`.
pub fn load_schema() -> Value {
    schema_of::<LoadData<'static>>()
}

fn schema_of<T: JsonSchema>() -> Value {
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
        .into_root_schema_for::<JsonDocument<T>>()
        .to_value()
}

/// The whole report, with the explanation from its captures.
pub(super) fn data(record: &Record, conclusion: &Conclusion, why: Option<&Explanation>) -> Value {
    let header = &record.header;
    let open_loop = record.is_open_loop().then_some(OpenLoopData {
        arrivals: header.plan.design.arrivals,
        rate: record.rate.as_ref(),
    });
    let response_time = match open_loop {
        Some(_) => latencies(conclusion, record, analysis::responses),
        None => Vec::new(),
    };
    let report = ReportData {
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
        open_loop,
        response_time,
        service_time: latencies(conclusion, record, analysis::latencies),
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
    let quantiles = quantiles(&all, &PERCENT);
    let shares = quantiles.iter().map(|quantile| quantile.percent / 100.0);
    let shares: Vec<f64> = shares.collect();
    let resampling = Resampling {
        resamples: BAND_RESAMPLES,
        seed,
    };
    let bands = stats::quantile_bands(&grouped(blocks), &shares, BAND_LEVEL, resampling);
    let band = |index: usize| {
        let Band { low_ns, high, .. } = bands.as_ref()?.get(index)?;
        Some(BandUs {
            low: us(*low_ns),
            high: high.is_exact().then(|| us(high.ns())),
        })
    };
    LatencyData {
        variant,
        count: all.count(),
        censored: all.censored(),
        quantiles: quantiles
            .into_iter()
            .enumerate()
            .map(|(index, quantile)| BandedQuantile {
                quantile,
                band_us: band(index),
            })
            .collect(),
    }
}

/// The quantiles that have at least ten samples beyond them, and the maximum if it is requested.
pub fn quantiles(times: &Latencies, percent: &[f64]) -> Vec<LatencyQuantile> {
    let quantile = |percent: &f64| {
        let share = percent / 100.0;
        let is_resolved = share == 1.0 || times.resolves(share);
        let found = times.quantile(share).filter(|_| is_resolved)?;
        Some(LatencyQuantile {
            percent: *percent,
            us: us(found.ns()),
            at_least: !found.is_exact(),
        })
    };
    percent.iter().filter_map(quantile).collect()
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
