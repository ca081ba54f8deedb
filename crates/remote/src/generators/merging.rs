//! One count made of those of several generators, each taken in as it comes: what grows with their number is a part and a thread's times.

use model::{Counts, GeneratorUse, Windows};

use super::Part;

/// The sum so far.
#[derive(Debug, Default)]
pub(crate) struct Merging {
    counts: Option<Counts>,
    /// By the places of the generators.
    arrived: Vec<(usize, Part, GeneratorUse)>,
}

impl Merging {
    /// Takes in what the generator of that index did; times are those of our clock.
    pub fn take(&mut self, index: usize, part: Part, mut counts: Counts) {
        let driver = counts.generator.driver.clone();
        let threads = GeneratorUse { driver, ..GeneratorUse::default() };
        self.arrived.push((index, part, std::mem::replace(&mut counts.generator, threads)));
        match &mut self.counts {
            Some(sum) => sum.merge(counts, Windows::Parallel),
            None => self.counts = Some(counts),
        }
    }

    /// The sum of all, with their threads and parts in the order of the generators, whoever came first.
    pub fn finish(mut self) -> (Counts, Vec<Part>) {
        self.arrived.sort_by_key(|(index, ..)| *index);
        let mut counts = self.counts.unwrap_or_default();
        let mut parts = Vec::with_capacity(self.arrived.len());
        for (_, part, threads) in self.arrived {
            counts.generator.cpu_ns.extend(threads.cpu_ns);
            counts.generator.wall_ns.extend(threads.wall_ns);
            counts.generator.run_delay_ns.extend(threads.run_delay_ns);
            parts.push(part);
        }
        (counts, parts)
    }
}
