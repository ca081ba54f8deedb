//! How long a response's body is, and whether the connection survives it: RFC 9112, sections 6.3 and 9.3.
//!
//! Pure decisions on a parsed head. It must not guess: a length that contradicts itself is a error.

use super::ReadError;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// A 1xx response: the final one is still to come, and where this one says `close`, the last on the connection.
    Interim { close: bool },
    /// The final response.
    Final { body: Body, reusable: bool },
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Body {
    Length(u64),
    Chunked,
    UntilClose,
}

/// Decides the framing of a response of this status and minor version, 0 or 1; `bodiless`: the request was HEAD.
pub(super) fn of(
    (status, version): (u16, u8),
    headers: &[httparse::Header<'_>],
    bodiless: bool,
) -> Result<Framing, ReadError> {
    let said = said(headers);
    match status {
        // 101 hands the connection to another protocol, which nobody asked for.
        101 => return Err(ReadError::Malformed),
        100..=199 => return Ok(Framing::Interim { close: said.close }),
        // Below 100 and from 600 on a status is invalid, and the response is one all the same (RFC 9110, 15).
        _ => {}
    }
    // Rule 1 of section 6.3, whatever the header fields say: there they describe what another request would have got.
    let body = if bodiless || matches!(status, 204 | 304) { Body::Length(0) } else { body(&said)? };
    // HTTP/1.0 knows no transfer codings: one that uses them is not to be trusted any further (6.1).
    let trusted = version == 1 || said.coding == Coding::None;
    let persistent = !said.close && (said.keep_alive || version == 1);
    Ok(Framing::Final { reusable: trusted && persistent && body != Body::UntilClose, body })
}

/// Where the body of a final response ends: the other rules in their order.
fn body(said: &Said) -> Result<Body, ReadError> {
    match (said.coding, said.length) {
        (_, Length::Invalid) => Err(ReadError::Malformed),
        // Rule 3: Transfer-Encoding overrides Content-Length.
        (Coding::Chunked, _) => Ok(Body::Chunked),
        (Coding::Other, _) | (Coding::None, Length::Absent) => Ok(Body::UntilClose),
        (Coding::None, Length::Bytes(length)) => Ok(Body::Length(length)),
    }
}

/// What the headers say about framing.
struct Said {
    length: Length,
    coding: Coding,
    close: bool,
    keep_alive: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Length {
    Absent,
    /// The one length that all Content-Length values agree on.
    Bytes(u64),
    /// Not a number, or two that differ.
    Invalid,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    None,
    /// The last coding is `chunked`: it says where the body ends (rule 4).
    Chunked,
    /// Anything else is last, or nothing: the body ends with the connection (rule 4).
    Other,
}

/// Goes over the headers once; most are told apart by the length of their name alone.
fn said(headers: &[httparse::Header<'_>]) -> Said {
    let mut said = Said { length: Length::Absent, coding: Coding::None, close: false, keep_alive: false };
    for header in headers {
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        let each = match header.name.len() {
            10 if is("connection") => Said::connection,
            14 if is("content-length") => Said::content_length,
            17 if is("transfer-encoding") => Said::transfer_coding,
            _ => continue,
        };
        for item in header.value.split(|&byte| byte == b',') {
            each(&mut said, item.trim_ascii());
        }
    }
    said
}

impl Said {
    fn connection(&mut self, option: &[u8]) {
        self.close |= option.eq_ignore_ascii_case(b"close");
        self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
    }

    fn content_length(&mut self, text: &[u8]) {
        self.length = match (self.length, decimal(text)) {
            (Length::Absent, Some(length)) => Length::Bytes(length),
            (Length::Bytes(before), Some(length)) if before == length => Length::Bytes(length),
            _ => Length::Invalid,
        };
    }

    fn transfer_coding(&mut self, coding: &[u8]) {
        self.coding = match (self.coding, coding) {
            // An empty element of a list counts for nothing (RFC 9110, 5.6.1.2); a list of none is no framing.
            (Coding::None, b"") => Coding::Other,
            (before, b"") => before,
            (_, coding) if coding.eq_ignore_ascii_case(b"chunked") => Coding::Chunked,
            _ => Coding::Other,
        };
    }
}
/// Digits only: a sign, a blank or an overflow is no length.
fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |value, &byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    })
}
