//! What captures tell of a run, as people read it: the section "Why" of a report, what `proofload profile` prints, and JSON.
//!
//! It draws values that `profile` made, and computes nothing that could be an answer of its own. Names of functions come out of
//! somebody's code and may hold anything: whatever they are, they are printed as text.

mod alone;
mod calls;
mod columns;
mod document;
mod long;
mod name;
mod table;
mod text;
mod unit;
mod words;

pub use alone::{difference, difference_json, of_tree, of_tree_json};
pub use document::document;
pub use long::subjects;
pub use unit::Unit;

use explain::Explanation;
use serde_json::Value;

pub(crate) use table::Table;
pub(crate) use words::Reason;

/// An explanation in words and in order, before it is drawn in any form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Why {
    /// One for each comparison.
    pub(crate) reasons: Vec<Reason>,
    /// Where there is nothing to compare: what each variant spends.
    pub(crate) spent: Vec<Table>,
    /// Where requests wait, variant by variant.
    pub(crate) waiting: Option<Table>,
    /// How it was captured, each line a name and a text.
    pub(crate) method: Vec<(String, String)>,
    /// What makes it doubtful or is missing: what was seen, and what to do.
    pub(crate) doubts: Vec<(String, String)>,
}

/// All of it, for programs: the field `why` of a report.
pub fn json(explanation: &Explanation) -> Value {
    // Plain structs with text keys cannot fail to become JSON.
    serde_json::to_value(explanation).unwrap_or(Value::Null)
}
