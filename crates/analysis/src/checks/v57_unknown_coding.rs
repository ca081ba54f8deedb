//! A content coding that is not known
//!
//! **Seen.** `api: Content-Encoding names "UTF-8", and the content was not decoded`.
//!
//! **Why.** As in browsers, such content is not decoded. `expect.content` applies to the bytes sent.
//!
//! **What to do.** Remove the header, or move a charset to `Content-Type`.
//!
//! **Threshold.** One sampled response.

use super::finding::CheckFinding;
use super::input::{CheckedRun, CheckedVariant};
use super::row::{CheckRow, Maker, NOTE, Subject, row};

pub(super) static ROW: CheckRow = row(Subject::Work, NOTE, &[Maker::Each(unknown_coding)]);

/// Reports content that was read as identity, as browsers do, because its content coding is unknown.
fn unknown_coding(_: &CheckedRun<'_>, variant: &CheckedVariant<'_>) -> Option<CheckFinding> {
    let coding = variant
        .slices
        .iter()
        .find_map(|slice| slice.counts.unknown_coding.as_ref())?;
    let evidence = format!("Content-Encoding names {coding:?}, and the content was not decoded");
    let remedy =
        "known are gzip, deflate, br, zstd and identity; a charset belongs into Content-Type";
    Some(CheckFinding::note((), evidence, remedy))
}
