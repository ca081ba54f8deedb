//! One load for several generators: what each of them does. [`model::Counts::merge`] makes one of what they counted.
//!
//! ```text
//! connections  0 1 2 3 4 5 6       connection c belongs to generator c mod generators
//! generator    0 1 2 0 1 2 0
//! lanes        0 1 | 2 3 | 4 5     each generator has so many lanes side by side, a thread each; arrivals are dealt to lanes
//! ```
//! It must not know where generators run, or how one talks to them.

use crate::generator::dealt;
use crate::{Lanes, LoadSpec};

impl LoadSpec {
    /// The specs of so many generators that do together what this one says, each with `threads` threads of its own, or fewer where it
    /// gets fewer connections. Never more generators than connections: the list is shorter then.
    ///
    /// What is due in open loop, and when, is the same whether one machine has all lanes or each has some. In closed loop each
    /// generator draws the requests of its own lanes.
    pub fn divided(&self, generators: u32, threads: u32) -> Vec<LoadSpec> {
        self.divided_among(generators, |_, _| threads)
    }

    /// The same where generators have threads of different number: as `threads` says of each, by its place and its connections.
    pub fn divided_among(&self, generators: u32, threads: impl Fn(u32, u32) -> u32) -> Vec<LoadSpec> {
        let generators = generators.clamp(1, self.connections.max(1));
        let connections = |index: u32| dealt(self.connections.into(), generators.into(), index.into()) as u32;
        let threads = |index: u32| threads(index, connections(index)).clamp(1, connections(index).max(1));
        let of = (0..generators).map(threads).sum();
        let mut first = 0;
        let part = |index| {
            let lanes = Some(Lanes { first, of });
            first += threads(index);
            LoadSpec { connections: connections(index), threads: threads(index), lanes, ..self.clone() }
        };
        (0..generators).map(part).collect()
    }
}

#[cfg(test)]
mod tests;
