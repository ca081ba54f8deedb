//! A commit checked out in the cache: created once, reused while unchanged, removed when other commits have
//! been used since.
//!
//! It knows a build only by its mark.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use machine::groups::mounted_in;
use machine::{Filters, write_whole};
use serde_json::{Value, json};

use crate::prepare::{Lock, Parts, unusable};
use crate::source::ignored::CopiedFiles;
use crate::source::{CommitSource, refused};
use crate::{Cache, Error, Preparing};

/// Subfolder of the cache for worktrees.
const FOLDER: &str = "worktrees";
/// Maximum number of worktrees kept, the most recently used ones.
const KEPT_MAX: usize = 5;
/// Follows the key in the name of a mark.
const BUILT: &str = ".built-";
const OWNER: &str = ".json";
const KEY_DIGITS: usize = 12;

/// A worktree in use. No other process changes or removes it until this value is dropped.
#[derive(Debug)]
pub struct Worktree {
    /// Root of the worktree.
    pub path: PathBuf,
    /// Whether it was checked out by this call, and not found in the cache.
    pub made: bool,
    /// Files copied into it. They are removed before the lock is released.
    _copies: CopiedFiles,
    _lock: Lock,
}

/// Folder of all worktrees.
pub(super) fn folder(cache: &Cache) -> PathBuf {
    cache.folder.join(FOLDER)
}

/// Folder name for a commit of a repository. It begins with the commit, so that paths are readable.
pub(super) fn key(repository: &Path, commit: &str) -> String {
    let hash = hash(&[repository.as_os_str().as_encoded_bytes(), commit.as_bytes()]);
    format!("{}-{hash}", commit.get(..KEY_DIGITS).unwrap_or(commit))
}

/// The file that marks a command as successful in a directory of a worktree, with copied files of these
/// `contents`.
pub(super) fn mark(
    worktree: &Path,
    directory: &Path,
    (command, contents): (&[String], &str),
) -> PathBuf {
    let words = command.iter().map(|word| word.as_bytes());
    let first = [
        directory.as_os_str().as_encoded_bytes(),
        contents.as_bytes(),
    ];
    let parts: Vec<&[u8]> = first.into_iter().chain(words).collect();
    beside(worktree, &format!("{BUILT}{}", hash(&parts)))
}

/// A hash with enough digits to distinguish entries that are kept side by side.
pub(super) fn hash(parts: &[&[u8]]) -> String {
    let mut hash = Parts::new();
    parts.iter().for_each(|part| hash.add(part));
    hash.digits()[..KEY_DIGITS].to_owned()
}

pub(super) fn beside(worktree: &Path, end: &str) -> PathBuf {
    let mut name = worktree.file_name().unwrap_or_default().to_owned();
    name.push(end);
    worktree.with_file_name(name)
}

impl CommitSource {
    /// Finds or creates the worktree, and removes others that were not used for long. `watch` receives the
    /// progress.
    ///
    /// # Errors
    /// If git fails, or the cache cannot be written.
    pub fn check_out(
        &self,
        cache: &Cache,
        watch: &mut dyn FnMut(Preparing),
    ) -> Result<Worktree, Error> {
        cache.create()?;
        let cache = Cache {
            folder: folder(cache),
        };
        cache.create()?;
        let path = self.against.worktree.clone();
        let key = path.file_name().unwrap_or_default().to_string_lossy();
        let lock = cache.lock(&self.against.baseline(), &key, watch, &|| false)?;
        let made = !self.is_whole()?;
        if made {
            watch(Preparing::Making(Duration::ZERO));
            unmounted(&path)?;
            discard(&self.against.repository, &path);
            self.add()?;
        } else if self
            .builds
            .iter()
            .any(|step| step.mark.as_ref().is_some_and(|mark| !mark.is_file()))
        {
            // A failed or different build may have left anything.
            self.clean()?;
        }
        self.sign()?;
        remove_old(&cache);
        let copies = CopiedFiles::make(&self.against)?;
        Ok(Worktree {
            path,
            made,
            _copies: copies,
            _lock: lock,
        })
    }

    /// Whether the worktree is as git checked it out, regardless of builds in it.
    fn is_whole(&self) -> Result<bool, Error> {
        let path = &self.against.worktree;
        if !path.is_dir() {
            return Ok(false);
        }
        // If the folder is no worktree any more, a repository around it would answer.
        let commit = ask(path, &["rev-parse", "--verify", "HEAD"])?;
        if !self.is_root(path)? || commit.line() != self.against.commit {
            return Ok(false);
        }
        let changed = ask(
            path,
            &[
                "status",
                "--porcelain",
                "--untracked-files=no",
                "--ignore-submodules=all",
            ],
        )?;
        Ok(changed.is_yes && changed.out.is_empty())
    }

