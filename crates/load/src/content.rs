//! The content of a response once its content codings are undone: how long it is and what its SHA-256 is.
//!
//! Sans I/O: it is fed the content as it arrives, after removal of the chunked coding, and gives the same result for
//! every way of splitting it. It keeps no content, only what the decoders need: 32 KiB of window for gzip and deflate,
//! 16 MiB for br, 8 MiB and a block for zstd, each times [`LAYERS_LIMIT`] at most. A decoder that would give more than
//! [`DECODED_LIMIT_BYTES`] is stopped, so that a small response cannot cost more time than that. It must not panic
//! whatever a server sends, and must not judge: whether the digest is the expected one is for its caller to say.
//! Decoding happens within [`ContentReader::take`], on the caller's thread: it is meant for few responses in many.
//!
//! Content of no bytes at all is taken as it stands, under any coding: servers send `Content-Encoding: gzip` with an
//! empty body, and browsers take it. Everything else must be whole and must be nothing but the coded data.
//!
//! Source: RFC 9110, sections 8.4 and 8.4.1 (Content-Encoding); RFC 8878 and RFC 9659 (zstd); RFC 7932 (br).

mod brotli;
mod coding;
mod deflate;
mod digest;
mod flaw;
mod gather;
mod gzip;
mod layer;
#[cfg(test)]
mod tests;
mod zstd;

use std::fmt;

use sha2::{Digest as _, Sha256};

pub use coding::Coding;
pub use digest::{Digest, DigestError};
pub use flaw::ContentFlaw;
use layer::Layer;

/// The most that one coding may decode to: far more than responses under test have, and still decoded in seconds.
/// Content without a coding has no limit, because each byte of it was sent.
pub(crate) const DECODED_LIMIT_BYTES: u64 = 64 << 20;

/// The most codings that are undone, one within the other. One is usual; more than two have no use.
pub(crate) const LAYERS_LIMIT: usize = 4;

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

/// Takes the content of one response as it arrives, undoes its content codings, counts and hashes it.
pub(crate) struct ContentReader {
    /// Outermost coding first: the one that was applied last, and is undone first.
    layers: Vec<Layer>,
    plain: Plain,
    encoded_bytes: u64,
    flaw: Option<ContentFlaw>,
}

/// The decoded content, as far as it has come.
struct Plain {
    hash: Sha256,
    bytes: u64,
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
        ContentReader::with_limit(codings, DECODED_LIMIT_BYTES)
    }

    fn with_limit(codings: &[&[u8]], limit_bytes: u64) -> ContentReader {
        let (layers, flaw) = match coding::read_list(codings) {
            Ok(applied) => {
                (applied.into_iter().rev().map(|coding| Layer::new(coding, limit_bytes)).collect(), None)
            }
            Err(flaw) => (Vec::new(), Some(flaw)),
        };
        ContentReader { layers, plain: Plain { hash: Sha256::new(), bytes: 0 }, encoded_bytes: 0, flaw }
    }

    /// Takes more content, after removal of the chunked coding. A flaw is kept for [`finish`](Self::finish), and what
    /// comes after it is not looked at.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        self.encoded_bytes += bytes.len() as u64;
        if self.flaw.is_none() {
            self.flaw = pass(&mut self.layers, bytes, &mut self.plain).err();
        }
    }

    /// Ends the content: the response is complete.
    ///
    /// # Errors
    /// The first flaw of the content as it was read; where it only ends too early, that of the outermost coding.
    pub(crate) fn finish(self) -> Result<Content, ContentFlaw> {
        if let Some(flaw) = self.flaw {
            return Err(flaw);
        }
        self.layers.iter().try_for_each(Layer::end)?;
        Ok(Content {
            digest: Digest::from_bytes(self.plain.hash.finalize().into()),
            encoded_bytes: self.encoded_bytes,
            decoded_bytes: self.plain.bytes,
        })
    }
}

/// Passes bytes through the layers, the outermost first, to the plain content.
fn pass(layers: &mut [Layer], bytes: &[u8], plain: &mut Plain) -> Result<(), ContentFlaw> {
    match layers.split_first_mut() {
        Some((layer, inner)) => layer.push(bytes, &mut |decoded| pass(inner, decoded, plain)),
        None => {
            plain.bytes += bytes.len() as u64;
            plain.hash.update(bytes);
            Ok(())
        }
    }
}
