//! Files to which a service's output goes instead of its standard output, as PM2 has it: read when somebody asks, so that
//! nothing is done while requests are measured.
//!
//! It reads what is new in them, at most the beginning and the end of it. It must not change them.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::log::Log;

/// Most bytes read of each end of what is new. More than the log keeps of either.
const END_BYTES: u64 = 1 << 20;

/// The files, and how far each has been read.
pub(super) struct Followed {
    files: Vec<(PathBuf, u64)>,
}

impl Followed {
    pub fn new(files: &[PathBuf]) -> Self {
        Self { files: files.iter().map(|file| (file.clone(), 0)).collect() }
    }

    /// Moves what is new into the log, one file after the other.
    pub fn take(&mut self, log: &mut Log) {
        for (path, done) in &mut self.files {
            // One that is not there yet, or cannot be read, has nothing new.
            if let Ok(end) = take_from(path, *done, log) {
                *done = end;
            }
        }
    }
}

/// Reads a file from `done` on: its end.
fn take_from(path: &Path, done: u64, log: &mut Log) -> io::Result<u64> {
    let mut file = File::open(path)?;
    let end = file.metadata()?.len();
    // One that has become shorter was begun anew.
    let start = if end < done { 0 } else { done };
    let mut at = start;
    let mut read = |from: u64, bytes: u64, log: &mut Log| {
        file.seek(SeekFrom::Start(from))?;
        let mut buffer = Vec::new();
        file.by_ref().take(bytes).read_to_end(&mut buffer)?;
        log.push(&buffer);
        io::Result::Ok(from + buffer.len() as u64)
    };
    if end - start > 2 * END_BYTES {
        at = read(start, END_BYTES, log)?;
        let rest = end - END_BYTES;
        log.skip(rest - at);
        at = rest;
    }
    read(at, end - at, log)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_is_new_is_taken_once_and_of_a_flood_both_ends() {
        let folder = tempfile::tempdir().unwrap();
        let (kept, followed_file) = (folder.path().join("kept"), folder.path().join("app.log"));
        let mut log = Log::create(&kept).unwrap();
        let mut followed = Followed::new(&[folder.path().join("missing"), followed_file.clone()]);
        followed.take(&mut log);
        let mut file = File::create(&followed_file).unwrap();
        file.write_all(b"first\n").unwrap();
        followed.take(&mut log);
        followed.take(&mut log);
        assert_eq!(log.tail(), "first");
        file.write_all(&b"0123456789abcde\n".repeat(300_000)).unwrap();
        file.write_all(b"last\n").unwrap();
        followed.take(&mut log);
        assert!(log.tail().ends_with("abcde\nlast"), "{}", log.tail());
        let (total, dropped) = log.finish();
        assert_eq!(total, 6 + 16 * 300_000 + 5);
        let text = std::fs::read(&kept).unwrap();
        assert!(text.starts_with(b"first\n0123456789") && text.ends_with(b"last\n"));
        assert!(dropped > 3_000_000 && (text.len() as u64) < 1_200_000, "{dropped}");
    }
}
