//! Latencies as an HdrHistogram interval log (`.hlog`, format version 1.3), which the tools around HdrHistogram read:
//! a line for each interval and tag, with the whole histogram in it. `docs/formats.md` tells the form to its readers.
//!
//! The format knows no censored samples. They get lines of their own, under a tag that says so, and a comment in the
//! head says what that means: one histogram of both would be percentiles that nobody measured.
//!
//! The writer of `hdrhistogram` is not used: it writes no legend, adds a head line of its own for the unit of the
//! maximum, and takes times as floats.
//!
//! A name is `endpoint=index;status=200;time=service`. Must not: read a clock or open a file (times and the writer are passed in), leave a sample out, or let a name or a
//! comment end its line or its field.

use super::{Latencies, encoding};
use hdrhistogram::Histogram;
use std::fmt;
use std::io::{Error, ErrorKind, Result, Write};
use std::time::Duration;

const VERSION: &str = "[Histogram log format version 1.3]";
const LEGEND: &str = r#""StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram""#;

/// Writes an interval log: the head when it begins, then a line or two for each interval.
///
/// Calls the writer once for each line, so pass one that has a buffer; what it returns as an error is returned here.
pub struct IntervalLog<W> {
    out: W,
    last_start: Duration,
}

impl<W: Write> IntervalLog<W> {
    /// Writes the head: `comments`, the units, the version, the times and the legend.
    ///
    /// `started` is the time since the Unix epoch from which the starts of all intervals count, kept to the
    /// millisecond. It is both the log's StartTime and its BaseTime: with only one of them readers guess by the size
    /// of the first number whether intervals are relative to it.
    ///
    /// # Errors
    /// What `out` returns.
    pub fn begin(out: W, started: Duration, comments: &[&str]) -> Result<Self> {
        let mut log = Self { out, last_start: Duration::ZERO };
        comments.iter().chain(&EXPLANATIONS).try_for_each(|text| log.comment(text))?;
        let epoch_s = thousandths(millis(started));
        let head = format!(
            "#{VERSION}\n\
             #[StartTime: {epoch_s} (seconds since epoch)]\n\
             #[BaseTime: {epoch_s} (seconds since epoch)]\n\
             {LEGEND}\n"
        );
        log.out.write_all(head.as_bytes())?;
        Ok(log)
    }

    /// Writes a line that readers skip. What is not printable ASCII is escaped as in a [`Tag`], line ends too.
    fn comment(&mut self, text: &str) -> Result<()> {
        // The blank keeps a text that looks like a head line, such as "[BaseTime: 0 ]", from being read as one.
        let line = format!("# {}\n", escape(text, |byte| matches!(byte, b' '..=b'~')));
        self.out.write_all(line.as_bytes())
    }

    /// Writes the latencies of one interval, which starts `start` after the log's own start: the answered samples
    /// under `tag`, also where there are none, and the censored ones, where there are any, under [`Tag::censored`].
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] when the interval starts before the one that was written last: readers stop at the
    /// first interval behind the range they look for, and would miss it. Else what the writer returns.
    pub fn interval(
        &mut self,
        tag: &Tag,
        start: Duration,
        length: Duration,
        latencies: &Latencies,
    ) -> Result<()> {
        if start < self.last_start {
            let order = "write intervals in the order of their starts";
            let last = self.last_start;
            let starts = format!("starts at {start:?}, before the one written last, at {last:?}");
            let message = format!("interval log: the interval of tag \"{tag}\" {starts}: {order}");
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        self.last_start = start;
        self.line(tag, start, length, &latencies.exact.full())?;
        if latencies.censored.is_empty() {
            return Ok(());
        }
        self.line(&tag.censored(), start, length, &latencies.censored.full())
    }

    /// Flushes the writer and gives it back.
    ///
    /// # Errors
    /// What the writer returns.
    pub fn finish(mut self) -> Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn line(&mut self, tag: &Tag, start: Duration, length: Duration, samples: &Histogram<u32>) -> Result<()> {
        // The length is that between two rounded times, so that intervals which touch still do in the log.
        let from_ms = millis(start);
        let length_ms = millis(start.saturating_add(length)) - from_ms;
        let line = format!(
            "{}{},{},{},{}\n",
            tag.field(),
            thousandths(from_ms),
            thousandths(length_ms),
            // The upper end of the largest value's cell, and milliseconds: what the other writers put here.
            thousandths(rounded(u128::from(samples.max()), 1_000)),
            encoding::to_text(samples),
        );
        self.out.write_all(line.as_bytes())
    }
}

/// What somebody who finds the file must know, and its readers cannot tell.
const EXPLANATIONS: [&str; 3] = [
    "Values in histograms are nanoseconds, Interval_Max is milliseconds, the other times are seconds.",
    "A tag that ends in \"censored\" holds requests that got no response, or one after more than 3600 s, each at its age: it took \
     at least that long.",
    "So percentiles of the other tags alone leave those out, and percentiles of both tags together are lower bounds.",
];

fn millis(time: Duration) -> u128 {
    rounded(time.as_nanos(), 1_000_000)
}

fn rounded(number: u128, unit: u128) -> u128 {
    (number + unit / 2) / unit
}

/// Three decimals, as all readers expect: not from a float, which has no whole nanoseconds after a few months.
fn thousandths(number: u128) -> String {
    format!("{}.{:03}", number / 1_000, number % 1_000)
}

/// Appended to the tag of the answered samples. A word without `=`, so that no pair can be taken for it.
const CENSORED: &str = "censored";

/// Pairs of a key and a value that tell which samples a line of an interval log holds. Without pairs there is no tag,
/// and the line is one that tools read by default.
///
/// Written as `key=value;key=value`, in the order given. Every byte of a key or value that is not printable ASCII, and
/// each of `,` `;` `=` `%` and the blank, is written as `%` and two hexadecimal digits (percent-encoding, RFC 3986
/// section 2.1, of UTF-8). So it reads back: split at `;`, then at `=`, then decode; and equal tags are equal names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tag(String);

impl Tag {
    /// No tag.
    pub fn new() -> Self {
        Self::default()
    }

    /// This tag and one more pair.
    #[must_use]
    pub fn with(&self, key: &str, value: &str) -> Self {
        self.and(&format!("{}={}", escape(key, is_plain), escape(value, is_plain)))
    }

    /// The tag under which the censored samples of this one are written: `;censored` is appended.
    #[must_use]
    pub fn censored(&self) -> Self {
        self.and(CENSORED)
    }

    fn and(&self, part: &str) -> Self {
        Self(if self.0.is_empty() { part.to_owned() } else { format!("{self};{part}") })
    }

    /// The first field of a line with its comma; nothing when there is no tag.
    fn field(&self) -> String {
        if self.0.is_empty() { String::new() } else { format!("Tag={self},") }
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b",;=%".contains(&byte)
}

/// Percent-encodes every byte that is not `plain`. Beyond ASCII that is needed although the format is text: the Java
/// reader takes the system's charset, and in Latin-1 the second byte of "Å" ends the line.
fn escape(text: &str, plain: fn(u8) -> bool) -> String {
    let escaped = |byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(escaped).collect()
}

#[cfg(test)]
mod tests;
