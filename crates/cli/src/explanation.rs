//! Creates the explanation of a record from its captures: `explanation.json`, from which every report is
//! drawn, and the page `flame.html`. This module reads and writes files. `explain` interprets them, and
//! `report` presents them.

use std::path::{Component, Path, PathBuf};
use std::{fs, io};

use ::explain::{CaptureFiles, CostInterval, Explanation};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::text::percent_decoded;
use record::{EXPLANATION, Record};
use report::bytes;

use crate::exit::CliError;
use crate::print;

/// File name of the flame graphs in the record's folder.
pub const FLAME: &str = report::page::FLAME_PAGE;
/// Larger than any explanation, which has a complete tree for each variant and service.
const EXPLANATION_BYTES_MAX: u64 = 1 << 30;

/// Creates the explanation of a record with captures, and writes it with its page to the record's folder.
/// Write errors are printed but not returned, because it can be created again from the raw profiles.
pub fn keep(record: &Record) -> Option<Explanation> {
    if record.captures.is_empty() {
        return None;
    }
    print::tell!("reading {} of profiles", bytes(profiles_bytes(record)));
    let conclusion = analysis::conclude(record);
    let measured = |baseline, candidate| {
        let found = conclusion.cpu_difference(baseline, candidate)?;
        Some(CostInterval {
            value: found.value,
            low: found.low,
            high: found.high,
        })
    };
    let explanation = explain::explain(record, &measured, &Files::of(&record.directory));
    // Plain values with string keys always convert to JSON.
    let json = serde_json::to_vec(&explanation).unwrap_or_default();
    write(&record.directory.join(EXPLANATION), &json);
    write(
        &record.directory.join(FLAME),
        flames(record, &explanation).as_bytes(),
    );
    Some(explanation)
}

/// Whether the flame graphs in a record's folder are the ones that this program draws.
pub fn has_flames(record: &Record, explanation: &Explanation) -> bool {
    let page = flames(record, explanation);
    let there = record::read_file(&record.directory.join(FLAME), page.len() as u64);
    there.is_ok_and(|there| there == page.as_bytes())
}

/// The page with flame graphs.
pub fn flames(record: &Record, explanation: &Explanation) -> String {
    let plan = &record.header.plan;
    ::explain::flame::page(explanation, plan.question.as_ref().unwrap_or(&plan.name))
}

/// Reads the explanation beside a record. `None` if there is none, or if it cannot be read, which is printed.
pub fn kept(directory: &Path) -> Option<Explanation> {
    let path = directory.join(EXPLANATION);
    let read = record::read_file(&path, EXPLANATION_BYTES_MAX);
    if read
        .as_ref()
        .is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    {
        return None;
    }
    let kept = read.and_then(|text| Ok(serde_json::from_slice(&text)?));
    let told = |error: io::Error| {
        let (path, of) = (path.display(), directory.display());
        print::tell!(
            "{path}: not read: {error}; `proofload profile {of} --again` makes it anew from the raw profiles"
        );
    };
    kept.map_err(told).ok()
}

/// Reads the explanation beside a record, or creates it if there is none or `again` is set.
pub fn kept_or_made(record: &Record, again: bool) -> Result<Explanation, CliError> {
    let kept = if again { None } else { kept(&record.directory) };
    kept.or_else(|| keep(record)).ok_or_else(|| {
        let of = &record.header.experiment;
        CliError::usage(format!("{}: this record has no profiles", record.directory.display())).hint(format!(
            "proofload run {of} --explain captures them along with a run, proofload profile {of} without one"
        ))
    })
}

fn write(path: &Path, text: &[u8]) {
    if let Err(error) = record::write_whole(path, text) {
        print::tell!("{}: not written: {error}", path.display());
    }
}

fn profiles_bytes(record: &Record) -> f64 {
    let services = record.captures.iter().flat_map(|capture| &capture.services);
    let files = services
        .flat_map(|service| &service.processes)
        .flat_map(|process| {
            process
                .agents
                .iter()
                .filter_map(|agent| agent.profile.as_ref())
                .chain(&process.native)
        });
    files.map(|file| file.bytes).sum::<u64>() as f64
}

// Files for explanations: files of the record, and source files of services that still exist. It reads with
// limits, and never follows a name out of a record or to the network.

/// Maximum size of a profile. Half an hour of a busy process with a sample per millisecond is smaller.
pub const PROFILE_BYTES_MAX: u64 = 512 << 20;
const SCRIPT_BYTES_MAX: u64 = 64 << 20;
const MAP_BYTES_MAX: u64 = 128 << 20;
/// Precedes the location of a source map in a script.
const MAPPING: &str = "sourceMappingURL=";

/// The files of a record's folder, and the machine's files for names.
#[derive(Debug)]
pub struct Files {
    directory: PathBuf,
}

impl Files {
    pub fn of(directory: &Path) -> Files {
        Files {
            directory: directory.to_owned(),
        }
    }
}

impl CaptureFiles for Files {
    fn file(&self, path: &str) -> Result<Vec<u8>, String> {
        // Records are untrusted: files outside of its folder are not read.
        let inside = Path::new(path)
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        if !inside || path.is_empty() {
            return Err(format!("{path}: lies outside of the record"));
        }
        let file = self.directory.join(path);
        let real = |file: &Path| {
            file.canonicalize()
                .map_err(|error| format!("{path}: {error}"))
        };
        if !real(&file)?.starts_with(real(&self.directory)?) {
            return Err(format!("{path}: a link leads out of the record"));
        }
        plan::read_file(&file, PROFILE_BYTES_MAX).map_err(|error| format!("{path}: {error}"))
    }

    fn version(&self, folder: &str) -> Option<String> {
        Some(Path::new(folder))
            .filter(|folder| folder.is_absolute())
            .and_then(record::package_version)
    }

    fn source_map(&self, script: &str) -> Option<(Vec<u8>, String)> {
        // Node.js names scripts by their real paths. A record with other spellings would have the same map read again for each.
        let path = Path::new(script);
        fs::canonicalize(path)
            .ok()
            .filter(|real| real.as_os_str() == path.as_os_str())?;
        let text = plan::read_file(path, SCRIPT_BYTES_MAX).ok()?;
        let text = String::from_utf8_lossy(&text);
        let (_, named) = text.rsplit_once(MAPPING)?;
        let named = named
            .split(|c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '*'))
            .next()?;
        match named.strip_prefix("data:") {
            Some(data) => {
                let (form, data) = data.split_once(',')?;
                let map = STANDARD
                    .decode(data)
                    .ok()
                    .filter(|_| form.ends_with(";base64"))?;
                Some((map, script.to_owned()))
            }
            // Nothing is fetched.
            None if named.is_empty() || named.contains("://") => None,
            None => {
                // It is a URL: it may have a query, and compilers write a space as %20.
                let file = percent_decoded(named.split(['?', '#']).next()?);
                let file = path.parent()?.join(String::from_utf8(file).ok()?);
                Some((
                    plan::read_file(&file, MAP_BYTES_MAX).ok()?,
                    file.to_str()?.to_owned(),
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests;
