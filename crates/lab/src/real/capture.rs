//! Captures during a window of load: agents begin while the services are idle, and end when all requests are
//! complete.
//!
//! Only the load runs between the two readings of thread times. A capture that is not possible is recorded as
//! missing. Only what prevents the load is a failure.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use explain::NativeProfile;
use explain::perf::{PerfError, StackSampler};
use machine::clock::monotonic_ns;
use model::quantity::many;
use model::{
    Absence, AgentSeen, Capture, CaptureKind, CapturedProcess, CapturedService, Missing,
    NodeCounters, ProfileFile, SliceKind,
};
use plan::Secrets;
use services::{
    AgentHostFolder, AgentTake, Arming, CaptureOrder, ProcessThreads, Role, Running, ThreadAgent,
};

use super::processes::{COMMAND_BYTES_MAX, PROCESSES_MAX, command_line};
use super::services::check_alive;
use super::{RealEnvironment, file_name};
use crate::environment::{CaptureSpec, Failure, Result, SliceSpec, elapsed};
use crate::explaining;

/// Sampling interval of the CPU profiler: the default of V8's own tools, short enough for detail and cheap
/// enough not to change a service.
const CPU_INTERVAL_US: u32 = 1000;
/// Timeout for the agent of a Node.js service that is ready and warm.
const HELLO_PATIENCE: Duration = Duration::from_secs(2);
/// Maximum length of a variant's name in a file name, in bytes.
const NAME_BYTES_MAX: usize = 80;

/// Resources used so far by each service of a trial, with all its processes.
fn looks(services: &mut [Running]) -> Vec<(u64, Vec<ProcessThreads>)> {
    services
        .iter_mut()
        .map(|service| (service.sample().cpu_ns, service.threads()))
        .collect()
}

impl RealEnvironment {
    /// Runs one window of load on a running trial, and captures it.
    pub(super) fn captured(&mut self, variant: usize, wanted: CaptureSpec) -> Result<Capture> {
        let folder = self.profiles_of_round(wanted.round)?;
        self.wait_for_agents(variant)?;
        let (plan, stop) = (Arc::clone(&self.plan), self.stop.clone());
        let stopped = || stop.is_requested();
        let mut name = file_name(&plan.variants[variant].name);
        model::text::cut_bytes(&mut name, NAME_BYTES_MAX);
        let armings = arm(
            &self.living_of(variant)?.services,
            wanted.kind,
            (&folder, &name),
            &stopped,
        );
        // Starting a profile may take so long that idle connections become too old.
        self.renew_generator(variant, wanted.open)?;
        let native = match begin_stacks(&self.living_of(variant)?.services, wanted.kind) {
            Ok(native) => native,
            // Without stacks this window has no purpose. Other captures continue.
            Err(why) => {
                let missing = Missing::new(Absence::NativeStacks, why);
                return Ok(explaining::without(
                    &plan,
                    (wanted.round, variant, wanted.kind),
                    missing,
                ));
            }
        };
        let spec = SliceSpec {
            kind: SliceKind::Measured,
            until: elapsed(wanted.seconds),
            open: wanted.open,
        };
        self.open_connections(variant, spec.until)?;
        let before = looks(&mut self.living_of(variant)?.services);
        let start_ns = monotonic_ns();
        let slice = self.loaded(variant, spec)?;
        let end_ns = monotonic_ns();
        let services = &mut self.living_of(variant)?.services;
        let after = looks(services);
        services.iter_mut().try_for_each(check_alive)?;
        let stacks = native.map(StackSampler::stop).unwrap_or_default();
        let disarm = |(service, arming): (&Running, Option<Arming>)| {
            let armed = service.agent.as_ref().zip(arming);
            armed
                .map(|(host, arming)| host.disarm(arming, &stopped))
                .unwrap_or_default()
        };
        let results: Vec<Vec<AgentCapture>> = services.iter().zip(armings).map(disarm).collect();
        let looks = before.into_iter().zip(after).zip(results);
        let observed = services
            .iter()
            .zip(looks)
            .map(|(service, ((before, after), results))| {
                let (armed, folder, secrets) =
                    (wanted_of(wanted.kind).is_some(), &folder, &plan.secrets);
                let observation = Observation {
                    service,
                    before: &before.1,
                    after: &after.1,
                    armed,
                    results,
                    folder,
                    secrets,
                };
                let mut captured = CapturedService {
                    service: service.name.clone(),
                    directory: explaining::directory(&plan.variants[variant], &service.name),
                    cpu_ns: after.0.saturating_sub(before.0),
                    missing: observation.missing(),
                    processes: observation.processes(),
                };
                keep_stacks(&stacks, &mut captured, folder, &name);
                captured
            });
        Ok(Capture {
            round: wanted.round,
            variant,
            kind: wanted.kind,
            start_ns,
            end_ns,
            requests: slice.counts.successful,
            errors: slice.counts.failed(),
            services: observed.collect(),
        })
    }

