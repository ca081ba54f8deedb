//! The order of events: every random choice of a run, from its seed. Pure.

use model::distinct;
use plan::{Plan, Service};
use rand::RngExt;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;

/// Up to this number of variants all trials of a block run together and their slices alternate. More would
/// need much memory, and wait for their turn longer than servers keep an idle connection.
pub const TOGETHER_MAX: usize = 12;

/// Maximum length of the padding variable in bytes: one page moves a stack through every relevant alignment.
const PADDING_BYTES_MAX: usize = 4096;

/// First stream of turns, after the streams of arrivals.
const TURNS: u32 = 1 << 16;

/// Stream for the order of requests, after the streams of turns.
const REQUESTS: u32 = 1 << 24;

/// Rounds of captures use the streams of blocks beyond any run's.
const ROUNDS: u32 = 1 << 20;

/// The random choices of a run. Block `n` does not depend on draws for other blocks.
#[derive(Debug, Clone, Copy)]
pub struct BlockSchedule {
    seed: u64,
    variants: usize,
}

impl BlockSchedule {
    /// Creates the schedule of a seed for this number of variants.
    pub fn new(seed: u64, variants: usize) -> BlockSchedule {
        BlockSchedule { seed, variants }
    }

    /// The block whose streams belong to a round of captures.
    pub fn block_of_round(round: u32) -> u32 {
        ROUNDS + round
    }

    /// The order in which a block's trials are started and warmed up: random, and in every second block the
    /// reverse of the block before. The last one is measured a little warmer, and in a run of few blocks
    /// chance could put the same variant last each time.
    pub fn order(&self, block: u32) -> Vec<usize> {
        let is_second = block.is_multiple_of(2);
        let mut order =
            self.shuffled(&mut self.stream(block - u32::from(is_second && block > 0), 0));
        if is_second {
            order.reverse();
        }
        order
    }

    /// The length of each variant's padding variable in a block.
    pub fn padding_bytes(&self, block: u32) -> Vec<usize> {
        let mut random = self.stream(block, 1);
        (0..self.variants)
            .map(|_| random.random_range(0..=PADDING_BYTES_MAX))
            .collect()
    }

    /// The order of slices among running trials: `rounds` passes over all variants.
    ///
    /// Passes come in pairs, the second being the first reversed, so that a linear drift within a pair
    /// affects every variant alike: A B B A, or B A A B, drawn for each pair.
    pub fn rounds(&self, block: u32, rounds: u32) -> Vec<usize> {
        self.passes(self.stream(block, 2), rounds)
    }

    fn passes(&self, mut random: Pcg64, rounds: u32) -> Vec<usize> {
        let mut all = Vec::with_capacity(rounds as usize * self.variants);
        let mut pass = Vec::new();
        for round in 0..rounds {
            if round % 2 == 0 {
                pass = self.shuffled(&mut random);
            } else {
                pass.reverse();
            }
            all.extend(&pass);
        }
        all
    }

    /// The order of turns within one slice of all running trials, also in mirrored pairs: `turns` turns for
    /// each.
    pub fn turns(&self, block: u32, slice: u32, turns: u32) -> Vec<usize> {
        self.passes(self.stream(block, TURNS + slice), turns)
    }

    /// Seed of random arrivals in one slice of each trial of a block: the same for all variants, so that they
    /// get the same arrivals.
    pub fn arrivals_seed(&self, block: u32, slice: u32) -> u64 {
        self.stream(block, 3 + slice).random()
    }

    /// Seed for the order of several requests in closed loop: the same for all variants of a block.
    pub fn requests_seed(&self, block: u32) -> u64 {
        self.stream(block, REQUESTS).random()
    }

    /// The order of the steps of one trial, the same for all variants of a block.
    pub fn steps(&self, block: u32, steps: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..steps).collect();
        order.shuffle(&mut self.stream(block, 2));
        order
    }

    fn shuffled(&self, random: &mut Pcg64) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.variants).collect();
        order.shuffle(random);
        order
    }

    fn stream(&self, block: u32, purpose: u32) -> Pcg64 {
        let stream = u128::from(block) << 32 | u128::from(purpose);
        Pcg64::new(u128::from(self.seed), stream)
    }
}

/// Whether the trials of a block can run concurrently: not too many, no two with the same port, and load from
/// this process. Other generators have one load at a time, and agreeing on a start takes longer than a turn.
pub fn live_together(plan: &Plan) -> bool {
    plan.variants.len() <= TOGETHER_MAX && shared_port(plan).is_none() && plan.generators.is_here()
}

/// A fixed port that services of two variants share.
pub fn shared_port(plan: &Plan) -> Option<u16> {
    let services = plan.variants.iter().flat_map(|variant| &variant.services);
    let commands = services.filter_map(Service::command);
    let all: Vec<u16> = commands
        .flat_map(|command| distinct(command.own_ports()))
        .collect();
    let twice = (1..all.len()).find(|index| all[..*index].contains(&all[*index]))?;
    Some(all[twice])
}

/// Whether the trials of a block take short turns on connections that stay open. In open loop each slice
/// opens new connections, which only pays off for long slices.
pub fn take_turns(plan: &Plan) -> bool {
    live_together(plan) && !plan.design.pacing().is_open()
}

/// Draws a seed if the file has none: short enough to be retyped.
pub fn draw_seed() -> u64 {
    u64::from(rand::rng().random_range(1..1_000_000_u32))
}
