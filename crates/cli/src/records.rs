//! Locates records: by path, `latest`, name, or the experiment's name. No other module resolves records.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use model::quantity::many;
use record::{Record, RecordFolder};
use serde::Deserialize;

use crate::exit::CliError;
use crate::print;

/// Default folder of records.
const RECORDS: &str = "records";
/// The variable with another folder. The flag `--records` takes precedence.
const VARIABLE: &str = "PROOFLOAD_RECORDS";
/// Refers to the newest record.
const LATEST: &str = "latest";
/// File in a tuning's folder with its result, and the size that it must not exceed.
pub const ADVICE: &str = "advice.json";
pub const ADVICE_BYTES_MAX: u64 = 16 << 20;
/// Maximum number of records that are opened in search of a suitable one.
const OPENED_MAX: usize = 8;
/// Maximum number of suggested names.
const NAMES_TOLD: usize = 3;
/// Names with a lower similarity are not suggested.
const ALIKE: f64 = 0.5;

/// Help text of every argument that takes a record.
pub const HELP: &str = "A record: its folder, `latest`, `latest~1` for the one before, its name, or an experiment's name for its newest";

static ROOT: OnceLock<PathBuf> = OnceLock::new();
static CLAIMED: OnceLock<PathBuf> = OnceLock::new();

/// Sets the folder of records, once, before it is used.
pub fn settle(flag: Option<PathBuf>) {
    let _ = ROOT.set(flag.unwrap_or_else(usual_root));
}

/// The folder without the flag.
fn usual_root() -> PathBuf {
    let variable = std::env::var_os(VARIABLE).filter(|value| !value.is_empty());
    variable.map_or_else(|| RECORDS.into(), PathBuf::from)
}

/// The folder in which records are created and found.
pub fn root() -> &'static Path {
    ROOT.get_or_init(|| RECORDS.into())
}

/// Creates a new folder `records/NAME-TIME`. A second run in the same second gets another name.
pub fn claim(name: &str) -> PathBuf {
    let path = claim_below(root(), &format!("{name}-{}", record::stamp()));
    let _ = CLAIMED.set(path.clone());
    path
}

fn claim_below(root: &Path, name: &str) -> PathBuf {
    // If it cannot be created, the first write reports it.
    let _ = fs::create_dir_all(root);
    let others = (2..).map(|number: u32| root.join(format!("{name}-{number}")));
    let make = |path: &PathBuf| DirBuilder::new().mode(0o700).create(path);
    let is_taken =
        |path: &PathBuf| make(path).is_err_and(|error| error.kind() == ErrorKind::AlreadyExists);
    std::iter::once(root.join(name))
        .chain(others)
        .find(|path| !is_taken(path))
        .unwrap_or_default()
}

/// Removes an unused folder from [`claim`].
pub fn release() {
    if CLAIMED
        .get()
        .is_some_and(|path| fs::remove_dir(path).is_ok())
        && root() == Path::new(RECORDS)
    {
        // A folder that the user chose stays, even if it is empty.
        let _ = fs::remove_dir(root());
    }
}

/// A path as it would be typed in the current folder.
pub fn typed(path: &Path) -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    let below = path
        .strip_prefix(here)
        .ok()
        .filter(|below| !below.as_os_str().is_empty());
    below.unwrap_or(path).to_owned()
}

/// The folder that contains a file.
pub fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Whether a word refers to the newest record, or to one before it.
pub fn means_latest(what: &Path) -> bool {
    what.to_str()
        .is_some_and(|word| word == LATEST || word.starts_with("latest~"))
}

/// Opens a record. A record that a run is writing at the moment is opened too, with a notice.
pub fn opened(asked: &Path) -> anyhow::Result<Record> {
    let directory = found(asked)?;
    let record =
        record::open(&directory).map_err(|error| CliError::usage(&error).hint(error.hint))?;
    if record.ended.is_none() && record::is_being_written(&record.directory) {
        let (place, blocks) = (record.directory.display(), record.complete_blocks().count());
        print::tell!(
            "{place}: unfinished: a run is writing it right now, with {blocks} complete blocks so far"
        );
    }
    Ok(record)
}

