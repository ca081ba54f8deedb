//! Simulated records, drawn from a seed: clean runs on a noisy machine, and runs with a planted problem.
//!
//! Made from the header of the stored sound record and one of its slices. Shared by a test and by the example
//! that makes tables.

// Each program that includes this file uses only a part of it.
#![allow(dead_code)]

pub mod gates;
#[path = "../../../stats/tests/simulation/mod.rs"]
mod simulation;

use std::path::Path;

use plan::LookRule;
use record::{Block, Record, ServiceStarted, ServiceUse, Slice, SliceKind, Trial};
use simulation::Noise;

/// Good responses per second of a variant without any noise.
const PER_S: f64 = 2000.0;
const SLICE_S: f64 = 0.5;
const MIB: f64 = 1024.0 * 1024.0;

/// Parameters of a run. Spreads are standard deviations of log throughput.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub blocks: u32,
    pub variants: usize,
    pub slices: usize,
    /// Variation common to the variants of a block.
    pub machine: f64,
    pub between: f64,
    pub within: f64,
}

impl Run {
    pub const fn new(blocks: u32, between: f64) -> Run {
        Run {
            blocks,
            variants: 2,
            slices: 6,
            machine: 0.03,
            between,
            within: 0.02,
        }
    }
}

/// Position of a slice in a run.
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// Number of the block, from 1.
    pub block: u32,
    pub variant: usize,
    /// Position in the order of its block, from 0 to 1.
    pub place: f64,
    /// Position within its trial, from 0 to 1.
    pub time: f64,
}

/// Name of a problem, the check that must find it, and a function that makes a run with a given amount of it.
pub type Plant = (
    &'static str,
    &'static str,
    fn(&mut Maker, Run, f64) -> Record,
);

pub const PLANTS: [Plant; 6] = [
    (
        "the last place slower by",
        "order_effect",
        |maker, run, size| maker.planted(run, |at| size * at.place),
    ),
    (
        "the end of a trial faster by",
        "warm_up_inside",
        |maker, run, size| maker.planted(run, |at| size * at.time),
    ),
    (
        "from the middle on slower by",
        "drift",
        |maker, run, size| {
            maker.planted(run, |at| if at.block > run.blocks / 2 { size } else { 0.0 })
        },
    ),
    ("evenly slower by", "drift", |maker, run, size| {
        maker.planted(run, |at| size * f64::from(at.block) / f64::from(run.blocks))
    }),
    (
        "MiB more at the end of a trial",
        "leak",
        |maker, run, size| {
            let mut record = maker.clean(run);
            leak(&mut record, 1, size);
            record
        },
    ),
    ("neighbours alike", "autocorrelated", Maker::alike),
];

/// Opens the stored sound record.
pub fn sound() -> Record {
    record::open(Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../record/tests/records/v1"
    )))
    .expect("the kept record opens")
}

/// Draws runs from one seed.
pub struct Maker {
    template: Record,
    slice: Slice,
    noise: Noise,
}

impl Maker {
    pub fn new(seed: u64) -> Maker {
        let template = sound();
        let slice = template
            .trials()
            .flat_map(Trial::measured)
            .next()
            .expect("it has slices")
            .clone();
        Maker {
            template,
            slice,
            noise: Noise::new(seed),
        }
    }

    pub fn clean(&mut self, run: Run) -> Record {
        self.planted(run, |_| 0.0)
    }

    /// Makes a run with an addition to its log throughput that depends on the position of the slice.
    pub fn planted(&mut self, run: Run, added: impl Fn(At) -> f64) -> Record {
        let mut record = self.template.clone();
        self.variants(&mut record, run.variants);
        (record.blocks_planned, record.header.plan.design.looks) =
            (Some(run.blocks), LookRule::EachBlock);
        record.blocks = (1..=run.blocks)
            .map(|number| self.block(run, number, &added))
            .collect();
        record
    }

    /// Makes a run in which the blocks' ratios of variant 1 to the others are autocorrelated (AR(1)).
    pub fn alike(&mut self, run: Run, correlation: f64) -> Record {
        let mut state = self.noise.normal();
        let next = |_| {
            let fresh = self.noise.normal() * (1.0 - correlation * correlation).sqrt();
            state = correlation * state + fresh;
            state * run.between * std::f64::consts::SQRT_2
        };
        let states: Vec<f64> = (0..run.blocks).map(next).collect();
        let quiet = Run {
            between: run.between / 10.0,
            within: run.within / 10.0,
            ..run
        };
        self.planted(quiet, |at| {
            if at.variant == 1 {
                states[at.block as usize - 1]
            } else {
                0.0
            }
        })
    }

