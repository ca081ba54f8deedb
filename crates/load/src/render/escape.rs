//! How a value is written so that it stays within its place in a request. Pure.
//!
//! It must not refuse a value: each of these forms can hold every text.

use std::io::Write;

/// As part of a path or a query: each byte that is not unreserved (RFC 3986, section 2.3) becomes `%XX`.
///
/// `/`, `?`, `&` and `=` are escaped as well: a value is one segment of the path or one value of the query, whatever
/// is in it.
pub(super) fn percent(value: &str, out: &mut Vec<u8>) {
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(byte);
        } else {
            write!(out, "%{byte:02X}").expect("a vector takes all it is given");
        }
    }
}

/// As inside of a JSON string (RFC 8259, section 7), without the quotes.
pub(super) fn json(value: &str, out: &mut Vec<u8>) {
    for byte in value.bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..0x20 => write!(out, "\\u{byte:04x}").expect("a vector takes all it is given"),
            _ => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(escape: fn(&str, &mut Vec<u8>), value: &str) -> String {
        let mut out = Vec::new();
        escape(value, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn percent_leaves_exactly_the_unreserved_characters() {
        let all: String = (0..=0x7f_u8).map(char::from).collect();
        let kept: String =
            escaped(percent, &all).split('%').map(|part| part.get(2..).unwrap_or("")).collect();
        assert_eq!(kept, "-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~");
        assert_eq!(escaped(percent, "a b/ü\r\n%2F"), "a%20b%2F%C3%BC%0D%0A%252F");
    }

    #[test]
    fn json_is_what_a_json_parser_reads_back() {
        let all: String = (0..=0xff_u8).map(char::from).chain("\u{2028}😀".chars()).collect();
        let quoted = format!("\"{}\"", escaped(json, &all));
        assert_eq!(serde_json::from_str::<String>(&quoted).unwrap(), all);
        assert_eq!(escaped(json, "say \"hi\"\\\n\u{1}"), r#"say \"hi\"\\\n\u0001"#);
    }
}
