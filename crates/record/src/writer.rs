//! Appends to a record on disk and folds the same events in memory, so that both always agree.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::{Event, Header, Record};

/// Why a record could not be made or appended to.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A folder for the record is there already and holds something.
    #[error("{}: is not empty, and a record is never written over", path.display())]
    Occupied {
        /// The folder asked for.
        path: PathBuf,
    },
    /// The system refused.
    #[error("{}: cannot write the record: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl WriteError {
    /// Whether the disk, or the user's share of it, is full.
    pub fn is_disk_full(&self) -> bool {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        matches!(self, WriteError::Io { source, .. }
            if matches!(source.kind(), StorageFull | QuotaExceeded | FileTooLarge))
    }
}

/// A record being written.
#[derive(Debug)]
pub struct Writer {
    events: File,
    path: PathBuf,
    record: Record,
}

impl Writer {
    /// Makes the record's folder with everything that is known before the run; `experiment` is the file's text.
    ///
    /// # Errors
    /// If the folder holds something already, or cannot be written.
    pub fn create(directory: &Path, header: Header, experiment: &str) -> Result<Writer, WriteError> {
        let logs = directory.join("logs");
        if fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(WriteError::Occupied { path: directory.to_path_buf() });
        }
        fs::create_dir_all(&logs).map_err(at(&logs))?;
        let directory = fs::canonicalize(directory).map_err(at(directory))?;
        write_file(&directory.join("experiment.toml"), experiment.as_bytes())?;
        let text = serde_json::to_vec_pretty(&header).map_err(io::Error::from).map_err(at(&directory))?;
        write_file(&directory.join("record.json"), &text)?;
        let path = directory.join("events.jsonl");
        let events = OpenOptions::new().create_new(true).append(true).open(&path).map_err(at(&path))?;
        // A mark that goes with this process, however it ends; see `is_being_written`. Where a file system has no locks there is none.
        let _ = events.try_lock();
        let mut record = Record::new(directory, header);
        record.experiment_text = Some(experiment.to_owned());
        Ok(Writer { events, path, record })
    }

    /// Keeps one event: on disk first, in one write, then in memory.
    ///
    /// # Errors
    /// If the disk refuses; the event is then neither in memory nor, as a whole line, on disk.
    pub fn append(&mut self, event: Event) -> Result<(), WriteError> {
        let mut line = serde_json::to_vec(&event).map_err(io::Error::from).map_err(at(&self.path))?;
        line.push(b'\n');
        self.events.write_all(&line).map_err(at(&self.path))?;
        self.record.apply(event);
        Ok(())
    }

    /// Writes a file of its own beside the events, for people to read.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn attach(&self, name: &str, text: &str) -> Result<(), WriteError> {
        write_file(&self.record.directory.join(name), text.as_bytes())
    }

    /// Everything so far.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Everything, when nothing more is to be written. A copy would have to fill the empty parts of all histograms.
    pub fn into_record(self) -> Record {
        self.record
    }
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    fs::write(path, bytes).map_err(at(path))
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> WriteError {
    let path = path.to_path_buf();
    |source| WriteError::Io { path, source }
}
