//! What loads a trial: threads of this process, or generators that are processes of their own. Both do the same to a service.

use std::time::{Duration, Instant};

use load::{Address, Arrivals, Generator, LoadSpec, Until};
use model::{AskedOpen, FailureKind};
use plan::{Plan, Variant};
use record::{Counts, GeneratorPart, MachineUse, Slice};
use services::Network;

use super::elsewhere::Elsewhere;
use super::keeping::kept;
use super::requests::{requests, tls};
use super::services::check_alive;
use super::{RealEnvironment, living_of, network};
use crate::environment::{Failure, Result, SliceSpec};
use crate::stop::Stop;

/// Connections that were idle for so long are opened anew before a window. Many servers close such (gunicorn after 2 s, Node.js after
/// 5 s), and a request that is sent just then is lost: by our pause, and not by the service.
const IDLE_MAX: Duration = Duration::from_secs(1);

/// What loads a trial.
pub(super) enum Loader {
    /// Threads of this process.
    Here(Generator),
    /// The fleet, which has one load at a time.
    Elsewhere,
}

/// What a trial is to be loaded with.
pub(super) struct Wanted<'a> {
    pub plan: &'a Plan,
    pub variant: &'a Variant,
    /// Where the entry listens.
    pub address: &'a Address,
    pub open: Option<AskedOpen>,
    /// Of which request is sent when, in closed loop.
    pub seed: u64,
}

impl RealEnvironment {
    /// Gets ready what loads a trial from now on. Connections are opened by its first window.
    pub(super) fn loader(&mut self, wanted: &Wanted<'_>, network: Option<&Network>) -> Result<Loader> {
        let spec = LoadSpec { driver: self.driver, ..spec(wanted, &self.division.generator)? };
        self.begun(spec, wanted.variant.load.threads, network)
    }

    /// Whatever generators there are, with this to do from now on, on so many threads of each if that is said.
    pub(super) fn begun(
        &mut self,
        spec: LoadSpec,
        threads: Option<u32>,
        network: Option<&Network>,
    ) -> Result<Loader> {
        match &mut self.elsewhere {
            Some(elsewhere) => {
                elsewhere.give(&spec, threads, &self.division.generator).map(|()| Loader::Elsewhere)
            }
            None => {
                let start = || Generator::start(spec).map_err(|error| Failure::Generator(error.to_string()));
                network::at_client(network, start).map(Loader::Here)
            }
        }
    }

    /// Gets generators elsewhere ready for a trial to come.
    pub(super) fn compare_clocks(&mut self) -> Result<()> {
        self.elsewhere.as_mut().map_or(Ok(()), |elsewhere| elsewhere.compare_clocks())
    }

    /// Has the connections of a trial closed, so that a service that waits for that can end at once.
    pub(super) fn unload(&mut self, loader: Loader) {
        match (loader, &mut self.elsewhere) {
            (Loader::Here(generator), _) => drop(generator),
            (Loader::Elsewhere, elsewhere) => elsewhere.iter_mut().for_each(|elsewhere| elsewhere.rest()),
        }
    }

    /// One window of load, without what services and machine used meanwhile.
    pub(super) fn loaded(&mut self, variant: usize, wanted: SliceSpec) -> Result<Slice> {
        let living = living_of(&mut self.living, variant)?;
        let made = ran(&mut living.loader, &mut self.elsewhere, &self.stop, wanted.until);
        living.idle_since = Some(Instant::now());
        living.services.iter_mut().try_for_each(check_alive)?;
        // Where nothing is compared what there is counts, and is kept with all its details.
        let alone = self.plan.measure.is_some();
        if self.stop.is_requested() && !alone {
            return Err(Failure::Interrupted);
        }
        let (mut counts, generators) = made?;
        for failure in &mut counts.contract_failures {
            if let FailureKind::Header(name) = &failure.kind {
                failure.example = plan::masked(Some(name), &failure.example);
            }
        }
        let endpoint = self.plan.design.endpoint.as_ref().map(|endpoint| endpoint.name.as_str());
        Ok(Slice {
            block: living.block,
            variant,
            kind: wanted.kind,
            turns: 1,
            asked: None,
            connections: self.plan.variants[variant].load.connections,
            waits: false,
            counts: if alone { counts } else { kept(counts, endpoint) },
            generators,
            services: Vec::new(),
            machine: MachineUse::default(),
        })
    }

