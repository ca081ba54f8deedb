//! Where records lie, and which one is meant: by path, `latest`, name, or the experiment's name. The one place that knows.

use std::cmp::Reverse;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use record::{Folder, Record};
use serde::Deserialize;

use crate::exit::Failed;
use crate::print;

/// Where records are made and found unless something else is said.
const RECORDS: &str = "records";
/// The variable that says something else; the flag `--records` goes before it.
const VARIABLE: &str = "PROOFLOAD_RECORDS";
/// What stands for the newest record.
const LATEST: &str = "latest";
/// Most names that are told where none fits.
const NAMES_TOLD: usize = 3;
/// Names that are less alike were not meant.
const ALIKE: f64 = 0.5;

/// What every argument that takes a record says of it.
pub const HELP: &str = "A record: its folder, `latest`, `latest~1` for the one before, its name, or an experiment's name for its newest";

static ROOT: OnceLock<PathBuf> = OnceLock::new();

/// Settles where records lie, once, before anything asks.
pub fn settle(flag: Option<PathBuf>) {
    let variable = || std::env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
    let _ = ROOT.set(flag.or_else(variable).unwrap_or_else(|| RECORDS.into()));
}

/// The folder in which records are made and found.
pub fn root() -> &'static Path {
    ROOT.get_or_init(|| RECORDS.into())
}

/// A path as whoever is in this folder would type it.
pub fn typed(path: &Path) -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    match path.strip_prefix(here) {
        Ok(below) if !below.as_os_str().is_empty() => below.to_owned(),
        _ => path.to_owned(),
    }
}

/// Opens the record that is meant. One that a run is writing right now opens too, and that is told.
///
/// # Errors
/// If there is none, or several may be meant.
pub fn opened(asked: &Path) -> anyhow::Result<Record> {
    let directory = found(asked)?;
    let record = record::open(&directory).map_err(|error| {
        Failed::usage(error.to_string()).hint("a record is the folder that `proofload run` names at its end")
    })?;
    if record.ended.is_none() && record::is_being_written(&record.directory) {
        let blocks = record.complete_blocks().count();
        print::talk(&format!(
            "{}: unfinished: a run is writing it right now, with {blocks} complete blocks so far",
            record.directory.display()
        ));
    }
    Ok(record)
}

/// The path of the record that is meant; it need not be one that opens.
///
/// # Errors
/// If there is none, or several may be meant.
pub fn found(asked: &Path) -> Result<PathBuf, Failed> {
    let word = asked.to_str().filter(|word| !word.contains('/'));
    if word.is_some_and(|word| word == LATEST || word.starts_with("latest~")) {
        return Shelf::of(root()).find(word.unwrap_or(LATEST));
    }
    let folder = if asked.is_file() { asked.parent().unwrap_or(asked) } else { asked };
    if folder.join("record.json").exists() {
        return Ok(asked.to_owned());
    }
    let name = asked.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match word {
        Some(word) => match Shelf::of(root()).find(word) {
            // A folder of that name is there, and opening it tells what it lacks.
            Err(_) if asked.exists() => Ok(asked.to_owned()),
            found => found,
        },
        None if asked.exists() => Ok(asked.to_owned()),
        None => {
            let message = format!("{}: there is no such file or folder", asked.display());
            Err(Failed::usage(message).hint(Shelf::of(root()).nearest(&name)))
        }
    }
}

/// The folders of all records, the newest first.
pub fn newest_first() -> Vec<PathBuf> {
    Shelf::of(root()).kept.into_iter().map(|kept| kept.directory).collect()
}

/// The records below a folder, by what their headers say.
#[derive(Debug)]
struct Shelf {
    root: PathBuf,
    /// The newest first.
    kept: Vec<Kept>,
}

#[derive(Debug)]
struct Kept {
    name: String,
    directory: PathBuf,
    /// RFC 3339 in UTC; where the header does not tell, the time at which it was written.
    created: String,
    experiment: Option<String>,
}

/// What of a header is needed here; the rest is skipped unread.
#[derive(Deserialize)]
struct Head {
    created: String,
    plan: Named,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

impl Shelf {
    fn of(root: &Path) -> Shelf {
        let mut kept: Vec<Kept> = Folder::all(root).unwrap_or_default().into_iter().map(Kept::of).collect();
        kept.sort_by_cached_key(|kept| Reverse((kept.created.clone(), kept.name.clone())));
        Shelf { root: root.to_owned(), kept }
    }

