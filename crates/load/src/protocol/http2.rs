//! HTTP/2 on one connection: a stream for each request, by the `h2` crate.
//!
//! That crate is written for asynchronous sockets. Here it gets a pipe in memory and is polled whenever bytes have arrived or
//! a request begins, so that the same drivers and the same simulation serve both protocols; no runtime runs.

mod message;
mod stream;

use std::cell::RefCell;
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::{fmt, io};

use bytes::Bytes;
use h2::client;
use h2::client::SendRequest;
use model::{Cause, Phase};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{Handshake, Row, Session};
use crate::arena::RequestArena;
use crate::connection::{Effect, InFlight, Recorder};
use crate::worker::Settings;
use message::Message;
use stream::{Stream, Turn};

/// Flow control is not what is measured: windows are as wide as they are of use to anybody.
const WINDOW_BYTES: u32 = 1 << 24;

/// The longest head that is decoded. Far more than is accepted, so that one too large is told from one that is malformed.
const HEAD_DECODED_BYTES: u32 = 1 << 20;

/// Acknowledgements that may wait for a peer that does not read: each costs memory, and a peer that asks for more of them means harm.
/// nghttp2 has the same limit.
const UNREAD_ACKNOWLEDGEMENTS_MAX: u32 = 1000;

/// See [`Row`].
pub(super) const ROW: Row = Row {
    name: "HTTP/2",
    alpn: "h2",
    needs_alpn: true,
    writes_rendered: false,
    lanes: ("load.streams", "streams of a connection"),
    has_form: message::has_form,
    begin: |lanes, tls| Box::new(Http2::new(lanes, tls)),
};

/// See the module's text.
#[derive(Default)]
struct Http2 {
    /// Requests in flight, at most, if the server allows as many.
    lanes: usize,
    pipe: Pipe,
    scheme: &'static str,
    /// None where the protocol's side of it has ended or failed.
    connection: Option<client::Connection<Pipe, Bytes>>,
    sender: Option<SendRequest<Bytes>>,
    /// Requests can be sent.
    ready: bool,
    /// They could be sent at some time: the peer's settings have come.
    was_ready: bool,
    /// The peer has said that it takes no more.
    leaving: bool,
    /// Since when no request can be sent, though none is under way.
    barred_ns: Option<u64>,
    streams: Vec<Stream>,
    /// The request sent last, by where its bytes are in the arena, which never moves them.
    last: Option<((usize, usize), Message)>,
    frames: Frames,
    /// Acknowledgements since the peer had read everything.
    unread_acknowledgements: u32,
    /// Written by the protocol and to be written to the peer, from `written` on.
    output: Vec<u8>,
    written: usize,
    received_ns: u64,
    /// Why the protocol gave the connection up.
    ending: Option<Cause>,
}

