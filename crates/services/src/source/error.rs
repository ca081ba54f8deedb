//! Why services cannot be compared with a commit: what, where, and what to do.

use std::path::PathBuf;

use crate::PrepareError;

/// Why there is no commit to compare with, or no worktree of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// Git is not installed.
    #[error("git cannot be started: {reason}")]
    NoGit {
        /// What the system said.
        reason: String,
    },
    /// Git failed at something that it usually can do.
    #[error("git could not {doing}: {said}")]
    Git {
        /// What it was to do, such as `check out main (1a2b3c4)`.
        doing: String,
        /// What it said.
        said: String,
    },
    /// The repository belongs to somebody else, and git will not read it.
    #[error("git does not trust the repository of {}: {said}", directory.display())]
    NotTrusted {
        /// The directory of a service.
        directory: PathBuf,
        /// What git said.
        said: String,
    },
    /// No service lies in a repository.
    #[error("no service's directory lies in a git repository: {}", directory.display())]
    NoRepository {
        /// The directory of the first entry.
        directory: PathBuf,
        /// Whether a variable tells git to look elsewhere, which is not done.
        elsewhere: bool,
    },
    /// A repository without a working tree.
    #[error("{} lies in a repository that has no working tree", directory.display())]
    Bare {
        /// The directory of a service.
        directory: PathBuf,
    },
    /// A service lies in a repository within the one that is compared: a submodule.
    #[error("{what} lies in a repository of its own, {}, within {}", inner.display(), outer.display())]
    Nested {
        /// Such as `services.api`.
        what: String,
        /// Root of its repository.
        inner: PathBuf,
        /// Root of the repository that is compared.
        outer: PathBuf,
    },
    /// What can be no ref.
    #[error("--against: `{reference}` is not a git ref: {reason}")]
    Reference {
        /// As it was given.
        reference: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A ref that the repository does not have.
    #[error("--against: {} has no commit `{reference}`", repository.display())]
    Unknown {
        /// As it was given.
        reference: String,
        /// Root of the repository.
        repository: PathBuf,
        /// What to do about it.
        hint: String,
    },
    /// Something that the experiment names is not there at the commit.
    #[error("{what}: `{}` does not exist at {name}", path.display())]
    Missing {
        /// Where the experiment names it, such as `services.api.directory`.
        what: String,
        /// Relative to the repository's root.
        path: PathBuf,
        /// The commit, by name.
        name: String,
    },
    /// A service runs a file of the working tree by its absolute path, and would run the same one at the commit.
    #[error("{what}: {} is the working tree's, also for the service at {name}", path.display())]
    Absolute {
        /// Such as `services.api.command`.
        what: String,
        /// The path.
        path: PathBuf,
        /// The commit, by name.
        name: String,
    },
    /// Dependencies that nobody says how to install.
    #[error("nothing says how `{}` is built at {name}: it has a {lock}", directory.display())]
    NoBuild {
        /// Relative to the repository's root.
        directory: PathBuf,
        /// The commit, by name.
        name: String,
        /// The lock file that was found.
        lock: &'static str,
        /// What its package manager calls a clean installation.
        build: &'static str,
    },
    /// The cache cannot be used.
    #[error(transparent)]
    Cache(#[from] PrepareError),
}

impl SourceError {
    /// Whether it is about what was asked for, and not about git or the machine.
    pub fn is_usage(&self) -> bool {
        !matches!(self, Self::NoGit { .. } | Self::Git { .. } | Self::NotTrusted { .. } | Self::Cache(_))
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NoGit { .. } => "--against needs git: `apt-get install git`".to_owned(),
            Self::Git { .. } => return None,
            Self::NotTrusted { directory, .. } => format!(
                "it belongs to another user; if you trust it: git config --global --add safe.directory {}",
                directory.display()
            ),
            Self::NoRepository { elsewhere: true, .. } => {
                "GIT_DIR is set, and not looked at: the repository is the one that the services' directories lie in"
                    .to_owned()
            }
            Self::NoRepository { .. } => {
                "--against compares a service with another commit of its repository; `git init` makes one".to_owned()
            }
            Self::Bare { .. } => "run in a clone of it, or in a worktree: git worktree add".to_owned(),
            Self::Nested { .. } => {
                "a worktree has no submodules; have the entry lie in it, or set two checkouts side by side and make levels \
                 of their directories"
                    .to_owned()
            }
            Self::Reference { .. } => "a branch, a tag or a commit, such as `main` or `HEAD~3`".to_owned(),
            Self::Unknown { hint, .. } => hint.clone(),
            Self::Missing { name, .. } => format!(
                "both sides run the same experiment: choose a commit that has it, or leave out what is not there at {name}"
            ),
            Self::Absolute { .. } => {
                "write it relative to the service's directory, or as {directory}/…: then each side runs its own".to_owned()
            }
            Self::NoBuild { build, .. } => {
                format!("in the experiment file: [against] build = {build}; or a shell command by --build")
            }
            Self::Cache(error) => return error.hint().map(str::to_owned),
        })
    }
}
