//! Addresses → frames with names: asks each symbol table once for all addresses of all processes, then folds stacks that have become
//! equal. It samples nothing.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io::BufReader;

use crate::perf::binaries::Binaries;
use crate::perf::chain::{Step, steps};
use crate::perf::space::{Place, Space};
use crate::perf::tally::{Tally, Thread};
use crate::perf::{elf, jit, kallsyms};
use crate::{NativeFrame, NativeStack};

const KERNEL: &str = "[kernel]";
const RUN_TIME: &str = "[jit]";
const UNKNOWN: &str = "[unknown]";
const OTHER: &str = "(other)";

/// Names of everything that was seen.
pub(crate) struct Names {
    /// `None` where the kernel hides its own.
    kernel: Option<HashMap<u64, String>>,
    /// By file: its name, and its functions by their place in it.
    binaries: Vec<(String, HashMap<u64, String>)>,
    /// Code made at run time, by process.
    run_time: HashMap<u32, HashMap<u64, String>>,
}

/// Stacks of a process by name.
pub(crate) struct Named {
    pub frames: Vec<NativeFrame>,
    pub stacks: Vec<NativeStack>,
    /// Whether kernel functions are without names because the kernel hides them.
    pub kernel_hidden: bool,
}

/// Addresses that names are wanted for.
#[derive(Default)]
struct Wanted {
    kernel: BTreeSet<u64>,
    binaries: HashMap<usize, BTreeSet<u64>>,
    run_time: HashMap<u32, BTreeSet<u64>>,
}

impl Wanted {
    fn add(&mut self, pid: u32, place: Place) {
        let (addresses, address) = match place {
            Place::Kernel(address) => (&mut self.kernel, address),
            Place::Binary { binary, offset } => (self.binaries.entry(binary).or_default(), offset),
            Place::RunTime(address) => (self.run_time.entry(pid).or_default(), address),
            Place::Lent(_) | Place::Unknown => return,
        };
        addresses.insert(address);
    }
}

impl Names {
    /// Reads the names of all that was seen in these processes.
    pub(crate) fn read(tally: &Tally, spaces: &mut [Space], binaries: Binaries) -> Names {
        let mut wanted = Wanted::default();
        for space in &*spaces {
            for (_, chain, _) in tally.of(space.pid) {
                places(chain, space).into_iter().for_each(|place| wanted.add(space.pid, place));
            }
        }
        let named = |(index, binary): (usize, crate::perf::binaries::Binary)| {
            let offsets = wanted.binaries.get(&index);
            let names = offsets.zip(binary.file).map(|(offsets, file)| elf::names(file, offsets));
            (binary.module, names.unwrap_or_default())
        };
        let binaries = binaries.into_list().into_iter().enumerate().map(named).collect();
        Names {
            kernel: kernel_names(&wanted.kernel),
            binaries,
            run_time: run_time_names(spaces, &wanted.run_time),
        }
    }

    /// The stacks of a process.
    pub(crate) fn stacks(&self, tally: &Tally, space: &Space, threads: &HashMap<Thread, String>) -> Named {
        let mut frames = Frames::default();
        let mut counts: HashMap<(Thread, Vec<u32>), u64> = HashMap::new();
        let mut kernel_seen = false;
        for (thread, chain, count) in tally.of(space.pid) {
            let places = places(chain, space);
            kernel_seen |= places.iter().any(|place| matches!(place, Place::Kernel(_)));
            let mut stack: Vec<u32> =
                places.iter().map(|place| frames.index(self.frame(space.pid, place))).collect();
            if stack.is_empty() {
                let name = if chain.is_empty() { OTHER } else { UNKNOWN };
                stack.push(frames.index(frame(name, name)));
            }
            // Many steps through code without names say no more than one.
            stack.dedup_by(|next, previous| next == previous && frames.is_nameless(*next));
            *counts.entry((thread, stack)).or_default() += count;
        }
        let kernel_hidden = kernel_seen && self.kernel.is_none();
        Named { frames: frames.list, stacks: ordered(counts, threads), kernel_hidden }
    }

    fn frame(&self, pid: u32, place: &Place) -> NativeFrame {
        match place {
            Place::Kernel(address) => {
                let name = self.kernel.as_ref().and_then(|names| names.get(address));
                frame(name.map_or(KERNEL, String::as_str), KERNEL)
            }
            Place::Binary { binary, offset } => {
                let known = self.binaries.get(*binary);
                let name = known.and_then(|(_, names)| names.get(offset));
                frame(name.map_or(UNKNOWN, String::as_str), known.map_or(UNKNOWN, |(module, _)| module))
            }
            Place::RunTime(address) => {
                let name = self.run_time.get(&pid).and_then(|names| names.get(address));
                frame(name.map_or(RUN_TIME, String::as_str), RUN_TIME)
            }
            Place::Lent(module) => frame(module, module),
            Place::Unknown => frame(UNKNOWN, UNKNOWN),
        }
    }
}

