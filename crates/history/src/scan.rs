//! The folders of records as they lie there, each with a mark that changes when its record does.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// A folder with a header in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    pub directory: PathBuf,
    /// Size and time of change of the files that a record is read from.
    pub mark: String,
    /// When the header was last changed.
    pub changed: SystemTime,
}

/// All of them, by name. Folders without a header are none, and one that vanishes meanwhile is not there.
///
/// # Errors
/// If the folder itself cannot be listed.
pub fn scan(root: &Path) -> io::Result<BTreeMap<String, Folder>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(root)? {
        let directory = entry?.path();
        let Ok(header) = fs::metadata(directory.join("record.json")) else { continue };
        let events = fs::metadata(directory.join("events.jsonl")).ok();
        let changed = header.modified().unwrap_or(UNIX_EPOCH);
        let mark = format!("{} {}", of(&header), events.as_ref().map_or_else(|| "-".to_owned(), of));
        let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
        found.insert(name, Folder { directory, mark, changed });
    }
    Ok(found)
}

fn of(file: &Metadata) -> String {
    let changed = file.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    format!("{}@{}", file.len(), changed.unwrap_or_default().as_nanos())
}
