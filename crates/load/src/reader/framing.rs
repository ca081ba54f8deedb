//! How long a response's body is, and whether the connection survives it: RFC 9112, sections 6.3 and 9.3.
//!
//! Pure decisions on a parsed head. It must not guess: a length that contradicts itself is a flaw.

use super::Flaw;

/// What the framing of a response depends on.
pub(super) struct HeadFacts<'a> {
    pub(super) status: u16,
    /// The minor version: 0 or 1.
    pub(super) version: u8,
    pub(super) headers: &'a [httparse::Header<'a>],
    /// The request was HEAD.
    pub(super) bodiless: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// A 1xx response: the final one is still to come.
    Interim,
    /// The final response.
    Final { body: Body, reusable: bool },
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Body {
    Length(u64),
    Chunked,
    UntilClose,
}

/// Decides the framing of a response.
pub(super) fn of(facts: &HeadFacts<'_>) -> Result<Framing, Flaw> {
    match facts.status {
        // 101 hands the connection to another protocol, which nobody asked for.
        101 => return Err(Flaw::Malformed),
        100..=199 => return Ok(Framing::Interim),
        200..=999 => {}
        _ => return Err(Flaw::Malformed),
    }
    let said = said(facts.headers)?;
    let body = match (said.coding, said.length) {
        _ if facts.bodiless || matches!(facts.status, 204 | 304) => Body::Length(0),
        // Transfer-Encoding overrides Content-Length (6.3, rule 3).
        (Coding::Chunked, _) => Body::Chunked,
        (Coding::Other, _) | (Coding::None, None) => Body::UntilClose,
        (Coding::None, Some(length)) => Body::Length(length),
    };
    // HTTP/1.0 knows no transfer codings: one that uses them is not to be trusted any further (6.1).
    let trusted = facts.version == 1 || said.coding == Coding::None;
    let persistent = !said.close && (said.keep_alive || facts.version == 1);
    Ok(Framing::Final { reusable: trusted && persistent && body != Body::UntilClose, body })
}

/// What the headers say about framing.
struct Said {
    /// The one length that all Content-Length values agree on.
    length: Option<u64>,
    coding: Coding,
    close: bool,
    keep_alive: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    None,
    /// The last coding is `chunked`: it says where the body ends.
    Chunked,
    /// Codings without `chunked` at the end: the body ends with the connection.
    Other,
}

/// Goes over the headers once; most are told apart by the length of their name alone.
fn said(headers: &[httparse::Header<'_>]) -> Result<Said, Flaw> {
    let mut said = Said { length: None, coding: Coding::None, close: false, keep_alive: false };
    for header in headers {
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        let each: fn(&mut Said, &[u8]) -> Result<(), Flaw> = match header.name.len() {
            10 if is("connection") => connection,
            14 if is("content-length") => content_length,
            17 if is("transfer-encoding") => transfer_coding,
            _ => continue,
        };
        for item in header.value.split(|&byte| byte == b',') {
            each(&mut said, item.trim_ascii())?;
        }
    }
    Ok(said)
}

fn connection(said: &mut Said, option: &[u8]) -> Result<(), Flaw> {
    said.close |= option.eq_ignore_ascii_case(b"close");
    said.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
    Ok(())
}

fn content_length(said: &mut Said, text: &[u8]) -> Result<(), Flaw> {
    let length = decimal(text).ok_or(Flaw::Malformed)?;
    match said.length.replace(length) {
        Some(before) if before != length => Err(Flaw::Malformed),
        _ => Ok(()),
    }
}

fn transfer_coding(said: &mut Said, coding: &[u8]) -> Result<(), Flaw> {
    if said.coding == Coding::Chunked {
        // `chunked` is the last coding or it frames nothing.
        return Err(Flaw::Malformed);
    }
    said.coding = if coding.eq_ignore_ascii_case(b"chunked") { Coding::Chunked } else { Coding::Other };
    Ok(())
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
