//! The machines that a plan's services run on beside this one: each reached once, for the whole run.
//!
//! It speaks with the agents there, and does not know how they are reached: the caller brings that.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use plan::Plan;
use record::Environment;
use remote::services::RemoteHost;
use remote::{Channel, Error};

/// A `proofload remote-agent` on another machine.
#[derive(Debug)]
pub struct Reached {
    /// Its stdin and stdout.
    pub channel: Channel,
    /// The address at which this machine, and others, find that one, where [`Plan::wants_address_of`] says that it is wanted.
    pub address: Option<IpAddr>,
}

/// All of them, by host; none by default. Dropping it ends what is left there.
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
    /// Reaches every host of a plan, and has it look whether its services could be started there.
    ///
    /// # Errors
    /// The first host that cannot be had, and why.
    pub fn open(
        plan: &Plan,
        reach: &mut dyn FnMut(&str) -> Result<Reached, Error>,
    ) -> Result<RemoteHosts, Error> {
        let mut machines = BTreeMap::new();
        for (host, services) in plan.hosts() {
            let Reached { channel, address } = reach(host)?;
            let channel = Channel { name: host.to_owned(), ..channel };
            let there = Arc::new(RemoteHost::open(channel, &services)?);
            machines.insert(host.to_owned(), Machine { host: there, address });
        }
        Ok(RemoteHosts { machines })
    }

    /// What each is, for the record.
    pub fn environments(&self) -> BTreeMap<String, Environment> {
        let about = |machine: &Machine| serde_json::from_value(machine.host.about().clone());
        // One that describes itself in other words is the same machine to itself, at least.
        let each = self.machines.iter();
        each.map(|(host, machine)| (host.clone(), about(machine).unwrap_or_default())).collect()
    }

    /// What killed runs had left on them and was ended now: host, command and number.
    pub fn ended(&self) -> Vec<(String, String)> {
        let of = |(host, machine): (&String, &Machine)| -> Vec<(String, String)> {
            machine.host.ended().iter().map(|process| (host.clone(), process.clone())).collect()
        };
        self.machines.iter().flat_map(of).collect()
    }

    /// The machine of a host; `None` if it was not reached.
    pub(crate) fn at(&self, host: &str) -> Option<&Machine> {
        self.machines.get(host)
    }
}
