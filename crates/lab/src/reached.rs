//! What a plan needs that no trial starts: machines that its services run on beside this one, and Services of clusters that run already. Each
//! is reached once, for the whole run, before anything is started.
//!
//! It speaks with the agents on those machines, and does not know how they are reached: the caller brings that. Of Services it finds and
//! refuses: what the pods behind them do during a run is seen trial by trial, and judged by the checks of the record.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use plan::{Plan, Variant};
use record::Environment;
use remote::kubernetes::Deployed;
use remote::services::RemoteHost;
use remote::{Blame, Channel, Error};

/// Stdin and stdout of a `proofload remote-agent`, and the address at which other machines find it, where [`Plan::wants_address_of`] says that
/// it is wanted.
pub type Reached = (Channel, Option<IpAddr>);

/// Every `proofload remote-agent` on another machine, by host; none by default. Dropping it ends what is left there.
#[derive(Debug, Default)]
pub struct RemoteHosts {
    machines: BTreeMap<String, Machine>,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Machine {
    pub host: Arc<RemoteHost>,
    /// Where services listen that are asked for from other machines.
    pub address: Option<IpAddr>,
}

impl RemoteHosts {
    /// Reaches every host of a plan, and has it look whether its services could be started there. `reach` gives the agent of one.
    ///
    /// # Errors
    /// The first host that cannot be had, and why.
    pub fn open(
        plan: &Plan,
        reach: &mut dyn FnMut(&str) -> Result<Reached, Error>,
    ) -> Result<RemoteHosts, Error> {
        let mut machines = BTreeMap::new();
        for (host, services) in plan.hosts() {
            let (channel, address) = reach(host)?;
            let channel = Channel { name: host.to_owned(), ..channel };
            let there = Arc::new(RemoteHost::open(channel, &services)?);
            machines.insert(host.to_owned(), Machine { host: there, address });
        }
        Ok(RemoteHosts { machines })
    }

    /// What each is, for the record.
    pub fn environments(&self) -> BTreeMap<String, Environment> {
        let about = |machine: &Machine| serde_json::from_value(machine.host.begun.about.clone());
        // One that describes itself in other words is the same machine to itself, at least.
        let each = self.machines.iter();
        each.map(|(host, machine)| (host.clone(), about(machine).unwrap_or_default())).collect()
    }

    /// What killed runs had left on them and was ended now: host, command and number.
    pub fn ended(&self) -> Vec<(String, String)> {
        let of = |(host, machine): (&String, &Machine)| -> Vec<(String, String)> {
            machine.host.begun.ended.iter().map(|process| (host.clone(), process.clone())).collect()
        };
        self.machines.iter().flat_map(of).collect()
    }

    /// The machine of a host; `None` if it was not reached.
    pub(crate) fn at(&self, host: &str) -> Option<&Machine> {
        self.machines.get(host)
    }
}

// Services that run already.

/// How long a connection from this machine may take to open before an address elsewhere counts as out of reach.
pub(crate) const REACH_PATIENCE: Duration = Duration::from_secs(5);

/// All that a plan loads; none by default.
#[derive(Debug, Default)]
pub struct DeployedServices {
    found: Vec<Found>,
}

#[derive(Debug)]
struct Found {
    wanted: plan::Deployed,
    deployed: Arc<Deployed>,
    address: SocketAddr,
}

impl DeployedServices {
    /// Finds every one that a plan loads, and looks whether pods are behind it. Nothing is sent to it.
    ///
    /// # Errors
    /// The first that cannot be loaded, and why. What was asked for is to blame where two variants differ in their words alone.
    pub fn open(plan: &Plan) -> Result<DeployedServices, Error> {
        let mut all = DeployedServices::default();
        for wanted in plan.variants.iter().filter_map(Variant::deployed) {
            if all.of(wanted).is_none() {
                all.found.push(found(wanted)?);
            }
        }
        all.alike(plan).map_or(Ok(()), Err)?;
        Ok(all)
    }

    /// Connects to each once from this machine, if this machine sends load.
    ///
    /// # Errors
    /// The first that cannot be reached, and why.
    pub fn reach(&self, plan: &Plan) -> Result<(), Error> {
        self.found.iter().filter(|_| plan.generators.local > 0).try_for_each(reach)
    }

    /// What each is, for whoever is asked whether it may be loaded.
    pub(crate) fn described(&self) -> impl Iterator<Item = String> {
        self.found.iter().map(|found| format!("{} at {}", found.deployed.described(), found.address))
    }

    /// Where each was found.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.found.iter().map(|found| found.address)
    }

    /// What each is called, in the order of the plan.
    pub fn places(&self) -> impl Iterator<Item = String> {
        self.found.iter().map(|found| found.deployed.place())
    }

    /// The one that a variant asks for; `None` if it was not found yet.
    pub(crate) fn at(&self, wanted: &plan::Deployed) -> Option<&Arc<Deployed>> {
        self.of(wanted).map(|found| &found.deployed)
    }

    fn of(&self, wanted: &plan::Deployed) -> Option<&Found> {
        self.found.iter().find(|found| found.wanted == *wanted)
    }

    /// Variants that only seem to differ. The same in the same words is meant as a copy.
    fn alike(&self, plan: &Plan) -> Option<Error> {
        let loads = |variant: &Variant| {
            self.of(variant.deployed()?).map(|found| (found.deployed.place(), found.address))
        };
        let pairs = plan.variants.iter().enumerate();
        let mut pairs =
            pairs.flat_map(|(index, other)| plan.variants[..index].iter().map(move |one| (one, other)));
        let same = |(one, other): &(&Variant, &Variant)| {
            one.deployed() != other.deployed()
                && loads(one).is_some()
                && loads(one) == loads(other)
                && (&one.load, &one.expect) == (&other.load, &other.expect)
        };
        let (one, other) = pairs.find(same)?;
        let (place, address) = loads(one)?;
        let (one, other) = (&one.name, &other.name);
        let message = format!(
            "variants `{one}` and `{other}` are alike: both load {place} at {address}, with the same requests"
        );
        let hint = "they name one port of one Service in two ways; to compare a variant with itself there is `design.aa`";
        Some(Error::new(message).by(Blame::Request).help(hint))
    }
}

fn found(wanted: &plan::Deployed) -> Result<Found, Error> {
    let deployed = Deployed::find(wanted)?;
    let behind = deployed.look()?;
    deployed.refusal(&behind).map_or(Ok(()), Err)?;
    Ok(Found { wanted: wanted.clone(), deployed: Arc::new(deployed), address: behind.address })
}

fn reach(Found { deployed, address, .. }: &Found) -> Result<(), Error> {
    let Err(source) = TcpStream::connect_timeout(address, REACH_PATIENCE) else { return Ok(()) };
    let place = deployed.place();
    Err(Error::new(format!("{place}: this machine cannot connect to it at {address}: {source}")).help(
        "outside of a cluster the address of a Service mostly leads nowhere; have pods load it (`generators.kubernetes`, with \
         `local = 0`), or run Proofload where it is reached",
    ))
}
