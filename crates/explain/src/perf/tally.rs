//! Stacks counted, in bounded memory. Addresses only; what they are called is asked at the end.

use std::collections::HashMap;

/// Addresses kept, of all stacks together: 32 MB of them. A minute of eight busy CPUs has about as many.
const ADDRESSES_MAX: usize = 4 << 20;
/// Threads kept apart.
const THREADS_MAX: usize = 1 << 16;

/// A thread of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Thread {
    /// Its process.
    pub pid: u32,
    /// Its own number.
    pub tid: u32,
}

/// What was sampled of all processes.
#[derive(Debug)]
pub(crate) struct Tally {
    /// By thread and chain. The empty chain is of those that there was no room for.
    counts: HashMap<Thread, HashMap<Box<[u64]>, u64>>,
    addresses: usize,
    addresses_max: usize,
    threads_max: usize,
    /// Samples lost, by process.
    pub lost: HashMap<u32, u64>,
    /// How often the kernel held an event back.
    pub throttled: u64,
    /// Pieces of a ring that were no records.
    pub broken: u64,
}

impl Default for Tally {
    fn default() -> Tally {
        Tally::bounded(ADDRESSES_MAX, THREADS_MAX)
    }
}

impl Tally {
    fn bounded(addresses_max: usize, threads_max: usize) -> Tally {
        Tally {
            counts: HashMap::new(),
            addresses: 0,
            addresses_max,
            threads_max,
            lost: HashMap::new(),
            throttled: 0,
            broken: 0,
        }
    }

    /// Counts a sample. Whether it is the first of its thread.
    pub(crate) fn add(&mut self, thread: Thread, chain: &[u64]) -> bool {
        let is_new = !self.counts.contains_key(&thread);
        // A service that starts threads without end: the rest of them count as the process itself.
        let crowded = is_new && self.counts.len() >= self.threads_max;
        let thread = if crowded { Thread { tid: thread.pid, ..thread } } else { thread };
        let stacks = self.counts.entry(thread).or_default();
        if let Some(count) = stacks.get_mut(chain) {
            *count += 1;
        } else if self.addresses + chain.len() <= self.addresses_max {
            self.addresses += chain.len();
            stacks.insert(chain.into(), 1);
        } else {
            *stacks.entry(Box::default()).or_default() += 1;
        }
        is_new && !crowded
    }

    /// The stacks of a process with their threads and counts, in an order that is the same each time.
    pub(crate) fn of(&self, pid: u32) -> Vec<(Thread, &[u64], u64)> {
        let of_process = self.counts.iter().filter(|(thread, _)| thread.pid == pid);
        let mut stacks: Vec<_> = of_process
            .flat_map(|(thread, stacks)| stacks.iter().map(move |(chain, count)| (*thread, &**chain, *count)))
            .collect();
        stacks.sort_unstable();
        stacks
    }

    /// The threads that were seen.
    pub(crate) fn threads(&self) -> impl Iterator<Item = Thread> + '_ {
        self.counts.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_sample_is_lost_when_there_is_no_room_for_its_stack() {
        let thread = Thread { pid: 1, tid: 2 };
        let mut tally = Tally::bounded(4, 10);
        assert!(tally.add(thread, &[1, 2]));
        assert!(!tally.add(thread, &[3, 4]));
        tally.add(thread, &[5]);
        tally.add(thread, &[6]);
        tally.add(thread, &[1, 2]);
        let expected: Vec<(Thread, &[u64], u64)> =
            vec![(thread, &[], 2), (thread, &[1, 2], 2), (thread, &[3, 4], 1)];
        assert_eq!(tally.of(1), expected);
        assert!(tally.of(2).is_empty());
    }

    #[test]
    fn threads_without_end_count_as_their_process() {
        let mut tally = Tally::bounded(100, 2);
        for tid in [1, 2, 3, 4] {
            tally.add(Thread { pid: 1, tid }, &[9]);
        }
        let counts: Vec<(u32, u64)> =
            tally.of(1).iter().map(|(thread, _, count)| (thread.tid, *count)).collect();
        assert_eq!(counts, [(1, 3), (2, 1)]);
    }
}
