//! The last lines of what services said, from the logs in a record's folder.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Lines that are kept of all logs together.
pub const LINES_MAX: usize = 24;
/// Logs that are looked at: of those that were written last.
const LOGS_MAX: usize = 4;
/// Read of each, from its end.
const BYTES_MAX: u64 = 4096;

/// The last lines of the logs that were written last, each with the name of its log; none where there is nothing to read.
pub fn last_lines(logs: &Path) -> Vec<String> {
    let written = |path: &PathBuf| fs::metadata(path).and_then(|data| data.modified()).ok();
    let entries = fs::read_dir(logs).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut logs: Vec<(SystemTime, PathBuf)> =
        entries.filter_map(|path| Some((written(&path)?, path))).collect();
    logs.sort_by(|one, other| other.cmp(one));
    logs.truncate(LOGS_MAX);
    // The newest last, as in a log.
    let mut lines: Vec<String> = logs.iter().rev().flat_map(|(_, path)| of_one(path)).collect();
    lines.drain(..lines.len().saturating_sub(LINES_MAX));
    lines
}

fn of_one(path: &Path) -> Vec<String> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let text = tail(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LINES_MAX / LOGS_MAX)..];
    last.iter().map(|line| format!("{name}: {}", without_control(line))).collect()
}

/// Services may colour what they say, or move a cursor: on our terminal they do not.
fn without_control(line: &str) -> String {
    let line = anstream::adapter::strip_str(line).to_string();
    line.replace('\t', "  ").chars().filter(|letter| !letter.is_control()).collect()
}

fn tail(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(BYTES_MAX)))?;
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_told_with_their_log_and_without_what_moves_a_cursor() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(last_lines(&folder.path().join("nowhere")), Vec::<String>::new());
        let long: String = (0..2000).map(|number| format!("line {number}\n")).collect();
        fs::write(folder.path().join("block-01-a-api.log"), long + "\x1b[2J\x1b[31mred\x07\tend\n\n")
            .expect("a log");
        let lines = last_lines(folder.path());
        assert_eq!(lines.len(), LINES_MAX / LOGS_MAX);
        assert_eq!(lines.last().map(String::as_str), Some("block-01-a-api: red  end"));
        assert_eq!(lines[0], "block-01-a-api: line 1995");
    }
}
