//! Stacks: counted by address in limited memory during sampling, and resolved and folded at its end, when
//! each symbol table is queried once for all addresses of all processes.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::io::BufReader;

use indexmap::IndexSet;
use machine::process;

use super::records::{PerfRecord, read};
use super::space::{Binaries, Binary, CodeAddress, CodeOrigin, Space, has_address};
use super::symbols;
use crate::read::{KERNEL, MADE, UNKNOWN};
use crate::{NativeFrame, NativeStack};

/// Maximum number of stored addresses over all stacks: 32 MB. A minute of eight busy CPUs has about this
/// number.
const ADDRESSES_MAX: usize = 4 << 20;

const OTHER: &str = "(other)";

/// A thread of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SampledThread {
    pub pid: u32,
    pub tid: u32,
}

/// The kernel's name of a thread. Empty if the thread is gone.
pub(crate) fn thread_name(thread: SampledThread) -> String {
    process::text(thread.pid, &format!("task/{}/comm", thread.tid))
        .trim_end_matches('\n')
        .to_owned()
}

/// The samples of all processes.
#[derive(Debug, Default)]
pub(crate) struct StackTally {
    /// By thread and chain. The empty chain counts samples for which there was no memory.
    counts: HashMap<SampledThread, HashMap<Box<[u64]>, u64>>,
    names: HashMap<SampledThread, String>,
    addresses_left: usize,
    /// Samples lost, by process.
    pub lost: HashMap<u32, u64>,
    /// Number of times the kernel throttled an event.
    pub throttled: u64,
    /// Number of invalid pieces of a ring.
    pub broken: u64,
}

impl StackTally {
    /// An empty tally of threads with these names.
    pub fn of(names: HashMap<SampledThread, String>) -> StackTally {
        StackTally {
            names,
            addresses_left: ADDRESSES_MAX,
            ..StackTally::default()
        }
    }

    /// Adds records of samples of these processes.
    pub fn take(&mut self, bytes: &[u8], pids: &HashSet<u32>) {
        for record in read(bytes) {
            match record {
                // Before Linux 5.13, processes started meanwhile are among them.
                PerfRecord::Sample {
                    pid,
                    tid,
                    address,
                    mut chain,
                } if pids.contains(&pid) => {
                    if !has_address(&chain) {
                        chain = vec![address];
                    }
                    self.add(SampledThread { pid, tid }, &chain);
                }
                PerfRecord::Sample { .. } => {}
                PerfRecord::Lost { pid, count } => *self.lost.entry(pid).or_default() += count,
                PerfRecord::Throttled => self.throttled += 1,
                PerfRecord::Broken => self.broken += 1,
            }
        }
    }

    fn add(&mut self, thread: SampledThread, chain: &[u64]) {
        // Read at once, because the thread may exit before the end.
        self.names
            .entry(thread)
            .or_insert_with(|| thread_name(thread));
        let stacks = self.counts.entry(thread).or_default();
        if let Some(count) = stacks.get_mut(chain) {
            *count += 1;
        } else if let Some(left) = self.addresses_left.checked_sub(chain.len()) {
            self.addresses_left = left;
            stacks.insert(chain.into(), 1);
        } else {
            *stacks.entry(Box::default()).or_default() += 1;
        }
    }

    /// Rereads thread names, which may be set after the start.
    pub fn refresh_names(&mut self) {
        for thread in self.counts.keys() {
            let name = thread_name(*thread);
            if !name.is_empty() {
                self.names.insert(*thread, name);
            }
        }
    }

    /// The stacks of a process with their threads and counts, in a stable order.
    fn of_process(&self, pid: u32) -> Vec<(SampledThread, &[u64], u64)> {
        let of_process = self.counts.iter().filter(|(thread, _)| thread.pid == pid);
        let mut stacks: Vec<_> = of_process
            .flat_map(|(thread, stacks)| {
                stacks
                    .iter()
                    .map(move |(chain, count)| (*thread, &**chain, *count))
            })
            .collect();
        stacks.sort_unstable();
        stacks
    }
}

