//! Histograms as text: base64 of HdrHistogram's compressed V2 form, as in its log files.
//!
//! Texts come from records that may be damaged or made by somebody else: every length is checked before it is believed.

use super::{HIGHEST_NS, LOWEST_NS, SIGNIFICANT_DIGITS, table};
use crate::Error;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use std::io::Read;

/// Cookie and length before the deflated part.
const HEAD_BYTES: usize = 8;
/// First four bytes of the plain V2 form: the base cookie with one-byte words.
const V2_COOKIE: [u8; 4] = 0x1c84_9313_u32.to_be_bytes();
/// A V2 head (40 bytes) and every one of our cells as a 9-byte number: no honest histogram inflates to more.
const INFLATED_BYTES_MAX: u64 = 40 + 9 * 33_792;

/// Base64 of the compressed V2 form.
pub(super) fn to_text(histogram: &Histogram<u32>) -> String {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(histogram, &mut bytes)
        .expect("a Vec takes every byte and the format every u32");
    STANDARD.encode(bytes)
}

/// The histogram of a text; an empty one when the text is empty.
pub(super) fn from_text(text: &str) -> Result<Histogram<u32>, Error> {
    if text.is_empty() {
        return Ok(table());
    }
    let bytes = STANDARD.decode(text).map_err(|cause| Error::Histogram(format!("not base64: {cause}")))?;
    let inflated = inflate(&bytes)?;
    let histogram: Histogram<u32> = Deserializer::new()
        .deserialize(&mut inflated.as_slice())
        .map_err(|cause| Error::Histogram(cause.to_string()))?;
    if (histogram.low(), histogram.high(), histogram.sigfig()) != (LOWEST_NS, HIGHEST_NS, SIGNIFICANT_DIGITS)
    {
        return Err(Error::Histogram(format!(
            "layout is {} to {} with {} digits, expected {LOWEST_NS} to {HIGHEST_NS} with {SIGNIFICANT_DIGITS}",
            histogram.low(),
            histogram.high(),
            histogram.sigfig(),
        )));
    }
    Ok(histogram)
}

/// The plain V2 form inside a compressed one.
///
/// The reader of `hdrhistogram` would inflate for itself, but allocates whatever a damaged head asks for, up to
/// 4 GB. So the size is bounded here, and the claimed length must be the one that is there.
fn inflate(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let deflated = bytes.get(HEAD_BYTES..).ok_or_else(|| Error::Histogram("cut off in its head".into()))?;
    let mut inflated = Vec::new();
    ZlibDecoder::new(deflated)
        .take(INFLATED_BYTES_MAX + 1)
        .read_to_end(&mut inflated)
        .map_err(|cause| Error::Histogram(format!("cannot be inflated: {cause}")))?;
    if inflated.len() as u64 > INFLATED_BYTES_MAX {
        return Err(Error::Histogram(format!("inflates to more than {INFLATED_BYTES_MAX} bytes")));
    }
    let claimed = (inflated.len() as u32).wrapping_sub(40).to_be_bytes();
    if !inflated.starts_with(&V2_COOKIE) || inflated.get(4..8) != Some(claimed.as_slice()) {
        return Err(Error::Histogram("not in the V2 form, or cut off".into()));
    }
    Ok(inflated)
}
