//! Two variants that differ in nothing
//!
//! **Seen.** `both ran the same processes`, although the plan changes a command, variables, a launcher or
//! workers. Note: equal responses and CPU time.
//!
//! **Why.** The setting has no effect, or did not reach the service.
//!
//! **What to do.** Check that the service reads it, and that these requests use it.
//!
//! **Threshold.** CPU time per request within `ALIKE_CPU_TOLERANCE = 0.05`; for the note within the margin.
//! For two deployed services: the same pods.

use std::collections::{BTreeMap, BTreeSet};

use model::quantity::many;
use model::{Quantity, evidence, header};
use plan::{Comparison, Service, ServiceCommand, ServiceSource};
use record::{PodSeen, ProcessSeen, ServiceStarted, TrialStarted, Witness};

use super::finding::{CheckFinding, warning};
use super::input::{CheckedRun, CheckedVariant};
use super::pods::{deployed, same};
use super::row::{CheckRow, Maker, OFF, Subject, WARNING_OR_NOTE, row};
use crate::is_one_of;
use crate::only_if;
use crate::sums::total;

pub(super) static ROW: CheckRow = row(
    Subject::Treatment,
    WARNING_OR_NOTE,
    &[Maker::Pair(nothing_observable)],
)
.alone(OFF);

/// Reports two Services with the same pods, which are one service under two names.
fn same_pods(
    baseline: &CheckedVariant<'_>,
    candidate: &CheckedVariant<'_>,
) -> Option<CheckFinding> {
    let (one, other) = (deployed(baseline).next()?, deployed(candidate).next()?);
    // If both variants load the same Service, the user knows that.
    let known = one.place == other.place && one.address == other.address;
    let is_there = |pod: &&PodSeen| same(&one.pods, pod).is_some_and(|same| same.ready);
    let ready = || other.pods.iter().filter(|pod| pod.ready);
    let (shared, all) = (ready().filter(is_there).count(), ready().count());
    let all = many(all as u64, "pod");
    let evidence = format!(
        "{shared} of the {all} behind {} stand behind {}, too",
        other.place, one.place
    );
    let remedy = "requests to both go to the same processes; see whether one selector says too little (kubectl get services --output wide)";
    let told = shared > 0 && !known && baseline.plan.load == candidate.plan.load;
    told.then(|| warning(evidence, remedy))
}

/// Relative difference in CPU time per request from which on variants do differ. Identical services differ by
/// up to 3 % on a shared host with two cores.
const ALIKE_CPU_TOLERANCE: f64 = 0.05;
/// Words of a command with effects that are not visible from outside: limits, priorities, processors, memory
/// allocators.
const UNSEEN_WORDS: &str = "ulimit prlimit nice renice ionice chrt taskset numactl cpulimit cgexec \
    systemd-run unshare setarch sysctl";

/// Response headers that differ without a cause, or follow from others.
const IDLE_HEADERS: &str = "date age expires last-modified etag set-cookie connection keep-alive \
    content-length server-timing x-response-time x-runtime x-request-id traceparent";

fn nothing_observable(run: &CheckedRun<'_>, asked: &Comparison) -> Option<CheckFinding> {
    let [baseline, candidate] = run.pair(asked)?;
    alike(baseline, candidate, run.plan.design.margin).or_else(|| same_pods(baseline, candidate))
}

fn alike(
    baseline: &CheckedVariant<'_>,
    candidate: &CheckedVariant<'_>,
    margin: f64,
) -> Option<CheckFinding> {
    let asked = asked_difference(baseline.plan, candidate.plan)?;
    let (one, other) = (
        ObservedVariant::of(baseline)?,
        ObservedVariant::of(candidate)?,
    );
    only_if(!differ(&one.witnesses, &other.witnesses))?;
    let apart = one.cpu_ns_per_request.zip(other.cpu_ns_per_request);
    let apart = apart.map(|(one, other)| (other / one - 1.0).abs());
    if one.face != other.face {
        return no_effect(&asked, apart?, margin);
    }
    let cpu = match apart {
        Some(apart) if apart > ALIKE_CPU_TOLERANCE => return None,
        Some(apart) => format!(
            ", and CPU time per request is within {}",
            Quantity::share(apart)
        ),
        None => String::new(),
    };
    let commands = one.commands();
    Some(warning(
        format!(
            "the plan changes {asked}, yet both ran the same processes ({commands}) with the same variables and gave the same responses{cpu}"
        ),
        "what is varied may never have reached the service: see whether a script drops it, and let the variants show it in a header",
    ))
}

