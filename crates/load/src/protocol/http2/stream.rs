//! One stream: a request on its way, its body as far as the peer's windows let it, and its response as it comes.
//!
//! It is polled and never waits; it must not touch the connection that carries it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};

use super::message::{self, Message};
use crate::connection::{InFlight, Recorder};
use crate::reader::{HEAD_LIMIT_BYTES, HEADERS_LIMIT};
use model::{Cause, Phase};

/// See the module's text.
pub(super) struct Stream {
    news: Arc<News>,
    waker: Waker,
    pub(super) request: InFlight,
    at: At,
    /// What of the request's body the protocol has not taken yet.
    upload: Option<(SendStream<Bytes>, Bytes)>,
    pub(super) status: u16,
    pub(super) body_bytes: u64,
    /// What the response says of its length.
    length: Option<u64>,
}

/// Whether the protocol has something for a stream: asking each of them costs more than all the rest.
struct News(AtomicBool);

impl Wake for News {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

enum At {
    Head(ResponseFuture),
    Body(RecvStream),
    Trailers(RecvStream),
    Failed(Cause),
}

/// What polling a stream has brought.
pub(super) enum Turn {
    More,
    Done,
    Lost(Cause),
}

impl Stream {
    /// Hands the request to the protocol; `None` where there is no form for it.
    pub(super) fn begin(
        request: InFlight,
        sender: Option<&mut SendRequest<Bytes>>,
        message: Option<Message>,
    ) -> Stream {
        let (at, upload) = match send(sender, message) {
            Ok((response, upload)) => (At::Head(response), upload),
            Err(cause) => (At::Failed(cause), None),
        };
        // It has to be polled once to be told of more.
        let news = Arc::new(News(AtomicBool::new(true)));
        let waker = Waker::from(news.clone());
        let mut stream = Stream { news, waker, request, at, upload, status: 0, body_bytes: 0, length: None };
        stream.upload();
        stream
    }

    /// Whether polling it may bring anything; asked once.
    pub(super) fn has_news(&self) -> bool {
        self.news.0.swap(false, Ordering::Relaxed)
    }

    /// Hands over more of the body, as much as the protocol takes now; false where that is none.
    pub(super) fn upload(&mut self) -> bool {
        let Some((stream, left)) = &mut self.upload else { return false };
        let room = stream.capacity().min(left.len());
        if room == 0 {
            return false;
        }
        let piece = left.split_to(room);
        let is_last = left.is_empty();
        // It fails where the stream is over, which its response tells, too.
        if stream.send_data(piece, is_last).is_err() || is_last {
            self.upload = None;
        }
        true
    }

    pub(super) fn phase(&self) -> Phase {
        match self.at {
            At::Body(_) | At::Trailers(_) => Phase::Body,
            At::Head(_) if self.upload.is_none() => Phase::Head,
            At::Head(_) | At::Failed(_) => Phase::Send,
        }
    }

    pub(super) fn poll(&mut self, recorder: &mut Recorder<'_>) -> Turn {
        let waker = self.waker.clone();
        let mut context = Context::from_waker(&waker);
        loop {
            self.at = match &mut self.at {
                At::Head(response) => {
                    if self.request.first_byte_ns.is_none()
                        && matches!(response.poll_informational(&mut context), Poll::Ready(Some(Ok(_))))
                    {
                        self.request.received(recorder.now_ns);
                    }
                    match Pin::new(response).poll(&mut context) {
                        Poll::Pending => return Turn::More,
                        Poll::Ready(Err(error)) => return Turn::Lost(cause(&error)),
                        Poll::Ready(Ok(response)) => match self.look(&response, recorder) {
                            Ok(()) => At::Body(response.into_body()),
                            Err(cause) => return Turn::Lost(cause),
                        },
                    }
                }
                At::Body(body) => match body.poll_data(&mut context) {
                    Poll::Pending => return Turn::More,
                    Poll::Ready(Some(Err(error))) => return self.broken(&error),
                    Poll::Ready(Some(Ok(data))) => {
                        self.body_bytes += data.len() as u64;
                        self.request.content(&data);
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
                At::Trailers(body) => match body.poll_trailers(&mut context) {
                    Poll::Pending => return Turn::More,
                    Poll::Ready(Err(error)) => return self.broken(&error),
                    Poll::Ready(Ok(_)) => return Turn::Done,
                },
                At::Failed(cause) => return Turn::Lost(*cause),
            };
        }
    }

    /// Looks at the response's head, unless it is larger than one of HTTP/1.1 may be.
    fn look(
        &mut self,
        response: &http::Response<RecvStream>,
        recorder: &mut Recorder<'_>,
    ) -> Result<(), Cause> {
        self.request.received(recorder.now_ns);
        let fields = response.headers();
        let bytes: usize = fields.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
        if fields.len() > HEADERS_LIMIT || bytes > HEAD_LIMIT_BYTES {
            return Err(Cause::TooLarge);
        }
        self.status = response.status().as_u16();
        let has_length = !self.request.choice.bodiless && !matches!(self.status, 204 | 304);
        let length = fields.get(http::header::CONTENT_LENGTH).filter(|_| has_length);
        self.length = length.and_then(|value| value.to_str().ok()?.parse().ok());
        message::with_head(response, |head| self.request.look(head, recorder.check));
        Ok(())
    }

    /// The stream has failed within the body. A server that has sent a whole response may take no more of the request's body, and
    /// resets the stream with `NO_ERROR` (RFC 9113, section 8.1): one whose end has come is done already, and one of known length is
    /// whole where all of it is there. Of any other nobody knows what is missing.
    fn broken(&self, error: &h2::Error) -> Turn {
        let is_whole = self.length == Some(self.body_bytes);
        if is_whole && error.is_remote() && error.is_reset() && error.reason() == Some(Reason::NO_ERROR) {
            return Turn::Done;
        }
        Turn::Lost(cause(error))
    }
}

type Sent = (ResponseFuture, Option<(SendStream<Bytes>, Bytes)>);

fn send(sender: Option<&mut SendRequest<Bytes>>, message: Option<Message>) -> Result<Sent, Cause> {
    let sender = sender.ok_or(Cause::ClosedEarly)?;
    let (request, body) = message.ok_or(Cause::Malformed)?;
    let (response, mut stream) =
        sender.send_request(request, body.is_empty()).map_err(|error| cause(&error))?;
    if body.is_empty() {
        return Ok((response, None));
    }
    stream.reserve_capacity(body.len());
    Ok((response, Some((stream, body))))
}

fn cause(error: &h2::Error) -> Cause {
    match error.reason() {
        _ if error.is_io() => Cause::ClosedEarly,
        Some(Reason::REFUSED_STREAM) => Cause::StreamRefused,
        // Sent before the server's word came that it takes no more: nobody has looked at it (RFC 9113, section 6.8).
        Some(_) if error.is_remote() && error.is_go_away() => Cause::StreamRefused,
        Some(_) if error.is_remote() => Cause::StreamReset,
        _ => Cause::Malformed,
    }
}
