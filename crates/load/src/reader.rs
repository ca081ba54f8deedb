//! The response reader: parses HTTP/1.1 responses from bytes that the network split arbitrarily.
//!
//! Sans I/O: it receives byte slices and reports when a response is complete. It copies only a head that
//! arrived in pieces, and stores no body. It uses no socket and no clock, never panics on any input, and
//! returns the same result for every way of splitting the same bytes. `pieces` defines this in code, and
//! tests and a fuzz target check it.
//!
//! Source: RFC 9112 (HTTP/1.1), section 6.3 for the length of a body, section 7.1 for chunks.

#[cfg(any(test, fuzzing))]
#[path = "reader/tests/pieces.rs"]
pub(crate) mod pieces;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::mem::MaybeUninit;

/// The longest response head that is accepted. Usual limits of servers and browsers are 8 to 256 KiB.
///
/// The fuzz target uses short inputs and needs to reach the limit, too.
pub(crate) const HEAD_LIMIT_BYTES: usize = if cfg!(fuzzing) { 512 } else { 64 * 1024 };

/// Maximum number of header lines in one head.
pub(crate) const HEADERS_LIMIT: usize = 128;

/// Maximum bytes discarded at once of a body that ends with the connection.
const SKIP_UNBOUNDED: u64 = 1 << 30;

/// Reasons a response is unreadable. The connection cannot be used afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponseReadError {
    /// Not HTTP/1.x, or its framing cannot be trusted.
    Malformed,
    /// The head, or a line of the chunked coding, is longer than [`HEAD_LIMIT_BYTES`].
    TooLarge,
}

/// State of the response after more bytes were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadProgress {
    /// The response is not complete yet.
    More,
    /// The response is complete. `extra` unexpected bytes came after its end.
    Done { extra: u64 },
}

/// A response head, as passed to the caller's callback.
pub(crate) struct ResponseHead<'a> {
    pub(crate) status: u16,
    pub(crate) headers: &'a [httparse::Header<'a>],
}

/// Receives the parts of a response while it is read.
pub(crate) trait Sink {
    /// Called with the final head, once per response.
    fn head(&mut self, head: &ResponseHead<'_>);

    /// Called with a piece of content, without framing. Skipped content is not passed.
    fn content(&mut self, bytes: &[u8]);
}

/// Reads consecutive responses. See the module documentation.
#[derive(Debug, Default)]
pub(crate) struct ResponseReader {
    state: ReaderState,
    /// The beginning of a head that arrived in pieces. Nearly always empty.
    carry: Vec<u8>,
    /// The request was HEAD, so no body follows.
    bodiless: bool,
    /// Status of the response whose head has been read.
    pub(crate) status: u16,
    /// An interim response announced that the connection ends after this exchange.
    closing: bool,
    /// Whether the connection may be used again after this response.
    pub(crate) reusable: bool,
    /// Content received so far, without the framing of a chunked body.
    pub(crate) body_bytes: u64,
}

#[derive(Debug, Default)]
enum ReaderState {
    #[default]
    Head,
    Length {
        left: u64,
    },
    Chunked(Chunks),
    UntilClose,
    Complete,
}

impl ResponseReader {
    /// Creates a reader for responses that have a body unless `bodiless` (the method is HEAD).
    pub(crate) fn new(bodiless: bool) -> ResponseReader {
        ResponseReader {
            bodiless,
            ..ResponseReader::default()
        }
    }

    /// Discards the current response and waits for the head of the next one. `bodiless` is as in
    /// [`new`](Self::new).
    pub(crate) fn restart(&mut self, bodiless: bool) {
        self.bodiless = bodiless;
        self.state = ReaderState::Head;
        self.carry.clear();
        self.status = 0;
        self.closing = false;
        self.reusable = false;
        self.body_bytes = 0;
    }

    /// Whether the final head has been read.
    pub(crate) fn in_body(&self) -> bool {
        !matches!(self.state, ReaderState::Head)
    }

