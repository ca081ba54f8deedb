//! Appends to a record on disk and folds the same events in memory, so that both always agree; or in memory alone.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::seal::Seal;
use crate::{Event, Header, Record, VERSION, write_whole};

/// Nobody else may read or write a file of a record.
const FILE_MODE: u32 = 0o600;

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
    /// Where events are kept, if they are.
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
    /// A record that is kept nowhere: whatever ends the program leaves nothing of it.
    pub fn nowhere(header: Header, experiment: &str) -> Writer {
        let experiment = header.plan.secrets.hide_in_file(experiment);
        Writer { events: None, record: begun(PathBuf::new(), masked(header), experiment) }
    }

    /// Makes the record's folder, for this user alone, with everything that is known before the run, secrets masked; `experiment` is the
    /// file's text.
    ///
    /// # Errors
    /// If the folder holds something already, or cannot be written.
    pub fn create(directory: &Path, header: Header, experiment: &str) -> Result<Writer, WriteError> {
        let logs = directory.join("logs");
        let occupied = || WriteError::Occupied { path: directory.to_path_buf() };
        if fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(occupied());
        }
        // Whoever may not read a record may not look into its folder.
        DirBuilder::new().recursive(true).mode(0o700).create(&logs).map_err(at(&logs))?;
        let experiment = header.plan.secrets.hide_in_file(experiment);
        // Of two that begin in one empty folder at once, one makes this file.
        let path = directory.join("experiment.toml");
        let made = OpenOptions::new().create_new(true).write(true).mode(FILE_MODE).open(&path);
        let mut file = made.map_err(|error| {
            if error.kind() == io::ErrorKind::AlreadyExists { occupied() } else { at(&path)(error) }
        })?;
        let written = file.write_all(experiment.as_bytes()).map_err(at(&path));
        written.and_then(|()| Writer::begin(directory, header, experiment)).inspect_err(|_| {
            // What is no record must not look like one, nor stand in the way of the next.
            let parts = ["record.json", "events.jsonl", "experiment.toml"];
            parts.iter().for_each(|name| drop(fs::remove_file(directory.join(name))));
            let _ = fs::remove_dir(&logs);
        })
    }

    /// The header comes last and whole: from then on the folder is a record.
    fn begin(directory: &Path, header: Header, experiment: String) -> Result<Writer, WriteError> {
        let directory = fs::canonicalize(directory).map_err(at(directory))?;
        let header = masked(header);
        let text = serde_json::to_vec_pretty(&header).map_err(io::Error::from).map_err(at(&directory))?;
        let path = directory.join("events.jsonl");
        let file = OpenOptions::new().create_new(true).append(true).mode(FILE_MODE).open(&path);
        let file = file.map_err(at(&path))?;
        // A mark that goes with this process, however it ends; see `is_being_written`. Where a file system has no locks there is none.
        let _ = file.try_lock();
        let made = directory.join("record.json");
        write_whole(&made, &text).map_err(at(&made))?;
        // The names of the files, too: without them a power cut would leave an empty folder.
        for path in [&made, &directory] {
            File::open(path).and_then(|file| file.sync_all()).map_err(at(path))?;
        }
        let events = Some(Events { file, path, seal: Seal::of(&text) });
        Ok(Writer { events, record: begun(directory, header, experiment) })
    }

    /// Keeps one event: on disk first, in one write, then in memory. With the end of a block, and of the run, everything is on the disk
    /// itself and survives a power cut.
    ///
    /// # Errors
    /// If the disk refuses; the event is then neither in memory nor, as a whole line, on disk.
    pub fn append(&mut self, event: Event) -> Result<(), WriteError> {
        if let Some(events) = &mut self.events {
            events.append(&event)?;
        }
        self.record.apply(event);
        Ok(())
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

impl Events {
    fn append(&mut self, event: &Event) -> Result<(), WriteError> {
        let mut seal = self.seal.clone();
        let line = seal.line(event).map_err(at(&self.path))?;
        self.file.write_all(&line).map_err(at(&self.path))?;
        if matches!(event, Event::BlockEnded { .. } | Event::BlockDropped { .. } | Event::Ended(_)) {
            self.file.sync_data().map_err(at(&self.path))?;
            // A file that was removed takes lines all the same, and nobody will ever read them.
            fs::metadata(&self.path).map_err(at(&self.path))?;
        }
        self.seal = seal;
        Ok(())
    }
}

/// A header as it is kept: of this format, without secrets.
fn masked(header: Header) -> Header {
    // Each field is named, so that a new text does not compile before somebody has decided whether a secret may stand in it.
    let Header {
        version: _,
        proofload,
        created,
        order,
        experiment,
        command,
        made_by,
        budget_typed,
        seed,
        plan,
        files,
        environment,
    } = header;
    Header {
        version: VERSION,
        proofload,
        created,
        order,
        experiment: plan.secrets.hide(&experiment),
        command: plan.secrets.mask_words(&command),
        made_by,
        budget_typed,
        seed,
        plan: plan.masked(),
        files,
        environment: plan.secrets.hidden(environment),
    }
}

/// A record without events.
fn begun(directory: PathBuf, header: Header, experiment: String) -> Record {
    let mut record = Record::new(directory, header);
    record.experiment_text = Some(experiment);
    record
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> WriteError {
    let path = path.to_path_buf();
    |source| WriteError::Io { path, source }
}
