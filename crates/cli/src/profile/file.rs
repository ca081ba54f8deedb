//! Profiles that lie in files: which they are, read within limits, and printed.

use std::io::ErrorKind;
use std::path::Path;
use std::process::ExitCode;

use explain::{Naming, Tree, Unit, flame};

use super::form::{Form, FormArgs, exported};
use super::{drawn, v8_log};
use crate::exit::Failed;
use crate::explanation::{Files, PROFILE_BYTES_MAX, read_bounded};
use crate::print;

/// What can be read, for whoever gave something else.
const KNOWN: &str = "known are .cpuprofile and .heapprofile of V8 (node --cpu-prof, --heap-prof, DevTools), .native.json of a \
                     record, and the isolate*.log of node --prof";
/// What helps where a profile is too large.
const SMALLER: &str =
    "profile a shorter time, or take fewer samples: node --cpu-prof --cpu-prof-interval 10000, in µs";

/// A profile as it was read.
#[derive(Debug)]
pub struct Profile {
    /// Its path, as it was given.
    pub name: String,
    /// The calls.
    pub tree: Tree,
    /// What its values are.
    pub unit: Unit,
}

/// Prints one.
///
/// # Errors
/// If it cannot be read, or a flag is one of records alone.
pub fn run(path: &Path, form: &FormArgs) -> anyhow::Result<ExitCode> {
    if form.variant.is_some() || form.service.is_some() || form.again || form.heap {
        let message = format!("{}: --variant, --service, --heap and --again are for records", path.display());
        return Err(Failed::usage(message).hint("this is read as a file with one profile").into());
    }
    let Profile { name, tree, unit } = read(path)?;
    let out = form.out.as_deref();
    let text = match form.format {
        Form::Text => drawn(&name, &tree, unit),
        Form::Json => format!("{:#}\n", explain::profile_json(&name, &tree, unit)),
        Form::Html => flame::page_of_trees(&[(&name, &tree)], unit, &name),
        other => exported(other, &[(name.clone(), &tree)], unit, &name)?,
    };
    print::put(out, text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Reads a profile of any form that is known. Files of the service's own are named relative to the folder we are in.
///
/// # Errors
/// If it is not there, empty, too large, cut off, or no profile.
pub fn read(path: &Path) -> Result<Profile, Failed> {
    let name = path.display().to_string();
    let failed = |what: String| Failed::usage(format!("{name}: {what}")).hint(KNOWN);
    let text = read_bounded(path, PROFILE_BYTES_MAX).map_err(|error| {
        let helps = if error.kind() == ErrorKind::FileTooLarge { SMALLER } else { KNOWN };
        Failed::usage(format!("{name}: {error}")).hint(helps)
    })?;
    if text.iter().all(u8::is_ascii_whitespace) {
        let what = if text.is_empty() { "is empty" } else { "holds nothing but blanks" };
        return Err(failed(format!("{what}; a profiler that was killed leaves such a file")));
    }
    // A log of V8 is read by the tool that comes with the V8 that wrote it.
    let (text, told) = match v8_log::is_one(path, &text) {
        true => (v8_log::preprocessed(path)?, format!("{name}.json")),
        false => (text, name.clone()),
    };
    let profile = explain::read_any(&told, &text).map_err(|error| failed(error.to_string()))?;
    let files = Files::of(Path::new("."));
    // The folder of a service whose profile somebody left is nobody's to know: it is taken from the files that are named.
    let naming = Naming { directory: "", source: &files };
    let cut = profile.cut(None, &naming);
    for note in &cut.notes {
        print::talk(&format!("{name}: {}", note.text));
    }
    Ok(Profile { name, tree: cut.tree, unit: profile.unit() })
}
