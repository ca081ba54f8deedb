//! A record in memory: the header, and the fold of all events so far.

use std::path::PathBuf;

use model::Pacing;

use crate::{
    Allocation, Capture, ConnectionsChosen, CoresChosen, Deployed, EndReason, Ended, Event, Generator,
    GeneratorLost, Header, Prepared, RateChosen, Slice, SliceKind, TrialEnded, TrialStarted, WarmUp,
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
    /// The connections as settled where capacity is measured; `None` where the plan names a number, and before they are.
    pub connections: Option<ConnectionsChosen>,
    /// The warm-up as settled.
    pub warm_up: Option<WarmUp>,
    /// The processors of the services as chosen. None if the plan gives them, or they are not chosen yet.
    pub cores: Option<CoresChosen>,
    /// The slices a trial as settled last.
    pub allocation: Option<Allocation>,
    /// The block at which the last look is taken, once settled.
    pub blocks_planned: Option<u32>,
    /// What was captured to explain what the blocks show, in order.
    pub captures: Vec<Capture>,
    /// How the run ended; `None` for a run that was killed, or is still going on.
    pub ended: Option<Ended>,
    /// What could not be read, in words.
    pub damage: Vec<String>,
}

/// One randomised pass over all variants.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Block {
    /// Number of the block, from 1; 0 for what came before the first.
    pub number: u32,
    /// The order drawn.
    pub order: Vec<usize>,
    /// Its trials in the order in which they were started.
    pub trials: Vec<Trial>,
    /// How long it took in seconds; `None` while it is unfinished.
    pub seconds: Option<f64>,
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

impl Block {
    /// What was measured of a variant in it.
    pub fn trial(&self, variant: usize) -> Option<&Trial> {
        self.trials.iter().find(|trial| trial.variant() == variant)
    }
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

    /// Takes in one event. An event that fits nowhere is damage, not a panic: files can be edited.
    pub fn apply(&mut self, event: Event) {
        if let Err(what) = self.taken(event) {
            self.damage.push(format!("{what}, which never started"));
        }
    }

    /// # Errors
    /// What it was that fits nowhere.
    fn taken(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::GeneratorsConnected(generators) => self.generators = generators,
            Event::GeneratorLost(lost) => self.generators_lost.push(lost),
            Event::Prepared(prepared) => self.prepared.push(prepared),
            Event::BlockStarted { block, order } => {
                self.blocks.push(Block { number: block, order, ..Block::default() });
            }
            Event::TrialStarted(started) => self.start_trial(started)?,
            Event::Slice(mut slice) => {
                // There are thousands. Read from disk they are packed already; as they are measured each has histograms of
                // 132 KiB a table, nearly all of it empty.
                slice.counts.pack();
                self.trial_mut("slice", slice.block, slice.variant)?.slices.push(*slice);
            }
            Event::TrialEnded(ended) => {
                let trial = self.trial_mut("end of a trial", ended.block, ended.variant)?;
                // A record of very many blocks is mostly slices.
                trial.slices.shrink_to_fit();
                trial.ended = Some(ended);
            }
            Event::BlockEnded { block, seconds } => {
                let found = self.block_mut(block).ok_or_else(|| format!("the end of block {block}"))?;
                found.seconds = Some(seconds);
            }
            Event::BlockDropped { block, why } => {
                let found = self.block_mut(block).ok_or_else(|| format!("the dropping of block {block}"))?;
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

    /// The blocks that count: every variant was measured and stopped, and the block was not dropped.
    pub fn complete_blocks(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter().filter(|block| block.seconds.is_some() && block.dropped.is_none())
    }

    /// The trials of those blocks.
    pub fn complete_trials(&self) -> impl Iterator<Item = &Trial> {
        self.complete_blocks().flat_map(|block| &block.trials)
    }

    /// All trials, be their blocks complete or not.
    pub fn trials(&self) -> impl DoubleEndedIterator<Item = &Trial> + Clone {
        self.blocks.iter().flat_map(|block| &block.trials)
    }

    /// How many blocks count.
    pub fn blocks_kept(&self) -> u32 {
        self.complete_blocks().count() as u32
    }

    /// How many blocks count for nothing.
    pub fn blocks_dropped(&self) -> u32 {
        self.blocks.iter().filter(|block| block.dropped.is_some()).count() as u32
    }

    /// All that ran already and was loaded, each as it was when it was first; empty where everything was started.
    pub fn deployed(&self) -> Vec<&Deployed> {
        let all = self.trials().filter_map(|trial| trial.started.deployed.as_ref());
        let alike = model::grouped(all.map(|one| ((&one.place, &one.address), one)));
        alike.into_iter().map(|(_, looks)| looks[0]).collect()
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

    /// Trials that are alive are confined with all later ones.
    fn choose_cores(&mut self, cores: CoresChosen) {
        if !cores.services.is_empty() {
            let alive = |trial: &&mut Trial| trial.ended.is_none();
            let trials = self.block_mut(cores.block).into_iter().flat_map(|block| &mut block.trials);
            for trial in trials.filter(alive) {
                trial.started.confine(&cores.services);
            }
        }
        self.cores = Some(cores);
    }

    fn start_trial(&mut self, started: TrialStarted) -> Result<(), String> {
        let (block, variant) = (started.block, started.variant);
        let misfit = || misfit("start of a trial", block, variant);
        let plan = self.header.plan.variants.get_mut(variant).ok_or_else(misfit)?;
        plan.pin(&started.services);
        let block = self.block_mut(block).ok_or_else(misfit)?;
        block.trials.push(Trial { started, slices: Vec::new(), ended: None });
        Ok(())
    }

    fn block_mut(&mut self, number: u32) -> Option<&mut Block> {
        self.blocks.iter_mut().rev().find(|block| block.number == number)
    }

    fn trial_mut(&mut self, what: &str, block: u32, variant: usize) -> Result<&mut Trial, String> {
        let misfit = || misfit(what, block, variant);
        let mut trials = self.block_mut(block).ok_or_else(misfit)?.trials.iter_mut().rev();
        trials.find(|trial| trial.variant() == variant).ok_or_else(misfit)
    }
}

fn misfit(what: &str, block: u32, variant: usize) -> String {
    format!("the {what} of variant {variant} in block {block}")
}
