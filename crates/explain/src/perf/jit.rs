//! `/tmp/perf-PID.map`: names of code that a program made at run time, if it writes them there (`node --perf-basic-prof`). Pure but
//! for reading the lines it is given; nothing of the file is kept but names that are asked for.

use std::collections::{BTreeSet, HashMap};
use std::io::{BufRead, Read};

use crate::perf::demangle::demangle;

/// Bytes of the file that are read: a long run of V8 writes some 100 MB.
const FILE_MAX: u64 = 1 << 30;
const LINE_MAX: usize = 4096;

/// Names of the addresses asked for. Where code was moved, a later line says what lies there now.
pub(crate) fn names(lines: impl BufRead, wanted: &BTreeSet<u64>) -> HashMap<u64, String> {
    let mut names = HashMap::new();
    let mut lines = lines.take(FILE_MAX);
    let mut line = Vec::new();
    while next_line(&mut lines, &mut line) {
        if let Some((start, end, name)) = entry(&line) {
            for address in wanted.range(start..end) {
                names.insert(*address, demangle(name));
            }
        }
    }
    names
}

/// Reads a line; of one that is too long, a piece.
fn next_line(lines: &mut impl BufRead, line: &mut Vec<u8>) -> bool {
    line.clear();
    lines.take(LINE_MAX as u64).read_until(b'\n', line).is_ok_and(|bytes| bytes > 0)
}

/// `START SIZE NAME`, numbers in hexadecimal; a name may have spaces.
fn entry(line: &[u8]) -> Option<(u64, u64, &[u8])> {
    let mut fields = line.trim_ascii().splitn(3, |byte| *byte == b' ');
    let mut number =
        || u64::from_str_radix(std::str::from_utf8(fields.next()?).ok()?.trim_start_matches("0x"), 16).ok();
    let start = number()?;
    let size = number()?;
    Some((start, start.checked_add(size)?, fields.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_on_an_address_counts() {
        let text = b"1000 20 JS:~first /app/a.js:1:2\n0x2000 10 other\nno line\n1010 10 JS:*second /app/b.js:3:4\n3000\n".as_slice();
        let names = names(text, &BTreeSet::from([0x1000, 0x1010, 0x100f, 0x1020, 0x2001, 0x3000]));
        assert_eq!(names[&0x1000], "JS:~first /app/a.js:1:2");
        assert_eq!(names[&0x100f], "JS:~first /app/a.js:1:2");
        assert_eq!(names[&0x1010], "JS:*second /app/b.js:3:4");
        assert_eq!(names[&0x2001], "other");
        assert_eq!(names.len(), 4);
    }

    #[test]
    fn a_range_that_wraps_around_is_no_range() {
        assert!(
            names(b"ffffffffffffffff 10 x\n10 0 y\n".as_slice(), &BTreeSet::from([0x10, 0x5])).is_empty()
        );
    }
}
