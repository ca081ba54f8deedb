//! Source maps: from a place in the code that ran to the place where it was written.
//!
//! It must not look for maps, and it makes no name up: where a map does not say a function's name for sure, it has the one it ran under.

use std::collections::HashMap;

use sourcemap::{DecodedMap, SourceMap};

/// The largest map that is read.
const BYTES_MAX: usize = 256 << 20;

/// A map that was read.
pub(super) struct Mapping {
    map: SourceMap,
    /// Of each line of the code that ran: source and line, if all of it is of one line.
    lines: HashMap<u32, Option<(u32, u32)>>,
}

/// Where code was written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Origin<'a> {
    /// The file as the map calls it.
    pub source: &'a str,
    /// The line, from 1.
    pub line: u32,
}

impl Mapping {
    /// Reads a map.
    ///
    /// # Errors
    /// If it is none, in words.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() > BYTES_MAX {
            return Err(format!("{} bytes, at most {BYTES_MAX} are read", bytes.len()));
        }
        let map = match sourcemap::decode_slice(bytes).map_err(|error| super::clean(&error.to_string()))? {
            DecodedMap::Regular(map) => map,
            DecodedMap::Index(index) => index.flatten().map_err(|error| super::clean(&error.to_string()))?,
            DecodedMap::Hermes(_) => return Err("of another engine".into()),
        };
        let mut lines: HashMap<u32, Option<(u32, u32)>> = HashMap::new();
        for token in map.tokens().filter(|token| token.has_source()) {
            let origin = (token.get_src_id(), token.get_src_line());
            let known = lines.entry(token.get_dst_line()).or_insert(Some(origin));
            if *known != Some(origin) {
                *known = None;
            }
        }
        Ok(Self { map, lines })
    }

    /// Where the code at a line from 1 and a column from 0 was written.
    pub fn origin(&self, line: u32, column: u32) -> Option<Origin<'_>> {
        let at = line.checked_sub(1)?;
        // The nearest place before it may be on another line: that says nothing of this one.
        let token = self.map.lookup_token(at, column).filter(|token| token.get_dst_line() == at)?;
        Some(Origin { source: token.get_source()?, line: token.get_src_line().saturating_add(1) })
    }

    /// Where a whole line was written, if all of it was written in one.
    pub fn only_origin(&self, line: u32) -> Option<Origin<'_>> {
        let (source, origin) = (*self.lines.get(&line.checked_sub(1)?)?)?;
        Some(Origin { source: self.map.get_source(source)?, line: origin.saturating_add(1) })
    }

    /// The name that a function was written under. V8 says where its parameters begin; the name stands before them, as in `e(`, `e=(`
    /// or `e=function(`, and only a token that begins exactly there is its own.
    pub fn function(&self, line: u32, column: u32, ran_as: &str) -> Option<&str> {
        const BETWEEN: [&str; 3] = ["", "=", "=function"];
        let at = line.checked_sub(1)?;
        let length = u32::try_from(ran_as.encode_utf16().count()).ok().filter(|length| *length > 0)?;
        BETWEEN.iter().find_map(|between| {
            let begin = column.checked_sub(length)?.checked_sub(between.len() as u32)?;
            let token = self.map.lookup_token(at, begin)?;
            let exact = token.get_dst_line() == at && token.get_dst_col() == begin;
            token.get_name().filter(|_| exact)
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// `function e(n){…}` and `const t=n=>…` in one line, written as `function handle(request)` in line 3 and
    /// `const total = (rows) =>` in line 7 of src/a.ts.
    pub(in crate::key) fn minified() -> Vec<u8> {
        let mut builder = sourcemap::SourceMapBuilder::new(Some("a.min.js"));
        for (column, line, name) in [
            (0, 2, None),
            (9, 2, Some("handle")),
            (11, 2, Some("request")),
            (20, 6, None),
            (26, 6, Some("total")),
        ] {
            builder.add(0, column, line, 0, Some("../src/a.ts"), name, false);
        }
        builder.add(1, 0, 9, 0, Some("../src/a.ts"), None, false);
        builder.add(1, 5, 9, 4, Some("../src/a.ts"), None, false);
        let mut bytes = Vec::new();
        builder.into_sourcemap().to_writer(&mut bytes).expect("memory");
        bytes
    }

    #[test]
    fn names_and_lines_as_they_were_written() {
        let mapping = Mapping::read(&minified()).expect("a map");
        assert_eq!(mapping.origin(1, 10), Some(Origin { source: "../src/a.ts", line: 3 }));
        assert_eq!(mapping.origin(1, 28), Some(Origin { source: "../src/a.ts", line: 7 }));
        assert_eq!(mapping.origin(3, 0), None, "a line without a map is not the last one before it");
        assert_eq!(mapping.function(1, 10, "e"), Some("handle"));
        assert_eq!(mapping.function(1, 28, "t"), Some("total"));
        assert_eq!(mapping.function(1, 20, "q"), None, "no name begins there");
        assert_eq!(mapping.only_origin(1), None, "written in two lines");
        assert_eq!(mapping.only_origin(2), Some(Origin { source: "../src/a.ts", line: 10 }));
    }

    #[test]
    fn what_is_no_map_is_an_error_and_never_more() {
        for bytes in
            [&b""[..], b"{}", b"<html>", br#"{"version":3,"sources":["a"],"names":[],"mappings":"!!!!"}"#]
        {
            let read = Mapping::read(bytes);
            assert!(read.is_err() || read.is_ok_and(|mapping| mapping.origin(1, 0).is_none()));
        }
    }
}
