//! What a variant is called never happened
//!
//! **Seen.** `level gzip declares content-encoding gzip, and 33,122 of 33,122 responses had none instead`.
//!
//! **Why.** "gzip" compressed nothing.
//!
//! **What to do.** See the named cause: no Accept-Encoding in `load.headers`, short bodies (mostly below
//! 1,024 bytes), or a setting that does not reach the service.
//!
//! **Threshold.** `UNTREATED_SHARE_MIN = 0.95` of the responses lack a header of `expect.headers`. In the
//! first warm-up this ends the run ([V42](#v42)).

use model::quantity::{counted, many};
use model::{FailureKind, Quantity, WITNESS_VALUE_BYTES_MAX, evidence, header};
use plan::{Factor, Plan};
use record::{Record, Slice, Witness};

use super::Check;
use super::exchange::{accept_encoding, contract_of, values};
use super::finding::{CheckFinding, void};
use super::input::{CheckedRun, CheckedTrial, CheckedVariant};
use super::row::{CheckRow, Maker, Subject, VOID, row};
use super::runner::in_words;
use super::runner::only;
use crate::only_if;
use crate::sums::total;

pub(super) static ROW: CheckRow = row(
    Subject::Treatment,
    VOID,
    &[Maker::Each(treatment_not_applied)],
)
.ending_run();

/// Minimum share of responses without a declared header that means it was not applied. Below, it was lost
/// occasionally.
const UNTREATED_SHARE_MIN: f64 = 0.95;
/// Body size from which most servers compress: Express's `compression` and Fastify's begin at 1024 bytes.
const COMPRESSED_BYTES_MIN: u64 = 1024;

/// A declared header that responses lack.
struct Failing<'a> {
    header: &'a str,
    accepted: &'a [String],
    /// Number of responses without it, and number of all responses.
    failed: u64,
    of: u64,
    instead: String,
}

/// Reports variants whose responses (nearly) all lack a header that they are expected to have. Judged by the
/// load, or without load by the responses before it.
fn treatment_not_applied(run: &CheckedRun<'_>, of: &CheckedVariant<'_>) -> Option<CheckFinding> {
    let (variant, trials) = (of.plan, &of.all_trials);
    let failing = in_load(variant, trials).unwrap_or_else(|| before_load(of))?;
    let declared = match declared_by(run.plan, of.index, failing.header) {
        Some((factor, level)) => format!("level {level} of {} declares", factor.name),
        None => "the experiment declares".to_owned(),
    };
    let instead = if matches!(failing.instead.as_str(), "absent" | "") {
        "none"
    } else {
        &failing.instead
    };
    let (header, accepted) = (failing.header, listed(failing.accepted));
    let (circumstances, how) = circumstances(of, &failing);
    let evidence = evidence!(
        "{declared} {header} {accepted}, and {failed} of {responses} had {instead} instead{circumstances}";
        failed = Quantity::count(failing.failed), responses = counted(failing.of, "response"));
    let remedy =
        format!("what the variant is named for did not happen, so it was not measured; {how}");
    Some(void(evidence, remedy))
}

/// Minimum number of responses. Fewer may come from a cache that is not filled yet.
const RESPONSES_MIN: u64 = 20;

/// Explains why a variant was not treated as configured, with advice: its responses lack the varied property
/// that the experiment expects. `None` if they have it, or if it is too early to judge. A second trial is not
/// needed, because continuing would measure something else for the whole budget.
pub fn untreated(record: &Record, variant: usize) -> Option<String> {
    let slices = record
        .trials()
        .filter(|trial| trial.variant() == variant)
        .flat_map(|trial| &trial.slices);
    only_if(slices.map(|slice| slice.counts.responses).sum::<u64>() >= RESPONSES_MIN)?;
    let mut findings = only(Check::TreatmentNotApplied, record).into_iter();
    findings
        .find(|finding| finding.variants.contains(&variant))
        .map(|finding| in_words(&finding))
}

/// The header that the load's responses lack. The outer `None` means that there were no responses.
fn in_load<'a>(
    variant: &'a plan::Variant,
    trials: &[CheckedTrial<'_>],
) -> Option<Option<Failing<'a>>> {
    let slices: Vec<&Slice> = trials.iter().flat_map(|trial| trial.slices).collect();
    let of = total(&slices, |slice| slice.counts.responses);
    only_if(of > 0)?;
    let failing = |(name, accepted): (&'a String, &'a Vec<String>)| {
        let is_of_it = |kind: &FailureKind| matches!(kind, FailureKind::Header(of) if header::is_same(of, name));
        let failures = slices
            .iter()
            .flat_map(|slice| &slice.counts.contract_failures);
        let failures: Vec<_> = failures.filter(|failure| is_of_it(&failure.kind)).collect();
        let failed = failures.iter().map(|failure| failure.count).sum();
        let instead = failures.first()?.example.clone();
        Some(Failing {
            header: name,
            accepted,
            failed,
            of,
            instead,
        })
    };
    let worst = variant
        .expect
        .headers
        .iter()
        .filter_map(failing)
        .max_by_key(|failing| failing.failed);
    Some(worst.filter(|worst| worst.failed as f64 >= UNTREATED_SHARE_MIN * of as f64))
}

