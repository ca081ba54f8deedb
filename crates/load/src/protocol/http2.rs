//! HTTP/2 on one connection: a stream for each request. Frames are read where they lie and written into one buffer.
//!
//! Whatever breaks the protocol costs the connection, as [`Cause::Malformed`]; what concerns one stream costs that stream.
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
use self::response::Shape;
use super::{Row, Session};
use crate::arena::RequestArena;
use crate::connection::{Effect, InFlight, Recorder};
use crate::reader::HEADERS_LIMIT;
use crate::worker::Settings;

/// Flow control is not what is measured: windows are as wide as they are of use to anybody.
const WINDOW_BYTES: u32 = 1 << 24;

/// How wide windows are until somebody says otherwise (RFC 9113, section 6.9.2), and how wide they may become.
const WINDOW_AT_FIRST: i64 = 65_535;
const WINDOW_MAX: i64 = i32::MAX as i64;

/// The longest block that is put together from pieces: four times what a head may hold, so that one too large is told from one that is
/// malformed.
const BLOCK_MAX: usize = 1 << 18;

/// Frames that want an answer and may wait for a peer that does not read: each costs memory, and a peer that sends more of them
/// means harm. nghttp2 has the same limit.
const UNREAD_ANSWERS_MAX: u32 = 1000;

/// How much of requests' bodies is made ready ahead of the socket.
const UPLOAD_AHEAD_BYTES: usize = 1 << 18;

pub(super) const ROW: Row = Row {
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
    /// Requests in flight, at most, if the server allows as many.
    lanes: usize,
    scheme: &'static str,
    /// By their numbers, which is also by age.
    streams: VecDeque<Stream>,
    /// The number of the next stream.
    next: u32,
    encoder: Encoder,
    /// The request sent last, by where its bytes are in the arena, which never moves them: its block, if it would be the same again.
    last: Option<Rendered>,
    decoder: Decoder,
    /// What the last block was.
    shape: Shape,
    peer: Peer,
    /// The peer's settings have come, and it has allowed a request once.
    was_ready: bool,
    /// Since when no request can be sent, though none is under way.
    barred_ns: Option<u64>,
    /// The peer takes no more requests, or there are no more numbers; with whether that was in good order.
    leaving: Option<Leaving>,
    reading: Reading,
    /// Bytes that were received since the peer's window for the connection was opened again.
    unopened: u32,
    /// Answers since the peer had read everything, or much.
    unread_answers: u32,
    /// To be written to the peer, from `written` on.
    output: Vec<u8>,
    written: usize,
    received_ns: u64,
    /// Why the connection is of no use any more.
    ending: Option<Cause>,
}

/// What the peer allows.
#[derive(Debug)]
struct Peer {
    /// `None`: it has not said anything yet.
    streams: Option<usize>,
    /// What it takes on the whole connection, and on a stream that begins.
    window: i64,
    stream_window: i64,
    payload: usize,
}

