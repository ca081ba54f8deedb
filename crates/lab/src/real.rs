//! The real environment of a run: services by `services`, load by `load`, the machine's own counters.
//!
//! Decides nothing; every choice comes in through [`Environment`] and every figure goes out as it was read.

mod capture;
mod deployed;
mod elsewhere;
mod keeping;
mod loading;
mod network;
mod processes;
mod requests;
mod services;
#[cfg(test)]
mod tests;
mod watching;
mod witness;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use ::machine::clock::spin_ns;
use ::remote::services::ServiceHandle;
use ::services::{Cache, Division, Network, Preparing, Warden};
use load::{Address, DriverChoice};
use plan::{Cpus, Plan, Preparation};
use record::{Capture, Prepared, ServiceStarted, Slice, TrialEnded, TrialStarted};

use self::deployed::Loaded;
use self::elsewhere::Elsewhere;
use self::loading::{Loader, Wanted};
use self::watching::{fill, idle_cpu_ns};
use crate::deployed::DeployedServices;
use crate::environment::{
    CaptureSpec, Connected, Connecting, Environment, Failure, Result, SliceSpec, Start, Turn, elapsed,
};
use crate::remote_hosts::RemoteHosts;
use crate::stop::Stop;

/// The address on which services are expected.
const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The folder of logs in that of a record.
const LOGS: &str = "logs";

/// What this program is when it is started once more.
#[derive(Debug, Clone)]
pub struct Helpers {
    /// The guard of a service.
    pub warden: Warden,
    /// A generator, by the arguments that make it one: here and on other machines.
    pub generate: &'static [&'static str],
}

/// Starts real services, on this machine and on others, and loads them.
pub struct RealEnvironment {
    plan: Arc<Plan>,
    /// Generators that are processes of their own; `None` where load comes from this one.
    elsewhere: Option<Elsewhere>,
    warden: Warden,
    /// The record's folder, in which logs and profiles have theirs.
    record: PathBuf,
    stop: Stop,
    division: Division,
    /// CPUs that Proofload, and so its services, may use.
    cpus: Vec<usize>,
    /// Where the kernel tells whether a quota held any of them back.
    quota_files: Vec<PathBuf>,
    /// Placeholders that all services here share: the folders of prepared data.
    values: BTreeMap<String, String>,
    began: Instant,
    living: Vec<Living>,
    /// The machines that services run on beside this one.
    remote_hosts: RemoteHosts,
    /// What is loaded as it stands.
    deployed: DeployedServices,
    /// By service: what is kept of the environments of its processes.
    watches: BTreeMap<String, processes::Watch>,
    /// Variants behind URLs whose processes are not seen, once somebody looked.
    unseen: Option<BTreeMap<usize, String>>,
    /// Variants whose responses are not looked at again, because that took long.
    slow: BTreeSet<usize>,
    /// What moves the bytes of the load.
    driver: DriverChoice,
}

/// A trial whose services run.
struct Living {
    variant: usize,
    block: u32,
    services: Vec<ServiceHandle>,
    /// Where the entry listens.
    address: Address,
    loader: Loader,
    /// Since when its connections have been idle; `None` while it has none.
    idle_since: Option<Instant>,
    /// Seed of the requests that the next generator draws.
    requests_seed: u64,
    /// What lies between the two, if it is not loopback.
    network: Option<Network>,
    /// What it loads, where nothing was started.
    loaded: Option<Loaded>,
}

impl RealEnvironment {
    /// The environment of a plan; the services' output goes to files in the folder `logs` of the `record`'s.
    pub fn new(plan: Plan, helpers: Helpers, record: PathBuf, stop: Stop) -> RealEnvironment {
        let Helpers { warden, generate } = helpers;
        let plan = Arc::new(plan);
        let cpus = ::services::cpus_allowed();
        let division = division(&plan, &cpus);
        let run = record.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let elsewhere = Elsewhere::of(&plan, run, generate, &stop);
        let names = plan.variants.iter().flat_map(|variant| &variant.services).map(|service| &service.name);
        let kept = plan.masked();
        let watches = names.map(|name| (name.clone(), processes::Watch::of(&kept, name))).collect();
        RealEnvironment {
            plan,
            elsewhere,
            warden,
            record,
            stop,
            division,
            cpus,
            quota_files: ::machine::groups::quota_files(&[]),
            values: BTreeMap::new(),
            began: Instant::now(),
            living: Vec::new(),
            remote_hosts: RemoteHosts::default(),
            deployed: DeployedServices::default(),
            watches,
            unseen: None,
            slow: BTreeSet::new(),
            driver: DriverChoice::Auto,
        }
    }