    /// By a word that is no path.
    fn find(&self, word: &str) -> Result<PathBuf, Failed> {
        if let Some(kept) = self.kept.iter().find(|kept| kept.name == word) {
            return Ok(kept.directory.clone());
        }
        let (name, back) = back(word);
        let of_it: Vec<&Kept> = self.kept.iter().filter(|kept| name == LATEST || kept.is_of(name)).collect();
        if let Some(kept) = of_it.get(back) {
            return Ok(kept.directory.clone());
        }
        if name == LATEST || !of_it.is_empty() {
            return Err(self.too_far(word, name, of_it.len()));
        }
        let begun: Vec<&Kept> = self.kept.iter().filter(|kept| kept.name.starts_with(word)).collect();
        match begun.as_slice() {
            [one] if !word.is_empty() => Ok(one.directory.clone()),
            [] => Err(self.unknown(word)),
            several => Err(self.ambiguous(word, several)),
        }
    }

    fn too_far(&self, word: &str, name: &str, there: usize) -> Failed {
        if self.kept.is_empty() {
            return Failed::usage(format!("there is no record below {}", self.place())).hint(format!(
                "`proofload run FILE` makes one; --records DIR or {VARIABLE} name another folder"
            ));
        }
        let of = if name == LATEST { String::new() } else { format!(" of the experiment `{name}`") };
        let message = format!("{word}: there are only {there} records{of} below {}", self.place());
        Failed::usage(message)
            .hint(format!("the oldest is {name}~{}; `proofload history` lists them", there - 1))
    }

    fn ambiguous(&self, word: &str, several: &[&Kept]) -> Failed {
        let names: Vec<&str> = several.iter().map(|kept| kept.name.as_str()).take(NAMES_TOLD).collect();
        let (names, of) = (names.join(", "), several.len());
        Failed::usage(format!("`{word}` begins the names of {of} records below {}: {names}, …", self.place()))
            .hint("write more of the name, or all of the experiment's name for its newest record")
    }

    fn unknown(&self, word: &str) -> Failed {
        let (records, experiments) = (self.kept.len(), self.experiments().len());
        let message = format!(
            "`{word}` is no path, none of the {records} records below {}, and none of their {experiments} experiments",
            self.place()
        );
        Failed::usage(message).hint(self.nearest(word))
    }

    /// The names that may have been meant, as a hint.
    fn nearest(&self, word: &str) -> String {
        let names = self.experiments().into_iter().chain(self.kept.iter().map(|kept| kept.name.as_str()));
        match alike(word, names).as_slice() {
            [] => {
                "a record is the folder that `proofload run` names at its end; `proofload history` lists them"
                    .to_owned()
            }
            near => format!("the nearest names are {}; `proofload history` lists all", near.join(", ")),
        }
    }

    fn experiments(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.kept.iter().filter_map(|kept| kept.experiment.as_deref()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    fn place(&self) -> String {
        let path = self.root.display();
        if self.root.is_absolute() || self.root.starts_with(".") {
            path.to_string()
        } else {
            format!("./{path}")
        }
    }
}

impl Kept {
    /// One whose header cannot be read is kept too: the newest record must not be silently another.
    fn of(folder: Folder) -> Kept {
        let text = fs::read(folder.directory.join("record.json")).ok();
        let head: Option<Head> = text.and_then(|text| serde_json::from_slice(&text).ok());
        let (created, experiment) = match head {
            Some(head) => (head.created, Some(head.plan.name)),
            None => (folder.changed_utc(), None),
        };
        Kept { name: folder.name, directory: folder.directory, created, experiment }
    }

    fn is_of(&self, experiment: &str) -> bool {
        self.experiment.as_deref() == Some(experiment)
    }
}

/// Those of some names that are most like a word, the most alike first.
pub fn alike<'n>(word: &str, names: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
    let scored = names.map(|name| (strsim::normalized_damerau_levenshtein(word, name), name));
    let mut near: Vec<(f64, &str)> = scored.filter(|(score, _)| *score >= ALIKE).collect();
    near.sort_by(|one, other| other.0.total_cmp(&one.0));
    near.into_iter().map(|(_, name)| name).take(NAMES_TOLD).collect()
}

/// `keep-alive~2` apart: a name, and how many before the newest.
fn back(word: &str) -> (&str, usize) {
    let apart = word.rsplit_once('~').and_then(|(name, back)| Some((name, back.parse().ok()?)));
    apart.unwrap_or((word, 0))
}

#[cfg(test)]
mod tests;
