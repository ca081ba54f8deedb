//! A record in memory: the header, and the fold of all events so far.

use std::path::PathBuf;

use model::Pacing;

use crate::{
    Allocation, Capture, ConnectedGenerator, ConnectionsChosen, CoresChosen, DeployedSeen,
    EndReason, Ended, Event, GeneratorLost, Header, Prepared, RateChosen, Slice, SliceKind,
    TrialEnded, TrialStarted, WarmUp,
};

/// All data of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Directory of the record.
    pub directory: PathBuf,
    /// Data known before the start.
    pub header: Header,
    /// Text of the experiment file as run. `None` if the record lacks it, or it exceeds the size limit.
    pub experiment_text: Option<String>,
    /// The generators of the last connection. Empty if load came from the run's own process.
    pub generators: Vec<ConnectedGenerator>,
    /// Lost generators, in order.
    pub generators_lost: Vec<GeneratorLost>,
    /// Data prepared for services, in order.
    pub prepared: Vec<Prepared>,
    /// The blocks in order. The last one may be unfinished. In open loop the first may be number 0, in which
    /// the capacity was measured. It has no end, so it is not complete.
    pub blocks: Vec<Block>,
    /// The chosen rate. `None` in closed loop and before the choice.
    pub rate: Option<RateChosen>,
    /// The chosen number of connections for the capacity measurement. `None` if the plan gives a number, and
    /// before the choice.
    pub connections: Option<ConnectionsChosen>,
    /// The chosen warm-up.
    pub warm_up: Option<WarmUp>,
    /// The chosen processors of the services. None if the plan gives them, and before the choice.
    pub cores: Option<CoresChosen>,
    /// The last chosen number of slices per trial.
    pub allocation: Option<Allocation>,
    /// The chosen block of the last look.
    pub blocks_planned: Option<u32>,
    /// Captures that explain the results of the blocks, in order.
    pub captures: Vec<Capture>,
    /// How the run ended. `None` if it was killed or is still running.
    pub ended: Option<Ended>,
    /// Descriptions of unreadable parts.
    pub damage: Vec<String>,
}

/// One randomised pass over all variants.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Block {
    /// Number of the block, from 1. 0 for the part before the first.
    pub number: u32,
    /// The drawn order.
    pub order: Vec<usize>,
    /// Trials in start order.
    pub trials: Vec<Trial>,
    /// Duration in seconds. `None` while unfinished.
    pub seconds: Option<f64>,
    /// Why the block was discarded. `None` if it counts.
    pub dropped: Option<String>,
}

/// One variant's fresh processes within a block.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// Start of the trial.
    pub started: TrialStarted,
    /// Slices in order, including warm-up.
    pub slices: Vec<Slice>,
    /// End of the trial. `None` while it runs, or if the run was cut off.
    pub ended: Option<TrialEnded>,
}

impl Block {
    /// Returns the trial of a variant.
    pub fn trial(&self, variant: usize) -> Option<&Trial> {
        self.trials.iter().find(|trial| trial.variant() == variant)
    }
}

impl Trial {
    /// Index of the variant in the plan.
    pub fn variant(&self) -> usize {
        self.started.variant
    }

    /// Iterates over the measured slices.
    pub fn measured(&self) -> impl Iterator<Item = &Slice> {
        self.slices
            .iter()
            .filter(|slice| slice.kind == SliceKind::Measured)
    }
}

impl Record {
    /// Why the run ended. `None` if it was killed or is still running.
    pub fn end(&self) -> Option<&EndReason> {
        self.ended.as_ref().map(|ended| &ended.reason)
    }

