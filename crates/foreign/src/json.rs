//! Extracts JSON values from a text: whole files, lines, and values between prose. An unfinished value uses
//! limited memory.
//!
//! This module does not know which tool wrote them.

use serde_json::Value;

/// Longer values are abandoned. The longest that a tool writes are k6's, some hundred kB.
const JSON_BYTES_MAX: usize = 4 << 20;

/// Collects consecutive values.
#[derive(Debug, Default)]
pub struct Collector {
    text: String,
    depth: u32,
    in_string: bool,
    escaped: bool,
    first_line: u64,
}

impl Collector {
    /// Whether a value is incomplete.
    pub fn is_open(&self) -> bool {
        self.depth > 0
    }

    /// Adds a line and returns the values that end in it, each with its first line.
    pub fn line(&mut self, text: &str, number: u64) -> Vec<(Value, u64)> {
        let mut found = Vec::new();
        let mut rest = text;
        loop {
            if self.depth == 0 {
                // Values begin at the start of a line, possibly inside of an array.
                let start = rest.trim_start_matches([' ', '[', ',', ']', '\t']);
                if !is_object(start) {
                    return found;
                }
                self.text.clear();
                self.first_line = number;
                rest = start;
            }
            let end = self.scan(rest);
            let (taken, after) = rest.split_at(end.unwrap_or(rest.len()));
            self.text.push_str(taken);
            self.text.push('\n');
            if end.is_none() {
                if self.text.len() > JSON_BYTES_MAX {
                    self.drop_open();
                }
                return found;
            }
            if let Ok(value) = serde_json::from_str(&self.text) {
                found.push((value, self.first_line));
            }
            rest = after;
        }
    }

    /// Abandons the incomplete value. Returns its text and its first line.
    pub fn drop_open(&mut self) -> Option<(String, u64)> {
        let open = self.depth > 0;
        (self.depth, self.in_string, self.escaped) = (0, false, false);
        let text = std::mem::take(&mut self.text);
        open.then_some((text, self.first_line))
    }

    /// The end of the current value in this text, if it ends here.
    fn scan(&mut self, text: &str) -> Option<usize> {
        for (at, byte) in text.bytes().enumerate() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' => self.depth = self.depth.saturating_add(1),
                b'}' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Some(at + 1);
                    }
                }
                _ => {}
            }
        }
        // A JSON string does not continue in the next line.
        self.in_string = false;
        self.escaped = false;
        None
    }
}

/// Whether an object begins here, and not a block of a programming language.
fn is_object(text: &str) -> bool {
    text.strip_prefix('{').is_some_and(|rest| {
        let rest = rest.trim_start();
        rest.is_empty() || rest.starts_with(['"', '}'])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_in_lines_arrays_and_between_prose() {
        let mut collector = Collector::default();
        let lines = [
            r#"prose { "a": 1 }"#,
            r#"[{"a": 1},{"b": "}\"{"}"#,
            ",",
            "{",
            r#"  "c": {}"#,
            "}]",
            "{ int x;",
            r#"{"d": 1e999}"#,
        ];
        let mut found = Vec::new();
        for (index, line) in lines.iter().enumerate() {
            let values = collector.line(line, index as u64 + 1);
            found.extend(
                values
                    .into_iter()
                    .map(|(value, line)| (value.to_string(), line)),
            );
        }
        let expected = [
            ("{\"a\":1}", 2),
            ("{\"b\":\"}\\\"{\"}", 2),
            ("{\"c\":{}}", 4),
        ];
        assert_eq!(found, expected.map(|(text, line)| (text.to_owned(), line)));
        assert!(!collector.is_open());
    }
}