impl Default for Peer {
    fn default() -> Peer {
        let (window, stream_window) = (WINDOW_AT_FIRST, WINDOW_AT_FIRST);
        Peer { streams: None, window, stream_window, payload: PAYLOAD_MAX }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaving {
    InOrder,
    WithError,
}

/// A request as it goes out again and again.
#[derive(Debug)]
struct Rendered {
    /// `None`: it is not sent again as it is.
    place: Option<(usize, usize)>,
    block: Vec<u8>,
    body_from: usize,
}

/// How far a frame has come.
#[derive(Debug, Default)]
struct Reading {
    frame: Option<Frame>,
    /// The beginning of a frame's head or payload that arrived in pieces; empty nearly always.
    held: Vec<u8>,
    /// DATA: what of it is still to come, the last of which is padding.
    left: usize,
    padding: Option<usize>,
    /// HEADERS whose block goes on in the next frame: the stream and flags, and the block so far.
    open_block: Option<(Frame, Vec<u8>)>,
}

/// A request on its way, its body as far as the peer's windows let it, and its response as it comes.
struct Stream {
    number: u32,
    request: InFlight,
    /// What of the rendered request is not handed over yet.
    upload: Range<usize>,
    window: i64,
    status: u16,
    has_head: bool,
    length: Option<u64>,
    body_bytes: u64,
    unopened: u32,
}

impl Stream {
    fn phase(&self) -> Phase {
        match self.has_head {
            true => Phase::Body,
            false if self.upload.is_empty() => Phase::Head,
            false => Phase::Send,
        }
    }

    /// Whether the response has as many bytes as its head says, if it says so and can have any.
    fn is_whole(&self) -> Option<bool> {
        let has_body = !self.request.choice.bodiless && !matches!(self.status, 204 | 304);
        self.length.filter(|_| has_body).map(|length| length == self.body_bytes)
    }
}

impl Http2 {
    /// A connection whose preface is there to be written.
    fn new(lanes: usize, tls: bool) -> Http2 {
        let mut output = PREFACE.to_vec();
        let settings = [(SETTINGS_ENABLE_PUSH, 0), (SETTINGS_INITIAL_WINDOW_SIZE, WINDOW_BYTES)];
        let payload: Vec<u8> = settings
            .iter()
            .flat_map(|(name, value)| name.to_be_bytes().into_iter().chain(value.to_be_bytes()))
            .collect();
        push(&mut output, SETTINGS, 0, 0, &payload);
        let more = WINDOW_BYTES - WINDOW_AT_FIRST as u32;
        push(&mut output, WINDOW_UPDATE, 0, 0, &more.to_be_bytes());
        let scheme = if tls { "https" } else { "http" };
        Http2 { lanes, scheme, next: 1, output, ..Http2::default() }
    }

    fn find(&self, number: u32) -> Option<usize> {
        match self.streams.front() {
            Some(first) if first.number == number => Some(0),
            _ => self.streams.binary_search_by_key(&number, |stream| stream.number).ok(),
        }
    }

    fn reset(&mut self, number: u32, code: u32) {
        push(&mut self.output, RST_STREAM, 0, number, &code.to_be_bytes());
    }

    /// Books a stream as failed, and tells the peer, if it does not know.
    fn lose(&mut self, index: usize, cause: Cause, code: Option<u32>, recorder: &mut Recorder<'_>) {
        let Some(stream) = self.streams.remove(index) else { return };
        recorder.fail(&stream.request, stream.phase(), cause);
        if let Some(code) = code {
            self.reset(stream.number, code);
        }
    }

    /// The response's end has come.
    fn complete(&mut self, index: usize, recorder: &mut Recorder<'_>) {
        if self.streams[index].is_whole() == Some(false) {
            return self.lose(index, Cause::Malformed, Some(PROTOCOL_ERROR), recorder);
        }
        let Some(stream) = self.streams.remove(index) else { return };
        if !stream.upload.is_empty() {
            // The rest of the request is of no use to anybody.
            self.reset(stream.number, CANCEL);
        }
        recorder.completed(stream.request, stream.status, stream.body_bytes);
    }

    /// Makes ready the head of the request that was rendered as `bytes`; where its body begins.
    fn push_head(&mut self, stream: u32, bytes: &[u8], is_arenas: bool) -> usize {
        let Http2 { encoder, scheme, last, output, .. } = self;
        let place = is_arenas.then_some((bytes.as_ptr() as usize, bytes.len()));
        let rendered = match last.take() {
            Some(rendered) if place.is_some() && rendered.place == place => rendered,
            // A user's cookies may be one field more than was looked at before the load.
            _ => request::with_fields::<{ HEADERS_LIMIT + 1 }, _>(bytes, scheme, |fields, body_from| {
                let (block, is_same) = encoder.encode(fields.iter().copied());
                Rendered { place: place.filter(|_| is_same), block: block.to_vec(), body_from }
            })
            .expect("requests without a form in HTTP/2 are refused before the load"),
        };
        let mut pieces = rendered.block.chunks(self.peer.payload).peekable();
        let mut kind = HEADERS;
        while let Some(piece) = pieces.next() {
            let ends = kind == HEADERS && rendered.body_from == bytes.len();
            let flags =
                if ends { END_STREAM } else { 0 } | if pieces.peek().is_none() { END_HEADERS } else { 0 };
            push(output, kind, flags, stream, piece);
            kind = CONTINUATION;
        }
        let body_from = rendered.body_from;
        *last = Some(rendered);
        body_from
    }

    /// Makes ready as much of the requests' bodies as the peer's windows take: a frame of each in turn.
    fn upload(&mut self, arena: &RequestArena) {
        if self.written > UPLOAD_AHEAD_BYTES {
            // A slow peer that goes on reading may never have all of it: what is written is not kept.
            self.output.drain(..self.written);
            (self.written, self.unread_answers) = (0, 0);
        }
        let mut more = true;
        while std::mem::take(&mut more) {
            for stream in self.streams.iter_mut().filter(|stream| !stream.upload.is_empty()) {
                let ahead = UPLOAD_AHEAD_BYTES.saturating_sub(self.output.len() - self.written);
                let window = self.peer.window.min(stream.window).max(0) as usize;
                let count = stream.upload.len().min(self.peer.payload).min(window).min(ahead);
                if count == 0 {
                    continue;
                }
                let piece = stream.upload.start..stream.upload.start + count;
                stream.upload.start = piece.end;
                stream.window -= count as i64;
                self.peer.window -= count as i64;
                let flags = if stream.upload.is_empty() { END_STREAM } else { 0 };
                let bytes = &stream.request.bytes(arena)[piece];
                push(&mut self.output, DATA, flags, stream.number, bytes);
                more = true;
            }
        }
    }

    /// What the bytes amounted to.
    fn settle(&mut self, recorder: &mut Recorder<'_>) -> Effect {
        let can_send = self.leaving.is_none() && self.peer.streams != Some(0);
        self.was_ready |= can_send && self.peer.streams.is_some() && self.ending.is_none();
        let is_barred = self.was_ready && !can_send && self.streams.is_empty();
        self.barred_ns = is_barred.then(|| self.barred_ns.unwrap_or(recorder.now_ns));
        if self.unread_answers > UNREAD_ANSWERS_MAX {
            self.ending.get_or_insert(Cause::Malformed);
        }
        match (self.ending, self.leaving) {
            // Whoever waits for the settings will book it.
            (Some(_), _) if !self.was_ready => Effect::Lost,
            (Some(cause), _) => {
                self.failed(cause, recorder);
                Effect::Lost
            }
            (None, Some(_)) if !self.was_ready => {
                self.ending = Some(Cause::ClosedEarly);
                Effect::Lost
            }
            (None, Some(leaving)) if self.streams.is_empty() => {
                if leaving == Leaving::WithError {
                    recorder.tally.error(Phase::Idle, Cause::Closed);
                }
                Effect::Lost
            }
            _ if self.written < self.output.len() || self.streams.len() < self.lanes => Effect::Free,
            _ => Effect::None,
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
            (Some(allowed), None, None) => allowed.min(self.lanes).saturating_sub(self.streams.len()),
            _ => 0,
        }
    }

    fn in_flight(&self) -> usize {
        self.streams.len()
    }

    /// When the time of the oldest request is up, or that of waiting for leave to send any.
    fn due_ns(&self, settings: &Settings) -> Option<u64> {
        match self.barred_ns {
            Some(since_ns) => Some(since_ns + settings.connect_timeout_ns),
            None => self.streams.front().map(|stream| stream.request.sent_ns + settings.timeout_ns),
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
        self.streams.push_back(Stream {
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

    fn received(&mut self, bytes: &[u8], recorder: &mut Recorder<'_>) -> Effect {
        self.received_ns = recorder.now_ns;
        if let Err(cause) = self.read(bytes, recorder) {
            self.ending = Some(cause);
        }
        self.settle(recorder)
    }

    fn ended(&mut self, _cut: bool, recorder: &mut Recorder<'_>) -> Effect {
        if !(self.streams.is_empty() && self.leaving.is_some()) {
            self.failed(Cause::ClosedEarly, recorder);
        }
        Effect::Lost
    }

    fn failed(&mut self, cause: Cause, recorder: &mut Recorder<'_>) {
        if self.streams.is_empty() {
            // Nothing was owed.
            let cause = if cause == Cause::ClosedEarly { Cause::Closed } else { cause };
            return recorder.tally.error(Phase::Idle, cause);
        }
        for stream in self.streams.drain(..) {
            recorder.fail(&stream.request, stream.phase(), cause);
        }
    }

    /// Gives up the streams whose time is up; and the connection, when nothing at all has come on it meanwhile, or when it has
    /// taken no request for as long as one may take to open.
    fn expired(&mut self, recorder: &mut Recorder<'_>) -> Effect {
        let Recorder { now_ns, settings, .. } = *recorder;
        if self.barred_ns.is_some_and(|since_ns| since_ns + settings.connect_timeout_ns <= now_ns) {
            recorder.tally.error(Phase::Idle, Cause::Timeout);
            return Effect::Lost;
        }
        let under_way = self.streams.len();
        // A request is often sent at the very time at which something was received.
        let silent = self.streams.front().is_some_and(|stream| self.received_ns <= stream.request.sent_ns);
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
        Effect::Lost
    }

    fn leave(&mut self, recorder: &mut Recorder<'_>) {
        self.streams.drain(..).for_each(|stream| recorder.leave_unfinished(&stream.request));
    }
}
