//! Splits bytes into lines: of any length, in UTF-8 or UTF-16, with any line ends, in limited memory.
//!
//! This module does not interpret lines.

use crate::assembler::Assembler;
use crate::run::ToolRun;
use crate::transcript::{LINE_BYTES_MAX, Transcript};

/// Reads one file, fed piece by piece.
#[derive(Debug)]
pub struct Reader {
    assembler: Assembler,
    line: Vec<u8>,
    encoding: Option<Encoding>,
    /// The first byte of a UTF-16 pair, or of the byte order mark.
    held: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
enum Encoding {
    Utf8,
    /// As PowerShell writes it.
    Utf16(fn([u8; 2]) -> u16),
}

impl Reader {
    /// Creates a reader for a file with this name.
    pub fn new(file: &str) -> Self {
        let assembler = Assembler::new(file);
        Self {
            assembler,
            line: Vec::new(),
            encoding: None,
            held: Vec::new(),
        }
    }

    /// Adds the next piece of the file.
    pub fn feed(&mut self, piece: &[u8]) {
        self.assembler.about.bytes += piece.len() as u64;
        if self.encoding.is_some() {
            return self.text(piece);
        }
        // The byte order mark may arrive in pieces.
        self.held.extend_from_slice(piece);
        if self.held.len() >= 2 {
            self.begin();
        }
    }

    fn begin(&mut self) {
        let held = std::mem::take(&mut self.held);
        let (encoding, text) = match held.as_slice() {
            [0xFF, 0xFE, rest @ ..] => (Encoding::Utf16(u16::from_le_bytes), rest),
            [0xFE, 0xFF, rest @ ..] => (Encoding::Utf16(u16::from_be_bytes), rest),
            // Without the mark.
            [first, 0, ..] if first.is_ascii() && *first != 0 => {
                (Encoding::Utf16(u16::from_le_bytes), &held[..])
            }
            [0, second, ..] if second.is_ascii() && *second != 0 => {
                (Encoding::Utf16(u16::from_be_bytes), &held[..])
            }
            rest => (Encoding::Utf8, rest),
        };
        self.encoding = Some(encoding);
        self.text(text);
    }

    fn text(&mut self, piece: &[u8]) {
        match self.encoding {
            Some(Encoding::Utf16(unit)) => self.feed_utf16(piece, unit),
            Some(Encoding::Utf8) | None => self.feed_utf8(piece),
        }
    }

    fn feed_utf8(&mut self, piece: &[u8]) {
        let mut rest = piece;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.extend(&rest[..end]);
            self.end_line();
            rest = &rest[end + 1..];
        }
        self.extend(rest);
    }

    fn feed_utf16(&mut self, piece: &[u8], unit: fn([u8; 2]) -> u16) {
        for byte in piece {
            self.held.push(*byte);
            let [one, other] = self.held[..] else {
                continue;
            };
            self.held.clear();
            // Surrogates of rare characters are not needed here.
            let c =
                char::from_u32(unit([one, other]).into()).unwrap_or(char::REPLACEMENT_CHARACTER);
            if c == '\n' {
                self.end_line();
            } else {
                self.extend(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
    }

    fn extend(&mut self, bytes: &[u8]) {
        let room = LINE_BYTES_MAX.saturating_sub(self.line.len());
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn end_line(&mut self) {
        self.assembler.about.lines += 1;
        self.assembler.about.binary |= self.line.contains(&0);
        let line = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&line);
        // A single carriage return is an overwritten progress bar, or an old line end.
        let mut parts = text
            .split('\r')
            .filter(|part| !part.trim().is_empty())
            .peekable();
        if parts.peek().is_none() {
            self.assembler.line("");
        }
        parts.for_each(|part| self.assembler.line(part));
        self.line = line;
        self.line.clear();
        // One long line must not keep its memory until the end.
        self.line.shrink_to(1 << 16);
    }

    /// Returns the runs, and the information about the file.
    pub fn finish(mut self) -> (Transcript, Vec<ToolRun>) {
        if self.encoding.is_none() {
            self.begin();
        }
        if !self.line.is_empty() {
            self.end_line();
        }
        self.assembler.finish()
    }
}
