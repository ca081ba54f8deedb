//! The response reader: HTTP/1.1 responses out of bytes, however the network happened to cut them.
//!
//! Sans I/O: it is fed byte slices and says when a response is complete. It copies nothing but a head that arrived
//! in pieces, and keeps no body. It must never see a socket or a clock, never panic whatever a server sends, and
//! give the same result for every way of splitting the same bytes (`pieces` says so in code; tests and a fuzz target hold
//! it to that).
//!
//! Source: RFC 9112 (HTTP/1.1), section 6.3 for the length of a body, section 7.1 for chunks.

mod chunks;
mod framing;
#[cfg(any(test, fuzzing))]
#[path = "reader/tests/pieces.rs"]
pub(crate) mod pieces;
#[cfg(test)]
mod tests;

use std::mem::MaybeUninit;

use chunks::Chunks;
use framing::Framing;

/// The longest response head that is accepted; the usual limits of servers and browsers are 8 to 256 KiB.
///
/// The fuzz target comes with short inputs and is to reach the limit, too.
pub(crate) const HEAD_LIMIT_BYTES: usize = if cfg!(fuzzing) { 512 } else { 64 * 1024 };

/// The most header lines that are accepted in one head.
pub(crate) const HEADERS_LIMIT: usize = 128;

/// How much may be thrown away at once of a body that ends only with the connection.
const SKIP_UNBOUNDED: u64 = 1 << 30;

/// What makes a response unreadable. The connection is of no use afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadError {
    /// Not HTTP/1.x, or framed in a way that cannot be trusted.
    Malformed,
    /// The head, or a line of the chunked coding, is longer than [`HEAD_LIMIT_BYTES`].
    TooLarge,
}

/// Where the response stands after some more bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The response is not complete yet.
    More,
    /// The response is complete; `extra` bytes came after its end, which nobody asked for.
    Done { extra: u64 },
}

/// A response head as it is shown to the caller's callback.
pub(crate) struct Head<'a> {
    pub(crate) status: u16,
    pub(crate) headers: &'a [httparse::Header<'a>],
}

/// Looks at a response while it is read.
pub(crate) trait Sink {
    /// The final head; once for each response.
    fn head(&mut self, head: &Head<'_>);

    /// A piece of content, without framing. What is skipped is not shown.
    fn content(&mut self, bytes: &[u8]);
}

/// For those who want the head alone.
impl<F: FnMut(&Head<'_>)> Sink for F {
    fn head(&mut self, head: &Head<'_>) {
        self(head);
    }

    fn content(&mut self, _: &[u8]) {}
}

/// Reads one response after another; see the module's text.
#[derive(Debug)]
pub(crate) struct ResponseReader {
    state: State,
    /// The beginning of a head that arrived in pieces; empty nearly always.
    carry: Vec<u8>,
    /// The request was HEAD: no body follows whatever the head says.
    bodiless: bool,
    status: u16,
    /// An interim response said that the connection ends after this exchange.
    closing: bool,
    reusable: bool,
    body_bytes: u64,
}

#[derive(Debug)]
enum State {
    Head,
    Length { left: u64 },
    Chunked(Chunks),
    UntilClose,
    Complete,
}

impl ResponseReader {
    /// A reader for responses to requests that have a body unless `bodiless` (the method is HEAD).
    pub(crate) fn new(bodiless: bool) -> ResponseReader {
        ResponseReader {
            state: State::Head,
            carry: Vec::new(),
            bodiless,
            status: 0,
            closing: false,
            reusable: false,
            body_bytes: 0,
        }
    }

    /// Forgets the response and waits for the head of the next one; `bodiless` as in [`new`](Self::new).
    pub(crate) fn restart(&mut self, bodiless: bool) {
        self.bodiless = bodiless;
        self.state = State::Head;
        self.carry.clear();
        self.status = 0;
        self.closing = false;
        self.reusable = false;
        self.body_bytes = 0;
    }

    /// The status of the response whose head has been read.
    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    /// Whether the connection may be used again after this response.
    pub(crate) fn reusable(&self) -> bool {
        self.reusable
    }

    /// Bytes of content received so far, without the framing of a chunked body.
    pub(crate) fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// Whether the final head has been read.
    pub(crate) fn in_body(&self) -> bool {
        !matches!(self.state, State::Head)
    }

    /// Takes more bytes and shows `sink` what they contain.
    ///
    /// # Errors
    /// A [`ReadError`]; the reader must not be used afterwards but for [`restart`](Self::restart).
    pub(crate) fn read(&mut self, mut bytes: &[u8], sink: &mut impl Sink) -> Result<Progress, ReadError> {
        while matches!(self.state, State::Head) {
            match self.read_head(bytes, sink)? {
                Some(used) => bytes = &bytes[used..],
                None => return Ok(Progress::More),
            }
        }
        self.read_body(bytes, sink)
    }

