//! Classification of a block of fields: a head, an interim one, trailers, or an invalid block (RFC 9113,
//! section 8.1).

use model::Cause;

use super::hpack::Fields;
use super::request::OF_HTTP1;
use crate::reader::decimal;

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResponseShape {
    /// More heads follow.
    Interim,
    /// The final head, with the length it announces.
    Head { status: u16, length: Option<u64> },
    /// A block without a status.
    #[default]
    Trailers,
    /// The block ends its stream.
    Refused(Cause),
}

impl ResponseShape {
    pub(super) fn of(fields: &Fields) -> ResponseShape {
        let mut status = None;
        let mut length = None;
        for (number, (name, value)) in fields.iter().enumerate() {
            match name {
                // Before all other fields, and only once.
                b":status" if number == 0 => status = decimal(value).filter(|_| value.len() == 3),
                b"content-length" => match decimal(value) {
                    Some(bytes) if length.is_none_or(|known| known == bytes) => {
                        length = Some(bytes)
                    }
                    _ => return ResponseShape::Refused(Cause::Malformed),
                },
                _ if OF_HTTP1[1..].iter().any(|known| known.as_bytes() == name) => {
                    return ResponseShape::Refused(Cause::Malformed);
                }
                _ if !is_name(name) || !is_value(value) => {
                    return ResponseShape::Refused(Cause::Malformed);
                }
                _ => {}
            }
            if number == 0 && name == b":status" && status.is_none() {
                return ResponseShape::Refused(Cause::Malformed);
            }
        }
        match status {
            _ if fields.too_large => ResponseShape::Refused(Cause::TooLarge),
            None => ResponseShape::Trailers,
            // HTTP/2 has no upgrades.
            Some(..=99 | 101) => ResponseShape::Refused(Cause::Malformed),
            Some(100..=199) => ResponseShape::Interim,
            Some(status) => ResponseShape::Head {
                status: status as u16,
                length,
            },
        }
    }
}

/// Names are in lower case (RFC 9113, section 8.2.1). Responses have no pseudo-field other than the status.
fn is_name(name: &[u8]) -> bool {
    let is_allowed = |byte: &u8| matches!(byte, 0x21..=0x39 | 0x3b..=0x40 | 0x5b..=0x7e);
    !name.is_empty() && name.iter().all(is_allowed)
}

/// Forwarded in HTTP/1.1, these bytes would begin another field or response (RFC 9113, section 8.2.1).
fn is_value(value: &[u8]) -> bool {
    !value
        .iter()
        .any(|byte| matches!(byte, b'\0' | b'\r' | b'\n'))
}
