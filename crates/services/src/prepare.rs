//! Data that services need: made once by a command, kept in a cache under a hash of what it was made from.
//!
//! ```text
//! cache/KEY            whole: it got this name when the command had ended well
//! cache/KEY.partial-…  being made, or left by a Proofload that was killed
//! cache/KEY.lock       held by whoever makes it; a lock ends with its holder, however that ends
//! ```
//! The command runs below a warden like any service, so nothing of it stays behind. It must not judge the data.
//!
//! A build is a step too: one that changes the directory in which it runs, and leaves a mark elsewhere when it is done.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use plan::Preparation;

use crate::Warden;

mod cache;
mod error;
mod in_place;
mod key;
mod making;

pub use cache::Cache;
pub use error::PrepareError;

pub(crate) use cache::Lock;

/// What is being done about some data, for whoever watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preparing {
    /// Another Proofload is making it.
    Waiting,
    /// Its command has been running for so long; told about once a second.
    Making(Duration),
}

/// Data that is there.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    /// What `{prepare.NAME}` stands for.
    pub path: PathBuf,
    /// Under which it is kept: 64 hexadecimal digits.
    pub key: String,
    /// Whether it was made just now; otherwise it was found.
    pub made: bool,
    /// How long that took.
    pub took: Duration,
    /// Bytes of its files.
    pub bytes: u64,
}

/// Where some data is or would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Its folder.
    pub path: PathBuf,
    /// Whether it is there, whole.
    pub there: bool,
}

impl Cache {
    /// Where the data of a step is, or would be made. Changes nothing.
    ///
    /// # Errors
    /// An input that cannot be read.
    pub fn place(&self, step: &Preparation) -> Result<Place, PrepareError> {
        if let Some(mark) = &step.mark {
            return Ok(Place { path: step.directory.clone(), there: mark.is_file() });
        }
        let path = self.folder().join(key::key(step)?);
        let there = path.is_dir();
        Ok(Place { path, there })
    }

    /// Finds the data of a step or makes it, with its output in the file `log`. `cancelled` is asked about every 50 ms,
    /// and ends the command at once.
    ///
    /// # Errors
    /// Every way in which that can fail; then nothing half made is left.
    pub fn prepare(
        &self,
        warden: &Warden,
        step: &Preparation,
        log: &Path,
        watch: &mut dyn FnMut(Preparing),
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Prepared, PrepareError> {
        if let Some(mark) = &step.mark {
            return in_place::build(step, mark, || {
                making::run(warden, step, &step.directory, log, watch, cancelled)
            });
        }
        let begin = Instant::now();
        let key = key::key(step)?;
        let path = self.folder().join(&key);
        let found = |key: String, path: PathBuf| {
            let bytes = size(&path);
            Ok(Prepared { path, key, made: false, took: begin.elapsed(), bytes })
        };
        if path.is_dir() {
            return found(key, path);
        }
        self.create()?;
        let lock = self.lock(&label(step), &key, watch, cancelled)?;
        // Whoever we waited for may have made it.
        if path.is_dir() {
            return found(key, path);
        }
        self.remove_abandoned(&lock);
        self.check_space(step)?;
        self.make(&lock, |output| making::run(warden, step, output, log, watch, cancelled))?;
        Ok(Prepared { bytes: size(&path), path, key, made: true, took: begin.elapsed() })
    }

    /// Has `fill` fill a folder, which gets its name only if that went well.
    fn make(
        &self,
        lock: &Lock,
        fill: impl FnOnce(&Path) -> Result<(), PrepareError>,
    ) -> Result<(), PrepareError> {
        let partial = self.partial(lock)?;
        fill(partial.path())?;
        partial.keep()
    }
}

/// What people know a step by.
fn label(step: &Preparation) -> String {
    match step.mark {
        None => format!("prepare.{}", step.name),
        Some(_) => format!("building {}", step.name),
    }
}

/// Bytes of all files below a folder; what cannot be read counts as nothing.
fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let of_entry = |entry: fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => size(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    entries.map(of_entry).sum()
}

/// The placeholders by which services find data: `prepare.NAME` and its folder.
pub fn placeholders<'a>(made: impl IntoIterator<Item = (&'a str, &'a Path)>) -> BTreeMap<String, String> {
    made.into_iter().map(|(name, path)| (format!("prepare.{name}"), path.display().to_string())).collect()
}