    /// Reads more bytes and passes their contents to `sink`.
    ///
    /// # Errors
    /// A [`ReadError`]. Afterwards the reader must not be used except for [`restart`](Self::restart).
    pub(crate) fn read(
        &mut self,
        mut bytes: &[u8],
        sink: &mut impl Sink,
    ) -> Result<ReadProgress, ResponseReadError> {
        while matches!(self.state, ReaderState::Head) {
            match self.read_head(bytes, sink)? {
                Some(used) => bytes = &bytes[used..],
                None => return Ok(ReadProgress::More),
            }
        }
        self.read_body(bytes, sink)
    }

    /// Number of next bytes that need not be read, only counted with [`skip`](Self::skip).
    ///
    /// For a body of known length this is one more than its remaining length, so that bytes after the end are
    /// noticed.
    pub(crate) fn skippable(&self) -> u64 {
        match &self.state {
            ReaderState::Length { left } => left.saturating_add(1),
            ReaderState::Chunked(chunks) => chunks.data_left(),
            ReaderState::UntilClose => SKIP_UNBOUNDED,
            ReaderState::Head | ReaderState::Complete => 0,
        }
    }

    /// Counts `count` body bytes that were discarded unread. At most [`skippable`](Self::skippable).
    pub(crate) fn skip(&mut self, count: u64) -> ReadProgress {
        match &mut self.state {
            ReaderState::Length { left } => {
                let used = count.min(*left);
                *left -= used;
                self.body_bytes += used;
                if *left == 0 {
                    self.state = ReaderState::Complete;
                    return ReadProgress::Done {
                        extra: count - used,
                    };
                }
            }
            ReaderState::Chunked(chunks) => {
                chunks.skip(count);
                self.body_bytes += count;
            }
            ReaderState::UntilClose => self.body_bytes += count,
            ReaderState::Head | ReaderState::Complete => {}
        }
        ReadProgress::More
    }

    /// Handles the end of the connection by the peer. Returns whether that is the proper end of this
    /// response.
    pub(crate) fn end(&self) -> bool {
        matches!(self.state, ReaderState::UntilClose)
    }

    /// Reads a head. Returns `Some(used)` if it was completed within `bytes`.
    fn read_head(
        &mut self,
        bytes: &[u8],
        sink: &mut impl Sink,
    ) -> Result<Option<usize>, ResponseReadError> {
        if self.carry.is_empty() {
            let used = self.parse(bytes, sink)?;
            if used.is_none() {
                self.carry.extend_from_slice(bytes);
            }
            return Ok(used);
        }
        let mut carry = std::mem::take(&mut self.carry);
        let before = carry.len();
        let room = HEAD_LIMIT_BYTES.saturating_sub(before).min(bytes.len());
        carry.extend_from_slice(&bytes[..room]);
        let parsed = self.parse(&carry, sink);
        if !matches!(parsed, Ok(None)) {
            carry.clear();
        }
        self.carry = carry;
        Ok(parsed?.map(|length| length - before))
    }