    /// How many of the next bytes need not be seen, only counted, by [`skip`](Self::skip).
    ///
    /// For a body of known length it is one more than what is left of it, so that bytes after the end show.
    pub(crate) fn skippable(&self) -> u64 {
        match &self.state {
            State::Length { left } => left.saturating_add(1),
            State::Chunked(chunks) => chunks.data_left(),
            State::UntilClose => SKIP_UNBOUNDED,
            State::Head | State::Complete => 0,
        }
    }

    /// Counts `count` bytes of body that were thrown away unseen; at most [`skippable`](Self::skippable).
    pub(crate) fn skip(&mut self, count: u64) -> Progress {
        match &mut self.state {
            State::Length { left } => {
                let used = count.min(*left);
                *left -= used;
                self.body_bytes += used;
                if *left == 0 {
                    self.state = State::Complete;
                    return Progress::Done { extra: count - used };
                }
            }
            State::Chunked(chunks) => {
                chunks.skip(count);
                self.body_bytes += count;
            }
            State::UntilClose => self.body_bytes += count,
            State::Head | State::Complete => {}
        }
        Progress::More
    }

    /// The peer has ended the connection: true when that is the proper end of this response.
    pub(crate) fn end(&mut self) -> bool {
        let proper = matches!(self.state, State::UntilClose);
        if proper {
            self.state = State::Complete;
        }
        proper
    }

    /// Reads a head; `Some(used)` when one was complete within `bytes`.
    fn read_head(&mut self, bytes: &[u8], sink: &mut impl Sink) -> Result<Option<usize>, ReadError> {
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

    /// Parses a head from its first byte; `Some(length)` when it is complete.
    fn parse(&mut self, bytes: &[u8], sink: &mut impl Sink) -> Result<Option<usize>, ReadError> {
        let bytes = &bytes[..bytes.len().min(HEAD_LIMIT_BYTES)];
        let mut space = [MaybeUninit::<httparse::Header<'_>>::uninit(); HEADERS_LIMIT];
        let mut response = httparse::Response::new(&mut []);
        let mut config = httparse::ParserConfig::default();
        // A user agent must read folded lines (RFC 9112, 5.2); the values keep their line breaks.
        config.allow_obsolete_multiline_headers_in_responses(true);
        let parsed = config.parse_response_with_uninit_headers(&mut response, bytes, &mut space);
        match parsed {
            Ok(httparse::Status::Complete(length)) => {
                self.take_head(&response, sink)?;
                Ok(Some(length))
            }
            Ok(httparse::Status::Partial) if bytes.len() >= HEAD_LIMIT_BYTES => Err(ReadError::TooLarge),
            Ok(httparse::Status::Partial) => Ok(None),
            Err(httparse::Error::TooManyHeaders) => Err(ReadError::TooLarge),
            Err(_) => Err(ReadError::Malformed),
        }
    }

    fn take_head(
        &mut self,
        response: &httparse::Response<'_, '_>,
        sink: &mut impl Sink,
    ) -> Result<(), ReadError> {
        let (Some(status), Some(version)) = (response.code, response.version) else {
            return Err(ReadError::Malformed);
        };
        match framing::of((status, version), response.headers, self.bodiless)? {
            // No more requests may follow (RFC 9112, 9.6), but the final response does.
            Framing::Interim { close } => self.closing |= close,
            Framing::Final { body, reusable } => {
                sink.head(&Head { status, headers: response.headers });
                self.status = status;
                self.reusable = reusable && !self.closing;
                self.state = match body {
                    framing::Body::Length(left) => State::Length { left },
                    framing::Body::Chunked => State::Chunked(Chunks::new()),
                    framing::Body::UntilClose => State::UntilClose,
                };
            }
        }
        Ok(())
    }

    fn read_body(&mut self, bytes: &[u8], sink: &mut impl Sink) -> Result<Progress, ReadError> {
        match &mut self.state {
            State::Chunked(chunks) => {
                let taken = chunks.read(bytes, &mut |data| sink.content(data))?;
                self.body_bytes += taken.data;
                if !taken.done {
                    return Ok(Progress::More);
                }
                self.state = State::Complete;
                Ok(Progress::Done { extra: (bytes.len() - taken.used) as u64 })
            }
            State::Complete => Ok(Progress::Done { extra: bytes.len() as u64 }),
            State::Length { left } => {
                sink.content(&bytes[..bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX))]);
                Ok(self.skip(bytes.len() as u64))
            }
            State::UntilClose | State::Head => {
                sink.content(bytes);
                Ok(self.skip(bytes.len() as u64))
            }
        }
    }
}