impl Http2 {
    /// A connection whose preface is there to be written.
    fn new(lanes: usize, tls: bool) -> Http2 {
        let mut builder = client::Builder::new();
        builder
            .initial_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES)
            .max_header_list_size(HEAD_DECODED_BYTES)
            .enable_push(false)
            // So that the peer's settings can be told from none: they come before the first request.
            .initial_max_send_streams(0);
        let mut http2 = Http2 { lanes, scheme: if tls { "https" } else { "http" }, ..Http2::default() };
        // It writes the preface and waits for nothing, since the pipe takes everything.
        match pin!(builder.handshake::<Pipe, Bytes>(http2.pipe.clone())).poll(&mut context()) {
            Poll::Ready(Ok((sender, connection))) => {
                (http2.sender, http2.connection) = (Some(sender), Some(connection));
            }
            Poll::Ready(Err(error)) => http2.ending = Some(ending(&error)),
            Poll::Pending => http2.ending = Some(Cause::Malformed),
        }
        http2.flush();
        http2
    }

    fn oldest_sent_ns(&self) -> Option<u64> {
        self.streams.iter().map(|stream| stream.request.sent_ns).min()
    }

    /// The request that was rendered as `bytes`; the last one is kept, since it is usually the next.
    fn message(&mut self, bytes: &[u8]) -> Option<Message> {
        let place = (bytes.as_ptr() as usize, bytes.len());
        match &self.last {
            Some((last, message)) if *last == place => Some(message.clone()),
            _ => {
                let message = message::request(bytes, self.scheme)?;
                self.last = Some((place, message.clone()));
                Some(message)
            }
        }
    }

    fn poll_connection(&mut self) {
        if let Some(connection) = &mut self.connection
            && let Poll::Ready(end) = Pin::new(connection).poll(&mut context())
        {
            self.ending = Some(end.map_or_else(|error| ending(&error), |()| Cause::Closed));
            (self.connection, self.ready) = (None, false);
        }
    }

    fn work(&mut self, recorder: &mut Recorder<'_>) -> Effect {
        self.flush();
        let under_way = self.streams.len();
        let victims = self.poll_streams(recorder);
        if self.streams.len() < under_way {
            // The last of them may have been all that the connection waited for.
            self.flush();
        }
        let is_barred = self.was_ready && !self.ready && self.streams.is_empty();
        self.barred_ns = is_barred.then(|| self.barred_ns.unwrap_or(recorder.now_ns));
        match self.ending {
            None => Effect::Free,
            // Whoever waits for the settings will book it.
            Some(_) if !self.was_ready => Effect::Lost,
            // In good order, as after `Connection: close`.
            Some(Cause::Closed) if self.streams.is_empty() => Effect::Lost,
            Some(cause) => {
                self.give_up(cause, victims, recorder);
                Effect::Lost
            }
        }
    }

    /// Books the streams that have come to an end; how many of them because the connection has.
    fn poll_streams(&mut self, recorder: &mut Recorder<'_>) -> usize {
        let (mut index, mut victims) = (0, 0);
        while let Some(stream) = self.streams.get_mut(index) {
            let turn = if stream.has_news() { stream.poll(recorder) } else { Turn::More };
            if matches!(turn, Turn::More) {
                index += 1;
                continue;
            }
            let stream = self.streams.swap_remove(index);
            match turn {
                Turn::Lost(cause) => {
                    victims += usize::from(matches!(cause, Cause::ClosedEarly | Cause::Malformed));
                    recorder.fail(&stream.request, stream.phase(), cause);
                }
                _ => recorder.completed(stream.request, stream.status, stream.body_bytes),
            }
        }
        victims
    }

    /// The connection has ended. That it did is an event of its own only where it took no request with it.
    fn give_up(&mut self, cause: Cause, victims: usize, recorder: &mut Recorder<'_>) {
        if victims == 0 || !self.streams.is_empty() {
            self.failed(cause, recorder);
        }
    }
}

impl Session for Http2 {
    fn handshake(&self) -> Handshake {
        match self.ending {
            _ if self.ready => Handshake::Done,
            None => Handshake::Pending,
            Some(Cause::Closed) => Handshake::Failed(Cause::ClosedEarly),
            Some(cause) => Handshake::Failed(cause),
        }
    }

    fn room(&self) -> usize {
        match &self.sender {
            Some(sender) if self.ready => {
                sender.current_max_send_streams().min(self.lanes).saturating_sub(self.streams.len())
            }
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
            None => self.oldest_sent_ns().map(|sent_ns| sent_ns + settings.timeout_ns),
        }
    }

    fn begin(&mut self, request: InFlight, arena: &RequestArena) {
        let bytes = arena.bytes(request.choice);
        self.barred_ns = None;
        let message = self.message(bytes);
        self.streams.push(Stream::begin(request, self.sender.as_mut(), message));
    }

    fn output<'a>(&'a self, _arena: &'a RequestArena) -> Option<&'a [u8]> {
        Some(&self.output[self.written..]).filter(|rest| !rest.is_empty())
    }

    fn wrote(&mut self, count: usize, _arena: &RequestArena) {
        self.written += count;
        if self.written >= self.output.len() {
            self.output.clear();
            (self.written, self.unread_acknowledgements) = (0, 0);
        }
    }

