//! Whether the header that a level declares came about: compression that was never negotiated is the usual case.
//!
//! It looks at all trials, those of unfinished blocks too: what a variant is does not depend on what was measured.

use model::{Check, FailureKind, Finding, Quantity, evidence};
use plan::{Factor, Plan, Variant};
use record::{Record, Trial, Witness};

use super::{all_trials, total, variants};

/// Share of responses without a declared header from which on the effect was not applied, rather than lost now and then.
pub const UNTREATED_SHARE_MIN: f64 = 0.95;
/// Bodies below this are left alone by the compression of most servers: Express's `compression` and Fastify's begin at 1024 bytes.
pub const COMPRESSED_BYTES_MIN: u64 = 1024;
/// Values in records are cut at this length: what is longer cannot be told from what is expected.
const VALUE_BYTES_MAX: usize = 256;

/// What came in place of a declared header.
struct Failing<'a> {
    header: &'a str,
    accepted: &'a [String],
    /// How many of how many responses had it not.
    failed: u64,
    of: u64,
    instead: String,
}

/// A finding for each variant whose responses (nearly) all lack a header field that it is expected to have. From the load where there was
/// one, else from what was looked at before it.
pub fn treatment_not_applied(record: &Record) -> Vec<Finding> {
    variants(record).filter_map(|variant| not_applied(record, variant.index, variant.plan)).collect()
}

fn not_applied(record: &Record, index: usize, variant: &Variant) -> Option<Finding> {
    let trials = all_trials(record, index);
    let failing = in_load(variant, &trials).unwrap_or_else(|| before_load(variant, &trials))?;
    let declared = match declared_by(&record.header.plan, index, failing.header) {
        Some((factor, level)) => format!("level {level} of {} declares", factor.name),
        None => "the experiment declares".to_owned(),
    };
    let instead = if matches!(failing.instead.as_str(), "absent" | "") { "none" } else { &failing.instead };
    let (name, header, accepted) = (&variant.name, failing.header, listed(failing.accepted));
    let circumstances = circumstances(variant, &failing, &trials);
    let evidence = evidence!(
        "{name}: {declared} {header} {accepted}, and {failed} of {responses} responses had {instead} instead{circumstances}";
        failed = Quantity::count(failing.failed), responses = Quantity::count(failing.of));
    let remedy = remedy(variant, &failing, &trials);
    Some(Finding::void(Check::TreatmentNotApplied, evidence, remedy).about([index]))
}

/// What the load's responses lacked; outer `None` where there were none.
fn in_load<'a>(variant: &'a Variant, trials: &[&Trial]) -> Option<Option<Failing<'a>>> {
    let slices: Vec<_> = trials.iter().flat_map(|trial| &trial.slices).collect();
    let of = total(&slices, |slice| slice.counts.responses);
    if of == 0 {
        return None;
    }
    let failing = |(header, accepted): (&'a String, &'a Vec<String>)| {
        let failures = slices.iter().flat_map(|slice| &slice.counts.contract_failures);
        let failures: Vec<_> = failures
            .filter(|failure| matches!(&failure.kind, FailureKind::Header(name) if name.eq_ignore_ascii_case(header)))
            .collect();
        let failed = failures.iter().map(|failure| failure.count).sum();
        let instead = failures.first()?.example.clone();
        Some(Failing { header, accepted, failed, of, instead })
    };
    let worst = variant.expect.headers.iter().filter_map(failing).max_by_key(|failing| failing.failed);
    Some(worst.filter(|worst| worst.failed as f64 >= UNTREATED_SHARE_MIN * of as f64))
}

/// What every response lacked that was looked at before the load. One with another status than expected need not have the header.
fn before_load<'a>(variant: &'a Variant, trials: &[&Trial]) -> Option<Failing<'a>> {
    let seen = trials.iter().flat_map(|trial| &trial.started.witnesses);
    let seen: Vec<&Witness> = seen.filter(|witness| is_expected(variant, witness.status)).collect();
    let failing = |(header, accepted): (&'a String, &'a Vec<String>)| {
        let lacks = |witness: &&&Witness| !has(witness, header, accepted);
        let failed = seen.iter().filter(lacks).count();
        let instead = values(seen.iter().find(lacks)?, header).join(", ");
        let (failed, of) = (failed as u64, seen.len() as u64);
        Some(Failing { header, accepted, failed, of, instead })
    };
    variant.expect.headers.iter().filter_map(failing).find(|failing| failing.failed == failing.of)
}

/// Whether a response of this status is one that the variant is expected to give.
pub(super) fn is_expected(variant: &Variant, status: u16) -> bool {
    match variant.expect.status.as_slice() {
        [] => (200..300).contains(&status),
        expected => expected.contains(&status),
    }
}