/// The path of a record, which need not be readable.
pub fn found(asked: &Path) -> Result<PathBuf, CliError> {
    found_among(asked, &["record.json"], || Shelf::of(root()))
}

/// The folder of a tuning, named like a record. `None` if a record is meant, or nothing is found.
pub fn tuning(asked: &Path) -> Option<PathBuf> {
    let shelf = || Shelf::with_tunings(root());
    let found = found_among(asked, &["record.json", ADVICE], shelf).ok()?;
    let folder = if found.is_file() {
        folder_of(&found).to_owned()
    } else {
        found
    };
    let is_tuning = folder.join(ADVICE).is_file() && !folder.join("record.json").exists();
    is_tuning.then_some(folder)
}

/// The path of a folder with one of these files.
fn found_among(
    asked: &Path,
    files: &[&str],
    shelf: impl Fn() -> Shelf,
) -> Result<PathBuf, CliError> {
    let word = asked.to_str().filter(|word| !word.contains('/'));
    if let Some(word) = word.filter(|word| *word == LATEST || word.starts_with("latest~")) {
        return shelf().find(word);
    }
    let folder = if asked.is_file() {
        asked.parent().unwrap_or(asked)
    } else {
        asked
    };
    if files.iter().any(|file| folder.join(file).exists()) {
        let other = word.map(|word| shelf().named(word)).transpose()?.flatten();
        return match other.filter(|other| !is_same(asked, other)) {
            Some(other) => Err(ambiguous(
                &asked.display().to_string(),
                &Path::new(".").join(asked),
                &other,
            )),
            None => Ok(asked.to_owned()),
        };
    }
    match word.map(|word| shelf().find(word)) {
        Some(Ok(found)) => Ok(found),
        // The path exists, and opening it will report its problem.
        _ if asked.exists() => Ok(asked.to_owned()),
        Some(unknown) => unknown,
        None => {
            let name = asked.file_name().unwrap_or_default().to_string_lossy();
            let shown = plan::quotable(&asked.display().to_string());
            let message = format!("{shown}: there is no such file or folder");
            Err(CliError::usage(message).hint(shelf().nearest(&name)))
        }
    }
}

/// Whether two paths refer to the same folder.
fn is_same(one: &Path, other: &Path) -> bool {
    let whole = |path: &Path| fs::canonicalize(path).ok();
    whole(one) == whole(other)
}

/// Error for a word that may refer to two records.
fn ambiguous(word: &str, folder: &Path, other: &Path) -> CliError {
    let (folder, other) = (folder.display(), other.display());
    CliError::usage(format!(
        "`{word}` may be the folder {folder}, or the record {other}"
    ))
    .hint(format!("write {folder} for the one, {other} for the other"))
}

/// Whether a folder is named like a record of this experiment. Used if its header cannot be read.
pub fn is_folder_of(folder: &str, experiment: &str) -> bool {
    let Some(rest) = folder
        .strip_prefix(experiment)
        .and_then(|rest| rest.strip_prefix('-'))
    else {
        return false;
    };
    let kinds = ["calibration-", "profile-"];
    let rest = kinds
        .iter()
        .find_map(|kind| rest.strip_prefix(kind))
        .unwrap_or(rest);
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = rest.split('-').collect();
    let is_time =
        matches!(parts[..], [day, time] | [day, time, _] if (day.len(), time.len()) == (8, 6));
    is_time && parts.into_iter().all(is_number)
}

/// Whether this is the record that commands use by default.
pub fn is_latest(directory: &Path) -> bool {
    root() == usual_root()
        && Shelf::of(root())
            .kept
            .first()
            .is_some_and(|newest| is_same(&newest.directory, directory))
}

/// The newest readable records whose folders have such names, among the first few.
pub fn newest_named(named: impl Fn(&str) -> bool) -> impl Iterator<Item = (PathBuf, Record)> {
    let kept = Shelf::of(root())
        .kept
        .into_iter()
        .filter(move |kept| named(&kept.name));
    let folders = kept.map(|kept| kept.directory).take(OPENED_MAX);
    folders.filter_map(|folder| record::open(&folder).ok().map(|record| (folder, record)))
}

