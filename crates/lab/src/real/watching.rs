//! Everything that is read right before a window of load and right after it, and what a slice gets of the difference.
//!
//! Nothing here happens within a window, nor between two turns. Machines elsewhere look while this one does, at most a way there and back
//! away from the load.

use std::collections::BTreeMap;
use std::sync::Arc;

use machine::groups::quota_files;
use machine::process::cpu_ns as process_cpu_ns;
use machine::{Look, TcpCounters};
use record::{MachineUse, ServiceUse, Slice};
use remote::services::{First, HostView, PendingView, RemoteHost, ServiceHandle, ServiceView};
use services::{Running, Sample};

use super::elsewhere::Elsewhere;
use super::keeping::{Sampled, uses};
use super::services::{check_alive, failed_on};
use super::{Living, RealEnvironment, network};
use crate::environment::{Failure, Result};

/// What services and machines had counted by one moment.
pub(super) struct View {
    services: Vec<Sampled>,
    /// By variant, of those that are loaded: TCP in the network of its entry.
    tcp: BTreeMap<usize, TcpCounters>,
    /// Of this machine; `None` where nothing of the run is at work here, so that what it does is nobody's business.
    machine: Option<Look>,
    /// Of each machine elsewhere on which services live.
    hosts: BTreeMap<String, HostView>,
}

impl RealEnvironment {
    /// Right before these variants are loaded: the machine last, so that what looking costs is little of what it counts.
    pub(super) fn view_before(&mut self, loaded: &[usize]) -> Result<View> {
        let hosts = self.at_work();
        let asked = self.ask(&hosts, First::Services)?;
        let samples = self.sample();
        let seen = self.finish(asked)?;
        let services = self.joined(samples, &seen)?;
        let services = self.with_watched(services);
        let (tcp, machine) = (self.tcp(loaded, &seen), self.look());
        Ok(View { services, tcp, machine, hosts: seen })
    }

    /// Right after it: the machine first.
    pub(super) fn view_after(&mut self, loaded: &[usize]) -> Result<View> {
        let hosts = self.at_work();
        let asked = self.ask(&hosts, First::Machine)?;
        let (machine, mut tcp) = (self.look(), self.tcp(loaded, &BTreeMap::new()));
        let samples = self.sample();
        let watched = self.with_watched(Vec::new());
        let seen = self.finish(asked)?;
        tcp.extend(self.tcp_elsewhere(loaded, &seen));
        let mut services = self.joined(samples, &seen)?;
        services.extend(watched);
        Ok(View { services, tcp, machine, hosts: seen })
    }

    /// These, and behind them what every living trial has used that loads processes which ran already and may be seen.
    fn with_watched(&mut self, mut services: Vec<Sampled>) -> Vec<Sampled> {
        services.extend(self.living.iter_mut().filter_map(|living| {
            let (service, sample) = living.loaded.as_mut()?.sampled()?;
            Some(Sampled { variant: living.variant, service: service.to_owned(), host: None, sample })
        }));
        services
    }

    /// The other machines with living services.
    fn at_work(&self) -> Vec<Arc<RemoteHost>> {
        let mut hosts: Vec<Arc<RemoteHost>> = Vec::new();
        for service in self.living.iter().flat_map(|living| &living.services) {
            if let ServiceHandle::There(remote) = service
                && !hosts.iter().any(|known| Arc::ptr_eq(known, remote.host()))
            {
                hosts.push(Arc::clone(remote.host()));
            }
        }
        hosts
    }

