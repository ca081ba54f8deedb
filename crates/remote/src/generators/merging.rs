//! One slice made of those of several generators, each taken in as it comes: what grows with their number is a part and a thread's times.

use load::Slice;

use super::Part;

/// The sum so far.
#[derive(Debug, Default)]
pub(crate) struct Merging {
    slice: Slice,
    arrived: Vec<Arrived>,
}

/// What is kept of each by itself.
#[derive(Debug)]
struct Arrived {
    index: usize,
    part: Part,
    cpu_ns: Vec<u64>,
    wall_ns: Vec<u64>,
    run_delay_ns: Vec<Option<u64>>,
}

impl Merging {
    /// Takes in what the generator of that index did; times are those of our clock.
    pub fn take(&mut self, index: usize, part: Part, mut slice: Slice) {
        self.arrived.push(Arrived {
            index,
            part,
            cpu_ns: std::mem::take(&mut slice.thread_cpu_ns),
            wall_ns: std::mem::take(&mut slice.thread_wall_ns),
            run_delay_ns: std::mem::take(&mut slice.thread_run_delay_ns),
        });
        self.slice.absorb(slice);
    }

    /// The sum of all, with their threads and parts in the order of the generators, whoever came first.
    pub fn finish(mut self) -> (Slice, Vec<Part>) {
        self.arrived.sort_by_key(|arrived| arrived.index);
        let mut parts = Vec::with_capacity(self.arrived.len());
        for arrived in self.arrived {
            self.slice.thread_cpu_ns.extend(arrived.cpu_ns);
            self.slice.thread_wall_ns.extend(arrived.wall_ns);
            self.slice.thread_run_delay_ns.extend(arrived.run_delay_ns);
            parts.push(arrived.part);
        }
        (self.slice, parts)
    }
}
