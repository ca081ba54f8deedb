//! The launcher `cluster`: a Node.js program as several workers, by a file that is loaded before it.
//!
//! It only says what to execute; what the file does, it says itself.

use super::{Launch, Wanted};
use crate::message::Head;

/// Loaded into the primary process before the program.
const PRELOAD: &str = include_str!("cluster.cjs");
/// Its name in the scratch folder.
const PRELOAD_NAME: &str = ".cluster.cjs";

pub(super) fn launch(wanted: &Wanted<'_>) -> Launch {
    let preload = wanted.scratch.join(PRELOAD_NAME).display().to_string();
    let mut command = wanted.command.to_vec();
    // First of all flags, so that it has set the stage before another file is loaded.
    command.splice(1..1, ["--require".to_owned(), preload]);
    let workers = wanted.workers.unwrap_or(1);
    Launch {
        program: wanted.program.to_owned(),
        command,
        env: vec![("PROOFLOAD_WORKERS".to_owned(), workers.to_string())],
        files: vec![(PRELOAD_NAME.to_owned(), PRELOAD.to_owned())],
        // Its workers get SIGTERM from it, and a second one would mean "at once" to many programs.
        head: Some(Head::First),
        ..Launch::default()
    }
}
