//! Opens a record from disk, whole or broken off, and says what could not be read.

use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::{Event, Header, Record, VERSION};

/// Longest experiment file that is read back: many times the longest that makes sense.
const EXPERIMENT_BYTES_MAX: u64 = 1 << 20;

/// Why a folder could not be opened as a record.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no such file, or it cannot be read.
    #[error("{}: not a readable record: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// `record.json` is not what a record begins with.
    #[error("{}: not a record's header: {source}", path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
    /// A newer Proofload wrote it.
    #[error("{}: format {found} is newer than the newest this version reads, {VERSION}", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version found.
        found: u32,
    },
}

/// Opens the record in a folder, or the one that a file lies in.
///
/// A line that cannot be read is kept in [`Record::damage`]; what stands before and after it counts.
///
/// # Errors
/// If there is no header, or a newer version wrote it.
pub fn open(path: &Path) -> Result<Record, OpenError> {
    let directory = if path.is_file() { path.parent().unwrap_or(path) } else { path };
    let header = read_header(&directory.join("record.json"))?;
    let mut record = Record::new(directory.to_path_buf(), header);
    record.experiment_text = read_experiment(&directory.join("experiment.toml"));
    let path = directory.join("events.jsonl");
    match File::open(&path) {
        Ok(file) => read_events(BufReader::new(file), &mut record).map_err(at(&path))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            record.damage.push("events.jsonl is missing: nothing is known of the run itself".into());
        }
        Err(error) => return Err(at(&path)(error)),
    }
    Ok(record)
}

/// Whether some process is writing the record in a folder right now: it holds a lock on the events. Where the file system has no
/// locks none is ever seen.
pub fn is_being_written(directory: &Path) -> bool {
    let events = File::open(directory.join("events.jsonl"));
    events.is_ok_and(|events| matches!(events.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

fn read_header(path: &Path) -> Result<Header, OpenError> {
    /// The one field whose place never changes.
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let text = fs::read(path).map_err(at(path))?;
    let header = |source| OpenError::Header { path: path.to_path_buf(), source };
    let Version { version: found } = serde_json::from_slice(&text).map_err(header)?;
    if found > VERSION {
        return Err(OpenError::Newer { path: path.to_path_buf(), found });
    }
    serde_json::from_slice(&text).map_err(header)
}

/// What is longer than any experiment file is none. No report rests on it, so that its absence is no damage.
fn read_experiment(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(EXPERIMENT_BYTES_MAX + 1).read_to_end(&mut bytes).ok()?;
    let whole = bytes.len() as u64 <= EXPERIMENT_BYTES_MAX;
    whole.then(|| String::from_utf8_lossy(&bytes).into_owned())
}

fn read_events(mut lines: impl BufRead, record: &mut Record) -> io::Result<()> {
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        if lines.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        match serde_json::from_slice::<Event>(&line) {
            Ok(event) => record.apply(event),
            Err(_) if line.last() != Some(&b'\n') => {
                record.damage.push(format!("events.jsonl:{number}: cut off; what stands before it counts"));
            }
            Err(error) => record.damage.push(format!("events.jsonl:{number}: left out: {error}")),
        }
    }
    Ok(())
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> OpenError {
    let path = path.to_path_buf();
    |source| OpenError::Io { path, source }
}
