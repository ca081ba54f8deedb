//! The content coding `deflate`, and the inflating that `gzip` has in common with it.
//!
//! By RFC 9110, section 8.4.1.2 it is the zlib format (RFC 1950). Many servers send bare deflate data (RFC 1951), and
//! clients learned to take both, so both are taken. The first two bytes tell: what is a zlib header would be, as bare
//! deflate, a stored block with padding that no encoder writes. It must not accept bytes after the end.

use flate2::{Decompress, FlushDecompress, Status};

use super::gather::{Gather, array};
use super::layer::{Decode, Out};
use super::{Coding, ContentFlaw};

const OUT_BYTES: usize = 16 * 1024;

/// Deflate data being undone, bare or in the zlib format, on behalf of a coding.
pub(super) struct Inflate {
    coding: Coding,
    state: Decompress,
    decoded: Box<[u8]>,
}

impl Inflate {
    pub(super) fn new(coding: Coding, zlib: bool) -> Inflate {
        Inflate { coding, state: Decompress::new(zlib), decoded: vec![0; OUT_BYTES].into() }
    }

    /// Makes ready for the next piece of bare deflate data.
    pub(super) fn restart(&mut self) {
        self.state.reset(false);
    }

    /// Takes `bytes` up to the end of the data; true when they contain it.
    pub(super) fn push(&mut self, bytes: &mut &[u8], out: &mut Out<'_>) -> Result<bool, ContentFlaw> {
        loop {
            let (before_in, before_out) = (self.state.total_in(), self.state.total_out());
            let status = self.state.decompress(bytes, &mut self.decoded, FlushDecompress::None);
            let used = (self.state.total_in() - before_in) as usize;
            let made = (self.state.total_out() - before_out) as usize;
            *bytes = &bytes[used..];
            if made > 0 {
                out(&self.decoded[..made])?;
            }
            match status {
                Ok(Status::StreamEnd) => return Ok(true),
                Ok(_) if used == 0 && made == 0 => return Ok(false),
                Ok(_) => {}
                Err(_) => {
                    let why = "its data is broken or does not match its checksum";
                    return Err(ContentFlaw::Corrupt { coding: self.coding, why });
                }
            }
        }
    }
}

/// The content coding `deflate`.
pub(super) struct Deflate {
    start: Gather,
    state: State,
}

enum State {
    Start,
    Data(Inflate),
    End,
}

impl Deflate {
    pub(super) fn new() -> Deflate {
        Deflate { start: Gather::default(), state: State::Start }
    }

    fn push_data(&mut self, bytes: &mut &[u8], out: &mut Out<'_>) -> Result<(), ContentFlaw> {
        if let State::Data(inflate) = &mut self.state
            && inflate.push(bytes, out)?
        {
            self.state = State::End;
        }
        Ok(())
    }
}

impl Decode for Deflate {
    fn push(&mut self, mut bytes: &[u8], out: &mut Out<'_>) -> Result<(), ContentFlaw> {
        if let State::Start = self.state {
            if !self.start.fill(&mut bytes, 2) {
                return Ok(());
            }
            let start: [u8; 2] = array(self.start.held());
            self.state = State::Data(Inflate::new(Coding::Deflate, is_zlib_header(start)));
            self.push_data(&mut start.as_slice(), out)?;
        }
        self.push_data(&mut bytes, out)?;
        match self.state {
            State::End if !bytes.is_empty() => Err(ContentFlaw::TrailingGarbage { coding: Coding::Deflate }),
            _ => Ok(()),
        }
    }

    fn end(&self) -> Result<(), ContentFlaw> {
        match self.state {
            State::End => Ok(()),
            State::Start | State::Data(_) => Err(ContentFlaw::Truncated { coding: Coding::Deflate }),
        }
    }
}

/// RFC 1950, section 2.2: method 8, a window of 32 KiB at most, and the two bytes as one number a multiple of 31.
fn is_zlib_header(start: [u8; 2]) -> bool {
    start[0] & 0x0f == 8 && start[0] >> 4 <= 7 && u16::from_be_bytes(start).is_multiple_of(31)
}
