//! A record in memory: the header, and the fold of all events so far.

use std::path::PathBuf;

use model::Pacing;

use crate::{
    Allocation, Capture, EndReason, Ended, Event, Generator, GeneratorLost, Header, Prepared, RateChosen,
    Slice, SliceKind, TrialEnded, TrialStarted, WarmUp,
};

/// Everything that is known of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Where it lies.
    pub directory: PathBuf,
    /// What was known before anything started.
    pub header: Header,
    /// Text of the experiment file as it was run; `None` where the record lacks it, or it is longer than any that is one.
    pub experiment_text: Option<String>,
    /// The generators as they were connected last; empty where load came from the run's own process.
    pub generators: Vec<Generator>,
    /// Generators that were lost, in order.
    pub generators_lost: Vec<GeneratorLost>,
    /// The data that services were given, in the order in which it was made or found.
    pub prepared: Vec<Prepared>,
    /// The blocks in order, the last one possibly unfinished. In open loop the first may be number 0, in which the
    /// capacity was measured: it has no end, so that it is no complete one.
    pub blocks: Vec<Block>,
    /// The rate as settled; `None` in closed loop, and before it is.
    pub rate: Option<RateChosen>,
    /// The warm-up as settled.
    pub warm_up: Option<WarmUp>,
    /// The slices a trial as settled last.
    pub allocation: Option<Allocation>,
    /// The block at which the last look is taken, once settled.
    pub blocks_planned: Option<u32>,
    /// The times in which the user had the run wait, in order and in seconds, those between blocks included.
    pub pauses_s: Vec<f64>,
    /// What was captured to explain what the blocks show, in order.
    pub captures: Vec<Capture>,
    /// How the run ended; `None` for a run that was killed, or is still going on.
    pub ended: Option<Ended>,
    /// What could not be read, in words.
    pub damage: Vec<String>,
}

/// One randomised pass over all variants.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// Number of the block, from 1; 0 for what came before the first.
    pub number: u32,
    /// The order drawn.
    pub order: Vec<usize>,
    /// Its trials in the order in which they were started.
    pub trials: Vec<Trial>,
    /// How long it took in seconds; `None` while it is unfinished.
    pub seconds: Option<f64>,
    /// For how long it was paused while its trials lived, in seconds.
    pub paused_s: f64,
    /// Why it counts for nothing; `None` for those that count.
    pub dropped: Option<String>,
}

/// One variant's fresh processes within a block.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// How it started.
    pub started: TrialStarted,
    /// Its slices in order, warm-up included.
    pub slices: Vec<Slice>,
    /// How it ended; `None` while it lives, or where the run broke off.
    pub ended: Option<TrialEnded>,
}

impl Trial {
    /// Index of the variant in the plan.
    pub fn variant(&self) -> usize {
        self.started.variant
    }

    /// The slices that count.
    pub fn measured(&self) -> impl Iterator<Item = &Slice> {
        self.slices.iter().filter(|slice| slice.kind == SliceKind::Measured)
    }
}

impl Record {
    /// Why the run ended; `None` for one that was killed, or is still going on.
    pub fn end(&self) -> Option<&EndReason> {
        self.ended.as_ref().map(|ended| &ended.reason)
    }

    /// A record in which nothing has happened yet.
    pub fn new(directory: PathBuf, header: Header) -> Record {
        Record {
            directory,
            header,
            experiment_text: None,
            generators: Vec::new(),
            generators_lost: Vec::new(),
            prepared: Vec::new(),
            blocks: Vec::new(),
            rate: None,
            warm_up: None,
            allocation: None,
            blocks_planned: None,
            pauses_s: Vec::new(),
            captures: Vec::new(),
            ended: None,
            damage: Vec::new(),
        }
    }

