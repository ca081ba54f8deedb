//! `proofload run`: runs an experiment and prints its report.

use std::path::PathBuf;

use clap::Args;

use crate::exit::CliError;
use crate::experiment::{AgainstArgs, Experiment};
use crate::flags::RunFlags;
use crate::gate;
use crate::job::ExperimentJob;

const AFTER_HELP: &str = "\
On a terminal the run is shown as it goes on: q stops early with what there is, l shows the services' logs, ? helps.

Without a terminal there are plain lines on stderr. With --events, stdout has one event per line, then the report as in `proofload report --json`, then with --gate the gate's result (docs/events.md).";

/// Flags of `run`.
#[derive(Debug, Args)]
#[command(
    after_help = AFTER_HELP,
    mut_arg("seed", |arg| {
        arg.help("Seed of every random choice, instead of the file's or a new one")
    })
)]
pub struct RunArgs {
    /// The experiment file [default: proofload.toml]
    file: Option<PathBuf>,
    #[command(flatten)]
    flags: RunFlags,
    /// Check the limits of [gate] and of flags, and exit with their result
    #[arg(long, help_heading = "With --gate")]
    gate: bool,
    // The heading holds for all that comes after it.
    #[command(flatten, next_help_heading = "With --gate")]
    limits: gate::Flags,
    #[command(flatten, next_help_heading = "Against another commit")]
    against: AgainstArgs,
}

pub fn run(args: &RunArgs) -> anyhow::Result<u8> {
    if let Some(flag) = args.limits.given().filter(|_| !args.gate) {
        return Err(CliError::usage(format!("{flag} goes with --gate")).into());
    }
    ExperimentJob {
        experiment: &Experiment::file(args.file.as_deref())?,
        flags: &args.flags,
        limits: args.gate.then_some(&args.limits),
        against: &args.against,
        slo: &[],
    }
    .run()
}
