//! The services' code at another commit: resolved by git, checked out beside the working tree, and the builds
//! it needs.
//!
//! ```text
//! cache/worktrees/KEY          the commit, checked out by `git worktree add --detach`, with its builds
//! cache/worktrees/KEY.json     its repository; written at each use, so that its mtime is the last use
//! cache/worktrees/KEY.built-…  marks a successful build
//! cache/worktrees/KEY.lock     held by the Proofload that uses it; a lock ends with its holder
//! ```
//! It changes nothing in the working tree, and in the repository only the list of worktrees. Builds are only
//! described here: they are ordinary steps, and run with the others.

mod ignored;
mod named;
mod worktree;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use machine::GIT_DIFF;
use model::{distinct, grouped};
use plan::{Against, Building, Plan, Preparation, Service, ServiceCommand};
use serde_json::Value;
pub use worktree::Worktree;
use worktree::{ask, ask_about};

use crate::{Blame, Cache, Error};
use ignored::Ignored;
use named::{Built, check_links, judge};

/// A commit with which the services' code is compared: resolved, and not checked out yet.
#[derive(Debug)]
pub struct CommitSource {
    /// The commit, and how the working tree differs from it.
    pub against: Against,
    /// Builds that its worktree needs before services run there.
    pub builds: Vec<Preparation>,
}

impl CommitSource {
    /// Resolves a `reference` to a commit for the services of a plan: a branch, a tag or a commit as `git
    /// rev-parse` takes it. Checks that everything the plan names exists there. Changes nothing.
    ///
    /// # Errors
    /// If there is no such commit or parts are missing, or git is not installed or does not answer.
    pub fn find(
        plan: &Plan,
        reference: &str,
        building: &Building,
        cache: &Cache,
    ) -> Result<CommitSource, Error> {
        let (repository, mut notes) = repository_of(plan)?;
        let commit = resolve(&repository, reference)?;
        let (stat, untracked, uncommitted) = changes(&repository, &commit, &cache.folder)?;
        let mut against = Against {
            reference: reference.to_owned(),
            worktree: worktree::folder(cache)
                .join(worktree::key(&shared_folder(&repository)?, &commit)),
            commit,
            repository,
            stat,
            untracked,
            uncommitted,
            build: None,
            copy: Vec::new(),
            copied: Vec::new(),
            only_here: Vec::new(),
            notes: Vec::new(),
        };
        let directories = directories(plan, &against)?;
        let ignored = Ignored::find(&against, building, &directories)?;
        notes.extend(ignored.notes());
        let contents = ignored.contents(&against)?;
        (against.copied, against.only_here) = (ignored.copied, ignored.only_here);
        let builds = builds(&against, (building, &contents), &directories, &mut notes)?;
        let built = match building.command.as_slice() {
            [] if builds.is_empty() => Built::Nothing,
            [] => Built::Packages,
            _ => Built::ByCommand,
        };
        judge(plan, &against, built, &mut notes)?;
        check_links(&against)?;
        if against.worktree.starts_with(&against.repository) {
            notes.push(format!(
                "the worktree lies within the working tree, where Node.js may take packages from that: {}; XDG_CACHE_HOME names \
                 another place",
                against.worktree.display()
            ));
        }
        if has(&against, ".gitmodules".as_ref())? {
            notes.push(format!(
                "submodules are empty at {} unless what is built there fills them: git submodule update --init",
                against.baseline()
            ));
        }
        against.notes = notes;
        Ok(CommitSource { against, builds })
    }
}

/// Services that run from a directory. An image is built elsewhere.
fn of_programs(plan: &Plan) -> impl Iterator<Item = (&Service, &ServiceCommand)> {
    let services = plan
        .variants
        .iter()
        .flat_map(|variant| variant.services.iter().rev());
    let started = services.filter_map(|service| Some((service, service.command()?)));
    started.filter(|(_, command)| command.container.is_none())
}

