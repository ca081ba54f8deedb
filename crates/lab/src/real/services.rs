//! The services of a trial from their start to their end, each on its machine.
//!
//! It starts, asks and stops in the order that the plan gives, and decides nothing else. Where they listen follows from who asks for them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, TcpStream};
use std::time::Instant;

use plan::{Service, Variant};
use record::{TrialEnded, WorkersLost};
use remote::services::{RemoteService, ServiceHandle};
use services::{AgentHost, Blame, Error, Placement, Ports};

use super::deployed::Loaded;
use super::loading::at_services;
use super::{LOGS, LOOPBACK, Living, RealEnvironment, file_name_of, hinted, processes};
use crate::environment::{Failure, Result, Start};
use crate::reached::{Machine, REACH_PATIENCE};

impl RealEnvironment {
    /// Starts all services of a variant, those that are needed first. `entry` is where the entry must listen if it runs here.
    pub(super) fn start_services(
        &self,
        start: Start,
        variant: &Variant,
        entry: IpAddr,
    ) -> Result<Vec<ServiceHandle>> {
        let addresses = self.addresses(variant, entry)?;
        let ports = self.ports(variant)?;
        let name = file_name_of(&self.plan.variants, start.variant);
        let mut services = Vec::with_capacity(variant.services.len());
        let began = Instant::now();
        let is_late = || start.patience.is_some_and(|patience| began.elapsed() > patience);
        let cancelled = || self.stop.is_requested() || is_late();
        for service in &variant.services {
            let log = format!("{}-{name}-{}.log", place(start), service.name);
            let mut placement = Placement::new(self.record.join(LOGS).join(log));
            placement.padding_bytes = start.padding_bytes;
            placement.address = addresses[&service.name];
            placement.addresses.clone_from(&addresses);
            placement.values = self.plan.secrets.asked_by_service(service);
            if service.name == variant.entry {
                placement.ready_response = variant.ready_response();
            }
            services.push(match service.host() {
                None => {
                    let no_agent =
                        |error| Failure::Service(format!("the agent's folder cannot be made: {error}"));
                    placement.agent =
                        start.capture.map(|_| AgentHost::new()).transpose().map_err(no_agent)?;
                    placement.cpus.clone_from(self.cpus_at_start());
                    placement.values.extend(self.values.clone());
                    let running = services::start(&self.warden, service, &ports, &placement, &cancelled);
                    let handle = ServiceHandle::Here(Box::new(running.map_err(failed)?));
                    self.confine_service(&handle)?;
                    handle
                }
                Some(host) => {
                    let machine = &self.machine(host)?.host;
                    let remote = RemoteService::start(machine, service, &ports, &placement, &cancelled);
                    let remote = remote.map_err(|error| failed_at(error, &[&service.name]))?;
                    ServiceHandle::There(Box::new(remote))
                }
            });
        }
        // Where no load comes from here, this machine need not reach it.
        let entry = services.last().filter(|_| self.plan.generators.local > 0);
        entry.map_or(Ok(()), check_reach)?;
        Ok(services)
    }

    /// The processors that a service starts with. If they are chosen by what services use, it starts with all in every block, because
    /// programs count the processors when they start.
    fn cpus_at_start(&self) -> &Vec<usize> {
        if self.apart.is_empty() { &self.division.services } else { &self.cpus }
    }

    /// Confines a service of this machine to its processors, if it started with more.
    pub(super) fn confine_service(&self, service: &ServiceHandle) -> Result<()> {
        let is_confined = !self.apart.is_empty() && !self.division.shared;
        match service.here().filter(|_| is_confined) {
            Some(running) => running.confine(&self.division.services).map_err(failed),
            None => Ok(()),
        }
    }

