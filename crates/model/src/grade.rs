//! The severity of a finding.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Severity of a finding, most severe first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// No conclusion may be drawn from the affected figures.
    Invalid,
    /// The figures are valid, but the finding may change the conclusion.
    Warning,
    /// Additional information that does not change the conclusion.
    Note,
    /// No problem. Reported only in complete listings of all checks.
    Fine,
}

impl Grade {
    /// Whether the finding may change the conclusion. Only such findings are on the first screen of a result.
    pub fn is_grave(self) -> bool {
        match self {
            Grade::Invalid | Grade::Warning => true,
            Grade::Note | Grade::Fine => false,
        }
    }
}
