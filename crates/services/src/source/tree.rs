//! A commit's files, as git has them: looked at without a checkout.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use plan::Against;

use super::SourceError;
use super::repository::Repository;

/// The files of a commit. Paths are relative to the repository's root.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tree<'a> {
    pub repository: &'a Repository,
    pub against: &'a Against,
}

impl Tree<'_> {
    /// Whether there is a file or a folder of this path.
    pub fn has(&self, path: &Path) -> Result<bool, SourceError> {
        Ok(self.repository.git.ask_about(&["cat-file", "-e"], self.object(path))?.is_yes())
    }

    /// Names of what is in a folder; `None` where there is none.
    pub fn names(&self, folder: &Path) -> Result<Option<Vec<OsString>>, SourceError> {
        let said = self.repository.git.ask_about(&["ls-tree", "--name-only", "-z"], self.object(folder))?;
        let names = said.out.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(said.is_yes().then(|| names.map(|name| OsStr::from_bytes(name).to_owned()).collect()))
    }

    /// The text of a file; `None` where there is none.
    pub fn text(&self, file: &Path) -> Result<Option<String>, SourceError> {
        let said = self.repository.git.ask_about(&["cat-file", "blob"], self.object(file))?;
        Ok(said.is_yes().then(|| String::from_utf8_lossy(&said.out).into_owned()))
    }

    /// Whether the working tree's rules keep a file out of git.
    pub fn is_ignored(&self, path: &Path) -> Result<bool, SourceError> {
        Ok(self.repository.git.ask_about(&["check-ignore", "--quiet", "--"], path)?.is_yes())
    }

    fn object(&self, path: &Path) -> OsString {
        let mut object = OsString::from(format!("{}:", self.against.commit));
        object.push(path);
        object
    }
}