    /// Creates a record without events.
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
            connections: None,
            warm_up: None,
            cores: None,
            allocation: None,
            blocks_planned: None,
            captures: Vec::new(),
            ended: None,
            damage: Vec::new(),
        }
    }

    /// Applies one event. An event that does not fit is damage, not a panic, because files can be edited.
    pub fn apply(&mut self, event: Event) {
        if let Err(what) = self.taken(event) {
            self.damage.push(format!("{what}, which never started"));
        }
    }

    /// # Errors
    /// Names the event that does not fit.
    fn taken(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::GeneratorsConnected(generators) => self.generators = generators,
            Event::GeneratorLost(lost) => self.generators_lost.push(lost),
            Event::Prepared(prepared) => self.prepared.push(prepared),
            Event::BlockStarted { block, order } => {
                self.blocks.push(Block {
                    number: block,
                    order,
                    ..Block::default()
                });
            }
            Event::TrialStarted(started) => self.start_trial(started)?,
            Event::Slice(mut slice) => {
                // There are thousands of slices. Those read from disk are already packed. Measured ones have
                // histograms of 132 KiB per table, nearly all of it empty.
                slice.counts.pack();
                self.trial_mut("slice", slice.block, slice.variant)?
                    .slices
                    .push(*slice);
            }
            Event::TrialEnded(ended) => {
                let trial = self.trial_mut("end of a trial", ended.block, ended.variant)?;
                // Slices are the largest part of a long record.
                trial.slices.shrink_to_fit();
                trial.ended = Some(ended);
            }
            Event::BlockEnded { block, seconds } => {
                let found = self
                    .block_mut(block)
                    .ok_or_else(|| format!("the end of block {block}"))?;
                found.seconds = Some(seconds);
            }
            Event::BlockDropped { block, why } => {
                let found = self
                    .block_mut(block)
                    .ok_or_else(|| format!("the dropping of block {block}"))?;
                found.dropped = Some(why);
            }
            Event::RateChosen(rate) => self.rate = Some(rate),
            Event::ConnectionsChosen(chosen) => self.connections = Some(chosen),
            Event::WarmUpChosen(warm_up) => self.warm_up = Some(warm_up),
            Event::CoresChosen(cores) => self.choose_cores(cores),
            Event::SlicesChosen(allocation) => self.allocation = Some(allocation),
            Event::BlocksChosen { blocks } => self.blocks_planned = Some(blocks),
            Event::Captured(capture) => self.captures.push(*capture),
            Event::Ended(ended) => self.ended = Some(ended),
        }
        Ok(())
    }

    /// When requests were sent in measured slices.
    pub fn pacing(&self) -> Pacing {
        let plan = &self.header.plan;
        match plan.measure.as_ref().map(|measure| measure.rates.is_some()) {
            Some(true) => Pacing::Open,
            Some(false) => Pacing::Closed,
            None => plan.design.pacing(),
        }
    }

    /// Whether measured slices are in open loop.
    pub fn is_open_loop(&self) -> bool {
        self.pacing().is_open()
    }

    /// Iterates over the complete blocks: every variant was measured and stopped, and the block was not
    /// discarded.
    pub fn complete_blocks(&self) -> impl Iterator<Item = &Block> {
        self.blocks
            .iter()
            .filter(|block| block.seconds.is_some() && block.dropped.is_none())
    }

    /// Iterates over the trials of complete blocks.
    pub fn complete_trials(&self) -> impl Iterator<Item = &Trial> {
        self.complete_blocks().flat_map(|block| &block.trials)
    }

    /// Iterates over all trials, of complete and incomplete blocks.
    pub fn trials(&self) -> impl DoubleEndedIterator<Item = &Trial> + Clone {
        self.blocks.iter().flat_map(|block| &block.trials)
    }

    /// Number of complete blocks.
    pub fn blocks_kept(&self) -> u32 {
        self.complete_blocks().count() as u32
    }

    /// Number of discarded blocks.
    pub fn blocks_dropped(&self) -> u32 {
        self.blocks
            .iter()
            .filter(|block| block.dropped.is_some())
            .count() as u32
    }

    /// Already deployed services under load, each as first recorded. Empty if all services were started.
    pub fn deployed(&self) -> Vec<&DeployedSeen> {
        let all = self
            .trials()
            .filter_map(|trial| trial.started.deployed.as_ref());
        let alike = model::grouped(all.map(|one| ((&one.place, &one.address), one)));
        alike.into_iter().map(|(_, looks)| looks[0]).collect()
    }

    /// Reports damage and discards the last block so far.
    pub(crate) fn doubt(&mut self, damage: String) {
        self.damage.push(damage);
        self.doubt_last_block();
    }

    /// Discards the last block so far.
    pub(crate) fn doubt_last_block(&mut self) {
        if let Some(block) = self.blocks.last_mut() {
            block
                .dropped
                .get_or_insert_with(|| "a line of it in events.jsonl is damaged".to_owned());
        }
    }

    /// Running trials are confined like all later ones.
    fn choose_cores(&mut self, cores: CoresChosen) {
        if !cores.services.is_empty() {
            let alive = |trial: &&mut Trial| trial.ended.is_none();
            let trials = self
                .block_mut(cores.block)
                .into_iter()
                .flat_map(|block| &mut block.trials);
            for trial in trials.filter(alive) {
                trial.started.confine(&cores.services);
            }
        }
        self.cores = Some(cores);
    }

    fn start_trial(&mut self, started: TrialStarted) -> Result<(), String> {
        let (block, variant) = (started.block, started.variant);
        let misfit = || misfit("start of a trial", block, variant);
        let plan = self
            .header
            .plan
            .variants
            .get_mut(variant)
            .ok_or_else(misfit)?;
        plan.pin(&started.services);
        let block = self.block_mut(block).ok_or_else(misfit)?;
        block.trials.push(Trial {
            started,
            slices: Vec::new(),
            ended: None,
        });
        Ok(())
    }

    fn block_mut(&mut self, number: u32) -> Option<&mut Block> {
        self.blocks
            .iter_mut()
            .rev()
            .find(|block| block.number == number)
    }

    fn trial_mut(&mut self, what: &str, block: u32, variant: usize) -> Result<&mut Trial, String> {
        let misfit = || misfit(what, block, variant);
        let mut trials = self
            .block_mut(block)
            .ok_or_else(misfit)?
            .trials
            .iter_mut()
            .rev();
        trials
            .find(|trial| trial.variant() == variant)
            .ok_or_else(misfit)
    }
}

fn misfit(what: &str, block: u32, variant: usize) -> String {
    format!("the {what} of variant {variant} in block {block}")
}
