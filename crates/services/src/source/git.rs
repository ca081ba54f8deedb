//! The git program: how it is asked, so that whatever the caller's shell and configuration say it answers about the repository that
//! a directory lies in, in English, and starts nothing.
//!
//! It runs git and reads what that says; it knows no command of it.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::SourceError;

/// Variables that point git, or npm, somewhere else than to where they run. Git sets them for its hooks, npm for its scripts.
pub(crate) const ELSEWHERE: [&str; 11] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
    "npm_config_local_prefix",
];

/// Hooks are somebody's programs, file system monitors daemons that stay, and a collection of garbage would run on in the background
/// while services are measured.
const SETTINGS: [&str; 4] =
    ["core.hooksPath=/dev/null", "core.fsmonitor=false", "gc.auto=0", "maintenance.auto=false"];

/// What git says to those that it does not trust.
const DISTRUST: [&str; 2] = ["dubious ownership", "unsafe repository"];

/// Git in some directory.
#[derive(Debug, Clone)]
pub(super) struct Git {
    directory: PathBuf,
}

/// What git said.
#[derive(Debug)]
pub(super) struct Said {
    /// Its exit code; `None` where a signal ended it.
    pub code: Option<i32>,
    pub out: Vec<u8>,
    err: String,
}

impl Git {
    pub fn at(directory: &Path) -> Git {
        Git { directory: directory.to_owned() }
    }

    /// Whether a variable says which repository is meant.
    pub fn is_sent_elsewhere() -> bool {
        env::var_os("GIT_DIR").is_some()
    }

    /// A command of git; arguments that are no words of ours can be added.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("git");
        ELSEWHERE.iter().for_each(|name| {
            command.env_remove(name);
        });
        // Messages in English; no question to anyone; no lock taken for the sake of speed.
        command.envs([("LC_ALL", "C"), ("GIT_TERMINAL_PROMPT", "0"), ("GIT_OPTIONAL_LOCKS", "0")]);
        command.arg("-C").arg(&self.directory);
        SETTINGS.iter().for_each(|setting| {
            command.args(["-c", setting]);
        });
        command.args(words).stdin(Stdio::null());
        command
    }

    /// Runs a command, whatever comes of it.
    pub fn run(&self, command: &mut Command) -> Result<Said, SourceError> {
        let output = command.output().map_err(|error| SourceError::NoGit { reason: error.to_string() })?;
        let said = Said {
            code: output.status.code(),
            out: output.stdout,
            err: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        };
        if said.code != Some(0) && DISTRUST.iter().any(|words| said.err.contains(words)) {
            return Err(SourceError::NotTrusted { directory: self.directory.clone(), said: said.words() });
        }
        Ok(said)
    }

    /// Asks something of words alone, whatever comes of it.
    pub fn ask(&self, words: &[&str]) -> Result<Said, SourceError> {
        self.run(&mut self.command(words))
    }

    /// Asks about a path or an object.
    pub fn ask_about(&self, words: &[&str], of: impl AsRef<OsStr>) -> Result<Said, SourceError> {
        self.run(self.command(words).arg(of))
    }
}

impl Said {
    pub fn is_yes(&self) -> bool {
        self.code == Some(0)
    }

    /// Its output without the end of the line.
    pub fn line(&self) -> String {
        String::from_utf8_lossy(&self.out).trim_end_matches('\n').to_owned()
    }

    /// The first of its complaints that says what is wrong.
    pub fn words(&self) -> String {
        let lines: Vec<&str> = self.err.lines().collect();
        let fatal = lines.iter().find_map(|line| line.strip_prefix("fatal: "));
        let line = fatal.or(lines.first().copied()).unwrap_or("it did not say why");
        line.to_owned()
    }

    /// Whether it complained in these words.
    pub fn complains(&self, words: &str) -> bool {
        self.err.contains(words)
    }

    /// What it printed, where it went well.
    pub fn or_fail(self, doing: impl Into<String>) -> Result<Said, SourceError> {
        if self.is_yes() {
            return Ok(self);
        }
        Err(SourceError::Git { doing: doing.into(), said: self.words() })
    }
}
