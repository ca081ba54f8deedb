//! The cache's folder: where it is, who may make something in it, what is left in it by the dead.
//!
//! It keeps folders whole; it must not know how they are made.

use std::env;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use plan::Preparation;

use super::{PrepareError, Preparing, label};

/// Time between two looks at a lock that somebody else holds.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// What follows the key in the name of a folder that is being made.
const PARTIAL: &str = ".partial-";
const LOCK: &str = ".lock";

/// A folder in which prepared data is kept from run to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// That of this user: `$XDG_CACHE_HOME/proofload`, or `~/.cache/proofload`.
    ///
    /// # Errors
    /// If neither variable holds an absolute path.
    pub fn of_this_user() -> Result<Self, PrepareError> {
        // A relative path is to be ignored, says the XDG Base Directory Specification.
        let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let base = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
        base.map(|base| Self::at(base.join("proofload"))).ok_or(PrepareError::NoFolder)
    }

    /// In this folder, which need not exist.
    pub fn at(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn create(&self) -> Result<(), PrepareError> {
        fs::create_dir_all(&self.folder).map_err(|error| self.unusable(&self.folder, &error))
    }

    /// Waits until nobody else makes what `key` names, and keeps others from it.
    pub(crate) fn lock(
        &self,
        name: &str,
        key: &str,
        watch: &mut dyn FnMut(Preparing),
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Lock, PrepareError> {
        let mut told = false;
        loop {
            match Lock::try_take(self, key).map_err(|error| self.unusable(&self.lock_path(key), &error))? {
                Some(lock) => return Ok(lock),
                None if cancelled() => return Err(PrepareError::Cancelled { name: name.to_owned() }),
                None => {
                    if !std::mem::replace(&mut told, true) {
                        watch(Preparing::Waiting);
                    }
                    thread::sleep(LOOK_AGAIN);
                }
            }
        }
    }

    /// Removes what Proofloads left that were killed: of this key, whose lock is held, and of all that nobody is at.
    pub(super) fn remove_abandoned(&self, own: &Lock) {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        for name in names {
            let Some((key, _)) = name.split_once(PARTIAL) else { continue };
            let other = if key == own.key { None } else { Lock::try_take(self, key).ok().flatten() };
            if key == own.key || other.is_some() {
                // What cannot be removed is only space: nobody will take it for data.
                let _ = fs::remove_dir_all(self.folder.join(&name));
            }
        }
    }

    /// An error if the disk has less free than the step asks for.
    pub(super) fn check_space(&self, step: &Preparation) -> Result<(), PrepareError> {
        let Some(needed) = step.space_bytes else { return Ok(()) };
        match free_bytes(&self.folder) {
            Some(free) if free < needed => {
                let (name, folder) = (label(step), self.folder.clone());
                Err(PrepareError::Space { name, folder, needed, free })
            }
            _ => Ok(()),
        }
    }

    /// A new folder to be filled. Its name is its own: a command whose Proofload was killed may still write to the last one.
    pub(super) fn partial(&self, lock: &Lock) -> Result<Partial, PrepareError> {
        let name = format!("{}{PARTIAL}{:016x}", lock.key, rand::random::<u64>());
        let path = self.folder.join(name);
        fs::create_dir(&path).map_err(|error| self.unusable(&path, &error))?;
        Ok(Partial { path, whole: self.folder.join(&lock.key), kept: false })
    }

    fn lock_path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}{LOCK}"))
    }

    fn unusable(&self, path: &Path, error: &io::Error) -> PrepareError {
        PrepareError::Folder { path: path.to_owned(), reason: error.to_string() }
    }
}

/// The right to make what a key names. Dropped, or when this process ends, it is given up.
#[derive(Debug)]
pub(crate) struct Lock {
    key: String,
    path: PathBuf,
    _file: File,
}

impl Lock {
    /// `None`: somebody else has it.
    pub fn try_take(cache: &Cache, key: &str) -> io::Result<Option<Self>> {
        let path = cache.lock_path(key);
        let file = File::options().create(true).truncate(false).write(true).open(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // Its last holder may have removed it after it was opened here: then it locks nothing.
        let same = fs::metadata(&path).is_ok_and(|there| {
            file.metadata().is_ok_and(|ours| (ours.dev(), ours.ino()) == (there.dev(), there.ino()))
        });
        Ok(same.then(|| Self { key: key.to_owned(), path, _file: file }))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // While it is held, so that nobody's is removed but our own.
        let _ = fs::remove_file(&self.path);
    }
}

/// A folder that is being filled. Dropped, it is gone.
#[derive(Debug)]
pub(super) struct Partial {
    path: PathBuf,
    whole: PathBuf,
    kept: bool,
}

impl Partial {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it the name by which it is found.
    ///
    /// It is on the disk first: a machine that loses power must not find the name without the data, and what is written
    /// back later would be written while services are measured.
    pub fn keep(mut self) -> Result<(), PrepareError> {
        let synced = File::open(&self.path).and_then(|folder| Ok(rustix::fs::syncfs(&folder)?));
        let kept = synced.and_then(|()| fs::rename(&self.path, &self.whole));
        kept.map_err(|error| PrepareError::Folder { path: self.path.clone(), reason: error.to_string() })?;
        self.kept = true;
        Ok(())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.kept {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Bytes that a user may still write where `path` is; `None` where the system does not say.
pub(super) fn free_bytes(path: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(path).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}