    /// The same with a load whose bytes this moves.
    #[must_use]
    pub fn driven_by(self, driver: DriverChoice) -> RealEnvironment {
        RealEnvironment { driver, ..self }
    }

    /// The same with the machines that the plan's services run on beside this one.
    #[must_use]
    pub fn with(self, remote_hosts: RemoteHosts) -> RealEnvironment {
        RealEnvironment { remote_hosts, ..self }
    }

    /// The same with what the plan loads that runs already.
    #[must_use]
    pub fn loading(self, deployed: DeployedServices) -> RealEnvironment {
        RealEnvironment { deployed, ..self }
    }
}

impl RealEnvironment {
    fn living_of(&mut self, variant: usize) -> Result<&mut Living> {
        living_of(&mut self.living, variant)
    }

    /// A service that was found elsewhere is expected there from now on, as the record has it.
    fn pin(&mut self, started: &TrialStarted) {
        if started.services.iter().any(|service| service.found.is_some()) {
            let plan = Arc::make_mut(&mut self.plan);
            plan.variants[started.variant].pin(&started.services);
        }
    }
}

/// The living trial of a variant.
fn living_of(living: &mut [Living], variant: usize) -> Result<&mut Living> {
    let found = living.iter_mut().find(|living| living.variant == variant);
    found.ok_or_else(|| Failure::Generator(format!("variant {variant} does not live")))
}

/// A hint, as it stands below what went wrong.
fn hinted(hint: Option<impl std::fmt::Display>) -> String {
    hint.map(|hint| format!("\n  hint: {hint}")).unwrap_or_default()
}