    /// A start that was cancelled although the user did not ask for it took longer than it may.
    pub(super) fn out_of_patience(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Interrupted if !self.stop.is_requested() => Failure::OutOfBudget,
            failure => failure,
        }
    }

    fn machine(&self, host: &str) -> Result<&Machine> {
        self.remote_hosts.at(host).ok_or_else(|| Failure::Service(format!("{host}: nobody has reached it")))
    }

    /// Where each service listens: on loopback, unless somebody asks for it from another machine, or the plan says where.
    fn addresses(&self, variant: &Variant, entry: IpAddr) -> Result<BTreeMap<String, IpAddr>> {
        let told = |service: &Service| service.command().and_then(|command| command.address);
        let address = |service: &Service| match (told(service), service.host()) {
            (Some(address), _) => Ok(address),
            (None, None) if service.name == variant.entry => Ok(entry),
            (None, Some(host)) if variant.is_asked_from_elsewhere(service) => {
                let nobody = || Failure::Service(format!("{host}: nobody knows its address"));
                self.machine(host)?.address.ok_or_else(nobody)
            }
            (None, _) => Ok(LOOPBACK),
        };
        variant.services.iter().map(|service| Ok((service.name.clone(), address(service)?))).collect()
    }

    /// Free ports for all services, each on its machine.
    fn ports(&self, variant: &Variant) -> Result<Ports> {
        let hosts: BTreeSet<Option<&str>> = variant.services.iter().map(Service::host).collect();
        let mut ports = Ports::default();
        for host in hosts {
            let there = variant.services.iter().filter(|service| service.host() == host);
            let there: Vec<Service> = there.cloned().collect();
            let choose = || match host {
                None => Ports::choose(&there, LOOPBACK, rand::random()).map_err(failed),
                Some(host) => {
                    self.machine(host)?.host.choose(&there, LOOPBACK, rand::random()).map_err(failed)
                }
            };
            let mut chosen = choose()?;
            // A port that any variant was seen to listen on is given to none as its PORT.
            let is_seen = |chosen: &Ports| {
                let services = self.plan.variants.iter().flat_map(|variant| &variant.services);
                services.filter_map(Service::command).any(|command| chosen.meets(command))
            };
            while is_seen(&chosen) {
                chosen = choose()?;
            }
            ports = ports.and(chosen);
        }
        Ok(ports)
    }

    /// Stops the services of a trial, and tells what was seen of them at the end.
    pub(super) fn stopped(&mut self, living: Living) -> TrialEnded {
        let Living { block, variant, services, loader, network, loaded, contents, .. } = living;
        let watched = loaded.as_ref().and_then(Loaded::watched);
        let lost = services.iter().filter_map(|service| Some((service.name(), service.workers_lost().ok()?)));
        let lost = lost.chain(watched.map(|(service, seen)| (service, seen.lost())));
        // Who goes on with fewer workers, or with new ones, is not what was to be measured.
        let lost = lost.filter(|(_, lost)| *lost > 0);
        let workers_lost =
            lost.map(|(service, lost)| WorkersLost { service: service.to_owned(), lost }).collect();
        let look = || Ok(processes::at_end(&services, &self.watches, &self.plan.secrets));
        // Who cannot get there has nothing to tell of it; the rest is told all the same.
        let look = at_services(network.as_ref(), look);
        let (processes_by_service, strangers_listening, late_ports) = look.unwrap_or_default();
        let pods = loaded.as_ref().and_then(Loaded::pods);
        // The connections go first, so that a service that waits for them to close can end at once.
        self.unload(loader);
        let peak = |service: &ServiceHandle| Some((service.name().to_owned(), service.peak_memory().ok()?));
        let mut peak_rss_bytes_by_service: BTreeMap<String, u64> = services.iter().filter_map(peak).collect();
        peak_rss_bytes_by_service
            .extend(watched.map(|(service, seen)| (service.to_owned(), seen.peak_memory())));
        let mut ended = TrialEnded {
            block,
            variant,
            peak_rss_bytes: peak_rss_bytes_by_service.values().sum(),
            peak_rss_bytes_by_service,
            workers_lost,
            processes_by_service,
            strangers_listening,
            late_ports,
            pods,
            contents,
            ..TrialEnded::default()
        };
        // The entry first, then what it needs.
        for service in services.into_iter().rev() {
            let name = service.name().to_owned();
            let stopped = service.stop();
            let leftovers = stopped.leftovers.into_iter();
            let secrets = &self.plan.secrets;
            ended.leftovers.extend(leftovers.map(|leftover| secrets.mask(None, &leftover.description)));
            ended.output_dropped_bytes += stopped.output_dropped_bytes;
            if stopped.killed > 0 {
                ended.killed.push(name);
            }
        }
        ended
    }
}

