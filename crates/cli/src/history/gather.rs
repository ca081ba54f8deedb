//! All records below a folder with their essentials: by their summaries, and where one has none that holds, by reading it.

use std::collections::VecDeque;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};
use std::{panic, thread};

use analysis::{Conclusion, ESSENTIALS_VERSION, Essentials};
use indicatif::{ProgressBar, ProgressStyle};
use record::{Folder, Record};

use crate::print;

/// Whoever waits longer for records to be read wants to know for what.
const PATIENCE: Duration = Duration::from_secs(2);

/// All records below a folder.
#[derive(Debug, Clone, PartialEq)]
pub struct Gathered {
    /// Each record, the oldest first.
    pub entries: Vec<Entry>,
    /// Records that were read, because they were new or had changed.
    pub read: usize,
    /// Why some of these will be read again, if they will.
    pub unkept: Option<String>,
}

/// A record, or a folder that begins as one does.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Name of its folder.
    pub name: String,
    /// When it was made, RFC 3339 in UTC; of one that cannot be read when its header was last changed.
    pub created: String,
    /// What is in it, or what is wrong with it.
    pub found: Found,
    /// Whether a run is writing it right now.
    pub running: bool,
}

/// Essentials, or why there are none.
type Found = Result<Box<Essentials>, String>;

/// Gathers them. Whatever summaries say, what is given back is what lies there now.
///
/// # Errors
/// If the folder cannot be listed.
pub fn gather(root: &Path) -> io::Result<Gathered> {
    let folders = Folder::all(root)?;
    let summaries = on_all_processors(folders, &summarised, &mut |_| ());
    let (known, stale): (Vec<_>, Vec<_>) = summaries.into_iter().partition(|(_, found)| found.is_some());
    let stale: Vec<Folder> = stale.into_iter().map(|(folder, _)| folder).collect();
    let mut waiting = waiting(stale.len());
    let read = on_all_processors(stale, &read_and_kept, &mut waiting);
    let (of, mut unkept) = (read.len(), None);
    let mut entries: Vec<Entry> =
        known.into_iter().filter_map(|(folder, found)| Some(entry(folder, found?))).collect();
    for (folder, found, kept) in read {
        if let Err(error) = kept {
            unkept = unkept.or_else(|| Some(format!("{}: {error}", folder.directory.display())));
        }
        entries.push(entry(folder, found));
    }
    entries.sort_by(|one, other| (&one.created, &one.name).cmp(&(&other.created, &other.name)));
    Ok(Gathered { entries, read: of, unkept })
}

/// Leaves the summary of a run that has ended, so that no list need read it. Without it the first list does.
pub fn keep(record: &Record, conclusion: &Conclusion) {
    let Some(folder) = Folder::at(record.directory.clone()) else { return };
    let found: Found = Ok(Box::new(Essentials::of(record, conclusion)));
    let _ = folder.keep_summary(&made_by(), &found);
}

/// Another version of Proofload may conclude otherwise.
fn made_by() -> String {
    format!("{} essentials {ESSENTIALS_VERSION}", env!("CARGO_PKG_VERSION"))
}

fn entry(folder: Folder, found: Found) -> Entry {
    let created = found.as_ref().map(|essentials| essentials.created.clone());
    let unfinished = found.as_ref().is_ok_and(|essentials| essentials.ended.is_none());
    Entry {
        running: unfinished && record::is_being_written(&folder.directory),
        created: created.unwrap_or_else(|_| folder.changed_utc()),
        name: folder.name,
        found,
    }
}

fn summarised(folder: Folder) -> (Folder, Option<Found>) {
    let found = folder.summary(&made_by());
    (folder, found)
}

/// Reads a record and keeps its summary; beside what does not open none is kept, for that is no folder of ours.
fn read_and_kept(folder: Folder) -> (Folder, Found, io::Result<()>) {
    match record::open(&folder.directory) {
        Err(error) => (folder, Err(error.to_string()), Ok(())),
        Ok(record) => {
            let found = concluded(&record);
            let kept = folder.keep_summary(&made_by(), &found);
            (folder, found, kept)
        }
    }
}

/// A record that was edited by hand may contradict itself in ways that nobody foresaw, and must not take the others with it.
fn concluded(record: &Record) -> Found {
    let essentials = || Box::new(Essentials::of(record, &analysis::conclude(record)));
    panic::catch_unwind(panic::AssertUnwindSafe(essentials)).map_err(|_| {
        let path = record.directory.display();
        format!("{path}: its parts contradict each other, and nothing could be concluded")
    })
}

/// Does this to each on all processors, in any order. `seen` hears how many are done.
fn on_all_processors<T: Send, R: Send>(
    all: Vec<T>,
    work: &(impl Fn(T) -> R + Sync),
    seen: &mut dyn FnMut(usize),
) -> Vec<R> {
    let workers = thread::available_parallelism().map_or(1, usize::from).min(all.len());
    let (queue, (sender, receiver)) = (Mutex::new(VecDeque::from(all)), mpsc::channel());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    thread::scope(|scope| {
        for _ in 0..workers {
            let sender = sender.clone();
            scope.spawn(move || {
                while let Some(one) = next() {
                    let _ = sender.send(work(one));
                }
            });
        }
        drop(sender);
        let mut done = Vec::new();
        for one in receiver {
            done.push(one);
            seen(done.len());
        }
        done
    })
}

/// Shows how many records are read: nothing, unless it takes long enough to wonder.
fn waiting(of: usize) -> impl FnMut(usize) {
    let (begun, mut told, mut bar) = (Instant::now(), false, ProgressBar::hidden());
    move |done| {
        if !told && begun.elapsed() >= PATIENCE && done < of {
            told = true;
            if io::stderr().is_terminal() {
                let style = ProgressStyle::with_template("reading records {pos} of {len} {bar:30}");
                let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
                bar = ProgressBar::new(of as u64).with_style(style);
            } else {
                print::tell!("reading records: {done} of {of} so far");
            }
        }
        bar.set_position(done as u64);
        if done == of {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests;
