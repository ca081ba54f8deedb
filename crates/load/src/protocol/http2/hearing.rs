//! Reading of the peer's frames, in place or assembled from pieces.

use model::Cause;

use super::frame::*;
use super::hpack::Undecodable;
use super::response::ResponseShape;
use super::{BLOCK_MAX, Http2, Leaving, WINDOW_BYTES, WINDOW_MAX};
use crate::reader::{ResponseHead, Sink};
use crate::recorder::Recorder;

/// An error means that the connection is no longer usable.
pub(super) type Heard = Result<(), Cause>;

impl Http2 {
    pub(super) fn read(&mut self, mut bytes: &[u8], recorder: &mut Recorder<'_>) -> Heard {
        // Bytes after the end are ignored.
        while !(self.leaving.is_some() && self.streams.is_empty()) {
            let Some(frame) = self.reading.frame else {
                let Some(head) = gather(&mut self.reading.held, &mut bytes, HEAD_BYTES) else {
                    return Ok(());
                };
                let frame =
                    Http2Frame::read(*head.first_chunk().expect("as many as were gathered"));
                self.reading.held.clear();
                self.begin_frame(frame, recorder)?;
                self.reading.frame = Some(frame);
                continue;
            };
            if frame.kind == DATA {
                if !self.read_data(frame, &mut bytes, recorder)? {
                    return Ok(());
                }
                continue;
            }
            let mut held = std::mem::take(&mut self.reading.held);
            let Some(payload) = gather(&mut held, &mut bytes, frame.length) else {
                self.reading.held = held;
                return Ok(());
            };
            self.reading.frame = None;
            self.end_frame(frame, payload, recorder)?;
            held.clear();
            self.reading.held = held;
        }
        Ok(())
    }

    /// Checks a frame by its head.
    fn begin_frame(&mut self, frame: Http2Frame, recorder: &mut Recorder<'_>) -> Heard {
        let continues = self
            .reading
            .open_block
            .as_ref()
            .map(|(begun, _)| begun.stream);
        let is_in_order = match continues {
            Some(stream) => frame.kind == CONTINUATION && frame.stream == stream,
            None => frame.kind != CONTINUATION,
        };
        // The beginning of a status line, read as the head of a frame.
        let is_status_line = (frame.length, frame.kind, frame.flags)
            == (usize::from_be_bytes(*b"\0\0\0\0\0HTT"), b'P', b'/');
        if is_status_line && self.peer.streams.is_none() {
            return Err(Cause::SpeaksHttp1);
        }
        // The settings must come first. A GOAWAY as first frame is allowed, to distinguish it from another
        // protocol.
        let is_greeting = matches!(frame.kind, SETTINGS | GOAWAY)
            && (frame.kind, frame.flags & ACK) != (SETTINGS, ACK);
        let is_of_stream = matches!(
            frame.kind,
            DATA | HEADERS | PRIORITY | RST_STREAM | CONTINUATION
        );
        let is_of_connection = matches!(frame.kind, SETTINGS | PING | GOAWAY);
        demand(
            frame.length <= PAYLOAD_MAX
                && is_in_order
                && (self.peer.streams.is_some() || is_greeting)
                && !(is_of_stream && (frame.stream == 0 || self.is_idle(frame)))
                && !(is_of_connection && frame.stream != 0)
                && frame.kind != PUSH_PROMISE,
        )?;
        if frame.kind == DATA {
            self.begin_data(frame, recorder)
        } else {
            Ok(())
        }
    }

    /// Whether a frame belongs to a stream that was not begun.
    fn is_idle(&self, frame: Http2Frame) -> bool {
        frame.kind != PRIORITY && (frame.stream >= self.next || frame.stream.is_multiple_of(2))
    }

