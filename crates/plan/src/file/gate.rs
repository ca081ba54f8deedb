//! Limits that a change has to keep, as the experiment file has them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use crate::gate::Figure;
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

/// Limits by the figure that they are about: any metric, or `failed`.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct Limits(#[expect(dead_code, reason = "as above")] BTreeMap<String, OneOrMany<LimitText>>);

impl JsonSchema for Limits {
    fn schema_name() -> Cow<'static, str> {
        "Limits".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let limit = generator.subschema_for::<OneOrMany<LimitText>>();
        let limits = Figure::all().map(|figure| {
            let mut schema = limit.clone();
            schema.insert("description".to_owned(), description(figure).into());
            (figure.name().to_owned(), schema.to_value())
        });
        json_schema!({ "type": "object", "properties": limits.collect::<serde_json::Map<_, _>>() })
    }
}

fn description(figure: Figure) -> String {
    let Some(metric) = figure.metric() else {
        return "Share of requests that do not end in an expected response, an amount alone: \"< 0.05%\"."
            .to_owned();
    };
    let row = metric.row();
    let example = if metric.wants_more() { "> -3%" } else { "< +5%" };
    format!("{}: {}, such as \"{example}\"; a list for several limits.", row.title, row.meaning)
}

/// Tables of the same limits, in which nothing else has a place.
fn of_schema(generator: &mut SchemaGenerator) -> Schema {
    let mut limits = Limits::json_schema(generator);
    limits.insert("additionalProperties".to_owned(), false.into());
    json_schema!({ "type": "object", "additionalProperties": limits })
}