    /// Takes in one event. An event that fits nowhere is damage, not a panic: files can be edited.
    pub fn apply(&mut self, event: Event) {
        match event {
            Event::GeneratorsConnected(generators) => self.generators = generators,
            Event::GeneratorLost(lost) => self.generators_lost.push(lost),
            Event::Prepared(prepared) => self.prepared.push(prepared),
            Event::BlockStarted { block, order } => {
                self.blocks.push(Block {
                    number: block,
                    order,
                    trials: Vec::new(),
                    seconds: None,
                    paused_s: 0.0,
                    dropped: None,
                });
            }
            Event::TrialStarted(started) => self.start_trial(started),
            Event::Slice(mut slice) => match self.trial_mut(slice.block, slice.variant) {
                Some(trial) => {
                    // There are thousands. Read from disk they are packed already; as they are measured each has histograms of
                    // 132 KiB a table, nearly all of it empty.
                    slice.counts.pack();
                    trial.slices.push(*slice);
                }
                None => self.misfit("slice", slice.block, slice.variant),
            },
            Event::TrialEnded(ended) => match self.trial_mut(ended.block, ended.variant) {
                Some(trial) => {
                    // A record of very many blocks is mostly slices.
                    trial.slices.shrink_to_fit();
                    trial.ended = Some(ended);
                }
                None => self.misfit("end of a trial", ended.block, ended.variant),
            },
            Event::BlockEnded { block, seconds } => match self.block_mut(block) {
                Some(found) => found.seconds = Some(seconds),
                None => self.damage.push(format!("the end of block {block}, which never started")),
            },
            Event::BlockDropped { block, why } => match self.block_mut(block) {
                Some(found) => found.dropped = Some(why),
                None => self.damage.push(format!("the dropping of block {block}, which never started")),
            },
            Event::Paused { block, seconds } => {
                self.pauses_s.push(seconds);
                // Where nothing lives, nothing cools down.
                let lives = |found: &&mut Block| found.trials.iter().any(|trial| trial.ended.is_none());
                if let Some(found) = self.block_mut(block).filter(lives) {
                    found.paused_s += seconds;
                }
            }
            Event::RateChosen(rate) => self.rate = Some(rate),
            Event::WarmUpChosen(warm_up) => self.warm_up = Some(warm_up),
            Event::SlicesChosen(allocation) => self.allocation = Some(allocation),
            Event::BlocksChosen { blocks } => self.blocks_planned = Some(blocks),
            Event::Captured(capture) => self.captures.push(*capture),
            Event::Ended(ended) => self.ended = Some(ended),
        }
    }

    /// When requests were sent in measured slices.
    pub fn pacing(&self) -> Pacing {
        self.header.plan.design.pacing()
    }

    /// Whether measured slices are in open loop.
    pub fn is_open_loop(&self) -> bool {
        self.pacing() != Pacing::Closed
    }

    /// The blocks that count: every variant was measured and stopped, and the block was not dropped.
    pub fn complete_blocks(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter().filter(|block| block.seconds.is_some() && block.dropped.is_none())
    }

    /// How many blocks count.
    pub fn blocks_kept(&self) -> u32 {
        u32::try_from(self.complete_blocks().count()).unwrap_or(u32::MAX)
    }

    /// How many blocks count for nothing.
    pub fn blocks_dropped(&self) -> u32 {
        let dropped = self.blocks.iter().filter(|block| block.dropped.is_some());
        u32::try_from(dropped.count()).unwrap_or(u32::MAX)
    }

    /// Notes that something of the last block so far cannot be relied on.
    pub(crate) fn doubt(&mut self, damage: String) {
        self.damage.push(damage);
        self.doubt_last_block();
    }

    /// The last block so far counts for nothing.
    pub(crate) fn doubt_last_block(&mut self) {
        if let Some(block) = self.blocks.last_mut() {
            block.dropped.get_or_insert_with(|| "a line of it in events.jsonl is damaged".to_owned());
        }
    }

    fn start_trial(&mut self, started: TrialStarted) {
        let known = started.variant < self.header.plan.variants.len();
        if let Some(variant) = self.header.plan.variants.get_mut(started.variant) {
            variant.pin(&started.services);
        }
        match self.block_mut(started.block).filter(|_| known) {
            Some(block) => block.trials.push(Trial { started, slices: Vec::new(), ended: None }),
            None => self.misfit("start of a trial", started.block, started.variant),
        }
    }

    fn block_mut(&mut self, number: u32) -> Option<&mut Block> {
        self.blocks.iter_mut().rev().find(|block| block.number == number)
    }

    fn trial_mut(&mut self, block: u32, variant: usize) -> Option<&mut Trial> {
        self.block_mut(block)?.trials.iter_mut().rev().find(|trial| trial.variant() == variant)
    }

    fn misfit(&mut self, what: &str, block: u32, variant: usize) {
        self.damage.push(format!("the {what} of variant {variant} in block {block}, which never started"));
    }
}
