//! Use of processors and connections by services and generators, and whether a service was at its limit. Pure.

use std::collections::BTreeSet;

use model::thresholds::THROTTLED_SHARE_MAX;
use record::{Record, ServiceUse, Slice, SliceKind, Trial, TrialStarted};

use crate::only_if;
use crate::sums::{mean, total};

/// Share of a core above which a generator thread may have been the limit.
pub(crate) const GENERATOR_SHARE_MAX: f64 = 0.85;
/// Maximum share of the due requests that find no free connection.
pub(crate) const QUEUED_SHARE_MAX: f64 = 0.01;
/// Share of the available CPU time below which services did not limit the throughput. Services at their limit
/// used 0.88 and more in our measurements, whatever the host took. Values between are not reported.
pub(crate) const SATURATED_MIN: f64 = 0.7;
/// Share from which services are near their limit. Values between this and [`SATURATED_MIN`] count as waiting
/// if another variant waits.
pub(crate) const NEAR_MIN: f64 = 0.8;
/// Share from which services limit a trial.
const LIMITING_MIN: f64 = 0.85;
/// CPU share above which a process has several threads, and may not have wanted more.
const ONE_THREAD_MAX: f64 = 1.1;

/// Whether the resource use of a variant is unknown: it is already deployed and cannot be observed.
pub(crate) fn is_unseen<'a>(
    plan: &plan::Variant,
    trials: impl IntoIterator<Item = &'a TrialStarted>,
) -> bool {
    plan.runs_already() && trials.into_iter().all(|of| of.services.is_empty())
}

/// Whether an unobservable service, such as a pod, worked on this machine in any of these trials. Its
/// resource use cannot be separated from that of other processes.
pub fn works_unseen<'a>(trials: impl IntoIterator<Item = &'a TrialStarted>) -> bool {
    let is_here = |trial: &TrialStarted| trial.deployed.as_ref().is_some_and(|of| of.is_here);
    trials
        .into_iter()
        .any(|trial| trial.services.is_empty() && is_here(trial))
}

/// Time under load, including drains, in nanoseconds. At least 1.
pub(crate) fn wall_ns(slices: &[&Slice]) -> f64 {
    total(slices, |slice| slice.counts.wall_ns()).max(1) as f64
}

/// Number of processors that a run could use: the number counted at its start, or the number that processes of
/// these trials were pinned to, whichever is larger. A CPU quota can reduce the counted number.
pub fn processors<'a>(counted: usize, trials: impl IntoIterator<Item = &'a TrialStarted>) -> usize {
    let pinned = trials.into_iter().flat_map(|trial| {
        let services = trial.services.iter();
        services
            .flat_map(|service| &service.cpus)
            .chain(&trial.generator_cpus)
    });
    pinned.collect::<BTreeSet<_>>().len().max(counted).max(1)
}

/// Number of cores that services are confined to. None if they may use all, or share them with the generator.
pub(crate) fn confined_cores(machine: usize, started: &TrialStarted) -> Option<usize> {
    let own = cpus(started);
    let is_confined = !started.cpus_shared && own < machine.max(1);
    (own > 0 && is_confined).then_some(own)
}

/// Cores that the confined services of a trial wanted during its measured slices. `None` if they are not
/// confined, or no request succeeded.
pub(crate) fn wanted_confined<'a>(
    machine: usize,
    started: &TrialStarted,
    measured: impl Iterator<Item = &'a Slice>,
) -> Option<f64> {
    confined_cores(machine, started)?;
    let slices = &successful(measured)[..];
    (!slices.is_empty()).then(|| {
        ProcessorUse {
            machine,
            started,
            slices,
        }
        .cores_wanted()
    })
}

/// Cores that the services of a variant wanted in its latest unmeasured closed loop: the time that their
/// threads ran or waited for a core, over the elapsed time. A single thread never wants more than one,
/// however busy the machine is. None if no request succeeded, or if its processes are not visible.
pub fn cores_wanted(record: &Record, variant: usize) -> Option<f64> {
    let trial = record
        .trials()
        .rev()
        .find(|trial| trial.variant() == variant)?;
    let plan = record.header.plan.variants.get(variant)?;
    only_if(!is_unseen(plan, [&trial.started]))?;
    let is_pilot = |slice: &&Slice| slice.kind.prepares() && slice.counts.open.is_none();
    let slice = trial.slices.iter().rfind(is_pilot)?;
    only_if(slice.counts.successful > 0)?;
    let wanted_ns: u64 = slice
        .services
        .iter()
        .map(|used| used.cpu_ns + used.run_delay_ns)
        .sum();
    Some(wanted_ns as f64 / wall_ns(&[slice]))
}

/// Slices in which any request succeeded.
pub(crate) fn successful<'a>(slices: impl Iterator<Item = &'a Slice>) -> Vec<&'a Slice> {
    slices.filter(|slice| slice.counts.successful > 0).collect()
}

/// The second half of the warm-up. In the first half, compilation uses processors that are idle later.
pub(crate) fn warmed(trial: &Trial) -> Vec<&Slice> {
    let of = |slice: &&Slice| slice.kind == SliceKind::WarmUp && slice.counts.successful > 0;
    let mut all: Vec<&Slice> = trial.slices.iter().filter(of).collect();
    all.split_off(all.len() / 2)
}

