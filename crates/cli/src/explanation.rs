//! From a record's captures to the explanation beside them: `explanation.json`, from which every report is drawn, and the page
//! `flame.html`. Here files are read and written; what they mean is `explain`'s work, how it looks `report`'s.

use std::fs;
use std::io;
use std::path::Path;

use ::explain::{Explanation, Interval};
use record::{EXPLANATION, Record};
use report::bytes;

use crate::exit::Failed;
use crate::print;

mod files;

pub use files::{Files, PROFILE_BYTES_MAX, read_bounded};

/// The flame graphs, in the record's folder.
pub const FLAME: &str = report::page::FLAME_PAGE;
/// Larger than any: it has a tree for each variant and service, pruned of nothing.
const EXPLANATION_BYTES_MAX: u64 = 1 << 30;

/// Makes the explanation of a record that has captures, and leaves it with its page in the record's folder. What cannot be written
/// is told, and is no error: the raw profiles are there, and the explanation can be made again.
pub fn keep(record: &Record) -> Option<Explanation> {
    if record.captures.is_empty() {
        return None;
    }
    print::talk(&format!("reading {} of profiles", bytes(profiles_bytes(record))));
    let explanation = make(record);
    let plan = &record.header.plan;
    let title = plan.question.as_ref().unwrap_or(&plan.name);
    // Plain values with text keys cannot fail to become JSON.
    let json = serde_json::to_vec(&explanation).unwrap_or_default();
    write(&record.directory.join(EXPLANATION), &json);
    write(&record.directory.join(FLAME), ::explain::flame::page(&explanation, title).as_bytes());
    Some(explanation)
}

/// The explanation of a record, from its events and its raw profiles.
pub fn make(record: &Record) -> Explanation {
    let conclusion = analysis::conclude(record);
    let measured = |baseline, candidate| {
        let found = conclusion.cpu_difference(baseline, candidate)?;
        Some(Interval { value: found.value, low: found.low, high: found.high })
    };
    explain::explain(record, &measured, &Files::of(&record.directory))
}

/// The explanation that lies beside a record; `None` where there is none, or only one that cannot be read, which is told.
pub fn kept(directory: &Path) -> Option<Explanation> {
    let path = directory.join(EXPLANATION);
    let again =
        format!("`proofload profile {} --again` makes it anew from the raw profiles", directory.display());
    let text = match plan::read_file(&path, EXPLANATION_BYTES_MAX) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => {
            print::talk(&format!("{}: not read: {error}; {again}", path.display()));
            return None;
        }
    };
    match serde_json::from_slice(&text) {
        Ok(explanation) => Some(explanation),
        Err(error) => {
            print::talk(&format!("{}: no explanation: {error}; {again}", path.display()));
            None
        }
    }
}

/// The explanation beside a record, made where there is none yet, or anew.
///
/// # Errors
/// If the record has no captures.
pub fn kept_or_made(record: &Record, again: bool) -> Result<Explanation, Failed> {
    let kept = if again { None } else { kept(&record.directory) };
    kept.or_else(|| keep(record)).ok_or_else(|| {
        let message = format!("{}: this record has no profiles", record.directory.display());
        let experiment = &record.header.experiment;
        Failed::usage(message).hint(format!(
            "proofload run {experiment} --explain captures them along with a run, proofload profile {experiment} without one"
        ))
    })
}

fn write(path: &Path, text: &[u8]) {
    if let Err(error) = fs::write(path, text) {
        print::talk(&format!("{}: not written: {error}", path.display()));
    }
}

fn profiles_bytes(record: &Record) -> f64 {
    let services = record.captures.iter().flat_map(|capture| &capture.services);
    let processes = services.flat_map(|service| &service.processes);
    let files = processes.flat_map(|process| {
        let agents = process.agents.iter().filter_map(|agent| agent.profile.as_ref());
        agents.chain(&process.native)
    });
    files.map(|file| file.bytes).sum::<u64>() as f64
}

#[cfg(test)]
mod tests;