    /// The folder of a round's profiles, relative to the record and as a path.
    fn profiles_of_round(&self, round: u32) -> Result<ProfilesFolder> {
        let inside = format!("{}/round-{round}", record::PROFILES);
        let path = self.record.join(&inside);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&path)
            .map_err(|error| {
                Failure::generator(format!(
                    "{}: cannot make the folder of profiles: {error}",
                    path.display()
                ))
            })?;
        Ok(ProfilesFolder { inside, path })
    }

    /// Waits for the agents of Node.js services. Other services have none.
    fn wait_for_agents(&mut self, variant: usize) -> Result<()> {
        let stop = self.stop.clone();
        for service in &self.living_of(variant)?.services {
            let Some(host) = &service.agent else { continue };
            let is_node = || service.threads().iter().any(is_node);
            if host.agents().is_empty() && is_node() {
                host.wait_for_agents(HELLO_PATIENCE, &|| stop.is_requested());
            }
        }
        if self.stop.is_requested() {
            Err(Failure::INTERRUPTED)
        } else {
            Ok(())
        }
    }
}

/// Starts the agents of every service, if they make this capture. Profiles are named after the variant.
fn arm(
    services: &[Running],
    kind: CaptureKind,
    (folder, variant): (&ProfilesFolder, &str),
    stopped: &dyn Fn() -> bool,
) -> Vec<Option<Arming>> {
    let arm = |service: &Running| {
        let file = |agent: &ThreadAgent| {
            folder
                .path
                .join(profile_name(variant, &service.name, agent, kind))
        };
        Some(
            service
                .agent
                .as_ref()?
                .arm(wanted_of(kind)?, &file, stopped),
        )
    };
    services.iter().map(arm).collect()
}

/// The folder of a round's profiles.
struct ProfilesFolder {
    /// Path relative to the record.
    inside: String,
    path: PathBuf,
}

impl ProfilesFolder {
    /// Path of a file in the folder, relative to the record.
    fn named(&self, file: &Path) -> String {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        format!("{}/{name}", self.inside)
    }
}

/// The kind of profile that agents make. `None` if they do not make this capture.
fn wanted_of(kind: CaptureKind) -> Option<CaptureOrder> {
    match kind {
        CaptureKind::Plain | CaptureKind::Native => None,
        CaptureKind::Counters => Some(CaptureOrder::Counters),
        CaptureKind::Cpu => Some(CaptureOrder::Cpu {
            interval_us: CPU_INTERVAL_US,
        }),
        CaptureKind::Heap => Some(CaptureOrder::Heap),
    }
}

/// `VARIANT-SERVICE-PID.cpuprofile`. For a worker thread, its number follows the process ID.
fn profile_name(variant: &str, service: &str, agent: &ThreadAgent, kind: CaptureKind) -> String {
    let thread = if agent.thread == 0 {
        String::new()
    } else {
        format!("-{}", agent.thread)
    };
    let ending = if kind == CaptureKind::Heap {
        "heapprofile"
    } else {
        "cpuprofile"
    };
    format!("{variant}-{service}-{}{thread}.{ending}", agent.pid)
}

// Native stacks of services in a window of load: sampled by `explain::perf`, and written to the record's
// profiles.

