//! What must be made at a commit before services can run there: as the experiment says, or the packages that a lock file names.
//!
//! Packages are always installed anew from the commit's own lock file. Those of the working tree are neither linked nor copied, even
//! where the lock files are alike: a package may write into its own folder, links among workspaces would lead back to the
//! working tree, and nobody knows what was changed in there by hand.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plan::{Building, Preparation};
use serde::Deserialize;

use super::tree::Tree;
use super::{SourceError, worktree};

/// What npm reads, the first one first.
const NPM_LOCKS: [&str; 2] = ["npm-shrinkwrap.json", "package-lock.json"];
/// Lock files of others, and what to write for them.
const OTHER_LOCKS: [(&str, &str); 4] = [
    ("pnpm-lock.yaml", r#"["pnpm", "install", "--frozen-lockfile"]"#),
    ("yarn.lock", r#"["yarn", "install", "--immutable"]"#),
    ("bun.lock", r#"["bun", "install", "--frozen-lockfile"]"#),
    ("bun.lockb", r#"["bun", "install", "--frozen-lockfile"]"#),
];
const NPM_CI: [&str; 4] = ["npm", "ci", "--no-audit", "--no-fund"];

/// The steps for the directories of services, each once.
pub(super) fn of(
    tree: &Tree<'_>,
    building: &Building,
    directories: &[PathBuf],
    notes: &mut Vec<String>,
) -> Result<Vec<Preparation>, SourceError> {
    let step = |directory: &PathBuf, command: &[String]| step(tree, building, directory, command);
    if !building.command.is_empty() {
        return Ok(directories.iter().map(|directory| step(directory, &building.command)).collect());
    }
    let mut folders: Vec<PathBuf> = Vec::new();
    for directory in directories {
        match packages(tree, directory)? {
            Packages::Locked(folder) if folders.contains(&folder) => {}
            Packages::Locked(folder) => folders.push(folder),
            Packages::Loose(folder) => notes.push(format!(
                "{} names dependencies and has no lock file, so nothing is installed at {}; [against] build or --build does",
                folder.join("package.json").display(),
                tree.against.baseline()
            )),
            Packages::None => {}
        }
    }
    Ok(folders.iter().map(|folder| step(folder, &NPM_CI.map(str::to_owned))).collect())
}

/// What the packages of a directory come from.
enum Packages {
    /// A lock file of npm in this folder.
    Locked(PathBuf),
    /// A `package.json` in this folder that names some, and no lock file.
    Loose(PathBuf),
    /// Nothing, or they are in the repository.
    None,
}

/// Looks in the directory and in those above it, as npm and Node.js do.
fn packages(tree: &Tree<'_>, directory: &Path) -> Result<Packages, SourceError> {
    let mut loose = None;
    for folder in directory.ancestors() {
        let names = tree.names(folder)?.unwrap_or_default();
        let has = |name: &str| names.iter().any(|other| other == name);
        if !has("package.json") {
            continue;
        }
        if has("node_modules") {
            return Ok(Packages::None);
        }
        if NPM_LOCKS.iter().any(|lock| has(lock)) {
            return Ok(Packages::Locked(folder.to_owned()));
        }
        if let Some((lock, build)) = OTHER_LOCKS.into_iter().find(|(lock, _)| has(lock)) {
            let (directory, name) = (shown(folder).into(), tree.against.baseline());
            return Err(SourceError::NoBuild { directory, name, lock, build });
        }
        if loose.is_none() && has_dependencies(tree, folder)? {
            loose = Some(folder.to_owned());
        }
    }
    Ok(loose.map_or(Packages::None, Packages::Loose))
}

fn has_dependencies(tree: &Tree<'_>, folder: &Path) -> Result<bool, SourceError> {
    #[derive(Deserialize)]
    struct Package {
        #[serde(default)]
        dependencies: BTreeMap<String, serde_json::Value>,
    }
    let text = tree.text(&folder.join("package.json"))?.unwrap_or_default();
    // What is no package.json npm will say.
    Ok(serde_json::from_str::<Package>(&text).is_ok_and(|package| !package.dependencies.is_empty()))
}

fn step(tree: &Tree<'_>, building: &Building, directory: &Path, command: &[String]) -> Preparation {
    let baseline = tree.against.baseline();
    let name = match shown(directory) {
        "." => baseline,
        inside => format!("{inside} of {baseline}"),
    };
    Preparation {
        name,
        // Taken as it is; a step's brace would begin a placeholder.
        command: command.iter().map(|word| word.replace('{', "{{")).collect(),
        directory: tree.against.moved(&tree.against.repository.join(directory)),
        env: BTreeMap::new(),
        inputs: Vec::new(),
        space_bytes: None,
        timeout: building.timeout,
        mark: Some(worktree::mark(&tree.against.worktree, directory, command)),
    }
}

/// A folder of the repository, for people.
fn shown(folder: &Path) -> &str {
    match folder.to_str() {
        Some("") => ".",
        Some(inside) => inside,
        None => "a folder",
    }
}
