//! HTTP/1.1 on one connection: requests are written one after the other, responses read in the same order.
//!
//! With pipelining several requests are in flight. Without it there is one, and its bytes go from the arena
//! to the kernel without a copy.

use std::collections::VecDeque;

use super::{ProtocolRow, Session};
use crate::arena::RequestArena;
use crate::in_flight::InFlight;
use crate::protocol::ConnectionEffect;
use crate::reader::{ReadProgress, ResponseReadError, ResponseReader};
use crate::recorder::Recorder;
use crate::settings::WorkerSettings;
use model::{Cause, Phase, Protocol};

/// A body beyond this length is cheaper to discard in the kernel than to copy to the engine.
const SKIP_WORTHWHILE_BYTES: u64 = 16 * 1024;

pub(super) const ROW: ProtocolRow = ProtocolRow {
    name: "HTTP/1.1",
    alpn: "http/1.1",
    needs_alpn: false,
    writes_rendered: true,
    lanes: ("load.pipeline", "requests on their way on a connection"),
    has_form: |_| true,
    begin: |lanes, _| {
        Box::new(Http1 {
            lanes,
            ..Http1::default()
        })
    },
};

#[derive(Default)]
struct Http1 {
    /// Maximum requests in flight.
    lanes: usize,
    reader: ResponseReader,
    /// Requests in flight, oldest first. The next response belongs to the first.
    requests: VecDeque<InFlight>,
    /// Number of requests written in full, and of bytes written of the next one.
    written: usize,
    written_bytes: usize,
    /// Offset at which the last written piece began.
    piece_from: usize,
}

/// The cause for bytes that are not a response.
fn flaw(bytes: &[u8]) -> Cause {
    if Protocol::is_http2(bytes) {
        Cause::SpeaksHttp2
    } else {
        Cause::Malformed
    }
}

impl Http1 {
    fn clear(&mut self) {
        self.requests.clear();
        (self.written, self.written_bytes) = (0, 0);
    }

    /// Handles unexpected bytes. Some servers end an idle connection with 408 (RFC 9110, section 15.5.9),
    /// which counts as its end.
    fn surplus(&self, bytes: &[u8], recorder: &mut Recorder<'_>) -> ConnectionEffect {
        let is_farewell = bytes.starts_with(b"HTTP/1.") && bytes.get(8..12) == Some(b" 408");
        recorder.tally.error(
            Phase::Idle,
            if is_farewell {
                Cause::Closed
            } else {
                flaw(bytes)
            },
        );
        ConnectionEffect::Lost
    }

    /// Handles the end of the first response.
    fn completed(&mut self, recorder: &mut Recorder<'_>) -> ConnectionEffect {
        // A response that overtook its request leaves half of it unwritten, so the connection cannot be
        // reused.
        let reusable = self.reader.reusable && self.written > 0;
        let Some(request) = self.requests.pop_front() else {
            return ConnectionEffect::Lost;
        };
        recorder.completed(request, self.reader.status, self.reader.body_bytes);
        self.written = self.written.saturating_sub(1);
        if !reusable {
            // The requests after it get no response on this connection.
            self.reader.restart(false);
            return self.lose(Cause::ClosedEarly, recorder);
        }
        if let Some(next) = self.requests.front() {
            self.reader.restart(next.choice.bodiless);
        }
        ConnectionEffect::Free
    }

    fn lose(&mut self, cause: Cause, recorder: &mut Recorder<'_>) -> ConnectionEffect {
        for (index, request) in self.requests.iter().enumerate() {
            // The timeout of the first request ends the connection for the others.
            let cause = if index > 0 && cause == Cause::Timeout {
                Cause::Abandoned
            } else {
                cause
            };
            recorder.fail(request, self.phase(index), cause);
        }
        self.clear();
        ConnectionEffect::Lost
    }

    fn phase(&self, index: usize) -> Phase {
        match index {
            0 if self.reader.in_body() => Phase::Body,
            unwritten if unwritten >= self.written => Phase::Send,
            _ => Phase::Head,
        }
    }
}

impl Session for Http1 {
    fn room(&self) -> usize {
        self.lanes.saturating_sub(self.requests.len())
    }

