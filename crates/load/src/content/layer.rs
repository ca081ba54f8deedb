//! One content coding being undone: a decoder with the rules that hold for all of them. It must not know formats.

use super::brotli::Brotli;
use super::deflate::Deflate;
use super::gzip::Gzip;
use super::zstd::Zstd;
use super::{Coding, ContentFlaw};

/// Where decoded bytes go. What it returns ends the decoding.
pub(super) type Out<'a> = dyn FnMut(&[u8]) -> Result<(), ContentFlaw> + 'a;

/// A decoder that is fed.
pub(super) trait Decode: Send {
    /// Takes all of `bytes` and gives what they decode to as soon as it can. Not called again after a flaw.
    fn push(&mut self, bytes: &[u8], out: &mut Out<'_>) -> Result<(), ContentFlaw>;

    /// Judges the end of the data here.
    fn end(&self) -> Result<(), ContentFlaw>;
}

/// A coding with its decoder and what it has given so far.
pub(super) struct Layer {
    coding: Coding,
    decoder: Box<dyn Decode>,
    began: bool,
    decoded_bytes: u64,
    limit_bytes: u64,
}

impl Layer {
    pub(super) fn new(coding: Coding, limit_bytes: u64) -> Layer {
        let decoder: Box<dyn Decode> = match coding {
            Coding::Gzip => Box::new(Gzip::new()),
            Coding::Deflate => Box::new(Deflate::new()),
            Coding::Brotli => Box::new(Brotli::new()),
            Coding::Zstd => Box::new(Zstd::new()),
        };
        Layer { coding, decoder, began: false, decoded_bytes: 0, limit_bytes }
    }

    /// Takes coded bytes and gives decoded ones to `out`, up to the limit.
    pub(super) fn push(&mut self, bytes: &[u8], out: &mut Out<'_>) -> Result<(), ContentFlaw> {
        self.began |= !bytes.is_empty();
        let (coding, limit_bytes) = (self.coding, self.limit_bytes);
        self.decoder.push(bytes, &mut |decoded| {
            self.decoded_bytes += decoded.len() as u64;
            if self.decoded_bytes > limit_bytes {
                return Err(ContentFlaw::TooLarge { coding, limit_bytes });
            }
            out(decoded)
        })
    }

    /// Judges the end of the content; the module's text says why no bytes at all are fine.
    pub(super) fn end(&self) -> Result<(), ContentFlaw> {
        if self.began { self.decoder.end() } else { Ok(()) }
    }
}