    /// Parses a head from its first byte. Returns `Some(length)` if it is complete.
    fn parse(
        &mut self,
        bytes: &[u8],
        sink: &mut impl Sink,
    ) -> Result<Option<usize>, ResponseReadError> {
        let bytes = &bytes[..bytes.len().min(HEAD_LIMIT_BYTES)];
        let mut space = [MaybeUninit::<httparse::Header<'_>>::uninit(); HEADERS_LIMIT];
        let mut response = httparse::Response::new(&mut []);
        let mut config = httparse::ParserConfig::default();
        // A user agent must read folded lines (RFC 9112, 5.2). The values keep their line breaks.
        config.allow_obsolete_multiline_headers_in_responses(true);
        let parsed = config.parse_response_with_uninit_headers(&mut response, bytes, &mut space);
        match parsed {
            Ok(httparse::Status::Complete(length)) => {
                self.take_head(&response, sink)?;
                Ok(Some(length))
            }
            Ok(httparse::Status::Partial) if bytes.len() >= HEAD_LIMIT_BYTES => {
                Err(ResponseReadError::TooLarge)
            }
            Ok(httparse::Status::Partial) => Ok(None),
            Err(httparse::Error::TooManyHeaders) => Err(ResponseReadError::TooLarge),
            Err(_) => Err(ResponseReadError::Malformed),
        }
    }

    fn take_head(
        &mut self,
        response: &httparse::Response<'_, '_>,
        sink: &mut impl Sink,
    ) -> Result<(), ResponseReadError> {
        let (Some(status), Some(version)) = (response.code, response.version) else {
            return Err(ResponseReadError::Malformed);
        };
        match framing((status, version), response.headers, self.bodiless)? {
            // No more requests may follow (RFC 9112, 9.6), but the final response does.
            (None, close) => self.closing |= close,
            (Some(state), close) => {
                sink.head(&ResponseHead {
                    status,
                    headers: response.headers,
                });
                self.status = status;
                self.reusable = !close && !self.closing;
                self.state = state;
            }
        }
        Ok(())
    }

    fn read_body(
        &mut self,
        bytes: &[u8],
        sink: &mut impl Sink,
    ) -> Result<ReadProgress, ResponseReadError> {
        match &mut self.state {
            ReaderState::Chunked(chunks) => {
                let (used, data) = chunks.read(bytes, sink)?;
                self.body_bytes += data;
                if chunks.at != At::End {
                    return Ok(ReadProgress::More);
                }
                self.state = ReaderState::Complete;
                Ok(ReadProgress::Done {
                    extra: (bytes.len() - used) as u64,
                })
            }
            ReaderState::Complete => Ok(ReadProgress::Done {
                extra: bytes.len() as u64,
            }),
            ReaderState::Length { left } => {
                sink.content(
                    &bytes[..bytes
                        .len()
                        .min(usize::try_from(*left).unwrap_or(usize::MAX))],
                );
                Ok(self.skip(bytes.len() as u64))
            }
            ReaderState::UntilClose | ReaderState::Head => {
                sink.content(bytes);
                Ok(self.skip(bytes.len() as u64))
            }
        }
    }
}

// The length of a response's body, and whether the connection can be reused: RFC 9112, sections 6.3 and 9.3.
//
// Pure decisions on a parsed head. These functions never guess: a contradictory length is an error.

/// Decides the framing of a response with this status and minor version (0 or 1). `bodiless` means the
/// request was HEAD. Returns the state after the head, or None after a 1xx response, which the final one
/// follows. Also returns whether this is the last response of the connection.
fn framing(
    (status, version): (u16, u8),
    headers: &[httparse::Header<'_>],
    bodiless: bool,
) -> Result<(Option<ReaderState>, bool), ResponseReadError> {
    let said = said(headers);
    match status {
        // 101 switches to another protocol, which was not requested.
        101 => return Err(ResponseReadError::Malformed),
        100..=199 => return Ok((None, said.close)),
        // A status below 100 or from 600 on is invalid, but the response is still a response (RFC 9110, 15).
        _ => {}
    }
    // Rule 1 of section 6.3 overrides the header fields, which describe the response to a different request.
    let body = if bodiless || matches!(status, 204 | 304) {
        ReaderState::Length { left: 0 }
    } else {
        // The other rules in their order. Rule 3: Transfer-Encoding overrides Content-Length.
        match (said.coding, said.length?) {
            (TransferCoding::Chunked, _) => ReaderState::Chunked(Chunks::default()),
            (TransferCoding::Other, _) | (TransferCoding::None, None) => ReaderState::UntilClose,
            (TransferCoding::None, Some(left)) => ReaderState::Length { left },
        }
    };
    // HTTP/1.0 has no transfer codings. A connection that uses them is not trusted further (6.1).
    let trusted = version == 1 || said.coding == TransferCoding::None;
    let persistent = !said.close && (said.keep_alive || version == 1);
    let reusable = trusted && persistent && !matches!(body, ReaderState::UntilClose);
    Ok((Some(body), !reusable))
}

/// Framing information from the headers.
struct FramingHeaders {
    /// The length on which all Content-Length values agree, if any. Malformed if one is no number, or two
    /// differ.
    length: Result<Option<u64>, ResponseReadError>,
    coding: TransferCoding,
    close: bool,
    keep_alive: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TransferCoding {
    None,
    /// The last coding is `chunked`, which marks the end of the body (rule 4).
    Chunked,
    /// Any other last coding, or none: the body ends with the connection (rule 4).
    Other,
}

/// Scans the headers once. Most are distinguished by the length of their name.
fn said(headers: &[httparse::Header<'_>]) -> FramingHeaders {
    let mut said = FramingHeaders {
        length: Ok(None),
        coding: TransferCoding::None,
        close: false,
        keep_alive: false,
    };
    for header in headers {
        let is = |name: &str| model::header::is_same(header.name, name);
        let each = match header.name.len() {
            10 if is("connection") => FramingHeaders::connection,
            14 if is("content-length") => FramingHeaders::content_length,
            17 if is("transfer-encoding") => FramingHeaders::transfer_coding,
            _ => continue,
        };
        for item in header.value.split(|&byte| byte == b',') {
            each(&mut said, item.trim_ascii());
        }
    }
    said
}

impl FramingHeaders {
    fn connection(&mut self, option: &[u8]) {
        self.close |= option.eq_ignore_ascii_case(b"close");
        self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
    }

    fn content_length(&mut self, text: &[u8]) {
        self.length = match (self.length, decimal(text)) {
            (Ok(before), Some(length)) if before.is_none_or(|before| before == length) => {
                Ok(Some(length))
            }
            _ => Err(ResponseReadError::Malformed),
        };
    }

    fn transfer_coding(&mut self, coding: &[u8]) {
        self.coding = match (self.coding, coding) {
            // An empty list element is ignored (RFC 9110, 5.6.1.2). A list without elements is no framing.
            (TransferCoding::None, b"") => TransferCoding::Other,
            (before, b"") => before,
            (_, coding) if coding.eq_ignore_ascii_case(b"chunked") => TransferCoding::Chunked,
            _ => TransferCoding::Other,
        };
    }
}

/// Parses digits only. A sign, a blank or an overflow returns None.
pub(crate) fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |value, &byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    })
}

// The chunked transfer coding, RFC 9112 section 7.1: the ends of chunks, trailers and the body.
//
// ```text
// 1a;ext=1 CR LF  <26 bytes> CR LF   0 CR LF   Trailer: x CR LF   CR LF
// ```
// [`Chunks`] counts data and stores none. Extensions and trailers are not parsed, but an invalid line is an
// error: after a framing error, a body or another response follows, and looks like a trailer. A bare LF does
// not end a line. Proxies and servers disagree on those, so results would depend on which of them answers.

/// Parser state between two bytes of a chunked body.
#[derive(Debug, Default)]
struct Chunks {
    at: At,
    /// The size read so far, then the remaining data of the chunk.
    left: u64,
    /// Bytes of the size line, or of all trailers. Both are limited.
    line_bytes: usize,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum At {
    /// Before the first digit of a size.
    #[default]
    SizeStart,
    SizeDigits,
    /// After blanks, either around extensions (section 7.1.1) or as the padding that old servers add to
    /// sizes.
    SizeBlank,
    /// From the first semicolon on.
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    TrailerStart,
    TrailerName,
    TrailerValue,
    TrailerLf,
    /// After a trailer: the next one, its continuation (section 5.2), or the end.
    TrailerNext,
    EndLf,
    End,
}

impl Chunks {
    /// Number of data bytes before the next framing byte.
    fn data_left(&self) -> u64 {
        if self.at == At::Data { self.left } else { 0 }
    }

