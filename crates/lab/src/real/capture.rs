//! A window of load in which something is captured: agents begin while the services are idle, then there is load, and they end when all
//! that was sent is answered.
//!
//! Between two looks at what threads have used there is the load and nothing else. What could not be had is in the capture as missing; only
//! what makes the load itself impossible is a failure.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use explain::perf::Sampler;
use machine::clock::monotonic_ns;
use model::{Absence, Capture, CaptureKind, CapturedService, Missing, SliceKind};
use remote::services::ServiceHandle;
use services::{Agent, Arming, Error, ProcessThreads, Wanted};

use self::observation::{Observation, Outcome};
use super::processes::cut_at;
use super::services::{check_alive, failed_on};
use super::{RealEnvironment, file_name};
use crate::environment::{CaptureSpec, Failure, Result, SliceSpec, elapsed};
use crate::explaining;

mod native;
mod observation;

/// Between two samples of the CPU profiler: what V8's own tools take, and little enough to leave a service as it is.
const CPU_INTERVAL_US: u32 = 1000;
/// How long a Node.js service may take to say hello once it is ready and warmed up.
const HELLO_PATIENCE: Duration = Duration::from_secs(2);
/// Of a variant's name in a file's name, in bytes.
const NAME_BYTES_MAX: usize = 80;

/// What the services of a trial have used so far, each with the whole of its processes.
fn looks(services: &mut [ServiceHandle]) -> Result<Vec<(u64, Vec<ProcessThreads>)>> {
    let look = |service: &mut ServiceHandle| Ok((service.sample()?.cpu_ns, service.threads()?));
    let looks = services.iter_mut().map(look).collect::<Result<_, Error>>();
    looks.map_err(|error| failed_on(error, services.iter()))
}

impl RealEnvironment {
    /// One window of load on a living trial, and what was captured in it.
    pub(super) fn captured(&mut self, variant: usize, wanted: CaptureSpec) -> Result<Capture> {
        let folder = self.profiles_of_round(wanted.round)?;
        self.wait_for_agents(variant)?;
        let (plan, stop) = (Arc::clone(&self.plan), self.stop.clone());
        let stopped = || stop.is_requested();
        let mut name = file_name(&plan.variants[variant].name);
        cut_at(&mut name, NAME_BYTES_MAX);
        let armings = arm(&self.living_of(variant)?.services, wanted.kind, (&folder, &name), &stopped);
        // To begin a profile may take so long that connections would be too old.
        self.renew_generator(variant, wanted.open)?;
        let native = match begin_stacks(&self.living_of(variant)?.services, wanted.kind) {
            Ok(native) => native,
            // Without stacks there is no load for nothing, and other captures go on.
            Err(why) => {
                let missing = Missing::new(Absence::NativeStacks, why);
                return Ok(explaining::without(&plan, (wanted.round, variant, wanted.kind), missing));
            }
        };
        let before = looks(&mut self.living_of(variant)?.services)?;
        let start_ns = monotonic_ns();
        let spec = SliceSpec { kind: SliceKind::Measured, until: elapsed(wanted.seconds), open: wanted.open };
        let slice = self.loaded(variant, spec)?;
        let end_ns = monotonic_ns();
        let services = &mut self.living_of(variant)?.services;
        let after = looks(services)?;
        services.iter_mut().try_for_each(check_alive)?;
        let mut stacks = native::stop(native);
        let results = disarm(services, armings, &stopped);
        let looks = before.into_iter().zip(after).zip(results);
        let observed = services.iter().zip(looks).map(|(service, ((before, after), results))| {
            let (armed, folder, secrets) = (wanted_of(wanted.kind).is_some(), &folder, &plan.secrets);
            let observation =
                Observation { service, before: &before.1, after: &after.1, armed, results, folder, secrets };
            let mut captured = CapturedService {
                service: service.name().to_owned(),
                directory: explaining::directory(&plan.variants[variant], service.name()),
                cpu_ns: after.0.saturating_sub(before.0),
                missing: observation.missing(),
                processes: observation.processes(),
            };
            match service.host() {
                None => stacks.keep(&mut captured, folder, &name),
                Some(host) if wanted.kind == CaptureKind::Native => {
                    let why = format!("it runs on {host}, and native stacks are sampled here alone");
                    captured.missing.push(Missing::new(Absence::Other, why));
                }
                Some(_) => {}
            }
            captured
        });
        Ok(Capture {
            round: wanted.round,
            variant,
            kind: wanted.kind,
            start_ns,
            end_ns,
            requests: slice.counts.successful,
            errors: slice.counts.responses.saturating_sub(slice.counts.successful)
                + slice.counts.timed_out
                + slice.counts.broken,
            services: observed.collect(),
        })
    }

