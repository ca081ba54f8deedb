//! The timing of a block: length of the warm-up, length and number of slices, and length of turns.
//!
//! [`next`] computes it from the timing so far, the times that were measured, the plan, and the budget that is
//! left. It uses times and variances only, never which variant leads, so it cannot favour one. Pure.

mod guess;
mod measured;
mod search;

use plan::{Design, Plan};
use stats::Components;

pub use guess::SecondsGuess;
pub use measured::{FirstBlockTimes, MeasuredTimes, ResponseTimes, TrialCosts};
pub(crate) use measured::{components, is_warm, longest_start_s, shortest_start_s, trial_costs};
pub(crate) use search::{PilotTiming, SearchTiming};

/// Limits of a slice in seconds: short compared with drift of the machine, so that slices of all variants are
/// affected alike.
const SLICE_S: (f64, f64) = (0.5, 5.0);
/// Minimum turn in seconds. The machine's effects on a service change within hundredths of a second, and
/// effects on all variants alike cancel. `docs/decisions/0010` has the measurements.
const TURN_MIN_S: f64 = 0.02;
/// Length of a turn as a multiple of its overhead, up to the length of the slice.
const TURN_GAPS: f64 = 5.0;
/// Length of a turn's window as a multiple of its minimum lead: about half of the time is then counted.
const TURN_LEADS: f64 = 3.0;
/// Length of a turn as a multiple of a response of a variant that waits, as far as the slice and the budget
/// permit. The first responses take a different time than later ones, and connections need some hundred
/// responses to synchronize as in an uninterrupted run. Waiting hardly depends on the machine, so longer
/// turns cost no precision. The first value applies regardless of the budget.
const TURN_RESPONSES: (f64, f64) = (20.0, 200.0);
/// Minimum number of responses of a variant that waits in a turn that is shortened to fit the budget. With
/// fewer, most connections have no second request, and there is nothing to count for throughput.
const TURN_RESPONSES_LEAST: f64 = 2.0;
/// Share of a trial's part of the budget that such turns may fill.
const TURNS_SHARE: f64 = 0.5;
/// Length of a slice as a multiple of its overhead, within the limits.
const SLICE_GAPS: f64 = 10.0;
/// Assumed time of a trial beside warm-up and slices until it is measured: start, connect, stop.
const TRIAL_GUESS_S: f64 = 0.8;
/// Load at the common rate before a trial is measured in open loop, in seconds: the warm-up has run the
/// service at its limit.
const SETTLE_S: f64 = 0.5;
/// Limits of the load that measures one variant's capacity, in seconds.
const CAPACITY_S: (f64, f64) = (2.0, 6.0);
/// Share of a variant's part of the budget for measuring its capacity.
const CAPACITY_SHARE: f64 = 1.0 / 20.0;
/// Limits of the file's keys: maximum length of a slice, and maximum number of slices in a trial.
const SLICE_GIVEN_MAX_S: f64 = 60.0;
const SLICES_GIVEN_MAX: f64 = 100.0;
/// Seconds after which the first block checks whether a warm-up is over. The last value is the maximum.
const WATCH_S: [f64; 3] = [3.0, 6.0, 10.0];
/// The longest of these.
const WATCH_MOST_S: f64 = WATCH_S[WATCH_S.len() - 1];
/// Maximum turn of a warm-up, in seconds, unless measured turns are longer.
const WARM_UP_TURN_S: f64 = 1.0;
/// Share of a variant's part of the budget for watching. If it would take more, nothing is watched.
const WATCH_SHARE: f64 = 1.0 / 7.0;
/// Limits of the warm-up in seconds if there is no time to watch one.
const UNWATCHED_S: (f64, f64) = (1.0, 3.0);
/// Minimum warm-up after measuring, in seconds.
const WARM_UP_MIN_S: f64 = 0.3;
/// Number of blocks that must fit beside warm-up and first slices: the desired number, and one to spare.
const BLOCKS_ROOM: f64 = 7.0;
/// Slices in a trial before variances are known.
const SLICES_FIRST: f64 = 2.0;
/// Assumed overhead of a slice until it is measured: draining, reading the use of services.
const SLICE_GAP_S: f64 = 0.05;
/// The same with other generators than this process: agreeing on a start, and collecting the results, over a
/// fast network.
const AGREED_GAP_S: f64 = 0.1;
/// Overhead of a turn beside window and drain: starting and ending the load.
const TURN_GAP_S: f64 = 0.001;
/// Fewer blocks permit no verdict.
pub const BLOCKS_MIN: u32 = stats::BLOCKS_MIN;
/// Number of blocks for which trials are made short enough, and dropped blocks replaced: with fewer the
/// spread is hardly known.
pub const BLOCKS_AIM: u32 = 6;