/// Reports a setting that reached the processes but has no visible effect. Different code may well do the
/// same as before.
fn no_effect(asked: &str, cpu_apart: f64, margin: f64) -> Option<CheckFinding> {
    only_if(cpu_apart <= margin && !asked.contains(".command"))?;
    let evidence = evidence!(
        "the plan changes {asked}, and responses are the same, CPU time per request within {apart}";
        apart = Quantity::share(cpu_apart));
    let remedy = "the setting may not have taken effect: see whether the service reads it, and whether these requests need what it changes";
    Some(CheckFinding::note((), evidence, remedy))
}

/// Differences in how the plan starts two variants, if they should be visible: `services.api.command`.
fn asked_difference(one: &plan::Variant, other: &plan::Variant) -> Option<String> {
    // The patterns here and below name every field, so that none is forgotten. The expectation does not
    // affect the start.
    let plan::Variant {
        name: _,
        levels: _,
        services,
        entry,
        load,
        expect: _,
    } = one;
    only_if((entry, load, services.len()) == (&other.entry, &other.load, other.services.len()))?;
    let mut asked = Vec::new();
    for (one, other) in services.iter().zip(&other.services) {
        // The timeout for becoming ready has no effect once the service is ready.
        let Service {
            name,
            source,
            ready,
            ready_timeout: _,
            needs,
        } = one;
        only_if((name, ready, needs) == (&other.name, &other.ready, &other.needs))?;
        let (ServiceSource::Command(how), ServiceSource::Command(other_how)) =
            (source, &other.source)
        else {
            return None;
        };
        let changed = changed_parts(how, other_how)?.into_iter();
        asked.extend(changed.map(|part| format!("services.{name}.{part}")));
    }
    (!asked.is_empty()).then(|| asked.join(", "))
}

/// The parts in which two commands differ. `None` if they differ in a part that need not be visible.
fn changed_parts(one: &ServiceCommand, other: &ServiceCommand) -> Option<Vec<&'static str>> {
    let ServiceCommand {
        command,
        env,
        launcher,
        workers,
        directory,
        container,
        port,
        pmx,
        templates,
        // How a service is stopped has no earlier effect.
        stop_timeout: _,
        // Observed in the run, not requested.
        address: _,
        listens_on: _,
        other_ports: _,
    } = one;
    only_if((directory, container) == (&other.directory, &other.container))?;
    only_if((port, pmx, templates) == (&other.port, &other.pmx, &other.templates))?;
    let command_differs = *command != other.command;
    only_if(!command_differs || !is_unseen(one) && !is_unseen(other))?;
    let parts = [
        (command_differs, "command"),
        (*env != other.env, "env"),
        (*launcher != other.launcher, "launcher"),
        (*workers != other.workers, "workers"),
    ];
    Some(
        parts
            .into_iter()
            .filter(|(differs, _)| *differs)
            .map(|(_, part)| part)
            .collect(),
    )
}

fn is_unseen(command: &ServiceCommand) -> bool {
    let words = command
        .command
        .iter()
        .flat_map(|word| word.split(|c: char| c.is_whitespace() || c == ';'));
    words
        .map(|word| word.rsplit('/').next().unwrap_or(word))
        .any(|word| is_one_of(UNSEEN_WORDS, word))
}

/// Observations of a variant that are the same in all of its trials.
struct ObservedVariant<'a> {
    face: Face<'a>,
    witnesses: Vec<&'a Witness>,
    cpu_ns_per_request: Option<f64>,
}

/// For each service, its number of processes, and the command and variables of those that serve.
type Face<'a> = BTreeMap<&'a str, (usize, BTreeSet<ProcessIdentity>)>;

type ProcessIdentity = (String, BTreeMap<String, String>);

impl<'a> ObservedVariant<'a> {
    /// `None` if a record lacks the data, if trials of the variant differ, or if a process hides its
    /// variables.
    fn of(variant: &CheckedVariant<'a>) -> Option<ObservedVariant<'a>> {
        let trials = &variant.all_trials;
        let mut faces = trials.iter().map(|trial| face(trial.started));
        let face = faces.next()??;
        only_if(faces.all(|other| other.as_ref() == Some(&face)))?;
        let slices: Vec<_> = trials.iter().flat_map(|trial| trial.measured()).collect();
        let ok = total(&slices, |slice| slice.counts.successful);
        let cpu = total(&slices, record::Slice::services_cpu_ns);
        let cpu_ns_per_request = (ok > 0 && cpu > 0).then(|| cpu as f64 / ok as f64);
        let witnesses: Vec<&'a Witness> = variant.witnesses().collect();
        (!witnesses.is_empty()).then_some(ObservedVariant {
            face,
            witnesses,
            cpu_ns_per_request,
        })
    }

    fn commands(&self) -> String {
        let served = self.face.values().flat_map(|(_, served)| served);
        let commands: BTreeSet<&str> = served.map(|(command, _)| command.as_str()).collect();
        Vec::from_iter(commands).join("; ")
    }
}

fn face(started: &TrialStarted) -> Option<Face<'_>> {
    let services = started.services.iter();
    let ports: Vec<String> = services
        .clone()
        .map(|service| service.port.to_string())
        .collect();
    services
        .map(|service| Some((service.service.as_str(), of_service(service, &ports)?)))
        .collect()
}

