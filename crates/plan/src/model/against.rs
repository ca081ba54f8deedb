//! What the services' code here is compared with: another commit, where it is checked out, and how it is built there.
//!
//! Values and their names alone; whoever finds them out is `target`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Digits of a commit that are shown to people.
const COMMIT_DIGITS: usize = 7;
/// Longer refs are cut where they name a variant.
const REFERENCE_CHARS_MAX: usize = 32;

/// The commit that the working tree is compared with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Against {
    /// The ref as it was given: a branch, a tag, a commit.
    pub reference: String,
    /// The commit that it named then, all of its digits.
    pub commit: String,
    /// Root of the working tree, absolute.
    pub repository: PathBuf,
    /// Where the commit is checked out, absolute: its root.
    pub worktree: PathBuf,
    /// How the working tree differs from the commit, as git says it: `3 files changed, 12 insertions(+), 4 deletions(-)`;
    /// empty where no file of the commit or of the index differs.
    pub stat: String,
    /// Files of the working tree that git neither knows nor ignores; records of Proofload not counted.
    pub untracked: usize,
    /// Whether the working tree differs from the commit that is checked out there.
    pub uncommitted: bool,
    /// The shell command by which it was asked to be built, where that was not the experiment file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
    /// What else a reader must know to trust the comparison, each a sentence without a full stop.
    #[serde(default)]
    pub notes: Vec<String>,
}

impl Against {
    /// Name of the level that is the commit: `main (1a2b3c4)`; of a commit that was given by its digits these alone.
    pub fn baseline(&self) -> String {
        let short = self.short_commit();
        if self.commit.starts_with(&self.reference) {
            return short.to_owned();
        }
        // Separates levels in names of variants, and control characters do anything to a terminal.
        let plain = |c: char| if c.is_control() || c == '·' { ' ' } else { c };
        let mut name: String = self.reference.chars().take(REFERENCE_CHARS_MAX).map(plain).collect();
        if self.reference.chars().count() > REFERENCE_CHARS_MAX {
            name.push('…');
        }
        format!("{} ({short})", name.trim())
    }

    /// Name of the level that is the working tree.
    pub fn candidate(&self) -> &'static str {
        if self.uncommitted { "here + uncommitted changes" } else { "here" }
    }

    /// The first digits of the commit.
    pub fn short_commit(&self) -> &str {
        self.commit.get(..COMMIT_DIGITS).unwrap_or(&self.commit)
    }

    /// Where something of the working tree is at the commit; outside of the repository where it is.
    pub fn moved(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(&self.repository) {
            // Joined to nothing a path would end with a slash.
            Ok(inside) if inside.as_os_str().is_empty() => self.worktree.clone(),
            Ok(inside) => self.worktree.join(inside),
            Err(_) => path.to_owned(),
        }
    }

    /// In words what is compared: `main (1a2b3c4d5e6f…): working tree with 3 files changed, …`.
    pub fn describe(&self) -> String {
        let mut differs: Vec<String> = Vec::new();
        if !self.stat.is_empty() {
            differs.push(self.stat.clone());
        }
        if self.untracked > 0 {
            let plural = if self.untracked == 1 { "" } else { "s" };
            differs.push(format!("{} file{plural} unknown to git", self.untracked));
        }
        let uncommitted = if self.uncommitted { "; not all of it is committed" } else { "" };
        let tree = match differs.join(", ") {
            nothing if nothing.is_empty() => "the working tree is the same".to_owned(),
            differs => format!("working tree with {differs}{uncommitted}"),
        };
        let digits = self.commit.get(..12).unwrap_or(&self.commit);
        match self.baseline() {
            name if name == self.short_commit() => format!("{digits}…: {tree}"),
            name => {
                let reference = name.trim_end_matches(&format!(" ({})", self.short_commit()));
                format!("{reference} ({digits}…): {tree}")
            }
        }
    }

    /// The flags that ask for the same comparison, to be put behind a command: ` --against main`.
    pub fn flags(&self) -> String {
        let build = self.build.iter().map(|script| format!(" --build {}", quoted(script)));
        format!(" --against {}{}", quoted(&self.reference), build.collect::<String>())
    }
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-@+=:,%".contains(c);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// How services are built at a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Building {
    /// Program and arguments, as they are; empty where nobody says, and it is found out.
    pub command: Vec<String>,
    /// How long it may take in each directory.
    pub timeout: Duration,
}

impl Default for Building {
    fn default() -> Self {
        Self { command: Vec::new(), timeout: Duration::from_secs(600) }
    }
}

impl Building {
    /// Whether nothing is said about it.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn against(reference: &str) -> Against {
        Against {
            reference: reference.to_owned(),
            commit: "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d".to_owned(),
            repository: "/home/me/shop".into(),
            worktree: "/cache/1a2b".into(),
            stat: "1 file changed, 2 insertions(+)".to_owned(),
            untracked: 0,
            uncommitted: false,
            build: None,
            notes: Vec::new(),
        }
    }

    #[test]
    fn a_ref_is_shown_as_given_with_its_commit_and_made_fit_for_a_name() {
        for (given, shown) in [
            ("main", "main (1a2b3c4)"),
            ("1a2b3c4d5e", "1a2b3c4"),
            ("HEAD~3", "HEAD~3 (1a2b3c4)"),
            (":/a · b\u{1b}[31m", ":/a   b [31m (1a2b3c4)"),
            ("refs/remotes/origin/feature/of-a-long-name", "refs/remotes/origin/feature/of-a… (1a2b3c4)"),
        ] {
            assert_eq!(against(given).baseline(), shown);
        }
        assert_eq!(against("main@{1 day ago}").flags(), " --against 'main@{1 day ago}'");
        let built = Against { build: Some("make && make x='1'".to_owned()), ..against("origin/main") };
        assert_eq!(built.flags(), r" --against origin/main --build 'make && make x='\''1'\'''");
    }

    #[test]
    fn what_differs_is_told_in_words() {
        let mut changed = against("main");
        assert_eq!(
            changed.describe(),
            "main (1a2b3c4d5e6f…): working tree with 1 file changed, 2 insertions(+)"
        );
        (changed.untracked, changed.uncommitted) = (1, true);
        assert!(changed.describe().ends_with("1 file unknown to git; not all of it is committed"));
        (changed.untracked, changed.uncommitted) = (0, false);
        changed.stat = String::new();
        assert_eq!(changed.describe(), "main (1a2b3c4d5e6f…): the working tree is the same");
    }

    #[test]
    fn only_what_lies_in_the_repository_is_elsewhere_at_the_commit() {
        let against = against("main");
        for (here, there) in [
            ("/home/me/shop", "/cache/1a2b"),
            ("/home/me/shop/api/src", "/cache/1a2b/api/src"),
            ("/home/me/shopping", "/home/me/shopping"),
            ("/srv", "/srv"),
        ] {
            assert_eq!(against.moved(Path::new(here)), Path::new(there));
        }
    }
}
