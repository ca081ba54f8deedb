//! The field `mappings` of a source map: numbers of any size in base 64, each relative to the one before (ECMA-426, "VLQ").
//!
//! Written here: the crate `sourcemap` overflows on offsets that a file may have, and brings forty others, ICU among them, for
//! what takes a page. It must not know what the numbers point at.

/// More fields than this has no mapping: column, source, line, column there, name.
const FIELDS_MAX: usize = 5;
/// Numbers of this format have 32 bits: seven letters of five.
const LETTERS_MAX: u32 = 7;

/// A place in the code that ran, and where it was written. Lines and columns are from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token {
    pub line: u32,
    pub column: u32,
    /// Number of the source, and its line; none for code that nobody wrote.
    pub origin: Option<(u32, u32)>,
    /// Number of a name.
    pub name: Option<u32>,
}

/// Reads mappings and adds them, at most as many as are wanted in all.
///
/// # Errors
/// If they are none, in words.
pub(super) fn decode(text: &str, tokens: &mut Vec<Token>, wanted: usize) -> Result<(), String> {
    // Source, its line, its column, and the name go on over lines; the column begins anew on each.
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
                u32::try_from(running[field]).map_err(|_| format!("a mapping points at {}", running[field]))
            };
            let origin = if fields >= 4 { Some((at(1)?, at(2)?)) } else { None };
            let name = if fields == FIELDS_MAX { Some(at(4)?) } else { None };
            tokens.push(Token { line, column: at(0)?, origin, name });
        }
    }
    Ok(())
}

/// Adds the fields of a mapping to the running ones, and tells how many there were.
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

/// The number of a letter of base 64.
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

    #[test]
    fn numbers_go_on_over_lines_and_columns_do_not() {
        let mut tokens = Vec::new();
        // From the table of the base: A 0, C 1, D -1, E 2, gB 16.
        decode("AAAAA,gBACEC;;CADA,E", &mut tokens, 9).expect("mappings");
        let token = |line, column, origin, name| Token { line, column, origin, name };
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
    fn what_is_no_mapping_is_an_error() {
        for text in ["AA", "AAA", "g", "AAAAAA", "é", "D", "ggggggggC", "AADA"] {
            let mut tokens = Vec::new();
            assert!(decode(text, &mut tokens, 9).is_err(), "{text}: {tokens:?}");
        }
        assert!(decode("A,C,C", &mut Vec::new(), 2).is_err());
    }
}
