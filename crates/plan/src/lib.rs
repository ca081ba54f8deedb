//! Reads an experiment file and resolves it to a checked [`Plan`].
//!
//! ```text
//! text ─► tree ─► check ─► one tree a variant ─► values ─► Plan
//! flags ───┤        │              │               │
//!          └────────┴── problems, each with its place, all at once
//! ```
//! Flags are [settings](FlagSetting) that are merged into the tree. A plan is not changed afterwards: a
//! comparison with a commit, a calibration and the step of a tuning derive plans of their own.
//!
//! [`Plan`] contains everything that a run needs, with every default filled in. This crate starts nothing and
//! measures nothing. It only reads the file with its templates and secrets, and checks whether the
//! directories and inputs that it names exist.

use std::io::ErrorKind;
use std::path::Path;

mod against;
mod check;
mod command;
mod comparable;
mod design;
mod draft;
mod factor;
mod file;
mod file_secrets;
mod gate;
mod generators;
mod limit;
mod log_in;
mod measure;
mod mix;
mod model;
mod node_command;
mod outside;
mod paths;
mod placeholder;
mod plan_secrets;
mod prepare;
mod problem;
mod rate;
mod request;
mod resolve;
mod scalar;
mod schema;
mod script;
mod secret;
mod service;
mod setting;
mod shown;
mod site;
mod text_form;
mod tree;
mod url;

pub use comparable::comparable_contract;
pub use design::BUDGET_S_MAX;
pub use draft::{
    DraftSource, DraftVariant, ExperimentDraft, SERVICE, WrittenFile, command_line, words,
};
pub use factor::VARIANTS_MAX;
pub use file_secrets::{has_secrets, veiled};
pub use limit::{AmountUnit, Bound, Limit, LimitFigure, limit, max_regression};
pub use mix::mix;
pub use model::*;
pub use node_command::{NodeCommand, NotNode, script_at};
pub use outside::{open_file, read_file, read_given, read_opened, read_text};
pub use paths::{LOAD_FILE_BYTES_MAX, PlanPaths, digests};
pub use placeholder::{Placeholder, UnknownPlaceholder, fill, placeholders, render};
pub use problem::{Problem, ReadError, Refused, did_you_mean};
pub use request::{NAME_CHARS_MAX, STREAMS};
pub use schema::schema;
pub use script::script;
pub use secret::{Secrets, is_secret_name, masked, masked_words, quotable};
pub use setting::{CommandRequests, FlagSetting, Overrides};
pub use url::{Url, UrlPlace};

/// Larger than any experiment. Keeps a mistaken path (a log, a device) from filling the memory.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Reads the text of the experiment file at `path`.
///
/// # Errors
/// [`ReadError::Io`] if it cannot be read. [`ReadError::Problems`] if it is not text, or too large.
pub fn text(path: &Path) -> Result<String, ReadError> {
    let bytes = read_given(path, FILE_BYTES_MAX).map_err(|source| match source.kind() {
        ErrorKind::FileTooLarge => {
            let message = format!("the file is larger than {FILE_BYTES_MAX} bytes");
            let problems = vec![Problem::new(0..0, message, "too large for an experiment")];
            ReadError::Problems {
                text: String::new(),
                problems,
            }
        }
        _ => ReadError::Io {
            path: path.to_owned(),
            source,
        },
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let message = format!("the byte 0x{:02x} is not UTF-8", error.as_bytes()[at]);
        let span = at..at + char::REPLACEMENT_CHARACTER.len_utf8();
        let problems = vec![Problem::new(span, message, "expected text in UTF-8")];
        ReadError::Problems {
            text: String::from_utf8_lossy(error.as_bytes()).into_owned(),
            problems,
        }
    })
}

/// Parses a duration in the file's notation, for flags that replace its keys: `250ms`, `10s`, `1h30m`, `10`.
///
/// # Errors
/// The problem, and the expected form.
pub fn duration(text: &str) -> Result<std::time::Duration, String> {
    text_form::told(text).map(|period: text_form::Period| period.0)
}

/// Parses the budget of a run, within the limits of `design.budget`.
///
/// # Errors
/// The problem, and the expected form.
pub fn budget(text: &str) -> Result<std::time::Duration, String> {
    let budget: text_form::Period = text_form::told(text)?;
    match budget.beyond(design::BUDGET) {
        Some((wrong, limit)) => Err(format!("{wrong}, {limit}")),
        None => Ok(budget.0),
    }
}

/// Formats a duration in the file's notation, to the millisecond. [`duration`] parses it.
pub fn duration_text(duration: std::time::Duration) -> String {
    text_form::Period(duration).to_string()
}

/// Parses a percentage in the file's notation into a fraction above 0 and below 1: `3%` is 0.03.
///
/// # Errors
/// The problem, and the expected form.
pub fn percentage(text: &str) -> Result<f64, String> {
    text_form::told(text).map(|percent: text_form::Percent| percent.0)
}

/// Parses a service level objective in the notation of `design.slo`: `p99 < 50ms`.
///
/// # Errors
/// The problem, and the expected form.
pub fn slo(text: &str) -> Result<Limit, String> {
    text_form::told(text).map(|slo: limit::SloText| slo.0)
}

/// Checks the text of an experiment file. Directories of services are relative to `directory` and must exist.
///
/// # Errors
/// All problems in the order of the text, at least one. After a TOML syntax error only such errors are
/// reported, because the rest of the text cannot be trusted.
pub fn parse(text: &str, directory: &Path) -> Result<Plan, Vec<Problem>> {
    parse_with(text, directory, &Overrides::default(), None)
}

/// Checks the text like [`parse`], with the settings of flags. With `against`, directories of the repository
/// and files read from them are as they are in that commit, which is checked out elsewhere.
///
/// # Errors
/// As [`parse`], and if something that the file names does not exist at the commit. Problems with a setting
/// come last.
pub fn parse_with(
    text: &str,
    directory: &Path,
    overrides: &Overrides,
    against: Option<&Against>,
) -> Result<Plan, Vec<Problem>> {
    let mut tree = tree::TomlNode::parse(text)?;
    let flagged = setting::FlaggedText::merge(text, &mut tree, overrides);
    let source = site::FileSource {
        text: &flagged.text,
        file_bytes: text.len(),
        directory,
        against,
        requests: overrides.requests.as_ref(),
        complete: true,
    };
    resolved(tree, source).map_err(|problems| {
        let problems = problems.into_iter();
        problems.map(|problem| flagged.at_flag(problem)).collect()
    })
}

fn resolved(mut tree: tree::TomlNode, source: site::FileSource<'_>) -> Result<Plan, Vec<Problem>> {
    tree.keep_typed_numbers();
    let mut problems = factor::unfold(&mut tree);
    problems.extend(file_secrets::lost(&tree));
    problems.extend(check::check(&mut tree, &schema::SCHEMA));
    let source = site::FileSource {
        complete: problems.is_empty(),
        ..source
    };
    let plan = resolve::plan(&tree, source, &mut problems);
    problems.sort_by_key(|problem| (problem.span.start, problem.span.end));
    let mut plan = plan.filter(|_| problems.is_empty()).ok_or(problems)?;
    // Its place in the file is unknown.
    let problem = |reason: String| Problem::new(0..0, reason, "stands for nothing");
    let secrets = Secrets::of(&plan, source.directory);
    plan.secrets =
        secrets.map_err(|reasons| reasons.into_iter().map(problem).collect::<Vec<_>>())?;
    Ok(plan)
}