/// Whether the generator was at its limit, or a quota throttled the services.
pub(crate) fn is_at_limit(slices: &[&Slice]) -> bool {
    let held = |slice: &Slice| {
        slice
            .machine
            .throttled_ns
            .max(slice.services_throttled_ns())
    };
    let held_ns = total(slices, held);
    generator_share(slices) > GENERATOR_SHARE_MAX
        || held_ns as f64 > THROTTLED_SHARE_MAX * wall_ns(slices)
}

/// Share of its core that the busiest generator thread used, as the mean over slices.
pub(crate) fn generator_share(slices: &[&Slice]) -> f64 {
    mean(
        slices
            .iter()
            .filter_map(|slice| slice.counts.generator.busiest_share()),
    )
    .unwrap_or(0.0)
}

/// How close the services were to a limit in these slices of a trial.
pub(crate) fn busy(machine: usize, started: &TrialStarted, slices: &[&Slice]) -> f64 {
    let used = ProcessorUse {
        machine,
        started,
        slices,
    };
    used.cores_busy().max(used.process_busy())
}

/// Whether services were the limit in these slices of a trial: they used all of their processors, or one
/// process used one whole processor.
pub(crate) fn services_limited(machine: usize, started: &TrialStarted, slices: &[&Slice]) -> bool {
    let used = ProcessorUse {
        machine,
        started,
        slices,
    };
    let one_thread = LIMITING_MIN..=ONE_THREAD_MAX;
    used.cores_busy() >= LIMITING_MIN || one_thread.contains(&used.process_busy())
}

/// Whether more than half of the values are true.
pub(crate) fn most(of: impl Iterator<Item = bool>) -> bool {
    let (yes, all) = of.fold((0, 0), |(yes, all), is| (yes + usize::from(is), all + 1));
    2 * yes > all
}

/// Processor time that the services of a trial used in these slices.
pub(crate) struct ProcessorUse<'a> {
    /// Number of processors of the machine.
    pub machine: usize,
    pub started: &'a TrialStarted,
    pub slices: &'a [&'a Slice],
}

impl ProcessorUse<'_> {
    /// How close one process was to the limit of one processor, the maximum for a program with one thread.
    ///
    /// CPU time taken by the host counts as taken from this process, which errs on the side of no finding.
    fn process_busy(&self) -> f64 {
        let by_process = self
            .busiest_process_ns()
            .unwrap_or_else(|| self.wanted_ns()) as f64;
        by_process / wall_ns(self.slices) / (1.0 - self.steal_share()).max(0.1)
    }

    /// CPU time wanted by all services, relative to the CPU time available to them: 1 is at the limit.
    /// Waiting for a processor counts as use, as far as others used the processor.
    pub(crate) fn cores_busy(&self) -> f64 {
        let wall = wall_ns(self.slices);
        let shared = self.started.cpus_shared;
        let client_ns = if shared {
            total(self.slices, Slice::client_cpu_here_ns)
        } else {
            0
        };
        let others_ns = self.others_cpu_ns();
        // Threads of one service that wait for each other do not want more than its processors provide.
        let wanted = self
            .wanted_ns()
            .min(self.sum(|used| used.cpu_ns) + others_ns + client_ns);
        let machine = self.machine.max(1) as f64;
        let cores = cpus(self.started).max(1) as f64;
        let left =
            (cores - self.steal_share() * machine - client_ns as f64 / wall).max(cores * 0.1);
        wanted as f64 / wall / left
    }

    fn sum(&self, of: fn(&ServiceUse) -> u64) -> u64 {
        total(self.slices, |slice| slice.services.iter().map(of).sum())
    }

    /// Cores that the services wanted: the time that their threads ran or waited for each other to release a
    /// core, over the elapsed time. Waits during which other processes may have used the core do not count.
    fn cores_wanted(&self) -> f64 {
        let waited_ns = self
            .sum(|used| used.run_delay_ns)
            .saturating_sub(self.others_cpu_ns());
        (self.sum(|used| used.cpu_ns) + waited_ns) as f64 / wall_ns(self.slices)
    }

    /// CPU time of processes outside the trial.
    fn others_cpu_ns(&self) -> u64 {
        total(self.slices, |slice| {
            slice.machine.strangers_cpu_ns + slice.machine.idle_trials_cpu_ns
        })
    }

    /// CPU time of the services, plus their waiting time for a processor.
    fn wanted_ns(&self) -> u64 {
        self.sum(|used| used.cpu_ns + used.run_delay_ns)
    }

    fn steal_share(&self) -> f64 {
        let shares = self.slices.iter().map(|slice| slice.machine.steal_share);
        shares.sum::<f64>() / self.slices.len().max(1) as f64
    }

    /// CPU time of the busiest process. `None` without CPU time per process.
    fn busiest_process_ns(&self) -> Option<u64> {
        let mut services = self.slices.iter().flat_map(|slice| &slice.services);
        only_if(services.all(|used| !used.cpu_by_process_ns.is_empty() || used.cpu_ns == 0))?;
        let first = |used: &ServiceUse| used.cpu_by_process_ns.first().copied();
        Some(total(self.slices, |slice| {
            slice.services.iter().filter_map(first).max().unwrap_or(0)
        }))
    }
}

/// Number of processors that the services of a trial may use. 0 if unknown.
pub(crate) fn cpus(started: &TrialStarted) -> usize {
    let services = started.services.iter();
    services
        .flat_map(|service| &service.cpus)
        .collect::<BTreeSet<_>>()
        .len()
}
