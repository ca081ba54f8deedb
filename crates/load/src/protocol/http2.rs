//! HTTP/2 on one connection: one stream per request. Frames are parsed in place and written into one buffer.
//!
//! A protocol error ends the connection with [`Cause::Malformed`]. An error of one stream ends only that
//! stream.
//! Source: RFC 9113.

pub(crate) mod frame;
mod hearing;
mod hpack;
#[cfg(any(test, fuzzing))]
#[path = "http2/tests/pieces.rs"]
pub(crate) mod pieces;
mod request;
mod response;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::ops::Range;
use std::task::Poll;

use model::{Cause, Phase};

use self::frame::*;
use self::hpack::{Decoder, Encoder};
use self::response::ResponseShape;
use super::{ProtocolRow, Session};
use crate::arena::RequestArena;
use crate::in_flight::InFlight;
use crate::protocol::ConnectionEffect;
use crate::reader::HEADERS_LIMIT;
use crate::recorder::Recorder;
use crate::settings::WorkerSettings;

/// Flow control is not measured, so windows are as wide as is useful.
const WINDOW_BYTES: u32 = 1 << 24;

/// Initial window size (RFC 9113, section 6.9.2), and its maximum.
const WINDOW_AT_FIRST: i64 = 65_535;
const WINDOW_MAX: i64 = i32::MAX as i64;

/// Maximum block assembled from pieces: four times the limit of a head, so that a head that is too large is
/// distinguished from a malformed one.
const BLOCK_MAX: usize = 1 << 18;

/// Maximum number of replies queued for a peer that does not read. Each costs memory, and a peer that causes
/// more is hostile. nghttp2 has the same limit.
const UNREAD_ANSWERS_MAX: u32 = 1000;

/// Maximum bytes of request bodies prepared ahead of the socket.
const UPLOAD_AHEAD_BYTES: usize = 1 << 18;

pub(super) const ROW: ProtocolRow = ProtocolRow {
    name: "HTTP/2",
    alpn: "h2",
    needs_alpn: true,
    writes_rendered: false,
    lanes: ("load.streams", "streams of a connection"),
    has_form: request::has_form,
    begin: |lanes, tls| Box::new(Http2::new(lanes, tls)),
};

#[derive(Default)]
struct Http2 {
    /// Maximum requests in flight, if the server allows this number.
    lanes: usize,
    scheme: &'static str,
    /// Ordered by number, and so by age.
    streams: VecDeque<Http2Stream>,
    /// The number of the next stream.
    next: u32,
    encoder: Encoder,
    /// The block of the last request, if encoding it again would give the same block. Identified by its place
    /// in the arena, which never moves its bytes.
    last: Option<Rendered>,
    decoder: Decoder,
    /// Shape of the last block.
    shape: ResponseShape,
    peer: PeerLimits,
    /// The peer's settings have arrived, and it has allowed a request once.
    was_ready: bool,
    /// Start of the period in which no request can be sent although none is in flight.
    barred_ns: Option<u64>,
    /// Set if the peer takes no more requests or stream numbers are used up, with whether the end is orderly.
    leaving: Option<Leaving>,
    reading: FrameProgress,
    /// Bytes received since the peer's window for the connection was last extended.
    unopened: u32,
    /// Replies queued since the peer last read all or much of the output.
    unread_answers: u32,
    /// Output for the peer, to be written from `written` on.
    output: Vec<u8>,
    written: usize,
    received_ns: u64,
    /// The reason the connection is no longer usable.
    ending: Option<Cause>,
}

/// Limits set by the peer.
#[derive(Debug)]
struct PeerLimits {
    /// `None` until the peer has sent a limit.
    streams: Option<usize>,
    /// Remaining window of the connection, and the initial window of a stream.
    window: i64,
    stream_window: i64,
    payload: usize,
}

