//! The services of a trial from start to end, in the order of the plan. It decides nothing else. The caller
//! chooses their addresses.

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
    /// Starts all services of a variant, dependencies first. `entry` is the listen address of the entry
    /// service.
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
            placement.values = self.plan.secrets.values_of_service(service);
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

    /// The processors that a service starts with. If they are chosen by use, it starts with all of them in
    /// every block, because programs count processors when they start.
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

    /// A start that was cancelled without the user's request took longer than permitted.
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
        // No service gets a PORT that a service of any variant was found to listen on.
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

    /// Stops the services of a trial, and returns their state at the end.
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
        // A service with fewer or replaced workers is not the one that was to be measured.
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
        // If their network cannot be entered, only this part is missing.
        let look = at_services(network.as_ref(), look);
        let (processes_by_service, strangers_listening, late_ports) = look.unwrap_or_default();
        let pods = loaded.as_ref().and_then(LoadedTarget::pods);
        // Connections are closed first, so that a service that waits for them can end at once.
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
        // The entry first, then its dependencies.
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

/// The listen address of each service: loopback except for the entry, unless it was found elsewhere.
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

/// The failure of a service, with its last output and a hint.
pub(super) fn failed(error: Error) -> Failure {
    failed_as(EndReason::ServiceFailed, error)
}

/// The failure of a step that is not a service, with its last output and a hint.
pub(super) fn failed_as(what: fn(String) -> EndReason, error: Error) -> Failure {
    if *error.blame() == Blame::Cancelled {
        return Failure::INTERRUPTED;
    }
    let last_words = last_words(error.tail().unwrap_or_default());
    Failure::End(what(format!("{error}{last_words}{}", hinted(error.hint()))))
}

/// Fails if a service ended during the load, regardless of its responses.
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

/// Prefix of the names of a trial's logs.
fn place(start: Start) -> String {
    match start.capture {
        None => format!("block-{:02}", start.block),
        Some(number) => format!("round-{:02}-{number}", start.block),
    }
}
