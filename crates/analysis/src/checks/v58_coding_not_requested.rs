//! Compression that no request asked for
//!
//! **Seen.** `GET / is compressed (gzip) for clients that accept it, and the requests do not say that they
//! do`.
//!
//! **Why.** Browsers accept compressed responses.
//!
//! **What to do.** `-H 'accept-encoding: gzip'` or `load.headers.accept-encoding = "gzip"`; nothing, to
//! measure uncompressed.
//!
//! **Threshold.** None. Before the first load each variant gets its requests once with that header (GET and
//! HEAD, HTTP/1.1 without TLS). A warning if only some variants compress.

use super::finding::{CheckFinding, warning};
use super::input::{CheckedRun, CheckedVariant};
use super::row::{CheckRow, Maker, Subject, WARNING_OR_NOTE, row};

pub(super) static ROW: CheckRow = row(
    Subject::Treatment,
    WARNING_OR_NOTE,
    &[Maker::Each(coding_not_requested)],
);

/// Reports a variant that compresses responses for clients that accept it, if the load's requests do not.
fn coding_not_requested(run: &CheckedRun<'_>, of: &CheckedVariant<'_>) -> Option<CheckFinding> {
    let (request, name) = coding_on_request(of)?;
    let evidence = format!(
        "{request} is compressed ({name}) for clients that accept it, and the requests do not say that they do"
    );
    let remedy = format!(
        "this measures it without compression; -H 'accept-encoding: {name}', in a file load.headers.accept-encoding, measures it with"
    );
    // If all variants compress in the same way, the choice is up to the user.
    let coding =
        |other: &CheckedVariant<'_>| coding_on_request(other).map(|(_, name)| name) == Some(name);
    let differs = !run.variants.iter().all(coding);
    Some(if differs {
        warning(evidence, remedy)
    } else {
        CheckFinding::note((), evidence, remedy)
    })
}

/// A request, and the coding of its response if the request accepts it.
fn coding_on_request<'a>(of: &CheckedVariant<'a>) -> Option<(&'a str, &'a str)> {
    of.witnesses()
        .find_map(|seen| Some((seen.request.as_str(), seen.coding_on_request.as_deref()?)))
}
