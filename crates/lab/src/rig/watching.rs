//! Everything that is read right before a window of load and right after it, and what a slice gets of the difference.
//!
//! Nothing here happens within a window, nor between two turns.

use std::collections::BTreeMap;

use record::{MachineUse, ServiceUse, Slice};
use target::{Running, Sample};

use super::elsewhere::Elsewhere;
use super::keeping::uses;
use super::machine::{Look, TcpCounters};
use super::{Living, Rig, network};

/// What services and machine had counted by one moment.
pub(super) struct View {
    services: Vec<(usize, String, Sample)>,
    /// By variant, of those that are loaded: TCP in the network of its services.
    tcp: BTreeMap<usize, TcpCounters>,
    machine: Look,
}

impl Rig {
    /// Right before these variants are loaded: the machine last, so that what looking costs is little of what it counts.
    pub(super) fn view_before(&mut self, loaded: &[usize]) -> View {
        View { services: self.sample(), tcp: self.tcp(loaded), machine: self.look() }
    }

    /// Right after it: the machine first.
    pub(super) fn view_after(&mut self, loaded: &[usize]) -> View {
        View { machine: self.look(), tcp: self.tcp(loaded), services: self.sample() }
    }

    /// What every living service has used so far, in the order of [`Rig::living`].
    fn sample(&mut self) -> Vec<(usize, String, Sample)> {
        let living = self.living.iter_mut();
        let sampled = living.flat_map(|living| {
            let variant = living.variant;
            living.services.iter_mut().map(move |s| (variant, s.name().to_owned(), s.sample()))
        });
        sampled.collect()
    }

    fn look(&self) -> Look {
        let at_ns = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let services = || self.living.iter().flat_map(|living| &living.services);
        let generators = || self.elsewhere.iter().flat_map(Elsewhere::processes);
        let helpers_ns = || {
            services().map(Running::warden_cpu_ns).sum::<u64>()
                + generators().filter_map(target::process_cpu_ns).sum::<u64>()
        };
        Look::now(at_ns, &self.cpus, &self.quota_files, helpers_ns)
    }

    /// Loopback is one network for all trials; a link is a trial's own.
    fn tcp(&self, variants: &[usize]) -> BTreeMap<usize, TcpCounters> {
        let here = TcpCounters::read();
        let counted = |living: &&Living| {
            let there = || network::at_services(living.network.as_ref(), || Ok(TcpCounters::read()));
            if living.network.is_none() { here } else { there().ok().flatten() }
        };
        let loaded = self.living.iter().filter(|living| variants.contains(&living.variant));
        loaded.filter_map(|living| Some((living.variant, counted(&living)?))).collect()
    }

    /// The files of the quotas that may hold us and the living services back.
    pub(super) fn find_quotas(&mut self) {
        let services = self.living.iter().flat_map(|living| &living.services);
        let pids: Vec<u32> = services.map(Running::pid).collect();
        self.quota_files = target::quota_files(&pids);
    }
}

/// Fills in what services and machine used between two views, during which a slice was made, alone or in turns with others.
pub(super) fn fill(slices: &mut [Slice], before: &View, after: &View, spin_ns: Option<u64>) {
    let all = uses(&before.services, &after.services, |_| true);
    let machine = before.machine.until(&after.machine, cpu_ns(&all));
    for slice in slices {
        slice.services = uses(&before.services, &after.services, |of| of == slice.variant);
        let tcp = before.tcp.get(&slice.variant).zip(after.tcp.get(&slice.variant));
        let tcp = tcp.map(|(before, after)| before.until(after));
        slice.machine = MachineUse { spin_ns, tcp, ..machine.clone() };
    }
}

/// CPU time of the services of all variants but the one that was loaded.
pub(super) fn idle_cpu_ns(before: &View, after: &View, loaded: usize) -> u64 {
    cpu_ns(&uses(&before.services, &after.services, |of| of != loaded))
}

fn cpu_ns(uses: &[ServiceUse]) -> u64 {
    uses.iter().map(|used| used.cpu_ns).sum()
}
