//! The decoded content of a response: its length and SHA-256.
//!
//! Sans I/O: it receives the content as it arrives, after removal of the chunked coding. Content without a
//! coding is not stored. Coded content is stored up to [`CODED_LIMIT_BYTES`], and decoded when it is
//! complete, on the caller's thread. This is meant for a small sample of responses. A decoder that would
//! return more than that is stopped, so that a small response cannot cost more time or memory. This module
//! does not panic on any input, and does not compare digests, which its caller does.
//!
//! Empty content is accepted as it is, under any coding: servers send `Content-Encoding: gzip` with an empty
//! body, and browsers accept it. Any other content must be complete and contain nothing but the coded data.
//!
//! Source: RFC 9110, sections 8.4 and 8.4.1 (Content-Encoding).

use std::io::{ErrorKind, Read};

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use flate2::bufread::GzDecoder;
use flate2::{Decompress, FlushDecompress, Status};
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use sha2::{Digest as _, Sha256};

use crate::Digest;
use crate::reader::ResponseHead;
use crate::reader::values;

/// Maximum size of coded content, and of the result of one coding. This is far more than tested responses
/// have, and still decoded in seconds. Content without a coding has no limit.
const CODED_LIMIT_BYTES: u64 = 64 << 20;

/// Maximum number of nested codings. One is usual, and more than two have no use.
const CODINGS_LIMIT: usize = 4;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// SHA-256 of the decoded bytes.
    pub digest: Digest,
    /// Bytes as they were sent, without the framing of a chunked body.
    pub encoded_bytes: u64,
    /// Bytes after all content codings are undone.
    pub decoded_bytes: u64,
    /// The first decoded bytes, if requested: at most the requested number, and one more if there are more.
    pub kept: Vec<u8>,
    /// The first unknown coding. In that case no coding was undone, as in browsers.
    pub unknown_coding: Option<String>,
}

/// A description of why the content of a response cannot be decoded.
type Flaw = String;

/// Receives the content of one response as it arrives, undoes its content codings, counts and hashes it.
pub(crate) struct ContentReader {
    /// Outermost coding first: it was applied last and is undone first.
    codings: Result<Vec<ContentCoding>, Flaw>,
    /// Content with a coding, as far as it is stored.
    coded: Vec<u8>,
    plain: PlainContent,
    encoded_bytes: u64,
    limit_bytes: u64,
    unknown_coding: Option<String>,
}

/// The decoded content so far.
struct PlainContent {
    hash: Sha256,
    bytes: u64,
    kept: Vec<u8>,
    keep: usize,
}

impl PlainContent {
    fn take(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.hash.update(bytes);
        self.kept
            .extend_from_slice(&bytes[..bytes.len().min(self.keep - self.kept.len())]);
    }
}

impl ContentReader {
    pub(crate) fn of(head: &ResponseHead<'_>) -> ContentReader {
        let codings: Vec<_> = values(head, "content-encoding").collect();
        ContentReader::with_limit(&codings, CODED_LIMIT_BYTES)
    }

    /// `codings` are the values of the Content-Encoding fields in the order of the head, such as `b"gzip"` or
    /// `b"br, gzip"`. If empty, nothing is decoded.
    fn with_limit(codings: &[impl AsRef<[u8]>], limit_bytes: u64) -> ContentReader {
        let unknown_coding = unknown(codings);
        let applied = if unknown_coding.is_some() {
            Ok(Vec::new())
        } else {
            read_list(codings)
        };
        let codings = applied.map(|applied| applied.into_iter().rev().collect());
        let plain = PlainContent {
            hash: Sha256::new(),
            bytes: 0,
            kept: Vec::new(),
            keep: 0,
        };
        ContentReader {
            codings,
            coded: Vec::new(),
            plain,
            encoded_bytes: 0,
            limit_bytes,
            unknown_coding,
        }
    }

    /// Stores this number of decoded bytes, and one more.
    pub(crate) fn keeping(mut self, bytes: usize) -> ContentReader {
        self.plain.keep = bytes + 1;
        self
    }

