//! The simulated server of one connection: it draws the handling of each request from a seed, including
//! invalid behaviour. It records its actions, so that the engine's results can be compared with them. It does
//! not read the engine's state.

use std::collections::{BTreeMap, VecDeque};

use model::Cause;
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use super::super::frames::{
    ACK, DATA, END_STREAM, HEADERS, PING, PREFACE, RST_STREAM, SETTINGS, WINDOW_UPDATE, data,
    frame, goaway, head, read, reset, settings, trailers,
};

/// Initial window of a connection, and of a stream unless the settings change it (RFC 9113, section 6.9.2).
const WINDOW: i64 = 65_535;
const NARROW: u16 = 700;
const FOR_EVER: u64 = u64::MAX;

/// Properties of all servers of a seed.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Nature {
    /// Maximum number of streams that the engine wants.
    pub(super) lanes: usize,
    /// Probability that a request ends badly.
    pub(super) trouble: f64,
    /// Number of streams that its first settings allow.
    pub(super) streams: Option<u32>,
    /// Windows are narrow, or are never extended.
    pub(super) narrow: bool,
    pub(super) starving: bool,
}

/// The faults injected during a seed.
#[derive(Debug, Default)]
pub(super) struct Deeds {
    /// Number of requests received.
    pub(super) seen: u64,
    /// Causes that the engine may report, and how often.
    pub(super) may: BTreeMap<Cause, u64>,
}

impl Deeds {
    pub(super) fn allow(&mut self, causes: &[Cause], times: u64) {
        for cause in causes {
            let count = self.may.entry(*cause).or_default();
            *count = count.saturating_add(times);
        }
    }
}

/// How the server ends a connection once everything is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// With TLS: after a close_notify.
    Closes,
    /// With TLS: without a close_notify.
    Vanishes,
    Resets,
}

/// Bytes to be sent. If they end a response, whether it is good.
pub(super) type Said = (Vec<u8>, Option<bool>);

#[derive(Debug, Default)]
pub(super) struct Peer {
    nature: Nature,
    heard: Vec<u8>,
    is_greeted: bool,
    last: u32,
    streams: BTreeMap<u32, Stream>,
    window: i64,
    /// The last stream that it accepts.
    leaving: Option<u32>,
    /// The server does nothing any more.
    pub(super) is_mute: bool,
    pub(super) out: Vec<Said>,
    pub(super) ending: Option<Ending>,
}

#[derive(Debug, Default)]
struct Stream {
    is_asked: bool,
    is_silent: bool,
    window: i64,
    /// The rest of the response to be sent. None before it was drawn.
    left: Option<VecDeque<Said>>,
}

impl Peer {
    pub(super) fn new(nature: Nature, deeds: &mut Deeds) -> Peer {
        let window = if nature.narrow {
            u32::from(NARROW)
        } else {
            WINDOW as u32
        };
        let window = [&[0, 4], &window.to_be_bytes()[..]].concat();
        let greeting = frame(
            SETTINGS,
            0,
            0,
            &[&settings(nature.streams)[9..], &window].concat(),
        );
        if nature.streams == Some(0) {
            deeds.allow(&[Cause::Timeout], FOR_EVER);
        }
        Peer {
            nature,
            window: WINDOW,
            out: vec![(greeting, None)],
            ..Peer::default()
        }
    }

    /// Handles bytes from the engine.
    pub(super) fn hear(&mut self, bytes: &[u8], deeds: &mut Deeds) {
        self.heard.extend_from_slice(bytes);
        if !self.is_greeted {
            let some = self.heard.len().min(PREFACE.len());
            assert_eq!(self.heard[..some], PREFACE[..some]);
            if some < PREFACE.len() {
                return;
            }
            self.is_greeted = true;
            self.heard.drain(..some);
        }
        let mut whole = 0;
        while let [a, b, c, ..] = self.heard[whole..] {
            let end = whole + 9 + u32::from_be_bytes([0, a, b, c]) as usize;
            if end > self.heard.len() {
                break;
            }
            whole = end;
        }
        let rest = self.heard.split_off(whole);
        let frames = read(&std::mem::replace(&mut self.heard, rest));
        for (kind, flags, id, payload) in frames {
            let said = self.out.len();
            self.hear_frame((kind, flags, id), &payload, deeds);
            // After a truncated frame nothing is sent.
            self.out
                .truncate(if self.is_mute { said } else { usize::MAX });
        }
    }

