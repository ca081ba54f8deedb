//! Services under load that already run: behind a URL, or as a Service of a cluster. They are awaited and
//! observed at the beginning and the end of a trial.
//!
//! Nothing is started or stopped. This module only decides whether a service can be loaded at all.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use load::{Address, Contract, LoadSpec, RequestSpec, Until};
use machine::groups::have_pods_here;
use model::quantity::span;
use model::{Cause, header};
use plan::{Ready, ReadyResponse, Secrets, Service, Url, Variant};
use record::{Counts, PodSeen};
use remote::Blame;
use remote::kubernetes::DeployedAccess;
use services::{UsageSample, WatchedProcesses};

use super::loading::{connect_timeout, host, requests, tls};
use super::witness::{is_harmless, plain};
use super::{RealEnvironment, hinted};
use crate::environment::{Failure, Result};
use crate::url::{ReachedUrl, expected, reach, unseen, watched, works_here};

/// Poll interval for readiness.
const LOOK_AGAIN: Duration = Duration::from_millis(300);
/// Timeout for the response to the path of `ready`.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// Why the resources of pods are unknown.
const PODS_HERE: &str = "its pods run on this machine, and their resource use cannot be separated from that of other processes";

/// A service under load that was not started by the run.
pub(super) struct LoadedTarget {
    /// Destination of the load.
    pub address: Address,
    /// Its state when the trial began, as recorded.
    pub kept: record::DeployedSeen,
    /// Access to the cluster, if it is a Service of a cluster.
    cluster: Option<Arc<DeployedAccess>>,
    /// The processes behind a URL, if they can be observed.
    watched: Option<WatchedProcesses>,
}

impl LoadedTarget {
    /// The observed processes, with the name of their service.
    pub fn watched(&self) -> Option<(&str, &WatchedProcesses)> {
        Some((&self.kept.service, self.watched.as_ref()?))
    }

    /// Resources used so far.
    pub fn sampled(&mut self) -> Option<(&str, UsageSample)> {
        let sample = self.watched.as_mut()?.sample();
        Some((&self.kept.service, sample))
    }

    /// The current pods. Empty behind a URL. `None` if they could not be listed.
    pub fn pods(&self) -> Option<Vec<PodSeen>> {
        self.cluster
            .as_ref()
            .map_or(Some(Vec::new()), |cluster| Some(cluster.look().ok()?.pods))
    }
}

/// The part of a service that is recorded, before anything was observed.
fn kept(service: &Service, place: String, address: &Address) -> record::DeployedSeen {
    let (service, address) = (service.name.clone(), address.to_string());
    let (addresses, pods) = (Vec::new(), Vec::new());
    record::DeployedSeen {
        service,
        place,
        address,
        addresses,
        is_here: false,
        unseen: None,
        pods,
    }
}

impl RealEnvironment {
    /// Waits until the running service of a variant accepts connections, or has a ready pod.
    /// [`RealEnvironment::await_answers`] then checks its responses.
    pub(super) fn loaded_of(
        &mut self,
        index: usize,
        variant: &Variant,
    ) -> Result<Option<LoadedTarget>> {
        let Some(service) = variant.entry_service() else {
            return Ok(None);
        };
        let until = Instant::now() + service.ready_timeout;
        loop {
            let looked = match (service.url(), service.deployed()) {
                (Some(url), _) => self.behind_url(index, variant, service, url),
                (None, Some(wanted)) => self.in_cluster(service, wanted)?,
                (None, None) => return Ok(None),
            };
            match looked {
                Ok(loaded) => return Ok(Some(loaded)),
                Err(failure) if !self.looks_again(until)? => return Err(failure),
                Err(_) => {}
            }
        }
    }

