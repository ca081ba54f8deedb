//! What GitHub Actions is told where it runs us: the report in the step's summary, and an annotation for each limit that is not kept.
//!
//! It decides nothing: what cannot be written there is said, and the exit code stays what it is.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::{env, fs};

use analysis::Conclusion;
use report::{Gated, Report, markdown};

use crate::exit::Failed;
use crate::report::measured;
use crate::{explain, print};

/// The runner throws away the summary of a step that is larger than a mebibyte.
const SUMMARY_BYTES_MAX: u64 = 1_000_000;

/// Appends to the step's summary, and prints annotations where the runner reads them: on stdout, if that holds no other data.
///
/// # Errors
/// If stdout cannot be written.
pub fn tell(gated: &Gated<'_>, conclusion: &Conclusion, stdout_is_free: bool) -> Result<(), Failed> {
    if let Some(path) = env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()) {
        let path = PathBuf::from(path);
        if let Err(error) = append(&path, gated, conclusion) {
            print::talk(&format!("{}: the step's summary was not written: {error}", path.display()));
        }
    }
    if env::var_os("GITHUB_ACTIONS").is_some_and(|value| value == "true") {
        let annotations = gated.annotations(file(&gated.record.header.experiment).as_deref());
        if stdout_is_free {
            print::data(&annotations)?;
        } else if !annotations.is_empty() {
            // The runner reads both streams, and programs that take our JSON only the one.
            print::talk(annotations.trim_end());
        }
    }
    Ok(())
}

fn append(path: &Path, gated: &Gated<'_>, conclusion: &Conclusion) -> io::Result<()> {
    let explanation = explain::kept(&gated.record.directory);
    let report = markdown(&measured((gated.record, conclusion, explanation.as_ref()), None).document());
    let gate = markdown(&gated.document());
    let there = fs::metadata(path).map_or(0, |file| file.len());
    let text = format!("{report}\n{gate}\n");
    let fits = there + text.len() as u64 <= SUMMARY_BYTES_MAX;
    let text = if fits { text } else { format!("{gate}\n") };
    OpenOptions::new().create(true).append(true).open(path)?.write_all(text.as_bytes())
}

/// The experiment file as the repository has it; `None` where it lies elsewhere, or stands for a command.
fn file(experiment: &str) -> Option<String> {
    let path = Path::new(experiment);
    let path = path.strip_prefix("./").unwrap_or(path);
    if path.is_relative() {
        return path.extension().map(|_| path.display().to_string());
    }
    let workspace = PathBuf::from(env::var_os("GITHUB_WORKSPACE")?);
    Some(path.strip_prefix(workspace).ok()?.display().to_string())
}
