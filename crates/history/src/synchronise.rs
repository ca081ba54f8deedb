//! Brings what the index says up to date with what lies there: reads what is new or changed, forgets what is gone.
//!
//! What is given back is always the truth of the folder. The index only spares work, so no trouble with it is an error.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::panic;
use std::path::Path;
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Instant;

use analysis::{ESSENTIALS_VERSION, Essentials};

use crate::index::{Index, Row, Trouble, put_aside};
use crate::scan::{Folder, scan};
use crate::{Done, Entry, History, INDEX};

/// Rows kept at once: whoever interrupts a long first reading loses no more.
const BATCH: usize = 64;

/// How far reading has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Records read.
    pub done: usize,
    /// Records to be read in all.
    pub of: usize,
}

/// All records below a folder, with the index beside them brought up to date. `watch` is told after each record that is read.
///
/// # Errors
/// If the folder cannot be listed.
pub fn synchronise(root: &Path, watch: &mut dyn FnMut(Progress)) -> io::Result<History> {
    let begun = Instant::now();
    let folders = scan(root)?;
    let (mut keeper, mut rows) = Keeper::open(root);
    let concluded_by = format!("{} essentials {ESSENTIALS_VERSION}", env!("CARGO_PKG_VERSION"));
    let current = |name: &String, row: &Row| {
        folders.get(name).is_some_and(|folder| folder.mark == row.mark) && row.concluded_by == concluded_by
    };
    let vanished: Vec<String> = rows.keys().filter(|name| !folders.contains_key(*name)).cloned().collect();
    rows.retain(|name, row| current(name, row));
    let stale: VecDeque<(&String, &Folder)> =
        folders.iter().filter(|(name, _)| !rows.contains_key(*name)).collect();
    let done = Done { concluded: stale.len(), vanished: vanished.len(), took: begun.elapsed() };
    keeper.forget(&vanished);
    let made = conclude_all(stale, &concluded_by, &mut keeper, watch);
    rows.extend(made);
    let mut entries: Vec<Entry> =
        folders.iter().filter_map(|(name, folder)| Some(entry(name, folder, rows.remove(name)?))).collect();
    entries.sort_by(|one, other| (&one.created, &one.name).cmp(&(&other.created, &other.name)));
    Ok(History { entries, notes: keeper.notes, done: Done { took: begun.elapsed(), ..done } })
}

fn entry(name: &str, folder: &Folder, row: Row) -> Entry {
    let unfinished = row.found.as_ref().is_ok_and(|essentials| essentials.ended.is_none());
    Entry {
        name: name.to_owned(),
        running: unfinished && record::is_being_written(&folder.directory),
        directory: folder.directory.clone(),
        created: row.created,
        found: row.found,
    }
}

/// Reads records on all processors, and keeps their rows as they come.
fn conclude_all(
    stale: VecDeque<(&String, &Folder)>,
    concluded_by: &str,
    keeper: &mut Keeper,
    watch: &mut dyn FnMut(Progress),
) -> Vec<(String, Row)> {
    let of = stale.len();
    let workers = thread::available_parallelism().map_or(1, usize::from).min(of);
    let (queue, (sender, receiver)) = (Mutex::new(stale), mpsc::channel());
    let mut made: Vec<(String, Row)> = Vec::with_capacity(of);
    thread::scope(|scope| {
        for _ in 0..workers {
            let (queue, sender) = (&queue, sender.clone());
            scope.spawn(move || {
                let next = || queue.lock().ok()?.pop_front();
                while let Some((name, folder)) = next() {
                    let _ = sender.send((name.clone(), concluded(folder, concluded_by)));
                }
            });
        }
        drop(sender);
        let mut kept = 0;
        for row in receiver {
            made.push(row);
            watch(Progress { done: made.len(), of });
            if made.len() - kept == BATCH || made.len() == of {
                keeper.keep(&made[kept..]);
                kept = made.len();
            }
        }
    });
    made
}

