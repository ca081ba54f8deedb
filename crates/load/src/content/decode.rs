//! Undoing one content coding of content that is whole. Formats are read by their crates; what these leave to their caller (several
//! members or frames, bytes behind the end, zstd's checksum and length) is judged here.
//!
//! Source: RFC 1952 (gzip), RFC 1950 and 1951 (deflate), RFC 7932 (br), RFC 8878 and RFC 9659 (zstd).

use std::io::{ErrorKind, Read};

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use flate2::bufread::GzDecoder;
use flate2::{Decompress, FlushDecompress, Status};
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::{Coding, ContentFlaw};

/// Decoded at once.
const OUT_BYTES: usize = 64 * 1024;
/// RFC 9659, section 3: the largest window that decoders must support and encoders may use.
pub(super) const WINDOW_LIMIT_BYTES: u64 = 8 << 20;

const GZIP_MAGIC: [u8; 3] = [0x1f, 0x8b, 0x08];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// RFC 8878, section 3.1.2: the lowest four bits of the first byte are free.
const ZSTD_SKIPPABLE_MAGIC: [u8; 4] = [0x50, 0x2a, 0x4d, 0x18];
/// Before the content of a skippable frame: magic number and length.
const ZSTD_SKIPPABLE_HEADER_BYTES: usize = 8;

/// Where decoded bytes go. What it returns ends the decoding.
pub(super) type Out<'a> = dyn FnMut(&[u8]) -> Result<(), ContentFlaw> + 'a;

/// Undoes a coding of these bytes, which are all there are, and at least one.
pub(super) fn decode(coding: Coding, bytes: &[u8], out: &mut Out<'_>) -> Result<(), ContentFlaw> {
    match coding {
        Coding::Gzip => gzip(bytes, out),
        Coding::Deflate => deflate(bytes, out),
        Coding::Brotli => brotli(bytes, out),
        Coding::Zstd => zstd(bytes, out),
    }
}

/// One or more members, one after the other.
fn gzip(mut bytes: &[u8], out: &mut Out<'_>) -> Result<(), ContentFlaw> {
    let mut decoded = vec![0; OUT_BYTES];
    let mut is_first = true;
    while is_first || !bytes.is_empty() {
        if !begins_with(bytes, GZIP_MAGIC) {
            return Err(no_beginning(Coding::Gzip, is_first));
        }
        let mut member = GzDecoder::new(bytes);
        loop {
            match member.read(&mut decoded) {
                Ok(0) => break,
                Ok(count) => out(&decoded[..count])?,
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    return Err(ContentFlaw::Truncated { coding: Coding::Gzip });
                }
                Err(_) => {
                    return Err(corrupt(Coding::Gzip, "its data is broken or does not match its checksum"));
                }
            }
        }
        bytes = member.into_inner();
        is_first = false;
    }
    Ok(())
}

/// By RFC 9110, section 8.4.1.2 it is the zlib format. Many servers send bare deflate data, and clients learned to take both. The first
/// two bytes tell: what is a zlib header would be, as bare deflate, a stored block with padding that no encoder writes.
fn deflate(mut bytes: &[u8], out: &mut Out<'_>) -> Result<(), ContentFlaw> {
    let coding = Coding::Deflate;
    let mut state = Decompress::new(is_zlib(bytes));
    let mut decoded = vec![0; OUT_BYTES];
    loop {
        let (before_in, before_out) = (state.total_in(), state.total_out());
        let status = state.decompress(bytes, &mut decoded, FlushDecompress::None);
        let used = (state.total_in() - before_in) as usize;
        let made = (state.total_out() - before_out) as usize;
        bytes = &bytes[used..];
        out(&decoded[..made])?;
        match status {
            Ok(Status::StreamEnd) => break,
            Ok(_) if used == 0 && made == 0 => return Err(ContentFlaw::Truncated { coding }),
            Ok(_) => {}
            Err(_) => return Err(corrupt(coding, "its data is broken or does not match its checksum")),
        }
    }
    end(coding, bytes)
}

/// RFC 1950, section 2.2: method 8, a window of 32 KiB at most, and the two bytes as one number a multiple of 31.
fn is_zlib(bytes: &[u8]) -> bool {
    match bytes {
        [first, second, ..] => {
            first & 0x0f == 8 && first >> 4 <= 7 && u16::from_be_bytes([*first, *second]).is_multiple_of(31)
        }
        _ => false,
    }
}

/// One stream, without a checksum: damage that leaves it readable shows only in the digest.
fn brotli(mut bytes: &[u8], out: &mut Out<'_>) -> Result<(), ContentFlaw> {
    let (coding, alloc) = (Coding::Brotli, StandardAlloc::default);
    // Strict: no window above 16 MiB, which are no part of RFC 7932.
    let mut state = BrotliState::new_strict(alloc(), alloc(), alloc());
    let mut decoded = vec![0; OUT_BYTES];
    loop {
        let (mut available_in, mut used) = (bytes.len(), 0);
        let (mut available_out, mut made) = (decoded.len(), 0);
        let result = BrotliDecompressStream(
            &mut available_in,
            &mut used,
            bytes,
            &mut available_out,
            &mut made,
            &mut decoded,
            &mut 0,
            &mut state,
        );
        bytes = &bytes[used..];
        out(&decoded[..made])?;
        match result {
            BrotliResult::NeedsMoreOutput => {}
            BrotliResult::ResultSuccess => return end(coding, bytes),
            BrotliResult::NeedsMoreInput => return Err(ContentFlaw::Truncated { coding }),
            BrotliResult::ResultFailure => return Err(corrupt(coding, "its data is broken")),
        }
    }
}

