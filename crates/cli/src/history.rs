//! `proofload history`: records as a list, one in short, an experiment over time. How it looks is `report`'s work.

use std::path::PathBuf;
use std::process::ExitCode;

use analysis::{Essentials, machine_mark, machines};
use clap::{Args, Subcommand};
use report::history::{List, Listed, Short};

use crate::exit::Failed;
use crate::{print, records};
use gather::{Entry, Gathered, gather};

mod folder;
mod gather;
mod since;
mod trend;

pub use gather::keep;

/// Records that a list shows where nothing else is asked for.
const LIMIT: usize = 40;

/// Flags of `history`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = AFTER_HELP)]
pub struct HistoryArgs {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List the records, the newest first; the same as `history` alone
    List(ListArgs),
    /// Show one record in short: what came of it, what is in its folder, what to do with it
    Show(ShowArgs),
    /// Show each comparison and each variant of an experiment over time, and where their level changes
    Trend(trend::TrendArgs),
}

#[derive(Debug, Args)]
struct ListArgs {
    /// Only records of this experiment
    experiment: Option<String>,
    /// Only records made since then: 30d, 12h, 2026-11-01
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// At most so many, the newest; 0 for all [default: 40, and all with --json]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// For other programs
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct ShowArgs {
    #[arg(help = records::HELP, default_value = "latest")]
    record: PathBuf,
    /// For other programs
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
  proofload history                              all records, the newest first
  proofload history keep-alive --since 30d       those of one experiment of the last 30 days
  proofload history show latest~1                the one before the last, in short
  proofload history trend keep-alive             its ratios over time, and where they change
  proofload history trend keep-alive --metric cpu_per_request --variant keep --csv

Everything is read from the records below ./records, or below --records DIR. The file summary.json in each only saves time:
delete it whenever you like.

Exit codes: 0 all well; 2 no such record or experiment; 6 the folder of records cannot be read.";

/// Does what the arguments ask for.
///
/// # Errors
/// If what they name is not there, or stdout cannot be written.
pub fn run(args: &HistoryArgs) -> anyhow::Result<ExitCode> {
    match &args.what {
        None => list(&args.list),
        Some(What::List(args)) => list(args),
        Some(What::Show(args)) => show(args),
        Some(What::Trend(args)) => trend::run(args),
    }
}

fn list(args: &ListArgs) -> anyhow::Result<ExitCode> {
    let since = args.since.as_deref().map(since::since).transpose()?;
    let history = gathered()?;
    if let Some(experiment) = &args.experiment {
        known(&history, experiment)?;
    }
    let all = marked(&history);
    let asked = all.iter().rev().filter(|listed| {
        let of_it = args.experiment.as_deref().is_none_or(|name| is_of(listed, name));
        of_it && since.as_deref().is_none_or(|since| listed.created >= since)
    });
    let mut shown: Vec<Listed<'_>> = asked.cloned().collect();
    let found = shown.len();
    let limit = args.limit.unwrap_or(if args.json { 0 } else { LIMIT });
    shown.truncate(if limit == 0 { found } else { limit });
    let list = List { records: &shown, hidden: found - shown.len() };
    if shown.is_empty() {
        print::talk(&format!("no record below {} fits", records::root().display()));
    }
    if args.json || !shown.is_empty() {
        print::report(&list, print::form(args.json), None)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Of a record that cannot be read the name is all there is to tell by.
fn is_of(listed: &Listed<'_>, experiment: &str) -> bool {
    match listed.found {
        Ok(found) => found.experiment == experiment,
        Err(_) => listed.name.strip_prefix(experiment).is_some_and(|rest| rest.starts_with('-')),
    }
}

fn show(args: &ShowArgs) -> anyhow::Result<ExitCode> {
    let record = records::opened(&args.record)?;
    let short = Short {
        record: &record,
        conclusion: &analysis::conclude(&record),
        running: record.ended.is_none() && record::is_being_written(&record.directory),
        files: &folder::files(&record.directory),
    };
    print::report(&short, print::form(args.json), None)?;
    Ok(ExitCode::SUCCESS)
}

/// All records. What is wrong with keeping their summaries is told.
fn gathered() -> anyhow::Result<Gathered> {
    let root = records::root();
    let gathered = gather(root).map_err(|error| {
        let missing = error.kind() == std::io::ErrorKind::NotFound;
        let message = format!("{}: the folder of records cannot be read: {error}", root.display());
        let hint = "`proofload run` makes it; --records DIR or PROOFLOAD_RECORDS name another";
        Failed {
            message,
            hint: Some(hint.to_owned()),
            code: if missing { crate::exit::USAGE } else { crate::exit::SELF },
        }
    })?;
    if let Some(why) = &gathered.unkept {
        print::talk(&format!(
            "note: {why}: the summary cannot be kept; such records are read each time, which takes longer"
        ));
    }
    Ok(gathered)
}

/// Each record with the letters of its machine among all, the oldest first, so that letters stay when records are added.
fn marked(history: &Gathered) -> Vec<Listed<'_>> {
    let readable = history.entries.iter().filter_map(|entry| entry.found.as_deref().ok());
    let mut numbers = machines(readable.map(|found| &found.environment)).into_iter();
    let mut marked = Vec::with_capacity(history.entries.len());
    for entry in &history.entries {
        let number = entry.found.as_ref().ok().and_then(|_| numbers.next());
        marked.push(listed_of(entry, number.map(machine_mark)));
    }
    marked
}

fn listed_of(entry: &Entry, machine: Option<String>) -> Listed<'_> {
    let found: Result<&Essentials, &str> = match &entry.found {
        Ok(found) => Ok(found),
        Err(why) => Err(why),
    };
    Listed { name: &entry.name, created: &entry.created, found, running: entry.running, machine }
}

/// # Errors
/// If no record is of that experiment.
fn known(history: &Gathered, experiment: &str) -> Result<(), Failed> {
    let names =
        history.entries.iter().filter_map(|entry| Some(entry.found.as_ref().ok()?.experiment.as_str()));
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names.dedup();
    let unreadable = |entry: &Entry| entry.found.is_err() && is_of(&listed_of(entry, None), experiment);
    if names.contains(&experiment) || history.entries.iter().any(unreadable) {
        return Ok(());
    }
    let message = format!(
        "no record below {} is of an experiment `{experiment}`; there are {}",
        records::root().display(),
        names.len()
    );
    let hint = match records::alike(experiment, names.iter().copied()).as_slice() {
        [] => "`proofload history` lists all records".to_owned(),
        near => format!("the nearest names are {}", near.join(", ")),
    };
    Err(Failed::usage(message).hint(hint))
}
