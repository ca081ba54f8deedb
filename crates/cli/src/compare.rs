//! `proofload compare`: the figures of two records side by side, or why they may not stand there.

use std::path::PathBuf;
use std::process::ExitCode;

use audit::Grade;
use clap::Args;
use report::Compared;

use crate::exit::VOID;
use crate::{print, report as records};

/// Flags of `compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Folder of the earlier record, or `latest`
    before: PathBuf,
    /// Folder of the later record, or `latest`
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
    let across = audit::across(&before, &after);
    let compared = Compared { before: &before, after: &after, across: &across };
    let text = if args.json { format!("{:#}\n", compared.json()) } else { compared.text(print::width()) };
    print::data(&text)?;
    let void = across.findings.iter().any(|finding| finding.grade == Grade::Void);
    Ok(if void { ExitCode::from(VOID) } else { ExitCode::SUCCESS })
}
