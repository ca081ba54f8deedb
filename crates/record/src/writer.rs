//! Appends events to a record on disk and in memory, so that both always agree. A record may also be in
//! memory only.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::seal::Seal;
use crate::{Event, Header, Record, Repeat, VERSION, write_whole};

/// Only the owner may read or write files of a record.
const FILE_MODE: u32 = 0o600;

/// Why a record could not be created or extended.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The folder for the record exists and is not empty.
    #[error("{}: is not empty, and a record is never written over", path.display())]
    Occupied {
        /// The requested folder.
        path: PathBuf,
    },
    /// An I/O error.
    #[error("{}: cannot write the record: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl WriteError {
    /// Whether the disk is full or the user's quota is exceeded.
    pub fn is_disk_full(&self) -> bool {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        matches!(self, WriteError::Io { source, .. }
            if matches!(source.kind(), StorageFull | QuotaExceeded | FileTooLarge))
    }
}

/// A record being written.
#[derive(Debug)]
pub struct Writer {
    /// The events file. `None` for a record in memory only.
    events: Option<Events>,
    record: Record,
}

/// The file of a record's events.
#[derive(Debug)]
struct Events {
    file: File,
    path: PathBuf,
    seal: Seal,
}

impl Writer {
    /// Creates a record in memory only, of which nothing remains when the program ends.
    pub fn nowhere(header: Header, experiment: &str) -> Writer {
        let experiment = header.plan.secrets.hide_in_file(experiment);
        Writer {
            events: None,
            record: begun(PathBuf::new(), masked(header), experiment),
        }
    }

    /// Creates the record's folder, accessible only by this user, with all data known before the run. Secrets
    /// are masked. `experiment` is the text of the experiment file.
    ///
    /// # Errors
    /// If the folder is not empty, or cannot be written.
    pub fn create(
        directory: &Path,
        header: Header,
        experiment: &str,
    ) -> Result<Writer, WriteError> {
        let logs = directory.join("logs");
        let occupied = || WriteError::Occupied {
            path: directory.to_path_buf(),
        };
        if fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(occupied());
        }
        // Users who may not read a record may not list its folder either.
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&logs)
            .map_err(at(&logs))?;
        let experiment = header.plan.secrets.hide_in_file(experiment);
        // If two runs start in the same empty folder, only one can create this file.
        let path = directory.join("experiment.toml");
        let made = OpenOptions::new()
            .create_new(true)
            .write(true)
            .mode(FILE_MODE)
            .open(&path);
        let mut file = made.map_err(|error| {
            if error.kind() == io::ErrorKind::AlreadyExists {
                occupied()
            } else {
                at(&path)(error)
            }
        })?;
        let written = file.write_all(experiment.as_bytes()).map_err(at(&path));
        written
            .and_then(|()| Writer::begin(directory, header, experiment))
            .inspect_err(|_| {
                // An incomplete folder must not look like a record, nor block the next run.
                let parts = ["record.json", "events.jsonl", "experiment.toml"];
                parts
                    .iter()
                    .for_each(|name| drop(fs::remove_file(directory.join(name))));
                let _ = fs::remove_dir(&logs);
            })
    }

    /// Writes the header last and atomically. From then on the folder is a record.
    fn begin(directory: &Path, header: Header, experiment: String) -> Result<Writer, WriteError> {
        let directory = fs::canonicalize(directory).map_err(at(directory))?;
        let header = masked(header);
        let text = serde_json::to_vec_pretty(&header)
            .map_err(io::Error::from)
            .map_err(at(&directory))?;
        let path = directory.join("events.jsonl");
        let file = OpenOptions::new()
            .create_new(true)
            .append(true)
            .mode(FILE_MODE)
            .open(&path);
        let file = file.map_err(at(&path))?;
        // The lock is released when this process ends in any way; see `is_being_written`. Some file systems
        // have no locks.
        let _ = file.try_lock();
        let made = directory.join("record.json");
        write_whole(&made, &text).map_err(at(&made))?;
        // Syncs the directory entries, too: without them a power cut would leave an empty folder.
        for path in [&made, &directory] {
            File::open(path)
                .and_then(|file| file.sync_all())
                .map_err(at(path))?;
        }
        let events = Some(Events {
            file,
            path,
            seal: Seal::of(&text),
        });
        Ok(Writer {
            events,
            record: begun(directory, header, experiment),
        })
    }

    /// Appends one event: first on disk, in one write, then in memory. The end of a block or of the run is
    /// synced, so that it survives a power cut.
    ///
    /// # Errors
    /// If writing fails. The event is then neither in memory nor, as a whole line, on disk.
    pub fn append(&mut self, event: Event) -> Result<(), WriteError> {
        if let Some(events) = &mut self.events {
            events.append(&event)?;
        }
        self.record.apply(event);
        Ok(())
    }

    /// The record so far.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Returns the record after the last event. Cloning it would expand all packed histograms.
    pub fn into_record(self) -> Record {
        self.record
    }
}

impl Events {
    fn append(&mut self, event: &Event) -> Result<(), WriteError> {
        let mut seal = self.seal.clone();
        let line = seal.line(event).map_err(at(&self.path))?;
        self.file.write_all(&line).map_err(at(&self.path))?;
        if matches!(
            event,
            Event::BlockEnded { .. } | Event::BlockDropped { .. } | Event::Ended(_)
        ) {
            self.file.sync_data().map_err(at(&self.path))?;
            // Writing to a removed file succeeds, but the data would be lost.
            fs::metadata(&self.path).map_err(at(&self.path))?;
        }
        self.seal = seal;
        Ok(())
    }
}

/// Prepares a header for storage: current format version, without secrets.
fn masked(header: Header) -> Header {
    // The pattern names every field, so that a new field does not compile until it is decided whether it may
    // contain secrets.
    let Header {
        version: _,
        proofload,
        created,
        order,
        experiment,
        command,
        repeat,
        seed,
        plan,
        files,
        environment,
    } = header;
    let repeat = match repeat {
        Repeat::Command(words) => Repeat::Command(plan.secrets.mask_words(&words)),
        Repeat::AsTyped | Repeat::SavedFile => repeat,
    };
    Header {
        version: VERSION,
        proofload,
        created,
        order,
        experiment: plan.secrets.hide(&experiment),
        command: plan.secrets.mask_words(&command),
        repeat,
        seed,
        plan: plan.masked(),
        files,
        environment: plan.secrets.hidden(environment),
    }
}

/// Creates a record without events.
fn begun(directory: PathBuf, header: Header, experiment: String) -> Record {
    let mut record = Record::new(directory, header);
    record.experiment_text = Some(experiment);
    record
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> WriteError {
    let path = path.to_path_buf();
    |source| WriteError::Io { path, source }
}