    /// Counts `count` data bytes that were not passed to [`read`](Self::read).
    fn skip(&mut self, count: u64) {
        debug_assert!(count <= self.data_left());
        self.left -= count;
        if self.left == 0 {
            self.at = At::DataCr;
        }
    }

    /// Reads bytes up to the end of the body and passes data to `sink`. Returns the number of bytes read and
    /// of data bytes.
    fn read(
        &mut self,
        bytes: &[u8],
        sink: &mut impl Sink,
    ) -> Result<(usize, u64), ResponseReadError> {
        let (mut used, mut data) = (0, 0);
        while used < bytes.len() && self.at != At::End {
            if self.at == At::Data {
                let count = self.left.min((bytes.len() - used) as u64);
                self.skip(count);
                sink.content(&bytes[used..used + count as usize]);
                data += count;
                used += count as usize;
            } else {
                self.step(bytes[used])?;
                used += 1;
            }
        }
        Ok((used, data))
    }

    /// Processes one byte of framing.
    fn step(&mut self, byte: u8) -> Result<(), ResponseReadError> {
        self.at = match (self.at, byte) {
            (At::SizeStart | At::SizeDigits, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                self.digit(byte)?
            }
            (At::SizeDigits | At::SizeBlank | At::Extension, b'\r') => At::SizeLf,
            (At::SizeDigits | At::SizeBlank, b' ' | b'\t') => self.within_line(At::SizeBlank)?,
            (At::SizeDigits | At::SizeBlank, b';') => self.within_line(At::Extension)?,
            (At::Extension, byte) if is_text(byte) => self.within_line(At::Extension)?,
            (At::SizeLf, b'\n') => self.size_known(),
            (At::DataCr, b'\r') => At::DataLf,
            (At::DataLf, b'\n') => At::SizeStart,
            (At::TrailerStart | At::TrailerNext, b'\r') => At::EndLf,
            (At::TrailerNext, b' ' | b'\t') => self.within_line(At::TrailerValue)?,
            (At::TrailerName, b':') => self.within_line(At::TrailerValue)?,
            (At::TrailerStart | At::TrailerNext | At::TrailerName, byte) if is_token(byte) => {
                self.within_line(At::TrailerName)?
            }
            (At::TrailerValue, b'\r') => At::TrailerLf,
            (At::TrailerValue, byte) if is_text(byte) => self.within_line(At::TrailerValue)?,
            (At::TrailerLf, b'\n') => At::TrailerNext,
            (At::EndLf, b'\n') => At::End,
            _ => return Err(ResponseReadError::Malformed),
        };
        Ok(())
    }

