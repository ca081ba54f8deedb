//! The real environment of a run: services by `services`, load by `load`, and the machine's own counters.
//!
//! It decides nothing: every choice comes through [`Environment`], and every value is returned as it was
//! read.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use ::machine::clock::spin_ns;
use ::machine::groups::quota_files;
use ::services::{Cache, Division, NetworkPair, Preparing, Running, UsageSample, Warden};
use load::{Address, DriverChoice};
use machine::process::cpu_ns as process_cpu_ns;
use machine::{MachineCounters, TcpCounters};
use plan::{Cpus, Plan, Preparation, Variant};
use record::{
    Capture, ContentSeen, EndReason, MachineUse, Prepared, ServiceStarted, ServiceUse, Slice,
    TrialEnded, TrialStarted,
};

use self::deployed::LoadedTarget;
use self::elsewhere::Elsewhere;
use self::keeping::{SampledUsage, uses};
use self::loading::{Loader, at_services, network};
use crate::deployed::DeployedServices;
use crate::destinations::Destinations;
use crate::environment::{
    CaptureSpec, Connected, Connecting, Environment, Failure, Result, SliceSpec, Start, Turn,
    elapsed,
};
use crate::stop::Stop;

mod capture;
mod deployed;
mod elsewhere;
mod keeping;
mod loading;
mod processes;
mod services;
mod witness;

pub use loading::check_load;

/// The loopback address of services.
const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The folder of logs in the folder of a record.
const LOGS: &str = "logs";

/// Starts real services and loads them.
pub struct RealEnvironment {
    plan: Arc<Plan>,
    /// Generators in separate processes. `None` if the load comes from this process.
    elsewhere: Option<Elsewhere>,
    warden: Warden,
    /// The folder of the record, which contains logs and profiles.
    record: PathBuf,
    stop: Stop,
    division: Division,
    /// Processors that services are confined to if no variant needs more. Empty if this is not to be decided.
    apart: Vec<usize>,
    /// Processors that Proofload and its services may use.
    cpus: Vec<usize>,
    /// Kernel files that report whether a CPU quota throttled the run.
    quota_files: Vec<PathBuf>,
    /// Placeholders that all services share: the folders of prepared data.
    values: BTreeMap<String, String>,
    began: Instant,
    living: Vec<LivingTrial>,
    /// Services that already run. Empty by default.
    pub deployed: DeployedServices,
    /// Permitted destinations of load. Only this machine by default.
    pub destinations: Destinations,
    /// The part of each service's environment that is recorded, by service.
    watches: BTreeMap<String, processes::ProcessWatch>,
    /// Why the processes of a variant behind a URL cannot be observed, since it was first ready.
    unseen: BTreeMap<usize, Option<String>>,
    /// Variants whose responses are not fetched again, because that took too long.
    slow: BTreeSet<usize>,
    /// Variants that were requested with `accept-encoding`.
    coding_requested: BTreeSet<usize>,
    /// The driver of the load engine.
    pub driver: DriverChoice,
}

/// A trial with running services.
struct LivingTrial {
    variant: usize,
    block: u32,
    services: Vec<Running>,
    /// Listen address of the entry service.
    address: Address,
    loader: Loader,
    /// Time since which its connections are idle. `None` if it has none.
    idle_since: Option<Instant>,
    /// Seed of the requests of the next generator.
    requests_seed: u64,
    /// The link between generator and services. `None` on loopback.
    network: Option<NetworkPair>,
    /// The service under load, if it was not started by the run.
    loaded: Option<LoadedTarget>,
    /// Contents of sampled responses so far: see [`TrialEnded::contents`].
    contents: BTreeMap<String, Vec<ContentSeen>>,
}