    /// The folder of a round's profiles, by its place in the record and on disk.
    fn profiles_of_round(&self, round: u32) -> Result<Folder> {
        let inside = format!("{}/round-{round}", record::PROFILES);
        let path = self.record.join(&inside);
        fs::create_dir_all(&path).map_err(|error| {
            Failure::Generator(format!("{}: cannot make the folder of profiles: {error}", path.display()))
        })?;
        Ok(Folder { inside, path })
    }

    /// Gives Node.js services the time to say hello. Others have nobody who would.
    fn wait_for_agents(&mut self, variant: usize) -> Result<()> {
        let stop = self.stop.clone();
        for service in &self.living_of(variant)?.services {
            let Some(host) = service.agent() else { continue };
            let is_node = || service.threads().is_ok_and(|threads| threads.iter().any(observation::is_node));
            if host.agents().is_empty() && is_node() {
                host.wait_for_agents(HELLO_PATIENCE, &|| stop.is_requested());
            }
        }
        if self.stop.is_requested() { Err(Failure::Interrupted) } else { Ok(()) }
    }
}

/// Has the agents of every service begin, where the capture is theirs. Profiles get their names from the variant's.
fn arm(
    services: &[ServiceHandle],
    kind: CaptureKind,
    (folder, variant): (&Folder, &str),
    stopped: &dyn Fn() -> bool,
) -> Vec<Option<Arming>> {
    let arm = |service: &ServiceHandle| {
        let file = |agent: &Agent| folder.path.join(profile_name(variant, service.name(), agent, kind));
        Some(service.agent()?.arm(wanted_of(kind)?, &file, stopped))
    };
    services.iter().map(arm).collect()
}

/// Begins to sample stacks of all processes, where they are what is captured; else why the kernel refuses.
fn begin_stacks(services: &[ServiceHandle], kind: CaptureKind) -> Result<Option<Sampler>, String> {
    let here = services.iter().filter_map(|service| service.here());
    let processes = here.flat_map(|service| service.processes(&[]));
    native::start(kind, &processes.map(|process| process.id.pid).collect::<Vec<u32>>())
}

/// Has agents end: their results, by service.
fn disarm(
    services: &[ServiceHandle],
    armings: Vec<Option<Arming>>,
    stopped: &dyn Fn() -> bool,
) -> Vec<Vec<Outcome>> {
    let disarm = |(service, arming): (&ServiceHandle, Option<Arming>)| {
        let results = service.agent().zip(arming).map(|(host, arming)| host.disarm(arming, stopped));
        results.unwrap_or_default()
    };
    services.iter().zip(armings).map(disarm).collect()
}

/// The folder of a round's profiles.
struct Folder {
    /// Relative to the record.
    inside: String,
    path: PathBuf,
}

impl Folder {
    /// A file in it, as the record names it.
    fn named(&self, file: &Path) -> String {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        format!("{}/{name}", self.inside)
    }
}

/// What agents are asked for; `None` where it is not theirs.
fn wanted_of(kind: CaptureKind) -> Option<Wanted> {
    match kind {
        CaptureKind::Plain | CaptureKind::Native => None,
        CaptureKind::Counters => Some(Wanted::Counters),
        CaptureKind::Cpu => Some(Wanted::Cpu { interval_us: CPU_INTERVAL_US }),
        CaptureKind::Heap => Some(Wanted::Heap),
    }
}

/// `VARIANT-SERVICE-PID.cpuprofile`; of a worker thread with its number behind that of the process.
fn profile_name(variant: &str, service: &str, agent: &Agent, kind: CaptureKind) -> String {
    let thread = if agent.thread == 0 { String::new() } else { format!("-{}", agent.thread) };
    let ending = if kind == CaptureKind::Heap { "heapprofile" } else { "cpuprofile" };
    format!("{variant}-{service}-{}{thread}.{ending}", agent.pid)
}