    fn hear_frame(&mut self, (kind, flags, id): (u8, u8, u32), payload: &[u8], deeds: &mut Deeds) {
        let ends = flags & END_STREAM != 0;
        match kind {
            HEADERS => {
                assert!(
                    id % 2 == 1 && id > self.last,
                    "stream {id} after {}",
                    self.last
                );
                self.last = id;
                deeds.seen += 1;
                if self.leaving.is_some_and(|last| id > last) || self.is_mute {
                    return;
                }
                let window = if self.nature.narrow {
                    i64::from(NARROW)
                } else {
                    WINDOW
                };
                self.streams.insert(
                    id,
                    Stream {
                        is_asked: ends,
                        window,
                        ..Stream::default()
                    },
                );
                let (count, lanes) = (self.streams.len(), self.nature.lanes);
                assert!(count <= lanes, "{count} streams at once of {lanes}");
            }
            DATA => {
                self.window -= payload.len() as i64;
                assert!(self.window >= 0, "more than the connection's window");
                let increment = u32::try_from(payload.len()).unwrap().to_be_bytes();
                let opens = !self.nature.starving && !payload.is_empty();
                if opens {
                    self.window += payload.len() as i64;
                    self.out
                        .push((frame(WINDOW_UPDATE, 0, 0, &increment), None));
                }
                if let Some(stream) = self.streams.get_mut(&id) {
                    stream.window -= payload.len() as i64;
                    assert!(stream.window >= 0, "more than the window of stream {id}");
                    stream.is_asked |= ends;
                    if opens && !ends {
                        stream.window += payload.len() as i64;
                        self.out
                            .push((frame(WINDOW_UPDATE, 0, id, &increment), None));
                    }
                }
            }
            RST_STREAM => drop(self.streams.remove(&id)),
            SETTINGS if flags & ACK == 0 => self.out.push((frame(SETTINGS, ACK, 0, &[]), None)),
            PING if flags & ACK == 0 => self.out.push((frame(PING, ACK, 0, payload), None)),
            _ => {}
        }
    }

    /// Requests that wait for more of their response.
    fn waiting(&self) -> Vec<u32> {
        let waits = |stream: &Stream| stream.is_asked && !stream.is_silent;
        self.streams
            .iter()
            .filter(|(_, stream)| waits(stream))
            .map(|(id, _)| *id)
            .collect()
    }

    pub(super) fn has_more_to_say(&self) -> bool {
        !self.is_mute && !self.waiting().is_empty()
    }

    /// Sends the next piece of a response.
    pub(super) fn speak(&mut self, rng: &mut Pcg64Mcg, deeds: &mut Deeds) {
        let waiting = self.waiting();
        if self.is_mute || waiting.is_empty() {
            return;
        }
        let id = waiting[rng.random_range(0..waiting.len())];
        if self.streams[&id].left.is_none() {
            if rng.random_bool(self.nature.trouble) {
                return match rng.random_bool(0.4) {
                    true => self.disturb(id, rng, deeds),
                    false => self.fail_stream(id, rng, deeds),
                };
            }
            self.streams.get_mut(&id).unwrap().left = Some(in_frames(id, rng));
        }
        let left = self.streams.get_mut(&id).unwrap().left.as_mut().unwrap();
        self.out.extend(left.pop_front());
        if left.is_empty() {
            self.streams.remove(&id);
        }
        if self.leaving.is_some() && self.streams.is_empty() {
            self.leave(Ending::Closes);
        }
    }

    fn leave(&mut self, ending: Ending) {
        (self.ending, self.is_mute) = (Some(ending), true);
    }