fn concluded(folder: &Folder, concluded_by: &str) -> Row {
    let found = read(&folder.directory);
    let created = found.as_ref().map(|essentials| essentials.created.clone());
    Row {
        mark: folder.mark.clone(),
        concluded_by: concluded_by.to_owned(),
        created: created.unwrap_or_else(|_| written(folder)),
        found,
    }
}

/// A record that was edited by hand may contradict itself in ways that nobody foresaw, and must not take the others with it.
fn read(directory: &Path) -> Result<Box<Essentials>, String> {
    let essentials = || {
        let record = record::open(directory).map_err(|error| error.to_string())?;
        Ok(Box::new(Essentials::of(&record, &analysis::conclude(&record))))
    };
    let contradictory = |_| {
        Err(format!(
            "{}: its parts contradict each other, and nothing could be concluded",
            directory.display()
        ))
    };
    panic::catch_unwind(essentials).unwrap_or_else(contradictory)
}

fn written(folder: &Folder) -> String {
    let time = jiff::Timestamp::try_from(folder.changed).unwrap_or_default();
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The index, for as long as it can be written, and what is to be said of it.
struct Keeper {
    index: Option<Index>,
    path: std::path::PathBuf,
    notes: Vec<String>,
}

impl Keeper {
    /// With what the index says; nothing, where it had to be made anew or cannot be used.
    fn open(root: &Path) -> (Keeper, BTreeMap<String, Row>) {
        let mut keeper = Keeper { index: None, path: root.join(INDEX), notes: Vec::new() };
        let opened = match keeper.try_open() {
            Err(Trouble::Sick(why)) => keeper.anew(&why).and_then(|()| keeper.try_open()),
            opened => opened,
        };
        let rows = match opened {
            Ok((index, rows)) => {
                keeper.index = Some(index);
                rows
            }
            Err(Trouble::Sick(why) | Trouble::Unusable(why)) => {
                keeper.notes.push(format!(
                    "{}: not used: {why}; all records are read instead, which takes longer",
                    keeper.path.display()
                ));
                BTreeMap::new()
            }
        };
        (keeper, rows)
    }

    fn try_open(&self) -> Result<(Index, BTreeMap<String, Row>), Trouble> {
        let index = Index::open(&self.path)?;
        let rows = index.rows()?;
        Ok((index, rows))
    }

    fn anew(&mut self, why: &str) -> Result<(), Trouble> {
        let path = self.path.display().to_string();
        match put_aside(&self.path, false) {
            Ok(Some(aside)) => {
                self.notes.push(format!(
                    "{path}: made anew from the records: {why}; what was there is {aside} now"
                ));
            }
            Ok(None) => {}
            Err(error) => {
                return Err(Trouble::Unusable(format!("{why}, and it cannot be replaced: {error}")));
            }
        }
        Ok(())
    }

    fn keep(&mut self, rows: &[(String, Row)]) {
        let rows: Vec<(&str, &Row)> = rows.iter().map(|(name, row)| (name.as_str(), row)).collect();
        let kept = self.index.as_mut().map(|index| index.keep(&rows));
        self.heed(kept);
    }

    fn forget(&mut self, names: &[String]) {
        let forgotten = self.index.as_mut().filter(|_| !names.is_empty()).map(|index| index.forget(names));
        self.heed(forgotten);
    }

    /// After the first trouble nothing more is written: a full disk does not get emptier by trying.
    fn heed(&mut self, result: Option<Result<(), Trouble>>) {
        let Some(Err(trouble)) = result else { return };
        self.index = None;
        if let Trouble::Sick(_) = &trouble {
            // It could be read and not written: the next call shall find none.
            let _ = put_aside(&self.path, true);
        }
        let (Trouble::Sick(why) | Trouble::Unusable(why)) = trouble;
        self.notes.push(format!("{}: not brought up to date: {why}", self.path.display()));
    }
}