    /// Creates the worktree, also if git still has a deleted one registered at its path. The files are
    /// checked out by a command that runs in the worktree: settings may apply to worktrees only
    /// (`includeIf`), and a list of the repository's settings does not contain these.
    fn add(&self) -> Result<GitOutput, Error> {
        let (repository, path) = (&self.against.repository, &self.against.worktree);
        let end = [path.as_os_str(), self.against.commit.as_ref()];
        let added = change(
            repository,
            &["worktree", "add", "--force", "--detach", "--no-checkout"],
            &end,
        )
        .and_then(|said| said.or_fail(format!("make a worktree of {}", self.against.baseline())));
        let own = added.and_then(|_| self.owns_its_files());
        let said = own.and_then(|()| change(path, &["reset", "--hard", "--quiet"], &[]));
        let checked_out = said.and_then(|said| match said.filter() {
            Some(filter) => Err(refused(
                format!("{} cannot be checked out: {}", self.against.baseline(), said.words()),
                format!(
                    "the filter is set in the repository's own settings, whose programs Proofload does not run; if you trust it, set it in \
                     yours: git config --global filter.{filter}.smudge COMMAND, and .process or .required likewise"
                ),
            )),
            None => said.or_fail(format!("check out {}", self.against.baseline())),
        });
        checked_out.inspect_err(|_| discard(repository, path))
    }

    /// Refuses a worktree whose files are elsewhere. With `extensions.worktreeConfig` the repository's
    /// `core.worktree` applies to every worktree, and a checkout would overwrite files there.
    fn owns_its_files(&self) -> Result<(), Error> {
        let path = &self.against.worktree;
        if self.is_root(path)? {
            return Ok(());
        }
        Err(refused(
            format!(
                "{} cannot be checked out: the repository's settings put the files of its worktrees into another folder",
                self.against.baseline()
            ),
            "remove `core.worktree` from its settings (git config --show-origin core.worktree)"
                .to_owned(),
        ))
    }

    /// Whether git regards this folder as the root of its files.
    fn is_root(&self, path: &Path) -> Result<bool, Error> {
        let root = ask(path, &["rev-parse", "--show-toplevel"])?;
        let real = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        Ok(root.is_yes && Path::new(&root.line()) == real)
    }

    fn clean(&self) -> Result<GitOutput, Error> {
        let path = &self.against.worktree;
        unmounted(path)?;
        remove_marks(path);
        change(path, &["clean", "-ffdxq"], &[])?.or_fail(format!("clean {}", path.display()))
    }

    fn sign(&self) -> Result<(), Error> {
        let path = beside(&self.against.worktree, OWNER);
        // Without this entry, if the path is not UTF-8, git is run in the worktree itself.
        let owner = json!({ "repository": self.against.repository.to_str() });
        write_whole(&path, owner.to_string().as_bytes()).map_err(|error| unusable(&path, &error))
    }
}

/// Returns an error if something is mounted in a worktree: removing files there would remove foreign files.
fn unmounted(worktree: &Path) -> Result<(), Error> {
    let Some(mount) = mounted_in(worktree) else {
        return Ok(());
    };
    let (worktree, mount) = (worktree.display(), mount.display());
    let error = Error::new(format!(
        "{worktree} cannot be made anew: {mount} is mounted in it"
    ));
    Err(error.help("unmount it (umount)"))
}

/// Removes a worktree with all files beside it. Leftovers only take space, or block the next worktree.
fn discard(repository: &Path, path: &Path) {
    if unmounted(path).is_err() {
        return;
    }
    remove_marks(path);
    if path.exists() {
        // Git unregisters it. If git does not know it, the files are still there.
        let _ = change(
            repository,
            &["worktree", "remove", "--force", "--force"],
            &[path.as_os_str()],
        );
        let _ = fs::remove_dir_all(path);
    }
    let _ = fs::remove_file(beside(path, OWNER));
}

fn remove_marks(worktree: &Path) {
    let begins = format!(
        "{}{BUILT}",
        worktree.file_name().unwrap_or_default().display()
    );
    let entries = worktree
        .parent()
        .and_then(|folder| fs::read_dir(folder).ok());
    for entry in entries.into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(&begins) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Removes the least recently used worktrees that are not in use.
fn remove_old(cache: &Cache) {
    let entries = fs::read_dir(&cache.folder).into_iter().flatten().flatten();
    let entries = entries.filter(|entry| entry.file_name().to_string_lossy().ends_with(OWNER));
    let used = |entry: fs::DirEntry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()));
    let mut owners: Vec<(SystemTime, PathBuf)> = entries.filter_map(used).collect();
    owners.sort_by_key(|(used, _)| std::cmp::Reverse(*used));
    for (_, path) in owners.iter().skip(KEPT_MAX) {
        let worktree = path.with_extension("");
        let key = worktree
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let Ok(Some(_lock)) = Lock::try_take(cache, &key) else {
            continue;
        };
        let text = fs::read_to_string(path).unwrap_or_default();
        let owner: Value = serde_json::from_str(&text).unwrap_or_default();
        discard(
            owner["repository"]
                .as_str()
                .map_or(worktree.as_path(), Path::new),
            &worktree,
        );
    }
}

// Timeouts of git (see `machine::git`) and the meaning of its failures.

/// Timeout for an answer, and for checking out a commit, which takes minutes in a large repository.
const ANSWER_PATIENCE: Duration = Duration::from_secs(60);
const CHANGE_PATIENCE: Duration = Duration::from_secs(30 * 60);

