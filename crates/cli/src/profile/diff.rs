//! `proofload profile diff A B`: two profiles compared, as tables and as a page.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use explain::{Unit, flame};

use super::file::{Profile, read};
use crate::exit::Failed;
use crate::print;

/// Flags of `profile diff`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct DiffArgs {
    /// The profile compared with
    a: PathBuf,
    /// The profile in question
    b: PathBuf,
    /// Requests that were served while each was taken: values are then per request
    #[arg(long, num_args = 2, value_names = ["A", "B"])]
    requests: Option<Vec<u64>>,
    /// Write a page with both flame graphs and their difference
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// For other programs
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
.cpuprofile and .heapprofile of V8, the isolate*.log of node --prof, and .native.json of a record; both of one kind.

Two profiles are comparable if they saw the same work: as many requests, or the number of each with --requests. Without it, times are
those of the whole profile, and one that ran longer looks more expensive.

  proofload profile diff before.cpuprofile after.cpuprofile --requests 20000 31000 --html diff.html

There is no interval: two processes that do the same differ by several per cent. For an answer with an interval let the lab capture
several of each: proofload run FILE --explain";

/// Prints the difference.
///
/// # Errors
/// If a file cannot be read, the two are not of one kind, or nothing can be written.
pub fn run(args: &DiffArgs) -> anyhow::Result<ExitCode> {
    let (mut a, mut b) = (read(&args.a)?, read(&args.b)?);
    if a.unit != b.unit {
        let message = format!("{} and {}: one is of memory, the other of CPU time", a.name, b.name);
        return Err(Failed::usage(message).hint("compare two of one kind").into());
    }
    if a.name == b.name {
        b.name.push_str(" (again)");
    }
    if let Some([of_a, of_b]) = args.requests.as_deref() {
        (a, b) = (per_request(a, *of_a)?, per_request(b, *of_b)?);
    }
    let comparison = explain::compare_trees((&a.name, &a.tree), (&b.name, &b.tree));
    if let Some(page) = &args.html {
        let (trees, title) =
            ([(&*a.name, &a.tree), (&*b.name, &b.tree)], format!("{} vs {}", b.name, a.name));
        print::put(Some(page), flame::page_of_trees(&trees, a.unit, &title).as_bytes())?;
    }
    if args.json {
        print::data(&format!("{:#}\n", explain::difference_json(&comparison, a.unit)))?;
    } else {
        print::data(&report::text(&explain::difference(&comparison, a.unit), print::width()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The same per request: nanoseconds become microseconds, as in the profiles of records.
fn per_request(of: Profile, requests: u64) -> Result<Profile, Failed> {
    if requests == 0 {
        return Err(Failed::usage(format!("--requests: 0 for {}, at least 1", of.name)));
    }
    let (unit, of_one) = match of.unit {
        Unit::Bytes | Unit::BytesPerRequest => (Unit::BytesPerRequest, 1.0),
        Unit::Nanoseconds | Unit::MicrosPerRequest => (Unit::MicrosPerRequest, 1e-3),
    };
    Ok(Profile { tree: explain::merge(&[(&of.tree, of_one / requests as f64)]), unit, ..of })
}
