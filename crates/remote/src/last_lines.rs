//! The last lines that a process wrote to stderr. They are part of the error when it ends unexpectedly.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Lines that are kept: OpenSSH needs about as many for a changed host key.
const LINES: usize = 20;
/// How much of a line is kept.
const LINE_BYTES: u64 = 500;
/// Lines that an error shows.
const SHOWN: usize = 3;
/// How long the last lines may take to arrive once the process has ended.
const PATIENCE: Duration = Duration::from_millis(500);
/// One thread for each host, which hardly does anything.
const STACK_BYTES: usize = 64 << 10;

/// The last lines of a stream.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastLines(Arc<(Mutex<Kept>, Condvar)>);

#[derive(Debug, Default)]
struct Kept {
    lines: VecDeque<String>,
    ended: bool,
}

impl LastLines {
    /// Keeps what comes from `stream`, on a thread that ends with it.
    ///
    /// # Errors
    /// If there can be no thread.
    pub(crate) fn of(stream: impl Read + Send + 'static) -> io::Result<LastLines> {
        let all = LastLines::default();
        let kept = all.clone();
        let named = std::thread::Builder::new().name("last lines".into()).stack_size(STACK_BYTES);
        named.spawn(move || kept.keep(BufReader::new(stream)))?;
        Ok(all)
    }

    /// All lines that are kept, once the stream has ended, for which a moment is waited.
    pub(crate) fn lines(&self) -> Vec<String> {
        let (kept, ended) = &*self.0;
        let kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = ended.wait_timeout_while(kept, PATIENCE, |kept| !kept.ended);
        let (kept, _) = waited.unwrap_or_else(PoisonError::into_inner);
        kept.lines.iter().cloned().collect()
    }

    /// Forgets all lines so far.
    pub(crate) fn forget(&self) {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).lines.clear();
    }

    fn keep(&self, mut stream: impl BufRead) {
        let (kept, ended) = &*self.0;
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = stream.by_ref().take(LINE_BYTES).read_until(b'\n', &mut line);
            let text = printable(&line);
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            if matches!(read, Err(_) | Ok(0)) {
                kept.ended = true;
                ended.notify_all();
                return;
            }
            if !text.is_empty() {
                kept.lines.push_back(text);
            }
            if kept.lines.len() > LINES {
                kept.lines.pop_front();
            }
        }
    }
}

/// The last of some lines, in one.
pub(crate) fn last(lines: &[String]) -> String {
    lines[lines.len().saturating_sub(SHOWN)..].join("; ")
}

/// A line without what would move a terminal's cursor.
pub(crate) fn printable(line: &[u8]) -> String {
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
        let words = LastLines::of(io::Cursor::new(text)).unwrap();
        let lines = words.lines();
        assert_eq!((lines.len(), lines[0].as_str()), (LINES, "line 31"));
        assert_eq!(last(&lines), "line 48; line 49; [31mend without a line's end");
        let endless = LastLines::of(io::Cursor::new("x".repeat(5_000))).unwrap();
        assert_eq!(endless.lines().concat().len(), 5_000.min(LINES * LINE_BYTES as usize));
        words.forget();
        assert_eq!(last(&words.lines()), "");
    }
}