/// Share of the remaining time that planned blocks may fill: the next ones may take a little longer.
const SLACK: f64 = 0.97;

/// The part of the budget that is left, and what has to fit into it.
#[derive(Debug, Clone, Copy)]
pub struct BudgetLeft {
    /// Remaining time in seconds.
    pub seconds: f64,
    /// Number of blocks so far that count.
    pub blocks_kept: u32,
    /// Number of variants that are still measured.
    pub variants: usize,
    /// Longest warm-up in seconds, if a search for capacities needs the rest.
    pub warm_up_max_s: Option<f64>,
}

impl BudgetLeft {
    /// The part that planned blocks may fill.
    fn with_slack(self) -> BudgetLeft {
        BudgetLeft {
            seconds: self.seconds * SLACK,
            ..self
        }
    }
}

/// Returns the timing of the next trials from the timing of the last ones.
pub fn next(
    last: BlockTiming,
    design: &Design,
    measured: MeasuredTimes<'_>,
    budget: BudgetLeft,
) -> BlockTiming {
    match measured {
        MeasuredTimes::Rate { per_s } => last.at_rate(design, per_s),
        MeasuredTimes::WarmUps(responses) => last.with_turns_for(design, responses, budget),
        MeasuredTimes::FirstBlock(first) => last.after_first_block(design, first, budget),
        MeasuredTimes::Blocks { components, costs } => {
            let slices = last.slices_for(design, components, &costs, budget);
            BlockTiming { slices, ..last }
        }
    }
}

/// Timing of each trial of a block.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct BlockTiming {
    /// Length of the warm-up in seconds.
    pub warm_up_s: f64,
    /// Whether the first block's warm-up is long enough to measure the required length.
    pub watched: bool,
    /// Load at the common rate after the warm-up, in seconds. 0 in closed loop.
    pub settle_s: f64,
    /// Length of a slice in seconds.
    pub slice_s: f64,
    /// Approximate length of a slice's turns in seconds, if trials take turns. The turns add up to the slice.
    pub turn_s: f64,
    /// The lead of a turn in seconds, see [`crate::Turn`]. 0 if there is none.
    pub lead_s: f64,
    /// Response time of the slowest variant that waits, in seconds. 0 if none waits.
    pub waited_s: f64,
    /// Overhead of a slice beside window and drain, in seconds.
    pub gap_s: f64,
    /// Slices in a trial.
    pub slices: u32,
    /// Minimum total time of a trial's slices in seconds for the requests that the metric needs. 0 if there
    /// is no minimum.
    pub measured_min_s: f64,
}