    /// A Service of a cluster, or why it is not ready yet. An error is one that waiting does not resolve.
    fn in_cluster(
        &self,
        service: &Service,
        wanted: &plan::Deployed,
    ) -> Result<Result<LoadedTarget>> {
        let nobody = || Failure::service(format!("{wanted}: was not looked up"));
        let deployed = Arc::clone(self.deployed.at(wanted).ok_or_else(nobody)?);
        let failed = |error: &remote::Error| {
            Failure::service(format!(
                "service {}: {error}{}",
                service.name,
                hinted(error.hint())
            ))
        };
        let behind = match deployed.look() {
            Ok(behind) => behind,
            // A restarting API server is no evidence about the service.
            Err(error) if *error.blame() == Blame::Away => return Ok(Err(failed(&error))),
            Err(error) => return Err(failed(&error)),
        };
        if let Some(refusal) = deployed.refusal(&behind) {
            return Ok(Err(failed(&refusal)));
        }
        let address = Address::Tcp(behind.address);
        let is_here = have_pods_here(behind.pods.iter().map(|pod| pod.uid.as_str()));
        let (unseen, pods) = (is_here.then(|| PODS_HERE.to_owned()), behind.pods);
        let kept = record::DeployedSeen {
            is_here,
            unseen,
            pods,
            ..kept(service, deployed.place(), &address)
        };
        Ok(Ok(LoadedTarget {
            address,
            kept,
            cluster: Some(deployed),
            watched: None,
        }))
    }

    fn behind_url(
        &mut self,
        index: usize,
        variant: &Variant,
        service: &Service,
        url: &Url,
    ) -> Result<LoadedTarget> {
        let destinations = &self.destinations;
        // If no load comes from here, this machine need not reach the service.
        let reached = match self.plan.generators.local {
            0 => expected(url, destinations),
            _ => reach(
                url,
                destinations,
                variant.load.settings.sources.first().copied(),
            ),
        };
        let reached =
            reached.map_err(|why| Failure::service(format!("{}: {why}", self.called(service))))?;
        let unseen = || unseen(&self.plan, &self.destinations).remove(&index);
        let unseen = self.unseen.entry(index).or_insert_with(unseen);
        let watched = unseen
            .as_ref()
            .map_or_else(|| watched(url, &reached), |why| Err(why.clone()));
        watched.iter().for_each(WatchedProcesses::forget_peaks);
        let ReachedUrl { address, addresses } = reached;
        let (unseen, watched) = (watched.as_ref().err().cloned(), watched.ok());
        let is_here = watched.is_some() || works_here(&address);
        let kept = record::DeployedSeen {
            addresses,
            is_here,
            unseen,
            ..kept(service, url.origin(), &address)
        };
        Ok(LoadedTarget {
            address,
            kept,
            cluster: None,
            watched,
        })
    }

    /// Waits before the next poll. Returns `false` if there is no time for one.
    fn looks_again(&self, until: Instant) -> Result<bool> {
        if self.stop.is_requested() {
            return Err(Failure::INTERRUPTED);
        }
        let in_time = Instant::now() < until;
        if in_time {
            thread::sleep(LOOK_AGAIN);
        }
        Ok(in_time)
    }

    /// The name of a service for messages. A service of `load` has no name, so its URL is used.
    fn called(&self, service: &Service) -> String {
        let url = service.url().filter(|_| self.plan.measure.is_some());
        url.map_or_else(|| format!("service {}", service.name), Url::origin)
    }

    /// Sends a request from every generator over the path of its load, until each gets the response that
    /// `ready` requires. Whether this machine can reach the service does not show whether pods can.
    pub(super) fn await_answers(&mut self, variant: &Variant, address: &Address) -> Result<()> {
        let Some(entry) = variant.entry_service() else {
            return Ok(());
        };
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
            sources: variant.load.settings.sources.clone(),
            timeout: entry.ready_timeout.min(ANSWER_MAX),
            connect_timeout: connect_timeout(&variant.load, &self.plan.generators),
            contract,
            ..LoadSpec::new(address.clone(), vec![request.clone()])
        };
        loop {
            let mut loader = self.begun(spec.clone(), Some(1), None)?;
            let asked = self.run(&mut loader, Until::Requests(generators.into()));
            self.unload(loader);
            let (counts, _) = asked?;
            if counts.successful >= u64::from(generators) && counts.successful == counts.sent {
                return turned_away(variant, &self.called(entry), &request, address, &counts);
            }
            let hopeless = hopeless(&counts);
            if !self.looks_again(if hopeless.is_some() {
                Instant::now()
            } else {
                until
            })? {
                let (why, hint) = hopeless.map_or_else(
                    || {
                        let why = format!(
                            "not ready after {}",
                            span(entry.ready_timeout.as_secs_f64())
                        );
                        let has_answer =
                            entry.ready == Ready::Response && !counts.status.is_empty();
                        (why, has_answer.then_some(ReadyResponse::HINT))
                    },
                    |(why, hint)| (why.to_owned(), Some(hint)),
                );
                return Err(Failure::service(format!(
                    "{}: {why}: {} {} at {address} got {}{}",
                    self.called(entry),
                    request.method,
                    request.path,
                    answers(&counts),
                    hinted(hint)
                )));
            }
        }
    }
}

