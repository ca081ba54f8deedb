//! The content coding `gzip`: one or more members, one after the other (RFC 1952, section 2.2).
//!
//! Header fields are passed over, and their own checksum with them: they are no part of the content. It must not
//! accept bytes after the last member that do not begin another one.

use flate2::Crc;

use super::deflate::Inflate;
use super::gather::{Gather, array};
use super::layer::{Decode, Out};
use super::{Coding, ContentFlaw};

const HEADER_BYTES: usize = 10;
const TRAILER_BYTES: usize = 8;
/// ID1, ID2 and the only method there is.
const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];

const FHCRC: u8 = 1 << 1;
const FEXTRA: u8 = 1 << 2;
const FNAME: u8 = 1 << 3;
const FCOMMENT: u8 = 1 << 4;
const RESERVED: u8 = 0b1110_0000;

/// The content coding `gzip`.
pub(super) struct Gzip {
    state: State,
    piece: Gather,
    inflate: Inflate,
    /// CRC-32 and length of what the member decodes to.
    crc: Crc,
    /// Whether a member has been read to its end.
    complete: bool,
}

/// What is read next. `fields` are the flags of the header fields that are still to come.
enum State {
    Header,
    ExtraLength {
        fields: u8,
    },
    Extra {
        fields: u8,
        left: u16,
    },
    /// A name or a comment, up to a zero byte.
    Text {
        fields: u8,
    },
    HeaderCrc,
    Data,
    Trailer,
}

impl Gzip {
    pub(super) fn new() -> Gzip {
        Gzip {
            state: State::Header,
            piece: Gather::default(),
            inflate: Inflate::new(Coding::Gzip, false),
            crc: Crc::new(),
            complete: false,
        }
    }

    /// Takes bytes for the present state and goes to the next one when it has all of them.
    fn step(&mut self, bytes: &mut &[u8], out: &mut Out<'_>) -> Result<(), ContentFlaw> {
        match self.state {
            State::Header if self.piece.fill(bytes, HEADER_BYTES) => self.state = self.header()?,
            State::ExtraLength { fields } if self.piece.fill(bytes, 2) => {
                let left = u16::from_le_bytes(array(self.piece.held()));
                self.state = State::Extra { fields, left };
            }
            State::Extra { fields, left } => {
                let passed = bytes.len().min(left.into());
                *bytes = &bytes[passed..];
                let left = left - passed as u16;
                self.state = if left == 0 { field_after(fields) } else { State::Extra { fields, left } };
            }
            State::Text { fields } => match bytes.iter().position(|byte| *byte == 0) {
                Some(end) => {
                    *bytes = &bytes[end + 1..];
                    self.state = field_after(fields);
                }
                None => *bytes = &[],
            },
            State::HeaderCrc if self.piece.fill(bytes, 2) => self.state = State::Data,
            State::Data => {
                let crc = &mut self.crc;
                let ended = self.inflate.push(bytes, &mut |decoded| {
                    crc.update(decoded);
                    out(decoded)
                })?;
                if ended {
                    self.state = State::Trailer;
                }
                return Ok(());
            }
            State::Trailer if self.piece.fill(bytes, TRAILER_BYTES) => self.trailer()?,
            // The piece is not complete, and there are no more bytes.
            State::Header | State::ExtraLength { .. } | State::HeaderCrc | State::Trailer => return Ok(()),
        }
        self.piece.clear();
        Ok(())
    }

    /// Judges the fixed part of a member's header.
    fn header(&self) -> Result<State, ContentFlaw> {
        let header = self.piece.held();
        if !begins_member(header) {
            return Err(self.no_member());
        }
        let flags = header[MAGIC.len()];
        if flags & RESERVED != 0 {
            return Err(corrupt("its header has flags that no version of the format has"));
        }
        Ok(field_after(flags))
    }

    /// Compares what was decoded with what the member says of it, and makes ready for another member.
    fn trailer(&mut self) -> Result<(), ContentFlaw> {
        let trailer = self.piece.held();
        let stated = (u32::from_le_bytes(array(trailer)), u32::from_le_bytes(array(&trailer[4..])));
        if stated.0 != self.crc.sum() {
            return Err(corrupt("its checksum does not match"));
        }
        // RFC 1952, section 2.3.1: the length is kept modulo 2^32, and so it is counted here.
        if stated.1 != self.crc.amount() {
            return Err(corrupt("its length is not the one it states"));
        }
        self.crc.reset();
        self.inflate.restart();
        self.complete = true;
        self.state = State::Header;
        Ok(())
    }

    fn no_member(&self) -> ContentFlaw {
        if self.complete {
            ContentFlaw::TrailingGarbage { coding: Coding::Gzip }
        } else {
            corrupt("it does not begin as gzip does")
        }
    }
}

impl Decode for Gzip {
    fn push(&mut self, mut bytes: &[u8], out: &mut Out<'_>) -> Result<(), ContentFlaw> {
        while !bytes.is_empty() {
            self.step(&mut bytes, out)?;
        }
        Ok(())
    }

    fn end(&self) -> Result<(), ContentFlaw> {
        match (&self.state, self.piece.held()) {
            (State::Header, []) if self.complete => Ok(()),
            (State::Header, start) if !begins_member(start) => Err(self.no_member()),
            _ => Err(ContentFlaw::Truncated { coding: Coding::Gzip }),
        }
    }
}

/// Whether a member may begin with these bytes, as far as they go.
fn begins_member(start: &[u8]) -> bool {
    start.iter().zip(MAGIC).all(|(found, expected)| *found == expected)
}

/// The next of a header's fields, in the order of RFC 1952, section 2.3.
fn field_after(fields: u8) -> State {
    if fields & FEXTRA != 0 {
        State::ExtraLength { fields: fields & !FEXTRA }
    } else if fields & FNAME != 0 {
        State::Text { fields: fields & !FNAME }
    } else if fields & FCOMMENT != 0 {
        State::Text { fields: fields & !FCOMMENT }
    } else if fields & FHCRC != 0 {
        State::HeaderCrc
    } else {
        State::Data
    }
}

fn corrupt(why: &'static str) -> ContentFlaw {
    ContentFlaw::Corrupt { coding: Coding::Gzip, why }
}
