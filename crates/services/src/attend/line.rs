//! One JSON value a line, and nothing else: reading with a limit, writing in one piece.

use std::io::{self, BufRead, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The longest line that is read, in bytes: a log of a little over a megabyte, or a service with the largest templates.
const LINE_BYTES_MAX: u64 = 64 << 20;
/// Of a line that is not understood, in characters.
const SHOWN_CHARS: usize = 80;

/// Reads the next line; `None` at the end.
///
/// # Errors
/// If it cannot be read, is cut off or too long, or is not what was expected: with its beginning, by which people may know it.
pub(super) fn read<T: DeserializeOwned>(input: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    let length = input.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
    if length == 0 {
        return Ok(None);
    }
    let unfit = |what: String| {
        let shown: String = String::from_utf8_lossy(&line).trim_end().chars().take(SHOWN_CHARS).collect();
        io::Error::new(io::ErrorKind::InvalidData, format!("{what}: {shown:?}"))
    };
    if line.last() != Some(&b'\n') {
        return Err(unfit(format!("a line was cut off after {length} bytes")));
    }
    serde_json::from_slice(&line).map(Some).map_err(|error| unfit(format!("not understood ({error})")))
}

/// Writes a value as a line, at once.
///
/// # Errors
/// If it cannot be written.
pub(super) fn write(output: &mut (impl Write + ?Sized), value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value).map_err(io::Error::from)?;
    line.push(b'\n');
    output.write_all(&line)?;
    output.flush()
}
