//! The content of a response once its content codings are undone: how long it is and what its SHA-256 is.
//!
//! Sans I/O: it is fed the content as it arrives, after removal of the chunked coding. Without a coding it keeps nothing; coded content is
//! kept, up to [`CODED_LIMIT_BYTES`], and decoded when it is whole, on the caller's thread: it is meant for few responses in many. A
//! decoder that would give more than that is stopped, so that a small response cannot cost more time or memory. It must not panic whatever
//! a server sends, and must not judge: whether the digest is the expected one is for its caller to say.
//!
//! Content of no bytes at all is taken as it stands, under any coding: servers send `Content-Encoding: gzip` with an
//! empty body, and browsers take it. Everything else must be whole and must be nothing but the coded data.
//!
//! Source: RFC 9110, sections 8.4 and 8.4.1 (Content-Encoding).

mod decode;

use std::fmt;

use sha2::{Digest as _, Sha256};

pub use model::Digest;

/// The most that coded content may be, and the most that one coding may decode to: far more than responses under test have, and still
/// decoded in seconds. Content without a coding has no limit.
pub(crate) const CODED_LIMIT_BYTES: u64 = 64 << 20;

/// The most codings that are undone, one within the other. One is usual; more than two have no use.
pub(crate) const CODINGS_LIMIT: usize = 4;

/// What a response contained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// SHA-256 of the decoded bytes.
    pub digest: Digest,
    /// Bytes as they were sent, without the framing of a chunked body.
    pub encoded_bytes: u64,
    /// Bytes after all content codings are undone.
    pub decoded_bytes: u64,
}

/// Why the content of a response cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContentFlaw {
    /// Content-Encoding has a name that is not known here; cut after 40 characters.
    #[error("Content-Encoding names {0:?}: known are gzip, deflate, br, zstd and identity")]
    UnknownCoding(String),
    /// Content-Encoding names more codings than are undone.
    #[error("Content-Encoding names {count} codings: at most {limit} are undone")]
    TooManyCodings {
        /// Codings named, without `identity`.
        count: usize,
        /// The most that are undone.
        limit: usize,
    },
    /// The content is not what its coding asks for.
    #[error("the content is not valid {coding}: {why}")]
    Corrupt {
        /// The coding that is broken.
        coding: Coding,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The response is complete, but its coded data is not.
    #[error("the content ends in the middle of its {coding} data, though the response is complete")]
    Truncated {
        /// The coding that does not end.
        coding: Coding,
    },
    /// Bytes follow the end of the coded data.
    #[error("bytes that belong to nothing follow the end of the {coding} data")]
    TrailingGarbage {
        /// The coding whose data has ended.
        coding: Coding,
    },
    /// The content is, or decodes to, more than is taken.
    #[error("the {coding} data is, or decodes to, more than {limit_bytes} bytes, the most that is taken")]
    TooLarge {
        /// The coding whose output is too long.
        coding: Coding,
        /// The most that is taken.
        limit_bytes: u64,
    },
    /// A zstd frame asks for a larger window than RFC 9659 lets a server use in HTTP: browsers refuse it too.
    #[error(
        "the zstd data needs a window of {window_bytes} bytes: HTTP allows {limit_bytes} (RFC 9659), \
         use a lower level or set the encoder's window log to 23"
    )]
    WindowTooLarge {
        /// The window that the frame asks for.
        window_bytes: u64,
        /// The largest window allowed.
        limit_bytes: u64,
    },
}

/// Takes the content of one response as it arrives, undoes its content codings, counts and hashes it.
pub(crate) struct ContentReader {
    /// Outermost coding first: the one that was applied last, and is undone first.
    codings: Result<Vec<Coding>, ContentFlaw>,
    /// Content with a coding, as far as it is kept.
    coded: Vec<u8>,
    plain: Plain,
    encoded_bytes: u64,
    limit_bytes: u64,
}

/// The decoded content, as far as it has come.
struct Plain {
    hash: Sha256,
    bytes: u64,
}

impl Plain {
    fn take(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.hash.update(bytes);
    }
}

/// What has been decoded is nothing to look at.
impl fmt::Debug for ContentReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContentReader").finish_non_exhaustive()
    }
}

impl ContentReader {
    /// A reader for one response. `codings` are the values of its Content-Encoding fields in the order of the head,
    /// such as `b"gzip"` or `b"br, gzip"`; none means that nothing is to be undone.
    pub(crate) fn new(codings: &[&[u8]]) -> ContentReader {
        ContentReader::with_limit(codings, CODED_LIMIT_BYTES)
    }

    fn with_limit(codings: &[&[u8]], limit_bytes: u64) -> ContentReader {
        let codings = read_list(codings).map(|applied| applied.into_iter().rev().collect());
        let plain = Plain { hash: Sha256::new(), bytes: 0 };
        ContentReader { codings, coded: Vec::new(), plain, encoded_bytes: 0, limit_bytes }
    }

    /// Takes more content, after removal of the chunked coding.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        self.encoded_bytes += bytes.len() as u64;
        match self.codings.as_deref() {
            Ok([]) => self.plain.take(bytes),
            Ok(_) if self.encoded_bytes <= self.limit_bytes => self.coded.extend_from_slice(bytes),
            // Told at the end.
            Ok(_) | Err(_) => {}
        }
    }

    /// Ends the content: the response is complete.
    ///
    /// # Errors
    /// The first error of the outermost coding that has one.
    pub(crate) fn finish(mut self) -> Result<Content, ContentFlaw> {
        let codings = self.codings?;
        if let Some(&coding) = codings.first().filter(|_| self.encoded_bytes > self.limit_bytes) {
            return Err(ContentFlaw::TooLarge { coding, limit_bytes: self.limit_bytes });
        }
        let mut coded = self.coded;
        for (index, &coding) in codings.iter().enumerate() {
            let is_last = index + 1 == codings.len();
            let (mut decoded, mut decoded_bytes) = (Vec::new(), 0);
            let mut out = |bytes: &[u8]| {
                decoded_bytes += bytes.len() as u64;
                if decoded_bytes > self.limit_bytes {
                    return Err(ContentFlaw::TooLarge { coding, limit_bytes: self.limit_bytes });
                }
                if is_last {
                    self.plain.take(bytes)
                } else {
                    decoded.extend_from_slice(bytes)
                }
                Ok(())
            };
            if !coded.is_empty() {
                decode::decode(coding, &coded, &mut out)?;
            }
            coded = decoded;
        }
        Ok(Content {
            digest: <[u8; 32]>::from(self.plain.hash.finalize()).into(),
            encoded_bytes: self.encoded_bytes,
            decoded_bytes: self.plain.bytes,
        })
    }
}

// The names of content codings and the list that a head makes of them. It must not decode anything.
//
// Source: RFC 9110, section 8.4.1 and the registry it founds; section 5.6.1 for lists.

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
fn read_list(values: &[&[u8]]) -> Result<Vec<Coding>, ContentFlaw> {
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

#[cfg(test)]
mod tests;