    fn in_flight(&self) -> usize {
        self.requests.len()
    }

    fn due_ns(&self, settings: &WorkerSettings) -> Option<u64> {
        self.requests
            .front()
            .map(|request| request.sent_ns + settings.timeout_ns)
    }

    fn begin(&mut self, request: InFlight, _arena: &RequestArena) {
        if self.requests.is_empty() {
            self.reader.restart(request.choice.bodiless);
        }
        self.requests.push_back(request);
    }

    fn output<'a>(&'a self, arena: &'a RequestArena) -> Option<&'a [u8]> {
        let request = self.requests.get(self.written)?;
        Some(&request.bytes(arena)[self.written_bytes..])
    }

    fn wrote(&mut self, count: usize, arena: &RequestArena) {
        let Some(request) = self.requests.get(self.written) else {
            return;
        };
        self.piece_from = self.written_bytes;
        self.written_bytes += count;
        let length = request.bytes(arena).len();
        debug_assert!(self.written_bytes <= length);
        if self.written_bytes == length {
            self.written += 1;
            self.written_bytes = 0;
        }
    }

    fn unwrote(&mut self) {
        (self.written, self.written_bytes) = (0, self.piece_from);
    }

    fn skippable(&self) -> u64 {
        // With pipelining a request may begin while this body is being read, and the bytes after it are its
        // response. A sampled response is read in full.
        let is_alone = self.lanes == 1
            && self
                .requests
                .front()
                .is_some_and(|request| request.content.is_none());
        match self.reader.skippable() {
            many if is_alone && many >= SKIP_WORTHWHILE_BYTES => many,
            _ => 0,
        }
    }

    fn received(&mut self, mut bytes: &[u8], recorder: &mut Recorder<'_>) -> ConnectionEffect {
        let mut effect = ConnectionEffect::None;
        loop {
            let Some(request) = self.requests.front_mut() else {
                return self.surplus(bytes, recorder);
            };
            request.received(recorder.now_ns);
            let extra = match self
                .reader
                .read(bytes, &mut (request, &mut *recorder.check))
            {
                Ok(ReadProgress::More) => return effect,
                Ok(ReadProgress::Done { extra }) => extra,
                Err(ResponseReadError::Malformed) => return self.lose(flaw(bytes), recorder),
                Err(ResponseReadError::TooLarge) => return self.lose(Cause::TooLarge, recorder),
            };
            effect = self.completed(recorder);
            match (extra, effect) {
                (0, _) => return effect,
                // Bytes after a response that ends the connection.
                (_, ConnectionEffect::Lost) => return self.surplus(&[], recorder),
                _ => {}
            }
            bytes = &bytes[bytes.len() - extra as usize..];
        }
    }

    fn skipped(&mut self, count: u64, recorder: &mut Recorder<'_>) -> ConnectionEffect {
        if let Some(request) = self.requests.front_mut() {
            request.received(recorder.now_ns);
        }
        match self.reader.skip(count) {
            ReadProgress::More => ConnectionEffect::None,
            ReadProgress::Done { extra } => match self.completed(recorder) {
                _ if extra > 0 => self.surplus(&[], recorder),
                effect => effect,
            },
        }
    }

    fn ended(&mut self, cut: bool, recorder: &mut Recorder<'_>) -> ConnectionEffect {
        if self.requests.is_empty() {
            recorder.tally.error(Phase::Idle, Cause::Closed);
            return ConnectionEffect::Lost;
        }
        if !cut && self.reader.end() {
            return self.completed(recorder);
        }
        self.lose(Cause::ClosedEarly, recorder)
    }

    fn failed(&mut self, cause: Cause, recorder: &mut Recorder<'_>) {
        if self.requests.is_empty() {
            return recorder.tally.error(Phase::Idle, cause);
        }
        let _ = self.lose(cause, recorder);
    }

    fn expired(&mut self, recorder: &mut Recorder<'_>) -> ConnectionEffect {
        self.failed(Cause::Timeout, recorder);
        ConnectionEffect::Lost
    }

    fn leave(&mut self, recorder: &mut Recorder<'_>) {
        self.requests
            .iter()
            .for_each(|request| recorder.leave_unfinished(request));
        self.clear();
    }
}
