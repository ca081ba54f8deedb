//! Plain values that a process gets as text.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

/// A string, number or boolean, kept as the text that a process gets.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(inline, extend("type" = ["string", "number", "boolean"]))]
pub(crate) struct Scalar(pub String);

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match toml::Value::deserialize(deserializer)? {
            toml::Value::String(text) => text,
            value => value.to_string(),
        }))
    }
}

/// Names with plain values, as text.
pub(crate) fn scalars<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    let scalars = BTreeMap::<String, Scalar>::deserialize(deserializer)?;
    Ok(scalars
        .into_iter()
        .map(|(name, value)| (name, value.0))
        .collect())
}