    fn end_frame(
        &mut self,
        frame: Http2Frame,
        payload: &[u8],
        recorder: &mut Recorder<'_>,
    ) -> Heard {
        match frame.kind {
            HEADERS => {
                let fragment = fragment(frame, payload).ok_or(Cause::Malformed)?;
                if frame.has(END_HEADERS) {
                    return self.block(frame, fragment, recorder);
                }
                self.reading.open_block = Some((frame, fragment.to_vec()));
                Ok(())
            }
            CONTINUATION => {
                let (begun, mut block) = self.reading.open_block.take().ok_or(Cause::Malformed)?;
                block.extend_from_slice(payload);
                if frame.has(END_HEADERS) {
                    return self.block(begun, &block, recorder);
                }
                if block.len() > BLOCK_MAX {
                    return Err(Cause::TooLarge);
                }
                self.reading.open_block = Some((begun, block));
                Ok(())
            }
            RST_STREAM => {
                let code = number(payload)
                    .filter(|_| payload.len() == 4)
                    .ok_or(Cause::Malformed)?;
                self.was_reset(frame.stream, code, recorder);
                Ok(())
            }
            SETTINGS => self.set(frame, payload, recorder),
            PING if payload.len() == 8 => {
                if !frame.has(ACK) {
                    self.answer(PING, payload);
                }
                Ok(())
            }
            GOAWAY => self.goes_away(payload, recorder),
            WINDOW_UPDATE => self.widen(frame, payload, recorder),
            PRIORITY if payload.len() == 5 => Ok(()),
            PING | PRIORITY => Err(Cause::Malformed),
            // Frames of other kinds are extensions (RFC 9113, section 5.5).
            _ => Ok(()),
        }
    }

    /// Handles a complete block of fields. It is decoded even if no stream waits for it, because later blocks
    /// refer to it.
    fn block(&mut self, frame: Http2Frame, block: &[u8], recorder: &mut Recorder<'_>) -> Heard {
        if self
            .decoder
            .decode(block)
            .map_err(|Undecodable| Cause::Malformed)?
        {
            self.shape = ResponseShape::of(&self.decoder.fields);
        }
        let Some(index) = self.find(frame.stream) else {
            return Ok(());
        };
        let stream = &mut self.streams[index];
        stream.request.received(recorder.now_ns);
        let ends = frame.has(END_STREAM);
        let flaw = match (self.shape, stream.has_head) {
            (ResponseShape::Interim, false) if !ends => return Ok(()),
            (ResponseShape::Head { status, length }, false) => {
                (stream.status, stream.length, stream.has_head) = (status, length, true);
                let (name, mut headers) =
                    (|name| str::from_utf8(name).unwrap_or_default(), Vec::new());
                if recorder.check.reads_fields(stream.request.choice.endpoint) {
                    let fields = self.decoder.fields.iter().skip(1);
                    headers.extend(fields.map(|field| httparse::Header {
                        name: name(field.0),
                        value: field.1,
                    }));
                }
                (&mut stream.request, &mut *recorder.check).head(&ResponseHead {
                    status,
                    headers: &headers,
                });
                None
            }
            (ResponseShape::Trailers, true) if ends => None,
            (ResponseShape::Refused(cause), _) => Some(cause),
            _ => Some(Cause::Malformed),
        };
        match flaw {
            Some(cause) => self.lose(index, cause, Some(PROTOCOL_ERROR), recorder),
            None if ends => self.complete(index, recorder),
            None => {}
        }
        Ok(())
    }