/// The header that every response before the load lacks. A response with an unexpected status need not have
/// it.
fn before_load<'a>(of: &CheckedVariant<'a>) -> Option<Failing<'a>> {
    // A request with its own contract does not have to meet the variant's.
    let is_held =
        |witness: &&Witness| std::ptr::eq(contract_of(of.plan, &witness.request), &of.plan.expect);
    let held = of.witnesses().filter(is_held);
    let seen: Vec<&Witness> = held
        .filter(|witness| of.plan.expect.accepts_status(witness.status))
        .collect();
    let failing = |(header, accepted): (&'a String, &'a Vec<String>)| {
        let lacks = |witness: &&&Witness| !has(witness, header, accepted);
        let failed = seen.iter().filter(lacks).count();
        let instead = values(seen.iter().find(lacks)?, header).join(", ");
        Some(Failing {
            header,
            accepted,
            failed: failed as u64,
            of: seen.len() as u64,
            instead,
        })
    };
    of.plan
        .expect
        .headers
        .iter()
        .filter_map(failing)
        .find(|failing| failing.failed == failing.of)
}

/// The same comparison as in the load generator.
fn has(witness: &Witness, name: &str, accepted: &[String]) -> bool {
    let values = values(witness, name);
    if values.is_empty() {
        return accepted.iter().any(String::is_empty);
    }
    // Values that were cut cannot be compared.
    let cut = |value: &&str| value.len() + 4 > WITNESS_VALUE_BYTES_MAX;
    accepted.is_empty()
        || values
            .iter()
            .any(|value| cut(value) || accepted.iter().any(|a| a.eq_ignore_ascii_case(value)))
}

/// The factor and level that require this header: the first factor of which another level requires something
/// else.
fn declared_by<'a>(plan: &'a Plan, index: usize, header: &str) -> Option<(&'a Factor, &'a str)> {
    let variant = plan.variants.get(index)?;
    let differs = |factor: &&Factor| {
        let alike = |other: &plan::Variant, name: &String, level: &String| {
            (*name == factor.name) != (other.levels.get(name) == Some(level))
        };
        let is_other =
            |of: &&plan::Variant| variant.levels.iter().all(|(name, at)| alike(of, name, at));
        let mut others = plan.variants.iter().filter(is_other);
        others.any(|other| other.expect.headers.get(header) != variant.expect.headers.get(header))
    };
    let factor = plan.factors.iter().find(differs)?;
    Some((factor, variant.levels.get(&factor.name)?))
}

fn listed<'a>(accepted: &'a [String]) -> String {
    let word = |value: &'a String| {
        if value.is_empty() {
            "none"
        } else {
            value.as_str()
        }
    };
    let words: Vec<&str> = accepted.iter().map(word).collect();
    if words.is_empty() {
        "of any value".to_owned()
    } else {
        words.join(" or ")
    }
}

/// Length of the longest decoded body before the load. Without one, the mean over the load.
fn body_bytes(of: &CheckedVariant<'_>) -> Option<u64> {
    let longest = of
        .witnesses()
        .filter_map(|witness| witness.decoded_bytes)
        .max();
    let trials = of.all_trials.iter();
    let slices: Vec<&Slice> = trials.flat_map(|trial| trial.slices).collect();
    let answered = total(&slices, |slice| slice.counts.responses);
    longest.or_else(|| {
        (answered > 0).then(|| total(&slices, |slice| slice.counts.body_bytes) / answered)
    })
}

/// Describes further observations, and possible remedies.
fn circumstances(of: &CheckedVariant<'_>, failing: &Failing<'_>) -> (String, &'static str) {
    let elsewhere =
        "see in the record's logs and in the processes' environments whether the setting arrives";
    if !header::is_same(failing.header, "content-encoding") {
        return (String::new(), elsewhere);
    }
    let (accept, bytes) = (accept_encoding(&of.plan.load), body_bytes(of));
    let said = accept.map(|value| format!("accept-encoding: {value}"));
    // The exact number, because compression has exact thresholds.
    let body = bytes
        .map(|bytes| format!(", and bodies have {}", many(bytes, "byte")))
        .unwrap_or_default();
    let seen = format!(
        "; the requests said {}{body}",
        said.as_deref().unwrap_or("no accept-encoding")
    );
    let named = |value: &str| {
        let mut words = value
            .split(',')
            .map(|word| word.split(';').next().unwrap_or_default().trim());
        words.any(|word| {
            word == "*"
                || failing
                    .accepted
                    .iter()
                    .any(|a| a.eq_ignore_ascii_case(word))
        })
    };
    let how = match accept {
        _ if failing.accepted.iter().any(String::is_empty) => elsewhere,
        None => {
            "a server compresses only for clients that say they read it: set load.headers.accept-encoding"
        }
        Some(value) if !named(value) => {
            "load.headers.accept-encoding does not name that coding: add it"
        }
        Some(_) if bytes.is_some_and(|bytes| bytes < COMPRESSED_BYTES_MIN) => {
            "compression usually begins at 1024 bytes: ask for a longer body, or lower the server's threshold"
        }
        Some(_) => {
            "the request would allow it, so see whether the service compresses this type of content, and the setting reaches it"
        }
    };
    (seen, how)
}
