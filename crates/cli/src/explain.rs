//! `proofload explain`: what the findings of a report mean, from docs/validity.md, and other pages of docs that the binary carries.

use clap::Args;
use model::Check;
use report::validity::Explained;

use crate::exit::Failed;
use crate::print::{self, FormArgs};

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
    /// methodology; without any, all checks are listed
    #[arg(value_name = "NUMBER")]
    checks: Vec<String>,
    #[command(flatten)]
    form: FormArgs,
}

/// Prints the list, the sections asked for, or a page.
///
/// # Errors
/// If there is no such check, or stdout cannot be written.
pub fn run(args: &ExplainArgs) -> anyhow::Result<u8> {
    let page = |word: &String| PAGES.iter().find(|(name, _)| name == word);
    if let [word] = &args.checks[..]
        && let Some((name, text)) = page(word)
    {
        if ![&report::TEXT, &report::MARKDOWN].contains(&args.form.form()) {
            return Err(Failed::usage(format!("{name} is a page: there is only its text")).into());
        }
        print::data(text)?;
        return Ok(0);
    }
    let checks = args.checks.iter().map(|word| find(word)).collect::<Result<Vec<_>, _>>()?;
    print::report(&Explained { checks: &checks }, args.form.form(), None)?;
    Ok(0)
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