/// Names of all sampled code.
pub(crate) struct StackNames {
    /// Names of files, by their index.
    modules: Vec<String>,
    /// Names by origin and position. None for the kernel if it hides its addresses.
    known: HashMap<CodeOrigin, HashMap<u64, String>>,
}

impl StackNames {
    pub fn read(tally: &StackTally, spaces: &mut [Space], binaries: Binaries) -> StackNames {
        let mut wanted: HashMap<CodeOrigin, BTreeSet<u64>> = HashMap::new();
        for space in &*spaces {
            for (_, chain, _) in tally.of_process(space.pid) {
                for CodeAddress { origin, at } in space.places(chain) {
                    wanted.entry(origin).or_default().insert(at);
                }
            }
        }
        let mut binaries: Vec<Binary> = binaries.into_values().collect();
        let names = |(origin, wanted): (CodeOrigin, BTreeSet<u64>)| {
            let names = match &origin {
                CodeOrigin::Kernel => {
                    symbols::of_kernel(&fs::read_to_string("/proc/kallsyms").ok()?, &wanted)?
                }
                CodeOrigin::File(index) => {
                    symbols::of_program(binaries[*index].file.take()?, &wanted)
                }
                CodeOrigin::RunTime(pid) => {
                    let file = spaces
                        .iter_mut()
                        .find(|space| space.pid == *pid)?
                        .jit_names
                        .take()?;
                    symbols::of_run_time(BufReader::new(file), &wanted)
                }
                CodeOrigin::Lent(_) | CodeOrigin::Unknown => return None,
            };
            Some((origin, names))
        };
        let known = wanted.into_iter().filter_map(names).collect();
        StackNames {
            modules: binaries.into_iter().map(|binary| binary.module).collect(),
            known,
        }
    }

    /// The functions of a process and its stacks, most samples first, in a stable order. Also returns whether
    /// kernel functions have no names because the kernel hides them.
    pub fn stacks(
        &self,
        tally: &StackTally,
        space: &Space,
    ) -> (Vec<NativeFrame>, Vec<NativeStack>, bool) {
        let mut frames: IndexSet<NativeFrame> = IndexSet::new();
        let mut counts: HashMap<(SampledThread, Vec<u32>), u64> = HashMap::new();
        let mut kernel_hidden = false;
        for (thread, chain, count) in tally.of_process(space.pid) {
            let places = space.places(chain);
            kernel_hidden |= places
                .iter()
                .any(|place| place.origin == CodeOrigin::Kernel)
                && !self.known.contains_key(&CodeOrigin::Kernel);
            let mut stack: Vec<NativeFrame> =
                places.iter().map(|place| self.frame(place)).collect();
            if stack.is_empty() {
                let name = if chain.is_empty() { OTHER } else { UNKNOWN };
                stack.push(NativeFrame {
                    name: name.into(),
                    module: name.into(),
                });
            }
            // Consecutive frames without names are merged into one.
            stack.dedup_by(|next, previous| next == previous && next.name == UNKNOWN);
            // A stack has at most some hundred frames, and there are at most some million of them, so the
            // index fits.
            let stack = stack
                .into_iter()
                .map(|frame| frames.insert_full(frame).0 as u32)
                .collect();
            *counts.entry((thread, stack)).or_default() += count;
        }
        let stack = |((thread, frames), samples): ((SampledThread, Vec<u32>), u64)| {
            let thread_name = tally.names.get(&thread).cloned().unwrap_or_default();
            NativeStack {
                thread: thread.tid,
                thread_name,
                frames,
                samples,
            }
        };
        let mut stacks: Vec<NativeStack> = counts.into_iter().map(stack).collect();
        stacks.sort_unstable_by(|a, b| {
            b.samples
                .cmp(&a.samples)
                .then(a.thread.cmp(&b.thread))
                .then_with(|| a.frames.cmp(&b.frames))
        });
        (frames.into_iter().collect(), stacks, kernel_hidden)
    }

