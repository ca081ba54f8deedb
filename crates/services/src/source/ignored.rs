//! Files that git does not keep and that services read, such as `.env`. They are copied to the checked-out
//! commit so that both sides have the same configuration.
//!
//! Only names leave this module, never contents. Dependencies, builds, caches and logs are not copied: each
//! side has its own.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use machine::write_whole;
use plan::{Against, Building};

use super::worktree::{ask, beside, hash};
use super::{has, refused};
use crate::Error;
use crate::prepare::unusable;

/// Maximum size of a file that is recognized as configuration, and maximum number of such files in a folder.
const BYTES_MAX: u64 = 1 << 20;
const FOLDER_FILES_MAX: usize = 100;
/// Maximum number of names in a note.
const NAMED_MAX: usize = 6;
/// Follows the worktree's name in the name of the file that lists its copies.
const COPIED: &str = ".copied";

/// Names of configuration files. `*` stands for any characters.
const CONFIGURATION: &str = ".env .env.* *.env .envrc .flaskenv .dev.vars *.local *.local.* *-local.* *_local.* local.* local_settings.py \
    *.pem *.key *.crt *.cer *.cert *.p12 *.pfx *.jks *.keystore *.truststore secret.* secrets.* *.secret *.secrets .secrets credentials.* \
    .credentials config.* configuration.* settings.* appsettings*.json application*.yml application*.yaml application*.properties \
    database.yml *.config *.conf *.cfg *.ini *.toml .npmrc .yarnrc .yarnrc.yml .netrc .pgpass .my.cnf service-account*.json";
/// Patterns of configuration files that are normally not committed.
const PRIVATE: &str =
    ".env .env.* *.env .dev.vars *.local *.local.* local.settings.json *.pem *.key *.p12 *.pfx";
/// Folders whose files are configuration.
const FOLDERS: &str = "config conf .config settings cert certs certificates ssl tls keys secret secrets .secrets credentials";
/// Files that no service reads, or that each side generates.
const NOISE: &str = "*.log *.log.* *.pyc *.pyo *.class *.o *.a *.so *.d *.tsbuildinfo *.map *.swp *.swo *~ *.tmp *.temp *.bak *.orig *.rej \
    *.pid *.iml *.tgz *.lcov .DS_Store Thumbs.db .eslintcache .stylelintcache .prettiercache .coverage .coverage.* *.profraw *.cpuprofile \
    *.heapsnapshot .yarn-integrity .pnp.* *.gem *.egg";

/// Files of a working tree that git does not keep.
#[derive(Debug, Default)]
pub(super) struct Ignored {
    /// Files that are copied, relative to the repository's root.
    pub copied: Vec<PathBuf>,
    /// Files that are not copied, and that a service may read.
    pub only_here: Vec<PathBuf>,
}

impl Ignored {
    /// Finds the files. `directories` are the services' directories, relative to the repository's root.
    pub fn find(
        against: &Against,
        building: &Building,
        directories: &[PathBuf],
    ) -> Result<Ignored, Error> {
        let (files, folders) = listed(&against.repository)?;
        let recognised = match &building.copy {
            Some(paths) => named_files(against, paths)?,
            None => {
                let of_folders = folders.iter().filter(|folder| matches(FOLDERS, folder));
                let inside = of_folders.flat_map(|folder| files_below(&against.repository, folder));
                let is_copied = |file: &&PathBuf| is_configuration(&against.repository, file);
                // Git may list a folder and a file in it.
                model::distinct(files.iter().filter(is_copied).cloned().chain(inside))
            }
        };
        // A file in the commit is compared like the rest of the code.
        let at_commit = files_at(against)?;
        let (copied, _): (Vec<_>, Vec<_>) = recognised
            .into_iter()
            .partition(|file| !at_commit.contains(file.as_os_str().as_bytes()));
        let may_be_read = |file: &PathBuf| {
            let is_there = at_commit.contains(file.as_os_str().as_bytes());
            is_near(file, directories)
                && !matches(NOISE, file)
                && !is_there
                && !copied.contains(file)
        };
        let only_here = files
            .into_iter()
            .filter(|file| building.copy.is_none() && may_be_read(file))
            .collect();
        Ok(Ignored { copied, only_here })
    }

    /// Notes on both kinds of files.
    pub fn notes(&self) -> Vec<String> {
        let copied = (!self.copied.is_empty()).then(|| {
            format!(
                "copied to the other side, as git does not keep them: {}",
                shown(&self.copied)
            )
        });
        let only_here = (!self.only_here.is_empty()).then(|| {
            let (those, example) = (shown(&self.only_here), self.only_here[0].display());
            format!(
                "ignored files that only your side has: {those}; if a service reads one, name all that it needs: [against] copy = \
                 [\"{example}\"], or --copy {example}"
            )
        });
        copied.into_iter().chain(only_here).collect()
    }

