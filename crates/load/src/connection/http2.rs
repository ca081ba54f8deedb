//! HTTP/2 on one connection: a stream for each request, by the `h2` crate.
//!
//! That crate is written for asynchronous sockets. Here it gets a pipe in memory and is polled whenever bytes have arrived or
//! a request begins, so that the same drivers and the same simulation serve both protocols; no runtime runs.

mod message;
mod pipe;

use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::client::{self, ResponseFuture, SendRequest};
use h2::{Reason, RecvStream};

use super::{Desk, Flight, Heard};
use crate::corpus::Corpus;
use crate::{Cause, Phase, Protocol};
use message::Scheme;
use pipe::Pipe;

/// Flow control is not what is measured: windows are as wide as they are of use to anybody.
const WINDOW_BYTES: u32 = 1 << 24;

/// See the module's text.
pub(super) struct Http2 {
    pipe: Pipe,
    scheme: Scheme,
    /// None where the protocol's side of it has ended or failed.
    connection: Option<client::Connection<Pipe, Bytes>>,
    sender: Option<SendRequest<Bytes>>,
    /// Requests can be sent.
    ready: bool,
    streams: Vec<Stream>,
    /// Written by the protocol and to be written to the peer, from `written` on.
    output: Vec<u8>,
    written: usize,
    heard_ns: u64,
    /// Why the protocol gave the connection up.
    ending: Option<Cause>,
}

struct Stream {
    flight: Flight,
    at: At,
    status: u16,
    body_bytes: u64,
}

enum At {
    Head(ResponseFuture),
    Body(RecvStream),
    Trailers(RecvStream),
    Failed(Cause),
}

/// What polling a stream has brought.
enum Turn {
    More,
    Done,
    Lost(Cause),
}