impl RealEnvironment {
    /// Creates the environment of a plan. The services' output goes to files in the folder `logs` of
    /// `record`. `generate` are the arguments that make this program a generator, here and on other machines.
    pub fn new(
        mut plan: Plan,
        warden: Warden,
        generate: &'static [&'static str],
        record: PathBuf,
        stop: Stop,
    ) -> RealEnvironment {
        let kept = plan.masked();
        // Logs are named after services and variants.
        for (variant, kept) in plan.variants.iter_mut().zip(&kept.variants) {
            variant.name.clone_from(&kept.name);
        }
        let plan = Arc::new(plan);
        let cpus = ::services::cpus_allowed();
        let (division, apart) = division(&plan, &cpus);
        let run = record
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let elsewhere = Elsewhere::of(&plan, run, generate, &stop);
        let names = plan
            .variants
            .iter()
            .flat_map(|variant| &variant.services)
            .map(|service| &service.name);
        let watches = names
            .map(|name| (name.clone(), processes::ProcessWatch::of(&kept, name)))
            .collect();
        RealEnvironment {
            plan,
            elsewhere,
            warden,
            record,
            stop,
            division,
            apart,
            cpus,
            quota_files: quota_files(),
            values: BTreeMap::new(),
            began: Instant::now(),
            living: Vec::new(),
            deployed: DeployedServices::default(),
            destinations: Destinations::default(),
            watches,
            unseen: BTreeMap::new(),
            slow: BTreeSet::new(),
            coding_requested: BTreeSet::new(),
            driver: DriverChoice::Auto,
        }
    }

    fn living_of(&mut self, variant: usize) -> Result<&mut LivingTrial> {
        living_of(&mut self.living, variant)
    }

    /// Expects a service on the address at which it was found, as the record does.
    fn pin(&mut self, started: &TrialStarted) {
        if started
            .services
            .iter()
            .any(|service| service.found.is_some() || !service.other_ports.is_empty())
        {
            let plan = Arc::make_mut(&mut self.plan);
            plan.variants[started.variant].pin(&started.services);
        }
    }
}

fn living_of(living: &mut [LivingTrial], variant: usize) -> Result<&mut LivingTrial> {
    let found = living.iter_mut().find(|living| living.variant == variant);
    found.ok_or_else(|| Failure::generator(format!("variant {variant} does not live")))
}

/// A hint on its own line below a message. Empty without one.
fn hinted(hint: Option<impl std::fmt::Display>) -> String {
    hint.map(|hint| format!("\n  hint: {hint}"))
        .unwrap_or_default()
}

