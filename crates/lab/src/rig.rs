//! The real world behind the dispatcher: services by `target`, load by `load`, the machine's own counters.
//!
//! Decides nothing; every choice comes in through [`World`] and every figure goes out as it was read.

mod capture;
mod keeping;
mod machine;
mod network;
mod preparing;
mod processes;
mod requests;
mod services;
mod watching;
mod witness;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use load::{Address, Arrivals, Contract, Generator, LoadSpec, Process, Rate, Until};
use plan::{Cpus, Plan, Preparation, Variant};
use record::{Capture, Prepared, Slice, SliceKind, TrialEnded, TrialStarted};
use target::{Attended, Division, Network, Preparing, Warden};

use self::keeping::{Place, kept};
use self::machine::spin;
pub use self::machine::spin::time_ns as spin_ns;
use self::requests::requests;
use self::services::check_alive;
use self::watching::{fill, idle_cpu_ns};
use crate::attendants::Attendants;
use crate::stop::Stop;
use crate::world::{CaptureSpec, Failure, OpenSpec, SliceSpec, Start, Turn, World};

/// The address on which services are expected.
const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The folder of logs in that of a record.
const LOGS: &str = "logs";

/// Connections that were idle for so long are opened anew before a window. Many servers close such (gunicorn after 2 s, Node.js after
/// 5 s), and a request that is sent just then is lost: by our pause, and not by the service.
const IDLE_MAX: Duration = Duration::from_secs(1);

/// Starts and loads real services, on this machine and on others.
pub struct Rig {
    plan: Plan,
    warden: Warden,
    /// The record's folder, in which logs and profiles have theirs.
    record: PathBuf,
    stop: Stop,
    division: Division,
    /// CPUs that Proofload, and so its services, may use.
    cpus: Vec<usize>,
    /// Where the kernel tells whether a quota held any of them back.
    quota_files: Vec<PathBuf>,
    /// Placeholders that all services share: the folders of prepared data.
    values: BTreeMap<String, String>,
    began: Instant,
    living: Vec<Living>,
    /// The machines that services run on beside this one.
    attendants: Attendants,
    /// By service: what is kept of the environments of its processes.
    watches: BTreeMap<String, processes::Watch>,
    /// Variants whose responses are not looked at again, because that took long.
    slow: BTreeSet<usize>,
}

/// A trial whose services run.
struct Living {
    variant: usize,
    block: u32,
    services: Vec<Attended>,
    /// Where the entry listens.
    address: SocketAddr,
    generator: Generator,
    /// Since when the generator's connections have been idle; `None` while it has none.
    idle_since: Option<Instant>,
    /// Seed of the requests that the next generator draws.
    requests_seed: u64,
    /// What lies between the two, if it is not loopback.
    network: Option<Network>,
}

impl Rig {
    /// A rig for a plan; the services' output goes to files in the folder `logs` of the `record`'s.
    pub fn new(plan: Plan, warden: Warden, record: PathBuf, stop: Stop) -> Rig {
        let threads = plan.variants.iter().filter_map(|variant| variant.load.threads).max();
        let threads = threads.and_then(|threads| usize::try_from(threads).ok());
        let cpus = target::cpus_allowed();
        let apart = target::divide(&cpus, threads, target::siblings);
        let division = match plan.design.cpus {
            Cpus::Separate => apart,
            Cpus::Shared => apart.shared(&cpus),
        };
        let names = plan.variants.iter().flat_map(|variant| &variant.services).map(|service| &service.name);
        let watches = names.map(|name| (name.clone(), processes::Watch::of(&plan, name))).collect();
        let (values, quota_files, slow) = (BTreeMap::new(), target::quota_files(&[]), BTreeSet::new());
        let (began, living, attendants) = (Instant::now(), Vec::new(), Attendants::default());
        Rig {
            plan,
            warden,
            record,
            stop,
            division,
            cpus,
            quota_files,
            values,
            began,
            living,
            attendants,
            watches,
            slow,
        }
    }

    /// The same with the machines that the plan's services run on beside this one.
    #[must_use]
    pub fn with(self, attendants: Attendants) -> Rig {
        Rig { attendants, ..self }
    }

