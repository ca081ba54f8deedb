//! Running Services of clusters that a plan loads. Each is found once, for the whole run, before anything is started.
//!
//! Services are found and checked. Their pods are observed in each trial, and judged by the checks of the record.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use plan::{Plan, Variant};
use remote::kubernetes::DeployedAccess;
use remote::{Blame, Error};

/// Timeout of a connection from this machine to a remote address.
const REACH_PATIENCE: Duration = Duration::from_secs(5);

/// All running Services that a plan loads. None by default.
#[derive(Debug, Default)]
pub struct DeployedServices {
    found: Vec<Found>,
}

#[derive(Debug)]
struct Found {
    wanted: plan::Deployed,
    deployed: Arc<DeployedAccess>,
    address: SocketAddr,
}

impl DeployedServices {
    /// Finds every Service that a plan loads, and checks that there are pods behind it. Sends nothing to it.
    ///
    /// # Errors
    /// The first one that cannot be loaded, and the reason. The request is to blame if two variants differ
    /// only in their wording.
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
    /// The first one that cannot be reached, and the reason.
    pub fn reach(&self, plan: &Plan) -> Result<(), Error> {
        self.found
            .iter()
            .filter(|_| plan.generators.local > 0)
            .try_for_each(reach)
    }

    /// Descriptions for the confirmation by the user.
    pub(crate) fn described(&self) -> impl Iterator<Item = String> {
        self.found
            .iter()
            .map(|found| format!("{} at {}", found.deployed.described(), found.address))
    }

    /// Address of each.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.found.iter().map(|found| found.address)
    }

    /// Name of each, in the order of the plan.
    pub fn places(&self) -> impl Iterator<Item = String> {
        self.found.iter().map(|found| found.deployed.place())
    }

    /// The Service of a variant. `None` if it was not found yet.
    pub(crate) fn at(&self, wanted: &plan::Deployed) -> Option<&Arc<DeployedAccess>> {
        self.of(wanted).map(|found| &found.deployed)
    }

    fn of(&self, wanted: &plan::Deployed) -> Option<&Found> {
        self.found.iter().find(|found| found.wanted == *wanted)
    }

    /// Reports variants that only seem to differ. Identical wording is meant as a copy.
    fn alike(&self, plan: &Plan) -> Option<Error> {
        let loads = |variant: &Variant| {
            self.of(variant.deployed()?)
                .map(|found| (found.deployed.place(), found.address))
        };
        let pairs = plan.variants.iter().enumerate();
        let mut pairs = pairs
            .flat_map(|(index, other)| plan.variants[..index].iter().map(move |one| (one, other)));
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
    let deployed = DeployedAccess::find(wanted)?;
    let behind = deployed.look()?;
    deployed.refusal(&behind).map_or(Ok(()), Err)?;
    Ok(Found {
        wanted: wanted.clone(),
        deployed: Arc::new(deployed),
        address: behind.address,
    })
}

fn reach(
    Found {
        deployed, address, ..
    }: &Found,
) -> Result<(), Error> {
    let Err(source) = TcpStream::connect_timeout(address, REACH_PATIENCE) else {
        return Ok(());
    };
    let place = deployed.place();
    Err(Error::new(format!("{place}: this machine cannot connect to it at {address}: {source}")).help(
        "the address of a Service is usually only reachable inside the cluster: generate load in pods (`generators.kubernetes`, with \
         `local = 0`), or run Proofload inside the cluster",
    ))
}
