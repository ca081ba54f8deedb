//! A service's output on disk: its beginning and its end, so that a service that floods it fills no disk.
//!
//! ```text
//! file:  first 1 MiB | ... n bytes not kept ... | last 64 KiB
//! ```
//! The beginning is written as it arrives; the end is kept in memory and written at the end. What comes between is
//! counted. It knows nothing of pipes and processes.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Bytes kept of the beginning.
pub(super) const HEAD_BYTES: u64 = 1 << 20;
/// Bytes kept of the end.
pub(super) const RING_BYTES: usize = 64 << 10;
/// Lines and characters a line of [`Log::tail`].
const TAIL_LINES: usize = 20;
const TAIL_LINE_CHARS: usize = 300;

/// The output so far.
pub(super) struct Log {
    file: File,
    head_bytes: u64,
    ring: VecDeque<u8>,
    total_bytes: u64,
}

impl Log {
    /// Begins a new file, in place of an old one.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = File::create(path)?;
        Ok(Self { file, head_bytes: 0, ring: VecDeque::with_capacity(RING_BYTES), total_bytes: 0 })
    }

    /// Takes what a service wrote. A full disk is no reason to stop it: what cannot be written counts as dropped.
    pub fn push(&mut self, bytes: &[u8]) {
        let space = HEAD_BYTES.saturating_sub(self.total_bytes).min(bytes.len() as u64);
        let head = &bytes[..usize::try_from(space).unwrap_or(bytes.len())];
        // Once a write has failed the file has a hole in its story, and nothing more is added to it.
        if self.head_bytes == self.total_bytes && self.file.write_all(head).is_ok() {
            self.head_bytes += head.len() as u64;
        }
        self.total_bytes += bytes.len() as u64;
        let kept = &bytes[bytes.len().saturating_sub(RING_BYTES)..];
        let excess = (self.ring.len() + kept.len()).saturating_sub(RING_BYTES);
        self.ring.drain(..excess);
        self.ring.extend(kept);
    }

    /// Counts output that nobody has read.
    pub fn skip(&mut self, bytes: u64) {
        self.total_bytes += bytes;
        self.ring.clear();
    }

    /// Completes the file: bytes in all, and bytes of them that are not in it.
    pub fn finish(mut self) -> (u64, u64) {
        let beyond = self.total_bytes - self.head_bytes;
        let kept = beyond.min(self.ring.len() as u64);
        if beyond == 0 {
            return (self.total_bytes, 0);
        }
        let start = self.ring.len() - usize::try_from(kept).unwrap_or(0);
        let end: Vec<u8> = self.ring.range(start..).copied().collect();
        let note = format!("\n[... {} bytes not kept ...]\n", beyond - kept);
        let note = if beyond == kept { "" } else { &note };
        let written = self.file.write_all(note.as_bytes()).and_then(|()| self.file.write_all(&end));
        (self.total_bytes, if written.is_ok() { beyond - kept } else { beyond })
    }

    /// The last lines, as text that does nothing to a terminal.
    pub fn tail(&self) -> String {
        let bytes: Vec<u8> = self.ring.iter().copied().collect();
        let text = plain(&String::from_utf8_lossy(&bytes));
        let lines: Vec<&str> = text.trim_end().lines().collect();
        let shorten = |line: &&str| match line.char_indices().nth(TAIL_LINE_CHARS) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => (*line).to_owned(),
        };
        let last: Vec<String> = lines[lines.len().saturating_sub(TAIL_LINES)..].iter().map(shorten).collect();
        last.join("\n")
    }
}

/// Without colours and other control sequences.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\u{1b}' if chars.next_if_eq(&'[').is_some() => {
                // ECMA-48: a control sequence ends with a byte from `@` to `~`.
                while chars.next().is_some_and(|next| !('@'..='~').contains(&next)) {}
            }
            '\n' | '\t' => plain.push(char),
            other if other.is_control() => {}
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log_of(chunks: &[&[u8]]) -> (Log, std::path::PathBuf) {
        let name = format!("proofload-log-{}-{:x}", std::process::id(), rand::random::<u64>());
        let path = std::env::temp_dir().join(name);
        let mut log = Log::create(&path).unwrap();
        chunks.iter().for_each(|chunk| log.push(chunk));
        (log, path)
    }

    fn finished(chunks: &[&[u8]]) -> (u64, u64, Vec<u8>) {
        let (log, path) = log_of(chunks);
        let (total, dropped) = log.finish();
        let kept = std::fs::read(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        (total, dropped, kept)
    }

    #[test]
    fn a_flood_keeps_its_beginning_and_its_end() {
        let line = b"0123456789abcde\n";
        let chunk = line.repeat(5000);
        let chunks: Vec<&[u8]> = std::iter::repeat_n(chunk.as_slice(), 40).collect();
        let (total, dropped, kept) = finished(&chunks);
        assert_eq!(total, 40 * 80_000);
        assert_eq!(dropped, total - HEAD_BYTES - RING_BYTES as u64);
        let note = format!("\n[... {dropped} bytes not kept ...]\n");
        assert_eq!(kept.len() as u64, total - dropped + note.len() as u64);
        assert!(kept.starts_with(line) && kept.ends_with(line));
    }

    #[test]
    fn what_fits_is_kept_byte_for_byte() {
        let chunk = vec![7; 700 << 10];
        let (total, dropped, kept) = finished(&[&chunk, &chunk[..(324 << 10) + 5000]]);
        assert_eq!((total, dropped, kept.len()), ((1 << 20) + 5000, 0, (1 << 20) + 5000));
    }

    #[test]
    fn a_tail_is_short_and_harmless() {
        let mut output: Vec<u8> = (0..100).flat_map(|n| format!("line {n}\n").into_bytes()).collect();
        output.extend(b"\x1b[31mError:\x1b[0m \x07\xff bad\r\n");
        let (log, path) = log_of(&[&output]);
        std::fs::remove_file(path).unwrap();
        let tail = log.tail();
        assert_eq!(tail.lines().count(), TAIL_LINES);
        assert!(tail.starts_with("line 81\n") && tail.ends_with("\nError: \u{fffd} bad"), "{tail:?}");
    }
}