    /// Digest of the copied files: a build with other contents is done again.
    pub fn contents(&self, against: &Against) -> Result<String, Error> {
        let mut parts: Vec<Vec<u8>> = Vec::new();
        for file in &self.copied {
            parts.push(file.as_os_str().as_bytes().to_owned());
            parts.push(contents(&against.repository.join(file))?);
        }
        Ok(if parts.is_empty() {
            String::new()
        } else {
            hash(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>())
        })
    }
}

/// Names of all files of the commit.
fn files_at(against: &Against) -> Result<HashSet<Vec<u8>>, Error> {
    let words = [
        "ls-tree",
        "-r",
        "-z",
        "--full-tree",
        "--name-only",
        &against.commit,
    ];
    let listed = ask(&against.repository, &words)?.or_fail("list the files of the commit")?;
    Ok(listed
        .out
        .split(|byte| *byte == 0)
        .map(<[u8]>::to_owned)
        .collect())
}

fn contents(file: &Path) -> Result<Vec<u8>, Error> {
    fs::read(file).map_err(|error| {
        refused(
            format!(
                "{} cannot be copied to the other side: {error}",
                file.display()
            ),
            "[against] copy (--copy) names the files that the services read",
        )
    })
}

/// The first few names.
fn shown(files: &[PathBuf]) -> String {
    let names: Vec<String> = files
        .iter()
        .take(NAMED_MAX)
        .map(|file| file.display().to_string())
        .collect();
    match files.len().saturating_sub(NAMED_MAX) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// Returns the files that git ignores, uncommitted files that look like configuration, and fully ignored
/// folders.
fn listed(root: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>), Error> {
    let doing = "list the files that it ignores";
    let words = [
        "ls-files",
        "--others",
        "--ignored",
        "--exclude-standard",
        "--directory",
        "-z",
    ];
    let ignored = ask(root, &words)?.or_fail(doing)?.out;
    let untracked = ask(root, &["ls-files", "--others", "--exclude-standard", "-z"])?
        .or_fail(doing)?
        .out;
    let names = |out: &[u8]| -> Vec<PathBuf> {
        let names = out.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        names
            .map(|name| PathBuf::from(OsStr::from_bytes(name)))
            .collect()
    };
    let is_folder = |path: &PathBuf| root.join(path).is_dir();
    let (folders, mut files): (Vec<PathBuf>, Vec<PathBuf>) =
        names(&ignored).into_iter().partition(is_folder);
    // Other new files may be part of the compared change.
    let is_private = |file: &PathBuf| matches(PRIVATE, file) && is_configuration(root, file);
    files.extend(names(&untracked).into_iter().filter(is_private));
    Ok((model::distinct(files), folders))
}

fn is_configuration(root: &Path, file: &Path) -> bool {
    let is_in_folder = file.parent().is_some_and(|folder| matches(FOLDERS, folder));
    let is_small = || {
        root.join(file)
            .metadata()
            .is_ok_and(|file| file.is_file() && file.len() <= BYTES_MAX)
    };
    (matches(CONFIGURATION, file) || is_in_folder) && !matches(NOISE, file) && is_small()
}

/// Files below a configuration folder. Empty if it has too many files to be one.
fn files_below(root: &Path, folder: &Path) -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder))
            .into_iter()
            .flatten()
            .flatten()
        {
            let path = folder.join(entry.file_name());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(path),
                _ if matches(NOISE, &path) => {}
                _ if root
                    .join(&path)
                    .metadata()
                    .is_ok_and(|file| file.is_file() && file.len() <= BYTES_MAX) =>
                {
                    files.push(path);
                }
                _ => {}
            }
            if files.len() + folders.len() > FOLDER_FILES_MAX {
                return Vec::new();
            }
        }
    }
    files.sort();
    files
}

/// The files that the experiment names, including all files below named folders.
fn named_files(against: &Against, paths: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    for path in paths {
        let refused = |why: &str| {
            let hint = "name files and folders of the repository that git does not keep";
            refused(format!("[against] copy: {} {why}", path.display()), hint)
        };
        let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
        let whole = folder.and_then(|folder| Some(folder.join(path.file_name()?)));
        let inside = whole
            .as_deref()
            .and_then(|whole| whole.strip_prefix(&against.repository).ok());
        let inside = inside.ok_or_else(|| refused("is not in the repository"))?;
        if has(against, inside)? {
            return Err(refused(&format!("is in git at {}", against.baseline())));
        }
        if path.is_dir() {
            let below = files_below(&against.repository, inside);
            if below.is_empty() {
                return Err(refused(&format!(
                    "has no files, or more than {FOLDER_FILES_MAX}"
                )));
            }
            files.extend(below);
        } else if path.is_file() {
            files.push(inside.to_owned());
        } else {
            return Err(refused("does not exist"));
        }
    }
    Ok(files)
}

