//! What was said last on stderr: by `ssh`, and by the program that it carries. It is part of the error when that ends unexpectedly.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Lines that are kept: a changed host key is told in about as many.
const LINES: usize = 20;
/// What of a line is kept.
const LINE_BYTES: u64 = 500;
/// Lines that are shown of an end for which we have no words of our own.
const SHOWN: usize = 3;
/// How long the last words may take to arrive once the process has ended.
const PATIENCE: Duration = Duration::from_millis(500);
/// One thread for each host, which hardly does anything.
const STACK_BYTES: usize = 64 << 10;

/// The last lines of a stream.
#[derive(Debug, Clone, Default)]
pub(super) struct Words(Arc<(Mutex<Said>, Condvar)>);

#[derive(Debug, Default)]
struct Said {
    lines: VecDeque<String>,
    ended: bool,
}

impl Words {
    /// Keeps what `stream` says, on a thread that ends with it.
    ///
    /// # Errors
    /// If there can be no thread.
    pub(super) fn of(stream: impl Read + Send + 'static) -> io::Result<Words> {
        let words = Words::default();
        let kept = words.clone();
        let named = std::thread::Builder::new().name("last words".into()).stack_size(STACK_BYTES);
        named.spawn(move || kept.keep(BufReader::new(stream)))?;
        Ok(words)
    }

    /// All lines that are kept, once the stream has ended, for which a moment is waited.
    pub(super) fn lines(&self) -> Vec<String> {
        let (said, told) = &*self.0;
        let said = said.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = told.wait_timeout_while(said, PATIENCE, |said| !said.ended);
        let (said, _) = waited.unwrap_or_else(PoisonError::into_inner);
        said.lines.iter().cloned().collect()
    }

    /// What is no longer of interest is forgotten.
    pub(super) fn forget(&self) {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).lines.clear();
    }

    fn keep(&self, mut stream: impl BufRead) {
        let (said, told) = &*self.0;
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = stream.by_ref().take(LINE_BYTES).read_until(b'\n', &mut line);
            let text = printable(&line);
            let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
            if matches!(read, Err(_) | Ok(0)) {
                said.ended = true;
                told.notify_all();
                return;
            }
            if !text.is_empty() {
                said.lines.push_back(text);
            }
            if said.lines.len() > LINES {
                said.lines.pop_front();
            }
        }
    }
}

/// The last of some lines, in one.
pub(super) fn last(lines: &[String]) -> String {
    lines[lines.len().saturating_sub(SHOWN)..].join("; ")
}

/// A line without what would move a terminal's cursor.
pub(super) fn printable(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let shown = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    shown.collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_stay_whatever_came_before() {
        let mut text = (0..50).map(|n| format!("line {n}\r\n")).collect::<String>();
        text.push_str("\n\x1b[31mend without a line's end");
        let words = Words::of(io::Cursor::new(text)).unwrap();
        let lines = words.lines();
        assert_eq!((lines.len(), lines[0].as_str()), (LINES, "line 31"));
        assert_eq!(last(&lines), "line 48; line 49; [31mend without a line's end");
        let endless = Words::of(io::Cursor::new("x".repeat(5_000))).unwrap();
        assert_eq!(endless.lines().concat().len(), 5_000.min(LINES * LINE_BYTES as usize));
        words.forget();
        assert_eq!(last(&words.lines()), "");
    }
}
