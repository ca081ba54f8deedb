//! Whether variants did the requested work, and compared variants the same work. Judged by failures, and by
//! the responses before the load with content codings undone. In records without these responses, by the
//! bytes received during the load.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use model::quantity::{counted as number_of, many};
use model::{Cause, Evidence, FAILED_SHARE_MAX, Phase, Quantity, RequestOutcome, evidence, header};
use plan::{Comparison, Contract, Load, LoadSettings, Request, comparable_contract};
use record::{ContentSeen, ContractFailure, Slice, Witness};

use super::treatment::{accept_encoding, values};
use super::{CheckFinding, CheckedRun, CheckedVariant, either, void, warning};
use crate::failure::{FailureClass, fruitless};
use crate::sums::{counted, outcome};
use crate::window::MeasuredWindow;
use crate::{NAMED_MAX, few, only_if};

/// Maximum relative difference in body bytes per response between variants that do the same work.
const BODY_BYTES_TOLERANCE: f64 = 0.01;

/// Minimum difference in content bytes that counts as different work, however short the contents. Different
/// wording of a greeting is not different work.
const CONTENT_BYTES_MIN: u64 = 64;

/// Reports too many requests without an expected response. A capacity measurement counts them as never
/// responded to, and its windows are placed where the allowed number fails.
pub(super) fn errors(run: &CheckedRun<'_>, variant: &CheckedVariant<'_>) -> Option<CheckFinding> {
    only_if(run.plan.design.slo.is_empty())?;
    let whole = outcome(&variant.slices);
    // If one request is judged separately, successes of others do not count for it.
    let endpoint = run
        .plan
        .design
        .endpoint
        .as_ref()
        .map(|of| (&of.name, of_endpoint(&variant.slices, &of.name)));
    let (of, outcome) = match endpoint.filter(|(_, own)| own.is_void() && !whole.is_void()) {
        Some((name, own)) => (format!(" of `{name}`"), own),
        None => (String::new(), whole),
    };
    only_if(outcome.is_void())?;
    let (RequestOutcome { due, failed }, share) = (outcome, outcome.failed_share()?);
    let mut seen = variant
        .slices
        .iter()
        .flat_map(|slice| &slice.counts.contract_failures);
    let example = |of: &ContractFailure| format!("; for example {}: {}", of.kind, of.example);
    let example = seen.next().map(example).unwrap_or_default();
    let (lost, limit) = (lost(&variant.slices), Quantity::share(FAILED_SHARE_MAX));
    let evidence = evidence!(
        "{failed} of {requests}{of} ({share}) had no expected response; {timed_out} timed out{lost}{example}";
        failed = Quantity::count(failed), requests = number_of(due, "request"), share = Quantity::share(share),
        timed_out = Quantity::count(variant.sum(|slice| slice.counts.timed_out)));
    let class = FailureClass::dominant(&variant.slices, variant.plan)?;
    if run.slice().is_some() {
        let effect = if class.has_response() {
            "throughput leaves them out, and the latencies contain them, however soon they came"
        } else {
            "throughput leaves them out, and in the latencies they are at least as long as they were waited for"
        };
        return Some(warning(evidence, format!("{effect}; {}", class.advice())));
    }
    let remedy = format!(
        "failed requests cost a service other work than successful ones, so rates above {limit} do not compare; {}",
        class.advice()
    );
    Some(void(evidence, remedy))
}

/// Outcome of the requests with this name.
fn of_endpoint(slices: &[&Slice], name: &str) -> RequestOutcome {
    let counts = slices
        .iter()
        .flat_map(|slice| &slice.counts.endpoints)
        .filter(|counts| counts.name == name);
    counts
        .map(|counts| RequestOutcome {
            due: counts.sent,
            failed: counts.failed(),
        })
        .sum()
}

/// Reports content that was read as identity, as browsers do, because its content coding is unknown.
pub(super) fn unknown_coding(
    _: &CheckedRun<'_>,
    variant: &CheckedVariant<'_>,
) -> Option<CheckFinding> {
    let coding = variant
        .slices
        .iter()
        .find_map(|slice| slice.counts.unknown_coding.as_ref())?;
    let evidence = format!("Content-Encoding names {coding:?}, and the content was not decoded");
    let remedy =
        "known are gzip, deflate, br, zstd and identity; a charset belongs into Content-Type";
    Some(CheckFinding::note((), evidence, remedy))
}

