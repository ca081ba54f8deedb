//! The input of the checks: all blocks of a record, or one slice of a run without a comparison.

use std::cell::OnceCell;

use model::Pacing;
use plan::{Comparison, Plan};
use record::{
    Block, EndReason, Ended, GeneratorLost, Record, Slice, SliceKind, Trial, TrialEnded,
    TrialStarted, WarmUp, Witness,
};

use super::finding::{CheckFinding, named};
use super::waiting_variant::WaitingVariant;
use crate::failure::{self, NoSuccess, fruitless};
use crate::metric::BlockFigures;
use crate::sums::total;
use crate::usage::is_unseen;
use crate::window::MeasuredWindow;

/// The part of a run that is checked.
#[derive(Clone, Copy)]
enum CheckedPart<'a> {
    Record(&'a Record),
    Slice(&'a MeasuredWindow<'a>),
}

/// A run, or one slice of it.
pub(super) struct CheckedRun<'a> {
    pub plan: &'a Plan,
    part: CheckedPart<'a>,
    pub pacing: Pacing,
    /// Number of processors of the machine.
    pub machine: usize,
    /// The chosen warm-up of a record.
    pub warm_up: Option<&'a WarmUp>,
    pub ended: Option<&'a Ended>,
    pub damage: &'a [String],
    pub generators_lost: &'a [GeneratorLost],
    /// All blocks.
    pub blocks: Vec<CheckedBlock<'a>>,
    /// The figures of complete blocks. Empty for one slice.
    pub figures: &'a [BlockFigures],
    pub variants: Vec<CheckedVariant<'a>>,
    waiting: OnceCell<Vec<Option<WaitingVariant>>>,
}

impl<'a> CheckedRun<'a> {
    /// Takes all blocks of a record.
    pub fn of(record: &'a Record, figures: &'a [BlockFigures]) -> CheckedRun<'a> {
        let blocks = record.blocks.iter().map(CheckedBlock::of).collect();
        CheckedRun {
            warm_up: record.warm_up.as_ref(),
            figures,
            ..CheckedRun::with(record, CheckedPart::Record(record), blocks)
        }
    }

    /// Takes one slice of a run without a comparison, as if it were the only one.
    pub fn of_slice(
        record: &'a Record,
        trial: &'a Trial,
        window: &'a MeasuredWindow<'a>,
    ) -> CheckedRun<'a> {
        let block = CheckedBlock::of_slice(trial, window.slice);
        let mut run = CheckedRun::with(record, CheckedPart::Slice(window), vec![block]);
        run.variants.truncate(1);
        for variant in &mut run.variants {
            variant.name = &window.name;
        }
        run
    }

    fn with(
        record: &'a Record,
        part: CheckedPart<'a>,
        blocks: Vec<CheckedBlock<'a>>,
    ) -> CheckedRun<'a> {
        let plan = &record.header.plan;
        let variants = plan.variants.iter().enumerate();
        let variants = variants
            .map(|(index, plan)| CheckedVariant::of(&blocks, index, plan))
            .collect();
        CheckedRun {
            plan,
            part,
            pacing: record.pacing(),
            machine: record.header.environment.cpus,
            warm_up: None,
            ended: record.ended.as_ref(),
            damage: &record.damage,
            generators_lost: &record.generators_lost,
            blocks,
            figures: &[],
            variants,
            waiting: OnceCell::new(),
        }
    }

    /// The record. `None` if one slice is checked.
    pub fn record(&self) -> Option<&'a Record> {
        match self.part {
            CheckedPart::Record(record) => Some(record),
            CheckedPart::Slice(_) => None,
        }
    }

    /// The slice, if one slice is checked.
    pub fn slice(&self) -> Option<&'a MeasuredWindow<'a>> {
        match self.part {
            CheckedPart::Record(_) => None,
            CheckedPart::Slice(window) => Some(window),
        }
    }

    /// Whether one slice is checked whose load goes to a URL. There are no known pods, and the processes of
    /// the service cannot be distinguished from others.
    pub fn is_of_url(&self) -> bool {
        self.slice().is_some_and(|window| window.runs_already)
    }

    pub fn is_open_loop(&self) -> bool {
        self.pacing.is_open()
    }

    pub fn end(&self) -> Option<&'a EndReason> {
        self.ended.map(|ended| &ended.reason)
    }

    pub fn complete_blocks(&self) -> impl Iterator<Item = &CheckedBlock<'a>> {
        self.blocks.iter().filter(|block| block.is_complete())
    }

    /// Trials of complete blocks.
    pub fn complete_trials(&self) -> impl Iterator<Item = &CheckedTrial<'a>> {
        self.complete_blocks().flat_map(|block| &block.trials)
    }

    /// Slices of any kind of a variant, in blocks that were not dropped.
    pub fn slices(&self, variant: usize) -> impl Iterator<Item = &'a Slice> {
        let kept = self.blocks.iter().filter(|block| block.dropped.is_none());
        kept.flat_map(|block| &block.trials)
            .filter(move |trial| trial.variant() == variant)
            .flat_map(|trial| trial.slices)
    }

    pub fn succeeding(&self) -> impl Iterator<Item = &CheckedVariant<'a>> {
        self.variants.iter().filter(|variant| variant.succeeds())
    }

    /// Returns the variants of a comparison, the baseline first. `None` if an edited record lacks them.
    pub fn pair(&self, asked: &Comparison) -> Option<[&CheckedVariant<'a>; 2]> {
        Some([
            self.variants.get(asked.baseline)?,
            self.variants.get(asked.candidate)?,
        ])
    }

    /// Data of a variant that waits. `None` if it does not wait.
    pub fn waiting(&self, variant: usize) -> Option<&WaitingVariant> {
        let of_each = || {
            self.variants
                .iter()
                .map(|of| WaitingVariant::of(self, of))
                .collect()
        };
        self.waiting.get_or_init(of_each).get(variant)?.as_ref()
    }
}