impl BlockTiming {
    /// Timing of the first block: from the file, otherwise a long warm-up and few slices.
    pub fn first(plan: &Plan) -> BlockTiming {
        let (design, variants) = (&plan.design, plan.variants.len());
        let share_s = design.budget.as_secs_f64() / variants.max(1) as f64;
        let share_s = share_s - capacity_seconds_guess(design, 1);
        let settle_s = if design.rate.is_some() { SETTLE_S } else { 0.0 };
        let unwatched_s = (share_s / 12.0).clamp(UNWATCHED_S.0, UNWATCHED_S.1);
        let watched_s = (share_s * WATCH_SHARE).min(WATCH_MOST_S);
        let watched = design.warmup.is_none() && watched_s >= WATCH_S[0];
        let assumed_s = if watched { watched_s } else { unwatched_s };
        let warm_up_s = design
            .warmup
            .map_or(assumed_s, |warm_up| warm_up.as_secs_f64());
        let slice_s = design.slice.map_or(SLICE_S.0, |slice| slice.as_secs_f64());
        let gap_s = gap_s(plan);
        let slices = design.slices.unwrap_or(SLICES_FIRST as u32);
        // Only a warm-up shows how long responses take, and so how short turns may be.
        let turn_s = if warm_up_s > 0.0 {
            TURN_MIN_S.min(slice_s)
        } else {
            slice_s
        };
        let first = BlockTiming {
            warm_up_s,
            watched,
            settle_s,
            slice_s,
            turn_s,
            gap_s,
            slices,
            ..BlockTiming::default()
        };
        // The average of a ramp, because one end may be 0.
        match design.mean_rate_per_s() {
            Some(per_s) => first.at_rate(design, per_s),
            None => first,
        }
    }

    /// The timing at a rate, which determines how long a trial must be measured.
    fn at_rate(self, design: &Design, per_s: f64) -> BlockTiming {
        BlockTiming {
            measured_min_s: design.most_wanting().1 / per_s,
            ..self
        }
        .extended(design)
    }

    /// The timing with turns that fit the responses of the warm-ups: shorter turns would measure nothing.
    fn with_turns_for(
        self,
        design: &Design,
        responses: &ResponseTimes,
        budget: BudgetLeft,
    ) -> BlockTiming {
        let timing = BlockTiming {
            lead_s: responses.lead_s,
            waited_s: responses.waited_s,
            ..self
        }
        .with_slices_for(design, budget.variants, responses.drain_s);
        // Slices of the usual length need not be shorter.
        if timing.slice_s <= SLICE_S.0 || budget.blocks_kept > 0 {
            return timing;
        }
        let costs = timing.costs_guess(responses);
        let room_s = timing.slices_room_s(budget.with_slack(), true, &costs);
        timing.within(design, room_s, &costs)
    }

    /// The timing of all blocks after the first, from its warm-ups and costs.
    fn after_first_block(
        self,
        design: &Design,
        first: &FirstBlockTimes,
        budget: BudgetLeft,
    ) -> BlockTiming {
        let timing = match &first.responses {
            Some(responses) => self.with_turns_for(design, responses, budget),
            None => self,
        };
        let Some(costs) = &first.costs else {
            return timing;
        };
        let timing = BlockTiming {
            gap_s: costs.own_gap_s,
            ..timing
        }
        .with_slices_for(design, budget.variants, costs.turn_gap_s);
        let timing = BlockTiming {
            warm_up_s: timing.warm_up_after(design, first, costs, budget),
            ..timing
        };
        let room_s = timing.slices_room_s(budget, false, costs);
        timing.within(design, room_s, costs)
    }

    /// The length of the warm-up in seconds: the longest that any variant needs, as far as it fits.
    fn warm_up_after(
        &self,
        design: &Design,
        first: &FirstBlockTimes,
        costs: &TrialCosts,
        budget: BudgetLeft,
    ) -> f64 {
        let is_free = design.warmup.is_none() && budget.warm_up_max_s.is_none();
        let room_s = budget
            .warm_up_max_s
            .unwrap_or_else(|| self.warm_up_room_s(budget, costs));
        let warm_up_s = if self.watched {
            // A variant that never becomes steady makes all variants keep the whole watched time.
            let needed_s = first
                .steady_after_s
                .iter()
                .map(|s| s.unwrap_or(self.warm_up_s));
            needed_s.fold(WARM_UP_MIN_S, f64::max).min(room_s)
        } else if is_free {
            self.warm_up_assumed_s(budget.with_slack(), costs)
        } else {
            self.warm_up_s
        };
        let loaded_s = first
            .changing
            .iter()
            .map(|(_, loaded_s)| loaded_s.min(room_s));
        loaded_s.fold(warm_up_s, f64::max)
    }

