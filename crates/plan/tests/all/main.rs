//! Experiment files: what they become, and what is said of bad ones.

mod against;
mod drafts;
mod mixes;
mod mutations;
mod plans;
mod problems;
mod schema;
mod templates;

use std::path::Path;

use proofload_plan::{Plan, parse};

/// The folder of this crate, which has a `src`.
fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn plan(text: &str) -> Plan {
    parse(text, here()).unwrap_or_else(|problems| panic!("{problems:#?}"))
}
