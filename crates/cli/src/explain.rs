//! `proofload explain`: what the findings of a report mean, from docs/validity.md, which the binary carries.

use std::process::ExitCode;

use clap::Args;
use model::Check;
use report::validity::Explained;

use crate::exit::Failed;
use crate::print::{self, FormArgs};

/// Flags of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// Numbers or names of checks, such as V8 or errors; without any, all of them are listed
    #[arg(value_name = "NUMBER")]
    checks: Vec<String>,
    #[command(flatten)]
    form: FormArgs,
}

/// Prints the list, or the sections asked for.
///
/// # Errors
/// If there is no such check, or stdout cannot be written.
pub fn run(args: &ExplainArgs) -> anyhow::Result<ExitCode> {
    let checks = args.checks.iter().map(|word| find(word)).collect::<Result<Vec<_>, _>>()?;
    print::report(&Explained { checks: &checks }, args.form.form(), None)?;
    Ok(ExitCode::SUCCESS)
}

fn find(word: &str) -> Result<Check, Failed> {
    let hint = || match near(word).as_slice() {
        [] => "`proofload explain` lists all of them".to_owned(),
        near => format!("there is {}; `proofload explain` lists all of them", near.join(", ")),
    };
    Check::find(word)
        .ok_or_else(|| Failed::usage(format!("no check has the number or the name `{word}`")).hint(hint()))
}

/// Checks that may have been meant: names with about a third of the letters wrong, or with the word in them.
fn near(word: &str) -> Vec<String> {
    let word = word.to_lowercase().replace('-', "_");
    let meant = |check: &&Check| {
        let name = check.name();
        let allowed = word.len().max(name.len()).div_ceil(3);
        word.len() > 2 && (name.contains(&word) || strsim::damerau_levenshtein(&word, name) <= allowed)
    };
    Check::ALL.iter().filter(meant).map(|check| format!("{} {}", check.number(), check.name())).collect()
}
