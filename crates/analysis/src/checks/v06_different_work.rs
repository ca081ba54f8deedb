//! The variants did different work
//!
//! **Seen.** `the content of GET / has 512 B vs 134 kB, codings undone`, or another status.
//!
//! **Why.** Less work is faster: an error page with status 200, a shorter list.
//!
//! **What to do.** Compare responses. Declare intended differences in the levels: `load.path` or `expect`.
//!
//! **Threshold.** Invalid if the status differs, or the lengths by more than `BODY_BYTES_TOLERANCE = 0.01`
//! and `CONTENT_BYTES_MIN = 64` bytes. A warning if the plan declares it, or for different content of the
//! same length.
//!
//! **Not detected.** Of contents that vary from response to response only sizes are compared ([V7](#v7)). GET
//! and HEAD are compared before the load; with other methods, TLS, HTTP/2, log-ins, and `warmup = "0s"`, the
//! samples of `load.sample_every`.

use std::collections::{BTreeMap, BTreeSet};

use model::{Evidence, Quantity, evidence, header};
use plan::{Comparison, Load};
use record::{ContentSeen, Witness};

use super::exchange::{accept_encoding, contract_of, named, values};
use super::finding::{CheckFinding, either};
use super::input::{CheckedRun, CheckedVariant};
use super::row::{CheckRow, EITHER, Maker, OFF, Subject, row};
use super::same_requests::{is_same_contract, is_same_request, is_same_user};
use crate::only_if;

pub(super) static ROW: CheckRow = row(Subject::Work, EITHER, &[Maker::Pair(different_work)])
    .of_pairs()
    .ending_run()
    .alone(OFF);

/// Maximum relative difference in body bytes per response between variants that do the same work.
pub(super) const BODY_BYTES_TOLERANCE: f64 = 0.01;
/// Minimum difference in content bytes that counts as different work, however short the contents. Different
/// wording of a greeting is not different work.
const CONTENT_BYTES_MIN: u64 = 64;

/// Reports comparisons of variants that responded differently.
fn different_work(run: &CheckedRun<'_>, asked: &Comparison) -> Option<CheckFinding> {
    let pair = Pair::of(run, asked)?;
    let looked_at = pair
        .requests()
        .filter_map(|(one, other)| pair.difference(&one, &other));
    let sampled = pair
        .sampled()
        .filter_map(|(name, one, other)| pair.content_difference(name, &one, &other));
    let differences = looked_at.chain(sampled);
    // The first invalidating difference, for any number of requests in a mix.
    let (is_void, evidence) =
        differences.reduce(|found, next| if next.0 && !found.0 { next } else { found })?;
    let remedy = if is_void {
        "they do different work, so how fast they are says nothing about what is varied; have both respond alike, or say that the \
         response is what you vary: by load.path, load.values, expect.content or expect.body_bytes in the levels"
    } else {
        "if that is not what you vary, they do different work"
    };
    Some(either(is_void, evidence, remedy))
}

