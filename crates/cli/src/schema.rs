//! `proofload schema`: the JSON Schema of the experiment file, or of the report as JSON.

use std::process::ExitCode;

use clap::{Args, ValueEnum};

use crate::print;

/// Flags of `schema`.
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// What it describes
    #[arg(long, value_enum, default_value_t = Of::Experiment)]
    of: Of,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Of {
    /// The experiment file, for editors
    Experiment,
    /// What `report --json` prints, for programs that read it
    Report,
}

/// Prints it.
///
/// # Errors
/// If stdout cannot be written.
pub fn run(args: &SchemaArgs) -> anyhow::Result<ExitCode> {
    let schema = match args.of {
        Of::Experiment => plan::schema(),
        Of::Report => report::schema(),
    };
    print::data(&model::text::json(schema))?;
    Ok(ExitCode::SUCCESS)
}
