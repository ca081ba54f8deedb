//! The content coding `zstd`: one or more frames, one after the other (RFC 8878, section 3.1).
//!
//! The decoder wants whole blocks, so headers are read here far enough to know how long each piece is; a piece is at
//! most a block of 128 KiB. What the decoder leaves to its caller is judged here: checksum, stated length, reserved
//! bit. It must not accept a window above 8 MiB (RFC 9659), a dictionary, or bytes after the last frame that do not
//! begin another one.

use std::io::Read;

use ruzstd::decoding::errors::FrameDecoderError;
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::gather::{Gather, array};
use super::layer::{Decode, Out};
use super::{Coding, ContentFlaw};

/// RFC 9659, section 3: the largest window that decoders must support and encoders may use.
pub(super) const WINDOW_LIMIT_BYTES: u64 = 8 << 20;
/// RFC 8878, section 3.1.1.2.4.
const BLOCK_LIMIT_BYTES: usize = 128 << 10;
const OUT_BYTES: usize = 64 * 1024;

const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Section 3.1.2: the lowest four bits of the first byte are free.
const SKIPPABLE_MAGIC: [u8; 4] = [0x50, 0x2a, 0x4d, 0x18];
const MAGIC_BYTES: usize = 4;
const BLOCK_HEADER_BYTES: usize = 3;
const CHECKSUM_BYTES: usize = 4;

/// The content coding `zstd`.
pub(super) struct Zstd {
    state: State,
    piece: Gather,
    decoder: FrameDecoder,
    decoded: Box<[u8]>,
    /// Bytes that the present frame has given.
    frame_bytes: u64,
    /// Whether a frame has been read to its end.
    complete: bool,
}

/// What is read next.
#[derive(Clone, Copy)]
enum State {
    Magic,
    SkipLength,
    Skip { left: u32 },
    Descriptor,
    Header { frame: Frame, bytes: usize },
    BlockHeader { frame: Frame },
    Block { frame: Frame, last: bool, bytes: usize },
}

/// The frame header descriptor, section 3.1.1.1.1.
#[derive(Clone, Copy)]
struct Frame(u8);

impl Zstd {
    pub(super) fn new() -> Zstd {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(WINDOW_LIMIT_BYTES);
        Zstd {
            state: State::Magic,
            piece: Gather::default(),
            decoder,
            decoded: vec![0; OUT_BYTES].into(),
            frame_bytes: 0,
            complete: false,
        }
    }

    /// Takes bytes for the present state and goes to the next one when it has all of them.
    fn step(&mut self, bytes: &mut &[u8], out: &mut Out<'_>) -> Result<(), ContentFlaw> {
        match self.state {
            State::Magic if self.piece.fill(bytes, MAGIC_BYTES) => self.state = self.magic()?,
            State::SkipLength if self.piece.fill(bytes, MAGIC_BYTES + 4) => {
                let left = u32::from_le_bytes(array(&self.piece.held()[MAGIC_BYTES..]));
                self.skip(left);
            }
            State::Skip { left } => {
                let passed = bytes.len().min(left as usize);
                *bytes = &bytes[passed..];
                self.skip(left - passed as u32);
            }
            State::Descriptor if self.piece.fill(bytes, MAGIC_BYTES + 1) => {
                let frame = Frame(self.piece.held()[MAGIC_BYTES]);
                self.state = State::Header { frame, bytes: frame.header_bytes()? };
            }
            State::Header { frame, bytes: need } if self.piece.fill(bytes, need) => {
                self.decoder.reset(self.piece.held()).map_err(refused)?;
                self.piece.clear();
                self.frame_bytes = 0;
                self.state = State::BlockHeader { frame };
            }
            State::BlockHeader { frame } if self.piece.fill(bytes, BLOCK_HEADER_BYTES) => {
                self.state = self.block_header(frame)?;
            }
            State::Block { frame, last, bytes: need } if self.piece.fill(bytes, need) => {
                self.block(frame, last, out)?;
            }
            // The piece is not complete, and there are no more bytes.
            _ => {}
        }
        Ok(())
    }

    fn magic(&self) -> Result<State, ContentFlaw> {
        let magic = self.piece.held();
        if !begins_frame(magic) {
            return Err(self.no_frame());
        }
        Ok(if magic == MAGIC { State::Descriptor } else { State::SkipLength })
    }

    fn skip(&mut self, left: u32) {
        self.piece.clear();
        self.complete |= left == 0;
        self.state = if left == 0 { State::Magic } else { State::Skip { left } };
    }

