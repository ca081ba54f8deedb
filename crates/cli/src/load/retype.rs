//! `load --as TOOL`: the other tool's command line typed again as ours. What it means is `habits`' business; this reads what was
//! typed, tells what it became, and says which differences mattered in a run.

use std::env;
use std::thread;

use clap::{Args, Command, FromArgMatches};
use model::Counts;

use super::LoadArgs;
use crate::exit::Failed;
use crate::habits::{self, Came, Difference, Tool};
use crate::print;

/// Our flags for the command line after `--`, and how the figures differ from what that tool would show.
///
/// # Errors
/// If there is no such command line, or what it asks for cannot be done.
pub fn retype(args: &LoadArgs, tool: Tool) -> anyhow::Result<(LoadArgs, Vec<Difference>)> {
    if args.theirs.is_empty() || args.url.is_some() {
        let name = tool.name();
        let problem = format!("--as {name}: all of {name}'s command line goes after --, the URL too");
        let hint = format!("proofload load --as {name} -- {}", tool.example());
        return Err(Failed::usage(problem).hint(hint).into());
    }
    let mut translation = habits::translate(tool, &args.theirs)?;
    // After the program's name and "load".
    let typed = env::args_os().skip(2).map(|argument| argument.to_string_lossy().into_owned());
    let url = translation.arguments.pop();
    let mut arguments = translation.arguments;
    arguments.extend(habits::given_before(typed));
    arguments.extend(url);
    print::talk(&format!("proofload load {}", habits::shown(&arguments)));
    let matches = parser().try_get_matches_from(arguments);
    let args = matches.and_then(|matches| LoadArgs::from_arg_matches(&matches));
    Ok((args.map_err(|error| refused(&error, tool))?, translation.differences))
}

/// `load` by itself. Of flags that say the same thing the last one counts, so that those before `--` win.
fn parser() -> Command {
    let command = Command::new("proofload load").no_binary_name(true).args_override_self(true);
    LoadArgs::augment_args(command)
        .mut_arg("duration", |duration| duration.overrides_with("requests"))
        .mut_arg("requests", |requests| requests.overrides_with("duration"))
}

/// What of the differences mattered in this run.
pub fn mattering(differences: &[Difference], slice: &Counts) -> Vec<String> {
    let came = Came {
        timed_out: slice.timed_out,
        not_good: slice.responses - slice.successful,
        lost: slice.broken,
        answered: slice.responses,
        processors: thread::available_parallelism().map_or(u64::MAX, |number| number.get() as u64),
    };
    let mattering = differences.iter().filter(|difference| difference.when.met(&came));
    mattering.map(|difference| difference.text.clone()).collect()
}

/// Clap's own words without its usage: the command line that they are about has just been printed.
fn refused(error: &clap::Error, tool: Tool) -> Failed {
    let text = error.to_string();
    let problem = text.split("\n\nUsage:").next().unwrap_or(&text);
    let problem = problem.strip_prefix("error: ").unwrap_or(problem).trim_end();
    Failed::usage(problem).hint(format!("above stands what {}'s command line became", tool.name()))
}