/// Whether a service is likely to read a file: it is in a service's directory, above it, or below it.
fn is_near(file: &Path, directories: &[PathBuf]) -> bool {
    let folder = file.parent().unwrap_or(Path::new(""));
    directories
        .iter()
        .any(|directory| directory.starts_with(folder) || folder.starts_with(directory))
}

/// Whether the last part of a path matches one of these patterns.
fn matches(names: &str, path: &Path) -> bool {
    let Some(name) = path.file_name().and_then(OsStr::to_str) else {
        return false;
    };
    names.split_whitespace().any(|pattern| fits(pattern, name))
}

/// Whether a name matches a pattern in which `*` stands for any characters.
fn fits(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut left) = name.strip_prefix(first) else {
        return false;
    };
    let (between, last) = rest
        .rsplit_once('*')
        .map_or(("", rest), |(between, last)| (between, last));
    if !between.is_empty() || rest.contains('*') {
        let Some(at) = left.find(between) else {
            return false;
        };
        left = &left[at + between.len()..];
    }
    left.ends_with(last)
}

/// Copies in a worktree. They are removed on drop, so that secrets do not stay in the cache.
#[derive(Debug)]
pub(super) struct CopiedFiles {
    worktree: PathBuf,
}

impl CopiedFiles {
    /// Makes the copies. First removes copies of a run that was killed.
    pub fn make(against: &Against) -> Result<CopiedFiles, Error> {
        let copies = CopiedFiles {
            worktree: against.worktree.clone(),
        };
        copies.remove();
        let list = copies.list();
        let names: Vec<&[u8]> = against
            .copied
            .iter()
            .map(|file| file.as_os_str().as_bytes())
            .collect();
        if names.is_empty() {
            return Ok(copies);
        }
        write_whole(&list, &names.join(&0)).map_err(|error| unusable(&list, &error))?;
        for file in &against.copied {
            let bytes = contents(&against.repository.join(file))?;
            let path = against.worktree.join(file);
            if let Some(link) = link_above(&against.worktree, file) {
                return Err(refused(
                    format!(
                        "{} cannot be copied to {}: there {} is a symbolic link",
                        file.display(),
                        against.baseline(),
                        link.display()
                    ),
                    "[against] copy (--copy) names the files that the services read",
                ));
            }
            write_private(&path, &bytes).map_err(|error| unusable(&path, &error))?;
        }
        Ok(copies)
    }

    fn list(&self) -> PathBuf {
        beside(&self.worktree, COPIED)
    }

    fn remove(&self) {
        let listed = fs::read(self.list()).unwrap_or_default();
        let names: BTreeSet<&[u8]> = listed
            .split(|byte| *byte == 0)
            .filter(|name| !name.is_empty())
            .collect();
        for name in names
            .into_iter()
            .map(|name| Path::new(OsStr::from_bytes(name)))
        {
            if link_above(&self.worktree, name).is_none() {
                let _ = fs::remove_file(self.worktree.join(name));
            }
        }
        let _ = fs::remove_file(self.list());
    }
}

impl Drop for CopiedFiles {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Returns a symbolic link among the parent folders of a file: writing through it would write elsewhere.
fn link_above(worktree: &Path, file: &Path) -> Option<PathBuf> {
    let folders = file
        .ancestors()
        .skip(1)
        .filter(|folder| !folder.as_os_str().is_empty());
    folders
        .map(Path::to_owned)
        .find(|folder| worktree.join(folder).is_symlink())
}

/// Writes a file that only its owner may read. Replaces a file that a build left there.
fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    if path.symlink_metadata().is_ok() {
        fs::remove_file(path)?;
    }
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?
        .write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configuration_is_told_from_other_ignored_files() {
        for (name, is_configuration) in [
            (".env", true),
            ("api/.env.production", true),
            ("config.local.json", true),
            ("local.settings.json", true),
            ("application-local.yml", true),
            ("config/master.key", true),
            ("dev.sqlite3", false),
            ("environment.js", false),
            ("data.json", false),
        ] {
            assert_eq!(
                matches(CONFIGURATION, Path::new(name)),
                is_configuration,
                "{name}"
            );
        }
        assert!(matches(NOISE, Path::new("x/npm-debug.log.1")) && fits("a*b*c", "a-b-c"));
        assert!(!fits("a*b*c", "a-c") && !fits("*.env", "env"));
    }

    #[test]
    fn files_near_services_may_be_read() {
        let near = |file: &str| is_near(Path::new(file), &[PathBuf::from("apps/api")]);
        assert!(near("data.db") && near("apps/data.db") && near("apps/api/src/data.db"));
        assert!(!near("apps/web/data.db") && !near("docs/data.db"));
    }
}
