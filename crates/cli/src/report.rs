//! `proofload report`: the report of a record, from the record alone.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, time};

use audit::Conclusion;
use clap::{Args, ValueEnum};
use profile::Explanation;
use record::Record;
use report::Sheet;

use crate::exit::{self, Failed};
use crate::{explain, print};

/// Where records are made and found unless a path is given.
pub const RECORDS: &str = "records";

/// Flags of `report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Folder of the record, or `latest` for the newest below ./records
    record: PathBuf,
    /// Form of the report
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// The same as --format json
    #[arg(long)]
    json: bool,
}

/// A report's form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For a terminal
    Text,
    /// For a pull request
    #[value(alias = "md")]
    Markdown,
    /// For other programs
    Json,
}

/// Opens the record and prints it.
///
/// # Errors
/// If there is no such record, or stdout cannot be written.
pub fn run(args: &ReportArgs) -> anyhow::Result<ExitCode> {
    let record = opened(&args.record)?;
    print(&record, if args.json { Format::Json } else { args.format })
}

/// The record in a folder, or the newest below ./records where `latest` is asked for.
///
/// # Errors
/// If there is none.
pub fn opened(path: &Path) -> anyhow::Result<Record> {
    let directory = if path == Path::new("latest") { latest()? } else { path.to_owned() };
    let record = record::open(&directory).map_err(|error| {
        Failed::usage(error.to_string()).hint("a record is the folder that `proofload run` names at its end")
    })?;
    Ok(record)
}

/// Prints a record in one form and gives its exit code.
///
/// # Errors
/// If stdout cannot be written.
pub fn print(record: &Record, format: Format) -> anyhow::Result<ExitCode> {
    let conclusion = audit::conclude(record);
    let explanation = explain::kept(&record.directory);
    print::data(&drawn((record, &conclusion, explanation.as_ref()), format, print::width()))?;
    Ok(exit::of_record(record, &conclusion))
}

/// The report in one form, with what its captures explain.
pub fn drawn(
    (record, conclusion, explanation): (&Record, &Conclusion, Option<&Explanation>),
    format: Format,
    width: usize,
) -> String {
    let sheet = Sheet::new(record, conclusion);
    let sheet = match explanation {
        Some(explanation) => sheet.explained(record, explanation),
        None => sheet,
    };
    match format {
        Format::Text => report::text(&sheet, width),
        Format::Markdown => report::markdown(&sheet),
        Format::Json => {
            let mut json = report::json(record, conclusion);
            json["why"] = explanation.map_or(serde_json::Value::Null, report::why::json);
            format!("{json:#}\n")
        }
    }
}

fn latest() -> anyhow::Result<PathBuf> {
    let newest = newest_first().into_iter().next();
    Ok(newest.ok_or_else(|| Failed::usage(format!("there is no record below ./{RECORDS}")))?)
}

/// The folders of all records below ./records, the newest first.
pub fn newest_first() -> Vec<PathBuf> {
    let made = |path: &PathBuf| fs::metadata(path.join("record.json")).and_then(|file| file.modified()).ok();
    let entries = fs::read_dir(RECORDS).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut records: Vec<(time::SystemTime, PathBuf)> =
        entries.filter_map(|path| Some((made(&path)?, path))).collect();
    records.sort_by(|one, other| other.cmp(one));
    records.into_iter().map(|(_, path)| path).collect()
}
