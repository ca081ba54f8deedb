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

mod key;

pub(crate) use key::Parts;

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions, TryLockError};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, io, thread};

use machine::Storage;
use plan::Preparation;

use crate::command::WITHHELD;
use crate::error::NO_MEMORY;
use crate::link::{Link, News};
use crate::marker::Marker;
use crate::message::{Exit, Failure, Spec};
use crate::{Error, Warden};

/// What is being done about some data, for whoever watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preparing {
    /// Another Proofload is making it.
    Waiting,
    /// Its command has been running for so long; told about once a second.
    Making(Duration),
}

/// Who hears what is being done.
type Watcher<'a> = &'a mut dyn FnMut(Preparing);

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
    pub fn place(&self, step: &Preparation) -> Result<Place, Error> {
        if let Some(mark) = &step.mark {
            return Ok(Place { path: step.directory.clone(), there: mark.is_file() });
        }
        let path = self.folder().join(key::key(step)?);
        let there = path.is_dir();
        Ok(Place { path, there })
    }

    /// Finds the data of a step or makes it, with its output in the file `log`; `values` are those of its placeholders for secrets. `cancelled` is asked about every 50 ms,
    /// and ends the command at once.
    ///
    /// # Errors
    /// Every way in which that can fail; then nothing half made is left.
    pub fn prepare(
        &self,
        (warden, values): (&Warden, &BTreeMap<String, String>),
        step: &Preparation,
        log: &Path,
        watch: Watcher<'_>,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Prepared, Error> {
        let begin = Instant::now();
        let key = key::key(step)?;
        let run =
            |output: &Path, watch: Watcher<'_>| run((warden, values), step, output, log, watch, cancelled);
        let (path, made) = match &step.mark {
            Some(mark) => (step.directory.clone(), build(step, mark, || run(&step.directory, watch))?),
            None => (self.folder.join(&key), self.make(step, &key, (watch, cancelled), &run)?),
        };
        Ok(Prepared { bytes: bytes_below(&path), path, key, made, took: begin.elapsed() })
    }

    /// Has `fill` fill a folder, which gets its name only if that went well. Whether it did: somebody else may have by now.
    fn make(
        &self,
        step: &Preparation,
        key: &str,
        (watch, cancelled): (Watcher<'_>, &dyn Fn() -> bool),
        fill: &dyn Fn(&Path, Watcher<'_>) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        let whole = self.folder.join(key);
        if whole.is_dir() {
            return Ok(false);
        }
        self.create()?;
        let lock = self.lock(&label(step), key, watch, cancelled)?;
        if whole.is_dir() {
            return Ok(false);
        }
        self.remove_abandoned(&lock);
        self.check_space(step)?;
        // Its name is its own: a command whose Proofload was killed may still write to the last one. It is gone at the end, under this name.
        let partial = tempfile::Builder::new()
            .prefix(&format!("{key}{PARTIAL}"))
            .permissions(Permissions::from_mode(0o777))
            .tempdir_in(&self.folder)
            .map_err(|error| unusable(&self.folder, &error))?;
        fill(partial.path(), watch)?;
        // It is on the disk first: a machine that loses power must not find the name without the data, and what is written
        // back later would be written while services are measured.
        synced(partial.path())
            .and_then(|()| fs::rename(partial.path(), &whole))
            .map_err(|error| unusable(partial.path(), &error))?;
        Ok(true)
    }
}

/// A step that changes the directory in which it runs: done once, which a mark tells that lies elsewhere. Whoever gave the directory keeps
/// others from it, and makes it anew where a mark is missing: half a build is none.
///
/// Has `run` do it, unless the mark tells that it was done; whether it did.
fn build(step: &Preparation, mark: &Path, run: impl FnOnce() -> Result<(), Error>) -> Result<bool, Error> {
    let made = !mark.is_file();
    if made {
        run()?;
        synced(&step.directory)
            .and_then(|()| fs::write(mark, step.masked().command.join("\n")))
            .map_err(|error| unusable(mark, &error))?;
    }
    Ok(made)
}

fn synced(folder: &Path) -> io::Result<()> {
    Ok(rustix::fs::syncfs(File::open(folder)?)?)
}

const NO_ROOM: &str = "make room there, or let XDG_CACHE_HOME name a folder on another disk";

/// That the cache cannot be written.
pub(crate) fn unusable(path: &Path, error: &io::Error) -> Error {
    Error::new(format!("cannot keep prepared data in {}: {error}", path.display())).help(NO_ROOM)
}

/// `2.2 GB`, `350 MB`.
fn text(bytes: u64) -> String {
    if bytes >= 1_000_000_000 {
        format!("{:.1} GB", bytes as f64 / 1e9)
    } else {
        format!("{:.0} MB", bytes as f64 / 1e6)
    }
}

/// What people know a step by.
fn label(step: &Preparation) -> String {
    match step.mark {
        None => format!("prepare.{}", step.name),
        Some(_) => format!("building {}", step.name),
    }
}

/// Bytes of a file, or of all files below a folder; what cannot be read counts as nothing.
pub fn bytes_below(path: &Path) -> u64 {
    let Ok(found) = fs::symlink_metadata(path) else { return 0 };
    if !found.is_dir() {
        return found.len();
    }
    fs::read_dir(path).into_iter().flatten().flatten().map(|entry| bytes_below(&entry.path())).sum()
}

/// The placeholders by which services find data: `prepare.NAME` and its folder.
pub fn placeholders<'a>(made: impl IntoIterator<Item = (&'a str, &'a Path)>) -> BTreeMap<String, String> {
    made.into_iter().map(|(name, path)| (format!("prepare.{name}"), path.display().to_string())).collect()
}