/// Everything that runs in a directory: its name in the experiment, the directory, and whether it is a
/// service.
fn runs(plan: &Plan) -> impl Iterator<Item = (String, &PathBuf, bool)> {
    let services = of_programs(plan).map(|(service, command)| {
        (
            format!("services.{}", service.name),
            &command.directory,
            true,
        )
    });
    let steps = plan
        .prepare
        .iter()
        .map(|step| (format!("prepare.{}", step.name), &step.directory, false));
    services.chain(steps)
}

/// Directories of services relative to the repository's root, without duplicates. All of them exist at the
/// commit.
fn directories(plan: &Plan, against: &Against) -> Result<Vec<PathBuf>, Error> {
    let mut directories: Vec<PathBuf> = Vec::new();
    for (name, directory, is_service) in runs(plan) {
        let Ok(inside) = directory.strip_prefix(&against.repository) else {
            continue;
        };
        if names(against, inside)?.is_none() {
            return Err(missing(
                &format!("{name}.directory"),
                inside,
                &against.baseline(),
            ));
        }
        if is_service && !directories.iter().any(|other| other == inside) {
            directories.push(inside.to_owned());
        }
    }
    Ok(directories)
}

/// The request cannot be fulfilled.
fn refused(message: String, hint: impl Into<String>) -> Error {
    Error::new(message).by(Blame::Request).help(hint)
}

/// An item of the experiment, `what`, does not exist at the commit `name`.
fn missing(what: &str, path: &Path, name: &str) -> Error {
    let hint = format!(
        "both sides run the same experiment: choose a commit that has it, or leave out what is not there at {name}"
    );
    refused(
        format!("{what}: `{}` does not exist at {name}", path.display()),
        hint,
    )
}

// Builds that a commit needs before services can run: the configured one, or the packages of a lock file.
//
// Packages are always installed from the commit's own lock file. The working tree's packages are neither
// linked nor copied, even if the lock files are equal: a package may write into its own folder, workspace
// links would lead back to the working tree, and manual changes in there are unknown.

