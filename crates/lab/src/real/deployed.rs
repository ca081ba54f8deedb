//! What a trial loads that is not started: a Service of a cluster, waited for and looked at when a trial begins and when it ends.
//!
//! Nothing of it is started or stopped, and nothing of what its processes use is known. It keeps what was seen and judges nothing.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use load::{Address, LoadSpec, Request, Until};
use plan::{Ready, Service, Variant};
use record::PodSeen;
use remote::kubernetes::{Behind, ClusterError, Deployed, Pod};

use super::{RealEnvironment, network};
use crate::environment::Failure;

/// Between two looks at whether it is ready.
const LOOK_AGAIN: Duration = Duration::from_millis(300);
/// How long the answer to the path of `ready` may take.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// What a trial loads that was not started.
pub(super) struct Loaded {
    /// Name of the service in the experiment.
    service: String,
    /// Who may look at it.
    pub deployed: Arc<Deployed>,
    /// As it was when the trial began.
    pub behind: Behind,
}

impl Loaded {
    /// The same in the record's words.
    pub fn kept(&self) -> record::Deployed {
        record::Deployed {
            service: self.service.clone(),
            place: self.deployed.place(),
            address: self.behind.address.to_string(),
            pods: pods_kept(self.behind.pods.clone()),
        }
    }
}

/// Pods in the record's words.
pub(super) fn pods_kept(pods: Vec<Pod>) -> Vec<PodSeen> {
    let kept = |Pod { name, uid, node, address, ready, restarts, images }| PodSeen {
        name,
        uid,
        node,
        address,
        ready,
        restarts,
        images,
    };
    pods.into_iter().map(kept).collect()
}

impl RealEnvironment {
    /// What a variant loads, where that runs already, once a pod behind it is ready.
    pub(super) fn loaded_of(&self, variant: &Variant) -> Result<Option<Loaded>, Failure> {
        let Some((service, wanted)) =
            entry(variant).and_then(|entry| Some((entry, entry.kubernetes.as_ref()?)))
        else {
            return Ok(None);
        };
        let nobody = || Failure::Service(format!("{wanted}: nobody has looked for it"));
        let deployed = Arc::clone(self.deployed.at(wanted).ok_or_else(nobody)?);
        let until = Instant::now() + service.ready_timeout;
        loop {
            let refusal = match deployed.look() {
                Ok(behind) => match deployed.refusal(&behind) {
                    None => return Ok(Some(Loaded { service: service.name.clone(), deployed, behind })),
                    Some(refusal) => refusal,
                },
                // An API server that is restarted says nothing of the service.
                Err(error @ ClusterError::Unreachable { .. }) => error,
                Err(error) => return Err(failed(&service.name, &error, error.hint())),
            };
            if self.stop.is_requested() {
                return Err(Failure::Interrupted);
            }
            if Instant::now() >= until {
                return Err(failed(&service.name, &refusal, refusal.hint()));
            }
            thread::sleep(LOOK_AGAIN);
        }
    }

    /// Has every generator ask for the path of `ready` over the way that its load will take, until each is answered with a 2xx: whether
    /// this machine gets there says nothing of whether pods do.
    pub(super) fn await_answers(&mut self, variant: &Variant, address: SocketAddr) -> Result<(), Failure> {
        let Some((entry, Ready::Http(path))) = entry(variant).map(|entry| (entry, &entry.ready)) else {
            return Ok(());
        };
        let until = Instant::now() + entry.ready_timeout;
        let generators = self.plan.generators.count().max(1);
        let spec = LoadSpec {
            connections: generators,
            threads: 1,
            cpus: self.division.generator.clone(),
            timeout: entry.ready_timeout.min(ANSWER_MAX),
            connect_timeout: network::connect_timeout(&variant.load, &self.plan.generators),
            ..LoadSpec::new(Address::Tcp(address), vec![Request::new("GET", path, &address.to_string())])
        };
        loop {
            let mut loader = self.begun(spec.clone(), Some(1), None)?;
            let asked = self.run(&mut loader, Until::Requests(1));
            self.unload(loader);
            let (counts, _) = asked?;
            if counts.successful >= u64::from(generators) && counts.successful == counts.sent {
                return Ok(());
            }
            if self.stop.is_requested() {
                return Err(Failure::Interrupted);
            }
            if Instant::now() >= until {
                return Err(Failure::Service(format!(
                    "service {}: not ready after {:.0} s: GET {path} at {address} got {}",
                    entry.name,
                    entry.ready_timeout.as_secs_f64(),
                    answers(&counts)
                )));
            }
            thread::sleep(LOOK_AGAIN);
        }
    }
}

fn entry(variant: &Variant) -> Option<&Service> {
    variant.services.iter().find(|service| service.name == variant.entry)
}

fn failed(service: &str, error: &dyn std::error::Error, hint: Option<String>) -> Failure {
    let hint = hint.map(|hint| format!("\n  hint: {hint}")).unwrap_or_default();
    Failure::Service(format!("service {service}: {error}{hint}"))
}

/// What came back: `status 503`, `no answer: refused (connect)`.
fn answers(counts: &record::Counts) -> String {
    let status = counts.status.keys().map(|status| format!("status {status}"));
    let errors = counts.errors.iter().map(|error| format!("no answer: {} ({})", error.cause, error.phase));
    let all: Vec<String> = status.chain(errors).collect();
    if all.is_empty() { "no answer".to_owned() } else { all.join(", ") }
}