impl Environment for RealEnvironment {
    fn now_s(&mut self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    fn is_stop_wanted(&mut self) -> bool {
        self.stop.is_requested()
    }

    fn connect(&mut self, watch: &mut dyn FnMut(Connecting<'_>)) -> Result<Connected> {
        self.elsewhere
            .as_mut()
            .map_or(Ok(Connected::default()), |elsewhere| {
                elsewhere.connect(watch)
            })
    }

    fn prepare(
        &mut self,
        step: &Preparation,
        watch: &mut dyn FnMut(Preparing),
    ) -> Result<Prepared> {
        // The plan of the record is masked; only this one has the real values.
        let step = self
            .plan
            .prepare
            .iter()
            .find(|real| real.name == step.name)
            .unwrap_or(step);
        let values = self.plan.secrets.values_of_step(step);
        let log = self
            .record
            .join(LOGS)
            .join(format!("prepare-{}.log", file_name(&step.name)));
        let cancelled = || self.stop.is_requested();
        let made = Cache::of_this_user()
            .and_then(|cache| cache.prepare((&self.warden, &values), step, &log, watch, &cancelled))
            .map_err(|error| self::services::failed_as(EndReason::PreparationFailed, error))?;
        // Services that are started later need the path.
        self.values.insert(
            format!("prepare.{}", step.name),
            made.path.display().to_string(),
        );
        let (name, key, seconds) = (step.name.clone(), made.key, made.took.as_secs_f64());
        Ok(Prepared {
            name,
            key,
            made: made.made,
            seconds,
            bytes: made.bytes,
        })
    }

    fn cores_apart(&self) -> usize {
        self.apart.len()
    }

    fn confine(&mut self) -> Result<Vec<usize>> {
        self.division = Division {
            services: self.apart.clone(),
            shared: false,
            ..self.division.clone()
        };
        for service in self.living.iter().flat_map(|living| &living.services) {
            self.confine_service(service)?;
        }
        Ok(self.apart.clone())
    }

    fn start(&mut self, start: Start) -> Result<TrialStarted> {
        let plan = Arc::clone(&self.plan);
        let variant = &plan.variants[start.variant];
        let began = Instant::now();
        let network = network(&variant.load)?;
        let reached = plan.generators.address.unwrap_or(LOOPBACK);
        let entry = network.as_ref().map_or(reached, NetworkPair::address);
        let loaded = self.loaded_of(start.variant, variant)?;
        let start_all = || match &loaded {
            Some(_) => Ok(Vec::new()),
            None => self.start_services(start, variant, entry),
        };
        let mut services = at_services(network.as_ref(), start_all)
            .map_err(|failure| self.out_of_patience(failure))?;
        let start_s = began.elapsed().as_secs_f64();
        // The entry is last, because everything it needs is started before it.
        let entry = services.last().map(|entry| Address::Tcp(entry.address));
        let address = loaded
            .as_ref()
            .map(|loaded| loaded.address.clone())
            .or(entry);
        let address = address
            .ok_or_else(|| Failure::service(format!("{}: no service to load", variant.name)))?;
        self.elsewhere
            .as_mut()
            .map_or(Ok(()), Elsewhere::compare_clocks)?;
        // Services that were started belong to the run, in any network.
        if loaded.is_some() {
            self.destinations
                .check(&address)
                .map_err(Failure::refused)?;
            self.await_answers(variant, &address)?;
        }
        let loader = self.loader(
            variant,
            &address,
            (None, start.requests_seed),
            network.as_ref(),
        )?;
        let kept = || {
            Ok(services
                .iter_mut()
                .map(|service| self.started(service))
                .collect())
        };
        let mut kept: Vec<ServiceStarted> = at_services(network.as_ref(), kept)?;
        let seen = loaded.as_ref().and_then(LoadedTarget::watched);
        kept.extend(seen.map(|(service, watched)| {
            processes::watched(service, watched, &address, &plan.secrets)
        }));
        // The responses of captured trials are known, and without a comparison they are not needed.
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
            cpus_shared: self.division.shared && !services.is_empty(),
            witnesses,
            deployed: loaded.as_ref().map(|loaded| loaded.kept.clone()),
        };
        self.living.push(LivingTrial {
            variant: start.variant,
            block: start.block,
            services,
            address,
            loader,
            idle_since: None,
            requests_seed: start.requests_seed.wrapping_add(1),
            network,
            loaded,
            contents: BTreeMap::new(),
        });
        self.pin(&started);
        Ok(started)
    }

    fn set_connections(&mut self, connections: u32) {
        let plan = Arc::make_mut(&mut self.plan);
        plan.variants
            .iter_mut()
            .for_each(|variant| variant.load.settings.connections = connections);
        self.renew_all();
    }

    fn connections_most(&mut self, variant: usize) -> Option<(u32, String)> {
        self.connections_bound(variant)
    }

    fn load(&mut self, variant: usize, wanted: SliceSpec) -> Result<Slice> {
        let spin_ns = spin_ns();
        self.renew_generator(variant, wanted.open)?;
        // Accepting connections is not part of the cost of a request, but TCP counters include these
        // connections.
        let tcp = self.tcp(&[variant]);
        self.open_connections(variant, wanted.until)?;
        let before = self.view(&[variant], Moment::Before).counted_from(tcp);
        let mut kept = self.loaded(variant, wanted)?;
        let after = self.view(&[variant], Moment::After);
        fill(std::slice::from_mut(&mut kept), &before, &after, spin_ns);
        // The services of all variants except the loaded one.
        let idle = uses(&before.services, &after.services, |of| {
            of.variant != variant
        });
        kept.machine.idle_trials_cpu_ns = cpu_ns(&idle);
        Ok(kept)
    }

    fn take_turns(&mut self, order: &[usize], turn: Turn) -> Result<Vec<Slice>> {
        let spin_ns = spin_ns();
        let tcp = self.tcp(order);
        for variant in model::distinct(order.iter().copied()) {
            self.renew_generator(variant, None)?;
            self.open_connections(variant, elapsed(turn.seconds))?;
        }
        let before = self.view(order, Moment::Before).counted_from(tcp);
        let mut slices: Vec<Slice> = Vec::new();
        for (number, &variant) in order.iter().enumerate() {
            self.renew_generator(variant, None)?;
            self.open_connections(variant, elapsed(turn.seconds))?;
            let lead_ns = turn.lead_ns(number);
            let seconds = turn.seconds + lead_ns as f64 / 1e9;
            let wanted = SliceSpec {
                kind: turn.kind,
                until: elapsed(seconds),
                open: None,
            };
            let mut part = self.loaded(variant, wanted)?;
            part.counts.skip_lead(lead_ns);
            match slices.iter_mut().find(|slice| slice.variant == variant) {
                Some(slice) => slice.absorb(part),
                None => slices.push(part),
            }
        }
        let after = self.view(order, Moment::After);
        fill(&mut slices, &before, &after, spin_ns);
        Ok(slices)
    }

    fn capture(&mut self, variant: usize, wanted: CaptureSpec) -> Result<Capture> {
        self.captured(variant, wanted)
    }

    fn stop(&mut self, variant: usize) -> Option<TrialEnded> {
        let index = self
            .living
            .iter()
            .position(|living| living.variant == variant)?;
        let living = self.living.remove(index);
        Some(self.stopped(living))
    }
}

/// The processors of generators and services, and those that services are confined to if no variant needs
/// more. All generators on this machine share the processors that one would get. Without generators here,
/// services get all processors.
fn division(plan: &Plan, cpus: &[usize]) -> (Division, Vec<usize>) {
    // A measurement of a running service leaves the division of processors to the kernel, as other load
    // generators do.
    let left_open = plan.measure.is_some() && plan.loads_running();
    if left_open || plan.generators.local == 0 {
        let services = if left_open { Vec::new() } else { cpus.to_vec() };
        return (
            Division {
                generator: Vec::new(),
                services,
                shared: false,
            },
            Vec::new(),
        );
    }
    let threads = plan
        .variants
        .iter()
        .filter_map(|variant| variant.load.settings.threads)
        .max()
        .unwrap_or(1);
    let asked =
        usize::try_from(threads.saturating_mul(plan.generators.local)).unwrap_or(usize::MAX);
    let apart = ::services::divide(cpus, asked, ::services::siblings);
    let shared = Division {
        generator: apart.generator.clone(),
        services: cpus.to_vec(),
        shared: true,
    };
    match plan.design.cpus {
        Cpus::Separate => (apart, Vec::new()),
        Cpus::Auto if !apart.shared && plan.measure.is_none() => (shared, apart.services),
        Cpus::Auto | Cpus::Shared => (shared, Vec::new()),
    }
}

/// A name with only the characters that are safe in a file name.
fn file_name(name: &str) -> String {
    let words = name
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}

/// A file name for a variant. It is unique, because two concurrent variants would write into the same log.
fn file_name_of(variants: &[Variant], index: usize) -> String {
    let name = file_name(&variants[index].name);
    let is_taken = variants[..index]
        .iter()
        .any(|other| file_name(&other.name) == name);
    if is_taken {
        format!("{name}.{index}")
    } else {
        name
    }
}

// Counters that are read immediately before and after a window of load, and the difference for a slice.
//
// Nothing here runs during a window or between two turns.

/// Time of a reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// Immediately before the load.
    Before,
    /// Immediately after the load.
    After,
}

