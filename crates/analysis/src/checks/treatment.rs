//! Whether a variant has the configuration that its name claims. Its declared headers must be present, where
//! compression that was never negotiated is the usual fault. Its processes must have the variables that the
//! experiment sets. No other process may listen on its port.
//!
//! These checks use all trials, also of unfinished blocks, because a variant's configuration does not depend
//! on measurements.

use model::quantity::{counted, many};
use model::{Check, FailureKind, Quantity, evidence, header};
use plan::{Factor, Plan, Service};
use record::{ProcessSeen, Record, ServiceStarted, Slice, Witness};

use super::work::contract_of;
use super::{CheckFinding, CheckedRun, CheckedTrial, CheckedVariant, only, void, warning};
use crate::failure::in_words;
use crate::only_if;
use crate::sums::total;

/// Minimum share of responses without a declared header that means it was not applied. Below, it was lost
/// occasionally.
const UNTREATED_SHARE_MIN: f64 = 0.95;
/// Body size from which most servers compress: Express's `compression` and Fastify's begin at 1024 bytes.
const COMPRESSED_BYTES_MIN: u64 = 1024;
/// Length at which values in records are cut. Longer values cannot be compared.
const VALUE_BYTES_MAX: usize = 256;

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
pub(super) fn treatment_not_applied(
    run: &CheckedRun<'_>,
    of: &CheckedVariant<'_>,
) -> Option<CheckFinding> {
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

pub(super) fn values<'a>(witness: &'a Witness, name: &str) -> Vec<&'a str> {
    let named = witness
        .headers
        .iter()
        .filter(|(other, _)| header::is_same(other, name));
    named.map(|(_, value)| value.as_str()).collect()
}

/// The same comparison as in the load generator.
fn has(witness: &Witness, name: &str, accepted: &[String]) -> bool {
    let values = values(witness, name);
    if values.is_empty() {
        return accepted.iter().any(String::is_empty);
    }
    let cut = |value: &&str| value.len() + 4 > VALUE_BYTES_MAX;
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

/// The first `accept-encoding` of the requests.
pub(super) fn accept_encoding(load: &plan::Load) -> Option<&str> {
    let mut said = load
        .requests
        .iter()
        .flat_map(|request| header::values(&request.headers, "accept-encoding"));
    said.next().map(String::as_str)
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

/// Reports a variant that compresses responses for clients that accept it, if the load's requests do not.
pub(super) fn coding_not_requested(
    run: &CheckedRun<'_>,
    of: &CheckedVariant<'_>,
) -> Option<CheckFinding> {
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

/// Variables recorded for every process in addition to those that the experiment sets. They change a program
/// from outside.
pub const WATCHED_VARIABLES: [&str; 11] = [
    "NODE_ENV",
    "NODE_OPTIONS",
    "NODE_V8_COVERAGE",
    "UV_THREADPOOL_SIZE",
    "LD_PRELOAD",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "COVERAGE_PROCESS_START",
    "CPUPROFILE",
    "HEAPPROFILE",
];
/// Variables that PM2's launcher sets itself.
const OF_PM2: [&str; 4] = [
    "PATH",
    "PM2_HOME",
    "PM2_DISCRETE_MODE",
    "PM2_DISABLE_VERSION_CHECK",
];

/// Service, process, variable and expected value of a variable that did not reach the process.
type LostVariable<'a> = (&'a str, &'a ProcessSeen, &'a str, String);

/// Reports a process that serves with a different value of a variable than the experiment sets, or without
/// it. Variables whose value in the plan has a placeholder differ between trials and are not compared.
pub(super) fn environment_lost(
    _: &CheckedRun<'_>,
    variant: &CheckedVariant<'_>,
) -> Option<CheckFinding> {
    let trials = &variant.all_trials;
    let lost: Vec<LostVariable<'_>> = trials
        .iter()
        .filter_map(|trial| lost_in(trial, variant.plan))
        .collect();
    let (service, process, variable, wanted) = lost.first()?;
    let seen = match process.environment.get(*variable) {
        Some(value) => format!("{variable}={value}"),
        None => format!("no {variable}"),
    };
    let (command, pid) = (&process.command, process.pid);
    Some(void(
        evidence!(
            "the experiment sets {variable}={wanted} for {service}, and its process ran with {seen} ({command}, pid {pid}), so in {hit} of \
             {trials} trials";
            hit = Quantity::count(lost.len() as u64), trials = Quantity::count(trials.len() as u64)),
        "a wrapper or a script loses or overwrites it on the way; start the program itself, or set the variable where it is set last",
    ))
}

fn lost_in<'a>(trial: &CheckedTrial<'a>, variant: &'a plan::Variant) -> Option<LostVariable<'a>> {
    trial.started.services.iter().find_map(|started| {
        let service = variant
            .services
            .iter()
            .find(|service| service.name == started.service)?;
        let at_end = trial
            .ended
            .and_then(|ended| ended.processes_by_service.get(&started.service));
        let looks = [Some(&started.processes), at_end].into_iter().flatten();
        looks
            .flat_map(|processes| serving(processes, started))
            .find_map(|process| {
                let (variable, wanted) =
                    asked(service).find(|(name, wanted)| is_lost(process, name, wanted))?;
                Some((service.name.as_str(), process, variable, wanted))
            })
    })
}

/// The processes that do the work: those that listen, and if there are workers, those without children. If no
/// listening process is known, those without children. Other processes of a service may have different
/// environments.
fn serving<'a>(processes: &'a [ProcessSeen], started: &ServiceStarted) -> Vec<&'a ProcessSeen> {
    let is_parent = |one: &ProcessSeen| processes.iter().any(|other| other.parent == one.pid);
    let any_listens = processes.iter().any(|process| process.listens);
    let works = |one: &ProcessSeen| (!any_listens || started.workers.is_some()) && !is_parent(one);
    let (mut serving, others): (Vec<_>, Vec<_>) =
        processes.iter().partition(|process| process.listens);
    serving.extend(others.into_iter().filter(|one| works(one)));
    serving
}

