//! `proofload explain`: explanations of a report's findings, from the checks, and other pages of the
//! documentation in the binary.

use analysis::Check;
use clap::Args;
use report::validity::Explained;

use crate::exit::CliError;
use crate::print::{self, FormArgs};
use crate::records;

macro_rules! pages {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../../docs/", $name, ".md")))),*]
    };
}

/// Pages that can be read without a clone, by name: `proofload help NAME`.
pub const PAGES: &[(&str, &str)] = pages! {
    "tutorial" "recipes" "experiment-file" "mix-file" "methodology" "ci" "against" "many-machines" "security" "formats" "glossary"
};

/// Flags of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// Numbers or names of checks, such as V8 or errors, or one page of the documentation, such as
    /// methodology [default: list all checks]
    #[arg(value_name = "NUMBER")]
    checks: Vec<String>,
    #[command(flatten)]
    form: FormArgs,
}

pub fn run(args: &ExplainArgs) -> anyhow::Result<u8> {
    let page = |word: &String| PAGES.iter().find(|(name, _)| name == word);
    if let [word] = &args.checks[..]
        && let Some((name, text)) = page(word)
    {
        if ![&report::TEXT, &report::MARKDOWN].contains(&args.form.form()) {
            return Err(
                CliError::usage(format!("{name} is a page: there is only its text")).into(),
            );
        }
        print::data(text)?;
        return Ok(0);
    }
    let checks = args
        .checks
        .iter()
        .map(|word| find(word))
        .collect::<Result<Vec<_>, _>>()?;
    print::report(&Explained { checks: &checks }, args.form.form(), None)?;
    Ok(0)
}

fn find(word: &str) -> Result<Check, CliError> {
    let hint = || {
        let (folded, names) = (
            word.to_lowercase().replace('-', "_"),
            Check::ALL.iter().map(|check| check.name()),
        );
        let near = records::alike(&folded, names)
            .into_iter()
            .filter_map(Check::find);
        let near: Vec<String> = near
            .map(|check| format!("{} {}", check.number(), check.name()))
            .collect();
        let there = if near.is_empty() {
            String::new()
        } else {
            format!("there is {}; ", near.join(", "))
        };
        format!("{there}`proofload explain` lists all of them")
    };
    Check::find(word).ok_or_else(|| {
        CliError::usage(format!("no check has the number or the name `{word}`")).hint(hint())
    })
}
