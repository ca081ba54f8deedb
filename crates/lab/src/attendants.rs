//! The machines that a plan's services run on beside this one: each reached once, for the whole run.
//!
//! It knows how to speak to those who attend there, and not how they are reached: that comes in from outside.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use plan::Plan;
use record::Environment;
use remote::{Channel, HostError};
use services::{Attendant, TargetError};

/// A program `proofload attend` on another machine, as whoever reaches it hands it over.
#[derive(Debug)]
pub struct Reached {
    /// Its stdin and stdout.
    pub channel: Channel,
    /// The address at which this machine, and others, find that one, where [`Plan::wants_address_of`] says that it is wanted.
    pub address: Option<IpAddr>,
}

/// Why a machine cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum AttendantsError {
    /// It was not reached.
    #[error(transparent)]
    Host(#[from] HostError),
    /// It was, and services cannot be started there.
    #[error(transparent)]
    Services(#[from] TargetError),
}

impl AttendantsError {
    /// What to do about it, where that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            AttendantsError::Host(error) => error.hint(),
            AttendantsError::Services(error) => error.hint(),
        }
    }
}

/// All of them, by host; none by default. Dropping it ends what is left there.
#[derive(Debug, Default)]
pub struct Attendants {
    machines: BTreeMap<String, Machine>,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Machine {
    pub attendant: Arc<Attendant>,
    /// Where services listen that are asked for from other machines.
    pub address: Option<IpAddr>,
}

impl Attendants {
    /// Reaches every host of a plan, and has it look whether its services could be started there.
    ///
    /// # Errors
    /// The first host that cannot be had, and why.
    pub fn open(
        plan: &Plan,
        reach: &mut dyn FnMut(&str) -> Result<Reached, HostError>,
    ) -> Result<Attendants, AttendantsError> {
        let mut machines = BTreeMap::new();
        for (host, services) in plan.hosts() {
            let Reached { channel, address } = reach(host)?;
            let Channel { input, output, keeper, .. } = channel;
            let attendant = Arc::new(Attendant::open(host, input, output, keeper, &services)?);
            machines.insert(host.to_owned(), Machine { attendant, address });
        }
        Ok(Attendants { machines })
    }

    /// What each is, for the record.
    pub fn environments(&self) -> BTreeMap<String, Environment> {
        let told = |machine: &Machine| serde_json::from_value(machine.attendant.about().clone());
        // One that describes itself in other words is the same machine to itself, at least.
        let each = self.machines.iter();
        each.map(|(host, machine)| (host.clone(), told(machine).unwrap_or_default())).collect()
    }

    /// What killed runs had left on them and was ended now: host, command and number.
    pub fn ended(&self) -> Vec<(String, String)> {
        let of = |(host, machine): (&String, &Machine)| -> Vec<(String, String)> {
            machine.attendant.ended().iter().map(|process| (host.clone(), process.clone())).collect()
        };
        self.machines.iter().flat_map(of).collect()
    }

    /// The machine of a host; `None`: nobody reached it.
    pub(crate) fn at(&self, host: &str) -> Option<&Machine> {
        self.machines.get(host)
    }
}
