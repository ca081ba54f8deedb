//! What a trial loads that is not started: what is behind a URL, or a Service of a cluster, waited for and looked at when a trial begins
//! and when it ends.
//!
//! Nothing of it is started or stopped. It keeps what was seen and judges nothing but whether it can be loaded at all.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use load::{Address, Contract, LoadSpec, Request, Until};
use model::Cause;
use plan::{Ready, Secrets, Service, Url, Variant};
use record::{Counts, PodSeen};
use remote::Blame;
use remote::kubernetes::{Behind, Deployed, Pod};
use services::{Sample, Watched};

use super::loading::host;
use super::requests::{requests, tls};
use super::witness::{is_harmless, plain};
use super::{RealEnvironment, hinted, network};
use crate::environment::{Failure, Result};
use crate::url::{Reached, reach, unseen, watched};

/// Between two looks at whether it is ready.
const LOOK_AGAIN: Duration = Duration::from_millis(300);
/// How long the answer to the path of `ready` may take.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// What a trial loads that was not started.
pub(super) enum Loaded {
    /// A Service of a cluster.
    Cluster {
        /// Name of the service in the experiment.
        service: String,
        /// Who may look at it.
        deployed: Arc<Deployed>,
        /// As it was when the trial began.
        behind: Behind,
    },
    /// What is behind a URL.
    Url {
        /// Name of the service in the experiment.
        service: String,
        /// The URL without its path.
        origin: String,
        /// Where it leads.
        reached: Reached,
        /// The processes there, or why they are not seen.
        watched: Result<Box<Watched>, String>,
    },
}

impl Loaded {
    /// Where the load goes.
    pub fn address(&self) -> Address {
        match self {
            Loaded::Cluster { behind, .. } => Address::Tcp(behind.address),
            Loaded::Url { reached, .. } => reached.address.clone(),
        }
    }

    /// The same in the record's words.
    pub fn kept(&self) -> record::Deployed {
        let (service, place) = match self {
            Loaded::Cluster { service, deployed, .. } => (service, deployed.place()),
            Loaded::Url { service, origin, .. } => (service, origin.clone()),
        };
        let (addresses, unseen, pods) = match self {
            Loaded::Cluster { behind, .. } => (Vec::new(), None, pods_kept(behind.pods.clone())),
            Loaded::Url { reached, watched, .. } => {
                (reached.addresses.clone(), watched.as_ref().err().cloned(), Vec::new())
            }
        };
        let (service, address) = (service.clone(), self.address().to_string());
        record::Deployed { service, place, address, addresses, unseen, pods }
    }

    /// The processes there, with the name of their service, where they are seen.
    pub fn watched(&self) -> Option<(&str, &Watched)> {
        match self {
            Loaded::Url { service, watched: Ok(watched), .. } => Some((service, watched)),
            Loaded::Url { watched: Err(_), .. } | Loaded::Cluster { .. } => None,
        }
    }

    /// What they have used so far.
    pub fn sampled(&mut self) -> Option<(&str, Sample)> {
        match self {
            Loaded::Url { service, watched: Ok(watched), .. } => Some((service, watched.sample())),
            Loaded::Url { watched: Err(_), .. } | Loaded::Cluster { .. } => None,
        }
    }