    fn generator(
        &self,
        variant: &Variant,
        address: SocketAddr,
        open: Option<OpenSpec>,
        seed: u64,
    ) -> Result<Generator, Failure> {
        let cpus = self.division.generator.clone();
        let load = &variant.load;
        let threads = load.threads.unwrap_or(u32::try_from(cpus.len()).unwrap_or(1));
        let spec = LoadSpec {
            connections: load.connections,
            threads: threads.clamp(1, load.connections),
            cpus,
            timeout: load.timeout,
            // At a rate each slice has a seed of its own, or all would begin with the same requests.
            seed: open.map_or(seed, |open| open.seed),
            arrivals: open.map_or(Arrivals::Closed, arrivals),
            connect_timeout: network::connect_timeout(load),
            contract: Contract {
                status: variant.expect.status.clone(),
                headers: variant.expect.headers.clone().into_iter().collect(),
                body_bytes: variant.expect.body_bytes,
                content: None,
            },
            ..LoadSpec::new(Address::Tcp(address), requests(load, &address.to_string()))
        };
        Generator::start(spec).map_err(|error| Failure::Generator(error.to_string()))
    }
}

impl World for Rig {
    fn now_s(&mut self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    fn is_pause_wanted(&mut self) -> bool {
        self.stop.is_paused() && !self.stop.is_requested()
    }

    fn wait_for_user(&mut self) -> Result<(), Failure> {
        self.stop.wait_while_paused();
        if self.stop.is_requested() { Err(Failure::Interrupted) } else { Ok(()) }
    }

    fn prepare(&mut self, step: &Preparation, watch: &mut dyn FnMut(Preparing)) -> Result<Prepared, Failure> {
        self.make_data(step, watch)
    }

    fn start(&mut self, start: Start) -> Result<TrialStarted, Failure> {
        let variant = &self.plan.variants[start.variant];
        let began = Instant::now();
        let network = network::make(&variant.load, &self.division.generator)?;
        let entry = network.as_ref().map_or(LOOPBACK, Network::address);
        let start_all = || self.start_services(start, variant, entry);
        let mut services = network::at_services(network.as_ref(), start_all)?;
        let start_s = began.elapsed().as_secs_f64();
        // The entry is last, because everything it needs is started before it.
        let entry = services.last().map(Attended::address);
        let address =
            entry.ok_or_else(|| Failure::Service(format!("{}: no service to load", variant.name)))?;
        let generator = || self.generator(variant, address, None, start.requests_seed);
        let generator = network::at_client(network.as_ref(), generator)?;
        let kept = || services.iter_mut().map(|service| self.started(service)).collect();
        let kept = network::at_services(network.as_ref(), kept)?;
        // Of a trial that is captured they are known.
        let seen = || self.witnesses(start.variant, address, network.as_ref());
        let witnesses = start.capture.map_or_else(seen, |_| Ok(Vec::new()))?;
        let started = TrialStarted {
            block: start.block,
            variant: start.variant,
            start_s,
            padding_bytes: start.padding_bytes,
            services: kept,
            generator_cpus: self.division.generator.clone(),
            cpus_shared: self.division.shared && services.iter().any(|service| service.here().is_some()),
            witnesses,
        };
        let (block, variant) = (start.block, start.variant);
        let (idle_since, requests_seed) = (None, start.requests_seed.wrapping_add(1));
        self.living.push(Living {
            variant,
            block,
            services,
            address,
            generator,
            idle_since,
            requests_seed,
            network,
        });
        self.find_quotas();
        Ok(started)
    }

    fn load(&mut self, variant: usize, wanted: SliceSpec) -> Result<Slice, Failure> {
        let spin_ns = spin::time_ns();
        self.renew_generator(variant, wanted.open)?;
        let before = self.view_before(&[variant])?;
        let mut kept = self.loaded(variant, wanted)?;
        let after = self.view_after(&[variant])?;
        fill(std::slice::from_mut(&mut kept), &before, &after, spin_ns);
        kept.machine.idle_trials_cpu_ns = idle_cpu_ns(&before, &after, variant);
        if wanted.kind != SliceKind::Measured {
            // Nobody asks which worker warmed up.
            kept.services.iter_mut().for_each(|service| service.cpu_by_process_ns.clear());
        }
        Ok(kept)
    }

    fn take_turns(&mut self, order: &[usize], turn: Turn) -> Result<Vec<Slice>, Failure> {
        let spin_ns = spin::time_ns();
        let before = self.view_before(order)?;
        let mut slices: Vec<Slice> = Vec::new();
        for (number, &variant) in order.iter().enumerate() {
            self.renew_generator(variant, None)?;
            let lead_ns = turn.lead_ns(number);
            let seconds = turn.seconds + lead_ns as f64 / 1e9;
            let mut part =
                self.loaded(variant, SliceSpec { kind: SliceKind::Measured, seconds, open: None })?;
            part.skip_lead(lead_ns);
            match slices.iter_mut().find(|slice| slice.variant == variant) {
                Some(slice) => slice.absorb(part),
                None => slices.push(part),
            }
        }
        let after = self.view_after(order)?;
        fill(&mut slices, &before, &after, spin_ns);
        Ok(slices)
    }

    fn capture(&mut self, variant: usize, wanted: CaptureSpec) -> Result<Capture, Failure> {
        self.captured(variant, wanted)
    }

    fn stop(&mut self, variant: usize) -> Option<TrialEnded> {
        let index = self.living.iter().position(|living| living.variant == variant)?;
        let living = self.living.remove(index);
        Some(self.stopped(living))
    }
}

impl Rig {
    /// One window of load, without what services and machine used meanwhile.
    fn loaded(&mut self, variant: usize, wanted: SliceSpec) -> Result<Slice, Failure> {
        let living = self.living.iter_mut().find(|living| living.variant == variant);
        let living = living.ok_or_else(|| Failure::Generator(format!("variant {variant} does not live")))?;
        self.stop.watch(living.generator.interrupt());
        let slice = living.generator.run(Until::Elapsed(Duration::from_secs_f64(wanted.seconds)));
        living.idle_since = Some(Instant::now());
        living.services.iter_mut().try_for_each(check_alive)?;
        if self.stop.is_requested() {
            return Err(Failure::Interrupted);
        }
        let connections = self.plan.variants[variant].load.connections;
        let open = wanted.open.map(|open| open.rate_per_s);
        let endpoint = self.plan.design.endpoint.as_ref().map(|endpoint| endpoint.name.clone());
        let place = Place { block: living.block, variant, kind: wanted.kind, connections, open, endpoint };
        Ok(kept(slice, place))
    }

