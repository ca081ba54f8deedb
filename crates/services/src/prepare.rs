//! Data that services need: made once by a command, cached under a hash of its inputs.
//!
//! ```text
//! cache/KEY            complete: renamed to this when the command had succeeded
//! cache/KEY.partial-…  in progress, or left by a Proofload that was killed
//! cache/KEY.lock       held by the Proofload that makes it; a lock ends with its holder
//! ```
//! The command runs below a warden like any service, so no process stays behind. This module does not judge
//! the data.
//!
//! A build is a step too. It changes the directory in which it runs, and leaves a mark elsewhere when it is
//! done.

mod key;

pub(crate) use key::Parts;

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions, TryLockError};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, io, thread};

use machine::{Storage, private_folder, write_whole};
use model::quantity::{bytes, micros, span};
use plan::Preparation;

use crate::command::WITHHELD;
use crate::error::NO_MEMORY;
use crate::link::Link;
use crate::marker::{self, Marker};
use crate::message::{Exit, StartFailure, WardenSpec};
use crate::{Error, Warden};

/// Progress of one preparation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preparing {
    /// Another Proofload is making the data.
    Waiting,
    /// The command has been running for this long. Reported about once a second.
    Making(Duration),
}

/// Callback for progress.
type Watcher<'a> = &'a mut dyn FnMut(Preparing);

/// Prepared data.
#[derive(Debug, Clone, PartialEq)]
pub struct PreparedData {
    /// Replacement for `{prepare.NAME}`.
    pub path: PathBuf,
    /// Cache key: 64 hexadecimal digits.
    pub key: String,
    /// Whether the data was made by this call, and not found in the cache.
    pub made: bool,
    /// Duration of the call.
    pub took: Duration,
    /// Total size of the files in bytes.
    pub bytes: u64,
}

/// Location of prepared data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataPlace {
    /// The folder.
    pub path: PathBuf,
    /// Whether the data is there and complete.
    pub there: bool,
}

impl Cache {
    /// Returns where the data of a step is or would be made. `values` are the values of its placeholders for
    /// secrets. Changes nothing.
    ///
    /// # Errors
    /// An input that cannot be read.
    pub fn place(
        &self,
        step: &Preparation,
        values: &BTreeMap<String, String>,
    ) -> Result<DataPlace, Error> {
        if let Some(mark) = &step.mark {
            return Ok(DataPlace {
                path: step.directory.clone(),
                there: mark.is_file(),
            });
        }
        let path = self.folder.join(key::key(step, values)?);
        Ok(DataPlace {
            there: path.is_dir(),
            path,
        })
    }

    /// Finds or makes the data of a step, with the command's output in the file `log`. `values` are the
    /// values of its placeholders for secrets. `cancelled` is checked every 50 ms, and ends the command at
    /// once.
    ///
    /// # Errors
    /// Any failure. Then no partial data is left.
    pub fn prepare(
        &self,
        (warden, values): (&Warden, &BTreeMap<String, String>),
        step: &Preparation,
        log: &Path,
        watch: Watcher<'_>,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<PreparedData, Error> {
        let begin = Instant::now();
        let key = key::key(step, values)?;
        let mut making = Making {
            warden,
            values,
            step,
            log,
            watch,
            cancelled,
        };
        let (path, made) = match &step.mark {
            Some(mark) => (step.directory.clone(), making.build(mark)?),
            None => (self.folder.join(&key), making.fill(self, &key)?),
        };
        Ok(PreparedData {
            bytes: bytes_below(&path),
            path,
            key,
            made,
            took: begin.elapsed(),
        })
    }
}

/// A step that may have to be run.
struct Making<'a> {
    warden: &'a Warden,
    values: &'a BTreeMap<String, String>,
    step: &'a Preparation,
    log: &'a Path,
    watch: Watcher<'a>,
    cancelled: &'a dyn Fn() -> bool,
}

