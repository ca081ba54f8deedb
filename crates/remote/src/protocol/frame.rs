//! One JSON value a line, and nothing else: read with a limit, written in one piece.
//!
//! Lines, because what comes first from another machine may be a greeting for people, and an error should show it.

use std::io::{self, BufRead, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The longest frame, in bytes: a load with a large table of values, or a slice with thousands of requests.
const FRAME_BYTES_MAX: u64 = 256 << 20;
/// How much of a frame that is not understood an error shows.
const SHOWN_CHARS: usize = 80;

/// Reads the next frame; `None` at the end. Memory grows with what comes, up to the limit. An empty line is no frame.
///
/// # Errors
/// If it cannot be read, is too long, cut off, or not what was expected: with its beginning.
pub(crate) fn read<T: DeserializeOwned>(input: &mut impl BufRead) -> io::Result<Option<T>> {
    read_up_to(input, FRAME_BYTES_MAX)
}

fn read_up_to<T: DeserializeOwned>(input: &mut impl BufRead, bytes_max: u64) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    loop {
        line.clear();
        let length = input.by_ref().take(bytes_max).read_until(b'\n', &mut line)?;
        match line.last() {
            None => return Ok(None),
            Some(b'\n') if line.iter().all(u8::is_ascii_whitespace) => {}
            Some(b'\n') => break,
            Some(_) if length as u64 == bytes_max => {
                return Err(unfit(&line, &format!("a message of over {bytes_max} bytes")));
            }
            Some(_) => return Err(unfit(&line, &format!("a message was cut off after {length} bytes"))),
        }
    }
    serde_json::from_slice(&line)
        .map(Some)
        .map_err(|error| unfit(&line, &format!("not understood ({error})")))
}

/// Writes a value as a frame, at once.
///
/// # Errors
/// If it is too long, or cannot be written.
pub(crate) fn write(output: &mut (impl Write + ?Sized), value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value).map_err(io::Error::from)?;
    line.push(b'\n');
    if line.len() as u64 > FRAME_BYTES_MAX {
        let problem = format!("a message of {} bytes is too long, at most {FRAME_BYTES_MAX}", line.len());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
    }
    output.write_all(&line)?;
    output.flush()
}

fn unfit(line: &[u8], problem: &str) -> io::Error {
    let begin = &line[..line.len().min(SHOWN_CHARS * 4)];
    let text = String::from_utf8_lossy(begin);
    let shown: String = text.trim_end().chars().take(SHOWN_CHARS).collect();
    let more = if begin.len() < line.len() || shown.len() < text.trim_end().len() { "…" } else { "" };
    io::Error::new(io::ErrorKind::InvalidData, format!("{problem}: {shown:?}{more}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_frame_is_whole_or_an_error_that_shows_its_beginning() {
        let mut input = &b"\n[1]\r\n  \n[2]\n"[..];
        assert_eq!(read::<Vec<u32>>(&mut input).unwrap(), Some(vec![1]));
        assert_eq!(read::<Vec<u32>>(&mut input).unwrap(), Some(vec![2]));
        assert_eq!(read::<Vec<u32>>(&mut input).unwrap(), None);
        let error = |mut text: &[u8]| read_up_to::<Vec<u32>>(&mut text, 40).unwrap_err().to_string();
        assert_eq!(error(b"[1"), "a message was cut off after 2 bytes: \"[1\"");
        let greeting = error(b"Welcome to Debian!\n");
        assert!(greeting.contains("\"Welcome to Debian!\""), "{greeting}");
        assert!(error(&[b'1'; 500]).starts_with("a message of over 40 bytes: \"1111"));
    }

    proptest! {
        #[test]
        fn values_come_back_and_nothing_that_comes_is_a_panic_or_taken_in_beyond_the_limit(
            values in proptest::collection::vec(".{0,50}", 0..8),
            junk in proptest::collection::vec(any::<u8>(), 0..400),
        ) {
            let mut frames = Vec::new();
            values.iter().for_each(|value| write(&mut frames, value).unwrap());
            let mut input = &frames[..];
            for value in &values {
                prop_assert_eq!(read::<String>(&mut input).unwrap(), Some(value.clone()));
            }
            prop_assert_eq!(read::<String>(&mut input).unwrap(), None);
            let mut input = &junk[..];
            while let Ok(Some(_)) = read_up_to::<serde_json::Value>(&mut input, 100) {}
            let first = junk.iter().position(|byte| *byte == b'\n').map_or(junk.len(), |end| end + 1);
            let mut input = &junk[..];
            if first > 100 && read_up_to::<serde_json::Value>(&mut input, 100).is_err() {
                prop_assert_eq!(junk.len() - input.len(), 100);
            }
        }
    }
}