/// A block of a run.
pub(super) struct CheckedBlock<'a> {
    pub number: u32,
    pub order: &'a [usize],
    pub seconds: Option<f64>,
    pub dropped: Option<&'a str>,
    pub trials: Vec<CheckedTrial<'a>>,
}

impl<'a> CheckedBlock<'a> {
    fn of(block: &'a Block) -> CheckedBlock<'a> {
        let Block {
            number,
            order,
            trials,
            seconds,
            dropped,
        } = block;
        CheckedBlock {
            number: *number,
            order,
            seconds: *seconds,
            dropped: dropped.as_deref(),
            trials: trials.iter().map(CheckedTrial::of).collect(),
        }
    }

    fn of_slice(trial: &'a Trial, slice: &'a Slice) -> CheckedBlock<'a> {
        CheckedBlock {
            number: 1,
            order: &[0],
            seconds: Some(slice.counts.window_ns as f64 / 1e9),
            dropped: None,
            trials: vec![CheckedTrial {
                slices: std::slice::from_ref(slice),
                judged: slice.kind,
                ..CheckedTrial::of(trial)
            }],
        }
    }

    pub fn is_complete(&self) -> bool {
        self.seconds.is_some() && self.dropped.is_none()
    }

    /// Returns the trial of a variant.
    pub fn trial(&self, variant: usize) -> Option<&CheckedTrial<'a>> {
        self.trials.iter().find(|trial| trial.variant() == variant)
    }
}

/// A trial, with all of its slices or one of them.
#[derive(Clone, Copy)]
pub(super) struct CheckedTrial<'a> {
    pub started: &'a TrialStarted,
    pub slices: &'a [Slice],
    pub ended: Option<&'a TrialEnded>,
    /// The kind of slices with the result.
    judged: SliceKind,
}

impl<'a> CheckedTrial<'a> {
    fn of(trial: &'a Trial) -> CheckedTrial<'a> {
        let Trial {
            started,
            slices,
            ended,
        } = trial;
        CheckedTrial {
            started,
            slices,
            ended: ended.as_ref(),
            judged: SliceKind::Measured,
        }
    }

    pub fn variant(&self) -> usize {
        self.started.variant
    }

    /// Whether a slice is part of the result.
    pub fn counts(&self, slice: &Slice) -> bool {
        slice.kind == self.judged
    }

    /// Iterates over the slices with the result.
    pub fn measured(&self) -> impl Iterator<Item = &'a Slice> + use<'a> {
        let judged = self.judged;
        self.slices.iter().filter(move |slice| slice.kind == judged)
    }
}

/// A variant of the plan, and its measurements in complete blocks.
pub(super) struct CheckedVariant<'a> {
    /// Index in the plan.
    pub index: usize,
    pub name: &'a str,
    pub plan: &'a plan::Variant,
    pub trials: Vec<CheckedTrial<'a>>,
    pub slices: Vec<&'a Slice>,
    /// All trials, including trials of unfinished blocks, for properties that do not depend on measurements.
    pub all_trials: Vec<CheckedTrial<'a>>,
    /// Outcome of the requests, if none succeeded.
    pub no_success: Option<NoSuccess>,
}

impl<'a> CheckedVariant<'a> {
    fn of(
        blocks: &[CheckedBlock<'a>],
        index: usize,
        plan: &'a plan::Variant,
    ) -> CheckedVariant<'a> {
        let trials_of = |counts: fn(&CheckedBlock<'a>) -> bool| -> Vec<CheckedTrial<'a>> {
            let blocks = blocks.iter().filter(|block| counts(block));
            let trials = blocks.flat_map(|block| &block.trials);
            trials.filter(|of| of.variant() == index).copied().collect()
        };
        let measured = |trials: &[CheckedTrial<'a>]| -> Vec<&'a Slice> {
            trials.iter().flat_map(CheckedTrial::measured).collect()
        };
        let trials = trials_of(CheckedBlock::is_complete);
        let kept = trials_of(|block| block.dropped.is_none());
        CheckedVariant {
            index,
            name: &plan.name,
            plan,
            slices: measured(&trials),
            trials,
            all_trials: trials_of(|_| true),
            no_success: failure::no_success(&measured(&kept), plan),
        }
    }

    /// Prepends the variant's name to a finding.
    pub fn told(&self, seen: CheckFinding) -> CheckFinding {
        named(self.name, seen, &[self.index])
    }

    pub fn sum(&self, of: impl Fn(&Slice) -> u64) -> u64 {
        total(&self.slices, of)
    }

    /// Names of the services, in start order.
    pub fn services(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let started = self
            .trials
            .first()
            .map(|trial| trial.started.services.as_slice());
        started
            .unwrap_or_default()
            .iter()
            .map(|service| service.service.as_str())
    }

    /// Responses recorded before the load, in all its trials.
    pub fn witnesses(&self) -> impl Iterator<Item = &'a Witness> + use<'a, '_> {
        self.all_trials
            .iter()
            .flat_map(|trial| &trial.started.witnesses)
    }

    pub fn never_succeeded(&self) -> bool {
        self.no_success.is_some()
    }

    pub fn succeeds(&self) -> bool {
        !self.never_succeeded() && !fruitless(&self.slices)
    }

    pub fn is_unseen(&self) -> bool {
        is_unseen(self.plan, self.trials.iter().map(|trial| trial.started))
    }
}
