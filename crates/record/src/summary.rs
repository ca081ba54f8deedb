//! Lists the records below a folder. Each has a small file `summary.json`, which avoids reading the whole
//! record.
//!
//! The caller defines the content of a summary. A summary can always be recomputed, so problems with one are
//! not errors: a summary that is damaged, outdated or from another version is ignored. This module does not
//! draw conclusions.

use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::reader::{HEADER_BYTES_MAX, read_file};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Summary file in a record's folder.
pub const SUMMARY: &str = "summary.json";

/// A folder with a record's header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordFolder {
    /// Name of the folder.
    pub name: String,
    /// Path of the folder.
    pub directory: PathBuf,
    /// When the header was last changed.
    pub changed: SystemTime,
    made_of: MadeOf,
}

/// Of header and events: size, and modification time in nanoseconds since 1970, for detecting changes. `None`
/// if there is no file.
type MadeOf = [Option<(u64, u64)>; 2];

/// The file: a summary, and the conditions under which it is valid.
#[derive(Serialize, Deserialize)]
struct SummaryFile<S> {
    made_by: String,
    made_of: MadeOf,
    summary: S,
}

impl RecordFolder {
    /// Reads the metadata of a folder. `None` if it has no header. A folder without read permission may be a
    /// record.
    pub fn at(directory: PathBuf) -> Option<RecordFolder> {
        let header = match fs::metadata(directory.join("record.json")) {
            Err(error) if error.kind() != ErrorKind::PermissionDenied => return None,
            header => header.ok(),
        };
        let events = fs::metadata(directory.join("events.jsonl")).ok();
        let made_of = [&header, &events].map(|file| file.as_ref().map(version));
        let name = directory.file_name()?.to_string_lossy().into_owned();
        let changed = header.or_else(|| fs::metadata(&directory).ok());
        let changed = changed
            .and_then(|file| file.modified().ok())
            .unwrap_or(UNIX_EPOCH);
        Some(RecordFolder {
            name,
            directory,
            changed,
            made_of,
        })
    }

    /// Lists all records below a folder, in no particular order. Records that vanish meanwhile are left out.
    ///
    /// # Errors
    /// If the folder itself cannot be listed.
    pub fn all(root: &Path) -> io::Result<Vec<RecordFolder>> {
        let paths = fs::read_dir(root)?.map(|entry| entry.map(|entry| entry.path()));
        Ok(paths
            .collect::<io::Result<Vec<_>>>()?
            .into_iter()
            .filter_map(RecordFolder::at)
            .collect())
    }

    /// When the header was last changed, RFC 3339 in UTC with whole seconds.
    pub fn changed_utc(&self) -> String {
        crate::utc(jiff::Timestamp::try_from(self.changed).unwrap_or_default())
    }

    /// Reads the summary, if it was made by `made_by` from the current state of the record. Otherwise `None`.
    pub fn summary<S: DeserializeOwned>(&self, made_by: &str) -> Option<S> {
        let text = read_file(&self.directory.join(SUMMARY), HEADER_BYTES_MAX).ok()?;
        let kept: SummaryFile<S> = serde_json::from_slice(&text).ok()?;
        (kept.made_by == made_by && kept.made_of == self.made_of).then_some(kept.summary)
    }

    /// Stores a summary made after this folder was read. If the record has changed since then, the summary
    /// will be ignored.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep_summary<S: Serialize>(&self, made_by: &str, summary: &S) -> io::Result<()> {
        let kept = SummaryFile {
            made_by: made_by.to_owned(),
            made_of: self.made_of,
            summary,
        };
        crate::write_whole(&self.directory.join(SUMMARY), &serde_json::to_vec(&kept)?)
    }
}

fn version(file: &Metadata) -> (u64, u64) {
    let changed = file
        .modified()
        .ok()
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    (
        file.len(),
        u64::try_from(changed.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX),
    )
}
