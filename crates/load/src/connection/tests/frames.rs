//! HTTP/2 frames written and read by hand (RFC 9113, section 4), for servers that do what no library would.

use crate::protocol::http2::frame::END_HEADERS;
pub(super) use crate::protocol::http2::frame::{
    ACK, DATA, END_STREAM, GOAWAY, HEADERS, PING, PREFACE, RST_STREAM, SETTINGS, WINDOW_UPDATE,
};

pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// SETTINGS with a number of concurrent streams, if given.
pub(super) fn settings(streams: Option<u32>) -> Vec<u8> {
    let payload = streams
        .map(|most| [&[0, 3], &most.to_be_bytes()[..]].concat())
        .unwrap_or_default();
    frame(SETTINGS, 0, 0, &payload)
}

/// A response's head. Fields are written without compression.
pub(super) fn head(stream: u32, status: &str, fields: &[(&str, &str)], flags: u8) -> Vec<u8> {
    // Index 8 of the static table is `:status`.
    let mut block = [&[8], text(status).as_slice()].concat();
    fields
        .iter()
        .for_each(|field| block.extend(literal(*field)));
    frame(HEADERS, END_HEADERS | flags, stream, &block)
}

pub(super) fn trailers(stream: u32, fields: &[(&str, &str)]) -> Vec<u8> {
    let block: Vec<u8> = fields.iter().flat_map(|field| literal(*field)).collect();
    frame(HEADERS, END_HEADERS | END_STREAM, stream, &block)
}

pub(super) fn data(stream: u32, bytes: &[u8], flags: u8) -> Vec<u8> {
    frame(DATA, flags, stream, bytes)
}

pub(super) fn reset(stream: u32, reason: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &reason.to_be_bytes())
}

/// GOAWAY: streams after `last` were not processed.
pub(super) fn goaway(last: u32, reason: u32) -> Vec<u8> {
    frame(
        GOAWAY,
        0,
        0,
        &[last.to_be_bytes(), reason.to_be_bytes()].concat(),
    )
}

/// A field that is not added to a table (RFC 7541, section 6.2.2).
fn literal((name, value): (&str, &str)) -> Vec<u8> {
    [vec![0], text(name), text(value)].concat()
}

/// An uncompressed string with its length first: seven bits, and the rest in groups of seven (RFC 7541,
/// section 5.1).
fn text(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    match text.len() {
        short @ ..127 => bytes.push(short as u8),
        long => {
            bytes.push(127);
            let mut rest = long - 127;
            while rest >= 128 {
                bytes.push((rest % 128) as u8 | 128);
                rest /= 128;
            }
            bytes.push(rest as u8);
        }
    }
    [&bytes, text.as_bytes()].concat()
}

/// The frames of a client after its preface: type, flags, stream and payload of each.
pub(super) fn read(mut bytes: &[u8]) -> Vec<(u8, u8, u32, Vec<u8>)> {
    let mut frames = Vec::new();
    bytes = bytes.strip_prefix(PREFACE).unwrap_or(bytes);
    while let [a, b, c, kind, flags, d, e, f, g, rest @ ..] = bytes {
        let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        frames.push((
            *kind,
            *flags,
            u32::from_be_bytes([*d, *e, *f, *g]),
            rest[..length].to_vec(),
        ));
        bytes = &rest[length..];
    }
    frames
}
