//! The services of a trial from their start to their end.
//!
//! It starts, asks and stops in the order that the plan gives, and decides nothing else. Where they listen follows from who asks for them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Instant;

use plan::{Service, Variant};
use record::{EndReason, TrialEnded, WorkersLost};
use services::{AgentHostFolder, Blame, Error, Placement, Ports, Running};

use super::deployed::LoadedTarget;
use super::loading::at_services;
use super::{LOGS, LOOPBACK, LivingTrial, RealEnvironment, file_name_of, hinted, processes};
use crate::environment::{Failure, Result, Start};

impl RealEnvironment {
    /// Starts all services of a variant, those that are needed first. `entry` is where the entry must listen.
    pub(super) fn start_services(
        &self,
        start: Start,
        variant: &Variant,
        entry: IpAddr,
    ) -> Result<Vec<Running>> {
        let addresses = addresses(variant, entry);
        let ports = self.ports(variant)?;
        let name = file_name_of(&self.plan.variants, start.variant);
        let mut services = Vec::with_capacity(variant.services.len());
        let began = Instant::now();
        let is_late = || {
            start
                .patience
                .is_some_and(|patience| began.elapsed() > patience)
        };
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
            let no_agent =
                |error| Failure::service(format!("the agent's folder cannot be made: {error}"));
            placement.agent = start
                .capture
                .map(|_| AgentHostFolder::new())
                .transpose()
                .map_err(no_agent)?;
            placement.cpus.clone_from(self.cpus_at_start());
            placement.values.extend(self.values.clone());
            let running = services::start(&self.warden, service, &ports, &placement, &cancelled);
            let running = running.map_err(failed)?;
            self.confine_service(&running)?;
            services.push(running);
        }
        Ok(services)
    }

    /// The processors that a service starts with. If they are chosen by what services use, it starts with all in every block, because
    /// programs count the processors when they start.
    fn cpus_at_start(&self) -> &Vec<usize> {
        if self.apart.is_empty() {
            &self.division.services
        } else {
            &self.cpus
        }
    }

    /// Confines a service to its processors, if it started with more.
    pub(super) fn confine_service(&self, service: &Running) -> Result<()> {
        if self.apart.is_empty() || self.division.shared {
            return Ok(());
        }
        service.confine(&self.division.services).map_err(failed)
    }

    /// A start that was cancelled although the user did not ask for it took longer than it may.
    pub(super) fn out_of_patience(&self, failure: Failure) -> Failure {
        match failure {
            Failure::End(EndReason::Interrupted) if !self.stop.is_requested() => {
                Failure::OutOfBudget
            }
            failure => failure,
        }
    }

    /// Free ports for all services.
    fn ports(&self, variant: &Variant) -> Result<Ports> {
        // A port that any variant was seen to listen on is given to none as its PORT.
        let is_seen = |chosen: &Ports| {
            let services = self
                .plan
                .variants
                .iter()
                .flat_map(|variant| &variant.services);
            services
                .filter_map(Service::command)
                .any(|command| chosen.meets(command))
        };
        loop {
            let chosen =
                Ports::choose(&variant.services, LOOPBACK, rand::random()).map_err(failed)?;
            if !is_seen(&chosen) {
                return Ok(chosen);
            }
        }
    }

    /// Stops the services of a trial, and tells what was seen of them at the end.
    pub(super) fn stopped(&mut self, living: LivingTrial) -> TrialEnded {
        let LivingTrial {
            block,
            variant,
            services,
            loader,
            network,
            loaded,
            contents,
            ..
        } = living;
        let watched = loaded.as_ref().and_then(LoadedTarget::watched);
        let lost = services
            .iter()
            .map(|service| (service.name.as_str(), service.workers_lost()));
        let lost = lost.chain(watched.map(|(service, seen)| (service, seen.lost())));
        // Who goes on with fewer workers, or with new ones, is not what was to be measured.
        let lost = lost.filter(|(_, lost)| *lost > 0);
        let workers_lost = lost
            .map(|(service, lost)| WorkersLost {
                service: service.to_owned(),
                lost,
            })
            .collect();
        let look = || {
            Ok(processes::at_end(
                &services,
                &self.watches,
                &self.plan.secrets,
            ))
        };
        // Who cannot get there has nothing to tell of it; the rest is told all the same.
        let look = at_services(network.as_ref(), look);
        let (processes_by_service, strangers_listening, late_ports) = look.unwrap_or_default();
        let pods = loaded.as_ref().and_then(LoadedTarget::pods);
        // The connections go first, so that a service that waits for them to close can end at once.
        self.unload(loader);
        let peak = |service: &Running| (service.name.clone(), service.peak_memory());
        let mut peak_rss_bytes_by_service: BTreeMap<String, u64> =
            services.iter().map(peak).collect();
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
            let name = service.name.clone();
            let stopped = service.stop();
            let leftovers = stopped.leftovers.into_iter();
            let secrets = &self.plan.secrets;
            ended
                .leftovers
                .extend(leftovers.map(|leftover| secrets.mask(None, &leftover.description)));
            ended.output_dropped_bytes += stopped.output_dropped_bytes;
            if stopped.killed > 0 {
                ended.killed.push(name);
            }
        }
        ended
    }
}

/// Where each service listens: on loopback but for the entry, unless it was found elsewhere.
fn addresses(variant: &Variant, entry: IpAddr) -> BTreeMap<String, IpAddr> {
    let found = |service: &Service| service.command().and_then(|command| command.address);
    let default = |service: &Service| {
        if service.name == variant.entry {
            entry
        } else {
            LOOPBACK
        }
    };
    let address = |service: &Service| found(service).unwrap_or_else(|| default(service));
    variant
        .services
        .iter()
        .map(|service| (service.name.clone(), address(service)))
        .collect()
}

/// A target's error with the service's last words and a hint, as people need it.
pub(super) fn failed(error: Error) -> Failure {
    failed_as(EndReason::ServiceFailed, error)
}

/// The same of what is no service.
pub(super) fn failed_as(what: fn(String) -> EndReason, error: Error) -> Failure {
    if *error.blame() == Blame::Cancelled {
        return Failure::INTERRUPTED;
    }
    let last_words = last_words(error.tail().unwrap_or_default());
    Failure::End(what(format!("{error}{last_words}{}", hinted(error.hint()))))
}

/// A service that ended while it was loaded is a failure, however many requests it answered.
pub(super) fn check_alive(service: &mut Running) -> Result<()> {
    let Some(exit) = service.exited() else {
        return Ok(());
    };
    Err(Failure::service(format!(
        "service {} ended with {exit} while it was loaded{}",
        service.name,
        last_words(&service.tail())
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