    /// Injects a fault that ends one stream.
    fn fail_stream(&mut self, id: u32, rng: &mut Pcg64Mcg, deeds: &mut Deeds) {
        let head = head(id, "200", &[("content-length", "2")], 0);
        let before = if rng.random_bool(0.5) { &head } else { &[][..] };
        let (bytes, causes, mark) = match rng.random_range(0..5) {
            0 => (
                [before, &reset(id, 8)].concat(),
                &[Cause::StreamReset][..],
                None,
            ),
            1 => (
                [before, &reset(id, 7)].concat(),
                &[Cause::StreamRefused][..],
                None,
            ),
            // The response is complete, and the rest of the request is not wanted.
            2 => (
                [&head[..], &data(id, b"no", 0), &reset(id, 0)].concat(),
                &[][..],
                Some(true),
            ),
            3 => (
                [&head[..], &data(id, b"more", END_STREAM)].concat(),
                &[Cause::Malformed][..],
                None,
            ),
            _ => {
                deeds.allow(&[Cause::Timeout, Cause::Abandoned], FOR_EVER);
                self.streams.get_mut(&id).unwrap().is_silent = true;
                return;
            }
        };
        deeds.allow(causes, 1);
        self.streams.remove(&id);
        self.out.push((bytes, mark));
    }

    /// Injects a fault that affects the whole connection.
    fn disturb(&mut self, id: u32, rng: &mut Pcg64Mcg, deeds: &mut Deeds) {
        let gone = [Cause::ClosedEarly, Cause::Closed];
        match rng.random_range(0..8) {
            calm @ 0..2 => {
                // Unprocessed requests are refused. In an orderly shutdown the rest is answered.
                let last = if rng.random_bool(0.5) { self.last } else { id };
                let last = self.leaving.map_or(last, |before| before.min(last));
                self.streams.retain(|stream, _| *stream <= last);
                self.leaving = Some(last);
                self.out
                    .push((goaway(last, if calm == 0 { 0 } else { 11 }), None));
                deeds.allow(&[Cause::StreamRefused], FOR_EVER);
                deeds.allow(if calm == 0 { &[] } else { &gone }, FOR_EVER);
            }
            2 => {
                deeds.allow(&gone, FOR_EVER);
                self.leave(if rng.random_bool(0.5) {
                    Ending::Closes
                } else {
                    Ending::Vanishes
                });
            }
            3 => {
                deeds.allow(&[Cause::Reset], FOR_EVER);
                self.leave(Ending::Resets);
            }
            4 => {
                deeds.allow(&[Cause::Malformed], FOR_EVER);
                self.out.push((frame(WINDOW_UPDATE, 0, 0, &[0; 4]), None));
                self.is_mute = true;
            }
            5 => {
                deeds.allow(&gone, FOR_EVER);
                let whole = head(id, "200", &[], 0);
                self.out
                    .push((whole[..rng.random_range(1..whole.len())].to_vec(), None));
                self.leave(Ending::Vanishes);
            }
            6 => {
                deeds.allow(&[Cause::Timeout, Cause::Abandoned], FOR_EVER);
                self.is_mute = true;
            }
            _ => {
                let streams = [0, 1, 100][rng.random_range(0..3)];
                self.out.push((settings(Some(streams)), None));
                match streams {
                    0 if rng.random_bool(0.5) => self.out.push((settings(Some(3)), None)),
                    0 => deeds.allow(&[Cause::Timeout], FOR_EVER),
                    _ => {}
                }
            }
        }
    }
}

/// A good response as a list of frames.
fn in_frames(id: u32, rng: &mut Pcg64Mcg) -> VecDeque<Said> {
    let (status, is_good) = if rng.random_bool(0.1) {
        ("500", false)
    } else {
        ("200", true)
    };
    let body = vec![b'x'; [0, 5, 2000, 40_000][rng.random_range(0..4)]];
    let mut frames = VecDeque::new();
    if rng.random_bool(0.1) {
        frames.push_back((head(id, "103", &[("link", "x")], 0), None));
    }
    if body.is_empty() {
        frames.push_back((head(id, status, &[], END_STREAM), Some(is_good)));
        return frames;
    }
    let length = body.len().to_string();
    let length = [("content-length", length.as_str())];
    frames.push_back((head(id, status, &length[rng.random_range(0..2)..], 0), None));
    frames.extend(body.chunks(16_384).map(|piece| (data(id, piece, 0), None)));
    let end = if rng.random_bool(0.5) {
        trailers(id, &[("x", "y")])
    } else {
        data(id, b"", END_STREAM)
    };
    frames.push_back((end, Some(is_good)));
    frames
}
