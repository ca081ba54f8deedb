//! The Services that run already and that a plan loads: each found once, for the whole run, before anything is started.
//!
//! It finds and refuses. What the pods behind them do during a run is seen trial by trial, and judged by `audit`.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use plan::{Plan, Variant};
use remote::Error;
use remote::kubernetes::Deployed;

/// How long a connection from this machine may take to open before an address elsewhere counts as out of reach.
pub(crate) const REACH_PATIENCE: Duration = Duration::from_secs(5);

/// Why what runs already cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum DeployedError {
    /// It cannot be found, or may not be looked at, or no pod is behind it.
    #[error(transparent)]
    Cluster(#[from] Error),
    /// Load comes from this machine too, which does not get there.
    #[error("{place}: this machine cannot connect to it at {address}: {source}")]
    OutOfReach {
        /// Which.
        place: String,
        /// Its address in the cluster.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// Two variants that differ in their words alone.
    #[error(
        "variants `{one}` and `{other}` are alike: both load {place} at {address}, with the same requests"
    )]
    Alike {
        /// The first.
        one: String,
        /// The second.
        other: String,
        /// What both load.
        place: String,
        /// Where.
        address: SocketAddr,
    },
}

impl DeployedError {
    /// What to do about it, where that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            DeployedError::Cluster(error) => error.hint().map(str::to_owned),
            DeployedError::OutOfReach { .. } => Some(
                "outside of a cluster the address of a Service mostly leads nowhere; have pods load it (`generators.kubernetes`, with \
                 `local = 0`), or run Proofload where it is reached"
                    .into(),
            ),
            DeployedError::Alike { .. } => Some(
                "they name one port of one Service in two ways; to compare a variant with itself there is `design.aa`".into(),
            ),
        }
    }
}

/// All of them; none by default.
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
    /// Finds every one that a plan loads, and looks whether it can be.
    ///
    /// # Errors
    /// The first that cannot, and why.
    pub fn open(plan: &Plan) -> Result<DeployedServices, DeployedError> {
        let mut all = DeployedServices::default();
        for wanted in plan.variants.iter().filter_map(Variant::deployed) {
            if all.of(wanted).is_none() {
                all.found.push(found(wanted, plan.generators.local > 0)?);
            }
        }
        all.alike(plan).map_or(Ok(()), Err)?;
        Ok(all)
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
    fn alike(&self, plan: &Plan) -> Option<DeployedError> {
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
        Some(DeployedError::Alike { one: one.name.clone(), other: other.name.clone(), place, address })
    }
}

fn found(wanted: &plan::Deployed, from_here: bool) -> Result<Found, DeployedError> {
    let deployed = Deployed::find(wanted)?;
    let behind = deployed.look()?;
    if let Some(refusal) = deployed.refusal(&behind) {
        return Err(refusal.into());
    }
    let address = behind.address;
    if from_here && let Err(source) = TcpStream::connect_timeout(&address, REACH_PATIENCE) {
        return Err(DeployedError::OutOfReach { place: deployed.place(), address, source });
    }
    Ok(Found { wanted: wanted.clone(), deployed: Arc::new(deployed), address })
}
