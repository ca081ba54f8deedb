//! How the working tree differs from a commit, as a record keeps it.
//!
//! It asks and writes nothing, the index included.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::SourceError;
use super::repository::Repository;

/// What differs.
#[derive(Debug)]
pub(super) struct Changes {
    /// `3 files changed, 12 insertions(+)`, or nothing.
    pub stat: String,
    /// Files that git neither knows nor ignores.
    pub untracked: usize,
    /// Whether anything is in no commit.
    pub uncommitted: bool,
}

/// What lies in the folder of caches is none.
pub(super) fn of(repository: &Repository, commit: &str, cache: &Path) -> Result<Changes, SourceError> {
    let git = &repository.git;
    let doing = "tell what has changed";
    let stat = git.ask(&["diff", "--no-ext-diff", "--shortstat", commit, "--"])?.or_fail(doing)?;
    let known = git.ask(&["diff", "--no-ext-diff", "--quiet", "HEAD", "--"])?;
    let untracked = git.ask(&["ls-files", "--others", "--exclude-standard", "-z"])?.or_fail(doing)?;
    let untracked = untracked_files(&repository.root, &untracked.out, cache);
    let stat = stat.line().trim().to_owned();
    // Without a commit that is checked out nothing is in it.
    Ok(Changes { stat, untracked, uncommitted: untracked > 0 || !known.is_yes() })
}

/// How many there are, without the records of earlier runs: these lie where people run Proofload.
fn untracked_files(root: &Path, listed: &[u8], cache: &Path) -> usize {
    let mut records: BTreeMap<PathBuf, bool> = BTreeMap::new();
    let files = listed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    let files = files.map(|name| Path::new(OsStr::from_bytes(name)));
    files
        .filter(|file| !root.join(file).starts_with(cache))
        .filter(|file| {
            let mut folders = file.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
            let is_record = |folder: &Path| {
                *records
                    .entry(folder.to_owned())
                    .or_insert_with(|| root.join(folder).join("record.json").is_file())
            };
            !folders.any(is_record)
        })
        .count()
}