/// Starts sampling the stacks of all processes, if this capture needs them.
///
/// # Errors
/// Why it is not possible, with a remedy.
fn begin_stacks(services: &[Running], kind: CaptureKind) -> Result<Option<StackSampler>, String> {
    let processes = services.iter().flat_map(|service| service.processes(&[]));
    let pids: Vec<u32> = processes.map(|process| process.id.pid).collect();
    // Services that have ended are reported after the load.
    if kind != CaptureKind::Native || pids.is_empty() {
        return Ok(None);
    }
    let refused = |error: PerfError| {
        let hint = error.hint().map(|hint| format!("; {hint}"));
        format!("no native stacks: {error}{}", hint.unwrap_or_default())
    };
    StackSampler::start(&pids).map(Some).map_err(refused)
}

/// Writes the stacks of a service's processes. A file that cannot be written is recorded as missing.
fn keep_stacks(
    stacks: &[NativeProfile],
    service: &mut CapturedService,
    folder: &ProfilesFolder,
    variant: &str,
) {
    for process in &mut service.processes {
        let Some(profile) = stacks.iter().find(|profile| profile.pid == process.pid) else {
            continue;
        };
        let name = format!("{variant}-{}-{}.native.json", service.service, process.pid);
        let file = folder.path.join(name);
        match written(profile, &file) {
            Ok(bytes) => {
                process.native = Some(ProfileFile {
                    path: folder.named(&file),
                    bytes,
                })
            }
            Err(reason) => service.missing.push(Missing::new(Absence::Other, reason)),
        }
    }
}

fn written(profile: &NativeProfile, file: &Path) -> Result<u64, String> {
    let text = serde_json::to_vec(profile).map_err(|error| error.to_string())?;
    record::write_whole(file, &text)
        .map_err(|error| format!("{}: not written: {error}", file.display()))?;
    Ok(text.len() as u64)
}

// A service in one window: resources of its threads, results of its agents, and missing captures. It only
// reads agents that have already answered.

/// An agent that was asked for a capture, and its result.
type AgentCapture = (ThreadAgent, CaptureResult);
type CaptureResult = Result<AgentTake, String>;

/// Data of a service in a window.
struct Observation<'a> {
    pub service: &'a Running,
    pub before: &'a [ProcessThreads],
    pub after: &'a [ProcessThreads],
    /// Whether agents were asked for a capture.
    pub armed: bool,
    pub results: Vec<AgentCapture>,
    pub folder: &'a ProfilesFolder,
    pub secrets: &'a Secrets,
}

/// Whether a process runs Node.js, judged by its executable.
fn is_node(process: &ProcessThreads) -> bool {
    matches!(process.program.as_str(), "node" | "nodejs")
}

