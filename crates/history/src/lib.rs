//! All records below a folder, each with its essentials: read from an index beside them where they stand there, else concluded.
//!
//! The index is `history.sqlite` in that folder. It can always be made again, and is: where it is damaged, foreign, of another form, or
//! gone. Nothing stands in it alone, and where it cannot be written everything works without it, only slower. Must not print, or write
//! into a record.

mod index;
mod scan;
mod synchronise;

use std::path::PathBuf;
use std::time::Duration;

use analysis::Essentials;

pub use synchronise::{Progress, synchronise};

/// Name of the index in the folder of records.
pub const INDEX: &str = "history.sqlite";

/// All records below a folder.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// Each record, the oldest first.
    pub entries: Vec<Entry>,
    /// What is to be said of the index itself, in sentences; mostly nothing.
    pub notes: Vec<String>,
    /// What was done to be up to date.
    pub done: Done,
}

/// What bringing the index up to date took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Done {
    /// Records read and concluded: those that were new, or had changed.
    pub concluded: usize,
    /// Records that the index had and that are gone.
    pub vanished: usize,
    /// How long it took.
    pub took: Duration,
}

/// A record, or a folder that begins as one does.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Name of its folder.
    pub name: String,
    /// The folder.
    pub directory: PathBuf,
    /// When it was made, RFC 3339 in UTC; of one that cannot be read when its header was last changed.
    pub created: String,
    /// What is in it, or what is wrong with it.
    pub found: Result<Box<Essentials>, String>,
    /// Whether a run is writing it right now.
    pub running: bool,
}