/// Reports the outcome of a variant that never succeeded. In a comparison it invalidates nothing, because it
/// is the result.
pub(super) fn no_success(
    run: &CheckedRun<'_>,
    variant: &CheckedVariant<'_>,
) -> Option<CheckFinding> {
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
pub(super) fn nothing_due(window: &MeasuredWindow<'_>) -> Option<CheckFinding> {
    let counts = &window.slice.counts;
    only_if(counts.due() == 0 && window.asked.open.is_some() && !window.interrupted)?;
    let evidence = evidence!("no request was due in the window of {window}";
        window = Quantity::ns(counts.window_ns));
    let remedy =
        "there is nothing to measure: load for longer (--duration), or at a higher rate (--rate)";
    Some(void(evidence, remedy))
}

/// Reports a slice that ended before all of its requests were sent. The generator stops if no connection
/// accepts requests.
pub(super) fn ended_early(window: &MeasuredWindow<'_>) -> Option<CheckFinding> {
    let total = window.asked.until.requests()?;
    let due = window.slice.counts.due();
    only_if(due < total && !window.interrupted)?;
    let evidence = evidence!("{due} of {total} were sent, and then no connection took one";
        due = Quantity::count(due), total = number_of(total, "request"));
    let remedy =
        "the service ended or refuses connections, which no figure and no limit shows: see its log";
    Some(void(evidence, remedy))
}

/// Reports bytes that arrived when no response was pending: after a complete response, or between slices.
pub(super) fn unasked(_: &CheckedRun<'_>, variant: &CheckedVariant<'_>) -> Option<CheckFinding> {
    let errors = variant.slices.iter().flat_map(|slice| &slice.counts.errors);
    let unasked =
        errors.filter(|error| (error.phase, error.cause) == (Phase::Idle, Cause::Malformed));
    let count: u64 = unasked.map(|error| error.count).sum();
    let evidence = evidence!(
        "{} more came than the responses to what was requested",
        many(count, "time")
    );
    let evidence = evidence.with([("count", Quantity::count(count))]);
    let remedy = "two responses to one request, or bodies longer than their Content-Length: responses may be mixed up, and no figure holds";
    (count > 0).then(|| void(evidence, remedy))
}

/// Causes and phases of lost requests: `; 2 × reset (head)`. Connections that ended while idle lost none.
fn lost(slices: &[&Slice]) -> String {
    let errors = slices.iter().flat_map(|slice| &slice.counts.errors);
    let errors = errors.filter(|error| error.phase != Phase::Idle && error.cause != Cause::Timeout);
    let causes = counted(errors.map(|error| ((error.phase, error.cause), error.count)));
    causes
        .iter()
        .map(|((phase, cause), count)| format!("; {count} × {cause} ({phase})"))
        .collect()
}

/// Reports comparisons of variants that responded differently.
pub(super) fn different_work(run: &CheckedRun<'_>, asked: &Comparison) -> Option<CheckFinding> {
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

/// Reports comparisons of variants that sent different amounts during the load, unless the responses before
/// the load explain it: the same content, sent with a different coding as declared in the experiment.
pub(super) fn different_bodies(run: &CheckedRun<'_>, asked: &Comparison) -> Option<CheckFinding> {
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

/// Maximum number of distinct contents that each thread of the engine records.
const CONTENTS_MAX: usize = 16;

/// Reports a slice in which the same request had different responses.
pub(super) fn contents_differ(window: &MeasuredWindow<'_>) -> Option<CheckFinding> {
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

/// Two compared variants with their responses.
struct Pair<'a> {
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
    fn of(run: &CheckedRun<'a>, asked: &Comparison) -> Option<Pair<'a>> {
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
    fn explains(&self, as_in_load: impl Fn(usize, f64) -> bool) -> bool {
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

/// Returns the request with this name, or the only one.
fn named<'a>(load: &'a Load, name: &str) -> Option<&'a Request> {
    match load.requests.as_slice() {
        [only] => Some(only),
        several => several.iter().find(|request| request.name == name),
    }
}

/// Returns the contract for the responses to a request.
pub(super) fn contract_of<'a>(variant: &'a plan::Variant, request: &str) -> &'a Contract {
    named(&variant.load, request)
        .and_then(|request| request.expect.as_ref())
        .unwrap_or(&variant.expect)
}

// The patterns below name every field, so that a new one is not forgotten.

/// Whether two variants send the same request under a name, apart from accepted codings. At two commits the
/// same file is in different folders.
fn is_same_request(one: &Request, other: &Request, across_commits: bool) -> bool {
    // The weight does not affect responses. Contracts are compared separately, and captured values with the
    // user.
    let Request {
        name: _,
        weight: _,
        method,
        path,
        headers,
        body,
        body_file,
        values,
        expect: _,
        once: _,
        capture: _,
    } = one;
    let sent = |headers: &[(String, String)]| -> Vec<(String, String)> {
        let chosen = headers
            .iter()
            .filter(|(name, _)| !header::is_same(name, "accept-encoding"));
        chosen
            .map(|(name, value)| (header::key(name), value.clone()))
            .collect()
    };
    let is_same_file = |one: &Option<PathBuf>, other: &Option<PathBuf>| match (one, other) {
        (Some(one), Some(other)) if across_commits => one.file_name() == other.file_name(),
        _ => one == other,
    };
    (method, path, body) == (&other.method, &other.path, &other.body)
        && sent(headers) == sent(&other.headers)
        && is_same_file(body_file, &other.body_file)
        && is_same_file(values, &other.values)
}

/// Whether two contracts are equal, apart from codings, which are undone.
fn is_same_contract(one: &Contract, other: &Contract) -> bool {
    let without_codings = |of: &Contract| {
        let mut contract = comparable_contract(of);
        contract
            .headers
            .retain(|name, _| !["content-encoding", "vary"].contains(&name.as_str()));
        contract
    };
    without_codings(one) == without_codings(other)
}

/// Whether connections have the same state: the log-ins, the captured values, and cookies.
fn is_same_user(one: &Load, other: &Load, across_commits: bool) -> bool {
    let Load {
        requests,
        settings:
            LoadSettings {
                cookies,
                connections: _,
                threads: _,
                keep_alive: _,
                sources: _,
                sample_every: _,
            },
        // How, how often and over which path requests are sent is not state that responses could show.
        connections_typed: _,
        rate_per_s: _,
        timeout: _,
        protocol: _,
        tls: _,
        network: _,
        think: _,
    } = one;
    let log_in = |requests: &'_ [Request]| -> Vec<Request> {
        requests
            .iter()
            .filter(|request| request.once)
            .cloned()
            .collect()
    };
    let (first, others) = (log_in(requests), log_in(&other.requests));
    let is_same = |(one, other): (&Request, &Request)| {
        is_same_request(one, other, across_commits) && one.capture == other.capture
    };
    *cookies == other.settings.cookies
        && first.len() == others.len()
        && first.iter().zip(&others).all(is_same)
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

/// The status of all recorded responses. `None` if it varies.
fn status(looks: &RequestWitnesses<'_>) -> Option<u16> {
    let first = looks.first()?.status;
    looks
        .iter()
        .all(|look| look.status == first)
        .then_some(first)
}

/// The content length. `None` if unknown, or if it varies by more than the tolerance between variants.
fn bytes(looks: &RequestWitnesses<'_>) -> Option<u64> {
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn request(value: &Value) -> Request {
        serde_json::from_value(value.clone()).expect("a request")
    }

    /// A request without empty fields.
    fn full() -> Value {
        json!({
            "name": "log in", "weight": 2, "method": "POST", "path": "/in", "headers": [["X-User", "1"], ["Accept-Encoding", "br"]],
            "body": "a", "body_file": "/f/body", "values": "/f/rows.csv", "once": true, "capture": [["token", {"json": "/t"}]],
            "expect": {"status": [200], "headers": {}, "body_bytes": null},
        })
    }

    #[test]
    fn each_change_of_a_request_is_noticed() {
        let is_same = |other: &Value| is_same_request(&request(&full()), &request(other), false);
        let mut unnoticed: Vec<String> = full()
            .as_object()
            .expect("an object")
            .keys()
            .cloned()
            .collect();
        // Ensures that a new field is included.
        let written = serde_json::to_value(request(&full())).expect("JSON");
        assert_eq!(
            written.as_object().expect("an object").len(),
            unnoticed.len()
        );
        unnoticed.retain(|name| {
            let mut other = full();
            other[name] = match &other[name] {
                Value::String(text) => format!("{text}x").into(),
                Value::Number(_) => 7.into(),
                Value::Bool(truth) => (!truth).into(),
                Value::Object(_) => Value::Null,
                _ => json!([]),
            };
            is_same(&other)
        });
        unnoticed.sort();
        assert_eq!(unnoticed, ["capture", "expect", "name", "once", "weight"]);
        let spelled = |from: &str, to: &str| {
            serde_json::from_str(&full().to_string().replace(from, to)).expect("JSON")
        };
        assert!(is_same(&spelled("X-User", "x-user")) && is_same(&spelled("\"br\"", "\"gzip\"")));
        assert!(!is_same(&spelled("\"1\"", "\"2\"")));
    }

    #[test]
    fn who_logs_in_otherwise_is_another_user() {
        let load = |body: &str| {
            let mut first = full();
            first["body"] = body.into();
            Load {
                requests: vec![request(&first), Request::default()],
                ..Load::default()
            }
        };
        assert!(is_same_user(&load("a"), &load("a"), false));
        assert!(!is_same_user(&load("a"), &load("b"), false));
        assert!(!is_same_user(&load("a"), &Load::default(), false));
    }
}