impl Http2 {
    /// A connection whose preface is there to be written.
    pub(super) fn new(tls: bool) -> Http2 {
        let pipe = Pipe::default();
        let mut builder = client::Builder::new();
        builder
            .initial_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES)
            .enable_push(false)
            // So that the peer's settings can be told from none: they come before the first request.
            .initial_max_send_streams(0);
        let mut http2 = Http2 {
            pipe: pipe.clone(),
            scheme: if tls { Scheme::Https } else { Scheme::Http },
            connection: None,
            sender: None,
            ready: false,
            streams: Vec::new(),
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
            Poll::Ready(Err(error)) => http2.ending = Some(cause(&error)),
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

    pub(super) fn oldest_sent_ns(&self) -> Option<u64> {
        self.streams.iter().map(|stream| stream.flight.sent_ns).min()
    }

    pub(super) fn begin(&mut self, flight: Flight, corpus: &Corpus) {
        let at = self.send(corpus.bytes(flight.choice));
        self.streams.push(Stream { flight, at, status: 0, body_bytes: 0 });
    }

    fn send(&mut self, bytes: &[u8]) -> At {
        let Some(sender) = &mut self.sender else { return At::Failed(Cause::ClosedEarly) };
        let Some((request, body)) = message::request(bytes, self.scheme) else {
            return At::Failed(Cause::Malformed);
        };
        let sent = sender.send_request(request, body.is_empty()).and_then(|(response, mut stream)| {
            if !body.is_empty() {
                stream.send_data(body, true)?;
            }
            Ok(response)
        });
        match sent {
            Ok(response) => At::Head(response),
            Err(error) => At::Failed(cause(&error)),
        }
    }

    /// Lets the protocol work off what it has got and write what it wants to.
    pub(super) fn flush(&mut self) {
        if let Some(connection) = &mut self.connection
            && let Poll::Ready(end) = Pin::new(connection).poll(&mut context())
        {
            self.ending = Some(end.map_or_else(|error| cause(&error), |()| Cause::Closed));
            (self.connection, self.ready) = (None, false);
        }
        if let Some(sender) = &mut self.sender {
            let ready = matches!(sender.poll_ready(&mut context()), Poll::Ready(Ok(())));
            self.ready = self.connection.is_some() && ready && sender.current_max_send_streams() > 0;
        }
        self.pipe.take_output(&mut self.output);
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
        self.poll_streams(desk);
        self.flush();
        match self.ending {
            None => Heard::Free,
            // In good order, as after `Connection: close`.
            Some(Cause::Closed) if self.streams.is_empty() => Heard::Lost,
            Some(cause) => {
                self.failed(cause, desk);
                Heard::Lost
            }
        }
    }

    /// Books the streams that have come to an end.
    fn poll_streams(&mut self, desk: &mut Desk<'_>) {
        let mut index = 0;
        while let Some(stream) = self.streams.get_mut(index) {
            let turn = stream.poll(desk);
            if matches!(turn, Turn::More) {
                index += 1;
                continue;
            }
            let stream = self.streams.swap_remove(index);
            match turn {
                Turn::Lost(cause) => desk.lost(&stream.flight, stream.phase(), cause),
                _ => desk.answered(stream.flight, stream.status, stream.body_bytes),
            }
        }
    }

    pub(super) fn ended(&mut self, desk: &mut Desk<'_>) -> Heard {
        self.pipe.end();
        let announced = !self.ready;
        self.flush();
        self.poll_streams(desk);
        match self.streams.is_empty() {
            true if announced => {}
            true => self.failed(Cause::Closed, desk),
            false => self.failed(Cause::ClosedEarly, desk),
        }
        Heard::Lost
    }

    pub(super) fn failed(&mut self, cause: Cause, desk: &mut Desk<'_>) {
        if self.streams.is_empty() {
            return desk.spoilt(Phase::Idle, cause);
        }
        for stream in self.streams.drain(..) {
            let cause = if cause == Cause::Closed { Cause::ClosedEarly } else { cause };
            desk.lost(&stream.flight, stream.phase(), cause);
        }
    }

    /// Gives up the streams whose time is up; and the connection, when nothing at all has come on it meanwhile.
    pub(super) fn expired(&mut self, timeout_ns: u64, desk: &mut Desk<'_>) -> Heard {
        let silent = self.oldest_sent_ns().is_some_and(|sent_ns| self.heard_ns < sent_ns);
        let late = |stream: &mut Stream| stream.flight.sent_ns + timeout_ns <= desk.now_ns;
        let late: Vec<_> = self.streams.extract_if(.., late).collect();
        late.iter().for_each(|stream| desk.lost(&stream.flight, stream.phase(), Cause::Timeout));
        // Dropped, it tells the peer that nobody waits any more.
        drop(late);
        if !silent {
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

impl Stream {
    fn phase(&self) -> Phase {
        if matches!(self.at, At::Body(_) | At::Trailers(_)) { Phase::Body } else { Phase::Head }
    }

    fn poll(&mut self, desk: &mut Desk<'_>) -> Turn {
        loop {
            let next = match &mut self.at {
                At::Head(response) => match Pin::new(response).poll(&mut context()) {
                    Poll::Pending => return Turn::More,
                    Poll::Ready(Err(error)) => return Turn::Lost(cause(&error)),
                    Poll::Ready(Ok(response)) => {
                        self.flight.heard(desk.now_ns);
                        self.status = response.status().as_u16();
                        message::with_head(&response, |head| self.flight.look(head, desk.check));
                        At::Body(response.into_body())
                    }
                },
                At::Body(body) => match body.poll_data(&mut context()) {
                    Poll::Pending => return Turn::More,
                    Poll::Ready(Some(Err(error))) => return Turn::Lost(cause(&error)),
                    Poll::Ready(Some(Ok(data))) => {
                        self.body_bytes += data.len() as u64;
                        self.flight.content(&data);
                        // Only fails for more than was received.
                        let _ = body.flow_control().release_capacity(data.len());
                        continue;
                    }
                    Poll::Ready(None) => {
                        let At::Body(body) = std::mem::replace(&mut self.at, At::Failed(Cause::Malformed))
                        else {
                            return Turn::Lost(Cause::Malformed);
                        };
                        At::Trailers(body)
                    }
                },
                At::Trailers(body) => match body.poll_trailers(&mut context()) {
                    Poll::Pending => return Turn::More,
                    Poll::Ready(Err(error)) => return Turn::Lost(cause(&error)),
                    Poll::Ready(Ok(_)) => return Turn::Done,
                },
                At::Failed(cause) => return Turn::Lost(*cause),
            };
            self.at = next;
        }
    }
}

impl fmt::Debug for Http2 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http2").field("streams", &self.streams.len()).finish_non_exhaustive()
    }
}

/// Nobody waits: everything is polled whenever bytes have come.
fn context() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

fn cause(error: &h2::Error) -> Cause {
    match error.reason() {
        _ if error.is_io() => Cause::ClosedEarly,
        Some(Reason::REFUSED_STREAM) => Cause::StreamRefused,
        // Sent before the server's word came that it takes no more: nobody has looked at it.
        Some(Reason::NO_ERROR) if error.is_remote() && error.is_go_away() => Cause::StreamRefused,
        Some(_) if error.is_remote() && error.is_go_away() => Cause::ClosedEarly,
        Some(_) if error.is_remote() => Cause::StreamReset,
        _ => Cause::Malformed,
    }
}
