//! `load --as TOOL`: the other tool's command line typed again as ours. What it means is known in `foreign`; this reads
//! what was typed, tells what it became, and says which differences mattered in a run.

use std::thread;

use analysis::Window;
use clap::{Args, Command, FromArgMatches};
use foreign::{Came, Difference, Tool};
use model::Counts;

use super::LoadArgs;
use crate::exit::Failed;
use crate::print;

/// Our flags for the command line after `--`, and how the figures differ from what that tool would show.
///
/// # Errors
/// If there is no such command line, or what it asks for cannot be done.
pub fn retype(args: &LoadArgs, tool: Tool) -> anyhow::Result<(LoadArgs, Vec<Difference>)> {
    if args.theirs.is_empty() || args.url.is_some() {
        let name = tool.name();
        let problem = format!("--as {name}: all of {name}'s command line goes after --, the URL too");
        let hint = format!("proofload load --as {name} -- {}", tool.example().unwrap_or_default());
        return Err(Failed::usage(problem).hint(hint).into());
    }
    let refused_by = |refusal: foreign::Refusal| Failed::usage(refusal.problem).hinted(refusal.hint);
    let mut translation = tool.translate(&args.theirs).map_err(refused_by)?;
    // After the program's name and "load".
    let typed = print::typed_command().into_iter().skip(2);
    let url = translation.arguments.pop();
    let mut arguments = translation.arguments;
    arguments.extend(given_before(typed));
    arguments.extend(url);
    print::talk(&format!("proofload load {}", report::shell_line(&arguments)));
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
pub fn mattering(differences: &[Difference], windows: &[Window<'_>]) -> Vec<String> {
    let sum = |of: fn(&Counts) -> u64| windows.iter().map(|window| of(&window.slice.counts)).sum::<u64>();
    let came = Came {
        timed_out: sum(|counts| counts.timed_out),
        not_good: sum(|counts| counts.responses - counts.successful),
        lost: sum(|counts| counts.broken),
        answered: sum(|counts| counts.responses),
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

/// The flags that stand before `--` but for `--as` and its value: they stay in force. `typed` is all that follows `load`.
fn given_before(typed: impl Iterator<Item = String>) -> Vec<String> {
    let mut given = Vec::new();
    let mut typed = typed.take_while(|argument| argument != "--");
    while let Some(argument) = typed.next() {
        if argument == "--as" {
            typed.next();
        } else if !argument.starts_with("--as=") {
            given.push(argument);
        }
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_before_the_dashes_stay_and_those_after_are_not_ours() {
        let given = |line: &str| given_before(line.split(' ').map(str::to_owned));
        assert_eq!(given("--as wrk --json -c 8 -- -t2 --as ab -- u"), ["--json", "-c", "8"]);
        assert_eq!(given("--driver readiness --as=ab -- -k u"), ["--driver", "readiness"]);
    }

    #[test]
    fn a_shown_command_line_can_be_typed() {
        let words =
            ["-H", "It's: a", "http://[::1]/?a=b&c", "", "--body", "@a/b.json", "$HOME"].map(str::to_owned);
        assert_eq!(
            report::shell_line(&words),
            r"-H 'It'\''s: a' 'http://[::1]/?a=b&c' '' --body @a/b.json '$HOME'"
        );
    }
}