    fn digit(&mut self, byte: u8) -> Result<At, ResponseReadError> {
        if self.at == At::SizeStart {
            self.left = 0;
            self.line_bytes = 0;
        }
        let value = (byte as char)
            .to_digit(16)
            .ok_or(ResponseReadError::Malformed)?;
        self.left = self
            .left
            .checked_mul(16)
            .ok_or(ResponseReadError::Malformed)?
            + u64::from(value);
        self.within_line(At::SizeDigits)
    }

    fn size_known(&mut self) -> At {
        self.line_bytes = 0;
        if self.left == 0 {
            At::TrailerStart
        } else {
            At::Data
        }
    }

    fn within_line(&mut self, next: At) -> Result<At, ResponseReadError> {
        self.line_bytes += 1;
        if self.line_bytes > HEAD_LIMIT_BYTES {
            Err(ResponseReadError::TooLarge)
        } else {
            Ok(next)
        }
    }
}

/// Whether a line may contain this byte: anything but control characters (RFC 9110, section 5.5).
fn is_text(byte: u8) -> bool {
    byte == b'\t' || !byte.is_ascii_control()
}

/// Whether a field name may contain this byte (RFC 9110, section 5.6.2).
pub(crate) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// The values of all fields with this name, each on one line.
pub(crate) fn values<'a>(
    head: &ResponseHead<'a>,
    name: &str,
) -> impl Iterator<Item = Cow<'a, [u8]>> {
    head.headers
        .iter()
        .filter(move |field| model::header::is_same(field.name, name))
        .map(|field| unfolded(field.value.trim_ascii()))
}

/// A value on one line. Each fold with surrounding blanks becomes one blank (RFC 9112, section 5.2).
pub(crate) fn unfolded(value: &[u8]) -> Cow<'_, [u8]> {
    if !value.contains(&b'\n') {
        return Cow::Borrowed(value);
    }
    let lines: Vec<_> = value
        .split(|&byte| byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .collect();
    Cow::Owned(lines.join(&b' '))
}