    /// DATA counts against the windows in full, including padding (RFC 9113, section 6.9.1).
    fn begin_data(&mut self, frame: Http2Frame, recorder: &mut Recorder<'_>) -> Heard {
        let bytes = frame.length as u32;
        self.reading.left = frame.length;
        self.reading.padding = (!frame.has(PADDED)).then_some(0);
        self.unopened += bytes;
        demand(self.unopened <= WINDOW_BYTES && !(frame.has(PADDED) && frame.length == 0))?;
        if self.unopened > WINDOW_BYTES / 2 {
            let more = std::mem::take(&mut self.unopened);
            push(&mut self.output, WINDOW_UPDATE, 0, 0, &more.to_be_bytes());
        }
        let Some(index) = self.find(frame.stream) else {
            return Ok(());
        };
        let stream = &mut self.streams[index];
        stream.unopened += bytes;
        if !stream.has_head || stream.unopened > WINDOW_BYTES {
            self.lose(index, Cause::Malformed, Some(PROTOCOL_ERROR), recorder);
        } else if stream.unopened > WINDOW_BYTES / 2 && !frame.has(END_STREAM) {
            let more = std::mem::take(&mut stream.unopened);
            push(
                &mut self.output,
                WINDOW_UPDATE,
                0,
                frame.stream,
                &more.to_be_bytes(),
            );
        }
        Ok(())
    }

    /// Reads the available part of a DATA frame. Returns false if more of it is to come.
    fn read_data(
        &mut self,
        frame: Http2Frame,
        bytes: &mut &[u8],
        recorder: &mut Recorder<'_>,
    ) -> Result<bool, Cause> {
        let padding = match (self.reading.padding, bytes.split_first()) {
            (Some(padding), _) => padding,
            (None, None) => return Ok(false),
            (None, Some((&padding, rest))) => {
                *bytes = rest;
                self.reading.left -= 1;
                self.reading.padding = Some(padding.into());
                padding.into()
            }
        };
        let content = self
            .reading
            .left
            .checked_sub(padding)
            .ok_or(Cause::Malformed)?;
        let (piece, rest) = bytes.split_at(content.min(bytes.len()));
        let skipped = if piece.len() == content {
            padding.min(rest.len())
        } else {
            0
        };
        *bytes = &rest[skipped..];
        self.reading.left -= piece.len() + skipped;
        self.reading.padding = Some(padding - skipped);
        let is_over = self.reading.left == 0;
        if is_over {
            self.reading.frame = None;
        }
        if let Some(index) = self.find(frame.stream) {
            let stream = &mut self.streams[index];
            stream.body_bytes += piece.len() as u64;
            (&mut stream.request, &mut *recorder.check).content(piece);
            if stream.is_whole() == Some(false) && stream.length < Some(stream.body_bytes) {
                self.lose(index, Cause::Malformed, Some(PROTOCOL_ERROR), recorder);
            } else if is_over && frame.has(END_STREAM) {
                self.complete(index, recorder);
            }
        }
        Ok(is_over)
    }

    /// A server that has sent a complete response may refuse the rest of the request's body and resets the
    /// stream with `NO_ERROR` (RFC 9113, section 8.1). A response of known length is complete if all of it
    /// has arrived. Without a length that cannot be determined.
    fn was_reset(&mut self, number: u32, code: u32, recorder: &mut Recorder<'_>) {
        let Some(index) = self.find(number) else {
            return;
        };
        let stream = &mut self.streams[index];
        let is_whole = stream.has_head && stream.length == Some(stream.body_bytes);
        if code == NO_ERROR && is_whole {
            stream.upload = 0..0;
            return self.complete(index, recorder);
        }
        let cause = if code == REFUSED_STREAM {
            Cause::StreamRefused
        } else {
            Cause::StreamReset
        };
        self.lose(index, cause, None, recorder);
    }