    /// The pods behind it now, none behind a URL; `None` where nobody could look.
    pub fn pods(&self) -> Option<Vec<PodSeen>> {
        match self {
            Loaded::Cluster { deployed, .. } => Some(pods_kept(deployed.look().ok()?.pods)),
            Loaded::Url { .. } => Some(Vec::new()),
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
    /// What a variant loads, where that runs already, once it accepts connections, or a pod behind it is ready.
    pub(super) fn loaded_of(&mut self, index: usize, variant: &Variant) -> Result<Option<Loaded>> {
        let Some(service) = variant.entry_service() else { return Ok(None) };
        if let Some(url) = service.url() {
            return self.reached(index, variant, service, url).map(Some);
        }
        let Some(wanted) = service.deployed() else { return Ok(None) };
        let nobody = || Failure::Service(format!("{wanted}: nobody has looked for it"));
        let deployed = Arc::clone(self.deployed.at(wanted).ok_or_else(nobody)?);
        let until = Instant::now() + service.ready_timeout;
        loop {
            let refusal = match deployed.look() {
                Ok(behind) => match deployed.refusal(&behind) {
                    None => {
                        let service = service.name.clone();
                        return Ok(Some(Loaded::Cluster { service, deployed, behind }));
                    }
                    Some(refusal) => refusal,
                },
                // An API server that is restarted says nothing of the service.
                Err(error) if *error.blame() == Blame::Away => error,
                Err(error) => return Err(failed(&service.name, &error)),
            };
            if !self.looks_again(until)? {
                return Err(failed(&service.name, &refusal));
            }
        }
    }

    fn reached(&mut self, index: usize, variant: &Variant, service: &Service, url: &Url) -> Result<Loaded> {
        let until = Instant::now() + service.ready_timeout;
        let source = variant.load.sources.first().copied();
        loop {
            let why = match reach(url, source) {
                Ok(reached) => {
                    let (service, origin) = (service.name.clone(), url.origin());
                    let unseen = self.unseen.get_or_insert_with(|| unseen(&self.plan));
                    let watched = match unseen.get(&index) {
                        Some(why) => Err(why.clone()),
                        None => watched(url, &reached).map(Box::new),
                    };
                    watched.iter().for_each(|watched| watched.forget_peaks());
                    return Ok(Loaded::Url { service, origin, reached, watched });
                }
                Err(why) => why,
            };
            if !self.looks_again(until)? {
                return Err(Failure::Service(format!("{}: {why}", self.called(service))));
            }
        }
    }

    /// Waits for a while before another look; `false` where there is no time for one.
    fn looks_again(&self, until: Instant) -> Result<bool> {
        if self.stop.is_requested() {
            return Err(Failure::Interrupted);
        }
        let in_time = Instant::now() < until;
        if in_time {
            thread::sleep(LOOK_AGAIN);
        }
        Ok(in_time)
    }

    /// A service as whoever asked for it knows it: in a load from flags nobody has named it.
    fn called(&self, service: &Service) -> String {
        let url = service.url().filter(|_| self.plan.measure.is_some());
        url.map_or_else(|| format!("service {}", service.name), Url::origin)
    }

    /// Has every generator send a request over the way that its load will take, until each gets the response that `ready` asks for: whether
    /// this machine gets there says nothing of whether pods do.
    pub(super) fn await_answers(&mut self, variant: &Variant, address: &Address) -> Result<()> {
        let Some(entry) = variant.entry_service() else { return Ok(()) };
        let Some((request, contract)) = asked(variant, entry, address, &self.plan.secrets)? else {
            return Ok(());
        };
        let until = Instant::now() + entry.ready_timeout;
        let generators = self.plan.generators.count().max(1);
        let spec = LoadSpec {
            connections: generators,
            threads: 1,
            cpus: self.division.generator.clone(),
            tls: variant.load.tls.as_ref().map(tls).transpose()?,
            protocol: variant.load.protocol,
            sources: variant.load.sources.clone(),
            timeout: entry.ready_timeout.min(ANSWER_MAX),
            connect_timeout: network::connect_timeout(&variant.load, &self.plan.generators),
            contract,
            ..LoadSpec::new(address.clone(), vec![request.clone()])
        };
        loop {
            let mut loader = self.begun(spec.clone(), Some(1), None)?;
            let asked = self.run(&mut loader, Until::Requests(1));
            self.unload(loader);
            let (counts, _) = asked?;
            if counts.successful >= u64::from(generators) && counts.successful == counts.sent {
                return turned_away(variant, &self.called(entry), &request, address, &counts);
            }
            // It does not become another one by waiting.
            let refused = counts.errors.iter().any(|error| error.cause == Cause::Certificate);
            if !self.looks_again(if refused { Instant::now() } else { until })? {
                let hint = "\n  hint: `load.tls.ca` (--cacert) names the authority that signed it, `load.tls.server_name` what it is for; \
                            `load.tls.insecure` (--insecure) takes any";
                return Err(Failure::Service(format!(
                    "{}: {}: {} {} at {address} got {}{}",
                    self.called(entry),
                    match refused {
                        true => "its certificate was refused".to_owned(),
                        false => format!("not ready after {:.0} s", entry.ready_timeout.as_secs_f64()),
                    },
                    request.method,
                    request.path,
                    answers(&counts),
                    if refused { hint } else { "" }
                )));
            }
        }
    }
}

/// The request whose response shows that a service is ready, and which responses do; `None` where a connection is enough.
fn asked(
    variant: &Variant,
    entry: &Service,
    address: &Address,
    secrets: &Secrets,
) -> Result<Option<(Request, Contract)>> {
    let host = host(variant, address);
    Ok(match &entry.ready {
        Ready::Tcp => None,
        Ready::Http(path) => Some((Request::new("GET", path, &host), Contract::default())),
        Ready::Response => {
            // With the fields that the load has; other methods may change something.
            let mut requests = requests(&variant.load, &host, secrets)?.into_iter();
            let own = || Request::new("GET", entry.url().map_or("/", |url| &url.path), &host);
            let request = requests.find(is_harmless).unwrap_or_else(own);
            let any = Contract { status: (100..=599).collect(), ..Contract::default() };
            Some((Request { contract: None, ..request }, any))
        }
    })
}

/// A service that sends whoever asks elsewhere, or wants to know who that is, is not the one that was meant: unless such a response is
/// expected.
fn turned_away(
    variant: &Variant,
    called: &str,
    request: &Request,
    address: &Address,
    counts: &Counts,
) -> Result<()> {
    let expected = |status: &u16| {
        let mut own = variant.load.requests.iter().filter_map(|request| request.expect.as_ref());
        variant.expect.status.contains(status) || own.any(|contract| contract.status.contains(status))
    };
    let Some((status, hint)) = counts
        .status
        .keys()
        .filter(|status| !expected(status))
        .find_map(|status| Some((*status, turning(*status)?)))
    else {
        return Ok(());
    };
    let fetched = plain(&variant.load, address).and_then(|at| load::fetch(at, request, ANSWER_MAX).ok());
    let headers = fetched.into_iter().flat_map(|fetched| fetched.headers);
    let told: String = headers
        .filter(|(name, _)| {
            ["location", "www-authenticate"].iter().any(|told| name.eq_ignore_ascii_case(told))
        })
        .map(|(name, value)| format!(", {name}: {value}"))
        .collect();
    Err(Failure::Service(format!(
        "{called}: {} {} at {} got status {status}{told}\n  hint: {hint}; if this is what is to be measured, `expect.status = {status}`",
        request.method,
        request.path,
        host(variant, address),
    )))
}

/// What to do about a status that says that somebody else is to be asked, or by somebody else.
fn turning(status: u16) -> Option<&'static str> {
    match status {
        301 | 302 | 303 | 307 | 308 => Some("redirects are not followed: name the URL that it leads to"),
        401 | 403 | 407 => {
            Some("who may ask is told by a header: `load.headers` (-H), such as 'Authorization: Bearer …'")
        }
        _ => None,
    }
}

fn failed(service: &str, error: &remote::Error) -> Failure {
    Failure::Service(format!("service {service}: {error}{}", hinted(error.hint())))
}

/// What came back: `status 503`, `no answer: refused (connect)`.
fn answers(counts: &record::Counts) -> String {
    let status = counts.status.keys().map(|status| format!("status {status}"));
    let errors = counts.errors.iter().map(|error| format!("no answer: {} ({})", error.cause, error.phase));
    let all: Vec<String> = status.chain(errors).collect();
    if all.is_empty() { "no answer".to_owned() } else { all.join(", ") }
}
