//! `proofload profile`: where the CPU time goes: of a record, of an experiment or a command that is started for it, of a profile's file,
//! and of two files compared. Flags and their meaning together; reading, starting and drawing are in the files below.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::explain::{Explanation, Tree};
use clap::{Args, Subcommand};

use crate::exit::{self, Failed};
use crate::{explanation, print, records};

mod diff;
mod file;
mod form;
mod start;
mod v8_log;

use form::FormArgs;
use start::StartArgs;

/// Flags of `profile`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = AFTER_HELP)]
pub struct ProfileArgs {
    #[command(subcommand)]
    two: Option<Two>,
    /// An experiment (.toml), a record (its folder, `latest`, its name or its experiment's name), or a file with a profile
    #[arg(value_name = "FILE|RECORD")]
    what: Option<PathBuf>,
    /// A program that starts one service, and its arguments; it listens on the port in the variable PORT, and {port} stands for it
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "what")]
    command: Vec<String>,
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    start: StartArgs,
}

#[derive(Debug, Subcommand)]
enum Two {
    /// Compare two profiles: what the second spends that the first does not
    Diff(diff::DiffArgs),
}

const AFTER_HELP: &str = "\
Of a record that was made with --explain, or of profiles that you have:
  proofload profile latest                                each variant: by kind, package, function, line; bottom up and top down
  proofload profile latest --variant production --format html --out flame.html
  proofload profile CPU.20261121.cpuprofile               what node --cpu-prof, DevTools or `0x` left, as a table
  proofload profile isolate0x5581-1234-v8.log             what node --prof left (node --prof-process reads it)
  proofload profile diff before.cpuprofile after.cpuprofile --html diff.html

Without a record, by starting services and loading them (three rounds, about 90 s for each variant):
  proofload profile experiment.toml                       the variants of an experiment, without measuring them
  proofload profile --path /orders -- node server.js      one command; it gets PORT

What is measured and what a profile says differ: a profiler slows what it looks at. So profiles are taken in trials of their own, no
timing comes from them, and what they cost is told as tax. `proofload run FILE --explain` measures first and then says how
much of the measured difference the profiles account for. docs/profiles.md tells how to read all this.

Exit codes: 0 all well; 2 usage, or a file that cannot be read as what it should be; 3 a service failed; 4 no profile could be taken;
6 Proofload could not do its own part; 130 interrupted.";

/// Does what the arguments ask for.
///
/// # Errors
/// If what they name cannot be read or started, or nothing can be written.
pub fn run(args: &ProfileArgs) -> anyhow::Result<ExitCode> {
    if let Some(Two::Diff(two)) = &args.two {
        return diff::run(two);
    }
    let Some(what) = &args.what else {
        if !args.command.is_empty() {
            return start::command(&args.command, &args.start, &args.form);
        }
        return Err(Failed::usage("nothing to profile is named")
            .hint("name an experiment, a record or a profile, or put a command behind `--`: proofload profile --help")
            .into());
    };
    if is_experiment(what) {
        return start::experiment(what, &args.start, &args.form);
    }
    args.start.refused_for(what)?;
    if is_record(what) {
        return record(what, &args.form);
    }
    file::run(what, &args.form)
}

/// What is there and is no file is a record; what is not there may be one's name, unless it is a path or has the end of a file's name.
fn is_record(what: &Path) -> bool {
    let word = what.components().count() == 1 && what.extension().is_none();
    what.is_dir() || is_header(what) || !what.exists() && word
}

fn is_experiment(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml"))
}

/// Whether somebody named the file in a record's folder that begins it.
fn is_header(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "record.json")
}

fn record(path: &Path, form: &FormArgs) -> anyhow::Result<ExitCode> {
    let record = records::opened(path)?;
    let explanation = explanation::kept_or_made(&record, form.again)?;
    let plan = &record.header.plan;
    form::print(form, &explanation, plan.question.as_ref().unwrap_or(&plan.name))?;
    Ok(taken(&explanation))
}

/// Whether there is a profile in it, as an exit code. What is missing stands among the doubts, which are printed.
fn taken(explanation: &Explanation) -> ExitCode {
    let taken = explanation.subjects.iter().any(|subject| subject.requests > 0);
    ExitCode::from(if taken { 0 } else { exit::VOID })
}

/// One profile, drawn as text of the width there is.
fn drawn(title: &str, tree: &Tree, unit: ::explain::Unit) -> String {
    report::text(&::explain::profile(title, tree, unit), print::width())
}