    /// The number of slices in a trial, from the variances of the blocks so far.
    fn slices_for(
        &self,
        design: &Design,
        components: Option<Components>,
        costs: &TrialCosts,
        budget: BudgetLeft,
    ) -> u32 {
        if let Some(given) = design.slices {
            return given;
        }
        let wanted = components.map_or(self.slices, |found| {
            let slice_s = self.slice_s + costs.gap_s;
            stats::slices(self.before_slices_s(costs), slice_s, &found.shrunk())
        });
        wanted
            .max(self.slices_min())
            .min(self.slices_within(budget.with_slack(), costs))
    }

    /// Seconds of a trial beside its slices.
    pub fn before_slices_s(&self, costs: &TrialCosts) -> f64 {
        costs.trial_s + self.warm_up_s + self.settle_s
    }

    /// The timing with long and many enough slices, as far as the file permits.
    fn extended(mut self, design: &Design) -> BlockTiming {
        if design.slice.is_none() {
            // With a given number of slices only their length can change. Otherwise they stay short, because
            // of drift.
            let most_s = match design.slices {
                Some(_) => SLICE_GIVEN_MAX_S,
                None => {
                    (self.measured_min_s / SLICES_GIVEN_MAX).clamp(SLICE_S.1, SLICE_GIVEN_MAX_S)
                }
            };
            self.slice_s = (self.measured_min_s / f64::from(self.slices))
                .clamp(self.slice_s, most_s.max(self.slice_s));
        }
        if design.slices.is_none() {
            self.slices = self.slices.max(self.slices_min());
        }
        self
    }

    /// Number of turns in a slice: an even number, so that each has its mirror image, or 1 if a slice is no
    /// longer than a turn.
    pub fn turns(&self) -> u32 {
        let turns = (self.slice_s / self.turn_s).round().clamp(1.0, 10_000.0) as u32;
        if turns == 1 { 1 } else { turns - turns % 2 }
    }

    /// The timing with slices and turns as long as their overhead requires, and the same total measured
    /// time.
    fn with_slices_for(mut self, design: &Design, variants: usize, turn_gap_s: f64) -> BlockTiming {
        let measured_s = f64::from(self.slices) * self.slice_s;
        let slice_s = ((self.gap_s + turn_gap_s) * SLICE_GAPS).clamp(SLICE_S.0, SLICE_S.1);
        let trial_s = design.budget.as_secs_f64() / BLOCKS_ROOM / variants.max(1) as f64;
        let room_s = trial_s * TURNS_SHARE / f64::from(stats::SLICES_MIN);
        let waited_s = room_s.clamp(
            self.waited_s * TURN_RESPONSES.0,
            self.waited_s * TURN_RESPONSES.1,
        );
        let turn_min_s = (self.lead_s * TURN_LEADS).max(waited_s).max(TURN_MIN_S);
        let slice_s = slice_s.max(turn_min_s).min(SLICE_S.1);
        self.slice_s = design.slice.map_or(slice_s, |slice| slice.as_secs_f64());
        self.turn_s = ((TURN_GAP_S + turn_gap_s) * TURN_GAPS)
            .max(turn_min_s)
            .min(self.slice_s);
        self.lead_s = self.lead_s.min(self.turn_s / TURN_LEADS);
        let fit = (measured_s / self.slice_s)
            .round()
            .max(f64::from(stats::SLICES_MIN));
        self.slices = design.slices.unwrap_or(fit as u32);
        self.extended(design)
    }

