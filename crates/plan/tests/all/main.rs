//! Experiment files: their plans, and the messages for invalid files.

mod against;
mod drafts;
mod mixes;
mod mutations;
mod plans;
mod problems;
mod schema;
mod settings;
mod templates;

use std::path::Path;

use proofload_plan::{Plan, ReadError, parse, text};

/// The folder of this crate, which has a `src`.
fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn plan(text: &str) -> Plan {
    parse(text, here()).unwrap_or_else(|problems| panic!("{problems:#?}"))
}

fn read_file(path: &Path) -> Result<Plan, ReadError> {
    let text = text(path)?;
    parse(&text, path.parent().unwrap()).map_err(|problems| ReadError::Problems { text, problems })
}

fn names(plan: &Plan) -> Vec<&str> {
    plan.variants
        .iter()
        .map(|variant| variant.name.as_str())
        .collect()
}

/// The plan as a record stores it, read back for verification.
fn kept(plan: &Plan) -> serde_json::Value {
    let kept = serde_json::to_value(plan).unwrap();
    assert_eq!(&serde_json::from_value::<Plan>(kept.clone()).unwrap(), plan);
    kept
}