    /// Adds content, after removal of the chunked coding.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        self.encoded_bytes += bytes.len() as u64;
        match self.codings.as_deref() {
            Ok([]) => self.plain.take(bytes),
            Ok(_) if self.encoded_bytes <= self.limit_bytes => self.coded.extend_from_slice(bytes),
            // Reported at the end.
            Ok(_) | Err(_) => {}
        }
    }

    /// Finishes the content of a complete response.
    ///
    /// # Errors
    /// Returns the first error of the outermost coding that has one.
    pub(crate) fn finish(mut self) -> Result<Content, Flaw> {
        let codings = self.codings?;
        let too_large = |name| {
            let limit = self.limit_bytes;
            format!(
                "the {name} data is, or decodes to, more than {limit} bytes, the most that is taken"
            )
        };
        if let Some((name, _)) = codings
            .first()
            .filter(|_| self.encoded_bytes > self.limit_bytes)
        {
            return Err(too_large(name));
        }
        let mut coded = self.coded;
        for (index, (name, undo)) in codings.iter().enumerate() {
            let is_last = index + 1 == codings.len();
            let (mut decoded, mut decoded_bytes) = (Vec::new(), 0);
            let mut out = |bytes: &[u8]| {
                decoded_bytes += bytes.len() as u64;
                if decoded_bytes > self.limit_bytes {
                    return Err(too_large(name));
                }
                if is_last {
                    self.plain.take(bytes)
                } else {
                    decoded.extend_from_slice(bytes)
                }
                Ok(())
            };
            if !coded.is_empty() {
                undo(&coded, &mut out)?;
            }
            coded = decoded;
        }
        Ok(Content {
            digest: <[u8; 32]>::from(self.plain.hash.finalize()).into(),
            encoded_bytes: self.encoded_bytes,
            decoded_bytes: self.plain.bytes,
            kept: self.plain.kept,
            unknown_coding: self.unknown_coding,
        })
    }
}

// The names of content codings and the list in a head. This part decodes nothing.
//
// Source: RFC 9110, section 8.4.1 and its registry, section 5.6.1 for lists.

/// Maximum length of the name of an unknown coding.
const NAME_CHARS: usize = 40;

/// A content coding: its name, and the function that decodes complete, non-empty content.
type ContentCoding = (&'static str, fn(&[u8], &mut Out<'_>) -> Result<(), Flaw>);

/// A name in Content-Encoding.
enum Name {
    Identity,
    Coding(ContentCoding),
    Unknown,
}

/// The names in Content-Encoding fields. RFC 9110, section 5.6.1.2: empty elements of a list are ignored.
fn names(values: &[impl AsRef<[u8]>]) -> impl Iterator<Item = &[u8]> {
    let names = values
        .iter()
        .flat_map(|value| value.as_ref().split(|byte| *byte == b','));
    names
        .map(<[u8]>::trim_ascii)
        .filter(|name| !name.is_empty())
}

/// The first unknown coding name, such as a charset.
fn unknown(values: &[impl AsRef<[u8]>]) -> Option<String> {
    let name = names(values).find(|name| matches!(read_name(name), Name::Unknown))?;
    Some(model::text::cut_end(
        &String::from_utf8_lossy(name),
        NAME_CHARS,
    ))
}

/// The codings named in Content-Encoding, in the order in which they were applied, without `identity`.
fn read_list(values: &[impl AsRef<[u8]>]) -> Result<Vec<ContentCoding>, Flaw> {
    let coding = |name: &[u8]| {
        if let Name::Coding(coding) = read_name(name) {
            Some(coding)
        } else {
            None
        }
    };
    let codings: Vec<ContentCoding> = names(values).filter_map(coding).collect();
    if codings.len() > CODINGS_LIMIT {
        let count = codings.len();
        return Err(format!(
            "Content-Encoding names {count} codings: at most {CODINGS_LIMIT} are undone"
        ));
    }
    Ok(codings)
}

fn read_name(name: &[u8]) -> Name {
    Name::Coding(match name.to_ascii_lowercase().as_slice() {
        b"identity" => return Name::Identity,
        b"gzip" | b"x-gzip" => (GZIP, gzip),
        b"deflate" => (DEFLATE, deflate),
        b"br" => (BROTLI, brotli),
        b"zstd" => (ZSTD, zstd),
        _ => return Name::Unknown,
    })
}

// Decoding of one content coding, with the content complete. Crates parse the formats. This part checks what
// they leave to their caller: several members or frames, trailing bytes, zstd's checksum and length.
//
// Source: RFC 1952 (gzip), RFC 1950 and 1951 (deflate), RFC 7932 (br), RFC 8878 and RFC 9659 (zstd).

