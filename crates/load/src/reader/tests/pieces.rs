//! Invariants of the reader for any bytes, split in any way, checked by the tests and the fuzz target.
//!
//! For any split, read or skipped, the same bytes give the same outcome, the same head and the same counts.
//! No count exceeds the input, and only a head is stored. This module is built for tests and fuzzing only,
//! and does not define the expected outcome of any bytes.

use super::{
    HEAD_LIMIT_BYTES, ReadProgress, ResponseHead, ResponseReadError, ResponseReader, Sink,
};

/// For callers that need only the head.
impl<F: FnMut(&ResponseHead<'_>)> Sink for F {
    fn head(&mut self, head: &ResponseHead<'_>) {
        self(head);
    }

    fn content(&mut self, _: &[u8]) {}
}

/// The outcome of bytes after which the connection ended, in the notation of `tests/responses/cases.txt`:
/// `done STATUS BODY kept`, `closed` or `surplus EXTRA`, `ended STATUS BODY`, `cut head`, `cut body STATUS
/// BODY`, and `malformed` or `too-large` with `head` or `body`.
type Outcome = String;

/// A head as passed to the sink.
type Shown = (u16, Vec<(String, Vec<u8>)>);

/// Bytes as they arrive: split at `cuts` (each modulo the length), and skipped if `skip` is set and the
/// reader allows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Feed<'a> {
    pub(crate) bytes: &'a [u8],
    /// The bytes respond to a HEAD request.
    pub(crate) bodiless: bool,
    pub(crate) cuts: &'a [usize],
    pub(crate) skip: bool,
}

/// Panics if the bytes, split like this, give a different outcome than in one piece.
pub fn same_for_every_cut(bytes: &[u8], bodiless: bool, cuts: &[usize]) {
    let whole = outcome(Feed {
        bytes,
        bodiless,
        cuts: &[],
        skip: false,
    });
    for skip in [false, true] {
        let pieces = outcome(Feed {
            bytes,
            bodiless,
            cuts,
            skip,
        });
        assert_eq!(
            pieces,
            whole,
            "{:?} cut at {cuts:?}, skip {skip}",
            bytes.escape_ascii().to_string()
        );
    }
}

/// Feeds a new reader, then ends the connection. Panics if an invariant is violated.
pub(crate) fn outcome(feed: Feed<'_>) -> (Outcome, Option<Shown>) {
    let Feed {
        bytes,
        bodiless,
        cuts,
        skip,
    } = feed;
    let mut reader = ResponseReader::new(bodiless);
    let mut shown = Vec::new();
    let mut from = 0;
    let mut ends: Vec<_> = cuts
        .iter()
        .map(|cut| cut % (bytes.len() + 1))
        .chain([bytes.len()])
        .collect();
    ends.sort_unstable();
    for end in ends {
        while from < end {
            let skippable = if skip {
                reader.skippable().min((end - from) as u64)
            } else {
                0
            };
            let start = from;
            let progress = if skippable > 0 {
                from += skippable as usize;
                Ok(reader.skip(skippable))
            } else {
                from = end;
                reader.read(&bytes[start..end], &mut |head: &ResponseHead<'_>| {
                    let headers = head
                        .headers
                        .iter()
                        .map(|header| (header.name.into(), header.value.into()));
                    shown.push((head.status, headers.collect()));
                })
            };
            check(&reader, from, shown.len());
            match progress {
                Ok(ReadProgress::More) => {}
                Ok(ReadProgress::Done { extra }) => {
                    return (done(&reader, bytes, from, extra), shown.pop());
                }
                Err(error) => {
                    let error = if error == ResponseReadError::TooLarge {
                        "too-large"
                    } else {
                        "malformed"
                    };
                    let place = if reader.in_body() { "body" } else { "head" };
                    return (format!("{error} {place}"), shown.pop());
                }
            }
        }
    }
    (ended(&reader), shown.pop())
}

/// Asserts the invariants after each piece, when `fed` bytes have been read and `shown` heads were passed on.
fn check(reader: &ResponseReader, fed: usize, shown: usize) {
    assert_eq!(
        shown,
        usize::from(reader.in_body()),
        "the final head is shown once"
    );
    assert!(
        reader.body_bytes <= fed as u64,
        "{} bytes of body in {fed}",
        reader.body_bytes
    );
    assert!(
        reader.carry.len() <= HEAD_LIMIT_BYTES,
        "{} bytes of a head are kept",
        reader.carry.len()
    );
    assert!(
        reader.carry.is_empty() || !reader.in_body(),
        "part of a head is kept behind its end"
    );
}

/// The outcome of a complete response. Everything after it is surplus, in the same piece or a later one.
fn done(reader: &ResponseReader, bytes: &[u8], fed: usize, extra: u64) -> Outcome {
    let (status, body_bytes) = (reader.status, reader.body_bytes);
    assert!(
        body_bytes + extra <= fed as u64,
        "{body_bytes} bytes of body and {extra} extra in {fed}"
    );
    let rest = match extra + (bytes.len() - fed) as u64 {
        0 if reader.reusable => "kept".to_owned(),
        0 => "closed".to_owned(),
        extra => format!("surplus {extra}"),
    };
    format!("done {status} {body_bytes} {rest}")
}

fn ended(reader: &ResponseReader) -> Outcome {
    let in_body = reader.in_body();
    let proper = reader.end();
    let (status, body_bytes) = (reader.status, reader.body_bytes);
    assert!(
        !proper || !reader.reusable,
        "a connection that has ended is to be used again"
    );
    match (proper, in_body) {
        (true, _) => format!("ended {status} {body_bytes}"),
        (false, true) => format!("cut body {status} {body_bytes}"),
        (false, false) => "cut head".to_owned(),
    }
}