/// What a chain leads through, the root first.
fn places(chain: &[u64], space: &Space) -> Vec<Place> {
    let mut places = Vec::with_capacity(chain.len());
    for step in steps(chain) {
        match step {
            Step::Kernel(address) => places.push(Place::Kernel(address)),
            Step::User { address, certain } => match space.place(address) {
                // Compiled code without frame pointers keeps other things in that register. What does not lead to code is such
                // a thing, and so is all that seems to lie behind it.
                Place::Unknown if !certain => break,
                place => places.push(place),
            },
        }
    }
    places.reverse();
    places
}

fn kernel_names(wanted: &BTreeSet<u64>) -> Option<HashMap<u64, String>> {
    if wanted.is_empty() {
        return Some(HashMap::new());
    }
    kallsyms::names(&fs::read_to_string("/proc/kallsyms").ok()?, wanted)
}

fn run_time_names(
    spaces: &mut [Space],
    wanted: &HashMap<u32, BTreeSet<u64>>,
) -> HashMap<u32, HashMap<u64, String>> {
    let names = spaces.iter_mut().filter_map(|space| {
        let (addresses, file) = wanted.get(&space.pid).zip(space.jit_names.take())?;
        Some((space.pid, jit::names(BufReader::new(file), addresses)))
    });
    names.collect()
}

fn frame(name: &str, module: &str) -> NativeFrame {
    NativeFrame { name: name.to_owned(), module: module.to_owned() }
}

/// The frames of a process, each once.
#[derive(Default)]
struct Frames {
    list: Vec<NativeFrame>,
    known: HashMap<NativeFrame, u32>,
}

impl Frames {
    fn index(&mut self, frame: NativeFrame) -> u32 {
        // A stack has at most some hundred frames and there are at most some million of them: they fit.
        let next = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        let index = *self.known.entry(frame.clone()).or_insert(next);
        if index == next {
            self.list.push(frame);
        }
        index
    }

    fn is_nameless(&self, index: u32) -> bool {
        let frame = self.list.get(index as usize);
        frame.is_some_and(|frame| [KERNEL, RUN_TIME, UNKNOWN].contains(&frame.name.as_str()))
    }
}

/// Those with most samples first; in an order that is the same each time.
fn ordered(counts: HashMap<(Thread, Vec<u32>), u64>, threads: &HashMap<Thread, String>) -> Vec<NativeStack> {
    let stack = |((thread, frames), samples): ((Thread, Vec<u32>), u64)| NativeStack {
        thread: thread.tid,
        thread_name: threads.get(&thread).cloned().unwrap_or_default(),
        frames,
        samples,
    };
    let mut stacks: Vec<NativeStack> = counts.into_iter().map(stack).collect();
    stacks.sort_unstable_by(|a, b| {
        b.samples.cmp(&a.samples).then(a.thread.cmp(&b.thread)).then_with(|| a.frames.cmp(&b.frames))
    });
    stacks
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stacks of this very process, from addresses that are surely code, surely not, and made up.
    #[test]
    fn stacks_end_where_they_lead_to_no_code_and_equal_ones_are_folded() {
        let pid = std::process::id();
        let (user, here) = ((-512i64) as u64, places as *const () as u64 + 8);
        let thread = Thread { pid, tid: pid };
        let mut tally = Tally::default();
        // A call from this function, then garbage, then what would be code again.
        tally.add(thread, &[user, here, 0x10, here]);
        tally.add(thread, &[user, here + 1]);
        tally.add(thread, &[user, 0x10]);
        let mut binaries = Binaries::default();
        let mut spaces = [Space::of(pid, &mut binaries)];
        let names = Names::read(&tally, &mut spaces, binaries);
        let named = names.stacks(&tally, &spaces[0], &HashMap::from([(thread, "main".to_owned())]));
        let stacks: Vec<(Vec<&str>, u64)> = named
            .stacks
            .iter()
            .map(|stack| {
                (
                    stack.frames.iter().map(|index| &*named.frames[*index as usize].name).collect(),
                    stack.samples,
                )
            })
            .collect();
        assert_eq!(stacks.len(), 2, "{stacks:?}");
        assert!(
            stacks[0].0.len() == 1 && stacks[0].0[0].ends_with("naming::places") && stacks[0].1 == 2,
            "{stacks:?}"
        );
        assert_eq!(stacks[1], (vec![UNKNOWN], 1));
        assert!(!named.kernel_hidden && named.stacks[0].thread_name == "main");
    }
}
