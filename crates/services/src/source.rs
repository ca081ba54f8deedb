//! The services' code at another commit: found by git, checked out beside the working tree, and what must be built there.
//!
//! ```text
//! cache/worktrees/KEY          the commit, checked out by `git worktree add --detach`, with what was built in it
//! cache/worktrees/KEY.json     of which repository it is; written at each use, so that its time tells the last
//! cache/worktrees/KEY.built-…  tells that a build ended well
//! cache/worktrees/KEY.lock     held by whoever uses it; a lock ends with its holder, however that ends
//! ```
//! It changes nothing in the working tree, and nothing in the repository but its list of worktrees. Builds are only named here:
//! they are steps as others are, and run when those do.

use std::path::PathBuf;

use plan::{Against, Building, Plan, Preparation};

use crate::Cache;

mod builds;
mod changes;
mod error;
mod git;
mod repository;
mod tree;
mod words;
mod worktree;

pub use error::SourceError;
pub(crate) use git::ELSEWHERE;
pub use worktree::Worktree;

use repository::Repository;
use tree::Tree;

/// With what the services' code is to be compared.
#[derive(Debug, Clone, Copy)]
pub struct Baseline<'a> {
    /// A branch, a tag, a commit: what `git rev-parse` takes.
    pub reference: &'a str,
    /// How services are built there.
    pub building: &'a Building,
}

/// A commit with which the services' code is compared: found, and not checked out yet.
#[derive(Debug)]
pub struct Source {
    /// The commit, and how the working tree differs from it.
    pub against: Against,
    /// What has to be made in its worktree before services run there.
    pub builds: Vec<Preparation>,
    repository: Repository,
    /// Name of its folder among the worktrees.
    key: String,
}

impl Source {
    /// Finds the commit for the services of a plan, and whether all that the plan names is there. Changes nothing.
    ///
    /// # Errors
    /// Where there is no such commit, or not all of it; where git is not there or does not answer.
    pub fn find(plan: &Plan, wanted: Baseline<'_>, cache: &Cache) -> Result<Source, SourceError> {
        let (repository, mut notes) = repository::of(plan)?;
        let commit = repository.resolve(wanted.reference)?;
        let key = worktree::key(&repository, &commit);
        let changes = changes::of(&repository, &commit, cache.folder())?;
        let mut against = Against {
            reference: wanted.reference.to_owned(),
            commit,
            repository: repository.root.clone(),
            worktree: worktree::folder(cache).join(&key),
            stat: changes.stat,
            untracked: changes.untracked,
            uncommitted: changes.uncommitted,
            build: None,
            notes: Vec::new(),
        };
        let tree = Tree { repository: &repository, against: &against };
        let directories = directories(plan, &tree)?;
        let builds = builds::of(&tree, wanted.building, &directories, &mut notes)?;
        words::judge(plan, &tree, !builds.is_empty(), &mut notes)?;
        if against.worktree.starts_with(&against.repository) {
            notes.push(format!(
                "the worktree lies within the working tree, where Node.js may take packages from that: {}; XDG_CACHE_HOME names \
                 another place",
                against.worktree.display()
            ));
        }
        if tree.has(".gitmodules".as_ref())? {
            notes.push(format!(
                "submodules are empty at {} unless what is built there fills them: git submodule update --init",
                against.baseline()
            ));
        }
        against.notes = notes;
        Ok(Source { against, builds, repository, key })
    }
}

/// The directories of services within the repository, relative to its root, each once; all of them are there at the commit.
fn directories(plan: &Plan, tree: &Tree<'_>) -> Result<Vec<PathBuf>, SourceError> {
    let services = plan.variants.iter().flat_map(|variant| &variant.services);
    let services = services.map(|service| (format!("services.{}", service.name), &service.directory, true));
    let steps = plan.prepare.iter().map(|step| (format!("prepare.{}", step.name), &step.directory, false));
    let mut directories: Vec<PathBuf> = Vec::new();
    for (name, directory, is_service) in services.chain(steps) {
        let Ok(inside) = directory.strip_prefix(&tree.against.repository) else { continue };
        if tree.names(inside)?.is_none() {
            let (what, name) = (format!("{name}.directory"), tree.against.baseline());
            return Err(SourceError::Missing { what, path: inside.to_owned(), name });
        }
        if is_service && !directories.iter().any(|other| other == inside) {
            directories.push(inside.to_owned());
        }
    }
    Ok(directories)
}
