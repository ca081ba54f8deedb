//! The commit that the working tree is compared with, and how services are built there.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ::model::quantity::many;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use crate::shown::fitting;

/// Number of digits of a commit that are shown.
const COMMIT_DIGITS: usize = 7;
/// Longer refs are truncated in names of variants.
const REFERENCE_CHARS_MAX: usize = 33;

/// The commit that the working tree is compared with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Against {
    /// The ref as it was given: a branch, a tag, a commit.
    pub reference: String,
    /// Full ID of the commit that it referred to.
    pub commit: String,
    /// Root of the working tree, absolute.
    pub repository: PathBuf,
    /// Root of the checked-out commit, absolute.
    pub worktree: PathBuf,
    /// Difference of the working tree from the commit, as git prints it: `3 files changed, 12 insertions(+),
    /// 4 deletions(-)`. Empty if no file of the commit or of the index differs.
    pub stat: String,
    /// Number of untracked files that are not ignored, without Proofload's records.
    pub untracked: usize,
    /// Whether the working tree differs from the checked-out commit.
    pub uncommitted: bool,
    /// The build command from the command line. `None` if it comes from the experiment file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
    /// Files and folders from the command line that are copied instead of the recognized ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copy: Vec<String>,
    /// Files that git does not keep, copied from the working tree so that both sides have the same
    /// configuration. Relative to its root.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copied: Vec<PathBuf>,
    /// Files that only the working tree has and that the services may read. Relative to its root.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only_here: Vec<PathBuf>,
    /// Further notes that a reader needs to trust the comparison, each a sentence without a full stop.
    pub notes: Vec<String>,
}

impl Against {
    /// Name of the commit's level: `main (1a2b3c4)`, or only the digits if the commit was given by its ID.
    pub fn baseline(&self) -> String {
        self.called(self.short_commit())
    }

    fn called(&self, digits: &str) -> String {
        if self.commit.starts_with(&self.reference) {
            return digits.to_owned();
        }
        format!(
            "{} ({digits})",
            fitting(&self.reference, REFERENCE_CHARS_MAX)
        )
    }

    /// Name of the working tree's level.
    pub fn candidate(&self) -> &'static str {
        if self.uncommitted {
            "here + uncommitted changes"
        } else {
            "here"
        }
    }

    /// The first digits of the commit.
    pub fn short_commit(&self) -> &str {
        self.commit.get(..COMMIT_DIGITS).unwrap_or(&self.commit)
    }

    /// Maps a path of the working tree to the checked-out commit. Paths outside of the repository stay as
    /// they are.
    pub fn moved(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(&self.repository) {
            // Joining an empty path would append a slash.
            Ok(inside) if inside.as_os_str().is_empty() => self.worktree.clone(),
            Ok(inside) => self.worktree.join(inside),
            Err(_) => path.to_owned(),
        }
    }

    /// Describes the comparison: `main (1a2b3c4d5e6f…): working tree with 3 files changed, …`.
    pub fn describe(&self) -> String {
        let untracked = (self.untracked > 0)
            .then(|| format!("{} unknown to git", many(self.untracked as u64, "file")));
        let stat = Some(self.stat.clone()).filter(|stat| !stat.is_empty());
        let differs: Vec<String> = stat.into_iter().chain(untracked).collect();
        let uncommitted = if self.uncommitted {
            "; not all of it is committed"
        } else {
            ""
        };
        let tree = if differs.is_empty() {
            "the working tree is the same".to_owned()
        } else {
            format!("working tree with {}{uncommitted}", differs.join(", "))
        };
        let digits = self.commit.get(..12).unwrap_or(&self.commit);
        format!("{}: {tree}", self.called(&format!("{digits}…")))
    }
}

/// Flags for a comparison with a commit, as separate arguments.
pub fn against_flags(reference: &str, build: Option<&str>, copy: &[String]) -> Vec<String> {
    let flags = [("--against", reference)].into_iter();
    let flags = flags.chain(build.map(|script| ("--build", script)));
    let flags = flags.chain(copy.iter().map(|path| ("--copy", path.as_str())));
    flags
        .flat_map(|(flag, value)| [flag.to_owned(), value.to_owned()])
        .collect()
}

/// How services are built at a commit.
#[derive(Debug, Clone, PartialEq, Eq, SmartDefault, Serialize, Deserialize)]
pub struct Building {
    /// Program and arguments, used literally. Empty if not configured, in which case the build is detected.
    pub command: Vec<String>,
    /// Time limit in each directory.
    #[default(Duration::from_secs(600))]
    pub timeout: Duration,
    /// Files and folders that git does not keep and the services read, absolute. `None` copies the recognized
    /// ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy: Option<Vec<PathBuf>>,
}
