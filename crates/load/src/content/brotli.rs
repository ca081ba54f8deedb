//! The content coding `br`: one Brotli stream (RFC 7932). It has no checksum of its own: damage that leaves the stream
//! readable shows only in the digest. It must not accept the large windows that are no part of RFC 7932, nor bytes
//! after the end.

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};

use super::layer::{Decode, Out};
use super::{Coding, ContentFlaw};

const OUT_BYTES: usize = 16 * 1024;

/// The content coding `br`.
pub(super) struct Brotli {
    state: Box<BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>>,
    decoded: Box<[u8]>,
    ended: bool,
}

impl Brotli {
    pub(super) fn new() -> Brotli {
        let alloc = StandardAlloc::default;
        Brotli {
            // Strict: no window above 16 MiB.
            state: Box::new(BrotliState::new_strict(alloc(), alloc(), alloc())),
            decoded: vec![0; OUT_BYTES].into(),
            ended: false,
        }
    }

    /// Decodes from `bytes` until it has the end of the stream or nothing more to work with.
    fn decode(&mut self, bytes: &mut &[u8], out: &mut Out<'_>) -> Result<(), ContentFlaw> {
        loop {
            let (mut available_in, mut used) = (bytes.len(), 0);
            let (mut available_out, mut made) = (self.decoded.len(), 0);
            let result = BrotliDecompressStream(
                &mut available_in,
                &mut used,
                bytes,
                &mut available_out,
                &mut made,
                &mut self.decoded,
                &mut 0,
                &mut self.state,
            );
            *bytes = &bytes[used..];
            if made > 0 {
                out(&self.decoded[..made])?;
            }
            match result {
                BrotliResult::NeedsMoreOutput => {}
                BrotliResult::NeedsMoreInput => return Ok(()),
                BrotliResult::ResultSuccess => {
                    self.ended = true;
                    return Ok(());
                }
                BrotliResult::ResultFailure => {
                    let why = "its data is broken";
                    return Err(ContentFlaw::Corrupt { coding: Coding::Brotli, why });
                }
            }
        }
    }
}

impl Decode for Brotli {
    fn push(&mut self, mut bytes: &[u8], out: &mut Out<'_>) -> Result<(), ContentFlaw> {
        if !self.ended {
            self.decode(&mut bytes, out)?;
        }
        if self.ended && !bytes.is_empty() {
            return Err(ContentFlaw::TrailingGarbage { coding: Coding::Brotli });
        }
        Ok(())
    }

    fn end(&self) -> Result<(), ContentFlaw> {
        if self.ended { Ok(()) } else { Err(ContentFlaw::Truncated { coding: Coding::Brotli }) }
    }
}