/// Why waiting does not help a service that is not ready, with a remedy. `None` if it may become ready.
fn hopeless(counts: &Counts) -> Option<(&'static str, &'static str)> {
    let mut causes = counts.errors.iter().map(|error| error.cause);
    causes.find_map(|cause| match cause {
        Cause::Certificate => Some((
            "its certificate was refused",
            "set `load.tls.ca` (--cacert) to the authority that signed it, `load.tls.server_name` to the name in it, or accept any \
             certificate with `load.tls.insecure` (--insecure)",
        )),
        cause => Some(("it uses another protocol", cause.remedy()?)),
    })
}

/// The request that tests readiness, and its accepted responses. `None` if a connection is sufficient.
fn asked(
    variant: &Variant,
    entry: &Service,
    address: &Address,
    secrets: &Secrets,
) -> Result<Option<(RequestSpec, Contract)>> {
    let host = host(variant, address);
    Ok(match &entry.ready {
        Ready::Tcp => None,
        // Without a log-in any response is accepted.
        Ready::Response if variant.load.has_users() => None,
        // The URL's path comes first and may contain a secret.
        Ready::Http(path) => Some((
            RequestSpec::new("GET", &secrets.fill_request(path, false), &host),
            Contract::default(),
        )),
        Ready::Response => {
            // With the headers of the load. Other methods may change data.
            let mut requests = requests(&variant.load, &host, secrets)?.into_iter();
            let own = || RequestSpec::new("GET", entry.url().map_or("/", |url| &url.path), &host);
            let request = requests.find(is_harmless).unwrap_or_else(own);
            let accepted = variant.ready_response();
            let status = (100..=599)
                .filter(|status| accepted.accepts(*status))
                .collect();
            Some((
                RequestSpec {
                    contract: None,
                    ..request
                },
                Contract {
                    status,
                    ..Contract::default()
                },
            ))
        }
    })
}

/// Refuses a service that redirects or requires authentication, unless such a response is expected: it is not
/// the intended one.
fn turned_away(
    variant: &Variant,
    called: &str,
    request: &RequestSpec,
    address: &Address,
    counts: &Counts,
) -> Result<()> {
    let own = variant
        .load
        .requests
        .iter()
        .filter_map(|request| request.expect.as_ref());
    let contracts: Vec<&Contract> = std::iter::once(&variant.expect).chain(own).collect();
    let expected = |status: &u16| {
        contracts
            .iter()
            .any(|contract| contract.accepts_status(*status))
    };
    let Some((status, hint)) = counts
        .status
        .keys()
        .filter(|status| !expected(status))
        .find_map(|status| Some((*status, turning(*status)?)))
    else {
        return Ok(());
    };
    let fetched = plain(&variant.load, address).and_then(|at| load::fetch(at, request, ANSWER_MAX));
    let headers = fetched.into_iter().flat_map(|fetched| fetched.headers);
    let told: String = headers
        .filter(|(name, _)| {
            ["location", "www-authenticate"]
                .iter()
                .any(|told| header::is_same(name, told))
        })
        .map(|(name, value)| format!(", {name}: {value}"))
        .collect();
    Err(Failure::service(format!(
        "{called}: {} {} at {} got status {status}{told}\n  hint: {hint}; to measure this response, set `expect.status = {status}`",
        request.method,
        request.path,
        host(variant, address),
    )))
}

/// The remedy for a status that means a redirect or missing authentication.
fn turning(status: u16) -> Option<&'static str> {
    match status {
        301 | 302 | 303 | 307 | 308 => {
            Some("redirects are not followed: use the URL that it redirects to")
        }
        401 | 403 | 407 => Some(
            "authenticate with a header: `load.headers` (-H), such as 'Authorization: Bearer …'",
        ),
        _ => None,
    }
}

/// The result of a request: `status 503`, `no answer: refused (connect)`.
fn answers(counts: &record::Counts) -> String {
    let status = counts
        .status
        .keys()
        .map(|status| format!("status {status}"));
    let errors = counts
        .errors
        .iter()
        .map(|error| format!("no answer: {} ({})", error.cause, error.phase));
    let all: Vec<String> = status.chain(errors).collect();
    if all.is_empty() {
        "no answer".to_owned()
    } else {
        all.join(", ")
    }
}
