//! HTTP/2 on one connection: a stream for each request, by the `h2` crate.
//!
//! That crate is written for asynchronous sockets. Here it gets a pipe in memory and is polled whenever bytes have arrived or
//! a request begins, so that the same drivers and the same simulation serve both protocols; no runtime runs.

mod message;
mod pipe;
mod stream;

use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::client::{self, SendRequest};

use super::{Desk, Flight, Heard};
use crate::Protocol;
use crate::corpus::Corpus;
use crate::share::Terms;
pub(crate) use message::has_form;
use message::{Message, Scheme};
use model::{Cause, Phase};
use pipe::Pipe;
use stream::{Stream, Turn};

/// Flow control is not what is measured: windows are as wide as they are of use to anybody.
const WINDOW_BYTES: u32 = 1 << 24;

/// The longest head that is decoded. Far more than is accepted, so that one too large is told from one that is malformed.
const HEAD_DECODED_BYTES: u32 = 1 << 20;

/// See the module's text.
pub(super) struct Http2 {
    pipe: Pipe,
    scheme: Scheme,
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
    /// The request sent last, by where its bytes are in the corpus, which never moves them.
    last: Option<((usize, usize), Message)>,
    /// Written by the protocol and to be written to the peer, from `written` on.
    output: Vec<u8>,
    written: usize,
    heard_ns: u64,
    /// Why the protocol gave the connection up.
    ending: Option<Cause>,
}

