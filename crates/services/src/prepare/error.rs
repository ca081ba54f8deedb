//! Why data is not there: everything a user needs to put it right.

use std::path::PathBuf;
use std::time::Duration;

use crate::message::Exit;

/// Why data could not be made, or found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrepareError {
    /// Nobody says where caches are.
    #[error("no folder to keep prepared data in: neither XDG_CACHE_HOME nor HOME is an absolute path")]
    NoFolder,
    /// The cache cannot be written.
    #[error("cannot keep prepared data in {}: {reason}", path.display())]
    Folder {
        /// The folder or file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// What decides about the key cannot be read.
    #[error("{name}: cannot read its input {}: {reason}", path.display())]
    Input {
        /// The step, as people know it: `prepare.zips`, `building main (1a2b3c4)`.
        name: String,
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// A placeholder that nothing is known for.
    #[error("{name}: {place}: {source}")]
    Placeholder {
        /// The step, as people know it: `prepare.zips`, `building main (1a2b3c4)`.
        name: String,
        /// Where it stands: `command` or `env.NAME`.
        place: String,
        /// Which it is.
        source: plan::UnknownPlaceholder,
    },
    /// The disk has too little space; nothing was started.
    #[error(
        "{name} needs {}, and {} has {} free", text(*needed), folder.display(), text(*free)
    )]
    Space {
        /// The step, as people know it: `prepare.zips`, `building main (1a2b3c4)`.
        name: String,
        /// The cache's folder.
        folder: PathBuf,
        /// Bytes asked for.
        needed: u64,
        /// Bytes that there are.
        free: u64,
    },
    /// The command could not be started.
    #[error("{name}: cannot run {program}: {reason}")]
    NotRun {
        /// The step, as people know it: `prepare.zips`, `building main (1a2b3c4)`.
        name: String,
        /// The program as the experiment names it.
        program: String,
        /// Why not.
        reason: String,
    },
    /// The command failed.
    #[error(
        "{name} ended with {exit} after {:.1} s{}: {command}",
        after.as_secs_f64(),
        full.as_ref().map(|folder| format!("; no space is left in {}", folder.display())).unwrap_or_default()
    )]
    Failed {
        /// The step, as people know it: `prepare.zips`, `building main (1a2b3c4)`.
        name: String,
        /// Its command, filled in.
        command: Box<str>,
        /// How it ended.
        exit: Exit,
        /// Time since its start.
        after: Duration,
        /// The last lines of its output.
        tail: Box<str>,
        /// The cache's folder, where the disk that it is on was full then.
        full: Option<PathBuf>,
    },
    /// The command ended well, and there is nothing.
    #[error("{name} ended well and put nothing into {{output}}: {command}")]
    Empty {
        /// The step, as people know it: `prepare.zips`, `building main (1a2b3c4)`.
        name: String,
        /// Its command, filled in.
        command: Box<str>,
        /// The last lines of its output.
        tail: Box<str>,
    },
    /// The command took too long. It has been ended.
    #[error("{name} had not ended after {} s: {command}", timeout.as_secs())]
    TimedOut {
        /// The step, as people know it: `prepare.zips`, `building main (1a2b3c4)`.
        name: String,
        /// Its command, filled in.
        command: Box<str>,
        /// Its `timeout`.
        timeout: Duration,
        /// The last lines of its output.
        tail: Box<str>,
    },
    /// The process that should have run it failed: a fault of Proofload or of the system.
    #[error("{name}: its warden failed: {reason}")]
    Warden {
        /// The step, as people know it: `prepare.zips`, `building main (1a2b3c4)`.
        name: String,
        /// What is known.
        reason: String,
    },
    /// The caller wanted no more. Nothing of it is left.
    #[error("{name}: cancelled")]
    Cancelled {
        /// The step, as people know it: `prepare.zips`, `building main (1a2b3c4)`.
        name: String,
    },
}

impl PrepareError {
    /// The last lines of the command's output, where there are any.
    pub fn tail(&self) -> Option<&str> {
        match self {
            Self::Failed { tail, .. } | Self::Empty { tail, .. } | Self::TimedOut { tail, .. } => {
                Some(&**tail).filter(|tail| !tail.is_empty())
            }
            _ => None,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::NoFolder => "set XDG_CACHE_HOME to a folder for caches",
            Self::Folder { .. } | Self::Space { .. } | Self::Failed { full: Some(_), .. } => {
                "make room there, or let XDG_CACHE_HOME name a folder on another disk"
            }
            Self::Failed { exit: Exit::Signal(libc::SIGKILL), .. } => {
                "the kernel kills with SIGKILL when memory runs out"
            }
            Self::NotRun { .. } => "a program without `/` in its name is looked for in PATH",
            Self::Empty { .. } => "{output} stands for a folder that is there: the data belongs into it",
            Self::TimedOut { .. } => "raise `timeout` if it only needs more time",
            _ => return None,
        })
    }
}

/// `2.2 GB`, `350 MB`.
fn text(bytes: u64) -> String {
    if bytes >= 1_000_000_000 {
        format!("{:.1} GB", bytes as f64 / 1e9)
    } else {
        format!("{:.0} MB", bytes as f64 / 1e6)
    }
}
