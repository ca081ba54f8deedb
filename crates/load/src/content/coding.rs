//! The names of content codings and the list that a head makes of them. It must not decode anything.
//!
//! Source: RFC 9110, section 8.4.1 and the registry it founds; section 5.6.1 for lists.

use std::fmt;

use super::{CODINGS_LIMIT, ContentFlaw};

/// The most that is kept of the name of an unknown coding.
const NAME_CHARS: usize = 40;

/// A content coding that can be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Coding {
    /// RFC 1952. `x-gzip` is the same.
    Gzip,
    /// Deflate data in the zlib format (RFC 1950), or bare (RFC 1951) as many servers send it.
    Deflate,
    /// Brotli, RFC 7932.
    Brotli,
    /// Zstandard, RFC 8878.
    Zstd,
}

impl fmt::Display for Coding {
    /// The name as it stands in a head.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Coding::Gzip => "gzip",
            Coding::Deflate => "deflate",
            Coding::Brotli => "br",
            Coding::Zstd => "zstd",
        })
    }
}

/// The codings that Content-Encoding names, in the order in which they were applied; `identity` is none.
pub(super) fn read_list(values: &[&[u8]]) -> Result<Vec<Coding>, ContentFlaw> {
    let mut codings = Vec::new();
    let names =
        values.iter().flat_map(|value| value.split(|byte| *byte == b',')).map(|name| name.trim_ascii());
    // RFC 9110, section 5.6.1.2: empty elements of a list are ignored.
    for name in names.filter(|name| !name.is_empty()) {
        codings.extend(read_name(name)?);
    }
    if codings.len() > CODINGS_LIMIT {
        return Err(ContentFlaw::TooManyCodings { count: codings.len(), limit: CODINGS_LIMIT });
    }
    Ok(codings)
}

fn read_name(name: &[u8]) -> Result<Option<Coding>, ContentFlaw> {
    let coding = match name.to_ascii_lowercase().as_slice() {
        b"identity" => return Ok(None),
        b"gzip" | b"x-gzip" => Coding::Gzip,
        b"deflate" => Coding::Deflate,
        b"br" => Coding::Brotli,
        b"zstd" => Coding::Zstd,
        _ => {
            let name = String::from_utf8_lossy(name).chars().take(NAME_CHARS).collect();
            return Err(ContentFlaw::UnknownCoding(name));
        }
    };
    Ok(Some(coding))
}
