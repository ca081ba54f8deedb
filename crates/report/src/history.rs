//! Many records as people read them: a list, one in short, an experiment over time; and as JSON and CSV. Pure.
//!
//! What a record says stands in [`Essentials`]; nothing is concluded here.

use analysis::Essentials;

mod list;
mod short;
mod trend;

pub use list::List;
pub use short::Short;
pub use trend::Trended;

/// Version of the JSON forms; fields may be added within a version, never renamed or removed.
const VERSION: u32 = 1;

/// A record among others.
#[derive(Debug, Clone)]
pub struct Listed<'a> {
    /// Name of its folder.
    pub name: &'a str,
    /// When it was made, RFC 3339 in UTC.
    pub created: &'a str,
    /// What is in it, or why it cannot be read.
    pub found: Result<&'a Essentials, &'a str>,
    /// Whether a run is writing it right now.
    pub running: bool,
    /// The letters of its machine among those of all records; `None` where it cannot be read.
    pub machine: Option<String>,
}

/// `2026-11-21 14:50` of `2026-11-21T14:50:57Z`.
fn minute(created: &str) -> String {
    let shown: String = created.chars().take(16).collect();
    shown.replacen('T', " ", 1)
}