/// Size of the output buffer.
const OUT_BYTES: usize = 64 * 1024;
/// RFC 9659, section 3: the largest window that decoders must support and encoders may use.
const WINDOW_LIMIT_BYTES: u64 = 8 << 20;

const GZIP_MAGIC: [u8; 3] = [0x1f, 0x8b, 0x08];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Before the content of a skippable frame: magic number and length.
const ZSTD_SKIPPABLE_HEADER_BYTES: usize = 8;

/// The sink for decoded bytes. An error ends the decoding.
type Out<'a> = dyn FnMut(&[u8]) -> Result<(), Flaw> + 'a;

/// RFC 1952.
const GZIP: &str = "gzip";
/// Deflate data in the zlib format (RFC 1950), or bare (RFC 1951) as many servers send it.
const DEFLATE: &str = "deflate";
/// RFC 7932.
const BROTLI: &str = "br";
/// Zstandard, RFC 8878.
const ZSTD: &str = "zstd";

/// Decodes one or more consecutive members.
fn gzip(mut bytes: &[u8], out: &mut Out<'_>) -> Result<(), Flaw> {
    let mut decoded = vec![0; OUT_BYTES];
    let mut is_first = true;
    while is_first || !bytes.is_empty() {
        if !begins_with(bytes, GZIP_MAGIC) {
            return Err(no_beginning(GZIP, is_first));
        }
        let mut member = GzDecoder::new(bytes);
        loop {
            match member.read(&mut decoded) {
                Ok(0) => break,
                Ok(count) => out(&decoded[..count])?,
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    return Err(truncated(GZIP));
                }
                Err(_) => return Err(corrupt(GZIP, BROKEN_OR_UNMATCHED)),
            }
        }
        bytes = member.into_inner();
        is_first = false;
    }
    Ok(())
}

/// Decodes `deflate`. By RFC 9110, section 8.4.1.2 it is the zlib format, but many servers send bare deflate
/// data, and clients accept both. The first two bytes decide: a zlib header, read as bare deflate, would be a
/// stored block with padding that no encoder writes.
fn deflate(mut bytes: &[u8], out: &mut Out<'_>) -> Result<(), Flaw> {
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
            Ok(_) if used == 0 && made == 0 => return Err(truncated(DEFLATE)),
            Ok(_) => {}
            Err(_) => return Err(corrupt(DEFLATE, BROKEN_OR_UNMATCHED)),
        }
    }
    end(DEFLATE, bytes)
}

/// RFC 1950, section 2.2: method 8, a window of at most 32 KiB, and the two bytes as one number a multiple of
/// 31.
fn is_zlib(bytes: &[u8]) -> bool {
    match bytes {
        [first, second, ..] => {
            first & 0x0f == 8
                && first >> 4 <= 7
                && u16::from_be_bytes([*first, *second]).is_multiple_of(31)
        }
        _ => false,
    }
}

/// Decodes one stream. It has no checksum, so damage that leaves it readable changes only the digest.
fn brotli(mut bytes: &[u8], out: &mut Out<'_>) -> Result<(), Flaw> {
    let alloc = StandardAlloc::default;
    // Strict: no window above 16 MiB, which RFC 7932 does not allow.
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
            BrotliResult::ResultSuccess => return end(BROTLI, bytes),
            BrotliResult::NeedsMoreInput => return Err(truncated(BROTLI)),
            BrotliResult::ResultFailure => return Err(corrupt(BROTLI, BROKEN)),
        }
    }
}

/// Decodes one or more consecutive frames, some of which may be skippable.
fn zstd(mut bytes: &[u8], out: &mut Out<'_>) -> Result<(), Flaw> {
    let mut decoder = FrameDecoder::new();
    decoder.set_max_window_size(WINDOW_LIMIT_BYTES);
    let mut is_first = true;
    while is_first || !bytes.is_empty() {
        if !begins_with(bytes, ZSTD_MAGIC) && !begins_skippable(bytes) {
            return Err(no_beginning(ZSTD, is_first));
        }
        let frame = bytes;
        match decoder.reset(&mut bytes) {
            Ok(()) => zstd_frame(&mut decoder, frame, &mut bytes, out)?,
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length,
                ..
            })) => {
                let end = (length as usize).saturating_add(ZSTD_SKIPPABLE_HEADER_BYTES);
                bytes = frame.get(end..).ok_or_else(|| truncated(ZSTD))?;
            }
            Err(error) => return Err(refused(error)),
        }
        is_first = false;
    }
    Ok(())
}

