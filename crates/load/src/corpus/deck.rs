//! Which request a thread sends next: an endpoint by weight, then one of its rows, each as likely as another.
//!
//! ```text
//!   seed ──► one seed a thread ──► words ──► endpoint (none is drawn where there is one)
//!                                       └──► row      (none is drawn where there is one)
//! ```
//! The sequence depends on the corpus, the seed and the thread's number alone, and on nothing that happens in the
//! load. It must stay what it is from version to version, so that a seed in a record goes on to mean the same
//! requests.

use std::sync::Arc;

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

use super::Corpus;

/// Keeps the words from those of the arrivals, which are drawn from the same seed. "requests" in ASCII.
const PURPOSE: u64 = 0x7265_7175_6573_7473;

/// The requests of one thread, without end. A clone draws the same ones.
#[derive(Debug, Clone)]
pub(crate) struct Deck {
    corpus: Arc<Corpus>,
    pub(super) rng: Pcg64Mcg,
}

/// A request that was drawn: a place in the corpus, which [`Corpus::bytes`] turns into bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Choice {
    /// Where it begins in the corpus.
    pub(super) start: u32,
    /// Its bytes.
    pub(crate) length: u32,
    /// The number of its endpoint.
    pub(crate) endpoint: u16,
    /// Whether the response has no body whatever it says.
    pub(crate) bodiless: bool,
}

impl Deck {
    /// The requests of thread `thread` (from 0).
    pub(crate) fn new(corpus: Arc<Corpus>, seed: u64, thread: u32) -> Deck {
        // Seeds drawn from one generator: seeds that follow each other make streams that resemble each other.
        let mut seeds = Pcg64Mcg::seed_from_u64(seed ^ PURPOSE);
        let seed = (0..thread).fold(seeds.next_u64(), |_, _| seeds.next_u64());
        Deck { corpus, rng: Pcg64Mcg::seed_from_u64(seed) }
    }

    /// Draws the next request.
    pub(crate) fn draw(&mut self) -> Choice {
        let endpoint = match self.corpus.wheel.len() {
            1 => 0,
            _ => self.corpus.wheel.pick(self.rng.next_u64()),
        };
        let row = match self.corpus.endpoints[endpoint].count {
            1 => 0,
            // The high part of the product: rows differ by at most 2⁻³² of their likelihood.
            count => ((u128::from(self.rng.next_u64()) * u128::from(count)) >> 64) as u32,
        };
        self.corpus.choice(endpoint, row)
    }
}