    fn ask<'a>(&self, hosts: &'a [Arc<RemoteHost>], first: First) -> Result<Vec<PendingView<'a>>> {
        let ask = |host: &'a Arc<RemoteHost>| host.view(first, first == First::Services);
        hosts.iter().map(ask).collect::<Result<_, _>>().map_err(|error| self.lost(error))
    }

    fn finish(&self, asked: Vec<PendingView<'_>>) -> Result<BTreeMap<String, HostView>> {
        let finish = |viewing: PendingView<'_>| Ok((viewing.host().to_owned(), viewing.finish()?));
        asked.into_iter().map(finish).collect::<Result<_, _>>().map_err(|error| self.lost(error))
    }

    /// What every living service here has used so far, in the order of [`RealEnvironment::living`]; `None` of those elsewhere.
    fn sample(&mut self) -> Vec<Option<Sample>> {
        let services = self.living.iter_mut().flat_map(|living| &mut living.services);
        let sampled = services.map(|service| match service {
            ServiceHandle::Here(running) => Some(running.sample()),
            ServiceHandle::There(_) => None,
        });
        sampled.collect()
    }

    /// The same with those elsewhere, as their machines saw them. One that ended there is a failure, and told by nothing else.
    fn joined(
        &mut self,
        samples: Vec<Option<Sample>>,
        seen: &BTreeMap<String, HostView>,
    ) -> Result<Vec<Sampled>> {
        let services = self.living.iter_mut().flat_map(|living| {
            let variant = living.variant;
            living.services.iter_mut().map(move |service| (variant, service))
        });
        let joined = services.zip(samples).map(|((variant, service), sample)| {
            let sample = sample.map_or_else(|| seen_there(service, seen), Ok)?;
            let host = service.host().map(str::to_owned);
            Ok(Sampled { variant, service: service.name().to_owned(), host, sample })
        });
        joined.collect()
    }

    fn look(&self) -> Option<Look> {
        let services =
            || self.living.iter().flat_map(|living| &living.services).filter_map(ServiceHandle::here);
        if self.plan.generators.local == 0 && services().next().is_none() {
            return None;
        }
        let generators = || self.elsewhere.iter().flat_map(Elsewhere::processes);
        let helpers_ns = || {
            services().map(Running::warden_cpu_ns).sum::<u64>()
                + generators().filter_map(process_cpu_ns).sum::<u64>()
        };
        Some(Look::now(&self.cpus, &self.quota_files, helpers_ns))
    }

    /// Loopback is one network for all trials; a link is a trial's own. An entry elsewhere has its machine's.
    fn tcp(&self, loaded: &[usize], seen: &BTreeMap<String, HostView>) -> BTreeMap<usize, TcpCounters> {
        let here = TcpCounters::read();
        let counted = |living: &&Living| {
            let there = || network::at_services(living.network.as_ref(), || Ok(TcpCounters::read()));
            if living.network.is_none() { here } else { there().ok().flatten() }
        };
        let living = self.living.iter().filter(|living| loaded.contains(&living.variant));
        // Of a cluster's nodes nothing is told.
        let living = living.filter(|living| living.entry_host().is_none() && living.loaded.is_none());
        let counted = living.filter_map(|living| Some((living.variant, counted(&living)?)));
        counted.chain(self.tcp_elsewhere(loaded, seen)).collect()
    }

    fn tcp_elsewhere(
        &self,
        loaded: &[usize],
        seen: &BTreeMap<String, HostView>,
    ) -> BTreeMap<usize, TcpCounters> {
        let living = self.living.iter().filter(|living| loaded.contains(&living.variant));
        let counted = |living: &Living| seen.get(living.entry_host()?)?.tcp;
        living.filter_map(|living| Some((living.variant, counted(living)?))).collect()
    }

    /// The files of the quotas that may hold us and the living services back.
    pub(super) fn find_quotas(&mut self) {
        let services = self.living.iter().flat_map(|living| &living.services);
        let pids: Vec<u32> = services.filter_map(|service| service.here()).map(Running::pid).collect();
        self.quota_files = quota_files(&pids);
    }

    /// A machine that is lost, with what ran there.
    fn lost(&self, error: services::Error) -> Failure {
        failed_on(error, self.living.iter().flat_map(|living| &living.services))
    }
}

/// What a service elsewhere had used when its machine was seen.
fn seen_there(service: &mut ServiceHandle, seen: &BTreeMap<String, HostView>) -> Result<Sample> {
    let sample = match service {
        ServiceHandle::Here(_) => None,
        ServiceHandle::There(remote) => {
            let view = seen.get(remote.host().name());
            let is_it = |found: &&ServiceView| found.number == remote.number();
            let found = view.and_then(|view| view.services.iter().find(is_it));
            found.map(|found| {
                remote.update(found);
                found.sample.clone()
            })
        }
    };
    check_alive(service)?;
    sample.ok_or_else(|| {
        Failure::Service(format!("service {}: its machine tells nothing of it", service.name()))
    })
}

/// Fills in what services and machines used between two views, during which a slice was made, alone or in turns with others.
pub(super) fn fill(slices: &mut [Slice], before: &View, after: &View, spin_ns: Option<u64>) {
    let used_on = |host: Option<&str>| {
        cpu_ns(&uses(&before.services, &after.services, |of| of.host.as_deref() == host))
    };
    let here = before.machine.as_ref().zip(after.machine.as_ref());
    let machine = here.map(|(before, after)| before.until(after, used_on(None))).unwrap_or_default();
    let spin_ns = spin_ns.filter(|_| here.is_some());
    let there = |(host, before): (&String, &HostView)| {
        let machine = before.machine.until(&after.hosts.get(host)?.machine, used_on(Some(host)));
        Some((host.clone(), MachineUse { spin_ns: before.spin_ns, ..machine }))
    };
    let hosts: BTreeMap<String, MachineUse> = before.hosts.iter().filter_map(there).collect();
    for slice in slices {
        slice.services = uses(&before.services, &after.services, |of| of.variant == slice.variant);
        let tcp = before.tcp.get(&slice.variant).zip(after.tcp.get(&slice.variant));
        let tcp = tcp.map(|(before, after)| before.until(after));
        slice.machine = MachineUse { spin_ns, tcp, hosts: hosts.clone(), ..machine.clone() };
    }
}

/// CPU time of the services of all variants but the one that was loaded.
pub(super) fn idle_cpu_ns(before: &View, after: &View, loaded: usize) -> u64 {
    cpu_ns(&uses(&before.services, &after.services, |of| of.variant != loaded))
}

fn cpu_ns(uses: &[ServiceUse]) -> u64 {
    uses.iter().map(|used| used.cpu_ns).sum()
}