/// One or more frames, one after the other, of which some may be there to be passed over.
fn zstd(mut bytes: &[u8], out: &mut Out<'_>) -> Result<(), ContentFlaw> {
    let mut decoder = FrameDecoder::new();
    decoder.set_max_window_size(WINDOW_LIMIT_BYTES);
    let mut is_first = true;
    while is_first || !bytes.is_empty() {
        if !begins_with(bytes, ZSTD_MAGIC) && !begins_skippable(bytes) {
            return Err(no_beginning(Coding::Zstd, is_first));
        }
        let frame = bytes;
        match decoder.reset(&mut bytes) {
            Ok(()) => zstd_frame(&mut decoder, frame, &mut bytes, out)?,
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length, ..
            })) => {
                let end = (length as usize).saturating_add(ZSTD_SKIPPABLE_HEADER_BYTES);
                bytes = frame.get(end..).ok_or(ContentFlaw::Truncated { coding: Coding::Zstd })?;
            }
            Err(error) => return Err(refused(&error)),
        }
        is_first = false;
    }
    Ok(())
}

/// A frame whose header has been read from `frame`; its blocks are taken from `bytes`.
fn zstd_frame(
    decoder: &mut FrameDecoder,
    frame: &[u8],
    bytes: &mut &[u8],
    out: &mut Out<'_>,
) -> Result<(), ContentFlaw> {
    // RFC 8878, section 3.1.1.1.1: the frame header descriptor.
    let descriptor = frame[ZSTD_MAGIC.len()];
    if descriptor & 1 << 3 != 0 {
        return Err(corrupt(Coding::Zstd, "a frame header has the reserved bit set"));
    }
    let has_length = descriptor >> 6 != 0 || descriptor & 1 << 5 != 0;
    let mut decoded = vec![0; OUT_BYTES];
    let mut length = 0;
    while !decoder.is_finished() {
        decoder
            .decode_blocks(&mut *bytes, BlockDecodingStrategy::UptoBlocks(1))
            .map_err(|error| refused(&error))?;
        loop {
            let made = decoder.read(&mut decoded).map_err(|_| corrupt(Coding::Zstd, "its data is broken"))?;
            if made == 0 {
                break;
            }
            length += made as u64;
            out(&decoded[..made])?;
        }
    }
    if has_length && length != decoder.content_size() {
        return Err(corrupt(Coding::Zstd, "a frame's length is not the one it states"));
    }
    let stated = decoder.get_checksum_from_data();
    if stated.is_some() && stated != decoder.get_calculated_checksum() {
        return Err(corrupt(Coding::Zstd, "its checksum does not match"));
    }
    Ok(())
}

fn begins_skippable(bytes: &[u8]) -> bool {
    let mut first = bytes.to_vec();
    first.truncate(ZSTD_SKIPPABLE_MAGIC.len());
    first.iter_mut().take(1).for_each(|byte| *byte &= 0xf0);
    begins_with(&first, ZSTD_SKIPPABLE_MAGIC)
}

/// Whether the bytes begin so, as far as they go.
fn begins_with<const BYTES: usize>(bytes: &[u8], magic: [u8; BYTES]) -> bool {
    bytes.iter().zip(magic).all(|(found, expected)| *found == expected)
}

fn refused(error: &FrameDecoderError) -> ContentFlaw {
    match error {
        FrameDecoderError::WindowSizeTooBig { requested, max } => {
            ContentFlaw::WindowTooLarge { window_bytes: *requested, limit_bytes: *max }
        }
        FrameDecoderError::DictNotProvided { .. } => {
            corrupt(Coding::Zstd, "it needs a dictionary, and this coding has none")
        }
        _ if is_cut_off(error) => ContentFlaw::Truncated { coding: Coding::Zstd },
        _ => corrupt(Coding::Zstd, "its data is broken"),
    }
}

/// Whether the decoder wanted more bytes than there are.
fn is_cut_off(error: &FrameDecoderError) -> bool {
    let first: &(dyn std::error::Error + 'static) = error;
    let is_end = |cause: &(dyn std::error::Error + 'static)| {
        let io = cause.downcast_ref::<std::io::Error>();
        io.is_some_and(|io| io.kind() == ErrorKind::UnexpectedEof)
    };
    std::iter::successors(Some(first), |cause| cause.source()).any(is_end)
}

/// The data is over: so must be the content.
fn end(coding: Coding, rest: &[u8]) -> Result<(), ContentFlaw> {
    if rest.is_empty() { Ok(()) } else { Err(ContentFlaw::TrailingGarbage { coding }) }
}

/// What should begin another piece of the data does not, or the first.
fn no_beginning(coding: Coding, is_first: bool) -> ContentFlaw {
    match is_first {
        true => corrupt(coding, "it does not begin as this coding does"),
        false => ContentFlaw::TrailingGarbage { coding },
    }
}

fn corrupt(coding: Coding, why: &'static str) -> ContentFlaw {
    ContentFlaw::Corrupt { coding, why }
}