fn of_service(
    service: &ServiceStarted,
    ports: &[String],
) -> Option<(usize, BTreeSet<ProcessIdentity>)> {
    let serving = serving(&service.processes);
    only_if(!serving.is_empty() && serving.iter().all(|process| process.marked))?;
    let process = |process: &&ProcessSeen| -> ProcessIdentity {
        let environment = process.environment.iter();
        let environment = environment.map(|(name, value)| (name.clone(), settled(value, ports)));
        (settled(&process.command, ports), environment.collect())
    };
    Some((
        service.processes.len(),
        serving.iter().map(process).collect(),
    ))
}

/// The processes that listen. If none is known to, all.
fn serving(processes: &[ProcessSeen]) -> Vec<&ProcessSeen> {
    let listening: Vec<&ProcessSeen> = processes.iter().filter(|process| process.listens).collect();
    if listening.is_empty() {
        processes.iter().collect()
    } else {
        listening
    }
}

/// Removes parts of a text that differ between trials: ports, and the name of the service's folder.
fn settled(text: &str, ports: &[String]) -> String {
    let word = |word: &str| match word.split_once("/proofload-") {
        Some((before, after)) => format!(
            "{before}/{}",
            after.split_once('/').map_or("", |(_, rest)| rest)
        ),
        None => word.to_owned(),
    };
    let text = text.split(' ').map(word).collect::<Vec<_>>().join(" ");
    ports
        .iter()
        .fold(text, |text, port| text.replace(port, "PORT"))
}

/// Whether responses show a difference. Values that vary among the responses of one variant do not count.
fn differ(one: &[&Witness], other: &[&Witness]) -> bool {
    let requests = [one, other].map(|of| {
        of.iter()
            .map(|witness| &witness.request)
            .collect::<BTreeSet<_>>()
    });
    let apart = |request: &&String| {
        let (one, other) = (looks(one, request), looks(other, request));
        let mut names = one.iter().chain(&other).flat_map(BTreeMap::keys);
        names.any(|name| {
            steady(&one, name)
                .zip(steady(&other, name))
                .is_some_and(|(one, other)| one != other)
        })
    };
    // It is determined only once, so the other responses of the variant lack it.
    let coding = |of: &[&Witness]| {
        of.iter()
            .find_map(|witness| witness.coding_on_request.clone())
    };
    requests[0] != requests[1] || requests[0].iter().any(apart) || coding(one) != coding(other)
}

/// The comparable parts of each response to a request: status, content if it is repeatable, headers.
fn looks(witnesses: &[&Witness], request: &str) -> Vec<BTreeMap<String, String>> {
    let of = witnesses
        .iter()
        .filter(|witness| witness.request == request);
    let look = |witness: &&Witness| {
        let Witness {
            status,
            headers,
            decoded_sha256,
            repeats,
            // The request, which is the same for both.
            request: _,
            accept_encoding: _,
            // A different length implies a different hash or coding.
            body_bytes: _,
            decoded_bytes: _,
            // Compared by `differ`.
            coding_on_request: _,
        } = witness;
        let hash = decoded_sha256
            .as_deref()
            .filter(|_| *repeats)
            .unwrap_or("changes");
        let kept = headers
            .iter()
            .map(|(name, value)| (header::key(name), value.clone()));
        let kept = kept.filter(|(name, _)| !is_one_of(IDLE_HEADERS, name));
        let own = [
            (":status", status.to_string()),
            (":content", hash.to_owned()),
        ];
        kept.chain(own.map(|(name, value)| (name.to_owned(), value)))
            .collect()
    };
    of.map(look).collect()
}

/// The common value of a field in all responses, or its absence in all. `None` if it varies.
fn steady<'a>(looks: &'a [BTreeMap<String, String>], name: &str) -> Option<Option<&'a String>> {
    let mut values = looks.iter().map(|look| look.get(name));
    let first = values.next()?;
    values.all(|value| value == first).then_some(first)
}