/// Counters of services and machine at one time.
struct View {
    services: Vec<SampledUsage>,
    /// TCP counters of each loaded variant, in the network of its entry.
    tcp: BTreeMap<usize, TcpCounters>,
    /// `None` if no part of the run is on this machine.
    machine: Option<MachineCounters>,
}

impl View {
    /// The same counters with earlier TCP counters.
    fn counted_from(mut self, tcp: BTreeMap<usize, TcpCounters>) -> View {
        self.tcp.extend(tcp);
        self
    }
}

impl RealEnvironment {
    /// Reads the counters immediately before or after the load of these variants. The machine's counters are
    /// read closest to the load: last before it, and first after it. They then contain little of the cost of
    /// reading.
    fn view(&mut self, loaded: &[usize], moment: Moment) -> View {
        let after = (moment == Moment::After).then(|| (self.look(), self.tcp(loaded)));
        let services = self.living.iter_mut().flat_map(sampled).collect();
        let (machine, tcp) = after.unwrap_or_else(|| {
            let tcp = self.tcp(loaded);
            (self.look(), tcp)
        });
        View {
            services,
            tcp,
            machine,
        }
    }

    fn look(&self) -> Option<MachineCounters> {
        let services = || self.living.iter().flat_map(|living| &living.services);
        if self.plan.generators.local == 0 && services().next().is_none() {
            return None;
        }
        let generators = || self.elsewhere.iter().flat_map(Elsewhere::processes);
        let helpers_ns = || {
            services().map(Running::warden_cpu_ns).sum::<u64>()
                + generators().filter_map(process_cpu_ns).sum::<u64>()
        };
        Some(MachineCounters::now(
            &self.cpus,
            &self.quota_files,
            helpers_ns,
        ))
    }