/// Two compared variants with their responses.
pub(super) struct Pair<'a> {
    variants: [&'a plan::Variant; 2],
    /// Whether the two may be of different commits, whose files are in different folders.
    across_commits: bool,
    witnesses: [Vec<&'a Witness>; 2],
    /// Contents sampled during the load, by request.
    samples: [Samples<'a>; 2],
}

/// For each request, the contents sampled in each trial.
type Samples<'a> = BTreeMap<&'a str, Vec<&'a [ContentSeen]>>;

/// Properties of a request's content that are the same in all responses.
struct Steady<'a> {
    /// None if the length varies.
    bytes: Option<u64>,
    /// None if the content varies, or only one trial has it.
    sha256: Option<&'a str>,
    content_type: Option<String>,
}

impl<'a> Steady<'a> {
    fn of(looks: &RequestWitnesses<'a>) -> Steady<'a> {
        Steady {
            bytes: bytes(looks),
            sha256: hash(looks),
            content_type: Some(content_type(looks)),
        }
    }

    /// From samples: a content counts as common to all responses if at least two samples have it.
    fn sampled(trials: &[&'a [ContentSeen]]) -> Steady<'a> {
        let all = || trials.iter().copied().flatten();
        let first = all()
            .next()
            .filter(|first| all().all(|seen| seen.sha256 == first.sha256));
        let first = first.filter(|_| all().map(|seen| seen.count).sum::<u64>() > 1);
        Steady {
            bytes: first.map(|seen| seen.decoded_bytes / seen.count.max(1)),
            sha256: first
                .map(|seen| seen.sha256.as_str())
                .filter(|_| trials.len() > 1),
            content_type: None,
        }
    }
}

fn samples<'a>(variant: &CheckedVariant<'a>) -> Samples<'a> {
    let ended = variant.all_trials.iter().filter_map(|trial| trial.ended);
    let contents = ended.flat_map(|ended| &ended.contents);
    model::grouped(contents.map(|(name, seen)| (name.as_str(), seen.as_slice())))
        .into_iter()
        .collect()
}

/// All recorded responses to one request of a variant, in all its trials.
type RequestWitnesses<'a> = Vec<&'a Witness>;

impl<'a> Pair<'a> {
    pub fn of(run: &CheckedRun<'a>, asked: &Comparison) -> Option<Pair<'a>> {
        let pair = run.pair(asked)?;
        let witnesses = pair.map(|variant| variant.witnesses().collect());
        let across_commits = run.plan.against.is_some();
        let variants = pair.map(|of| of.plan);
        Some(Pair {
            variants,
            across_commits,
            witnesses,
            samples: pair.map(samples),
        })
    }

    fn is_single(&self) -> bool {
        self.loads().iter().all(|load| !load.is_mix())
    }

    fn loads(&self) -> [&'a Load; 2] {
        self.variants.map(|variant| &variant.load)
    }

    /// Recorded responses of both variants to each request that both received. If both variants have one
    /// request each, these are paired whatever their paths.
    fn requests(&self) -> impl Iterator<Item = (RequestWitnesses<'a>, RequestWitnesses<'a>)> {
        let single = self.is_single();
        let names: BTreeSet<&str> = self.witnesses[0]
            .iter()
            .map(|of| of.request.as_str())
            .collect();
        let looks = move |side: usize, name: &str| -> RequestWitnesses<'a> {
            let all = self.witnesses[side].iter().copied();
            all.filter(|witness| single || witness.request == name)
                .collect()
        };
        let pairs = names
            .into_iter()
            .map(move |name| (looks(0, name), looks(1, name)));
        pairs.filter(|(_, other)| !other.is_empty())
    }

    /// Sampled contents of both variants for each request without a response recorded before the load. These
    /// are requests whose method may have effects, or that use TLS or HTTP/2, or loads in which users log in.
    fn sampled(&self) -> impl Iterator<Item = (&'a str, Steady<'a>, Steady<'a>)> {
        let [samples, other_samples] = &self.samples;
        let single = self.is_single();
        let looked_at = move |name: &str| {
            self.witnesses
                .iter()
                .all(|looks| looks.iter().any(|look| single || look.request == name))
        };
        samples
            .iter()
            .filter(move |(name, _)| !looked_at(name))
            .filter_map(move |(name, one)| {
                let other = if single {
                    other_samples.values().next()
                } else {
                    other_samples.get(name)
                };
                Some((*name, Steady::sampled(one), Steady::sampled(other?)))
            })
    }

    /// Difference of the variants in one request, and whether it invalidates the comparison.
    fn difference(
        &self,
        one: &RequestWitnesses<'_>,
        other: &RequestWitnesses<'_>,
    ) -> Option<(bool, Evidence)> {
        let request = one.first()?.request.as_str();
        let (status, other_status) = (status(one)?, status(other)?);
        let expected =
            |side: usize, status| contract_of(self.variants[side], request).accepts_status(status);
        // An unexpected status counts as an error, and is reported as such.
        only_if(expected(0, status) && expected(1, other_status))?;
        let declared = self.declares(request);
        if status != other_status {
            let [one, other] = self.variants.map(|variant| contract_of(variant, request));
            let by_plan = one.status != other.status;
            let evidence = evidence!("{request} had status {other_status} vs {status}");
            return (!by_plan).then_some((!declared, evidence));
        }
        self.content_difference(request, &Steady::of(one), &Steady::of(other))
    }

    /// Difference in the contents of one request, and whether it invalidates the comparison.
    fn content_difference(
        &self,
        request: &str,
        one: &Steady<'_>,
        other: &Steady<'_>,
    ) -> Option<(bool, Evidence)> {
        let declared = self.declares(request);
        let (bytes, other_bytes) = (one.bytes?, other.bytes?);
        let apart = bytes.abs_diff(other_bytes);
        if apart as f64 > BODY_BYTES_TOLERANCE * bytes.max(other_bytes) as f64 {
            let evidence = evidence!("the content of {request} has {candidate} vs {baseline}, codings undone";
                candidate = Quantity::bytes(other_bytes as f64), baseline = Quantity::bytes(bytes as f64));
            return Some((!declared && apart >= CONTENT_BYTES_MIN, evidence));
        }
        only_if(!declared && one.sha256? != other.sha256?)?;
        let types = match (&one.content_type, &other.content_type) {
            (Some(one), Some(other)) if one != other => format!(" (content-type {other} vs {one})"),
            _ => String::new(),
        };
        let evidence = evidence!("the content of {request} is another, though as long ({length}){types}";
            length = Quantity::bytes(bytes as f64));
        Some((false, evidence))
    }

    /// Whether the plan declares that responses to this request may differ, by a different request or a
    /// different expectation. Codings do not count, because they are undone.
    fn declares(&self, request: &str) -> bool {
        let [one, other] = self.variants;
        let is_same = match (named(&one.load, request), named(&other.load, request)) {
            (Some(one), Some(other)) => is_same_request(one, other, self.across_commits),
            (one, other) => one.is_none() && other.is_none(),
        };
        let same_contract =
            is_same_contract(contract_of(one, request), contract_of(other, request));
        !is_same || !same_contract || !is_same_user(&one.load, &other.load, self.across_commits)
    }

    /// Whether responses before the load explain the bytes sent during it: contents are known and repeatable,
    /// and only their codings differ, as declared. If there is one request, the bytes must match the bytes
    /// of the load.
    pub fn explains(&self, as_in_load: impl Fn(usize, f64) -> bool) -> bool {
        let known = |witness: &&Witness| witness.repeats && witness.decoded_bytes.is_some();
        let loads = self.loads();
        let covered = |side: usize| {
            let load = loads[side];
            let all = &self.witnesses[side];
            let one = all
                .iter()
                .all(|look| as_in_load(side, look.body_bytes as f64));
            let seen = |name: &String| all.iter().any(|look| look.request == *name);
            let each = load.requests.iter().all(|request| seen(&request.name));
            !all.is_empty() && all.iter().all(known) && if load.is_mix() { each } else { one }
        };
        let coding = |looks: RequestWitnesses<'_>| {
            looks
                .first()
                .map(|look| values(look, "content-encoding").join(", "))
        };
        let declared = |of: &plan::Variant| {
            of.expect
                .headers
                .keys()
                .any(|name| header::is_same(name, "content-encoding"))
        };
        let codings_declared = self.variants.into_iter().any(declared)
            || accept_encoding(loads[0]) != accept_encoding(loads[1])
            || self
                .requests()
                .all(|(one, other)| coding(one) == coding(other));
        covered(0) && covered(1) && codings_declared
    }
}

/// The status of all recorded responses. `None` if it varies.
pub(super) fn status(looks: &RequestWitnesses<'_>) -> Option<u16> {
    let first = looks.first()?.status;
    looks
        .iter()
        .all(|look| look.status == first)
        .then_some(first)
}

/// The content length. `None` if unknown, or if it varies by more than the tolerance between variants.
pub(super) fn bytes(looks: &RequestWitnesses<'_>) -> Option<u64> {
    let known = |look: &&Witness| look.decoded_bytes.filter(|_| look.repeats);
    let all: Vec<u64> = looks.iter().map(known).collect::<Option<_>>()?;
    let (least, most) = (*all.iter().min()?, *all.iter().max()?);
    ((most - least) as f64 <= BODY_BYTES_TOLERANCE * most as f64).then_some(most)
}

/// Hash of the content. `None` unless it is known to be the same for every process of the variant.
fn hash<'a>(looks: &RequestWitnesses<'a>) -> Option<&'a str> {
    let first = looks.first()?.decoded_sha256.as_deref()?;
    let same = looks
        .iter()
        .all(|look| look.repeats && look.decoded_sha256.as_deref() == Some(first));
    (same && looks.len() > 1).then_some(first)
}

fn content_type(looks: &RequestWitnesses<'_>) -> String {
    let all = looks
        .first()
        .map(|look| values(look, "content-type").join(", "))
        .unwrap_or_default();
    if all.is_empty() {
        "none".to_owned()
    } else {
        all
    }
}