/// The variables that the experiment sets to the same value in every trial.
fn asked(service: &Service) -> impl Iterator<Item = (&str, String)> {
    let pm2 = service
        .command()
        .is_some_and(|command| command.launcher.is_pm2());
    let own = move |name: &str| pm2 && OF_PM2.contains(&name);
    let set = service
        .command()
        .into_iter()
        .flat_map(|command| &command.env);
    let set = set.filter(move |(name, _)| !own(name));
    set.filter_map(|(name, value)| Some((name.as_str(), plan::fill(value, |_| None).ok()?)))
}

/// Whether a process has a different value, or provably none. Additions around the value are accepted, such
/// as folders before a `PATH` or another flag in `NODE_OPTIONS`.
fn is_lost(process: &ProcessSeen, name: &str, wanted: &str) -> bool {
    match process.environment.get(name) {
        None => process.marked,
        Some(seen) if seen == wanted => false,
        Some(seen) => wanted.is_empty() || !surrounds(seen, wanted),
    }
}

fn surrounds(seen: &str, wanted: &str) -> bool {
    let ends = |c: Option<char>| c.is_none_or(|c| c.is_whitespace() || c == ':' || c == ',');
    seen.match_indices(wanted).any(|(at, _)| {
        ends(seen[..at].chars().next_back()) && ends(seen[at + wanted.len()..].chars().next())
    })
}

pub(super) fn stale_server(
    _: &CheckedRun<'_>,
    variant: &CheckedVariant<'_>,
) -> Option<CheckFinding> {
    let ended: Vec<_> = variant
        .all_trials
        .iter()
        .filter_map(|trial| trial.ended)
        .collect();
    let late: Vec<_> = ended
        .iter()
        .filter(|ended| !ended.late_ports.is_empty())
        .collect();
    if let Some(first) = late.first() {
        let (ports, block) = (first.late_ports.join("; "), first.block);
        return Some(void(
            evidence!("a service that does not heed PORT began to listen on further ports while it was loaded: {ports} (block {block}; so \
                in {hit} of {trials})";
                hit = Quantity::count(late.len() as u64), trials = counted(ended.len() as u64, "trial")),
            "the load may not have reached the application; name its port: --port, or `port` of the service",
        ));
    }
    let hit: Vec<_> = ended
        .iter()
        .filter(|ended| !ended.strangers_listening.is_empty())
        .collect();
    let first = hit.first()?;
    let (who, block) = (first.strangers_listening.join("; "), first.block);
    Some(void(
        evidence!("another process listened where the load was sent to: {who} (block {block}; so in {hit} of {trials})";
            hit = Quantity::count(hit.len() as u64), trials = counted(ended.len() as u64, "trial")),
        "it may have responded in the service's place; end it, see what starts it, and run again",
    ))
}