    /// How much must be there before the block can be decoded: section 3.1.1.2.
    fn block_header(&self, frame: Frame) -> Result<State, ContentFlaw> {
        let [low, middle, high] = array(self.piece.held());
        let header = u32::from_le_bytes([low, middle, high, 0]);
        let (last, kind, size) = (header & 1 == 1, header >> 1 & 3, (header >> 3) as usize);
        let content_bytes = match kind {
            // A byte that is repeated `size` times.
            1 => 1,
            3 => return Err(corrupt("a block is of the reserved type")),
            _ => size,
        };
        if size > BLOCK_LIMIT_BYTES {
            return Err(corrupt("a block is longer than 128 KiB"));
        }
        // The checksum follows the last block, and the decoder reads both in one go.
        let checksum_bytes = if last && frame.has_checksum() { CHECKSUM_BYTES } else { 0 };
        let bytes = BLOCK_HEADER_BYTES + content_bytes + checksum_bytes;
        Ok(State::Block { frame, last, bytes })
    }

    /// Decodes the block that is held, and after the last one judges the frame.
    fn block(&mut self, frame: Frame, last: bool, out: &mut Out<'_>) -> Result<(), ContentFlaw> {
        let one = BlockDecodingStrategy::UptoBlocks(1);
        self.decoder.decode_blocks(self.piece.held(), one).map_err(refused)?;
        self.piece.clear();
        loop {
            let made = self.decoder.read(&mut self.decoded).map_err(|_| corrupt("its data is broken"))?;
            if made == 0 {
                break;
            }
            self.frame_bytes += made as u64;
            out(&self.decoded[..made])?;
        }
        self.state = State::BlockHeader { frame };
        if last {
            self.frame_end(frame)?;
            self.state = State::Magic;
            self.complete = true;
        }
        Ok(())
    }

    fn frame_end(&self, frame: Frame) -> Result<(), ContentFlaw> {
        if frame.has_length() && self.frame_bytes != self.decoder.content_size() {
            return Err(corrupt("a frame's length is not the one it states"));
        }
        let stated = self.decoder.get_checksum_from_data();
        if frame.has_checksum() && stated != self.decoder.get_calculated_checksum() {
            return Err(corrupt("its checksum does not match"));
        }
        Ok(())
    }

    fn no_frame(&self) -> ContentFlaw {
        if self.complete {
            ContentFlaw::TrailingGarbage { coding: Coding::Zstd }
        } else {
            corrupt("it does not begin as zstd does")
        }
    }
}

impl Decode for Zstd {
    fn push(&mut self, mut bytes: &[u8], out: &mut Out<'_>) -> Result<(), ContentFlaw> {
        while !bytes.is_empty() {
            self.step(&mut bytes, out)?;
        }
        Ok(())
    }

    fn end(&self) -> Result<(), ContentFlaw> {
        match (self.state, self.piece.held()) {
            (State::Magic, []) if self.complete => Ok(()),
            (State::Magic, start) if !begins_frame(start) => Err(self.no_frame()),
            _ => Err(ContentFlaw::Truncated { coding: Coding::Zstd }),
        }
    }
}

impl Frame {
    fn is_single_segment(self) -> bool {
        self.0 & 1 << 5 != 0
    }

    fn has_checksum(self) -> bool {
        self.0 & 1 << 2 != 0
    }

    fn has_length(self) -> bool {
        self.length_bytes() > 0
    }

    fn length_bytes(self) -> usize {
        match self.0 >> 6 {
            0 => usize::from(self.is_single_segment()),
            flag => 1 << flag,
        }
    }

    /// The whole frame header with magic number and descriptor: section 3.1.1.1.
    fn header_bytes(self) -> Result<usize, ContentFlaw> {
        if self.0 & 1 << 3 != 0 {
            return Err(corrupt("a frame header has the reserved bit set"));
        }
        let window_bytes = usize::from(!self.is_single_segment());
        let dictionary_bytes = [0, 1, 2, 4][usize::from(self.0 & 3)];
        Ok(MAGIC_BYTES + 1 + window_bytes + dictionary_bytes + self.length_bytes())
    }
}

/// Whether a frame may begin with these bytes, as far as they go.
fn begins_frame(start: &[u8]) -> bool {
    let fits = |magic: [u8; 4], free: u8| {
        let mut pairs = start.iter().zip(magic).zip([!free, 0xff, 0xff, 0xff]);
        pairs.all(|((found, expected), mask)| found & mask == expected & mask)
    };
    fits(MAGIC, 0) || fits(SKIPPABLE_MAGIC, 0x0f)
}

fn refused(error: FrameDecoderError) -> ContentFlaw {
    match error {
        FrameDecoderError::WindowSizeTooBig { requested, max } => {
            ContentFlaw::WindowTooLarge { window_bytes: requested, limit_bytes: max }
        }
        FrameDecoderError::DictNotProvided { .. } => {
            corrupt("it needs a dictionary, and this coding has none")
        }
        _ => corrupt("its data is broken"),
    }
}

fn corrupt(why: &'static str) -> ContentFlaw {
    ContentFlaw::Corrupt { coding: Coding::Zstd, why }
}