    fn received(&mut self, bytes: &[u8], recorder: &mut Recorder<'_>) -> Effect {
        self.received_ns = recorder.now_ns;
        let seen = self.frames.follow(bytes);
        self.unread_acknowledgements += seen.to_acknowledge;
        let mut from = 0;
        for at in seen.resets {
            // What a response was before it was reset can only be told before: the `h2` crate forgets whether it had ended.
            self.pipe.put(&bytes[from..at]);
            from = at;
            if self.work(recorder) == Effect::Lost {
                return Effect::Lost;
            }
        }
        self.pipe.put(&bytes[from..]);
        match self.work(recorder) {
            Effect::Free if self.unread_acknowledgements > UNREAD_ACKNOWLEDGEMENTS_MAX => {
                self.failed(Cause::Malformed, recorder);
                Effect::Lost
            }
            effect => effect,
        }
    }

    fn ended(&mut self, _cut: bool, recorder: &mut Recorder<'_>) -> Effect {
        let announced = self.leaving;
        self.pipe.end();
        self.flush();
        let victims = self.poll_streams(recorder);
        if !(self.streams.is_empty() && announced) {
            self.give_up(Cause::ClosedEarly, victims, recorder);
        }
        Effect::Lost
    }

    fn failed(&mut self, cause: Cause, recorder: &mut Recorder<'_>) {
        if self.streams.is_empty() {
            // Nothing was owed.
            let cause = if cause == Cause::ClosedEarly { Cause::Closed } else { cause };
            return recorder.error(Phase::Idle, cause);
        }
        for stream in self.streams.drain(..) {
            let cause = if cause == Cause::Closed { Cause::ClosedEarly } else { cause };
            recorder.fail(&stream.request, stream.phase(), cause);
        }
    }

    /// Gives up the streams whose time is up; and the connection, when nothing at all has come on it meanwhile, or when it has
    /// taken no request for as long as one may take to open.
    fn expired(&mut self, settings: &Settings, recorder: &mut Recorder<'_>) -> Effect {
        self.poll_streams(recorder);
        if self.streams.is_empty() {
            return match self.barred_ns {
                Some(since_ns) if since_ns + settings.connect_timeout_ns <= recorder.now_ns => {
                    recorder.error(Phase::Idle, Cause::Timeout);
                    Effect::Lost
                }
                _ => self.work(recorder),
            };
        }
        // A request is often sent at the very time at which something was received.
        let silent = self.oldest_sent_ns().is_some_and(|sent_ns| self.received_ns <= sent_ns);
        let late = |stream: &mut Stream| stream.request.sent_ns + settings.timeout_ns <= recorder.now_ns;
        let late: Vec<_> = self.streams.extract_if(.., late).collect();
        late.iter().for_each(|stream| recorder.fail(&stream.request, stream.phase(), Cause::Timeout));
        let none_late = late.is_empty();
        // Dropped, it tells the peer that nobody waits any more.
        drop(late);
        if none_late || !silent {
            return self.work(recorder);
        }
        for stream in self.streams.drain(..) {
            recorder.fail(&stream.request, stream.phase(), Cause::Abandoned);
        }
        Effect::Lost
    }

    fn leave(&mut self, recorder: &mut Recorder<'_>) {
        self.streams.drain(..).for_each(|stream| recorder.leave_unfinished(&stream.request));
    }

    /// Lets the protocol work off what it has got and write what it wants to.
    fn flush(&mut self) {
        loop {
            self.poll_connection();
            // What has been written makes room for more of a long body, as far as the peer has opened its windows.
            let mut more = false;
            for stream in &mut self.streams {
                more |= stream.upload();
            }
            if !more {
                break;
            }
        }
        if let Some(sender) = &mut self.sender {
            let ready = sender.poll_ready(&mut context());
            self.leaving |= matches!(ready, Poll::Ready(Err(_)));
            let ready = matches!(ready, Poll::Ready(Ok(())));
            self.ready = self.connection.is_some() && ready && sender.current_max_send_streams() > 0;
            self.was_ready |= self.ready;
        }
        self.pipe.take_output(&mut self.output);
    }
}

