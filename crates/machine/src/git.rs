//! Runs git so that, regardless of the caller's shell, it answers about the repository of a directory, in
//! English, and runs no program chosen by this repository.
//!
//! A repository may come from anywhere, with its own settings in `.git/config`. Settings that name programs
//! are taken only from the user's and the system's settings. docs/security.md lists them, and a test checks
//! the list.

use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::programs::{OUTPUT_BYTES_MAX, command, output_of, run};

/// Variables that redirect git or npm to another directory. Git sets them for its hooks, npm for its scripts.
pub const ELSEWHERE: [&str; 11] = [
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

/// Variables of git that are kept: the user's settings, and the limits of the search for a repository. All
/// others may point elsewhere, name programs, or change the output.
const KEPT: [&str; 6] = [
    "GIT_CEILING_DIRECTORIES",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_SYSTEM",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
];
/// Prefixes of further kept variables: the user's settings given as variables.
const KEPT_ALL: [&str; 2] = ["GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"];

/// Hooks are programs, file system monitors are daemons that stay, and garbage collection would continue in
/// the background during the measurement. A folder that looks like a bare repository is ignored: any commit
/// may contain one, with its own settings.
const SETTINGS: [&str; 6] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "safe.bareRepository=explicit",
    "submodule.recurse=false",
];

/// The last words of settings that name a program, for git itself and for Git LFS, which reads the same
/// settings.
const PROGRAMS: [&str; 21] = [
    "alternaterefscommand",
    "askpass",
    "clean",
    "cmd",
    "command",
    "defaultkeycommand",
    "driver",
    "editor",
    "external",
    "gitproxy",
    "helper",
    "packobjectshook",
    "pager",
    "path",
    "process",
    "program",
    "receivepack",
    "smudge",
    "sshcommand",
    "textconv",
    "virtualfilesystem",
];
/// The programs of a filter.
const FILTER: [&str; 3] = ["clean", "smudge", "process"];

/// Timeout for listing the settings.
const PATIENCE: Duration = Duration::from_secs(10);
/// Timeout for comparing the files with the commit. If it expires, the repository is described without its
/// commit.
const COMPARE_PATIENCE: Duration = Duration::from_secs(5);

/// A comparison of files with a commit that runs no programs. Working trees of submodules are excluded,
/// because each has its own settings.
pub const GIT_DIFF: [&str; 4] = [
    "diff",
    "--no-ext-diff",
    "--no-textconv",
    "--ignore-submodules=dirty",
];

/// The handling of files whose filter is defined only in the repository's own settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filters {
    /// The files are taken unfiltered.
    Skipped,
    /// The files are not available: git fails, and names the file and the filter.
    Required,
}

/// A git command for a directory, to which arguments are added. It runs no program named by the repository,
/// and fetches nothing.
///
/// # Errors
/// Returns an error if git cannot be started, or of the kind [`io::ErrorKind::Other`], with git's message, if
/// it does not list its settings.
pub fn git(directory: &Path, filters: Filters) -> io::Result<Command> {
    let list = ["config", "--list", "--includes", "--show-scope", "-z"];
    let listed = run(plain(directory).args(list), PATIENCE)?;
    let listed = listed.ok_or_else(|| io::Error::other("git did not list its settings in time"))?;
    if !listed.status.success() {
        return Err(io::Error::other(
            String::from_utf8_lossy(&listed.stderr).trim().to_owned(),
        ));
    }
    // The missing part of a truncated list is unknown.
    if listed.stdout.len() >= OUTPUT_BYTES_MAX {
        return Err(io::Error::other(
            "the settings of git are larger than any that are read",
        ));
    }
    let mut command = plain(directory);
    for (index, (name, value)) in overrides(&listed.stdout, filters).into_iter().enumerate() {
        set(&mut command, index, (&name, &value));
    }
    Ok(command)
}

/// The checked out commit of a directory, abbreviated, with `+` appended if files differ from it. `None` if
/// git fails.
pub fn commit_of(directory: &Path) -> Option<String> {
    let git = || git(directory, Filters::Skipped).ok();
    let commit = output_of(git()?.args(["rev-parse", "--verify", "--short=12", "HEAD"]))?;
    let compared = run(
        git()?.args(GIT_DIFF).args(["--quiet", "HEAD", "--"]),
        COMPARE_PATIENCE,
    )
    .ok()??;
    match compared.status.code()? {
        0 => Some(commit),
        1 => Some(format!("{commit}+")),
        _ => None,
    }
}