    /// Loopback is one network for all trials. A link belongs to one trial.
    fn tcp(&self, loaded: &[usize]) -> BTreeMap<usize, TcpCounters> {
        let here = TcpCounters::read();
        let counted = |living: &LivingTrial| {
            let there = || at_services(living.network.as_ref(), || Ok(TcpCounters::read()));
            if living.network.is_none() {
                here
            } else {
                there().ok().flatten()
            }
        };
        let living = self
            .living
            .iter()
            .filter(|living| loaded.contains(&living.variant));
        // Running services are not part of this.
        let living = living.filter(|living| living.loaded.is_none());
        living
            .filter_map(|living| Some((living.variant, counted(living)?)))
            .collect()
    }
}

/// Resources used so far by the services of a trial: started services, or a running one that can be observed.
fn sampled(living: &mut LivingTrial) -> Vec<SampledUsage> {
    let variant = living.variant;
    let of = |(service, sample): (&str, UsageSample)| SampledUsage {
        variant,
        service: service.to_owned(),
        sample,
    };
    let running = living
        .loaded
        .as_mut()
        .and_then(LoadedTarget::sampled)
        .map(of);
    let started = living.services.iter_mut().map(|service| {
        let sample = service.sample();
        of((&service.name, sample))
    });
    started.chain(running).collect()
}

/// Fills in the resources that services and machine used between two readings, during which a slice was
/// measured alone or in turns with others, and the contents of sampled responses.
fn fill(slices: &mut [Slice], before: &View, after: &View, spin_ns: Option<u64>) {
    let used_ns = cpu_ns(&uses(&before.services, &after.services, |_| true));
    let looks = before.machine.as_ref().zip(after.machine.as_ref());
    let machine = looks
        .map(|(before, after)| before.until(after, used_ns))
        .unwrap_or_default();
    let spin_ns = spin_ns.filter(|_| looks.is_some());
    for slice in slices {
        slice.counts.presume_failures();
        slice.services = uses(&before.services, &after.services, |of| {
            of.variant == slice.variant
        });
        let tcp = before
            .tcp
            .get(&slice.variant)
            .zip(after.tcp.get(&slice.variant));
        let tcp = tcp.map(|(before, after)| before.until(after));
        slice.machine = MachineUse {
            spin_ns,
            tcp,
            ..machine.clone()
        };
    }
}

fn cpu_ns(uses: &[ServiceUse]) -> u64 {
    uses.iter().map(|used| used.cpu_ns).sum()
}

#[cfg(test)]
mod tests;
