//! What is printed and written of a load.

use std::fs::File;
use std::path::PathBuf;

use clap::Args;

use crate::exit::Failed;

/// Flags about the result.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct Output {
    /// Print more of the latency distribution, as wrk --latency does
    #[arg(long)]
    pub latency: bool,
    /// Print everything that was measured as JSON
    #[arg(long)]
    pub json: bool,
    /// Write all latencies into FILE, an HdrHistogram interval log: by endpoint and status, an interval for each step
    #[arg(long, value_name = "FILE")]
    hdr: Option<PathBuf>,
}

impl Output {
    /// The interval log, empty. Before a load, so that none runs whose result cannot be kept.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn hdr(&self) -> Result<Option<File>, Failed> {
        let Some(path) = &self.hdr else { return Ok(None) };
        let unwritable = |error| Failed::usage(format!("--hdr {}: cannot write it: {error}", path.display()));
        File::create(path).map(Some).map_err(unwritable)
    }
}