    /// Gives a trial a generator for the window to come: of a closed loop the one it has, unless its connections were idle while other
    /// trials had their turn; of an open loop a new one, for at a low rate they are idle also within a slice. Those of a new one are
    /// opened before the window.
    fn renew_generator(&mut self, variant: usize, open: Option<OpenSpec>) -> Result<(), Failure> {
        let Some(index) = self.living.iter().position(|living| living.variant == variant) else {
            return Err(Failure::Generator(format!("variant {variant} does not live")));
        };
        let Living { address, network, idle_since, requests_seed, .. } = &self.living[index];
        if open.is_none() && idle_since.is_none_or(|since| since.elapsed() < IDLE_MAX) {
            return Ok(());
        }
        let renewed = network::at_client(network.as_ref(), || {
            self.generator(&self.plan.variants[variant], *address, open, *requests_seed)
        })?;
        let living = &mut self.living[index];
        (living.generator, living.idle_since) = (renewed, None);
        living.requests_seed = living.requests_seed.wrapping_add(1);
        Ok(())
    }
}

fn arrivals(open: OpenSpec) -> Arrivals {
    let process = match open.arrivals {
        plan::Arrivals::Constant => Process::Constant,
        plan::Arrivals::Poisson => Process::Poisson,
    };
    Arrivals::Open { rate: Rate::Constant(open.rate_per_s), process, seed: open.seed }
}

/// What is left of a variant's name in a file's name.
fn file_name(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}