/// Lock files that npm reads, in order of precedence.
const NPM_LOCKS: [&str; 2] = ["npm-shrinkwrap.json", "package-lock.json"];
/// Lock files of other package managers, and the command to configure for each.
const OTHER_LOCKS: [(&str, &str); 4] = [
    (
        "pnpm-lock.yaml",
        r#"["pnpm", "install", "--frozen-lockfile"]"#,
    ),
    ("yarn.lock", r#"["yarn", "install", "--immutable"]"#),
    ("bun.lock", r#"["bun", "install", "--frozen-lockfile"]"#),
    ("bun.lockb", r#"["bun", "install", "--frozen-lockfile"]"#),
];
const NPM_CI: [&str; 4] = ["npm", "ci", "--no-audit", "--no-fund"];

/// The steps for the directories of services, without duplicates.
fn builds(
    against: &Against,
    (building, contents): (&Building, &str),
    directories: &[PathBuf],
    notes: &mut Vec<String>,
) -> Result<Vec<Preparation>, Error> {
    let step = |directory: &PathBuf, command: &[String]| {
        let mark = worktree::mark(&against.worktree, directory, (command, contents));
        Preparation {
            mark: Some(mark),
            ..step(against, building, directory, command)
        }
    };
    if !building.command.is_empty() {
        return Ok(directories
            .iter()
            .map(|directory| step(directory, &building.command))
            .collect());
    }
    let mut folders: Vec<PathBuf> = Vec::new();
    for directory in directories {
        match packages(against, directory)? {
            Packages::Locked(folder) if folders.contains(&folder) => {}
            Packages::Locked(folder) => folders.push(folder),
            Packages::Loose(folder) => notes.push(format!(
                "{} names dependencies and has no lock file, so nothing is installed at {}; [against] build or --build does",
                folder.join("package.json").display(),
                against.baseline()
            )),
            Packages::None => {}
        }
    }
    Ok(folders
        .iter()
        .map(|folder| step(folder, &NPM_CI.map(str::to_owned)))
        .collect())
}

/// Source of a directory's packages.
enum Packages {
    /// A lock file of npm in this folder.
    Locked(PathBuf),
    /// A `package.json` with dependencies in this folder, without a lock file.
    Loose(PathBuf),
    /// No packages, or they are in the repository.
    None,
}

/// Searches the directory and its parents, as npm and Node.js do.
fn packages(against: &Against, directory: &Path) -> Result<Packages, Error> {
    let mut loose = None;
    for folder in directory.ancestors() {
        let names = names(against, folder)?.unwrap_or_default();
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
            let (directory, name) = (shown(folder), against.baseline());
            return Err(refused(
                format!("nothing says how `{directory}` is built at {name}: it has a {lock}"),
                format!(
                    "in the experiment file: [against] build = {build}; or a shell command by --build"
                ),
            ));
        }
        if loose.is_none() && has_dependencies(against, folder)? {
            loose = Some(folder.to_owned());
        }
    }
    Ok(loose.map_or(Packages::None, Packages::Loose))
}

fn has_dependencies(against: &Against, folder: &Path) -> Result<bool, Error> {
    let text = text(against, &folder.join("package.json"))?.unwrap_or_default();
    // Npm reports an invalid package.json.
    let package: Value = serde_json::from_str(&text).unwrap_or_default();
    Ok(package["dependencies"]
        .as_object()
        .is_some_and(|all| !all.is_empty()))
}

fn step(
    against: &Against,
    building: &Building,
    directory: &Path,
    command: &[String],
) -> Preparation {
    let baseline = against.baseline();
    let name = match shown(directory) {
        "." => baseline,
        inside => format!("{inside} of {baseline}"),
    };
    Preparation {
        name,
        // Taken literally. An unescaped brace would begin a placeholder.
        command: command.iter().map(|word| word.replace('{', "{{")).collect(),
        directory: against.moved(&against.repository.join(directory)),
        env: BTreeMap::new(),
        inputs: Vec::new(),
        space_bytes: None,
        timeout: building.timeout,
        mark: None,
    }
}

/// A folder of the repository, for messages.
fn shown(folder: &Path) -> &str {
    match folder.to_str() {
        Some("") => ".",
        Some(inside) => inside,
        None => "a folder",
    }
}

// The repository of the services: the commit of a ref, its files, and the differences to it.
//
// There is one repository: that of the first variant's entry. Files elsewhere are the same for both sides,
// and noted. This module only reads, and does not write the index either.

/// Root of the working tree that contains a plan's services, and notes on everything outside it.
fn repository_of(plan: &Plan) -> Result<(PathBuf, Vec<String>), Error> {
    let entry = plan
        .variants
        .first()
        .and_then(|variant| variant.services.last());
    let directory = entry
        .and_then(|service| Some(service.command()?.directory.clone()))
        .unwrap_or_default();
    let mut roots = Vec::new();
    // Each directory once, with all that runs there: `services.api, services.proxy`. The directory of the
    // first entry comes first.
    for (directory, names) in grouped(runs(plan).map(|(name, directory, _)| (directory, name))) {
        roots.push((distinct(names).join(", "), directory, root_of(directory)?));
    }
    let of_entry = roots
        .iter()
        .find(|(_, of, _)| **of == directory)
        .and_then(|(_, _, root)| root.clone());
    let any = || roots.iter().find_map(|(_, _, root)| root.clone());
    let no_repository = || {
        let hint = match std::env::var_os("GIT_DIR") {
            Some(_) => {
                "GIT_DIR is set, and not looked at: the repository is the one that the services' directories lie in"
            }
            None => {
                "--against compares a service with another commit of its repository; `git init` makes one"
            }
        };
        refused(
            format!(
                "no service's directory lies in a git repository: {}",
                directory.display()
            ),
            hint,
        )
    };
    let root = of_entry.or_else(any).ok_or_else(no_repository)?;
    let mut notes = Vec::new();
    for (what, directory, other) in roots {
        match other {
            Some(other) if other == root => {}
            Some(inner) if inner.starts_with(&root) => {
                let (inner, outer) = (inner.display(), root.display());
                return Err(refused(
                    format!("{what} lies in a repository of its own, {inner}, within {outer}"),
                    "a worktree has no submodules; have the entry lie in it, or set two checkouts side by side and make levels of \
                     their directories",
                ));
            }
            other => {
                let which = if other.is_some() { "another" } else { "no" };
                let place = other.as_ref().unwrap_or(directory).display();
                notes.push(format!(
                    "{what} is the same on both sides: it lies in {which} repository, {place}"
                ));
            }
        }
    }
    Ok((root, notes))
}

/// Messages of git in a repository without a working tree.
const NO_WORKING_TREE: [&str; 2] = ["must be run in a work tree", "cannot use bare repository"];

/// Root of the working tree that contains a directory, if there is one.
fn root_of(directory: &Path) -> Result<Option<PathBuf>, Error> {
    let said = ask(directory, &["rev-parse", "--show-toplevel"])?;
    if said.is_yes {
        let root = path(&said.out);
        let real = directory
            .canonicalize()
            .unwrap_or_else(|_| directory.to_owned());
        if !real.starts_with(&root) {
            let (directory, root) = (directory.display(), root.display());
            return Err(refused(
                format!("{directory} lies in a repository whose working tree is elsewhere: {root}"),
                "its settings say so: git config --show-origin core.worktree",
            ));
        }
        return Ok(Some(root));
    }
    if NO_WORKING_TREE.iter().any(|words| said.complains(words)) {
        return Err(refused(
            format!(
                "{} lies in a repository that has no working tree",
                directory.display()
            ),
            "run in a clone of it, or in a worktree: git worktree add",
        ));
    }
    if said.complains("not a git repository") {
        return Ok(None);
    }
    said.or_fail(format!("tell the repository of {}", directory.display()))
        .map(|_| None)
}

/// Parses a path that git prints on its own line.
fn path(out: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(out.strip_suffix(b"\n").unwrap_or(out)))
}

/// The folder that all worktrees of a repository share. It identifies the repository.
fn shared_folder(root: &Path) -> Result<PathBuf, Error> {
    let said = ask(root, &["rev-parse", "--git-common-dir"])?.or_fail("find its own folder")?;
    // In most cases relative to the directory of the call.
    let folder = root.join(path(&said.out));
    Ok(folder.canonicalize().unwrap_or(folder))
}

/// Resolves a ref to a full commit ID.
fn resolve(root: &Path, reference: &str) -> Result<String, Error> {
    let no_ref = |reason: &str| {
        refused(
            format!("--against: `{reference}` is not a git ref: {reason}"),
            "a branch, a tag or a commit, such as `main` or `HEAD~3`",
        )
    };
    let problems = [
        (reference.trim().is_empty(), "it is empty"),
        // Git would read it as an option.
        (reference.starts_with('-'), "it begins with `-`"),
        (
            reference.contains(['\0', '\n']),
            "it has characters that no ref has",
        ),
    ];
    if let Some((_, problem)) = problems.into_iter().find(|(is_so, _)| *is_so) {
        return Err(no_ref(problem));
    }
    let said = ask_ref(root, &format!("{reference}^{{commit}}"))?;
    let is_id = |line: &str| line.len() >= 40 && line.bytes().all(|byte| byte.is_ascii_hexdigit());
    match said {
        Some(commit) if is_id(&commit) => Ok(commit),
        // Git accepts any ID of 40 digits, even if there is no such commit.
        _ if !is_id(reference) && ask_ref(root, reference)?.is_some() => {
            Err(no_ref("it names no commit"))
        }
        _ => {
            let message = format!("--against: {} has no commit `{reference}`", root.display());
            Err(refused(message, hint(root, reference)?))
        }
    }
}

fn ask_ref(root: &Path, reference: &str) -> Result<Option<String>, Error> {
    let said = ask(root, &["rev-parse", "--verify", "--quiet", reference])?;
    Ok(said.is_yes.then(|| said.line()))
}

/// A hint for a ref that does not exist. Checkouts in CI are shallow and have no local branches.
fn hint(root: &Path, reference: &str) -> Result<String, Error> {
    let pattern = format!("refs/remotes/*/{reference}");
    let remote = ask(
        root,
        &[
            "for-each-ref",
            "--count=1",
            "--format=%(refname:short)",
            &pattern,
        ],
    )?;
    let name = remote.line();
    if remote.is_yes && !name.is_empty() {
        return Ok(format!(
            "there is no local branch of this name; did you mean `{name}`?"
        ));
    }
    let branch = reference.strip_prefix("origin/").unwrap_or(reference);
    let shallow = ask(root, &["rev-parse", "--is-shallow-repository"])?.line() == "true";
    Ok(if shallow {
        format!(
            "this clone is shallow: git fetch --depth=1 origin {branch}, then --against FETCH_HEAD; in GitHub Actions, \
             `fetch-depth: 0` for actions/checkout"
        )
    } else {
        "`git branch --all` and `git tag` list what there is; `git fetch` gets what is new"
            .to_owned()
    })
}

/// Differences from a commit: a summary (`3 files changed, 12 insertions(+)`, or empty), the number of
/// untracked files that are not ignored, and whether anything is uncommitted. The cache folder does not
/// count.
fn changes(root: &Path, commit: &str, cache: &Path) -> Result<(String, usize, bool), Error> {
    let doing = "tell what has changed";
    let compare = |words: &[&str]| ask(root, &[&GIT_DIFF[..], words].concat());
    let stat = compare(&["--shortstat", commit, "--"])?.or_fail(doing)?;
    let known = compare(&["--quiet", "HEAD", "--"])?;
    let untracked =
        ask(root, &["ls-files", "--others", "--exclude-standard", "-z"])?.or_fail(doing)?;
    let untracked = untracked_files(root, &untracked.out, cache);
    // Without a checked-out commit everything is uncommitted.
    Ok((
        stat.line().trim().to_owned(),
        untracked,
        untracked > 0 || !known.is_yes,
    ))
}

/// Number of untracked files, without records of earlier runs, which are often stored in the repository.
fn untracked_files(root: &Path, listed: &[u8], cache: &Path) -> usize {
    let files = listed
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty());
    let is_record = |folder: &Path| {
        !folder.as_os_str().is_empty() && root.join(folder).join("record.json").is_file()
    };
    let is_own = |file: &&Path| {
        !root.join(file).starts_with(cache) && !file.ancestors().skip(1).any(is_record)
    };
    files
        .map(|name| Path::new(OsStr::from_bytes(name)))
        .filter(is_own)
        .count()
}

