//! Integrity of lines of `events.jsonl`: each has a number, and a checksum over everything up to it.
//!
//! ```text
//! {"n":12,"sum":"0f3a…","slice":{…}}
//! ```
//! `sum` is the first half of SHA-256 over the previous line's sum and the event's JSON. Before the first
//! line it is the sum of `record.json`. It detects damage, not tampering, because a writer of the file can
//! also write its sums.

use std::io;

use sha2::{Digest, Sha256};

use crate::Event;

/// Number of bytes of SHA-256 that are used.
const SUM_BYTES: usize = 16;

/// Position in the events of a record.
#[derive(Debug, Clone)]
pub(crate) struct Seal {
    /// Number of the next line, from 1.
    number: u64,
    sum: String,
}

impl Seal {
    /// The position before the first line of the record with this header.
    pub(crate) fn of(header: &[u8]) -> Seal {
        Seal {
            number: 1,
            sum: sum("", header),
        }
    }

    /// Returns the next line, including the newline.
    pub(crate) fn line(&mut self, event: &Event) -> io::Result<Vec<u8>> {
        Ok(self.marked(&serde_json::to_vec(event)?))
    }

    /// Formats the next line from an event's JSON.
    pub(crate) fn marked(&mut self, event: &[u8]) -> Vec<u8> {
        self.sum = sum(&self.sum, event);
        let mut line = format!(r#"{{"n":{},"sum":"{}","#, self.number, self.sum).into_bytes();
        line.extend_from_slice(event.strip_prefix(b"{").unwrap_or(event));
        line.push(b'\n');
        self.number += 1;
        line
    }

    /// Parses the next line. Returns its event, and a description if earlier lines are missing or the line
    /// was changed.
    ///
    /// # Errors
    /// If it contains no event, with the reason.
    pub(crate) fn open(&mut self, line: &[u8]) -> Result<(Event, Option<String>), String> {
        let (number, written, rest) = marks(line).ok_or("it has no number and checksum")?;
        // The event as written: the part after the number and the checksum.
        let event = [b"{", rest.trim_ascii_end()].concat();
        let (expected, is_whole) = (self.number, sum(&self.sum, &event) == written);
        // The next line is checked against this one, even if this one is damaged.
        (self.number, self.sum) = (number.saturating_add(1), written.to_owned());
        let event = serde_json::from_slice(&event).map_err(|error| error.to_string())?;
        let broken = if number != expected {
            Some(format!(
                "it is line {number} where line {expected} was to come"
            ))
        } else {
            (!is_whole).then(|| "it is not what was written".to_owned())
        };
        Ok((event, broken))
    }
}

/// Returns a line's number, its checksum, and the rest.
fn marks(line: &[u8]) -> Option<(u64, &str, &[u8])> {
    let line = line.strip_prefix(br#"{"n":"#)?;
    let (number, rest) = line.split_at(line.iter().position(|byte| *byte == b',')?);
    let rest = rest.strip_prefix(br#","sum":""#)?;
    let (sum, rest) = rest.split_at_checked(SUM_BYTES * 2)?;
    let number = str::from_utf8(number).ok()?.parse().ok()?;
    Some((
        number,
        str::from_utf8(sum).ok()?,
        rest.strip_prefix(br#"","#)?,
    ))
}

fn sum(before: &str, bytes: &[u8]) -> String {
    let digest = Sha256::new()
        .chain_update(before)
        .chain_update(bytes)
        .finalize();
    digest[..SUM_BYTES]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
