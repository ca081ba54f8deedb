//! Source maps: from a place in the executed code to its place in the source.
//!
//! The field `mappings` contains numbers of any size in base 64, each relative to the previous one (ECMA-426,
//! "VLQ"). It is decoded here, because the crate `sourcemap` overflows on valid offsets and has forty
//! dependencies, including ICU.
//!
//! This module does not search for maps and invents no names: if a map does not give a function's name for
//! certain, it keeps the name it ran under.

use serde::Deserialize;

/// Maximum mappings of a file. A bundle of 10 MB has about one million.
const TOKENS_MAX: usize = 8_000_000;

#[derive(Debug, Default)]
pub(super) struct SourceMapping {
    /// In order of place.
    tokens: Vec<Token>,
    sources: Vec<Option<String>>,
    names: Vec<Option<String>>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct SourceOrigin<'a> {
    /// The file's name in the map.
    pub source: &'a str,
    /// The line, from 1.
    pub line: u32,
}

/// A map as written, for one file or for several concatenated ones.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SourceMapFile {
    #[serde(default)]
    sources: Vec<Option<String>>,
    source_root: Option<String>,
    #[serde(default)]
    names: Vec<Option<String>>,
    mappings: Option<String>,
    sections: Option<Vec<MapSection>>,
}

#[derive(Deserialize)]
struct MapSection {
    offset: Offset,
    map: Box<SourceMapFile>,
}

#[derive(Deserialize)]
struct Offset {
    line: u32,
    column: u32,
}

impl SourceMapping {
    /// Reads a map.
    ///
    /// # Errors
    /// Describes the problem if it is invalid.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        // Some servers prepend a line that browsers do not execute.
        let guarded = bytes.starts_with(b")]}");
        let begin = if guarded {
            bytes.iter().position(|byte| *byte == b'\n').unwrap_or(0)
        } else {
            0
        };
        let file: SourceMapFile = serde_json::from_slice(&bytes[begin..])
            .map_err(|error| crate::label::clean(&error.to_string()))?;
        let mut mapping = Self::default();
        match file.sections {
            Some(sections) => {
                for MapSection { offset, map } in sections {
                    mapping.add(*map, &offset)?;
                }
            }
            None => mapping.add(file, &Offset { line: 0, column: 0 })?,
        }
        mapping
            .tokens
            .sort_by_key(|token| (token.line, token.column));
        Ok(mapping)
    }

    fn add(&mut self, file: SourceMapFile, offset: &Offset) -> Result<(), String> {
        let mappings = file.mappings.ok_or("no mappings")?;
        let root = file.source_root.filter(|root| !root.is_empty());
        let rooted = |source: String| match &root {
            Some(root) if !source.starts_with('/') && !source.contains("://") => {
                format!("{}/{source}", root.trim_end_matches('/'))
            }
            _ => source,
        };
        let count = |list: &Vec<Option<String>>| u32::try_from(list.len()).unwrap_or(u32::MAX);
        let (sources, names, first) = (count(&self.sources), count(&self.names), self.tokens.len());
        self.sources
            .extend(file.sources.into_iter().map(|source| source.map(rooted)));
        self.names.extend(file.names);
        decode(&mappings, &mut self.tokens, TOKENS_MAX)?;
        for token in &mut self.tokens[first..] {
            if token.line == 0 {
                token.column = token.column.saturating_add(offset.column);
            }
            token.line = token.line.saturating_add(offset.line);
            token.origin = token
                .origin
                .map(|(source, line)| (source.saturating_add(sources), line));
            token.name = token.name.map(|name| name.saturating_add(names));
        }
        Ok(())
    }

    /// The nearest mapping at or before a place on the same line, both from 0.
    fn token(&self, line: u32, column: u32) -> Option<&Token> {
        let after = self
            .tokens
            .partition_point(|token| (token.line, token.column) <= (line, column));
        // If the nearest one is on another line, it does not apply to this line.
        self.tokens[..after]
            .last()
            .filter(|token| token.line == line)
    }

    fn origin_of(&self, (source, line): (u32, u32)) -> Option<SourceOrigin<'_>> {
        let source = self.sources.get(source as usize)?.as_deref()?;
        Some(SourceOrigin {
            source,
            line: line.saturating_add(1),
        })
    }

    /// The source of the code at a line from 1 and a column from 0.
    pub fn origin(&self, line: u32, column: u32) -> Option<SourceOrigin<'_>> {
        self.origin_of(self.token(line.checked_sub(1)?, column)?.origin?)
    }

    /// The source line of a whole line, if all of it comes from one.
    pub fn only_origin(&self, line: u32) -> Option<SourceOrigin<'_>> {
        let at = line.checked_sub(1)?;
        let of_line = &self.tokens[self.tokens.partition_point(|token| token.line < at)..];
        let mut origins = of_line
            .iter()
            .take_while(|token| token.line == at)
            .filter_map(|token| token.origin);
        let first = origins.next()?;
        if origins.all(|origin| origin == first) {
            self.origin_of(first)
        } else {
            None
        }
    }

    /// The original name of a function. V8 reports where its parameters begin, and the name precedes them, as
    /// in `e(`, `e=(` or `e=function(`. Only a token that begins exactly there is its own.
    pub fn function(&self, line: u32, column: u32, ran_as: &str) -> Option<&str> {
        const BETWEEN: [u32; 3] = ["".len() as u32, "=".len() as u32, "=function".len() as u32];
        let at = line.checked_sub(1)?;
        let length = u32::try_from(ran_as.encode_utf16().count())
            .ok()
            .filter(|length| *length > 0)?;
        BETWEEN.iter().find_map(|between| {
            let begin = column.checked_sub(length)?.checked_sub(*between)?;
            let token = self
                .token(at, begin)
                .filter(|token| token.column == begin)?;
            self.names.get(token.name? as usize)?.as_deref()
        })
    }
}

