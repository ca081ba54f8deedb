//! What a run has shown so far, as a value: a pure fold over the lab's notices, from which the live view, plain lines and events are all
//! drawn. It reads no clock, and concludes nothing.

use std::collections::VecDeque;

use analysis::{Comparison, Conclusion, Outcome};
use lab::{Doing, Notice, Progress};
use plan::{LookRule, Plan};
use record::{CaptureKind, Slice, SliceKind};
use stats::Estimate;

use super::slice::{Failures, Figures};

/// Slices of a variant that are kept: more than the widest sparkline has room for.
const KEPT_MAX: usize = 240;

/// Everything that is shown of a run.
#[derive(Debug, Clone)]
pub struct Screen {
    /// The experiment's name.
    pub experiment: String,
    /// Its question.
    pub question: Option<String>,
    /// The smallest relative difference that matters, 0.03 being 3 %.
    pub margin: f64,
    /// Whether requests are due at a rate.
    pub open_loop: bool,
    /// Whether nothing that tells who is ahead may be shown before the end.
    pub withheld: bool,
    /// Whether slices of all variants are made together, turn by turn.
    pub takes_turns: bool,
    /// Where the run is.
    pub place: Place,
    /// What is under way, in words.
    pub doing: String,
    /// Whether the run waits, because the user wants it to.
    pub paused: bool,
    /// Each comparison with what is known of it.
    pub comparisons: Vec<Compared>,
    /// Each variant with what its slices gave.
    pub variants: Vec<Trace>,
    /// What failed so far.
    pub failures: Failures,
    /// Share of the CPU time that the host gave to others in the last slice, 0 to 1.
    pub steal_share: f64,
    /// Slices folded in, to tell which variants were measured last.
    slices: u64,
}

/// Where a run is.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Place {
    /// Number of the block under way, from 1; 0 before the first.
    pub block: u32,
    /// Blocks dropped so far.
    pub dropped: u32,
    /// Blocks that count in all, once that is settled.
    pub planned: Option<u32>,
    /// Slices in this block that every variant has by now.
    pub slices: u32,
    /// Seconds since the run began, pauses not counted.
    pub elapsed_s: f64,
    /// Seconds that it may still take at the most.
    pub left_s: f64,
}

/// A comparison, once for each metric that gets a verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// Reads as "candidate against baseline", with the metric where there are several.
    pub label: String,
    /// What is known of it.
    pub so_far: SoFar,
    /// What it would be called if the run ended now.
    pub outcome: Outcome,
    /// Blocks in all that would decide it, where that can be told.
    pub blocks_needed: Option<u32>,
}

/// What is known of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub enum SoFar {
    /// No block is complete yet.
    Nothing,
    /// The experiment looks once: nothing is shown before the end.
    Withheld,
    /// A ratio without an interval: there are too few blocks for one.
    Ratio(f64),
    /// Every block gave the same ratio, so that there is no interval.
    Same(f64),
    /// A ratio with its interval.
    Interval(Estimate),
    /// One side never succeeded, in words.
    NoSuccess(String),
    /// A finding forbids any number.
    Void,
}

/// A variant and what its measured slices gave, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// Its name.
    pub name: String,
    /// The figures of the last slices.
    pub slices: VecDeque<Figures>,
    /// When it was measured last, in slices of the run; 0 for never.
    pub touched: u64,
}

impl Screen {
    /// The screen of a plan of which nothing is measured yet.
    pub fn of(plan: &Plan) -> Screen {
        let design = &plan.design;
        let withheld = design.looks == LookRule::Once;
        let trace = |name: &String| Trace { name: name.clone(), slices: VecDeque::new(), touched: 0 };
        let several = !design.co_primary.is_empty();
        let compared = |asked: &plan::Comparison, metric| Compared {
            label: label(&asked.label, several.then_some(metric)),
            so_far: if withheld { SoFar::Withheld } else { SoFar::Nothing },
            outcome: Outcome::Inconclusive,
            blocks_needed: None,
        };
        let asked = plan.comparisons.iter();
        Screen {
            experiment: plan.name.clone(),
            question: plan.question.clone(),
            margin: design.margin,
            open_loop: design.rate.is_some(),
            withheld,
            takes_turns: plan.variants.len() > 1 && lab::take_turns(plan),
            place: Place { left_s: design.budget.as_secs_f64(), ..Place::default() },
            doing: "beginning".to_owned(),
            paused: false,
            comparisons: asked
                .flat_map(|asked| design.metrics().map(move |metric| compared(asked, metric)))
                .collect(),
            variants: plan.variants.iter().map(|variant| trace(&variant.name)).collect(),
            failures: Failures::default(),
            steal_share: 0.0,
            slices: 0,
        }
    }