impl Making<'_> {
    /// Fills a folder that gets its final name only on success. Returns whether this call filled it: another
    /// process may have done so by now.
    fn fill(&mut self, cache: &Cache, key: &str) -> Result<bool, Error> {
        let whole = cache.folder.join(key);
        if whole.is_dir() {
            return Ok(false);
        }
        cache.create()?;
        let lock = cache.lock(&label(self.step), key, self.watch, self.cancelled)?;
        if whole.is_dir() {
            return Ok(false);
        }
        cache.remove_abandoned(&lock);
        cache.check_space(self.step)?;
        // The name is unique because a command whose Proofload was killed may still write to its own folder.
        // The folder is renamed at the end. Its mode is 0700, like that of the cache.
        let partial = tempfile::Builder::new()
            .prefix(&format!("{key}{PARTIAL}"))
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(&cache.folder)
            .map_err(|error| unusable(&cache.folder, &error))?;
        self.run(partial.path())?;
        // Sync first: after a power loss the name must not exist without the data. Also, delayed writeback
        // would happen while services are measured.
        synced(partial.path())
            .and_then(|()| fs::rename(partial.path(), &whole))
            .map_err(|error| unusable(partial.path(), &error))?;
        Ok(true)
    }

    /// Runs a step that changes its working directory, unless the mark shows that it was done. Returns
    /// whether it was run. The caller locks the directory, and recreates it if a mark is missing: half a
    /// build does not count.
    fn build(&mut self, mark: &Path) -> Result<bool, Error> {
        if mark.is_file() {
            return Ok(false);
        }
        self.run(&self.step.directory)?;
        synced(&self.step.directory)
            // The mark contains nothing of the command, which may contain secrets that only its experiment
            // declares as such.
            .and_then(|()| write_whole(mark, self.step.name.as_bytes()))
            .map_err(|error| unusable(mark, &error))?;
        Ok(true)
    }
}

fn synced(folder: &Path) -> io::Result<()> {
    Ok(rustix::fs::syncfs(File::open(folder)?)?)
}

const NO_ROOM: &str = "free space there, or set XDG_CACHE_HOME to a folder on another disk";

/// Error for a cache that cannot be written.
pub(crate) fn unusable(path: &Path, error: &io::Error) -> Error {
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied => "set XDG_CACHE_HOME to a folder of your own",
        _ => NO_ROOM,
    };
    Error::new(format!(
        "cannot keep prepared data in {}: {error}",
        path.display()
    ))
    .help(hint)
}

/// Name of a step in messages.
fn label(step: &Preparation) -> String {
    match step.mark {
        None => format!("prepare.{}", step.name),
        Some(_) => format!("building {}", step.name),
    }
}

/// Size of a file, or of all files below a folder, in bytes. Unreadable files count as 0.
pub fn bytes_below(path: &Path) -> u64 {
    let Ok(found) = fs::symlink_metadata(path) else {
        return 0;
    };
    if !found.is_dir() {
        return found.len();
    }
    fs::read_dir(path)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| bytes_below(&entry.path()))
        .sum()
}

// The cache folder: its location, its locks, and the removal of abandoned data.
//
// It keeps folders complete. It does not know how they are made.

/// Poll interval for a lock held by another process.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Follows the key in the name of a folder that is being made.
const PARTIAL: &str = ".partial-";
const LOCK: &str = ".lock";

/// A folder in which prepared data is kept between runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    /// Location of the folder. It need not exist.
    pub folder: PathBuf,
}