/// Decodes a frame whose header has been read from `frame`. Its blocks are read from `bytes`.
fn zstd_frame(
    decoder: &mut FrameDecoder,
    frame: &[u8],
    bytes: &mut &[u8],
    out: &mut Out<'_>,
) -> Result<(), Flaw> {
    // RFC 8878, section 3.1.1.1.1: the frame header descriptor.
    let descriptor = frame[ZSTD_MAGIC.len()];
    if descriptor & 1 << 3 != 0 {
        return Err(corrupt(ZSTD, "a frame header has the reserved bit set"));
    }
    let has_length = descriptor >> 6 != 0 || descriptor & 1 << 5 != 0;
    let mut decoded = vec![0; OUT_BYTES];
    let mut length = 0;
    while !decoder.is_finished() {
        decoder
            .decode_blocks(&mut *bytes, BlockDecodingStrategy::UptoBlocks(1))
            .map_err(refused)?;
        loop {
            let made = decoder
                .read(&mut decoded)
                .map_err(|_| corrupt(ZSTD, BROKEN))?;
            if made == 0 {
                break;
            }
            length += made as u64;
            out(&decoded[..made])?;
        }
    }
    if has_length && length != decoder.content_size() {
        return Err(corrupt(ZSTD, "a frame's length is not the one it states"));
    }
    let stated = decoder.get_checksum_from_data();
    if stated.is_some() && stated != decoder.get_calculated_checksum() {
        return Err(corrupt(ZSTD, "its checksum does not match"));
    }
    Ok(())
}

/// RFC 8878, section 3.1.2: the lowest four bits of the first byte are arbitrary.
fn begins_skippable(bytes: &[u8]) -> bool {
    let split = bytes.split_first();
    split.is_some_and(|(first, rest)| first & 0xf0 == 0x50 && begins_with(rest, [0x2a, 0x4d, 0x18]))
}

/// Whether the bytes begin with `magic`, as far as they go.
fn begins_with<const BYTES: usize>(bytes: &[u8], magic: [u8; BYTES]) -> bool {
    bytes
        .iter()
        .zip(magic)
        .all(|(found, expected)| *found == expected)
}

fn refused(error: FrameDecoderError) -> Flaw {
    match error {
        FrameDecoderError::WindowSizeTooBig { requested, max } => {
            format!(
                "the zstd data needs a window of {requested} bytes: HTTP allows {max} (RFC 9659), use a lower level or set \
                 the encoder's window log to 23"
            )
        }
        FrameDecoderError::DictNotProvided { .. } => {
            corrupt(ZSTD, "it needs a dictionary, and this coding has none")
        }
        _ if is_cut_off(&error) => truncated(ZSTD),
        _ => corrupt(ZSTD, BROKEN),
    }
}

/// Whether the decoder needed more bytes than there are.
fn is_cut_off(error: &FrameDecoderError) -> bool {
    let first: &(dyn std::error::Error + 'static) = error;
    let is_end = |cause: &(dyn std::error::Error + 'static)| {
        let io = cause.downcast_ref::<std::io::Error>();
        io.is_some_and(|io| io.kind() == ErrorKind::UnexpectedEof)
    };
    std::iter::successors(Some(first), |cause| cause.source()).any(is_end)
}

/// Returns an error if content follows the end of the data.
fn end(coding: &str, rest: &[u8]) -> Result<(), Flaw> {
    if rest.is_empty() {
        Ok(())
    } else {
        Err(trailing(coding))
    }
}

/// The error for a piece of data that does not begin as its coding requires.
fn no_beginning(coding: &str, is_first: bool) -> Flaw {
    if is_first {
        corrupt(coding, "it does not begin as this coding does")
    } else {
        trailing(coding)
    }
}

const BROKEN: &str = "its data is broken";
const BROKEN_OR_UNMATCHED: &str = "its data is broken or does not match its checksum";

fn corrupt(coding: &str, why: &str) -> Flaw {
    format!("the content is not valid {coding}: {why}")
}

fn truncated(coding: &str) -> Flaw {
    format!("the content ends in the middle of its {coding} data, though the response is complete")
}

fn trailing(coding: &str) -> Flaw {
    format!("there is trailing data after the end of the {coding} data")
}

#[cfg(test)]
mod tests;