impl Default for PeerLimits {
    fn default() -> PeerLimits {
        let (window, stream_window) = (WINDOW_AT_FIRST, WINDOW_AT_FIRST);
        PeerLimits {
            streams: None,
            window,
            stream_window,
            payload: PAYLOAD_MAX,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaving {
    InOrder,
    WithError,
}

/// An encoded request that is sent repeatedly.
#[derive(Debug)]
struct Rendered {
    /// `None` if it cannot be reused.
    place: Option<(usize, usize)>,
    block: Vec<u8>,
    body_from: usize,
}

/// Progress of reading a frame.
#[derive(Debug, Default)]
struct FrameProgress {
    frame: Option<Http2Frame>,
    /// The beginning of a frame's head or payload that arrived in pieces. Nearly always empty.
    held: Vec<u8>,
    /// DATA: remaining bytes, the last of which are padding.
    left: usize,
    padding: Option<usize>,
    /// HEADERS whose block continues in the next frame: the stream and flags, and the block so far.
    open_block: Option<(Http2Frame, Vec<u8>)>,
}

/// A request in flight: its body as far as the peer's windows allow, and its response as it arrives.
struct Http2Stream {
    number: u32,
    request: InFlight,
    /// Range of the rendered request that is not handed over yet.
    upload: Range<usize>,
    window: i64,
    status: u16,
    has_head: bool,
    length: Option<u64>,
    body_bytes: u64,
    unopened: u32,
}

impl Http2Stream {
    fn phase(&self) -> Phase {
        match self.has_head {
            true => Phase::Body,
            false if self.upload.is_empty() => Phase::Head,
            false => Phase::Send,
        }
    }

    /// Whether the response has the length given in its head, if there is one and the response can have a
    /// body.
    fn is_whole(&self) -> Option<bool> {
        let has_body = !self.request.choice.bodiless && !matches!(self.status, 204 | 304);
        self.length
            .filter(|_| has_body)
            .map(|length| length == self.body_bytes)
    }
}

impl Http2 {
    /// Creates a connection with its preface in the output.
    fn new(lanes: usize, tls: bool) -> Http2 {
        let mut output = PREFACE.to_vec();
        let settings = [
            (SETTINGS_ENABLE_PUSH, 0),
            (SETTINGS_INITIAL_WINDOW_SIZE, WINDOW_BYTES),
        ];
        let payload: Vec<u8> = settings
            .iter()
            .flat_map(|(name, value)| name.to_be_bytes().into_iter().chain(value.to_be_bytes()))
            .collect();
        push(&mut output, SETTINGS, 0, 0, &payload);
        let more = WINDOW_BYTES - WINDOW_AT_FIRST as u32;
        push(&mut output, WINDOW_UPDATE, 0, 0, &more.to_be_bytes());
        let scheme = if tls { "https" } else { "http" };
        Http2 {
            lanes,
            scheme,
            next: 1,
            output,
            ..Http2::default()
        }
    }

    fn find(&self, number: u32) -> Option<usize> {
        match self.streams.front() {
            Some(first) if first.number == number => Some(0),
            _ => self
                .streams
                .binary_search_by_key(&number, |stream| stream.number)
                .ok(),
        }
    }

    fn reset(&mut self, number: u32, code: u32) {
        push(&mut self.output, RST_STREAM, 0, number, &code.to_be_bytes());
    }

    /// Records a stream as failed, and resets it if the peer does not know.
    fn lose(&mut self, index: usize, cause: Cause, code: Option<u32>, recorder: &mut Recorder<'_>) {
        let Some(stream) = self.streams.remove(index) else {
            return;
        };
        recorder.fail(&stream.request, stream.phase(), cause);
        if let Some(code) = code {
            self.reset(stream.number, code);
        }
    }

    /// Handles the end of the response.
    fn complete(&mut self, index: usize, recorder: &mut Recorder<'_>) {
        if self.streams[index].is_whole() == Some(false) {
            return self.lose(index, Cause::Malformed, Some(PROTOCOL_ERROR), recorder);
        }
        let Some(stream) = self.streams.remove(index) else {
            return;
        };
        if !stream.upload.is_empty() {
            // The rest of the request is not needed.
            self.reset(stream.number, CANCEL);
        }
        recorder.completed(stream.request, stream.status, stream.body_bytes);
    }

    /// Encodes the head of the request rendered as `bytes`. Returns the offset of its body.
    fn push_head(&mut self, stream: u32, bytes: &[u8], is_arenas: bool) -> usize {
        let Http2 {
            encoder,
            scheme,
            last,
            output,
            ..
        } = self;
        let place = is_arenas.then_some((bytes.as_ptr() as usize, bytes.len()));
        let rendered = match last.take() {
            Some(rendered) if place.is_some() && rendered.place == place => rendered,
            // A user's cookies may add one field to those checked before the load.
            _ => request::with_fields::<{ HEADERS_LIMIT + 1 }, _>(
                bytes,
                scheme,
                |fields, body_from| {
                    let (block, is_same) = encoder.encode(fields.iter().copied());
                    Rendered {
                        place: place.filter(|_| is_same),
                        block: block.to_vec(),
                        body_from,
                    }
                },
            )
            .expect("requests without a form in HTTP/2 are refused before the load"),
        };
        let mut pieces = rendered.block.chunks(self.peer.payload).peekable();
        let mut kind = HEADERS;
        while let Some(piece) = pieces.next() {
            let ends = kind == HEADERS && rendered.body_from == bytes.len();
            let flags = if ends { END_STREAM } else { 0 }
                | if pieces.peek().is_none() {
                    END_HEADERS
                } else {
                    0
                };
            push(output, kind, flags, stream, piece);
            kind = CONTINUATION;
        }
        let body_from = rendered.body_from;
        *last = Some(rendered);
        body_from
    }

    /// Prepares as much of the requests' bodies as the peer's windows allow, one frame of each in turn.
    fn upload(&mut self, arena: &RequestArena) {
        if self.written > UPLOAD_AHEAD_BYTES {
            // A slow peer that keeps reading may never catch up, so written bytes are dropped.
            self.output.drain(..self.written);
            (self.written, self.unread_answers) = (0, 0);
        }
        let mut more = true;
        while std::mem::take(&mut more) {
            for stream in self
                .streams
                .iter_mut()
                .filter(|stream| !stream.upload.is_empty())
            {
                let ahead = UPLOAD_AHEAD_BYTES.saturating_sub(self.output.len() - self.written);
                let window = self.peer.window.min(stream.window).max(0) as usize;
                let count = stream
                    .upload
                    .len()
                    .min(self.peer.payload)
                    .min(window)
                    .min(ahead);
                if count == 0 {
                    continue;
                }
                let piece = stream.upload.start..stream.upload.start + count;
                stream.upload.start = piece.end;
                stream.window -= count as i64;
                self.peer.window -= count as i64;
                let flags = if stream.upload.is_empty() {
                    END_STREAM
                } else {
                    0
                };
                let bytes = &stream.request.bytes(arena)[piece];
                push(&mut self.output, DATA, flags, stream.number, bytes);
                more = true;
            }
        }
    }

    /// Determines the effect of the bytes.
    fn settle(&mut self, recorder: &mut Recorder<'_>) -> ConnectionEffect {
        let can_send = self.leaving.is_none() && self.peer.streams != Some(0);
        self.was_ready |= can_send && self.peer.streams.is_some() && self.ending.is_none();
        let is_barred = self.was_ready && !can_send && self.streams.is_empty();
        self.barred_ns = is_barred.then(|| self.barred_ns.unwrap_or(recorder.now_ns));
        if self.unread_answers > UNREAD_ANSWERS_MAX {
            self.ending.get_or_insert(Cause::Malformed);
        }
        match (self.ending, self.leaving) {
            // The connection waiting for the settings records the error.
            (Some(_), _) if !self.was_ready => ConnectionEffect::Lost,
            (Some(cause), _) => {
                self.failed(cause, recorder);
                ConnectionEffect::Lost
            }
            (None, Some(_)) if !self.was_ready => {
                self.ending = Some(Cause::ClosedEarly);
                ConnectionEffect::Lost
            }
            (None, Some(leaving)) if self.streams.is_empty() => {
                if leaving == Leaving::WithError {
                    recorder.tally.error(Phase::Idle, Cause::Closed);
                }
                ConnectionEffect::Lost
            }
            _ if self.written < self.output.len() || self.streams.len() < self.lanes => {
                ConnectionEffect::Free
            }
            _ => ConnectionEffect::None,
        }
    }
}

impl Session for Http2 {
    fn handshake(&self) -> Poll<Result<(), Cause>> {
        match self.ending {
            _ if self.was_ready => Poll::Ready(Ok(())),
            None => Poll::Pending,
            Some(cause) => Poll::Ready(Err(cause)),
        }
    }

    fn room(&self) -> usize {
        match (self.peer.streams, self.leaving, self.ending) {
            (Some(allowed), None, None) => {
                allowed.min(self.lanes).saturating_sub(self.streams.len())
            }
            _ => 0,
        }
    }

    fn in_flight(&self) -> usize {
        self.streams.len()
    }

    /// Time limit of the oldest request, or of waiting for permission to send.
    fn due_ns(&self, settings: &WorkerSettings) -> Option<u64> {
        match self.barred_ns {
            Some(since_ns) => Some(since_ns + settings.connect_timeout_ns),
            None => self
                .streams
                .front()
                .map(|stream| stream.request.sent_ns + settings.timeout_ns),
        }
    }

    fn begin(&mut self, request: InFlight, arena: &RequestArena) {
        let bytes = request.bytes(arena);
        let (number, length) = (self.next, bytes.len());
        self.next += 2;
        if self.next > i32::MAX as u32 {
            self.leaving = Some(Leaving::InOrder);
        }
        self.barred_ns = None;
        let body_from = self.push_head(number, bytes, request.own.is_none());
        self.streams.push_back(Http2Stream {
            number,
            request,
            upload: body_from..length,
            window: self.peer.stream_window,
            status: 0,
            has_head: false,
            length: None,
            body_bytes: 0,
            unopened: 0,
        });
        if body_from < length {
            self.upload(arena);
        }
    }

    fn output<'a>(&'a self, _arena: &'a RequestArena) -> Option<&'a [u8]> {
        Some(&self.output[self.written..]).filter(|rest| !rest.is_empty())
    }

    fn wrote(&mut self, count: usize, arena: &RequestArena) {
        self.written += count;
        if self.written >= self.output.len() {
            self.output.clear();
            (self.written, self.unread_answers) = (0, 0);
            self.upload(arena);
        }
    }

    fn received(&mut self, bytes: &[u8], recorder: &mut Recorder<'_>) -> ConnectionEffect {
        self.received_ns = recorder.now_ns;
        if let Err(cause) = self.read(bytes, recorder) {
            self.ending = Some(cause);
        }
        self.settle(recorder)
    }

    fn ended(&mut self, _cut: bool, recorder: &mut Recorder<'_>) -> ConnectionEffect {
        if !(self.streams.is_empty() && self.leaving.is_some()) {
            self.failed(Cause::ClosedEarly, recorder);
        }
        ConnectionEffect::Lost
    }

    fn failed(&mut self, cause: Cause, recorder: &mut Recorder<'_>) {
        if self.streams.is_empty() {
            // No response was outstanding.
            let cause = if cause == Cause::ClosedEarly {
                Cause::Closed
            } else {
                cause
            };
            return recorder.tally.error(Phase::Idle, cause);
        }
        for stream in self.streams.drain(..) {
            recorder.fail(&stream.request, stream.phase(), cause);
        }
    }

    /// Abandons expired streams. Also abandons the connection if nothing at all arrived on it meanwhile, or
    /// if it has taken no request for the connect timeout.
    fn expired(&mut self, recorder: &mut Recorder<'_>) -> ConnectionEffect {
        let Recorder {
            now_ns, settings, ..
        } = *recorder;
        if self
            .barred_ns
            .is_some_and(|since_ns| since_ns + settings.connect_timeout_ns <= now_ns)
        {
            recorder.tally.error(Phase::Idle, Cause::Timeout);
            return ConnectionEffect::Lost;
        }
        let under_way = self.streams.len();
        // A request is often sent at the same time at which something was received.
        let silent = self
            .streams
            .front()
            .is_some_and(|stream| self.received_ns <= stream.request.sent_ns);
        while let Some(stream) = self.streams.front()
            && stream.request.sent_ns + settings.timeout_ns <= now_ns
        {
            self.lose(0, Cause::Timeout, Some(CANCEL), recorder);
        }
        if self.streams.len() == under_way || !silent {
            return self.settle(recorder);
        }
        for stream in self.streams.drain(..) {
            recorder.fail(&stream.request, stream.phase(), Cause::Abandoned);
        }
        ConnectionEffect::Lost
    }

    fn leave(&mut self, recorder: &mut Recorder<'_>) {
        self.streams
            .drain(..)
            .for_each(|stream| recorder.leave_unfinished(&stream.request));
    }
}
