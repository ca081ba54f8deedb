//! `proofload compare`: the figures of two records side by side, or why they may not stand there.

use std::path::PathBuf;
use std::process::ExitCode;

use analysis::Grade;
use clap::Args;
use report::Compared;

use crate::exit::VOID;
use crate::{print, records};

/// Flags of `compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// The earlier record: its folder, `latest~1` for the one before the newest, its name, or an experiment's name for its newest
    before: PathBuf,
    /// The later record, likewise
    #[arg(default_value = "latest")]
    after: PathBuf,
    /// For other programs
    #[arg(long)]
    json: bool,
}

/// Opens both and prints what may be said of them.
///
/// # Errors
/// If one of them is no record, or stdout cannot be written.
pub fn run(args: &CompareArgs) -> anyhow::Result<ExitCode> {
    let (before, after) = (records::opened(&args.before)?, records::opened(&args.after)?);
    let across = analysis::across(&before, &after);
    let compared = Compared { before: &before, after: &after, across: &across };
    print::report(&compared, print::form(args.json), None)?;
    let void = across.findings.iter().any(|finding| finding.grade == Grade::Void);
    Ok(if void { ExitCode::from(VOID) } else { ExitCode::SUCCESS })
}