/// The position of a new record in this folder, if its time is not sufficient: a clock that was set back must
/// not make an older record the newest.
pub fn order(directory: &Path, created: &str) -> Option<(String, u32)> {
    let directory = std::path::absolute(directory).ok()?;
    let (time, followed) = Shelf::of(directory.parent()?)
        .kept
        .into_iter()
        .next()?
        .order;
    (time.as_str() > created).then_some((time, followed + 1))
}

/// The records below a folder, from their headers.
struct Shelf {
    root: PathBuf,
    /// The newest first.
    kept: Vec<KeptRecord>,
}

struct KeptRecord {
    name: String,
    directory: PathBuf,
    /// Creation time, RFC 3339 in UTC, and 0, or its [`record::Header::order`]. If the header cannot be read,
    /// the time at which it was written.
    order: (String, u32),
    experiment: Option<String>,
}

/// The needed part of a header. The rest is skipped.
#[derive(Deserialize)]
struct RecordHead {
    created: String,
    order: Option<(String, u32)>,
    plan: NamedRecord,
}

/// The needed part of a tuning's result.
#[derive(Deserialize)]
struct TuningHead {
    created: String,
    experiment_name: String,
}

#[derive(Deserialize)]
struct NamedRecord {
    name: String,
}

impl Shelf {
    fn of(root: &Path) -> Shelf {
        let mut kept: Vec<KeptRecord> = RecordFolder::all(root)
            .unwrap_or_default()
            .into_iter()
            .map(KeptRecord::of)
            .collect();
        kept.sort_by_cached_key(|kept| Reverse((kept.order.clone(), kept.name.clone())));
        Shelf {
            root: root.to_owned(),
            kept,
        }
    }

    /// Records and tunings.
    fn with_tunings(root: &Path) -> Shelf {
        let mut shelf = Shelf::of(root);
        let folders = fs::read_dir(root).into_iter().flatten().flatten();
        shelf.kept.extend(folders.filter_map(KeptRecord::of_tuning));
        shelf
            .kept
            .sort_by_cached_key(|kept| Reverse((kept.order.clone(), kept.name.clone())));
        shelf
    }

    /// The record with this name, or the newest of the experiment with this name.
    ///
    /// # Errors
    /// If there are both, and they are different records.
    fn named(&self, word: &str) -> Result<Option<PathBuf>, CliError> {
        let of_name = self.kept.iter().find(|kept| kept.name == word);
        let newest = self.kept.iter().find(|kept| kept.is_of(word));
        match (of_name, newest) {
            (Some(folder), Some(newest)) if folder.name != newest.name => {
                Err(ambiguous(word, &folder.directory, &newest.directory))
            }
            (found, other) => Ok(found.or(other).map(|kept| kept.directory.clone())),
        }
    }

    /// Finds a record by a word that is not a path.
    fn find(&self, word: &str) -> Result<PathBuf, CliError> {
        if let Some(found) = self.named(word)? {
            return Ok(found);
        }
        // `keep-alive~2`: a name, and the number of records before the newest.
        let apart = word
            .rsplit_once('~')
            .and_then(|(name, back)| Some((name, back.parse().ok()?)));
        let (name, back) = apart.unwrap_or((word, 0));
        let of_it: Vec<&KeptRecord> = self.kept.iter().filter(|kept| kept.is_of(name)).collect();
        if let Some(kept) = of_it.get(back) {
            return Ok(kept.directory.clone());
        }
        if name == LATEST || !of_it.is_empty() {
            return Err(self.too_far(word, name, of_it.len()));
        }
        let begun: Vec<&str> = self
            .kept
            .iter()
            .map(|kept| kept.name.as_str())
            .filter(|name| name.starts_with(word))
            .collect();
        let place = self.place();
        match begun.as_slice() {
            [one] if !word.is_empty() => Ok(self.root.join(one)),
            [] => {
                let what = format!(
                    "`{}` is no file or folder, and no record or experiment below {place}",
                    plan::quotable(word)
                );
                Err(CliError::usage(what).hint(self.nearest(word)))
            }
            several => {
                let names = several[..several.len().min(NAMES_TOLD)].join(", ");
                let of = many(several.len() as u64, "record");
                let what = format!("`{word}` begins the names of {of} below {place}: {names}, …");
                let hint =
                    "write more of the name, or all of the experiment's name for its newest record";
                Err(CliError::usage(what).hint(hint))
            }
        }
    }

