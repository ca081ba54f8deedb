//! Paths in commands, variables and symbolic links: whether the commit has them, and whether each side runs
//! its own code.
//!
//! The worst case is that both sides run the same code and are judged equivalent. So a path that is certainly
//! wrong is an error, and a path that git does not know is a note.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use plan::{Against, Plan, Service, ServiceCommand};

use super::worktree::{ask, ask_about};
use super::{has, missing, of_programs, path, refused};
use crate::Error;
use crate::program::{executable, search_path};

/// The placeholder by which a command may name its own directory.
const DIRECTORY: &str = "{directory}/";

/// Artifacts that are built at the commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Built {
    Nothing,
    /// Packages of lock files.
    Packages,
    /// Output of a user's command, which may create any file.
    ByCommand,
}

/// Checks every command and variable of a plan.
pub(super) fn judge(
    plan: &Plan,
    against: &Against,
    built: Built,
    notes: &mut Vec<String>,
) -> Result<(), Error> {
    let mut seen = BTreeSet::new();
    for (service, command) in of_programs(plan) {
        for named in named((service, command), &against.repository) {
            if seen.insert(named.clone())
                && let Some(note) = named.judge(against, built)?
                && !notes.contains(&note)
            {
                notes.push(note);
            }
        }
    }
    Ok(())
}

/// Rejects a commit with symbolic links that point back into the working tree: the checked-out commit would
/// run its code.
pub(super) fn check_links(against: &Against) -> Result<(), Error> {
    let listed = ask(
        &against.repository,
        &["ls-tree", "-r", "-z", "--full-tree", &against.commit],
    )?
    .or_fail("list the files of the commit")?;
    for entry in listed
        .out
        .split(|byte| *byte == 0)
        .filter(|entry| entry.starts_with(b"120000 "))
    {
        let text = String::from_utf8_lossy(entry);
        let Some((object, link)) = text.split_once('\t') else {
            continue;
        };
        let object = object.rsplit(' ').next().unwrap_or_default();
        let target = path(&ask_about(&against.repository, &["cat-file", "blob"], object)?.out);
        // A relative target stays in the checked-out commit, or leaves both trees in the same way.
        if !target.is_absolute() || !is_within(&target, &against.repository) {
            continue;
        }
        return Err(refused(
            format!(
                "{link} is a symbolic link to {}, in the working tree, also at {}",
                target.display(),
                against.baseline()
            ),
            "make the link relative: then each side uses its own",
        ));
    }
    Ok(())
}

/// Whether a path is inside a folder, by its text or through symbolic links.
fn is_within(path: &Path, folder: &Path) -> bool {
    path.starts_with(folder)
        || path
            .canonicalize()
            .is_ok_and(|real| real.starts_with(folder))
}

/// A path of the working tree that a service is started with.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct NamedPath {
    /// Where the path is written, such as `services.api.command`.
    what: String,
    /// The path as it is written.
    word: String,
    /// The written path relative to the repository's root. Symbolic links are not followed.
    written: PathBuf,
    /// The resolved path relative to the repository's root.
    inside: PathBuf,
}

fn named((service, started): (&Service, &ServiceCommand), root: &Path) -> Vec<NamedPath> {
    let command = started.command.iter().enumerate();
    // A program without a slash is looked up in PATH, which may contain folders of the working tree:
    // `node_modules/.bin`, or the folder of a venv.
    let path = search_path(started.env.get("PATH"));
    let in_path = started
        .command
        .first()
        .filter(|word| !word.contains('/'))
        .and_then(|word| {
            let files = std::env::split_paths(&path)
                .map(|folder| started.directory.join(folder).join(word));
            Some(
                files
                    .into_iter()
                    .find(|file| executable(file))?
                    .display()
                    .to_string(),
            )
        });
    let words = command
        .filter(|(index, word)| *index > 0 || word.contains('/'))
        .map(|(_, word)| word);
    let words = words
        .chain(&in_path)
        .map(|word| (format!("services.{}.command", service.name), word, true));
    let env = started.env.iter();
    let env = env.map(|(name, value)| {
        (
            format!("services.{}.env.{name}", service.name),
            value,
            false,
        )
    });
    let mut all = Vec::new();
    for (what, text, is_word) in words.chain(env) {
        for candidate in paths_in(text) {
            // A variable may have the same value as a file name by accident. A whole word of a command is a
            // path.
            let is_meant = candidate.starts_with('/')
                || is_word && candidate == text
                || candidate.starts_with("./")
                || candidate.starts_with("../");
            if is_meant
                && let Some(named) =
                    NamedPath::of(&started.directory, root, (what.clone(), candidate))
            {
                all.push(named);
            }
        }
    }
    all
}

