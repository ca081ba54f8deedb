//! `proofload schema`: the JSON Schema of the experiment file.

use std::process::ExitCode;

use crate::print;

/// Prints it.
///
/// # Errors
/// If stdout cannot be written.
pub fn run() -> anyhow::Result<ExitCode> {
    print::data(&format!("{:#}\n", plan::schema()))?;
    Ok(ExitCode::SUCCESS)
}
