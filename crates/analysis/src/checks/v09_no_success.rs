//! Not one request succeeded
//!
//! **Seen.** `promise: no response within 5s (0 of 340)`.
//!
//! **Why.** Its comparisons read *no success*.
//!
//! **What to do.** Check its log, `load.timeout` and `expect`.
//!
//! **Threshold.** None. If no variant succeeds, the run ends as invalid ([V42](#v42)).

use model::{Cause, Phase, Quantity, evidence};

use super::finding::{CheckFinding, void, warning};
use super::input::{CheckedRun, CheckedVariant};
use super::row::{CheckRow, Maker, Subject, WARNING, row};
use crate::only_if;
use crate::window::MeasuredWindow;

pub(super) static ROW: CheckRow = row(
    Subject::Work,
    WARNING,
    &[Maker::Each(no_success), Maker::Slice(nothing_due)],
);

/// Reports the outcome of a variant that never succeeded. In a comparison it invalidates nothing, because it
/// is the result.
fn no_success(run: &CheckedRun<'_>, variant: &CheckedVariant<'_>) -> Option<CheckFinding> {
    let answer = &variant.no_success.as_ref()?.answer;
    if let Some(window) = run.slice() {
        return Some(nothing_measured(window, answer));
    }
    let remedy = "if it cannot do better that is the answer, and there is no number beside it; else see its output in the record's logs, \
                  load.timeout, and what `expect` says";
    Some(warning(answer.clone(), remedy))
}

/// A slice without success, with the reason for failed TLS handshakes.
fn nothing_measured(window: &MeasuredWindow<'_>, answer: &str) -> CheckFinding {
    let counts = &window.slice.counts;
    let tls_error = counts.tls_error.as_ref();
    let tls_error = tls_error.map(|error| format!("; TLS failed: {error}"));
    let evidence = format!("{answer}{}", tls_error.unwrap_or_default());
    let refused = counts
        .errors
        .iter()
        .any(|of| (of.phase, of.cause) == (Phase::Tls, Cause::Certificate));
    let remedy = if refused {
        "the server's certificate was refused: --cacert FILE trusts the authority that signed it, --sni NAME expects it \
         to be for another name, --insecure takes any"
    } else {
        "there is nothing to measure; see what it says, the time-out, and what counts as a success"
    };
    void(evidence, remedy)
}

/// Reports a slice in which no request was due, which happens at a low rate.
fn nothing_due(window: &MeasuredWindow<'_>) -> Option<CheckFinding> {
    let counts = &window.slice.counts;
    only_if(counts.due() == 0 && window.asked.open.is_some() && !window.interrupted)?;
    let evidence = evidence!("no request was due in the window of {window}";
        window = Quantity::ns(counts.window_ns));
    let remedy =
        "there is nothing to measure: load for longer (--duration), or at a higher rate (--rate)";
    Some(void(evidence, remedy))
}
