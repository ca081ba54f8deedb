//! The available CPUs, and their division between the load generator and the services.
//!
//! It only computes the division. The warden does the pinning.

use std::io;

use machine::process::parse_list;
use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// CPUs of generator and services.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Division {
    /// CPUs of the load generator.
    pub generator: Vec<usize>,
    /// CPUs of the services.
    pub services: Vec<usize>,
    /// Whether both sides may run on the same CPUs.
    pub shared: bool,
}

/// The CPUs this process may run on, ascending.
pub fn cpus_allowed() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    (0..CpuSet::MAX_CPU)
        .filter(|cpu| set.is_set(*cpu))
        .collect()
}

/// Pins the calling thread, and everything it starts, to these CPUs. An empty list means any CPU.
pub(crate) fn pin(cpus: &[usize]) -> io::Result<()> {
    if cpus.is_empty() {
        return Ok(());
    }
    Ok(sched_setaffinity(None, &set(cpus))?)
}

/// Pins a thread to these CPUs. A thread that has ended meanwhile is no error.
pub(crate) fn pin_thread(thread: u32, cpus: &[usize]) -> io::Result<()> {
    let thread = i32::try_from(thread).ok().and_then(Pid::from_raw);
    match sched_setaffinity(thread, &set(cpus)) {
        Err(Errno::SRCH) => Ok(()),
        result => Ok(result?),
    }
}

fn set(cpus: &[usize]) -> CpuSet {
    let mut set = CpuSet::new();
    cpus.iter()
        .filter(|cpu| **cpu < CpuSet::MAX_CPU)
        .for_each(|cpu| set.set(*cpu));
    set
}

/// Lets the calling thread run on any CPU, with real-time priority if permitted: a thread that must end
/// hundreds of busy processes must not wait among them for a CPU. Processes that it starts do not inherit
/// this.
pub(crate) fn hurry() {
    let any: Vec<usize> = (0..CpuSet::MAX_CPU).collect();
    let _ = pin(&any);
    schedule(libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, 1);
}

/// Gives up real-time scheduling, which services would inherit and with which they would starve the rest of
/// the machine. Returns whether there was any to give up. Call it on the first thread, before there are
/// others.
pub fn give_up_real_time() -> bool {
    // SAFETY: it only reads how this thread is scheduled.
    let now = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) } as libc::c_int;
    let now = now & !libc::SCHED_RESET_ON_FORK;
    matches!(
        now,
        libc::SCHED_FIFO | libc::SCHED_RR | libc::SCHED_DEADLINE
    ) && schedule(libc::SCHED_OTHER, 0)
}

/// Sets the scheduling policy by system call, because musl's function of that name always fails. Returns
/// whether it succeeded.
fn schedule(policy: libc::c_int, priority: libc::c_int) -> bool {
    // SAFETY: the kernel's parameter is one int, which outlives the call. Only the scheduling of this thread
    // changes.
    unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) == 0 }
}

/// The CPUs of the physical core of `cpu`, itself included, as Linux reports them.
pub fn siblings(cpu: usize) -> Vec<usize> {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    let mut list = parse_list(&std::fs::read_to_string(path).unwrap_or_default());
    if !list.contains(&cpu) {
        list.push(cpu);
    }
    list
}

/// Divides `cpus` between generator and services. `asked` is the number of CPUs for the generator.
///
/// One CPU is shared. Two CPUs give one each. From three on the generator gets the requested number and the
/// services the rest, but at least one. The generator takes whole cores from the end of the list. Work on a
/// core slows its sibling, so siblings of the generator's CPUs stay idle as long as the services keep two
/// cores.
pub fn divide(cpus: &[usize], asked: usize, siblings: impl Fn(usize) -> Vec<usize>) -> Division {
    let Some(rest) = cpus.len().checked_sub(1).filter(|rest| *rest > 0) else {
        return Division {
            generator: cpus.to_vec(),
            services: cpus.to_vec(),
            shared: true,
        };
    };
    let wanted = asked.clamp(1, rest);
    let mut cores = cores(cpus, siblings);
    let (mut generator, mut spare) = (Vec::new(), Vec::new());
    while generator.len() < wanted {
        let Some(core) = cores.pop() else { break };
        let take = core.len().min(wanted - generator.len());
        generator.extend(&core[..take]);
        spare.extend(&core[take..]);
    }
    let mut services: Vec<usize> = cores.concat();
    if cores.len() < 2 {
        services.append(&mut spare);
    }
    services.sort_unstable();
    generator.sort_unstable();
    Division {
        generator,
        services,
        shared: false,
    }
}

/// Groups `cpus` by physical core, in the order of the cores' first CPUs.
fn cores(cpus: &[usize], siblings: impl Fn(usize) -> Vec<usize>) -> Vec<Vec<usize>> {
    let mut cores: Vec<Vec<usize>> = Vec::new();
    for &cpu in cpus {
        if cores.iter().flatten().any(|placed| *placed == cpu) {
            continue;
        }
        let family = siblings(cpu);
        cores.push(
            cpus.iter()
                .copied()
                .filter(|other| *other == cpu || family.contains(other))
                .collect(),
        );
    }
    cores
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alone(cpu: usize) -> Vec<usize> {
        vec![cpu]
    }

    #[test]
    fn few_cpus_are_shared_or_halved_and_the_services_always_keep_one() {
        let one = divide(&[5], 1, alone);
        assert!(one.shared && one.generator == [5] && one.services == [5]);
        let two = divide(&[0, 1], 7, alone);
        assert_eq!(
            (two.generator, two.services, two.shared),
            (vec![1], vec![0], false)
        );
        let four = divide(&[0, 1, 2, 3], 1, alone);
        assert_eq!((four.generator, four.services), (vec![3], vec![0, 1, 2]));
        assert_eq!(divide(&[0, 1, 2, 3], 2, alone).services, [0, 1]);
    }

    #[test]
    fn a_sibling_of_the_generator_is_left_idle_unless_the_services_would_starve() {
        let pairs = |cpu: usize| vec![cpu % 4, cpu % 4 + 4];
        let eight = divide(&[0, 1, 2, 3, 4, 5, 6, 7], 1, pairs);
        assert_eq!(
            (eight.generator, eight.services),
            (vec![3], vec![0, 1, 2, 4, 5, 6])
        );
        let one_core = divide(&[0, 4], 1, pairs);
        assert_eq!(
            (one_core.generator, one_core.services, one_core.shared),
            (vec![0], vec![4], false)
        );
    }
}
