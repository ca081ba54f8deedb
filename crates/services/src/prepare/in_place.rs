//! A step that changes the directory in which it runs: done once, which a mark tells that lies elsewhere.
//!
//! Whoever gave the directory keeps others from it, and makes it anew where a mark is missing: half a build is none.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::Instant;

use plan::Preparation;

use super::{PrepareError, Prepared, key, size};

/// Has `run` do it, unless the mark tells that it was done.
pub(super) fn build(
    step: &Preparation,
    mark: &Path,
    run: impl FnOnce() -> Result<(), PrepareError>,
) -> Result<Prepared, PrepareError> {
    let begin = Instant::now();
    let key = key::key(step)?;
    let made = !mark.is_file();
    if made {
        run()?;
        let unusable =
            |error: io::Error| PrepareError::Folder { path: mark.to_owned(), reason: error.to_string() };
        // What is written back later would be written while services are measured.
        let synced = File::open(&step.directory).and_then(|folder| Ok(rustix::fs::syncfs(&folder)?));
        synced.and_then(|()| fs::write(mark, step.command.join("\n"))).map_err(unusable)?;
    }
    let (path, took) = (step.directory.clone(), begin.elapsed());
    Ok(Prepared { bytes: size(&path), path, key, made, took })
}