/// Maximum number of fields of a mapping: column, source, line, column there, name.
const FIELDS_MAX: usize = 5;
/// Numbers of this format have 32 bits: seven letters of five.
const LETTERS_MAX: u32 = 7;

/// A place in the executed code, and its source. Lines and columns are from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Token {
    line: u32,
    column: u32,
    /// Index of the source, and its line. None for generated code.
    origin: Option<(u32, u32)>,
    /// Index of a name.
    name: Option<u32>,
}

/// Decodes mappings and appends them, up to a total of `wanted`.
///
/// # Errors
/// Describes the problem if they are invalid.
fn decode(text: &str, tokens: &mut Vec<Token>, wanted: usize) -> Result<(), String> {
    // Source, its line, its column, and the name are relative across lines. The column restarts on each line.
    let mut running = [0i64; FIELDS_MAX];
    for (line, mappings) in text.split(';').enumerate() {
        let line = u32::try_from(line).map_err(|_| "too many lines".to_owned())?;
        running[0] = 0;
        for mapping in mappings.split(',').filter(|mapping| !mapping.is_empty()) {
            let fields = add(mapping, &mut running)?;
            if tokens.len() == wanted {
                return Err(format!("too many mappings, at most {wanted} are read"));
            }
            let at = |field: usize| {
                u32::try_from(running[field])
                    .map_err(|_| format!("a mapping points at {}", running[field]))
            };
            let origin = if fields >= 4 {
                Some((at(1)?, at(2)?))
            } else {
                None
            };
            let name = if fields == FIELDS_MAX {
                Some(at(4)?)
            } else {
                None
            };
            tokens.push(Token {
                line,
                column: at(0)?,
                origin,
                name,
            });
        }
    }
    Ok(())
}

/// Adds the fields of a mapping to the running ones, and returns their number.
fn add(mapping: &str, running: &mut [i64; FIELDS_MAX]) -> Result<usize, String> {
    let (mut field, mut value, mut letters) = (0, 0i64, 0u32);
    for letter in mapping.bytes() {
        let digit = digit(letter).ok_or("a mapping has what is no base 64")?;
        if field == FIELDS_MAX || letters == LETTERS_MAX {
            return Err("a mapping is too long".into());
        }
        value |= (digit & 31) << (5 * letters);
        letters += 1;
        if digit & 32 == 0 {
            let sign = if value & 1 == 1 { -1 } else { 1 };
            running[field] = running[field].saturating_add(sign * (value >> 1));
            (field, value, letters) = (field + 1, 0, 0);
        }
    }
    match (letters, field) {
        (0, 1 | 4 | 5) => Ok(field),
        _ => Err("a mapping is cut off".into()),
    }
}

