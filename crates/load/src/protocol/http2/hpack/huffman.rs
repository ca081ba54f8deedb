//! The Huffman code of HPACK's strings (RFC 7541, section 5.2 and appendix B).
//!
//! The code is canonical: codes of one length follow each other in the order of their symbols, and shorter
//! codes come first. So the lengths define the code.

use super::Undecodable;

/// Code length in bits of each symbol: 256 bytes, and the end, which never occurs in a string.
#[rustfmt::skip]
const LENGTHS: [u8; END + 1] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28,
    28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6,
    6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8,
    13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15,
    11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23,
    23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26,
    26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21,
    22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27,
    27, 26, 30,
];
const END: usize = 256;
const LONGEST: usize = 30;

/// Tables derived from the lengths.
struct HuffmanCode {
    /// For each length: its first code, the code after its last one, and the offset of its symbols in
    /// `symbols`.
    lengths: [(u32, u32, usize); LONGEST + 1],
    /// All symbols in the order of their codes.
    symbols: [u16; END + 1],
    /// For each value of the first eight bits that contain a complete code: its symbol and length. Otherwise
    /// the length is 0. Nearly all codes in practice are this short.
    short: [(u8, u8); 256],
}

static CODE: HuffmanCode = {
    let mut all = HuffmanCode {
        lengths: [(0, 0, 0); LONGEST + 1],
        symbols: [0; END + 1],
        short: [(0, 0); 256],
    };
    let (mut code, mut length, mut place) = (0, 1, 0);
    while length <= LONGEST {
        let (first, from, mut symbol) = (code, place, 0);
        while symbol <= END {
            if LENGTHS[symbol] as usize == length {
                all.symbols[place] = symbol as u16;
                let mut bits = if length <= 8 {
                    (code as usize) << (8 - length)
                } else {
                    256
                };
                while bits < 256 && bits >> (8 - length) == code as usize {
                    all.short[bits] = (symbol as u8, length as u8);
                    bits += 1;
                }
                (code, place) = (code + 1, place + 1);
            }
            symbol += 1;
        }
        all.lengths[length] = (first, code, from);
        (code, length) = (code << 1, length + 1);
    }
    all
};

/// Appends the decoded `bytes`.
pub(super) fn decode(bytes: &[u8], into: &mut Vec<u8>) -> Result<(), Undecodable> {
    // The next bits are the highest ones. The bits after the available ones are 0.
    let (mut bits, mut there) = (0_u64, 0);
    let mut bytes = bytes.iter();
    loop {
        while there <= 56
            && let Some(&byte) = bytes.next()
        {
            bits |= u64::from(byte) << (56 - there);
            there += 8;
        }
        let (symbol, length) = match CODE.short[(bits >> 56) as usize] {
            (_, 0) => long(bits),
            (symbol, length) => (symbol.into(), length.into()),
        };
        if length > there {
            break;
        }
        into.push(u8::try_from(symbol).map_err(|_| Undecodable)?);
        (bits, there) = (bits << length, there - length);
    }
    // The rest is the beginning of the end's code, which is all ones, and less than a byte.
    let is_padding = there < 8 && bits.leading_ones() >= there;
    if is_padding { Ok(()) } else { Err(Undecodable) }
}

/// The symbol whose code begins with the highest bits, and the length of that code.
fn long(bits: u64) -> (u16, u32) {
    for (length, &(first, behind, from)) in CODE.lengths.iter().enumerate().skip(9) {
        let code = (bits >> (64 - length)) as u32;
        if code < behind {
            return (CODE.symbols[from + (code - first) as usize], length as u32);
        }
    }
    // Ones alone, which are also found above.
    (END as u16, LONGEST as u32)
}