    /// One window of a load that belongs to no living trial.
    pub(super) fn run(&mut self, loader: &mut Loader, until: Until) -> Result<(Counts, Vec<GeneratorPart>)> {
        ran(loader, &mut self.elsewhere, &self.stop, until)
    }

    /// Gives a trial a generator for the window to come: of a closed loop the one it has, unless its connections were idle while other
    /// trials had their turn; of an open loop a new one, for at a low rate they are idle also within a slice. Those of a new one are
    /// opened before the window.
    pub(super) fn renew_generator(&mut self, variant: usize, open: Option<AskedOpen>) -> Result<()> {
        let living = self.living_of(variant)?;
        if open.is_none() && living.idle_since.is_none_or(|since| since.elapsed() < IDLE_MAX) {
            return Ok(());
        }
        let (address, seed, network) = (living.address.clone(), living.requests_seed, living.network.take());
        let plan = self.plan.clone();
        let wanted = Wanted { plan: &plan, variant: &plan.variants[variant], address: &address, open, seed };
        let renewed = self.loader(&wanted, network.as_ref());
        let living = self.living_of(variant)?;
        living.network = network;
        (living.loader, living.idle_since) = (renewed?, None);
        living.requests_seed = seed.wrapping_add(1);
        Ok(())
    }
}

fn ran(
    loader: &mut Loader,
    elsewhere: &mut Option<Elsewhere>,
    stop: &Stop,
    until: Until,
) -> Result<(Counts, Vec<GeneratorPart>)> {
    match (loader, elsewhere) {
        (Loader::Here(generator), _) => {
            stop.watch(generator.interrupt(), generator.progress());
            Ok((generator.run(until), Vec::new()))
        }
        (Loader::Elsewhere, Some(elsewhere)) => elsewhere.run(until),
        (Loader::Elsewhere, None) => Err(Failure::Generator("the generators are not connected".into())),
    }
}

/// The whole load, as threads of this process would do it on these processors.
fn spec(wanted: &Wanted<'_>, cpus: &[usize]) -> Result<LoadSpec> {
    let Wanted { plan, variant, address, open, seed } = wanted;
    let load = &variant.load;
    let threads = load.threads.unwrap_or(u32::try_from(cpus.len()).unwrap_or(1));
    Ok(LoadSpec {
        sources: load.sources.clone(),
        tls: load.tls.as_ref().map(tls).transpose()?,
        protocol: load.protocol,
        keep_alive: load.keep_alive,
        sample_every: load.sample_every,
        connections: load.connections,
        threads: threads.clamp(1, load.connections),
        cpus: cpus.to_vec(),
        timeout: load.timeout,
        // At a rate each slice has a seed of its own, or all would begin with the same requests.
        seed: open.map_or(*seed, |open| open.seed),
        arrivals: open.map_or(Arrivals::Closed, arrivals),
        connect_timeout: network::connect_timeout(load, &plan.generators),
        contract: variant.expect.clone(),
        ..LoadSpec::new((*address).clone(), requests(load, &host(variant, address), &plan.secrets)?)
    })
}

/// What the `Host` field names: of a URL that, otherwise the address.
pub(super) fn host(variant: &Variant, address: &Address) -> String {
    let url = variant.entry_service().and_then(plan::Service::url);
    url.map_or_else(|| address.to_string(), plan::Url::authority)
}

fn arrivals(AskedOpen { rate, process, seed, .. }: AskedOpen) -> Arrivals {
    Arrivals::Open { rate, process, seed }
}