/// Git in a directory, with the settings common to all repositories.
fn plain(directory: &Path) -> Command {
    let mut command = command("git");
    for (name, _) in env::vars_os().filter(|(name, _)| is_left_out(name)) {
        command.env_remove(name);
    }
    // Messages in English, no prompts, no optional locks. Nothing is fetched: a partial clone would get
    // missing objects with a program named by its settings.
    command.envs([
        ("LC_ALL", "C"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_OPTIONAL_LOCKS", "0"),
    ]);
    command.envs([("GIT_ALLOW_PROTOCOL", ""), ("GIT_NO_LAZY_FETCH", "1")]);
    command.arg("--no-pager").arg("-C").arg(directory);
    command.args(SETTINGS.iter().flat_map(|setting| ["-c", setting]));
    command
}

fn is_left_out(variable: &OsStr) -> bool {
    let begins = |begin: &&str| variable.as_bytes().starts_with(begin.as_bytes());
    begins(&"GIT_") && !KEPT.iter().any(|kept| variable == *kept) && !KEPT_ALL.iter().any(begins)
}

/// Adds a setting to a command.
fn set(command: &mut Command, index: usize, (name, value): (&[u8], &[u8])) {
    let text = |parts: &[&[u8]]| OsString::from_vec(parts.concat());
    if !name.contains(&b'=') {
        command.arg("-c").arg(text(&[name, b"=", value]));
        return;
    }
    // A name with `=` can only be given by a variable, which git supports since 2.31. An older version
    // rejects the flag.
    let variable = format!("PROOFLOAD_GIT_{index}");
    command
        .arg(text(&[b"--config-env=", name, b"=", variable.as_bytes()]))
        .env(variable, text(&[value]));
}

/// A setting as listed by git.
struct GitSetting<'a> {
    /// Whether it comes from the repository itself.
    is_own: bool,
    name: &'a [u8],
    value: &'a [u8],
}

/// Parses repeated `local NUL name LF value NUL`. A setting without a value has no line feed.
fn entries(listed: &[u8]) -> Vec<GitSetting<'_>> {
    let mut parts = listed.split(|byte| *byte == 0);
    let mut entries = Vec::new();
    while let (Some(scope), Some(entry)) = (parts.next(), parts.next()) {
        let end = entry
            .iter()
            .position(|byte| *byte == b'\n')
            .unwrap_or(entry.len());
        let value = entry.get(end + 1..).unwrap_or_default();
        let is_own = matches!(scope, b"local" | b"worktree");
        entries.push(GitSetting {
            is_own,
            name: &entry[..end],
            value,
        });
    }
    entries
}

/// Splits a setting's name into its last word and the part before it.
fn split(name: &[u8]) -> (&[u8], &[u8]) {
    let dot = name.iter().rposition(|byte| *byte == b'.').unwrap_or(0);
    (&name[..dot], name.get(dot + 1..).unwrap_or_default())
}

