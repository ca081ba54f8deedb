//! Results of earlier tunings: found like records, printed like them.

use std::cmp::Reverse;
use std::fs;
use std::path::Path;

use report::{Advice, Form, FormOptions};
use serde_json::Value;

use crate::exit::CliError;
use crate::print;
use crate::records::{self, ADVICE, ADVICE_BYTES_MAX};

/// A tuning below the folder of records.
#[derive(Debug)]
pub struct KeptTuning {
    /// Name of its folder.
    pub name: String,
    /// Its result.
    pub advice: Advice,
}

/// All readable tunings below the folder of records, newest first.
pub fn all() -> Vec<KeptTuning> {
    let folders = fs::read_dir(records::root())
        .into_iter()
        .flatten()
        .flatten();
    let kept = |folder: fs::DirEntry| {
        Some(KeptTuning {
            name: folder.file_name().to_string_lossy().into_owned(),
            advice: open(&folder.path()).ok()?,
        })
    };
    let mut all: Vec<KeptTuning> = folders.filter_map(kept).collect();
    all.sort_by_cached_key(|kept| Reverse(kept.advice.created.clone()));
    all
}

/// Reads the result of a tuning from its folder.
pub fn open(folder: &Path) -> Result<Advice, CliError> {
    let path = folder.join(ADVICE);
    let failed = |why: &dyn std::fmt::Display| {
        CliError::usage(format!("{}: not a readable tuning: {why}", path.display()))
            .hint("`proofload tune` writes it at its end; its steps are records: proofload report FOLDER/NN-confirm")
    };
    let text = record::read_file(&path, ADVICE_BYTES_MAX).map_err(|error| failed(&error))?;
    let value: Value = serde_json::from_slice(&text).map_err(|error| failed(&error))?;
    if value["format"] != report::FORMAT {
        return Err(failed(&"it has another format"));
    }
    serde_json::from_value(value).map_err(|error| failed(&error))
}

/// Prints the result of a tuning, and returns its exit code.
pub fn print(
    folder: &Path,
    form: &Form,
    out: Option<&Path>,
    look: FormOptions,
) -> anyhow::Result<u8> {
    let advice = open(folder)?;
    print::put(out, &print::drawn(&advice, form, look)?)?;
    Ok(advice.exit_code())
}