impl Environment for RealEnvironment {
    fn now_s(&mut self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    fn is_pause_wanted(&mut self) -> bool {
        self.stop.is_paused() && !self.stop.is_requested()
    }

    fn is_stop_wanted(&mut self) -> bool {
        self.stop.is_requested()
    }

    fn wait_for_user(&mut self) -> Result<()> {
        self.stop.wait_while_paused();
        if self.stop.is_requested() { Err(Failure::Interrupted) } else { Ok(()) }
    }

    fn connect(&mut self, watch: &mut dyn FnMut(Connecting<'_>)) -> Result<Connected> {
        self.elsewhere.as_mut().map_or(Ok(Connected::default()), |elsewhere| elsewhere.connect(watch))
    }

    fn prepare(&mut self, step: &Preparation, watch: &mut dyn FnMut(Preparing)) -> Result<Prepared> {
        // What is to be done is known to the plan that was not masked.
        let step = self.plan.prepare.iter().find(|real| real.name == step.name).unwrap_or(step);
        let values =
            self.plan.secrets.asked_by(step.command.iter().chain(step.env.values()).map(String::as_str));
        let log = self.record.join(LOGS).join(format!("prepare-{}.log", file_name(&step.name)));
        let cancelled = || self.stop.is_requested();
        let made = Cache::of_this_user()
            .and_then(|cache| cache.prepare((&self.warden, &values), step, &log, watch, &cancelled))
            .map_err(|error| self::services::failed_as(Failure::Preparation, error))?;
        // Kept in mind for the services that will be started.
        self.values.extend(::services::prepared_placeholders([(step.name.as_str(), made.path.as_path())]));
        let (name, key, seconds) = (step.name.clone(), made.key, made.took.as_secs_f64());
        Ok(Prepared { name, key, made: made.made, seconds, bytes: made.bytes })
    }

    fn start(&mut self, start: Start) -> Result<TrialStarted> {
        let plan = Arc::clone(&self.plan);
        let variant = &plan.variants[start.variant];
        let began = Instant::now();
        let network = network::make(&variant.load, &self.division.generator)?;
        let reached = plan.generators.address.unwrap_or(LOOPBACK);
        let entry = network.as_ref().map_or(reached, Network::address);
        let loaded = self.loaded_of(start.variant, variant)?;
        let start_all = || match &loaded {
            Some(_) => Ok(Vec::new()),
            None => self.start_services(start, variant, entry),
        };
        let mut services = network::at_services(network.as_ref(), start_all)?;
        let start_s = began.elapsed().as_secs_f64();
        // The entry is last, because everything it needs is started before it.
        let entry = services.last().map(|entry| Address::Tcp(entry.address()));
        let address = loaded.as_ref().map(Loaded::address).or(entry);
        let address =
            address.ok_or_else(|| Failure::Service(format!("{}: no service to load", variant.name)))?;
        self.compare_clocks()?;
        if loaded.is_some() {
            self.await_answers(variant, &address)?;
        }
        let wanted =
            Wanted { plan: &plan, variant, address: &address, open: None, seed: start.requests_seed };
        let loader = self.loader(&wanted, network.as_ref())?;
        let kept = || services.iter_mut().map(|service| self.started(service)).collect();
        let mut kept: Vec<ServiceStarted> = network::at_services(network.as_ref(), kept)?;
        let seen = loaded.as_ref().and_then(Loaded::watched);
        kept.extend(
            seen.map(|(service, watched)| processes::watched(service, watched, &address, &plan.secrets)),
        );
        // Of a trial that is captured they are known, and where nothing is compared nobody asks.
        let witnesses = match start.capture.is_none() && plan.measure.is_none() {
            true => self.witnesses(start.variant, &address, network.as_ref())?,
            false => Vec::new(),
        };
        let started = TrialStarted {
            block: start.block,
            variant: start.variant,
            start_s,
            padding_bytes: start.padding_bytes,
            services: kept,
            generator_cpus: self.division.generator.clone(),
            cpus_shared: self.division.shared && services.iter().any(|service| service.here().is_some()),
            witnesses,
            deployed: loaded.as_ref().map(Loaded::kept),
        };
        self.living.push(Living {
            variant: start.variant,
            block: start.block,
            services,
            address,
            loader,
            idle_since: None,
            requests_seed: start.requests_seed.wrapping_add(1),
            network,
            loaded,
        });
        self.find_quotas();
        self.pin(&started);
        Ok(started)
    }

    fn load(&mut self, variant: usize, wanted: SliceSpec) -> Result<Slice> {
        let spin_ns = spin_ns();
        self.renew_generator(variant, wanted.open)?;
        let before = self.view_before(&[variant])?;
        let mut kept = self.loaded(variant, wanted)?;
        let after = self.view_after(&[variant])?;
        fill(std::slice::from_mut(&mut kept), &before, &after, spin_ns);
        kept.machine.idle_trials_cpu_ns = idle_cpu_ns(&before, &after, variant);
        Ok(kept)
    }

    fn take_turns(&mut self, order: &[usize], turn: Turn) -> Result<Vec<Slice>> {
        let spin_ns = spin_ns();
        let before = self.view_before(order)?;
        let mut slices: Vec<Slice> = Vec::new();
        for (number, &variant) in order.iter().enumerate() {
            self.renew_generator(variant, None)?;
            let lead_ns = turn.lead_ns(number);
            let seconds = turn.seconds + lead_ns as f64 / 1e9;
            let wanted = SliceSpec { kind: turn.kind, until: elapsed(seconds), open: None };
            let mut part = self.loaded(variant, wanted)?;
            part.counts.skip_lead(lead_ns);
            match slices.iter_mut().find(|slice| slice.variant == variant) {
                Some(slice) => slice.absorb(part),
                None => slices.push(part),
            }
        }
        let after = self.view_after(order)?;
        fill(&mut slices, &before, &after, spin_ns);
        Ok(slices)
    }

    fn capture(&mut self, variant: usize, wanted: CaptureSpec) -> Result<Capture> {
        self.captured(variant, wanted)
    }

    fn stop(&mut self, variant: usize) -> Option<TrialEnded> {
        let index = self.living.iter().position(|living| living.variant == variant)?;
        let living = self.living.remove(index);
        Some(self.stopped(living))
    }
}

/// Who gets which processors: all generators on this machine together those that one would get; where there are none the services all.
fn division(plan: &Plan, cpus: &[usize]) -> Division {
    // What only measures something that runs already leaves the division of processors to the kernel, as other load generators do.
    let left_open = plan.measure.is_some() && plan.loads_running();
    if left_open || plan.generators.local == 0 {
        let services = if left_open { Vec::new() } else { cpus.to_vec() };
        let (generator, idle) = (Vec::new(), Vec::new());
        return Division { generator, services, idle, shared: false, core_shared: false };
    }
    let threads = plan.variants.iter().filter_map(|variant| variant.load.threads).max().unwrap_or(1);
    let asked = usize::try_from(threads.saturating_mul(plan.generators.local)).unwrap_or(usize::MAX);
    let apart = ::services::divide(cpus, Some(asked), ::services::siblings);
    match plan.design.cpus {
        Cpus::Separate => apart,
        Cpus::Shared => apart.shared(cpus),
    }
}

/// What is left of a variant's name in a file's name.
fn file_name(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}