    fn variants(&self, record: &mut Record, variants: usize) {
        let plan = &mut record.header.plan;
        let (variant, comparison) = (plan.variants[0].clone(), plan.comparisons[0].clone());
        let named = |index| plan::Variant {
            name: format!("level-{index}"),
            ..variant.clone()
        };
        plan.variants = (0..variants).map(named).collect();
        let against = |candidate| plan::Comparison {
            candidate,
            label: format!("level-{candidate} vs level-0"),
            ..comparison.clone()
        };
        plan.comparisons = (1..variants).map(against).collect();
        if let Some(warm_up) = &mut record.warm_up {
            warm_up.steady_after_s = vec![Some(0.5); variants];
        }
    }

    fn block(&mut self, run: Run, number: u32, added: &impl Fn(At) -> f64) -> Block {
        let mut order: Vec<usize> = (0..run.variants).collect();
        for index in (1..order.len()).rev() {
            let other = (self.noise.uniform() * (index as f64 + 1.0)).ceil() as usize - 1;
            order.swap(index, other);
        }
        let machine = self.noise.normal() * run.machine;
        let last = run.variants.max(2) as f64 - 1.0;
        let places: Vec<(usize, usize)> = order.iter().copied().enumerate().collect();
        let trial = |(place, variant): (usize, usize)| {
            let at = At {
                block: number,
                variant,
                place: place as f64 / last,
                time: 0.0,
            };
            self.trial(run, at, machine, added)
        };
        let trials = places.into_iter().map(trial).collect();
        Block {
            number,
            order,
            trials,
            seconds: Some(10.0),
            ..Block::default()
        }
    }

    fn trial(&mut self, run: Run, at: At, machine: f64, added: &impl Fn(At) -> f64) -> Trial {
        let like = &self.template.blocks[0].trials[0];
        let (mut started, mut ended) = (like.started.clone(), like.ended.clone());
        (started.block, started.variant) = (at.block, at.variant);
        started.services = vec![service_of(1, None)];
        if let Some(ended) = &mut ended {
            (ended.block, ended.variant) = (at.block, at.variant);
        }
        let luck = machine + self.noise.normal() * run.between;
        // A heap that grows at first and is collected now and then.
        let (base, fills) = (
            80.0 + 5.0 * self.noise.normal(),
            20.0 + 5.0 * self.noise.normal(),
        );
        let slices = (0..run.slices).map(|index| {
            let time = index as f64 / (run.slices.max(2) as f64 - 1.0);
            let log = luck + self.noise.normal() * run.within + added(At { time, ..at });
            let held = base + fills * (1.0 - (-3.0 * time).exp()) + 3.0 * self.noise.normal();
            let steal_share = 0.02 * self.noise.uniform();
            let mut slice = self.slice.clone();
            (slice.block, slice.variant, slice.kind) = (at.block, at.variant, SliceKind::Measured);
            slice.machine.steal_share = steal_share * 0.5;
            give(&mut slice, (PER_S * SLICE_S * log.exp()).round() as u64);
            slice.services = vec![used(&slice, (held * MIB) as u64)];
            slice
        });
        let slices = slices.collect();
        Trial {
            started,
            slices,
            ended,
        }
    }
}

/// Creates a service with a number of processors and of workers.
pub fn service_of(cpus: usize, workers: Option<u32>) -> ServiceStarted {
    let cpus = (0..cpus).collect();
    ServiceStarted {
        service: "api".into(),
        pid: 1,
        port: 1,
        cpus,
        workers,
        ..ServiceStarted::default()
    }
}

/// Use of a process at its limit.
fn used(slice: &Slice, rss_bytes: u64) -> ServiceUse {
    let cpu_ns = (slice.counts.window_ns + slice.counts.drain_ns) * 98 / 100;
    ServiceUse {
        cpu_ns,
        rss_bytes,
        cpu_by_process_ns: vec![cpu_ns],
        ..slice.services[0].clone()
    }
}

/// Sets the number of good responses in a slice.
pub fn give(slice: &mut Slice, responses: u64) {
    let per = slice.counts.body_bytes / slice.counts.responses.max(1);
    let counts = &mut slice.counts;
    (counts.sent, counts.responses) = (responses, responses);
    (counts.successful, counts.successful_in_window) = (responses, responses);
    slice.counts.body_bytes = per * responses;
    slice.counts.status = [(200, responses)].into();
    slice.counts.successful_per_100_ms.clear();
}

pub fn trials(record: &mut Record, variant: usize) -> impl Iterator<Item = &mut Trial> {
    let trials = record.blocks.iter_mut().flat_map(|block| &mut block.trials);
    trials.filter(move |trial| trial.variant() == variant)
}

pub fn slices(record: &mut Record, variant: usize) -> impl Iterator<Item = &mut Slice> {
    trials(record, variant).flat_map(|trial| &mut trial.slices)
}

/// Makes the memory of a variant's services grow evenly by this number of MiB over each trial.
pub fn leak(record: &mut Record, variant: usize, mib: f64) {
    for trial in trials(record, variant) {
        let last = trial.slices.len().max(2) as f64 - 1.0;
        for (index, slice) in trial.slices.iter_mut().enumerate() {
            slice.services[0].rss_bytes += (mib * MIB * index as f64 / last) as u64;
        }
    }
}
