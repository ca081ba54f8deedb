//! The repository that the services lie in, and which commit a ref names there.
//!
//! There is one: that of the first variant's entry. What lies elsewhere is the same for both sides, and noted.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use plan::Plan;

use super::SourceError;
use super::git::Git;

/// A repository with a working tree.
#[derive(Debug, Clone)]
pub(super) struct Repository {
    /// Root of the working tree.
    pub root: PathBuf,
    /// The folder that all worktrees of the repository share: what tells it from others.
    pub common: PathBuf,
    /// Git at the root.
    pub git: Git,
}

/// The repository of a plan's services, and notes on what is not in it.
pub(super) fn of(plan: &Plan) -> Result<(Repository, Vec<String>), SourceError> {
    let places = places(plan);
    let entry = plan.variants.first().and_then(|variant| variant.services.last());
    let directory = entry.map(|service| service.directory.clone()).unwrap_or_default();
    let mut roots = Vec::new();
    for (what, directory) in &places {
        roots.push((what, directory, root_of(directory)?));
    }
    let of_entry = roots.iter().find(|(_, of, _)| **of == directory).and_then(|(_, _, root)| root.clone());
    let any = || roots.iter().find_map(|(_, _, root)| root.clone());
    let elsewhere = Git::is_sent_elsewhere();
    let root = of_entry.or_else(any).ok_or(SourceError::NoRepository { directory, elsewhere })?;
    let mut notes = Vec::new();
    for (what, directory, other) in roots {
        match other {
            Some(other) if other == root => {}
            Some(inner) if inner.starts_with(&root) => {
                return Err(SourceError::Nested { what: what.clone(), inner, outer: root });
            }
            Some(other) => notes.push(format!(
                "{what} is the same on both sides: it lies in another repository, {}",
                other.display()
            )),
            None => notes.push(format!(
                "{what} is the same on both sides: it lies in no repository, {}",
                directory.display()
            )),
        }
    }
    Ok((Repository::at(root)?, notes))
}

/// Each directory once, with all that the experiment has there: `services.api, services.proxy`. That of the first entry comes first.
fn places(plan: &Plan) -> Vec<(String, PathBuf)> {
    let services = plan.variants.iter().flat_map(|variant| variant.services.iter().rev());
    let services = services.map(|service| (format!("services.{}", service.name), &service.directory));
    let steps = plan.prepare.iter().map(|step| (format!("prepare.{}", step.name), &step.directory));
    let mut places: Vec<(Vec<String>, PathBuf)> = Vec::new();
    for (name, directory) in services.chain(steps) {
        match places.iter_mut().find(|(_, of)| of == directory) {
            Some((names, _)) if names.contains(&name) => {}
            Some((names, _)) => names.push(name),
            None => places.push((vec![name], directory.clone())),
        }
    }
    places.into_iter().map(|(names, directory)| (names.join(", "), directory)).collect()
}

/// Root of the working tree that a directory lies in, if it does.
fn root_of(directory: &Path) -> Result<Option<PathBuf>, SourceError> {
    let said = Git::at(directory).ask(&["rev-parse", "--show-toplevel"])?;
    if said.is_yes() {
        return Ok(Some(path(&said.out)));
    }
    if said.complains("must be run in a work tree") {
        return Err(SourceError::Bare { directory: directory.to_owned() });
    }
    if said.complains("not a git repository") {
        return Ok(None);
    }
    said.or_fail(format!("tell the repository of {}", directory.display())).map(|_| None)
}

/// A path as git prints it, on a line of its own.
fn path(out: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(out.strip_suffix(b"\n").unwrap_or(out)))
}

impl Repository {
    fn at(root: PathBuf) -> Result<Repository, SourceError> {
        let git = Git::at(&root);
        let said = git.ask(&["rev-parse", "--git-common-dir"])?.or_fail("find its own folder")?;
        // Relative to where it was asked, in most cases.
        let common = root.join(path(&said.out));
        let common = common.canonicalize().unwrap_or(common);
        Ok(Repository { root, common, git })
    }

    /// The commit that a ref names, all of its digits.
    pub fn resolve(&self, reference: &str) -> Result<String, SourceError> {
        let refused = |reason| SourceError::Reference { reference: reference.to_owned(), reason };
        if reference.trim().is_empty() {
            return Err(refused("it is empty"));
        }
        // Git would take it for an option.
        if reference.starts_with('-') {
            return Err(refused("it begins with `-`"));
        }
        if reference.contains(['\0', '\n']) {
            return Err(refused("it has characters that no ref has"));
        }
        let said = self.ask_ref(&format!("{reference}^{{commit}}"))?;
        let is_id = |line: &str| line.len() >= 40 && line.bytes().all(|byte| byte.is_ascii_hexdigit());
        match said {
            Some(commit) if is_id(&commit) => Ok(commit),
            _ if self.ask_ref(reference)?.is_some() => Err(refused("it names no commit")),
            _ => Err(SourceError::Unknown {
                reference: reference.to_owned(),
                repository: self.root.clone(),
                hint: self.hint(reference)?,
            }),
        }
    }

    fn ask_ref(&self, reference: &str) -> Result<Option<String>, SourceError> {
        let said = self.git.ask(&["rev-parse", "--verify", "--quiet", reference])?;
        Ok(said.is_yes().then(|| said.line()))
    }

    /// What to do about a ref that is not there. Checkouts in CI are shallow, and have no branches of their own.
    fn hint(&self, reference: &str) -> Result<String, SourceError> {
        let pattern = format!("refs/remotes/*/{reference}");
        let remote = self.git.ask(&["for-each-ref", "--count=1", "--format=%(refname:short)", &pattern])?;
        match remote.line() {
            name if remote.is_yes() && !name.is_empty() => {
                return Ok(format!("there is no local branch of this name; did you mean `{name}`?"));
            }
            _ => {}
        }
        let branch = reference.strip_prefix("origin/").unwrap_or(reference);
        let shallow = self.git.ask(&["rev-parse", "--is-shallow-repository"])?.line() == "true";
        Ok(if shallow {
            format!(
                "this clone is shallow: git fetch --depth=1 origin {branch}, then --against FETCH_HEAD; in GitHub Actions, \
                 `fetch-depth: 0` for actions/checkout"
            )
        } else {
            "`git branch --all` and `git tag` list what there is; `git fetch` gets what is new".to_owned()
        })
    }
}
