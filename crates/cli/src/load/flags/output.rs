//! What is printed and written of a load.

use std::fs::File;
use std::path::PathBuf;

use clap::Args;
use plan::Limit;
use report::Form;

use crate::exit::Failed;
use crate::print::{AmountArgs, FormArgs};

/// Flags about the result.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct Output {
    /// Print more of the latency distribution, as wrk --latency does
    #[arg(long)]
    pub latency: bool,
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    pub amount: AmountArgs,
    /// A limit, such as "p99 < 50ms" or "failed < 0.1%": exit code 0 if all pass, 1 if one fails; may be repeated
    #[arg(long = "limit", value_name = "LIMIT", value_parser = plan::limit)]
    pub limits: Vec<Limit>,
    /// Keep the record, with its page, in this folder, made new [default: none is kept]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write all latencies into FILE, an HdrHistogram interval log: by endpoint and status, an interval for each step
    #[arg(long, value_name = "FILE")]
    hdr: Option<PathBuf>,
}

impl Output {
    /// In which form the result is printed.
    pub fn form(&self) -> &'static Form {
        self.form.form()
    }

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
