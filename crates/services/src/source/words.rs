//! Files that commands name: whether they are there at the commit, and whether each side runs its own.
//!
//! The worst that can happen is that both sides run the same code, and come out equivalent. So what is known to be wrong is an
//! error, and what is only not known to git a note.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use plan::{Plan, Service};

use super::SourceError;
use super::tree::Tree;

/// The placeholder by which a command may name its own directory.
const DIRECTORY: &str = "{directory}/";

/// Judges every command and variable of a plan; `built` is whether anything is built at the commit.
pub(super) fn judge(
    plan: &Plan,
    tree: &Tree<'_>,
    built: bool,
    notes: &mut Vec<String>,
) -> Result<(), SourceError> {
    let mut seen = BTreeSet::new();
    for service in plan.variants.iter().flat_map(|variant| &variant.services) {
        for named in named(service, &tree.against.repository) {
            if seen.insert(named.clone())
                && let Some(note) = named.judge(tree, built)?
                && !notes.contains(&note)
            {
                notes.push(note);
            }
        }
    }
    Ok(())
}

/// A file of the working tree that a service is started with.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Named {
    /// Such as `services.api.command`.
    what: String,
    /// As it is written.
    word: String,
    /// Relative to the repository's root.
    inside: PathBuf,
}

fn named(service: &Service, root: &Path) -> Vec<Named> {
    let command = service.command.iter().enumerate();
    // A program without a slash is looked for in PATH.
    let words = command.filter(|(index, word)| *index > 0 || word.contains('/')).map(|(_, word)| word);
    let words = words.map(|word| (format!("services.{}.command", service.name), word));
    let env = service.env.iter().filter(|(_, value)| Path::new(value).is_absolute());
    let env = env.map(|(name, value)| (format!("services.{}.env.{name}", service.name), value));
    words.chain(env).filter_map(|(what, word)| Named::of(service, root, (what, word))).collect()
}

impl Named {
    /// `None` where the word names no file of the repository.
    fn of(service: &Service, root: &Path, (what, word): (String, &str)) -> Option<Named> {
        let path = word.strip_prefix(DIRECTORY).unwrap_or(word);
        if path.is_empty() || path.starts_with('-') || path.contains('{') {
            return None;
        }
        let real = service.directory.join(path).canonicalize().ok()?;
        let inside = real.strip_prefix(root).ok().filter(|inside| !inside.as_os_str().is_empty())?;
        Some(Named { what, word: word.to_owned(), inside: inside.to_owned() })
    }

    /// A note, where there is something to know.
    fn judge(&self, tree: &Tree<'_>, built: bool) -> Result<Option<String>, SourceError> {
        let Named { what, word, inside } = self;
        let name = tree.against.baseline();
        let there = tree.has(inside)?;
        let ignored = !there && tree.is_ignored(inside)?;
        if Path::new(word).is_absolute() {
            if ignored || what.contains(".env.") {
                return Ok(Some(format!("{what} names {word}, which both sides use")));
            }
            return Err(SourceError::Absolute { what: what.clone(), path: word.into(), name });
        }
        if !there && !ignored {
            return Err(SourceError::Missing { what: what.clone(), path: inside.clone(), name });
        }
        let installed = built && inside.components().any(|part| part.as_os_str() == "node_modules");
        Ok((ignored && !installed).then(|| {
            format!(
                "{what} runs {}, which is not in git: what is built at {name} must make it",
                inside.display()
            )
        }))
    }
}
