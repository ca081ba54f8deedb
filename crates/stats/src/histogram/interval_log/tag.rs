//! The name of a series within an interval log: `endpoint=index;status=200;time=service`.
//!
//! Must not: let any name, however strange, end the field or the line, or read like another name.

use std::fmt;

/// Appended to the tag of the answered samples. A word without `=`, so that no pair can be taken for it.
const CENSORED: &str = "censored";

/// Pairs of a key and a value that tell which samples a line of an interval log holds. Without pairs there is no tag,
/// and the line is one that tools read by default.
///
/// Written as `key=value;key=value`, in the order given. Every byte of a key or value that is not printable ASCII, and
/// each of `,` `;` `=` `%` and the blank, is written as `%` and two hexadecimal digits (percent-encoding, RFC 3986
/// section 2.1, of UTF-8). So it reads back: split at `;`, then at `=`, then decode; and equal tags are equal names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tag {
    text: String,
}

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
        let separator = if self.text.is_empty() { "" } else { ";" };
        Self { text: format!("{}{separator}{part}", self.text) }
    }

    /// The first field of a line with its comma; nothing when there is no tag.
    pub(super) fn field(&self) -> String {
        if self.text.is_empty() { String::new() } else { format!("Tag={},", self.text) }
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b",;=%".contains(&byte)
}

/// Percent-encodes every byte that is not `plain`. Beyond ASCII that is needed although the format is text: the Java
/// reader takes the system's charset, and in Latin-1 the second byte of "Å" ends the line.
pub(super) fn escape(text: &str, plain: fn(u8) -> bool) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut escaped, byte| {
        if plain(byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
        escaped
    })
}
