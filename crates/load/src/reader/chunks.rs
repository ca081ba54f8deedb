//! The chunked transfer coding, RFC 9112 section 7.1: where chunks, trailers and the body end.
//!
//! ```text
//! 1a;ext=1 CR LF  <26 bytes> CR LF   0 CR LF   Trailer: x CR LF   CR LF
//! ```
//! It counts data and keeps none. Extensions and trailers are not looked at, but a line that cannot be one is a error:
//! where framing has gone wrong, what follows is a body or another response, and reads like that. It must not accept a
//! bare LF as the end of a line: proxies and servers disagree on those, and what is measured would depend on who is
//! asked.

use super::{HEAD_LIMIT_BYTES, ReadError};

/// The state between two bytes of a chunked body.
#[derive(Debug)]
pub(super) struct Chunks {
    at: At,
    /// The size read so far, then what is left of the chunk's data.
    left: u64,
    /// Bytes of the size line, or of all trailers; both are bounded.
    line_bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// Before the first digit of a size.
    SizeStart,
    SizeDigits,
    /// After blanks: those around extensions (section 7.1.1), or those that old servers fill up sizes with.
    SizeBlank,
    /// From the first semicolon on.
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    TrailerStart,
    TrailerName,
    TrailerValue,
    TrailerLf,
    /// Behind a trailer: the next one, its continuation (section 5.2), or the end.
    TrailerNext,
    EndLf,
    End,
}

/// What a call of [`Chunks::read`] made of its bytes.
pub(super) struct Taken {
    pub(super) used: usize,
    pub(super) data: u64,
    pub(super) done: bool,
}

impl Chunks {
    pub(super) fn new() -> Chunks {
        Chunks { at: At::SizeStart, left: 0, line_bytes: 0 }
    }

    /// Bytes of data before the next framing byte.
    pub(super) fn data_left(&self) -> u64 {
        if self.at == At::Data { self.left } else { 0 }
    }

    /// Counts `count` data bytes that were not shown to [`read`](Self::read).
    pub(super) fn skip(&mut self, count: u64) {
        debug_assert!(count <= self.data_left());
        self.left -= count;
        if self.left == 0 {
            self.at = At::DataCr;
        }
    }

    /// Takes bytes up to the end of the body, and shows `look` the data among them.
    pub(super) fn read(&mut self, bytes: &[u8], look: &mut impl FnMut(&[u8])) -> Result<Taken, ReadError> {
        let mut used = 0;
        let mut data = 0;
        while used < bytes.len() && self.at != At::End {
            if self.at == At::Data {
                let count = self.left.min((bytes.len() - used) as u64);
                self.skip(count);
                look(&bytes[used..used + count as usize]);
                data += count;
                used += count as usize;
            } else {
                self.step(bytes[used])?;
                used += 1;
            }
        }
        Ok(Taken { used, data, done: self.at == At::End })
    }

    /// One byte of framing.
    fn step(&mut self, byte: u8) -> Result<(), ReadError> {
        self.at = match (self.at, byte) {
            (At::SizeStart | At::SizeDigits, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => self.digit(byte)?,
            (At::SizeDigits | At::SizeBlank | At::Extension, b'\r') => At::SizeLf,
            (At::SizeDigits | At::SizeBlank, b' ' | b'\t') => self.within_line(At::SizeBlank)?,
            (At::SizeDigits | At::SizeBlank, b';') => self.within_line(At::Extension)?,
            (At::Extension, byte) if is_text(byte) => self.within_line(At::Extension)?,
            (At::SizeLf, b'\n') => self.size_known(),
            (At::DataCr, b'\r') => At::DataLf,
            (At::DataLf, b'\n') => At::SizeStart,
            (At::TrailerStart | At::TrailerNext, b'\r') => At::EndLf,
            (At::TrailerNext, b' ' | b'\t') => self.within_line(At::TrailerValue)?,
            (At::TrailerName, b':') => self.within_line(At::TrailerValue)?,
            (At::TrailerStart | At::TrailerNext | At::TrailerName, byte) if is_token(byte) => {
                self.within_line(At::TrailerName)?
            }
            (At::TrailerValue, b'\r') => At::TrailerLf,
            (At::TrailerValue, byte) if is_text(byte) => self.within_line(At::TrailerValue)?,
            (At::TrailerLf, b'\n') => At::TrailerNext,
            (At::EndLf, b'\n') => At::End,
            _ => return Err(ReadError::Malformed),
        };
        Ok(())
    }

    fn digit(&mut self, byte: u8) -> Result<At, ReadError> {
        if self.at == At::SizeStart {
            self.left = 0;
            self.line_bytes = 0;
        }
        let value = (byte as char).to_digit(16).ok_or(ReadError::Malformed)?;
        self.left = self.left.checked_mul(16).ok_or(ReadError::Malformed)? + u64::from(value);
        self.within_line(At::SizeDigits)
    }

    fn size_known(&mut self) -> At {
        self.line_bytes = 0;
        if self.left == 0 { At::TrailerStart } else { At::Data }
    }

    fn within_line(&mut self, next: At) -> Result<At, ReadError> {
        self.line_bytes += 1;
        if self.line_bytes > HEAD_LIMIT_BYTES { Err(ReadError::TooLarge) } else { Ok(next) }
    }
}

/// What a line may contain: anything but control characters (RFC 9110, section 5.5).
fn is_text(byte: u8) -> bool {
    byte == b'\t' || !byte.is_ascii_control()
}

/// What the name of a field may contain (RFC 9110, section 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