    /// Takes in what just happened.
    pub fn take_in(&mut self, progress: &Progress<'_>) {
        let slices = if progress.block == self.place.block { self.place.slices } else { 0 };
        self.place = Place {
            block: progress.block,
            dropped: progress.dropped,
            planned: progress.blocks_planned,
            slices,
            elapsed_s: progress.elapsed_s,
            left_s: progress.left_s,
        };
        match progress.notice {
            Notice::SliceDone(slice) => self.slice(slice),
            Notice::BlockDone(conclusion) => self.conclude(conclusion),
            Notice::Paused => self.paused = true,
            Notice::Resumed { .. } => self.paused = false,
            _ => {}
        }
        if let Some(doing) = self.doing_now(progress.notice) {
            self.doing = doing;
        }
    }

    fn slice(&mut self, slice: &Slice) {
        self.failures.count(slice);
        self.steal_share = slice.machine.steal_share_max();
        if slice.kind != SliceKind::Measured {
            return;
        }
        self.slices += 1;
        let Some(trace) = self.variants.get_mut(slice.variant) else { return };
        trace.touched = self.slices;
        trace.slices.push_back(Figures::of(slice));
        if trace.slices.len() > KEPT_MAX {
            trace.slices.pop_front();
        }
        // Of a pass the first variant's slice is told first.
        self.place.slices += u32::from(slice.variant == 0);
    }

    fn conclude(&mut self, conclusion: &Conclusion) {
        let several =
            conclusion.comparisons.iter().any(|other| other.metric != conclusion.comparisons[0].metric);
        let withheld = conclusion.awaits_look;
        self.comparisons = conclusion
            .comparisons
            .iter()
            .map(|comparison| Compared {
                label: label(&comparison.label, several.then_some(comparison.metric)),
                so_far: so_far(comparison, withheld),
                outcome: if withheld { Outcome::Inconclusive } else { comparison.outcome },
                blocks_needed: comparison.blocks_needed,
            })
            .collect();
    }

    /// What is under way from now on; `None` where that stays as it was.
    fn doing_now(&self, notice: &Notice<'_>) -> Option<String> {
        Some(match notice {
            Notice::Connecting(connecting) => super::words::connecting(connecting),
            Notice::Connected(_) => "the generators are there".to_owned(),
            Notice::GeneratorLost(lost) => format!("{} is lost", lost.generator),
            Notice::Preparing(name, preparing) => super::words::preparing(name, preparing),
            Notice::Prepared(prepared) => format!("{} is there", prepared.name),
            Notice::Trial(Doing::Starting, variant) => format!("starting {variant}"),
            Notice::Trial(Doing::WarmingUp, variant) => format!("warming up {variant}"),
            Notice::Trial(Doing::Measuring, _) if self.takes_turns => {
                let all = match self.variants.len() {
                    2 => "both".to_owned(),
                    many => format!("all {many}"),
                };
                format!("measuring {all} variants turn by turn, slice {}", self.place.slices + 1)
            }
            Notice::Trial(Doing::Measuring, variant) => format!("measuring {variant}"),
            Notice::Trial(Doing::MeasuringCapacity, variant) => {
                format!("measuring the capacity of {variant}")
            }
            Notice::RateChosen(_) => "the rate is settled".to_owned(),
            Notice::BlockDone(_) => "block done".to_owned(),
            Notice::BlockDropped(_) => "block dropped".to_owned(),
            Notice::Pointless(_) | Notice::NotExplained(_) => "ending".to_owned(),
            Notice::Explaining { .. } => "capturing what explains it".to_owned(),
            Notice::Capturing { round, kind, variant } => {
                format!("round {round}: capturing {} of {variant}", captured(*kind))
            }
            Notice::BlockStarted(_) | Notice::SliceDone(_) | Notice::Paused | Notice::Resumed { .. } => {
                return None;
            }
        })
    }
}

fn label(label: &str, metric: Option<plan::Metric>) -> String {
    metric.map_or_else(|| label.to_owned(), |metric| format!("{label}, {}", metric.row().title))
}

fn so_far(comparison: &Comparison, withheld: bool) -> SoFar {
    match (&comparison.no_success, &comparison.estimate, comparison.without_spread) {
        (Some(words), ..) => SoFar::NoSuccess(words.clone()),
        _ if comparison.outcome == Outcome::Void => SoFar::Void,
        // Even a ratio would be a look.
        _ if withheld => SoFar::Withheld,
        (_, Some(estimate), _) => SoFar::Interval(*estimate),
        (_, _, Some(ratio)) => SoFar::Same(ratio),
        _ => comparison.ratio_so_far.map_or(SoFar::Nothing, SoFar::Ratio),
    }
}

/// What a kind of capture is called.
pub fn captured(kind: CaptureKind) -> &'static str {
    match kind {
        CaptureKind::Plain => "CPU time by thread",
        CaptureKind::Counters => "counters",
        CaptureKind::Cpu => "a CPU profile",
        CaptureKind::Native => "native stacks",
        CaptureKind::Heap => "allocations",
    }
}