/// Parts of a text that may be paths: the whole text, each part after a `=`, space, quote, comma, colon or
/// `file://`, and an absolute path after a flag's letter, as in `-I/usr/include`.
fn paths_in(text: &str) -> Vec<&str> {
    const ENDS: [char; 12] = [
        '=', ' ', '\t', '\n', '"', '\'', ',', ':', ';', '(', ')', '@',
    ];
    let whole = (!text.starts_with('-')).then_some(text);
    let parts = text.split(ENDS).filter(|part| *part != text);
    let words = parts
        .clone()
        .chain(Some(text).filter(|text| !text.contains(ENDS)));
    let flags = words.filter(|word| word.starts_with('-'));
    let behind_flags = flags.filter_map(|part| Some(&part[part.find('/')?..]));
    let parts = parts.filter(|part| !part.starts_with('-'));
    // `file:///x` leaves `///x` after the colon.
    let plain = |part: &'_ str| -> usize { part.len() - part.trim_start_matches('/').len() };
    let parts = parts.map(|part| &part[plain(part).saturating_sub(1)..]);
    let mut all: Vec<&str> = whole.into_iter().chain(parts).chain(behind_flags).collect();
    all.retain(|part| !part.is_empty());
    model::distinct(all)
}

impl NamedPath {
    /// Returns `None` if the word names nothing in the repository.
    fn of(directory: &Path, root: &Path, (what, word): (String, &str)) -> Option<NamedPath> {
        let path = word.strip_prefix(DIRECTORY).unwrap_or(word);
        if path.is_empty() || path.contains('{') {
            return None;
        }
        let joined = directory.join(path);
        let real = joined.canonicalize().ok()?;
        let lexical = plain(&joined);
        let written = lexical.strip_prefix(root).ok();
        // A link in the repository may point out of it.
        let inside = real.strip_prefix(root).ok().or(written)?;
        // A relative path to the directory itself belongs to each side.
        if inside.as_os_str().is_empty() && !Path::new(word).is_absolute() {
            return None;
        }
        let written = written.unwrap_or(inside).to_owned();
        Some(NamedPath {
            what,
            word: word.to_owned(),
            written,
            inside: inside.to_owned(),
        })
    }

    /// Returns a note if there is something to report.
    fn judge(&self, against: &Against, built: Built) -> Result<Option<String>, Error> {
        let NamedPath {
            what, word, inside, ..
        } = self;
        let name = against.baseline();
        let there = has(against, inside)? && self.is_reached(against)?;
        let ask_ignored = |path: &Path| {
            ask_about(
                &against.repository,
                &["check-ignore", "--quiet", "--"],
                path,
            )
        };
        let ignored = !there && (ask_ignored(inside)?.is_yes || ask_ignored(&self.written)?.is_yes);
        if Path::new(word).is_absolute() {
            if ignored {
                return Ok(Some(format!("{what} names {word}, which both sides use")));
            }
            return Err(refused(
                format!("{what}: {word} is the working tree's, also for the service at {name}"),
                "write it relative to the service's directory, or as {directory}/…: then each side runs its own",
            ));
        }
        if !there && !ignored && built != Built::ByCommand {
            return Err(missing(what, &self.written, &name));
        }
        let installed = built != Built::Nothing
            && inside
                .components()
                .any(|part| part.as_os_str() == "node_modules");
        let copied = || against.copied.contains(&self.written);
        Ok((!there && !installed && !copied()).then(|| {
            format!(
                "{what} runs {}, which is not in git: what is built at {name} must make it",
                inside.display()
            )
        }))
    }

    /// Whether the written path exists at the commit. An untracked symbolic link does not.
    fn is_reached(&self, against: &Against) -> Result<bool, Error> {
        if self.written == self.inside {
            return Ok(true);
        }
        for part in self
            .written
            .ancestors()
            .filter(|part| !part.as_os_str().is_empty())
        {
            if has(against, part)? {
                return Ok(part == self.written || against.repository.join(part).is_symlink());
            }
        }
        Ok(false)
    }
}

/// The same path without `.` and `..`, resolved by text only.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => _ = plain.pop(),
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stand_in_flags_lists_and_urls() {
        for (text, parts) in [
            ("server.js", vec!["server.js"]),
            ("--require=/r/x.js", vec!["/r/x.js"]),
            ("-I/r/include", vec!["/r/include"]),
            (
                "--import file:///r/x.mjs --require \"/r/y.js\"",
                vec!["/r/x.mjs", "/r/y.js"],
            ),
            (
                "/r/bin:/usr/bin",
                vec!["/r/bin:/usr/bin", "/r/bin", "/usr/bin"],
            ),
            ("--flag", vec![]),
        ] {
            let mut found = paths_in(text);
            found.retain(|part| part.contains('/') || *part == text);
            assert_eq!(found, parts, "{text}");
        }
    }
}
