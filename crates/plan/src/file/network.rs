//! The link between client and entry, as the experiment file has it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text_form::{Bandwidth, Delay};

/// A link between the client and the entry, the same in both directions. It takes root.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Network {
    /// What it carries each way, 8kbit to 10gbit, all connections together. Without it: what the machine can do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Bandwidth>,
    /// How long a packet is under way each way, 0ms to 1s; a round trip takes twice that. Without it: next to nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delay>,
}