    fn too_far(&self, word: &str, name: &str, there: usize) -> CliError {
        let place = self.place();
        if let Err(error) = fs::read_dir(&self.root)
            && error.kind() != ErrorKind::NotFound
        {
            return CliError::usage(format!("{place} cannot be read: {error}"));
        }
        if self.kept.is_empty() {
            let hint = format!(
                "`proofload run FILE` makes one; --records DIR or {VARIABLE} name another folder"
            );
            return CliError::usage(format!("there is no record below {place}")).hint(hint);
        }
        let of = if name == LATEST {
            String::new()
        } else {
            format!(" of the experiment `{name}`")
        };
        let are = if there == 1 { "is" } else { "are" };
        CliError::usage(format!(
            "{word}: there {are} only {}{of} below {place}",
            many(there as u64, "record")
        ))
        .hint(format!(
            "the oldest is {name}~{}; `proofload history` lists them",
            there - 1
        ))
    }

    /// Suggests similar names, as a hint.
    fn nearest(&self, word: &str) -> String {
        let experiments: BTreeSet<&str> = self
            .kept
            .iter()
            .filter_map(|kept| kept.experiment.as_deref())
            .collect();
        let names = experiments
            .into_iter()
            .chain(self.kept.iter().map(|kept| kept.name.as_str()));
        match alike(word, names).as_slice() {
            [] => {
                "a record is the folder that `proofload run` names at its end; `proofload history` lists them"
                    .to_owned()
            }
            near => format!("the nearest names are {}; `proofload history` lists all", near.join(", ")),
        }
    }

    fn place(&self) -> String {
        let named = self.root.is_absolute() || self.root.starts_with(".");
        format!("{}{}", if named { "" } else { "./" }, self.root.display())
    }
}

impl KeptRecord {
    /// A record whose header cannot be read is included, so that another record is not silently taken for the
    /// newest.
    fn of(folder: RecordFolder) -> KeptRecord {
        let text = record::read_file(
            &folder.directory.join("record.json"),
            record::HEADER_BYTES_MAX,
        )
        .ok();
        let head: Option<RecordHead> = text.and_then(|text| serde_json::from_slice(&text).ok());
        let (order, experiment) = match head {
            Some(RecordHead {
                created,
                order,
                plan,
            }) => (order.unwrap_or((created, 0)), Some(plan.name)),
            None => ((folder.changed_utc(), 0), None),
        };
        KeptRecord {
            name: folder.name,
            directory: folder.directory,
            order,
            experiment,
        }
    }

    /// `None` if the folder is no tuning, or its result cannot be read.
    fn of_tuning(folder: fs::DirEntry) -> Option<KeptRecord> {
        let directory = folder.path();
        let text = record::read_file(&directory.join(ADVICE), ADVICE_BYTES_MAX).ok()?;
        let TuningHead {
            created,
            experiment_name,
        } = serde_json::from_slice(&text).ok()?;
        Some(KeptRecord {
            name: folder.file_name().to_string_lossy().into_owned(),
            directory,
            order: (created, 0),
            experiment: Some(experiment_name),
        })
    }

    /// Whether it is a record of this experiment. `latest` matches every record. An unreadable record is
    /// matched by its folder.
    fn is_of(&self, experiment: &str) -> bool {
        match &self.experiment {
            _ if experiment == LATEST => true,
            Some(own) => own == experiment,
            None => is_folder_of(&self.name, experiment),
        }
    }
}

/// The names that are most similar to a word or contain it, the most similar first.
pub fn alike<'n>(word: &str, names: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
    let has_it = |name: &str| word.chars().count() > 2 && name.contains(word);
    let likeness = |name: &str| strsim::normalized_damerau_levenshtein(word, name);
    let scored = names.map(|name| (if has_it(name) { 1.0 } else { likeness(name) }, name));
    let mut near: Vec<(f64, &str)> = scored.filter(|(score, _)| *score >= ALIKE).collect();
    near.sort_by(|one, other| other.0.total_cmp(&one.0));
    near.into_iter()
        .map(|(_, name)| name)
        .take(NAMES_TOLD)
        .collect()
}

#[cfg(test)]
mod tests;
