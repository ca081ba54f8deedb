//! The folders of records below another, and the small file in each that spares reading all of it: `summary.json`.
//!
//! What a summary says is the caller's. It can always be made again, so nothing that is wrong with one is an error: one that is damaged, or
//! was made of other files or by another version, is none. Must not: conclude anything.

use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::reader::{HEADER_BYTES_MAX, read_file};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The file in a record's folder that has its summary.
pub const SUMMARY: &str = "summary.json";

/// A folder with a record's header in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// Its name.
    pub name: String,
    /// Its path.
    pub directory: PathBuf,
    /// When the header was last changed.
    pub changed: SystemTime,
    made_of: MadeOf,
}

/// Of header and events: size, and time of change in nanoseconds since 1970, which change when the file does. `None` where there is none.
type MadeOf = [Option<(u64, u64)>; 2];

/// The file: a summary, and what must still hold for it to be one.
#[derive(Serialize, Deserialize)]
struct Kept<S> {
    made_by: String,
    made_of: MadeOf,
    summary: S,
}

impl Folder {
    /// Looks at a folder; `None` where there is no header in it. One that we may not look into may be a record.
    pub fn at(directory: PathBuf) -> Option<Folder> {
        let header = match fs::metadata(directory.join("record.json")) {
            Err(error) if error.kind() != ErrorKind::PermissionDenied => return None,
            header => header.ok(),
        };
        let events = fs::metadata(directory.join("events.jsonl")).ok();
        let made_of = [&header, &events].map(|file| file.as_ref().map(version));
        let name = directory.file_name()?.to_string_lossy().into_owned();
        let changed = header.or_else(|| fs::metadata(&directory).ok());
        let changed = changed.and_then(|file| file.modified().ok()).unwrap_or(UNIX_EPOCH);
        Some(Folder { name, directory, changed, made_of })
    }

    /// All records below a folder, in no order. One that vanishes meanwhile is not there.
    ///
    /// # Errors
    /// If the folder itself cannot be listed.
    pub fn all(root: &Path) -> io::Result<Vec<Folder>> {
        let paths = fs::read_dir(root)?.map(|entry| entry.map(|entry| entry.path()));
        Ok(paths.collect::<io::Result<Vec<_>>>()?.into_iter().filter_map(Folder::at).collect())
    }

    /// When the header was last changed, RFC 3339 in UTC with whole seconds.
    pub fn changed_utc(&self) -> String {
        crate::utc(jiff::Timestamp::try_from(self.changed).unwrap_or_default())
    }

    /// The summary as `made_by` made it of the record as it is now; `None` where there is none.
    pub fn summary<S: DeserializeOwned>(&self, made_by: &str) -> Option<S> {
        let text = read_file(&self.directory.join(SUMMARY), HEADER_BYTES_MAX).ok()?;
        let kept: Kept<S> = serde_json::from_slice(&text).ok()?;
        (kept.made_by == made_by && kept.made_of == self.made_of).then_some(kept.summary)
    }

    /// Keeps a summary that was made of the record after this folder was looked at: where the record has gone on since, it counts for
    /// nothing at the next look.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep_summary<S: Serialize>(&self, made_by: &str, summary: &S) -> io::Result<()> {
        let kept = Kept { made_by: made_by.to_owned(), made_of: self.made_of, summary };
        crate::write_whole(&self.directory.join(SUMMARY), &serde_json::to_vec(&kept)?)
    }
}

fn version(file: &Metadata) -> (u64, u64) {
    let changed = file.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    (file.len(), u64::try_from(changed.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX))
}