pub(super) fn values<'a>(witness: &'a Witness, name: &str) -> Vec<&'a str> {
    let named = witness.headers.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
    named.map(|(_, value)| value.as_str()).collect()
}

/// As the load generator judges it.
fn has(witness: &Witness, name: &str, accepted: &[String]) -> bool {
    let values = values(witness, name);
    if values.is_empty() {
        return accepted.iter().any(String::is_empty);
    }
    let cut = |value: &&str| value.len() + 4 > VALUE_BYTES_MAX;
    accepted.is_empty()
        || values.iter().any(|value| cut(value) || accepted.iter().any(|a| a.eq_ignore_ascii_case(value)))
}

/// The factor and its level that ask for this header: the first one of which another level asks for something else.
fn declared_by<'a>(plan: &'a Plan, index: usize, header: &str) -> Option<(&'a Factor, &'a str)> {
    let variant = plan.variants.get(index)?;
    let differs = |factor: &&Factor| {
        let mut others = plan.variants.iter().filter(|other| {
            let alike = |(name, level): (&String, &String)| {
                (*name == factor.name) != (other.levels.get(name) == Some(level))
            };
            variant.levels.iter().all(alike)
        });
        others.any(|other| other.expect.headers.get(header) != variant.expect.headers.get(header))
    };
    let factor = plan.factors.iter().find(differs)?;
    Some((factor, variant.levels.get(&factor.name)?))
}

fn listed(accepted: &[String]) -> String {
    let word = |value: &String| if value.is_empty() { "none".to_owned() } else { value.clone() };
    match accepted {
        [] => "of any value".to_owned(),
        values => values.iter().map(word).collect::<Vec<_>>().join(" or "),
    }
}

/// What the requests say that they accept, the first of them that says anything.
pub(super) fn accept_encoding(load: &plan::Load) -> Option<&str> {
    let mut headers = load.headers.iter().chain(load.requests.iter().flat_map(|request| &request.headers));
    let said = headers.find(|(name, _)| name.eq_ignore_ascii_case("accept-encoding"));
    said.map(|(_, value)| value.as_str())
}

/// The longest body, as far as it was seen with its coding undone; else the mean over the load.
fn body_bytes(trials: &[&Trial]) -> Option<u64> {
    let seen = trials.iter().flat_map(|trial| &trial.started.witnesses);
    let longest = seen.filter_map(|witness| witness.decoded_bytes).max();
    let slices: Vec<_> = trials.iter().flat_map(|trial| &trial.slices).collect();
    let answered = total(&slices, |slice| slice.counts.responses);
    longest.or_else(|| (answered > 0).then(|| total(&slices, |slice| slice.counts.body_bytes) / answered))
}

fn is_coding(failing: &Failing<'_>) -> bool {
    failing.header.eq_ignore_ascii_case("content-encoding")
}

fn circumstances(variant: &Variant, failing: &Failing<'_>, trials: &[&Trial]) -> String {
    if !is_coding(failing) {
        return String::new();
    }
    let accept = match accept_encoding(&variant.load) {
        Some(value) => format!("; the requests said accept-encoding: {value}"),
        None => "; the requests said no accept-encoding".to_owned(),
    };
    let body = body_bytes(trials).map(|bytes| format!(", and bodies have {bytes} bytes")).unwrap_or_default();
    accept + &body
}

fn remedy(variant: &Variant, failing: &Failing<'_>, trials: &[&Trial]) -> String {
    let wants_coding = is_coding(failing) && !failing.accepted.iter().any(String::is_empty);
    let named = |value: &str| {
        let mut words = value.split(',').map(|word| word.split(';').next().unwrap_or_default().trim());
        words.any(|word| word == "*" || failing.accepted.iter().any(|a| a.eq_ignore_ascii_case(word)))
    };
    let how = match accept_encoding(&variant.load) {
        _ if !wants_coding => {
            "see in the record's logs and in the processes' environments whether the setting arrives"
        }
        None => {
            "a server compresses only for clients that say they can read it: set load.headers.accept-encoding"
        }
        Some(value) if !named(value) => "load.headers.accept-encoding does not name that coding: add it",
        Some(_) if body_bytes(trials).is_some_and(|bytes| bytes < COMPRESSED_BYTES_MIN) => {
            "compression usually begins at 1024 bytes: ask for a longer body, or lower the server's threshold"
        }
        Some(_) => {
            "the request would allow it, so see whether the service compresses this type of content at all, and whether the \
                    setting reaches it"
        }
    };
    format!("what the variant is named for did not happen, so it was not measured; {how}")
}
