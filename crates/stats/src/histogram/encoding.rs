//! Text encoding of histograms: base64 of HdrHistogram's compressed V2 form.
//!
//! Records may be damaged or made by other programs, so every length is checked before use.

use super::packed::{CELLS, Packed, Packer, take};
use super::{HIGHEST_NS, LOWEST_NS, SIGNIFICANT_DIGITS};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use std::io::Read;

/// Cookie and length before the deflated part.
const HEAD_BYTES: usize = 8;
/// First four bytes of the plain V2 form: the base cookie with one-byte words.
const V2_COOKIE: [u8; 4] = 0x1c84_9313_u32.to_be_bytes();
/// Length of the head of the plain V2 form.
const PLAIN_HEAD_BYTES: usize = 40;
/// Every one of our cells as a 9-byte number. No valid histogram inflates to more.
const INFLATED_BYTES_MAX: u64 = PLAIN_HEAD_BYTES as u64 + 9 * CELLS as u64;

/// Encodes as base64 of the compressed V2 form.
pub(super) fn to_text(histogram: &Histogram<u32>) -> String {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(histogram, &mut bytes)
        .expect("a Vec takes every byte and the format every u32");
    STANDARD.encode(bytes)
}

/// Decodes the cells of a text. An empty text has none. The result is packed: a few KiB instead of 132,
/// nearly all of which would be empty.
pub(super) fn from_text(text: &str) -> Result<Packed, String> {
    if text.is_empty() {
        return Ok(Packed::default());
    }
    let bytes = STANDARD
        .decode(text)
        .map_err(|cause| damaged(format!("not base64: {cause}")))?;
    let plain = inflate(&bytes)?;
    check_head(&plain)?;
    cells(&plain[PLAIN_HEAD_BYTES..])
}

/// Rejects a head with a different layout or with fields that our histograms never have.
///
/// ```text
/// bytes   0    4         8         12      16       24        32
///       cookie │ length  │ offset  │ digits │ lowest │ highest │ ratio   big-endian; all integers but for the ratio, a double
/// ```
fn check_head(plain: &[u8]) -> Result<(), String> {
    let (offset, digits) = (
        u32::from_be_bytes(word(plain, 8)),
        u32::from_be_bytes(word(plain, 12)),
    );
    let (low, high) = (
        u64::from_be_bytes(word(plain, 16)),
        u64::from_be_bytes(word(plain, 24)),
    );
    let ratio = f64::from_be_bytes(word(plain, 32));
    if (low, high, digits) != (LOWEST_NS, HIGHEST_NS, SIGNIFICANT_DIGITS.into()) {
        return Err(damaged(format!(
            "layout is {low} to {high} with {digits} digits, expected {LOWEST_NS} to {HIGHEST_NS} with {SIGNIFICANT_DIGITS}"
        )));
    }
    if offset != 0 || ratio != 1.0 {
        return Err(damaged(format!(
            "has an offset of {offset} and a ratio of {ratio}, expected 0 and 1"
        )));
    }
    Ok(())
}

/// Returns a field of a complete head.
fn word<const BYTES: usize>(plain: &[u8], at: usize) -> [u8; BYTES] {
    plain[at..at + BYTES]
        .try_into()
        .expect("a range has as many bytes as it says")
}

/// Decodes the counts of all cells in order, without trailing empty cells. A number above 0 is a count, a
/// negative one is a number of empty cells.
fn cells(mut numbers: &[u8]) -> Result<Packed, String> {
    let mut packer = Packer::default();
    let mut cell = 0_u64;
    while !numbers.is_empty() {
        let number = take(&mut numbers).ok_or_else(|| damaged("cut off in its last number"))?;
        // Zigzag: the lowest bit is the sign.
        if number & 1 == 1 {
            cell = cell.saturating_add((number >> 1) + 1);
            continue;
        }
        let count = number >> 1;
        if count > 0 {
            let fits = u32::try_from(cell).ok().filter(|cell| *cell < CELLS);
            let place = fits.ok_or_else(|| damaged(format!("has more than {CELLS} cells")))?;
            let too_many = |_| {
                damaged(format!(
                    "has {count} samples in one cell, at most {}",
                    u32::MAX
                ))
            };
            packer.push(place, u32::try_from(count).map_err(too_many)?);
        }
        cell = cell.saturating_add(1);
    }
    Ok(packer.finish())
}

/// Inflates a compressed form to the plain V2 form.
///
/// The head may be damaged too, so the size is limited here, and the claimed length must match.
fn inflate(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let deflated = bytes
        .get(HEAD_BYTES..)
        .ok_or_else(|| damaged("cut off in its head"))?;
    let mut inflated = Vec::new();
    ZlibDecoder::new(deflated)
        .take(INFLATED_BYTES_MAX + 1)
        .read_to_end(&mut inflated)
        .map_err(|cause| damaged(format!("cannot be inflated: {cause}")))?;
    if inflated.len() as u64 > INFLATED_BYTES_MAX {
        return Err(damaged(format!(
            "inflates to more than {INFLATED_BYTES_MAX} bytes"
        )));
    }
    let rest = inflated.len().checked_sub(PLAIN_HEAD_BYTES);
    let as_claimed = |rest: usize| inflated[4..8] == (rest as u32).to_be_bytes();
    if !inflated.starts_with(&V2_COOKIE) || !rest.is_some_and(as_claimed) {
        return Err(damaged("not in the V2 form, or cut off"));
    }
    Ok(inflated)
}

fn damaged(why: impl std::fmt::Display) -> String {
    format!("stored histogram: {why}")
}