    /// The timing with fewer slices, and then with shorter ones of one turn each, so that a trial's slices
    /// take at most `trial_s`. A slice stays as long as a few responses.
    fn within(mut self, design: &Design, trial_s: f64, costs: &TrialCosts) -> BlockTiming {
        let all_s = |of: &BlockTiming| f64::from(of.slices) * (of.slice_s + costs.gap_s);
        if all_s(&self) <= trial_s {
            return self;
        }
        if design.slices.is_none() {
            let fit = (trial_s / (self.slice_s + costs.gap_s)) as u32;
            self.slices = fit.clamp(self.slices_min(), self.slices);
        }
        if design.slice.is_none() && all_s(&self) > trial_s {
            let gap_s = TURN_GAP_S + costs.turn_gap_s;
            let each_s = trial_s / f64::from(self.slices) - costs.own_gap_s - gap_s;
            let least_s = match self.waited_s > 0.0 {
                true => self.waited_s * TURN_RESPONSES_LEAST,
                false => gap_s * TURN_GAPS,
            };
            let least_s = least_s.max(self.lead_s * TURN_LEADS).max(SLICE_S.0);
            self.slice_s = each_s.max(least_s).min(self.slice_s);
            self.turn_s = self.turn_s.min(self.slice_s);
        }
        self.extended(design)
    }

    /// Assumed costs of a trial before any is complete: a drain after each turn.
    fn costs_guess(&self, responses: &ResponseTimes) -> TrialCosts {
        let turn_gap_s = responses.drain_s;
        let turns_s = f64::from(self.turns()) * (TURN_GAP_S + turn_gap_s);
        TrialCosts {
            trial_s: responses.start_s + turn_gap_s,
            gap_s: self.gap_s + turns_s,
            own_gap_s: self.gap_s,
            turn_gap_s,
        }
    }

    /// Seconds for the slices of a trial such that the desired blocks fit into the remaining time. If the
    /// trials are warm, one block is in progress.
    fn slices_room_s(&self, budget: BudgetLeft, is_warm: bool, costs: &TrialCosts) -> f64 {
        let blocks = f64::from(BLOCKS_AIM.saturating_sub(budget.blocks_kept).max(1));
        let begun = if is_warm { 1.0 } else { 0.0 };
        let warm_up_s = if self.watched && is_warm {
            UNWATCHED_S.0
        } else {
            self.warm_up_s
        };
        let before_s = costs.trial_s + warm_up_s + self.settle_s;
        budget.seconds / budget.variants.max(1) as f64 / blocks
            - before_s * (blocks - begun) / blocks
    }

    /// Number of turns in a warm-up.
    pub fn warm_up_pieces(&self) -> u32 {
        (self.warm_up_s / self.turn_s.max(WARM_UP_TURN_S))
            .ceil()
            .max(1.0) as u32
    }

    /// The minimum number of slices of this length with enough requests for a trial.
    fn slices_min(&self) -> u32 {
        (self.measured_min_s / self.slice_s - 1e-9)
            .ceil()
            .clamp(1.0, SLICES_GIVEN_MAX) as u32
    }

    /// Whether a trial still has too few requests, because the file or a limit does not permit more.
    pub fn is_short(&self) -> bool {
        f64::from(self.slices) * self.slice_s < self.measured_min_s * (1.0 - 1e-9)
    }

    /// A lower bound of the time for the blocks of a verdict, in seconds.
    pub fn blocks_least_s(&self, design: &Design, variants: usize) -> f64 {
        let warm_up_s = design
            .warmup
            .map_or(WARM_UP_MIN_S, |warm_up| warm_up.as_secs_f64());
        f64::from(BLOCKS_MIN) * variants as f64 * (warm_up_s + self.settle_s + self.measured_min_s)
    }

    /// A lower bound of the time of a block, in seconds, if each trial takes `start_s` to start and to stop.
    pub fn block_least_s(&self, design: &Design, variants: usize, start_s: f64) -> f64 {
        let warm_up_s = design
            .warmup
            .map_or(UNWATCHED_S.0, |warm_up| warm_up.as_secs_f64());
        let measured_s = self.measured_min_s.max(SLICE_S.0 + self.gap_s);
        variants as f64 * (start_s + warm_up_s + self.settle_s + measured_s)
    }

    /// The longest warm-up with which the desired number of blocks fit into the time after the first block.
    fn warm_up_room_s(&self, budget: BudgetLeft, costs: &TrialCosts) -> f64 {
        let blocks = BLOCKS_ROOM - f64::from(budget.blocks_kept);
        self.warm_up_within_s(budget.seconds / blocks, budget.variants, costs)
    }