impl fmt::Debug for Http2 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http2").field("streams", &self.streams.len()).finish_non_exhaustive()
    }
}

/// Nobody waits: the connection is polled whenever bytes have come.
fn context() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

/// Why the protocol gave a connection up.
fn ending(error: &h2::Error) -> Cause {
    if error.is_io() || error.is_remote() { Cause::ClosedEarly } else { Cause::Malformed }
}

// Where frames begin in what the peer sends, and of which kind they are: as much as the `h2` crate does not tell.

/// Length, type, flags and stream of a frame (RFC 9113, section 4.1).
const HEAD_BYTES: usize = 9;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const ACK: u8 = 1;

/// Follows the frames of a connection, however their bytes are cut.
#[derive(Debug, Default)]
struct Frames {
    head: [u8; HEAD_BYTES],
    /// How much of the head has come.
    head_bytes: usize,
    /// How much of the frame's payload is still to come.
    left: usize,
}

/// What some bytes contain.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    /// Where frames begin that reset a stream, behind other bytes.
    resets: Vec<usize>,
    /// Frames that have to be acknowledged.
    to_acknowledge: u32,
}

impl Frames {
    /// Looks at the next bytes.
    fn follow(&mut self, bytes: &[u8]) -> Seen {
        let mut seen = Seen::default();
        let mut at = 0;
        while at < bytes.len() {
            let skipped = self.left.min(bytes.len() - at);
            (self.left, at) = (self.left - skipped, at + skipped);
            let (begin, wanted) = (at, HEAD_BYTES - self.head_bytes);
            let piece = &bytes[at..bytes.len().min(at + wanted)];
            let is_behind = self.head_bytes == 0 && begin > 0;
            self.head[self.head_bytes..self.head_bytes + piece.len()].copy_from_slice(piece);
            (self.head_bytes, at) = (self.head_bytes + piece.len(), at + piece.len());
            if self.head_bytes < HEAD_BYTES {
                break;
            }
            let [high, middle, low, kind, flags, ..] = self.head;
            self.left = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
            self.head_bytes = 0;
            match kind {
                RST_STREAM if is_behind => seen.resets.push(begin),
                SETTINGS | PING => seen.to_acknowledge += u32::from(flags & ACK == 0),
                _ => {}
            }
        }
        seen
    }
}

// The socket that the `h2` crate believes it has: two buffers, filled and emptied by the connection.

/// Both ends of it.
#[derive(Clone, Default)]
struct Pipe(Rc<RefCell<Buffers>>);

#[derive(Default)]
struct Buffers {
    /// From the peer, read up to `read`.
    input: Vec<u8>,
    read: usize,
    ended: bool,
    /// To the peer.
    output: Vec<u8>,
}

impl Pipe {
    /// Bytes from the peer.
    fn put(&self, bytes: &[u8]) {
        self.0.borrow_mut().input.extend_from_slice(bytes);
    }

    /// The peer sends no more.
    fn end(&self) {
        self.0.borrow_mut().ended = true;
    }

    /// Moves what was written for the peer to the end of `output`.
    fn take_output(&self, output: &mut Vec<u8>) {
        let mut buffers = self.0.borrow_mut();
        if output.is_empty() {
            std::mem::swap(output, &mut buffers.output);
        } else {
            output.append(&mut buffers.output);
        }
    }
}

impl AsyncRead for Pipe {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut buffers = self.0.borrow_mut();
        let count = into.remaining().min(buffers.input.len() - buffers.read);
        if count == 0 && !buffers.ended {
            return Poll::Pending;
        }
        into.put_slice(&buffers.input[buffers.read..buffers.read + count]);
        buffers.read += count;
        if buffers.read == buffers.input.len() {
            buffers.input.clear();
            buffers.read = 0;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.borrow_mut().output.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