impl Cache {
    /// The cache of the current user: `$XDG_CACHE_HOME/proofload`, or `~/.cache/proofload`.
    ///
    /// # Errors
    /// If neither variable holds an absolute path.
    pub fn of_this_user() -> Result<Self, Error> {
        // The XDG Base Directory Specification requires relative paths to be ignored.
        let absolute = |name: &str| {
            env::var_os(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        let base =
            absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
        let message = "no folder to keep prepared data in: neither XDG_CACHE_HOME nor HOME is an absolute path";
        let missing = || Error::new(message).help("set XDG_CACHE_HOME to a folder for caches");
        base.map(|base| Self {
            folder: base.join("proofload"),
        })
        .ok_or_else(missing)
    }

    /// Creates the folder, or makes an existing one private. Its mode keeps other users out. Files inside
    /// have the modes that commands choose.
    pub(crate) fn create(&self) -> Result<(), Error> {
        // The user may have linked it to another disk. The target of such a link must belong to the user,
        // too.
        let folder = self
            .folder
            .canonicalize()
            .unwrap_or_else(|_| self.folder.clone());
        private_folder(&folder).map_err(|error| unusable(&self.folder, &error))
    }

    /// Waits until no other process makes the data of `key`, and locks it.
    pub(crate) fn lock(
        &self,
        name: &str,
        key: &str,
        watch: Watcher<'_>,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Lock, Error> {
        let mut told = false;
        loop {
            match Lock::try_take(self, key)
                .map_err(|error| unusable(&self.lock_path(key), &error))?
            {
                Some(lock) => return Ok(lock),
                None if cancelled() => return Err(Error::cancelled(name)),
                None => {
                    if !std::mem::replace(&mut told, true) {
                        watch(Preparing::Waiting);
                    }
                    thread::sleep(LOOK_AGAIN);
                }
            }
        }
    }

    /// Removes data left by killed Proofloads: of this key, whose lock is held, and of all keys without a
    /// lock.
    fn remove_abandoned(&self, own: &Lock) {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        for name in names {
            let Some((key, _)) = name.split_once(PARTIAL) else {
                continue;
            };
            let other = if key == own.key {
                None
            } else {
                Lock::try_take(self, key).ok().flatten()
            };
            if key == own.key || other.is_some() {
                // A folder that cannot be removed only takes space. It is never used as data.
                let _ = marker::remove(&self.folder.join(&name));
            }
        }
    }

    /// Returns an error if the disk has less free space than the step requires.
    fn check_space(&self, step: &Preparation) -> Result<(), Error> {
        let Some(needed) = step.space_bytes else {
            return Ok(());
        };
        match Storage::of(&self.folder.display().to_string()).map(|found| found.free_bytes) {
            Some(free) if free < needed => {
                let (name, folder) = (label(step), self.folder.display());
                let (needed, free) = (bytes(needed as f64), bytes(free as f64));
                Err(Error::new(format!(
                    "{name} needs {needed}, and {folder} has {free} free"
                ))
                .help(NO_ROOM))
            }
            _ => Ok(()),
        }
    }

    fn lock_path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}{LOCK}"))
    }
}

/// An exclusive lock on a key. Released on drop, or when this process ends.
#[derive(Debug)]
pub(crate) struct Lock {
    key: String,
    path: PathBuf,
    _file: File,
}

impl Lock {
    /// Returns `None` if another process holds the lock.
    pub fn try_take(cache: &Cache, key: &str) -> io::Result<Option<Self>> {
        let path = cache.lock_path(key);
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // The last holder may have removed the file after it was opened here. Then it locks nothing.
        let same = fs::metadata(&path).is_ok_and(|there| {
            file.metadata()
                .is_ok_and(|ours| (ours.dev(), ours.ino()) == (there.dev(), there.ino()))
        });
        Ok(same.then(|| Self {
            key: key.to_owned(),
            path,
            _file: file,
        }))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Removed while the lock is held, so that only our own file is removed.
        let _ = fs::remove_file(&self.path);
    }
}

// Runs one command that fills a folder, below a warden.
//
// It knows the folder and nothing of the cache around it.

/// Poll interval for cancellation.
const GLANCE: Duration = Duration::from_millis(50);
/// Interval of progress reports.
const TELL: Duration = Duration::from_secs(1);
/// Partial data is discarded, so a cancelled command gets little time to stop.
const STOP_TIMEOUT: Duration = Duration::from_millis(500);
/// A disk with less free space than this counts as full: writes take whole blocks, and some were released
/// again.
const FULL_BYTES: u64 = 4 << 20;
/// Messages of programs when a disk or a quota is full.
const FULL_WORDS: [&str; 4] = [
    "ENOSPC",
    "No space left on device",
    "EDQUOT",
    "Disk quota exceeded",
];