impl Living {
    /// The machine that its entry runs on; `None` is this one.
    pub(super) fn entry_host(&self) -> Option<&str> {
        self.services.last().and_then(ServiceHandle::host)
    }
}

/// An entry that is ready on its own machine and cannot be reached from this one would fail by every request.
fn check_reach(entry: &ServiceHandle) -> Result<()> {
    let (Some(host), name, address) = (entry.host(), entry.name(), entry.address()) else { return Ok(()) };
    let Err(error) = TcpStream::connect_timeout(&address, REACH_PATIENCE) else { return Ok(()) };
    Err(Failure::Service(format!(
        "service {name}: it is ready on {host}, and this machine cannot connect to it at {address}: {error}\n  hint: a firewall may stand \
         between the two; `services.{name}.address` names another address of that machine",
    )))
}

/// A target's error with the service's last words and a hint, as people need it.
pub(super) fn failed(error: Error) -> Failure {
    failed_as(Failure::Service, error)
}

/// The same of what is no service.
pub(super) fn failed_as(what: fn(String) -> Failure, error: Error) -> Failure {
    if *error.blame() == Blame::Cancelled {
        return Failure::Interrupted;
    }
    let last_words = last_words(error.tail().unwrap_or_default());
    what(format!("{error}{last_words}{}", hinted(error.hint())))
}

/// The same; where a machine is lost it names the services that ran there.
pub(super) fn failed_at(error: Error, services: &[&str]) -> Failure {
    if !matches!(error.blame(), Blame::Lost(_)) {
        return failed(error);
    }
    let what = match services {
        [] => String::new(),
        [one] => format!("; service {one}, which ran there, ends by itself"),
        several => format!("; services {}, which ran there, end by themselves", several.join(", ")),
    };
    Failure::Service(format!("{error}{what}"))
}

/// The same of those of these services that run on a machine that is lost.
pub(super) fn failed_on<'a>(error: Error, services: impl Iterator<Item = &'a ServiceHandle>) -> Failure {
    let Blame::Lost(host) = error.blame() else { return failed(error) };
    let there = services.filter(|service| service.host() == Some(host)).map(ServiceHandle::name);
    let there: BTreeSet<&str> = there.collect();
    failed_at(error, &Vec::from_iter(there))
}

/// A service that ended while it was loaded is a failure, however many requests it answered.
pub(super) fn check_alive(service: &mut ServiceHandle) -> Result<()> {
    let Some((exit, tail)) = service.exited() else { return Ok(()) };
    let on = service.host().map(|host| format!(" on {host}")).unwrap_or_default();
    Err(Failure::Service(format!(
        "service {}{on} ended with {exit} while it was loaded{}",
        service.name(),
        last_words(&tail)
    )))
}

pub(super) fn last_words(tail: &str) -> String {
    if tail.is_empty() {
        return String::new();
    }
    let lines: String = tail.lines().map(|line| format!("\n    {line}")).collect();
    format!("\n  its last output:{lines}")
}

/// How the names of a trial's logs begin.
fn place(start: Start) -> String {
    match start.capture {
        None => format!("block-{:02}", start.block),
        Some(number) => format!("round-{:02}-{number}", start.block),
    }
}
