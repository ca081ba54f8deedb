//! Length of the warm-up, number of slices in a trial, and number of blocks: from measurements, blind to
//! outcomes. Pure.
//!
//! Every choice here uses times and variances only, never which variant leads, so it cannot favour one.

use analysis::Spread;
use analysis::checks::changing_variants;
use plan::{Design, Metric, Pacing, Plan, PlannedRate};
use record::{Allocation, Block, RateChosen, Record, Slice, SliceKind, Trial, WarmUp};
use stats::{Components, Quantile};

use crate::dispatcher::capacity;

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
/// The part of it for stopping.
const STOP_GUESS_S: f64 = 0.2;
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
/// Assumed warm-up of blocks after the first, until it is measured.
const WARM_UP_GUESS_S: f64 = 3.0;
/// Seconds after which the first block checks whether a warm-up is over. The last value is the maximum.
const WATCH_S: [f64; 3] = [3.0, 6.0, 10.0];
/// The longest of these.
pub const WATCH_MOST_S: f64 = WATCH_S[WATCH_S.len() - 1];
/// The warm-up is no longer watched if the cut is within this share of it. While values still rise, it seldom
/// is.
const WATCHED_SHARE: f64 = 1.0 / 3.0;
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

/// Settings of each trial in the next block.
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
    /// Settings of the first block: from the file, otherwise a long warm-up and few slices.
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

    /// The settings at a rate, which determines how long a trial must be measured.
    pub fn at_rate(self, design: &Design, per_s: f64) -> BlockTiming {
        BlockTiming {
            measured_min_s: design.most_wanting().1 / per_s,
            ..self
        }
        .extended(design)
    }

    /// The settings with long and many enough slices, as far as the file permits.
    pub fn extended(mut self, design: &Design) -> BlockTiming {
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

    /// The settings with slices and turns as long as their overhead requires, and the same total measured
    /// time.
    pub fn with_slices_for(
        mut self,
        design: &Design,
        variants: usize,
        turn_gap_s: f64,
    ) -> BlockTiming {
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

    /// The settings with fewer slices, and then with shorter ones of one turn each, so that a trial's slices
    /// take at most `trial_s`. A slice stays as long as a few responses.
    pub fn within(mut self, design: &Design, trial_s: f64, costs: &Costs) -> BlockTiming {
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

    /// Assumed costs of a trial before any is complete: `trial_s` beside warm-up and slices, and a drain
    /// after each turn.
    pub fn costs_guess(&self, trial_s: f64, turn_gap_s: f64) -> Costs {
        let turns_s = f64::from(self.turns()) * (TURN_GAP_S + turn_gap_s);
        Costs {
            trial_s,
            gap_s: self.gap_s + turns_s,
            own_gap_s: self.gap_s,
            turn_gap_s,
        }
    }

    /// Whether slices are longer than usual, because responses or the gaps between turns are long.
    pub fn is_slow(&self) -> bool {
        self.slice_s > SLICE_S.0
    }

    /// Seconds for the slices of a trial such that the desired blocks fit into the remaining time. One block
    /// is in progress if its trials are already warm.
    pub fn slices_room_s(
        &self,
        left_s: f64,
        (blocks_done, is_warm): (u32, bool),
        variants: usize,
        costs: &Costs,
    ) -> f64 {
        let blocks = f64::from(BLOCKS_AIM.saturating_sub(blocks_done).max(1));
        let begun = if is_warm { 1.0 } else { 0.0 };
        let warm_up_s = if self.watched && is_warm {
            UNWATCHED_S.0
        } else {
            self.warm_up_s
        };
        let before_s = costs.trial_s + warm_up_s + self.settle_s;
        left_s / variants.max(1) as f64 / blocks - before_s * (blocks - begun) / blocks
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
    pub fn warm_up_room_s(
        &self,
        left_s: f64,
        blocks_done: u32,
        variants: usize,
        costs: &Costs,
    ) -> f64 {
        self.warm_up_within_s(
            left_s / (BLOCKS_ROOM - f64::from(blocks_done)),
            variants,
            costs,
        )
    }

    /// The longest warm-up with which the blocks of a verdict fit into the time after the first block, if
    /// none was watched.
    pub fn warm_up_assumed_s(
        &self,
        left_s: f64,
        blocks_done: u32,
        variants: usize,
        costs: &Costs,
    ) -> f64 {
        let missing = f64::from(BLOCKS_MIN.saturating_sub(blocks_done).max(1));
        self.warm_up_s
            .min(self.warm_up_within_s(left_s / missing, variants, costs))
    }

    /// The longest warm-up in blocks with this length.
    fn warm_up_within_s(&self, block_s: f64, variants: usize, costs: &Costs) -> f64 {
        let slices_s = SLICES_FIRST * (self.slice_s + costs.gap_s);
        let slices_s = slices_s.max(self.measured_min_s) + self.settle_s;
        (block_s / variants.max(1) as f64 - costs.trial_s - slices_s).max(UNWATCHED_S.0)
    }

    /// The maximum number of slices in a trial with which the remaining desired blocks fit into the time.
    pub fn slices_within(
        &self,
        left_s: f64,
        blocks_done: u32,
        variants: usize,
        costs: &Costs,
    ) -> u32 {
        let trials = BLOCKS_AIM.saturating_sub(blocks_done).max(1) as usize * variants.max(1);
        let room_s = left_s / trials as f64 - costs.trial_s - self.warm_up_s - self.settle_s;
        // Fewer than the metric needs would be useless. Whether they fit is a question of the budget.
        (room_s / (self.slice_s + costs.gap_s))
            .floor()
            .max(1.0)
            .max(f64::from(self.slices_min())) as u32
    }

    /// Seconds that a block with this number of variants takes at these costs.
    pub fn block_s(&self, variants: usize, costs: &Costs) -> f64 {
        variants as f64
            * (costs.trial_s
                + self.warm_up_s
                + self.settle_s
                + f64::from(self.slices) * (self.slice_s + costs.gap_s))
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

/// The rate of all variants. `None` if it is a share of an unknown capacity. A variant that never succeeds
/// has no capacity that counts: the others are loaded as they would be without it.
pub fn rate_chosen(rate: PlannedRate, capacities: &[Option<f64>]) -> Option<RateChosen> {
    match rate {
        PlannedRate::PerSecond(per_s) => Some(RateChosen {
            per_s,
            ramp_per_s: None,
            share: None,
            capacities_per_s: Vec::new(),
        }),
        PlannedRate::ShareOfCapacity(share) => {
            let capacities_per_s = capacities.iter().copied().collect::<Option<Vec<f64>>>()?;
            let slowest = capacities_per_s
                .iter()
                .copied()
                .filter(|per_s| *per_s > 0.0)
                .reduce(f64::min)?;
            let per_s = (slowest * share).min(plan::RATE_MAX_PER_S);
            Some(RateChosen {
                per_s,
                ramp_per_s: None,
                share: Some(share),
                capacities_per_s,
            })
        }
    }
}

/// Estimated duration of a run in seconds, before any measurement.
#[derive(Debug, Clone, Copy)]
pub struct SecondsGuess {
    /// Before the first block: the search for a rate, if there is one.
    pub before_s: f64,
    /// The first block.
    pub first_s: f64,
    /// Each later block.
    pub block_s: f64,
}

impl SecondsGuess {
    /// Estimates the duration of a plan.
    pub fn of(plan: &Plan) -> SecondsGuess {
        let (design, variants) = (&plan.design, plan.variants.len());
        if design.pacing() == Pacing::Search {
            return capacity::seconds_guess(design, variants);
        }
        let first = BlockTiming::first(plan);
        let (trial_s, gap_s) = (TRIAL_GUESS_S, first.gap_s);
        let costs = Costs {
            trial_s,
            gap_s,
            own_gap_s: gap_s,
            turn_gap_s: 0.0,
        };
        let later_s = design
            .warmup
            .map_or(first.warm_up_s.min(WARM_UP_GUESS_S), |warm_up| {
                warm_up.as_secs_f64()
            });
        let later = BlockTiming {
            warm_up_s: later_s,
            ..first
        };
        SecondsGuess {
            before_s: capacity_seconds_guess(design, variants),
            first_s: first.block_s(variants, &costs),
            block_s: later.block_s(variants, &costs),
        }
    }

    /// Duration of the first `blocks` blocks.
    pub fn until(&self, blocks: u32) -> f64 {
        self.before_s + self.first_s + f64::from(blocks.saturating_sub(1)) * self.block_s
    }
}

/// The pieces in which a warm-up of at most `most_s` is watched, in seconds.
pub fn watch(most_s: f64) -> impl Iterator<Item = f64> {
    let mut before_s = 0.0;
    let ends = WATCH_S
        .into_iter()
        .filter(move |end_s| *end_s < most_s)
        .chain([most_s]);
    ends.map(move |end_s| end_s - std::mem::replace(&mut before_s, end_s))
}

/// Whether a watched warm-up is complete.
pub fn is_warm(trial: &Trial) -> bool {
    let watched_s = warm_up_counts(trial).len() as f64 / 10.0;
    steady_after_s(trial).is_some_and(|seconds| seconds <= WATCHED_SHARE * watched_s)
}

/// Seconds until a trial was warm. `None` if it never was.
fn steady_after_s(trial: &Trial) -> Option<f64> {
    let counts = warm_up_counts(trial);
    if !counts.is_empty() && counts.iter().all(|count| *count == 0.0) {
        // A variant that never succeeds has nothing that could become steady.
        return Some(0.0);
    }
    stats::steady_after(&counts).map(|buckets| buckets as f64 / 10.0)
}

/// Successful responses of a trial's warm-up in each 100 ms. In open loop another warm-up at the common rate
/// follows.
fn warm_up_counts(trial: &Trial) -> Vec<f64> {
    let warm_ups = trial
        .slices
        .iter()
        .filter(|slice| slice.kind == SliceKind::WarmUp && slice.counts.open.is_none());
    warm_ups
        .flat_map(|slice| &slice.counts.successful_per_100_ms)
        .map(|count| f64::from(*count))
        .collect()
}

/// The length of the warm-up from the first block: the longest that any variant needs, as far as it fits.
pub fn warm_up(record: &Record, watched_s: f64, room_s: f64) -> WarmUp {
    let first = record.blocks.iter().find(|block| block.seconds.is_some());
    let trials = first
        .map(|block| block.trials.as_slice())
        .unwrap_or_default();
    let steady_after =
        |variant| steady_after_s(trials.iter().find(|trial| trial.variant() == variant)?);
    let steady_after_s: Vec<Option<f64>> = (0..record.header.plan.variants.len())
        .map(steady_after)
        .collect();
    // A variant that never becomes steady makes all variants keep the whole watched time.
    let longest_s = steady_after_s
        .iter()
        .map(|s| s.unwrap_or(watched_s))
        .fold(WARM_UP_MIN_S, f64::max);
    WarmUp {
        seconds: longest_s.min(room_s),
        measured: true,
        steady_after_s,
    }
}

/// Lengthens the warm-up if a variant still changed in the slices of a block. The new length is, as far as it
/// fits, the load that a trial had before its last slice.
pub fn lengthen_warm_up(chosen: &mut WarmUp, record: &Record, block: u32, room_s: f64) {
    let changing = changing_variants(record, block);
    let trials = record
        .blocks
        .iter()
        .filter(|of| of.number == block)
        .flat_map(|of| &of.trials);
    for trial in trials.filter(|trial| changing.contains(&trial.variant())) {
        let before = &trial.slices[..trial.slices.len().saturating_sub(1)];
        let loaded_s: f64 = before
            .iter()
            .map(|slice| slice.counts.window_ns as f64 / 1e9)
            .sum();
        chosen.seconds = chosen.seconds.max(loaded_s.min(room_s));
        chosen.steady_after_s[trial.variant()] = None;
    }
}

/// The number of slices in a trial, from the variances of the blocks so far.
pub fn allocation(record: &Record, settings: &BlockTiming, costs: &Costs) -> Allocation {
    let components = components(record, settings);
    let trial_s = costs.trial_s + settings.warm_up_s + settings.settle_s;
    let slices = components
        .as_ref()
        .map_or(settings.slices, |found| {
            stats::slices(trial_s, settings.slice_s + costs.gap_s, &found.shrunk())
        })
        .max(settings.slices_min());
    Allocation {
        slices,
        slice_s: settings.slice_s,
        measured: components.is_some(),
        between_sd: components
            .as_ref()
            .map(|components| components.between.sqrt()),
        within_sd: components
            .as_ref()
            .map(|components| components.within.sqrt()),
        trial_s: Some(trial_s),
    }
}

/// Total number of blocks that fit: finished ones, and those for which there is time.
pub fn blocks_within(done: u32, left_s: f64, block_s: f64) -> u32 {
    done + (left_s / block_s.max(0.001)).floor().clamp(0.0, 100_000.0) as u32
}

/// Likely duration of requests in flight after a window in seconds, from the warm-ups of a block. `None` if
/// there was none.
///
/// The drains alone would not be sufficient: if all responses take equally long, a window may by chance end
/// as they arrive.
pub fn warm_up_drain_s(record: &Record, block: u32) -> Option<f64> {
    let drain_ns = |slice: &Slice| {
        slice
            .counts
            .drain_ns
            .max(slice.counts.latency.quantile(0.5).map_or(0, Quantile::ns))
    };
    stats::mean(warm_ups(record, block).map(|slice| drain_ns(slice) as f64 / 1e9))
}

/// Seconds that a trial takes to start and to stop, averaged over all starts so far.
pub fn start_s(record: &Record) -> f64 {
    stats::mean(starts_s(record)).unwrap_or(TRIAL_GUESS_S) + STOP_GUESS_S
}

/// The same by the longest start so far.
pub fn longest_start_s(record: &Record) -> f64 {
    starts_s(record).reduce(f64::max).unwrap_or(TRIAL_GUESS_S) + STOP_GUESS_S
}

/// The shortest start so far, in seconds.
pub fn shortest_start_s(record: &Record) -> f64 {
    starts_s(record).reduce(f64::min).unwrap_or(0.0)
}

fn starts_s(record: &Record) -> impl Iterator<Item = f64> {
    record
        .blocks
        .iter()
        .flat_map(|block| &block.trials)
        .map(|trial| trial.started.start_s)
}

fn warm_ups(record: &Record, block: u32) -> impl Iterator<Item = &Slice> {
    let block = record.blocks.iter().find(|found| found.number == block);
    let slices = block
        .into_iter()
        .flat_map(|block| &block.trials)
        .flat_map(|trial| &trial.slices);
    slices.filter(|slice| slice.kind == SliceKind::WarmUp)
}

/// The lead of turns, from the warm-ups of a block: about the slowest variant's response if connections share
/// a link. Otherwise none, because the first of several requests that queue for a processor gets its response
/// at once.
pub fn lead_s(record: &Record, block: u32) -> f64 {
    let linked = record
        .header
        .plan
        .variants
        .iter()
        .any(|variant| variant.load.network.is_some());
    if linked {
        slowest_s(record, block, 0.9, |_| true)
    } else {
        0.0
    }
}

/// Median response time of the slowest of these variants in the warm-ups of a block, in seconds. 0 without
/// any.
pub fn waited_s(record: &Record, block: u32, waiting: &[usize]) -> f64 {
    slowest_s(record, block, 0.5, |variant| waiting.contains(&variant))
}

/// The largest quantile of the latencies among these variants' warm-ups in a block, in seconds.
fn slowest_s(record: &Record, block: u32, q: f64, is_one: impl Fn(usize) -> bool) -> f64 {
    let of_these = warm_ups(record, block).filter(|slice| is_one(slice.variant));
    let quantiles = of_these.filter_map(|slice| slice.counts.latency.quantile(q));
    quantiles
        .map(|quantile| quantile.ns() as f64 / 1e9)
        .fold(0.0, f64::max)
}

/// Variance components of log throughput. In open loop of the log of the metric, because throughput is fixed
/// there.
fn components(record: &Record, settings: &BlockTiming) -> Option<Components> {
    let metric = record.header.plan.design.metric;
    let varying = match (record.is_open_loop(), metric.quantile()) {
        (false, _) if analysis::per_core(record) => Metric::CpuPerRequest,
        (false, _) => Metric::Throughput,
        (true, None) => Metric::CpuPerRequest,
        (true, Some(_)) => metric,
    };
    Spread::of(record, varying, settings.slice_s).components()
}

// Overhead of trials, slices and turns beside their load: measured, or assumed until then.

/// Overhead of a trial and a slice beside their load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// Seconds of a trial beside warm-up and slices: start, connect, stop.
    pub trial_s: f64,
    /// Seconds of a slice beside its windows: drains, reading the use of services.
    pub gap_s: f64,
    /// The same without drains: the minimum time between two slices.
    pub own_gap_s: f64,
    /// Seconds of drain after one window.
    pub turn_gap_s: f64,
}

/// The measured costs of a trial and of a slice. `None` before the first block is complete.
pub fn costs(record: &Record) -> Option<Costs> {
    let mut blocks: Vec<&Block> = record.complete_blocks().collect();
    if blocks.is_empty() {
        // Disturbances made the dropped blocks slower, but they are still closer than an assumption.
        blocks = record
            .blocks
            .iter()
            .filter(|block| block.seconds.is_some())
            .collect();
    }
    let slices = || {
        blocks
            .iter()
            .flat_map(|block| &block.trials)
            .flat_map(|trial| &trial.slices)
    };
    let measured = || slices().filter(|slice| slice.kind == SliceKind::Measured);
    let drains_s = || measured().map(|slice| slice.counts.drain_ns as f64 / 1e9);
    let pauses_s = measured().map(|slice| f64::from(slice.turns) * TURN_GAP_S);
    let turns: u32 = measured().map(|slice| slice.turns).sum();
    let turn_gap_s = drains_s().sum::<f64>() / f64::from(turns.max(1));
    let own_gap_s = agreed_gap_s(record, &blocks).unwrap_or(gap_s(&record.header.plan));
    let gap_s = own_gap_s + stats::mean(pauses_s)? + stats::mean(drains_s())?;
    // The gap after a warm-up is a cost of the trial: there is one warm-up for any number of slices.
    let gap_of = |slice: &Slice| {
        if slice.kind == SliceKind::Measured {
            gap_s
        } else {
            0.0
        }
    };
    let loaded_s: f64 = slices()
        .map(|slice| slice.counts.window_ns as f64 / 1e9 + gap_of(slice))
        .sum();
    let total_s: f64 = blocks.iter().filter_map(|block| block.seconds).sum();
    let trials: usize = blocks.iter().map(|block| block.trials.len()).sum();
    let trial_s = ((total_s - loaded_s) / trials as f64).max(0.0);
    Some(Costs {
        trial_s,
        gap_s,
        own_gap_s,
        turn_gap_s,
    })
}

/// Measured time between two slices of a trial in seconds. With other generators than this process it is
/// several round trips to the farthest of them. `None` if no trial has two slices, or no agreement is needed.
fn agreed_gap_s(record: &Record, blocks: &[&Block]) -> Option<f64> {
    let between = |pair: &[&Slice]| {
        let [one, next] = pair else { return None };
        let ended_ns = one.counts.started_ns + one.counts.window_ns + one.counts.drain_ns;
        Some(next.counts.started_ns.saturating_sub(ended_ns) as f64 / 1e9)
    };
    let trials = blocks.iter().flat_map(|block| &block.trials);
    let gaps_s = trials.flat_map(|trial| {
        let slices: Vec<&Slice> = trial.measured().collect();
        slices.windows(2).filter_map(between).collect::<Vec<f64>>()
    });
    stats::mean(gaps_s).filter(|_| !record.header.plan.generators.is_here())
}

/// Assumed overhead of a slice beside window and drain, in seconds.
fn gap_s(plan: &Plan) -> f64 {
    if plan.generators.is_here() {
        SLICE_GAP_S
    } else {
        AGREED_GAP_S
    }
}