/// Replacements for the repository's own settings that name a program: the user's or the system's value, or
/// none.
fn overrides(listed: &[u8], filters: Filters) -> Vec<(Vec<u8>, Vec<u8>)> {
    let entries = entries(listed);
    // An included file is no program, and git rejects a flag that includes one without a location.
    let includes = |name: &[u8]| {
        [&b"include."[..], b"includeif."]
            .iter()
            .any(|begin| name.starts_with(begin))
    };
    let is_word = |name: &[u8]| PROGRAMS.iter().any(|word| word.as_bytes() == split(name).1);
    let names_program = |name: &[u8]| is_word(name) && !includes(name);
    let mut names: BTreeSet<Vec<u8>> = BTreeSet::new();
    let mut drivers: BTreeSet<&[u8]> = BTreeSet::new();
    for GitSetting { name, .. } in entries
        .iter()
        .filter(|entry| entry.is_own && names_program(entry.name))
    {
        names.insert(name.to_vec());
        if name.starts_with(b"filter.") {
            drivers.insert(split(name).0);
        }
    }
    let of_filter = |driver: &[u8], word: &str| [driver, b".", word.as_bytes()].concat();
    // Only the programs it names: a filter with an empty process runs neither of its other programs.
    let users = |name: &[u8]| {
        let last = entries
            .iter()
            .rfind(|entry| !entry.is_own && entry.name == name);
        last.map_or_else(Vec::new, |entry| entry.value.to_vec())
    };
    let required: &[u8] = if filters == Filters::Required {
        b"true"
    } else {
        b"false"
    };
    let is_void = |driver: &&&[u8]| {
        FILTER
            .iter()
            .all(|word| users(&of_filter(driver, word)).is_empty())
    };
    let without = drivers.iter().filter(is_void);
    let without: Vec<_> = without
        .map(|driver| (of_filter(driver, "required"), required.to_vec()))
        .collect();
    let named = names.into_iter().map(|name| {
        let value = users(&name);
        // Newer versions of git have hooks as settings, and reject one without a command.
        let value = if value.is_empty() && name.starts_with(b"hook.") {
            b"true".to_vec()
        } else {
            value
        };
        (name, value)
    });
    named.chain(without).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(directory: &Path) -> Command {
        git(directory, Filters::Skipped).unwrap()
    }

    #[test]
    fn programs_of_the_repository_give_way_to_the_users() {
        let listed = "global\0filter.lfs.process\ngit-lfs\0global\0diff.x.command\nmine\0local\0core.bare\nfalse\0\
                      local\0filter.lfs.process\nevil\nlines\0local\0filter.a=b.clean\nevil\0worktree\0core.sshcommand\nevil\0\
                      local\0hook.x.command\nevil\0local\0filter.novalue.smudge\0command\0gc.auto\n0\0";
        let told = |filters| -> Vec<String> {
            let all = overrides(listed.as_bytes(), filters).into_iter();
            all.map(|(name, value)| {
                String::from_utf8([name, b"=".to_vec(), value].concat()).unwrap()
            })
            .collect()
        };
        let expected = [
            "core.sshcommand=",
            "filter.a=b.clean=",
            "filter.lfs.process=git-lfs",
            "filter.novalue.smudge=",
            "hook.x.command=true",
        ];
        let with = |required| {
            let filters =
                ["a=b", "novalue"].map(|name| format!("filter.{name}.required={required}"));
            [&expected.map(str::to_owned)[..], &filters].concat()
        };
        assert_eq!(told(Filters::Skipped), with("false"));
        assert_eq!(told(Filters::Required), with("true"));
    }

    #[test]
    fn what_a_hook_or_a_shell_says_of_another_repository_is_not_heard() {
        let place = std::env::temp_dir().join(format!("proofload-git-{}", std::process::id()));
        let make = |name: &str| {
            let directory = place.join(name);
            std::fs::create_dir_all(&directory).unwrap();
            assert!(
                asked(&directory)
                    .args(["init", "--quiet"])
                    .status()
                    .unwrap()
                    .success()
            );
            directory.canonicalize().unwrap()
        };
        let (ours, other) = (make("ours"), make("other"));
        let monitor = format!("touch {}", place.join("started").display());
        assert!(
            asked(&ours)
                .args(["config", "core.fsmonitor", &monitor])
                .status()
                .unwrap()
                .success()
        );
        // The environment of a hook of the other repository: this test, run again in it.
        if std::env::var_os("GIT_DIR").is_none() {
            let this = std::env::current_exe().unwrap();
            let mut again = Command::new(this);
            again
                .args(["what_a_hook_or_a_shell_says"])
                .env("GIT_DIR", other.join(".git"));
            assert!(
                again
                    .env("GIT_WORK_TREE", &other)
                    .output()
                    .unwrap()
                    .status
                    .success()
            );
        }
        let said = asked(&ours)
            .args(["rev-parse", "--show-toplevel"])
            .output()
            .unwrap()
            .stdout;
        assert_eq!(
            String::from_utf8(said).unwrap().trim(),
            ours.to_str().unwrap()
        );
        assert!(
            asked(&ours)
                .args(["status", "--porcelain"])
                .status()
                .unwrap()
                .success()
        );
        assert!(
            !place.join("started").exists(),
            "a file system monitor was started"
        );
        std::fs::remove_dir_all(&place).unwrap();
    }
}
