//! Limits that a change has to keep, as the experiment file has them.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use crate::shape::OneOrMany;
use crate::text_form::LimitText;

/// Limits for `proofload gate`. An amount, such as < 50ms, is about each variant that is not only a baseline; a change in per
/// cent, such as > -3%, about each comparison.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = false))]
#[expect(dead_code, reason = "limits are read from the tree, where each has its line")]
pub(crate) struct Gate {
    #[serde(flatten)]
    pub limits: Limits,
    /// Limits of one variant, of one level, or of one comparison by its label, in place of those that are for all.
    #[schemars(schema_with = "of_schema")]
    pub of: BTreeMap<String, Limits>,
}

// (No doc comment: it would stand in the schema in place of that of `Gate`.)
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Limits {
    /// Successful responses per second, in closed loop: "> -3%", "> 1000/s". A list for several limits, here and below.
    pub throughput: Option<OneOrMany<LimitText>>,
    /// CPU time of all services per successful response: "< +5%", "< 900us".
    pub cpu_per_request: Option<OneOrMany<LimitText>>,
    /// Peak resident memory of all processes: "< +5%", "< 200MB".
    pub peak_memory: Option<OneOrMany<LimitText>>,
    /// Median response time, in open loop: "< +5%", "< 20ms".
    pub p50: Option<OneOrMany<LimitText>>,
    /// 90th percentile of the response time, in open loop.
    pub p90: Option<OneOrMany<LimitText>>,
    /// 99th percentile of the response time, in open loop.
    pub p99: Option<OneOrMany<LimitText>>,
    /// 99.9th percentile of the response time, in open loop.
    #[serde(rename = "p99.9")]
    pub p999: Option<OneOrMany<LimitText>>,
    /// Share of requests that do not end in an expected response, an amount alone: "< 0.05%".
    pub failed: Option<OneOrMany<LimitText>>,
}

/// Tables of the same limits, in which nothing else has a place.
fn of_schema(generator: &mut SchemaGenerator) -> Schema {
    let mut limits = Limits::json_schema(generator);
    limits.insert("additionalProperties".to_owned(), false.into());
    json_schema!({ "type": "object", "additionalProperties": limits })
}