/// The value of a base 64 letter.
fn digit(letter: u8) -> Option<i64> {
    let digit = match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(i64::from(digit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::naming::tests::minified;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn names_and_lines_as_they_were_written() {
        let mapping = SourceMapping::read(&minified()).expect("a map");
        assert_eq!(
            mapping.origin(1, 10),
            Some(SourceOrigin {
                source: "../src/a.ts",
                line: 3
            })
        );
        assert_eq!(
            mapping.origin(1, 28),
            Some(SourceOrigin {
                source: "../src/a.ts",
                line: 7
            })
        );
        assert_eq!(
            mapping.origin(3, 0),
            None,
            "a line without a map is not the last one before it"
        );
        assert_eq!(mapping.function(1, 10, "e"), Some("handle"));
        assert_eq!(mapping.function(1, 28, "t"), Some("total"));
        assert_eq!(mapping.function(1, 20, "q"), None, "no name begins there");
        assert_eq!(mapping.only_origin(1), None, "written in two lines");
        assert_eq!(
            mapping.only_origin(2),
            Some(SourceOrigin {
                source: "../src/a.ts",
                line: 10
            })
        );
    }

    #[test]
    fn bundles_of_bundles_and_roots_are_understood() {
        let map = |source: &str| json!({"sources": [source], "names": [], "mappings": "AAAA;AACA", "sourceRoot": "/lib/"});
        let section = |line: u32, source: &str| json!({"offset": {"line": line, "column": 0}, "map": map(source)});
        let text = format!(
            ")]}}'\n{}",
            json!({"version": 3, "sections": [section(0, "a.ts"), section(4, "/b.ts")]})
        );
        let mapping = SourceMapping::read(text.as_bytes()).expect("a map");
        assert_eq!(
            mapping.origin(2, 5),
            Some(SourceOrigin {
                source: "/lib/a.ts",
                line: 2
            })
        );
        assert_eq!(
            mapping.origin(5, 0),
            Some(SourceOrigin {
                source: "/b.ts",
                line: 1
            })
        );
        assert_eq!(mapping.origin(4, 0), None);
    }

    #[test]
    fn numbers_go_on_over_lines_and_columns_do_not() {
        let mut tokens = Vec::new();
        // From the base 64 table: A 0, C 1, D -1, E 2, gB 16.
        decode("AAAAA,gBACEC;;CADA,E", &mut tokens, 9).expect("mappings");
        let token = |line, column, origin, name| Token {
            line,
            column,
            origin,
            name,
        };
        assert_eq!(
            tokens,
            [
                token(0, 0, Some((0, 0)), Some(0)),
                token(0, 16, Some((0, 1)), Some(1)),
                token(2, 1, Some((0, 0)), None),
                token(2, 3, None, None),
            ]
        );
    }

    #[test]
    fn what_is_no_map_or_no_mapping_is_an_error() {
        for bytes in [
            &b""[..],
            b"{}",
            b"<html>",
            br#"{"version":3,"sources":["a"],"names":[],"mappings":"!!!!"}"#,
        ] {
            assert!(SourceMapping::read(bytes).is_err());
        }
        for text in ["AA", "AAA", "g", "AAAAAA", "é", "D", "ggggggggC", "AADA"] {
            assert!(decode(text, &mut Vec::new(), 9).is_err(), "{text}");
        }
        assert!(decode("A,C,C", &mut Vec::new(), 2).is_err());
    }

    proptest! {
        #[test]
        fn no_map_breaks_anything(
            mappings in "[A-Za-z0-9+/,;]{0,60}|([ACDE]{4,5}[,;]){0,20}",
            sources in prop::collection::vec(".{0,3}", 0..3),
            indexed in any::<bool>(),
            line in 0u32..5,
            column in 0u32..40,
        ) {
            let map = json!({"version": 3, "sources": sources, "names": ["a"], "mappings": mappings});
            let offset = json!({"line": u32::MAX - line, "column": u32::MAX});
            let text = if indexed { json!({"version": 3, "sections": [{"offset": offset, "map": map}]}) } else { map };
            if let Ok(mapping) = SourceMapping::read(text.to_string().as_bytes()) {
                let _ = (mapping.origin(line, column), mapping.only_origin(line), mapping.function(line, column, "ab"));
                let _ = mapping.origin(u32::MAX, u32::MAX);
            }
        }
    }
}
