//! Responses of different size
//!
//! **Seen.** `18.3 kB a response vs 134 kB`, on the wire during the load.
//!
//! **Why.** Less to send is less work.
//!
//! **What to do.** Compare responses (`curl -i`). If equal is right, set `expect.body_bytes`.
//!
//! **Threshold.** `BODY_BYTES_TOLERANCE = 0.01` of the larger one.

use model::{CONTENTS_MAX, Quantity, evidence};
use plan::{Comparison, Contract, Load};

use super::exchange::contract_of;
use super::finding::{CheckFinding, warning};
use super::input::{CheckedRun, CheckedVariant};
use super::row::{CheckRow, Maker, Subject, WARNING, row};
use super::v06_different_work::{BODY_BYTES_TOLERANCE, Pair};
use crate::failure::fruitless;
use crate::window::MeasuredWindow;
use crate::{NAMED_MAX, few, only_if};

pub(super) static ROW: CheckRow = row(
    Subject::Work,
    WARNING,
    &[Maker::Pair(different_bodies), Maker::Slice(contents_differ)],
);

/// Reports comparisons of variants that sent different amounts during the load, unless the responses before
/// the load explain it: the same content, sent with a different coding as declared in the experiment.
fn different_bodies(run: &CheckedRun<'_>, asked: &Comparison) -> Option<CheckFinding> {
    let [one, other] = run.pair(asked)?;
    // Different expectations declare that the responses differ.
    only_if(!expects_other(one.plan, other.plan))?;
    let (baseline, candidate) = (sent_bytes(one)?, sent_bytes(other)?);
    let differ = |one: f64, other: f64| (one - other).abs() > BODY_BYTES_TOLERANCE * one.max(other);
    let as_in_load = |side: usize, bytes: f64| !differ([baseline, candidate][side], bytes);
    only_if(differ(baseline, candidate) && !Pair::of(run, asked)?.explains(as_in_load))?;
    Some(warning(
        evidence!("{candidate} a response vs {baseline}";
            baseline = Quantity::bytes(baseline), candidate = Quantity::bytes(candidate)),
        "the two send different amounts; if that is not what you vary, they do different work",
    ))
}

/// Reports a slice in which the same request had different responses.
fn contents_differ(window: &MeasuredWindow<'_>) -> Option<CheckFinding> {
    let load = window.load();
    // Responses to users depend on their earlier requests, and requests with values from rows differ.
    only_if(!load.is_some_and(Load::has_users))?;
    let request = |at: usize| load.and_then(|load| load.requests.get(at));
    let varies = |at: usize| request(at).is_some_and(|request| request.values.is_some());
    let endpoints = window.slice.counts.endpoints.iter().enumerate();
    let differ = endpoints.filter(|(at, endpoint)| endpoint.contents.len() > 1 && !varies(*at));
    let told = differ.map(|(_, endpoint)| {
        let contents = endpoint.contents.len();
        let least = if contents >= CONTENTS_MAX {
            "at least "
        } else {
            ""
        };
        let sampled: u64 = endpoint.contents.iter().map(|seen| seen.count).sum();
        format!(
            "{} has {least}{contents} in {sampled} sampled",
            endpoint.name
        )
    });
    let named = few(told, NAMED_MAX, ", ");
    let evidence = format!("the same request has responses of different content: {named}");
    (!named.is_empty()).then(|| warning(evidence, "that may be as it should"))
}

/// Body bytes per response of the load. `None` if no request succeeded.
fn sent_bytes(variant: &CheckedVariant<'_>) -> Option<f64> {
    let (bytes, responses) = (
        variant.sum(|of| of.counts.body_bytes),
        variant.sum(|of| of.counts.responses),
    );
    (!fruitless(&variant.slices)).then(|| bytes as f64 / responses.max(1) as f64)
}

/// Whether two variants expect different statuses or contents, for all requests or for one.
fn expects_other(one: &plan::Variant, other: &plan::Variant) -> bool {
    let body = |of: &plan::Variant, name: &str| {
        let Contract {
            status,
            headers: _,
            body_bytes,
            content,
        } = contract_of(of, name).clone();
        (status, body_bytes, content)
    };
    let mut requests = one.load.requests.iter();
    requests.any(|request| body(one, &request.name) != body(other, &request.name))
}
