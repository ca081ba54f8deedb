//! The frames of HTTP/2 as bytes (RFC 9113, sections 4 and 6).

/// Length, type, flags and stream of a frame.
pub(super) const HEAD_BYTES: usize = 9;
/// The longest payload, unless a side changes it. The engine does not.
pub(super) const PAYLOAD_MAX: usize = 1 << 14;

/// The first bytes a client sends.
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(super) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(super) const PUSH_PROMISE: u8 = 5;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;

pub(crate) const ACK: u8 = 1;
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
pub(super) const PADDED: u8 = 8;
pub(super) const WITH_PRIORITY: u8 = 0x20;

pub(super) const SETTINGS_HEADER_TABLE_SIZE: u16 = 1;
pub(super) const SETTINGS_ENABLE_PUSH: u16 = 2;
pub(super) const SETTINGS_MAX_CONCURRENT_STREAMS: u16 = 3;
pub(super) const SETTINGS_INITIAL_WINDOW_SIZE: u16 = 4;
pub(super) const SETTINGS_MAX_FRAME_SIZE: u16 = 5;

pub(super) const NO_ERROR: u32 = 0;
pub(super) const PROTOCOL_ERROR: u32 = 1;
pub(super) const REFUSED_STREAM: u32 = 7;
pub(super) const CANCEL: u32 = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Http2Frame {
    pub(super) length: usize,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

impl Http2Frame {
    pub(super) fn read(head: [u8; HEAD_BYTES]) -> Http2Frame {
        let [a, b, c, kind, flags, rest @ ..] = head;
        let stream = u32::from_be_bytes(rest) & 0x7fff_ffff;
        Http2Frame {
            length: u32::from_be_bytes([0, a, b, c]) as usize,
            kind,
            flags,
            stream,
        }
    }

    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Appends a frame. Its payload has at most 2²⁴ − 1 bytes.
pub(super) fn push(output: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let [_, length @ ..] = (payload.len() as u32).to_be_bytes();
    output.extend_from_slice(&length);
    output.extend_from_slice(&[kind, flags]);
    output.extend_from_slice(&stream.to_be_bytes());
    output.extend_from_slice(payload);
}

/// Parses the first four bytes as a number.
pub(super) fn number(payload: &[u8]) -> Option<u32> {
    payload
        .first_chunk()
        .map(|bytes| u32::from_be_bytes(*bytes))
}