    fn set(&mut self, frame: Http2Frame, payload: &[u8], recorder: &mut Recorder<'_>) -> Heard {
        if frame.has(ACK) {
            return demand(payload.is_empty());
        }
        let (settings, rest) = payload.as_chunks::<6>();
        demand(rest.is_empty())?;
        self.peer.streams.get_or_insert(usize::MAX);
        for &[a, b, value @ ..] in settings {
            let value = u32::from_be_bytes(value);
            match u16::from_be_bytes([a, b]) {
                SETTINGS_HEADER_TABLE_SIZE => {
                    self.encoder.limit(value);
                    self.last = None;
                }
                SETTINGS_ENABLE_PUSH => demand(value == 0)?,
                SETTINGS_MAX_CONCURRENT_STREAMS => self.peer.streams = Some(value as usize),
                SETTINGS_INITIAL_WINDOW_SIZE => {
                    let more = i64::from(value)
                        - std::mem::replace(&mut self.peer.stream_window, value.into());
                    self.streams
                        .iter_mut()
                        .for_each(|stream| stream.window += more);
                    let widest = self.streams.iter().map(|stream| stream.window).max();
                    demand(i64::from(value).max(widest.unwrap_or(0)) <= WINDOW_MAX)?;
                }
                SETTINGS_MAX_FRAME_SIZE => {
                    demand((PAYLOAD_MAX as u32..1 << 24).contains(&value))?;
                    self.peer.payload = value as usize;
                }
                _ => {}
            }
        }
        self.answer(SETTINGS, &[]);
        self.upload(&recorder.settings.arena);
        Ok(())
    }

    fn answer(&mut self, kind: u8, payload: &[u8]) {
        self.unread_answers += 1;
        push(&mut self.output, kind, ACK, 0, payload);
    }

    /// Streams after the last one named were not processed (RFC 9113, section 6.8).
    fn goes_away(&mut self, payload: &[u8], recorder: &mut Recorder<'_>) -> Heard {
        let (last, code) = number(payload)
            .zip(payload.get(4..).and_then(number))
            .ok_or(Cause::Malformed)?;
        self.leaving = Some(if code == NO_ERROR {
            Leaving::InOrder
        } else {
            Leaving::WithError
        });
        let last = last & 0x7fff_ffff;
        let seen = self.streams.partition_point(|stream| stream.number <= last);
        for stream in self.streams.drain(seen..) {
            recorder.fail(&stream.request, stream.phase(), Cause::StreamRefused);
        }
        Ok(())
    }

    fn widen(&mut self, frame: Http2Frame, payload: &[u8], recorder: &mut Recorder<'_>) -> Heard {
        let more = number(payload)
            .filter(|_| payload.len() == 4)
            .ok_or(Cause::Malformed)?
            & 0x7fff_ffff;
        demand(frame.stream == 0 || !self.is_idle(frame))?;
        let is_allowed = |window: i64| more > 0 && window <= WINDOW_MAX;
        if frame.stream == 0 {
            self.peer.window += i64::from(more);
            demand(is_allowed(self.peer.window))?;
        } else if let Some(index) = self.find(frame.stream) {
            let window = &mut self.streams[index].window;
            *window += i64::from(more);
            if !is_allowed(*window) {
                self.lose(index, Cause::Malformed, Some(PROTOCOL_ERROR), recorder);
            }
        }
        self.upload(&recorder.settings.arena);
        Ok(())
    }
}

fn demand(is_so: bool) -> Heard {
    if is_so { Ok(()) } else { Err(Cause::Malformed) }
}

/// Returns `wanted` bytes once they have arrived, in place or assembled from pieces.
fn gather<'a, 'b: 'a>(
    held: &'a mut Vec<u8>,
    bytes: &mut &'b [u8],
    wanted: usize,
) -> Option<&'a [u8]> {
    let (piece, rest) = bytes.split_at((wanted - held.len()).min(bytes.len()));
    *bytes = rest;
    if piece.len() == wanted {
        return Some(piece);
    }
    held.extend_from_slice(piece);
    (held.len() == wanted).then_some(held)
}

/// The fields in a HEADERS frame, without padding and priority.
fn fragment(frame: Http2Frame, mut payload: &[u8]) -> Option<&[u8]> {
    if frame.has(PADDED) {
        let (&padding, rest) = payload.split_first()?;
        payload = rest.get(..rest.len().checked_sub(padding.into())?)?;
    }
    if frame.has(WITH_PRIORITY) {
        payload.get(5..)
    } else {
        Some(payload)
    }
}
