//! How services are built at another commit, as the experiment file has it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text_form::Period;

/// How services are built at the git ref that `--against` names, before they run there. Without effect otherwise.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Against {
    /// Program and arguments, each a string of its own, run in the directory of each service as it is at that ref; no shell is
    /// involved, and braces are plain. Without it: npm ci where the nearest package.json has a package-lock.json beside it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1))]
    pub build: Vec<String>,
    /// How long it may take in each directory, 1s to 24h.
    pub timeout: Period,
}

impl Default for Against {
    fn default() -> Self {
        Self { build: Vec::new(), timeout: Period::seconds(600) }
    }
}