impl Http2 {
    /// A connection whose preface is there to be written.
    pub(super) fn new(tls: bool) -> Http2 {
        let pipe = Pipe::default();
        let mut builder = client::Builder::new();
        builder
            .initial_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES)
            .max_header_list_size(HEAD_DECODED_BYTES)
            .enable_push(false)
            // So that the peer's settings can be told from none: they come before the first request.
            .initial_max_send_streams(0);
        let mut http2 = Http2 {
            pipe: pipe.clone(),
            scheme: if tls { Scheme::Https } else { Scheme::Http },
            connection: None,
            sender: None,
            ready: false,
            was_ready: false,
            leaving: false,
            barred_ns: None,
            streams: Vec::new(),
            last: None,
            output: Vec::new(),
            written: 0,
            heard_ns: 0,
            ending: None,
        };
        // It writes the preface and waits for nothing, since the pipe takes everything.
        match pin!(builder.handshake::<Pipe, Bytes>(pipe)).poll(&mut context()) {
            Poll::Ready(Ok((sender, connection))) => {
                (http2.sender, http2.connection) = (Some(sender), Some(connection));
            }
            Poll::Ready(Err(error)) => http2.ending = Some(ending(&error)),
            Poll::Pending => http2.ending = Some(Cause::Malformed),
        }
        http2.flush();
        http2
    }

    /// The peer's settings have come.
    pub(super) fn is_ready(&self) -> bool {
        self.ready
    }

    pub(super) fn room(&self, protocol: Protocol) -> usize {
        let Protocol::Http2 { streams } = protocol else { return 0 };
        match &self.sender {
            Some(sender) if self.ready => {
                sender.current_max_send_streams().min(streams as usize).saturating_sub(self.streams.len())
            }
            _ => 0,
        }
    }

    pub(super) fn under_way(&self) -> usize {
        self.streams.len()
    }

    /// When the time of the oldest request is up, or that of waiting for leave to send any.
    pub(super) fn due_ns(&self, terms: &Terms) -> Option<u64> {
        match self.barred_ns {
            Some(since_ns) => Some(since_ns + terms.connect_timeout_ns),
            None => self.oldest_sent_ns().map(|sent_ns| sent_ns + terms.timeout_ns),
        }
    }

    fn oldest_sent_ns(&self) -> Option<u64> {
        self.streams.iter().map(|stream| stream.flight.sent_ns).min()
    }

    /// Why the connection is of no use, where it never was of any.
    pub(super) fn ending(&self) -> Cause {
        match self.ending {
            Some(Cause::Closed) | None => Cause::ClosedEarly,
            Some(cause) => cause,
        }
    }

    pub(super) fn begin(&mut self, flight: Flight, corpus: &Corpus) {
        let bytes = corpus.bytes(flight.choice);
        self.barred_ns = None;
        let message = self.message(bytes);
        self.streams.push(Stream::begin(flight, self.sender.as_mut(), message));
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

    /// Lets the protocol work off what it has got and write what it wants to.
    pub(super) fn flush(&mut self) {
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

    fn poll_connection(&mut self) {
        if let Some(connection) = &mut self.connection
            && let Poll::Ready(end) = Pin::new(connection).poll(&mut context())
        {
            self.ending = Some(end.map_or_else(|error| ending(&error), |()| Cause::Closed));
            (self.connection, self.ready) = (None, false);
        }
    }

    pub(super) fn output(&self, _corpus: &Corpus) -> Option<&[u8]> {
        Some(&self.output[self.written..]).filter(|rest| !rest.is_empty())
    }

    pub(super) fn wrote(&mut self, count: usize, _corpus: &Corpus) {
        self.written += count;
        if self.written >= self.output.len() {
            self.output.clear();
            self.written = 0;
        }
    }

    pub(super) fn received(&mut self, bytes: &[u8], desk: &mut Desk<'_>) -> Heard {
        self.heard_ns = desk.now_ns;
        self.pipe.put(bytes);
        self.work(desk)
    }

    fn work(&mut self, desk: &mut Desk<'_>) -> Heard {
        self.flush();
        let under_way = self.streams.len();
        let victims = self.poll_streams(desk);
        if self.streams.len() < under_way {
            // The last of them may have been all that the connection waited for.
            self.flush();
        }
        let is_barred = self.was_ready && !self.ready && self.streams.is_empty();
        self.barred_ns = is_barred.then(|| self.barred_ns.unwrap_or(desk.now_ns));
        match self.ending {
            None => Heard::Free,
            // Whoever waits for the settings will book it.
            Some(_) if !self.was_ready => Heard::Lost,
            // In good order, as after `Connection: close`.
            Some(Cause::Closed) if self.streams.is_empty() => Heard::Lost,
            Some(cause) => {
                self.give_up(cause, victims, desk);
                Heard::Lost
            }
        }
    }

    /// Books the streams that have come to an end; how many of them because the connection has.
    fn poll_streams(&mut self, desk: &mut Desk<'_>) -> usize {
        let (mut index, mut victims) = (0, 0);
        while let Some(stream) = self.streams.get_mut(index) {
            let turn = if stream.has_news() { stream.poll(desk) } else { Turn::More };
            if matches!(turn, Turn::More) {
                index += 1;
                continue;
            }
            let stream = self.streams.swap_remove(index);
            match turn {
                Turn::Lost(cause) => {
                    victims += usize::from(matches!(cause, Cause::ClosedEarly | Cause::Malformed));
                    desk.lost(&stream.flight, stream.phase(), cause);
                }
                _ => desk.answered(stream.flight, stream.status, stream.body_bytes),
            }
        }
        victims
    }

    /// The connection has ended. That it did is an event of its own only where it took no request with it.
    fn give_up(&mut self, cause: Cause, victims: usize, desk: &mut Desk<'_>) {
        if victims == 0 || !self.streams.is_empty() {
            self.failed(cause, desk);
        }
    }

    pub(super) fn ended(&mut self, desk: &mut Desk<'_>) -> Heard {
        let announced = self.leaving;
        self.pipe.end();
        self.flush();
        let victims = self.poll_streams(desk);
        if !(self.streams.is_empty() && announced) {
            self.give_up(Cause::ClosedEarly, victims, desk);
        }
        Heard::Lost
    }

    pub(super) fn failed(&mut self, cause: Cause, desk: &mut Desk<'_>) {
        if self.streams.is_empty() {
            // Nothing was owed.
            let cause = if cause == Cause::ClosedEarly { Cause::Closed } else { cause };
            return desk.spoilt(Phase::Idle, cause);
        }
        for stream in self.streams.drain(..) {
            let cause = if cause == Cause::Closed { Cause::ClosedEarly } else { cause };
            desk.lost(&stream.flight, stream.phase(), cause);
        }
    }

    /// Gives up the streams whose time is up; and the connection, when nothing at all has come on it meanwhile, or when it has
    /// taken no request for as long as one may take to open.
    pub(super) fn expired(&mut self, terms: &Terms, desk: &mut Desk<'_>) -> Heard {
        self.poll_streams(desk);
        if self.streams.is_empty() {
            return match self.barred_ns {
                Some(since_ns) if since_ns + terms.connect_timeout_ns <= desk.now_ns => {
                    desk.spoilt(Phase::Idle, Cause::Timeout);
                    Heard::Lost
                }
                _ => self.work(desk),
            };
        }
        // A request is often sent at the very time at which something was heard.
        let silent = self.oldest_sent_ns().is_some_and(|sent_ns| self.heard_ns <= sent_ns);
        let late = |stream: &mut Stream| stream.flight.sent_ns + terms.timeout_ns <= desk.now_ns;
        let late: Vec<_> = self.streams.extract_if(.., late).collect();
        late.iter().for_each(|stream| desk.lost(&stream.flight, stream.phase(), Cause::Timeout));
        let none_late = late.is_empty();
        // Dropped, it tells the peer that nobody waits any more.
        drop(late);
        if none_late || !silent {
            return self.work(desk);
        }
        for stream in self.streams.drain(..) {
            desk.lost(&stream.flight, stream.phase(), Cause::Abandoned);
        }
        Heard::Lost
    }

    pub(super) fn leave(&mut self, desk: &mut Desk<'_>) {
        self.streams.drain(..).for_each(|stream| desk.left(&stream.flight));
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