    /// The longest warm-up with which the blocks of a verdict fit into the time after the first block, if
    /// none was watched.
    fn warm_up_assumed_s(&self, budget: BudgetLeft, costs: &TrialCosts) -> f64 {
        let missing = f64::from(BLOCKS_MIN.saturating_sub(budget.blocks_kept).max(1));
        let block_s = budget.seconds / missing;
        self.warm_up_s
            .min(self.warm_up_within_s(block_s, budget.variants, costs))
    }

    /// The longest warm-up in blocks with this length.
    fn warm_up_within_s(&self, block_s: f64, variants: usize, costs: &TrialCosts) -> f64 {
        let slices_s = SLICES_FIRST * (self.slice_s + costs.gap_s);
        let slices_s = slices_s.max(self.measured_min_s) + self.settle_s;
        (block_s / variants.max(1) as f64 - costs.trial_s - slices_s).max(UNWATCHED_S.0)
    }

    /// The maximum number of slices in a trial with which the remaining desired blocks fit into the time.
    fn slices_within(&self, budget: BudgetLeft, costs: &TrialCosts) -> u32 {
        let blocks = BLOCKS_AIM.saturating_sub(budget.blocks_kept).max(1);
        let trials = blocks as usize * budget.variants.max(1);
        let room_s =
            budget.seconds / trials as f64 - costs.trial_s - self.warm_up_s - self.settle_s;
        // Fewer than the metric needs would be useless. Whether they fit is a question of the budget.
        (room_s / (self.slice_s + costs.gap_s))
            .floor()
            .max(1.0)
            .max(f64::from(self.slices_min())) as u32
    }

    /// Seconds that the first block takes longer in a larger budget, which has time to watch the warm-up.
    pub fn watch_more_s(&self, design: &Design, variants: usize) -> f64 {
        if design.warmup.is_some() || self.watched {
            0.0
        } else {
            variants as f64 * WATCH_MOST_S
        }
    }

    /// The pieces in which the first block watches its warm-up, in seconds.
    pub fn watch_pieces(&self) -> Vec<f64> {
        let ends_s: Vec<f64> = WATCH_S
            .into_iter()
            .filter(|end_s| *end_s < self.warm_up_s)
            .chain([self.warm_up_s])
            .collect();
        let starts_s = [0.0].into_iter().chain(ends_s.iter().copied());
        ends_s
            .iter()
            .zip(starts_s)
            .map(|(end_s, start_s)| end_s - start_s)
            .collect()
    }

    /// Seconds that a block with this number of variants takes at these costs.
    pub fn block_s(&self, variants: usize, costs: &TrialCosts) -> f64 {
        variants as f64
            * (self.before_slices_s(costs) + f64::from(self.slices) * (self.slice_s + costs.gap_s))
    }
}

/// How long each variant is loaded to measure its capacity, in seconds. 0 if no rate depends on it.
pub fn capacity_s(design: &Design, variants: usize) -> f64 {
    let share_s = design.budget.as_secs_f64() / variants.max(1) as f64;
    match design.rate_needs_capacity() {
        true => (share_s * CAPACITY_SHARE).clamp(CAPACITY_S.0, CAPACITY_S.1),
        false => 0.0,
    }
}

/// Estimated time for measuring all variants' capacities, in seconds. 0 if no rate depends on them.
fn capacity_seconds_guess(design: &Design, variants: usize) -> f64 {
    match capacity_s(design, variants) {
        0.0 => 0.0,
        seconds => variants as f64 * (TRIAL_GUESS_S + seconds),
    }
}

/// Total number of blocks that fit: finished ones, and those for which there is time.
pub fn blocks_within(done: u32, left_s: f64, block_s: f64) -> u32 {
    done + (left_s / block_s.max(0.001)).floor().clamp(0.0, 100_000.0) as u32
}

/// Assumed overhead of a slice beside window and drain, in seconds.
fn gap_s(plan: &Plan) -> f64 {
    if plan.generators.is_here() {
        SLICE_GAP_S
    } else {
        AGREED_GAP_S
    }
}