impl Observation<'_> {
    /// Its processes with the resources of their threads and the results of their agents, parents first.
    pub fn processes(&self) -> Vec<CapturedProcess> {
        let agents = self.agents();
        let process = |now: &ProcessThreads| {
            let before = self.before.iter().find(|before| before.id == now.id);
            let inside = agents.iter().filter(|(agent, _)| agent.pid == now.id.pid);
            CapturedProcess {
                pid: now.id.pid,
                parent: now.parent,
                command: command_line(&now.argv, self.secrets, COMMAND_BYTES_MAX),
                threads: now.used_since(before),
                agents: inside
                    .map(|(agent, result)| self.seen(agent, *result))
                    .collect(),
                native: None,
            }
        };
        self.after.iter().take(PROCESSES_MAX).map(process).collect()
    }

    /// Agents that were asked for a capture with their results, and further agents.
    fn agents(&self) -> Vec<(ThreadAgent, Option<&CaptureResult>)> {
        let mut agents: Vec<(ThreadAgent, Option<&CaptureResult>)> = self
            .results
            .iter()
            .map(|(agent, result)| (agent.clone(), Some(result)))
            .collect();
        let there = self
            .service
            .agent
            .as_ref()
            .map(AgentHostFolder::agents)
            .unwrap_or_default();
        for agent in there {
            if !agents
                .iter()
                .any(|(known, _)| (known.pid, known.thread) == (agent.pid, agent.thread))
            {
                agents.push((agent, None));
            }
        }
        agents.sort_by_key(|(agent, _)| (agent.pid, agent.thread));
        agents
    }

    fn seen(&self, agent: &ThreadAgent, result: Option<&CaptureResult>) -> AgentSeen {
        let late = || self.armed && agent.role != Role::Tool;
        let mut failed = match result {
            Some(Err(reason)) => Some(reason.clone()),
            Some(Ok(_)) => None,
            None => late().then(|| "it came when the capture had begun".to_owned()),
        };
        let take = result.and_then(|result| result.as_ref().ok());
        let counters = take.and_then(|take| take.counters.clone());
        let counters = counters.map(serde_json::from_value::<NodeCounters>);
        let counters = counters.transpose().unwrap_or_else(|error| {
            failed = Some(format!("its counters cannot be read: {error}"));
            None
        });
        let file = take.and_then(|take| take.file.as_ref());
        let profile = file.map(|(file, bytes)| ProfileFile {
            path: self.folder.named(file),
            bytes: *bytes,
        });
        AgentSeen {
            thread: agent.thread,
            thread_id: agent.thread_id,
            role: agent.role.to_string(),
            versions: agent.versions.clone(),
            node_env: agent.node_env.clone(),
            uv_threadpool_size: agent.uv_threadpool_size.clone(),
            main: agent.main.clone(),
            requests: take.and_then(|take| take.requests),
            counters,
            profile,
            failed,
        }
    }

    /// Missing captures.
    pub fn missing(&self) -> Vec<Missing> {
        let is_gone = |before: &&ProcessThreads| !self.after.iter().any(|now| now.id == before.id);
        let gone = self.before.iter().filter(is_gone).map(|gone| {
            let gone = named(gone, self.secrets);
            let why = format!("{gone} ended in the window; its CPU time is in no thread's figure");
            Missing::new(Absence::Gone, why)
        });
        let mut missing: Vec<Missing> = gone.collect();
        let over = self.after.len().saturating_sub(PROCESSES_MAX);
        if over > 0 {
            let why = format!(
                "{} more than the {PROCESSES_MAX} that the record keeps",
                many(over as u64, "process")
            );
            missing.push(Missing::new(Absence::Other, why));
        }
        if self.armed {
            missing.extend(self.without_agent());
        }
        for (agent, result) in &self.results {
            let lives = self.after.iter().any(|now| now.id.pid == agent.pid);
            let of = |text: &str| format!("the agent in pid {}: {text}", agent.pid);
            match result {
                // The reason of a running process is recorded with its agent.
                Err(_) if lives => {}
                Err(reason) => missing.push(Missing::new(Absence::Gone, of(reason))),
                Ok(take) => {
                    missing.extend(
                        take.notes
                            .iter()
                            .map(|note| Missing::new(Absence::Other, of(note))),
                    );
                }
            }
        }
        let notes = self
            .service
            .agent
            .as_ref()
            .map(AgentHostFolder::notes)
            .unwrap_or_default();
        missing.extend(
            notes
                .into_iter()
                .map(|note| Missing::new(Absence::Other, note)),
        );
        missing
    }

    /// Processes without an agent: those that run Node.js on their own.
    fn without_agent(&self) -> Vec<Missing> {
        const NO_PROFILE: &str =
            "CPU time is known by thread, and there is no profile of JavaScript";
        if !self.after.iter().any(is_node) {
            return vec![Missing::new(
                Absence::NotNode,
                format!("it does not run Node.js: {NO_PROFILE}"),
            )];
        }
        let agents = self.agents();
        let has_one =
            |process: &ProcessThreads| agents.iter().any(|(agent, _)| agent.pid == process.id.pid);
        let without = self
            .after
            .iter()
            .filter(|process| is_node(process) && !has_one(process));
        let why = |process: &ProcessThreads| {
            let reason = "the service sets NODE_OPTIONS itself when it starts it, or closes descriptors that it does not know";
            Missing::new(
                Absence::Agent,
                format!("{} has no agent: {reason}", named(process, self.secrets)),
            )
        };
        without.take(PROCESSES_MAX).map(why).collect()
    }
}

fn named(process: &ProcessThreads, secrets: &Secrets) -> String {
    format!(
        "{} (pid {})",
        command_line(&process.argv, secrets, 80),
        process.id.pid
    )
}