// The cache's folder: where it is, who may make something in it, what is left in it by the dead.
//
// It keeps folders whole; it must not know how they are made.

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
    pub fn of_this_user() -> Result<Self, Error> {
        // A relative path is to be ignored, says the XDG Base Directory Specification.
        let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let base = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
        base.map(|base| Self::at(base.join("proofload"))).ok_or_else(|| {
            Error::new(
                "no folder to keep prepared data in: neither XDG_CACHE_HOME nor HOME is an absolute path",
            )
            .help("set XDG_CACHE_HOME to a folder for caches")
        })
    }

    /// In this folder, which need not exist.
    pub fn at(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn create(&self) -> Result<(), Error> {
        fs::create_dir_all(&self.folder).map_err(|error| unusable(&self.folder, &error))
    }

    /// Waits until nobody else makes what `key` names, and keeps others from it.
    pub(crate) fn lock(
        &self,
        name: &str,
        key: &str,
        watch: Watcher<'_>,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Lock, Error> {
        let mut told = false;
        loop {
            match Lock::try_take(self, key).map_err(|error| unusable(&self.lock_path(key), &error))? {
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

    /// Removes what Proofloads left that were killed: of this key, whose lock is held, and of all that nobody is at.
    fn remove_abandoned(&self, own: &Lock) {
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
    fn check_space(&self, step: &Preparation) -> Result<(), Error> {
        let Some(needed) = step.space_bytes else { return Ok(()) };
        match Storage::of(&self.folder.display().to_string()).map(|found| found.free_bytes) {
            Some(free) if free < needed => {
                let (name, folder) = (label(step), self.folder.display());
                let (needed, free) = (text(needed), text(free));
                Err(Error::new(format!("{name} needs {needed}, and {folder} has {free} free")).help(NO_ROOM))
            }
            _ => Ok(()),
        }
    }

    fn lock_path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}{LOCK}"))
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

// One command that fills a folder, from its start to its end, below a warden.
//
// It knows the folder and nothing of the cache around it.

/// How often it is looked whether somebody wants no more.
const GLANCE: Duration = Duration::from_millis(50);
/// How often a watcher hears of it.
const TELL: Duration = Duration::from_secs(1);
/// What it makes is thrown away if it is ended early, so it need not be given time.
const STOP_TIMEOUT: Duration = Duration::from_millis(500);
/// A disk with less than this is full: what was written to its end takes whole blocks, and some were given back.
const FULL_BYTES: u64 = 4 << 20;
/// What programs say when they find a disk or a quota full.
const FULL_WORDS: [&str; 4] = ["ENOSPC", "No space left on device", "EDQUOT", "Disk quota exceeded"];

/// Runs the command of a step with `output` as the folder to fill.
fn run(
    (warden, values): (&Warden, &BTreeMap<String, String>),
    step: &Preparation,
    output: &Path,
    log: &Path,
    watch: Watcher<'_>,
    cancelled: &dyn Fn() -> bool,
) -> Result<(), Error> {
    let marker = Marker::new();
    let spec = spec((step, values), output, log, &marker)?;
    let (name, command) = (label(step), plan::masked_words(&spec.command).join(" "));
    let failed = |reason| warden_failed(&name, reason);
    let begin = Instant::now();
    watch(Preparing::Making(Duration::ZERO));
    let mut told = Duration::ZERO;
    // Dropped on whatever way out, which ends all that is left of the command.
    let mut link = Link::open(warden, &spec, marker).map_err(failed)?;
    let (exit, tail) = loop {
        match link.wait(GLANCE, end) {
            Some(End::Exited(exit, tail)) => break (exit, tail),
            Some(End::Failed(failure)) => return Err(not_run(step, &spec, failure)),
            Some(End::Lost) => return Err(failed(link.last_words())),
            None => {}
        }
        let elapsed = begin.elapsed();
        if cancelled() {
            return Err(Error::cancelled(&name));
        }
        if elapsed >= step.timeout {
            let message = format!("{name} had not ended after {} s: {command}", step.timeout.as_secs());
            return Err(Error::new(message)
                .after(link.tail())
                .help("raise `timeout` if it only needs more time"));
        }
        if elapsed >= told + TELL {
            told = elapsed;
            watch(Preparing::Making(elapsed));
        }
    };
    if !exit.is_success() {
        let after = begin.elapsed().as_secs_f64();
        let full = output.parent().filter(|_| is_full(output, &tail));
        let no_space = full.map(|folder| format!("; no space is left in {}", folder.display()));
        let error = Error::new(format!(
            "{name} ended with {exit} after {after:.1} s{}: {command}",
            no_space.unwrap_or_default()
        ));
        let error = error.after(tail);
        return Err(match (full, exit) {
            (Some(_), _) => error.help(NO_ROOM),
            (None, Exit::Signal(libc::SIGKILL)) => error.help(NO_MEMORY),
            _ => error,
        });
    }
    // What it left running might still write.
    link.stop();
    if fs::read_dir(output).is_ok_and(|mut entries| entries.next().is_some()) {
        return Ok(());
    }
    Err(Error::new(format!("{name} ended well and put nothing into {{output}}: {command}"))
        .after(tail)
        .help("{output} stands for a folder that is there: the data belongs into it"))
}

/// How a command came to its end.
enum End {
    Exited(Exit, String),
    Failed(Failure),
    /// The warden has gone without a word about it.
    Lost,
}

fn end(news: &mut News) -> Option<End> {
    if let Some((exit, tail)) = news.exited.take() {
        return Some(End::Exited(exit, tail));
    }
    if let Some(failure) = news.failed.take() {
        return Some(End::Failed(failure));
    }
    news.closed.is_some().then_some(End::Lost)
}

fn spec(
    (step, values): (&Preparation, &BTreeMap<String, String>),
    output: &Path,
    log: &Path,
    marker: &Marker,
) -> Result<Spec, Error> {
    let lookup = |name: &str| match name {
        "output" => Some(output.display().to_string()),
        "directory" => Some(step.directory.display().to_string()),
        other => values.get(other).cloned(),
    };
    let fill = |place: String, text: &str| {
        plan::fill(text, lookup).map_err(|source| Error::new(format!("{}: {place}: {source}", label(step))))
    };
    let command: Result<Vec<String>, _> =
        step.command.iter().map(|part| fill("command".to_owned(), part)).collect();
    let env = step.env.iter().map(|(name, text)| Ok((name.clone(), fill(format!("env.{name}"), text)?)));
    let command = command?;
    Ok(Spec {
        // Found by the kernel's rules, in the command's own directory and PATH.
        program: PathBuf::from(command.first().map(String::as_str).unwrap_or_default()),
        command,
        directory: step.directory.clone(),
        env_withheld: withheld(step),
        env: env.collect::<Result<_, Error>>()?,
        log: log.to_owned(),
        stop_timeout: STOP_TIMEOUT,
        marker: marker.as_str().to_owned(),
        ..Spec::default()
    })
}

/// Of a build also what points git and npm somewhere else than to where it runs.
fn withheld(step: &Preparation) -> Vec<String> {
    let own: &[&str] = if step.mark.is_some() { &machine::ELSEWHERE } else { &[] };
    WITHHELD.iter().chain(own).map(|name| (*name).to_owned()).collect()
}

fn not_run(step: &Preparation, spec: &Spec, failure: Failure) -> Error {
    let name = label(step);
    let reason = match failure {
        Failure::Execute(libc::ENOENT) if !spec.directory.is_dir() => {
            format!("its directory {} is not there", spec.directory.display())
        }
        Failure::Execute(number) => io::Error::from_raw_os_error(number).to_string(),
        Failure::Log(reason) => {
            return warden_failed(&name, format!("cannot write its log {}: {reason}", spec.log.display()));
        }
        Failure::Scratch(reason) | Failure::Warden(reason) => return warden_failed(&name, reason),
    };
    Error::new(format!("{name}: cannot run {}: {reason}", spec.program.display()))
        .help("a program without `/` in its name is looked for in PATH")
}

/// That the process that should have started something failed: a fault of Proofload or of the system.
pub(crate) fn warden_failed(name: &str, reason: String) -> Error {
    Error::new(format!("{name}: its warden failed: {reason}"))
}

fn is_full(output: &Path, tail: &str) -> bool {
    Storage::of(&output.display().to_string()).is_some_and(|found| found.free_bytes < FULL_BYTES)
        || FULL_WORDS.iter().any(|word| tail.contains(word))
}