impl Making<'_> {
    /// Runs the command with `output` as the folder to fill.
    fn run(&mut self, output: &Path) -> Result<(), Error> {
        let step = self.step;
        let marker = Marker::new();
        let spec = self.spec(output, &marker)?;
        let (name, command) = (label(step), plan::masked_words(&spec.command).join(" "));
        let begin = Instant::now();
        (self.watch)(Preparing::Making(Duration::ZERO));
        let mut told = Duration::ZERO;
        // Dropped on every way out, which ends all remaining processes of the command.
        let mut link = Link::open(self.warden, &spec, marker)
            .map_err(|failure| self.not_run(&spec, failure))?;
        let (exit, tail) = loop {
            if let Some(ended) = link.outcome(GLANCE, |news| news.exited.take()) {
                break ended.map_err(|failure| self.not_run(&spec, failure))?;
            }
            let elapsed = begin.elapsed();
            if (self.cancelled)() {
                return Err(Error::cancelled(&name));
            }
            if elapsed >= step.timeout {
                let message = format!(
                    "{name} had not ended after {}: {command}",
                    span(step.timeout.as_secs_f64())
                );
                let error = Error::new(message).after(link.tail());
                return Err(error.help("raise `timeout` if it only needs more time"));
            }
            if elapsed >= told + TELL {
                told = elapsed;
                (self.watch)(Preparing::Making(elapsed));
            }
        };
        if !exit.is_success() {
            let after = micros(begin.elapsed().as_secs_f64() * 1e6);
            let full = output.parent().filter(|_| is_full(output, &tail));
            let no_space = full.map(|folder| format!("; no space is left in {}", folder.display()));
            let after = format!("{after}{}", no_space.unwrap_or_default());
            let error = Error::new(format!("{name} ended with {exit} after {after}: {command}"))
                .after(tail);
            return Err(match (full, exit) {
                (Some(_), _) => error.help(NO_ROOM),
                (None, Exit::Signal(libc::SIGKILL)) => error.help(NO_MEMORY),
                _ => error,
            });
        }
        // Remaining processes of the command might still write.
        link.stop();
        if fs::read_dir(output).is_ok_and(|mut entries| entries.next().is_some()) {
            return Ok(());
        }
        Err(Error::new(format!(
            "{name} ended well and put nothing into {{output}}: {command}"
        ))
        .after(tail)
        .help("{output} stands for a folder that is there: the data belongs into it"))
    }

    fn spec(&self, output: &Path, marker: &Marker) -> Result<WardenSpec, Error> {
        let step = self.step;
        let lookup = |name: &str| match name {
            "output" => Some(output.display().to_string()),
            "directory" => Some(step.directory.display().to_string()),
            other => self.values.get(other).cloned(),
        };
        let fill = |place: String, text: &str| {
            plan::fill(text, lookup)
                .map_err(|source| Error::new(format!("{}: {place}: {source}", label(step))))
        };
        let command = step
            .command
            .iter()
            .map(|part| fill("command".to_owned(), part));
        let command = command.collect::<Result<Vec<String>, _>>()?;
        let env = step
            .env
            .iter()
            .map(|(name, text)| Ok((name.clone(), fill(format!("env.{name}"), text)?)));
        // A build does not get variables that make git and npm use another directory either.
        let own: &[&str] = if step.mark.is_some() {
            &machine::ELSEWHERE
        } else {
            &[]
        };
        Ok(WardenSpec {
            // Found by the kernel's rules, in the command's directory and PATH.
            program: PathBuf::from(command.first().map(String::as_str).unwrap_or_default()),
            command,
            directory: step.directory.clone(),
            env_withheld: WITHHELD
                .split(' ')
                .chain(own.iter().copied())
                .map(str::to_owned)
                .collect(),
            env: env.collect::<Result<_, Error>>()?,
            log: self.log.to_owned(),
            stop_timeout: STOP_TIMEOUT,
            marker: marker.text.clone(),
            ..WardenSpec::default()
        })
    }

    fn not_run(&self, spec: &WardenSpec, failure: StartFailure) -> Error {
        let name = label(self.step);
        let reason = match failure {
            StartFailure::Execute(libc::ENOENT) if !spec.directory.is_dir() => {
                format!("its directory {} is not there", spec.directory.display())
            }
            StartFailure::Execute(number) => io::Error::from_raw_os_error(number).to_string(),
            StartFailure::Other(reason) => return Error::new(format!("{name}: {reason}")),
        };
        Error::new(format!(
            "{name}: cannot run {}: {reason}",
            spec.program.display()
        ))
        .help("a program without `/` in its name is looked for in PATH")
    }
}

fn is_full(output: &Path, tail: &str) -> bool {
    Storage::of(&output.display().to_string()).is_some_and(|found| found.free_bytes < FULL_BYTES)
        || FULL_WORDS.iter().any(|word| tail.contains(word))
}
