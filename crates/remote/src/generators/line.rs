//! One JSON value a line, and nothing else: reading with a limit, writing in one piece.

use std::io::{self, BufRead, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The longest line that is read, in bytes: a specification with all values it may have, a slice with a thousand requests.
const LINE_MAX: u64 = 1 << 30;

/// Reads the next line; `None` at the end. An empty line is none.
///
/// # Errors
/// If it cannot be read, is longer than a line may be, is cut off, or is not what was expected.
pub(crate) fn read<T: DeserializeOwned>(input: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    loop {
        line.clear();
        let length = input.by_ref().take(LINE_MAX).read_until(b'\n', &mut line)?;
        match line.last() {
            None => return Ok(None),
            Some(b'\n') if line.iter().all(u8::is_ascii_whitespace) => continue,
            Some(b'\n') => break,
            Some(_) if length as u64 == LINE_MAX => {
                return Err(unfit(format!("a line of over {LINE_MAX} bytes")));
            }
            Some(_) => {
                return Err(unfit(format!("cut off after {length} bytes of a line: {}", begin(&line))));
            }
        }
    }
    let value = serde_json::from_slice(&line);
    value.map(Some).map_err(|error| unfit(format!("{error}: {}", begin(&line))))
}

/// Writes a value as a line, at once.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn write(output: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value).map_err(io::Error::from)?;
    line.push(b'\n');
    output.write_all(&line)?;
    output.flush()
}

/// Enough of a line to know it by.
fn begin(line: &[u8]) -> String {
    const SHOWN: usize = 80;
    let text = String::from_utf8_lossy(&line[..line.len().min(SHOWN)]);
    let more = if line.len() > SHOWN { "…" } else { "" };
    format!("{:?}{more}", text.trim_end())
}

fn unfit(problem: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_or_told_as_what_they_are() {
        let mut input = &b"\n[1]\r\n  \n[2]\n"[..];
        assert_eq!(read::<Vec<u32>>(&mut input).unwrap(), Some(vec![1]));
        assert_eq!(read::<Vec<u32>>(&mut input).unwrap(), Some(vec![2]));
        assert_eq!(read::<Vec<u32>>(&mut input).unwrap(), None);
        let error = |mut text: &[u8]| read::<Vec<u32>>(&mut text).unwrap_err().to_string();
        assert!(error(b"[1").contains("cut off after 2 bytes of a line: \"[1\""), "{}", error(b"[1"));
        let motd = error(b"Welcome to Debian!\n");
        assert!(motd.contains("\"Welcome to Debian!\""), "{motd}");
    }
}