    fn frame(&self, place: &CodeAddress) -> NativeFrame {
        let (unnamed, module) = match &place.origin {
            CodeOrigin::Kernel => (UNKNOWN, KERNEL),
            CodeOrigin::File(index) => (UNKNOWN, self.modules[*index].as_str()),
            CodeOrigin::RunTime(_) => (UNKNOWN, MADE),
            CodeOrigin::Lent(module) => (module.as_str(), module.as_str()),
            CodeOrigin::Unknown => (UNKNOWN, UNKNOWN),
        };
        let name = self
            .known
            .get(&place.origin)
            .and_then(|names| names.get(&place.at));
        NativeFrame {
            name: name.map_or(unnamed, String::as_str).into(),
            module: module.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The threads of a process, and the count of each of their chains.
    fn counted(tally: &StackTally, pid: u32) -> Vec<(u32, &[u64], u64)> {
        tally
            .of_process(pid)
            .into_iter()
            .map(|(thread, chain, count)| (thread.tid, chain, count))
            .collect()
    }

    #[test]
    fn no_sample_is_lost_when_there_is_no_room_for_its_stack() {
        let mut tally = StackTally {
            addresses_left: 4,
            ..StackTally::of(HashMap::new())
        };
        for chain in [&[1, 2][..], &[3, 4], &[5], &[6], &[1, 2]] {
            tally.add(SampledThread { pid: 1, tid: 2 }, chain);
        }
        let of_first: [(u32, &[u64], u64); 3] = [(2, &[], 2), (2, &[1, 2], 2), (2, &[3, 4], 1)];
        assert_eq!(counted(&tally, 1), of_first);
    }

    #[test]
    fn samples_of_other_processes_do_not_count() {
        let mut tally = StackTally::of(HashMap::new());
        let sample = |pid: u32| {
            let body = [
                &0x1000u64.to_ne_bytes()[..],
                &pid.to_ne_bytes(),
                &pid.to_ne_bytes(),
                &[0; 8],
            ]
            .concat();
            [
                &9u32.to_ne_bytes()[..],
                &[0, 0],
                &(8 + body.len() as u16).to_ne_bytes(),
                &body,
            ]
            .concat()
        };
        let bytes = [sample(u32::MAX), sample(5), sample(u32::MAX)].concat();
        tally.take(&bytes, &HashSet::from([u32::MAX]));
        assert!(tally.of_process(5).is_empty());
        // A sample without a chain uses its address.
        assert_eq!(counted(&tally, u32::MAX), [(u32::MAX, &[0x1000][..], 2)]);
    }

    /// Stacks of this process, from addresses that are code, not code, or invented.
    #[test]
    fn stacks_end_where_they_lead_to_no_code_and_equal_ones_are_folded() {
        let pid = std::process::id();
        let (user, here) = ((-512i64) as u64, thread_name as *const () as u64 + 8);
        let thread = SampledThread { pid, tid: pid };
        let mut tally = StackTally::of(HashMap::from([(thread, "main".to_owned())]));
        // A call from that function, then garbage, then an address that would be code again.
        tally.add(thread, &[user, here, 0x10, here]);
        tally.add(thread, &[user, here + 1]);
        tally.add(thread, &[user, 0x10]);
        let mut binaries = Binaries::default();
        let mut spaces = [Space::of(pid, &mut binaries)];
        let names = StackNames::read(&tally, &mut spaces, binaries);
        let (frames, found, kernel_hidden) = names.stacks(&tally, &spaces[0]);
        let name = |index: &u32| frames[*index as usize].name.as_str();
        let stacks: Vec<(Vec<&str>, u64)> = found
            .iter()
            .map(|of| (of.frames.iter().map(name).collect(), of.samples))
            .collect();
        assert!(
            matches!(&stacks[0], (names, 2) if names.len() == 1 && names[0].ends_with("stacks::thread_name")),
            "{stacks:?}"
        );
        assert_eq!(stacks[1..], [(vec![UNKNOWN], 1)]);
        assert!(!kernel_hidden && found[0].thread_name == "main");
    }
}