// Files of the commit. Paths are relative to the repository's root.

/// Whether a file or folder with this path exists.
fn has(against: &Against, path: &Path) -> Result<bool, Error> {
    Ok(ask_about(
        &against.repository,
        &["cat-file", "-e"],
        object(against, path),
    )?
    .is_yes)
}

/// Names in a folder. `None` if there is no such folder.
fn names(against: &Against, folder: &Path) -> Result<Option<Vec<OsString>>, Error> {
    let said = ask_about(
        &against.repository,
        &["ls-tree", "--name-only", "-z"],
        object(against, folder),
    )?;
    let names = said
        .out
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty());
    Ok(said.is_yes.then(|| {
        names
            .map(|name| OsStr::from_bytes(name).to_owned())
            .collect()
    }))
}

/// Text of a file. `None` if there is no such file.
fn text(against: &Against, file: &Path) -> Result<Option<String>, Error> {
    let said = ask_about(
        &against.repository,
        &["cat-file", "blob"],
        object(against, file),
    )?;
    Ok(said
        .is_yes
        .then(|| String::from_utf8_lossy(&said.out).into_owned()))
}

fn object(against: &Against, path: &Path) -> OsString {
    let mut object = OsString::from(format!("{}:", against.commit));
    object.push(path);
    object
}