/// Messages of git about owners that it does not trust.
const DISTRUST: [&str; 2] = ["dubious ownership", "unsafe repository"];
/// Messages of git when it would have to fetch something.
const INCOMPLETE: [&str; 2] = ["from promisor remote", "lazy fetching disabled"];
/// Message of git when it does not know a flag for listing its settings.
const OLD: [&str; 1] = ["unknown option `show-scope'"];

/// Result of a git command.
#[derive(Debug)]
pub(super) struct GitOutput {
    /// Whether the command succeeded, which means yes for a question.
    pub is_yes: bool,
    pub out: Vec<u8>,
    err: String,
}

/// Runs a query that has only words as arguments. A failure of the command is not an error.
pub(super) fn ask(directory: &Path, words: &[&str]) -> Result<GitOutput, Error> {
    run((ANSWER_PATIENCE, Filters::Skipped), directory, words, &[])
}

/// Runs a query about a path or an object.
pub(super) fn ask_about(
    directory: &Path,
    words: &[&str],
    of: impl AsRef<OsStr>,
) -> Result<GitOutput, Error> {
    run(
        (ANSWER_PATIENCE, Filters::Skipped),
        directory,
        words,
        &[of.as_ref()],
    )
}

/// Runs a command that changes something. Files that need a filter of the repository are not checked out
/// without it: a service would read something else than is in the working tree.
fn change(directory: &Path, words: &[&str], end: &[&OsStr]) -> Result<GitOutput, Error> {
    run((CHANGE_PATIENCE, Filters::Required), directory, words, end)
}

fn run(
    (patience, filters): (Duration, Filters),
    directory: &Path,
    words: &[&str],
    end: &[&OsStr],
) -> Result<GitOutput, Error> {
    let git = machine::git(directory, filters);
    let output = match git.and_then(|mut git| machine::run(git.args(words).args(end), patience)) {
        Ok(Some(output)) => output,
        Ok(None) => {
            let (seconds, directory) = (patience.as_secs(), directory.display());
            return Err(Error::new(format!(
                "{directory}: git did not end within {seconds} s"
            )));
        }
        // It was started, and fails on reading its settings.
        Err(error) if error.kind() == io::ErrorKind::Other => {
            return understood(
                directory,
                GitOutput {
                    is_yes: false,
                    out: Vec::new(),
                    err: error.to_string(),
                },
            );
        }
        Err(error) => {
            return Err(Error::new(format!("git cannot be started: {error}"))
                .help("--against needs git: `apt-get install git`"));
        }
    };
    let err = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    understood(
        directory,
        GitOutput {
            is_yes: output.status.success(),
            out: output.stdout,
            err,
        },
    )
}

/// Returns the result of git, unless it is an error about the repository as a whole.
fn understood(directory: &Path, said: GitOutput) -> Result<GitOutput, Error> {
    let complains_of =
        |all: &[&str]| !said.is_yes && all.iter().any(|words| said.err.contains(words));
    let (place, words) = (directory.display(), said.words());
    if complains_of(&DISTRUST) {
        let hint =
            "it belongs to another user; if you trust it: git config --global --add safe.directory";
        return Err(Error::new(format!(
            "git does not trust the repository of {place}: {words}"
        ))
        .help(format!("{hint} {place}")));
    }
    if complains_of(&INCOMPLETE) {
        return Err(refused(
            format!("{place} lies in a partial clone that lacks a part of the commit: {words}"),
            "Proofload fetches nothing; `git archive --output=/dev/null COMMIT` gets all of a commit, whatever that runs",
        ));
    }
    if complains_of(&OLD) {
        let hint = "a newer git lists its settings with their scope";
        return Err(Error::new("git is older than 2.26").help(hint));
    }
    Ok(said)
}

impl GitOutput {
    /// Output without the trailing newline.
    pub fn line(&self) -> String {
        String::from_utf8_lossy(&self.out)
            .trim_end_matches('\n')
            .to_owned()
    }

    /// The first error line that describes the problem.
    pub fn words(&self) -> String {
        let lines: Vec<&str> = self.err.lines().collect();
        let fatal = lines.iter().find_map(|line| line.strip_prefix("fatal: "));
        fatal
            .or(lines.first().copied())
            .unwrap_or("it did not say why")
            .to_owned()
    }

    /// The filter whose absence prevents a checkout.
    fn filter(&self) -> Option<&str> {
        let (_, after) = self
            .err
            .split_once(": smudge filter ")
            .filter(|_| !self.is_yes)?;
        after.lines().next()?.strip_suffix(" failed")
    }

    /// Whether the error output contains these words.
    pub fn complains(&self, words: &str) -> bool {
        self.err.contains(words)
    }

    /// Returns the result if the command succeeded.
    pub fn or_fail(self, doing: impl std::fmt::Display) -> Result<GitOutput, Error> {
        if self.is_yes {
            return Ok(self);
        }
        Err(Error::new(format!(
            "git could not {doing}: {}",
            self.words()
        )))
    }
}
