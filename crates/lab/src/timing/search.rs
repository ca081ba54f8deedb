//! The timing of a search for capacities: the closed loop and the steps before the first block, and in each
//! block one long window near the crossing with steps beside it. Pure.

use analysis::capacity::limit_s;
use plan::Design;
use record::Block;

use super::{BLOCKS_MIN, SLACK, SecondsGuess};

/// Maximum share of the budget for the search before the first block.
const PILOT_SHARE: f64 = 0.15;
/// Minimum length in seconds of its closed loop, and of each step, and their lengths in multiples of the
/// limit of the response time.
const AT_LIMIT_S: f64 = 2.0;
/// Minimum length of the closed loop in multiples of a response time's limit: the slowest permitted responses
/// then arrive in the second half, too.
const AT_LIMIT_LIMITS: f64 = 2.0;
const STEP_S: f64 = 1.0;
const STEP_LIMITS: f64 = 40.0;
/// Assumed number of steps of the search.
const PILOT_STEPS_GUESS: f64 = 6.0;
/// Minimum length of a window, in multiples of the limit of the response time and in seconds, and the desired
/// length.
const WINDOW_LEAST_LIMITS: f64 = 60.0;
const WINDOW_LEAST_S: f64 = 1.0;
const WINDOW_LIMITS: f64 = 350.0;
/// Maximum of the desired number of blocks.
const BLOCKS_MOST: u32 = 10;
/// Length of the step below the window relative to the window.
const LOWER_SHARE: f64 = 0.15;
/// Length of both relative to the window.
const OF_WINDOW: f64 = 1.0 + LOWER_SHARE;
/// Length of the fall in seconds and in multiples of the limit, and total length relative to it: the queue at
/// the end of the fall takes twice the fall to drain.
const OVERLOAD_S: f64 = 2.0;
const OVERLOAD_LIMITS: f64 = 20.0;
const OVERLOAD_TIMES: f64 = 4.5;
/// Maximum warm-up for which a search sets time aside, in seconds.
const WARM_UP_MAX_S: f64 = 1.5;
/// Required time for a variant, as a multiple of the overload's length.
const OVERLOAD_ROOM: f64 = 10.0;
/// Assumed time of a trial beside load, in seconds.
const TRIAL_S: f64 = 1.5;

/// Timing of each trial of a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SearchTiming {
    /// Length of the window near the crossing, in seconds.
    pub window_s: f64,
    /// Length of a step of the curve, in seconds.
    pub step_s: f64,
    /// Length of the closed loop at the beginning of a trial, in seconds.
    pub at_limit_s: f64,
    /// Length of the fall of an overload, in seconds, and of the whole overload. `None` if no trial is
    /// overloaded.
    pub overload_s: Option<(f64, f64)>,
    /// Minimum length of a window, in seconds.
    window_least_s: f64,
    /// Time of a trial beside its window and the step below it, in seconds. Assumed until a block has ended.
    beside_s: f64,
    /// Planned number of blocks.
    pub blocks: u32,
}

impl SearchTiming {
    /// The longest warm-up that leaves most of a trial to the measurement.
    pub(crate) fn warm_up_room_s(&self) -> f64 {
        (self.window_s * 0.25).max(1.0)
    }

    /// Plans as many blocks as fit into the remaining time with the desired windows, or fewer with shorter
    /// ones.
    ///
    /// # Errors
    /// A sufficient time in seconds, if this one is too short.
    pub(crate) fn first(
        design: &Design,
        left_s: f64,
        variants: usize,
        warm_up_s: f64,
    ) -> Result<SearchTiming, f64> {
        let limit_s = limit_s(design);
        let (step_s, at_limit_s) = (step_s(limit_s), at_limit_s(limit_s));
        let warm_up_s = warm_up_s.min(WARM_UP_MAX_S);
        let whole_s = left_s / variants.max(1) as f64;
        let beside_s = TRIAL_S + warm_up_s + at_limit_s + step_s + limit_s;
        let fall_s = (OVERLOAD_LIMITS * limit_s).max(OVERLOAD_S);
        let all_s = fall_s * OVERLOAD_TIMES;
        // A short run has no time for parts that do not contribute to the estimate.
        let overload_s = (whole_s > all_s * OVERLOAD_ROOM).then_some((fall_s, all_s));
        let overloaded_s = overload_s.map_or(0.0, |(_, all_s)| all_s);
        let room_s = whole_s - overloaded_s;
        let aim_s = (WINDOW_LIMITS * limit_s).max(WINDOW_LEAST_S);
        let fit = (room_s / (beside_s + aim_s * OF_WINDOW)).floor();
        let blocks = fit.clamp(f64::from(BLOCKS_MIN), f64::from(BLOCKS_MOST));
        let window_s = (room_s / blocks - beside_s) / OF_WINDOW;
        let window_least_s = (WINDOW_LEAST_LIMITS * limit_s).max(WINDOW_LEAST_S);
        if window_s < window_least_s {
            let block_s = beside_s + window_least_s * OF_WINDOW;
            return Err((f64::from(BLOCKS_MIN) * block_s + overloaded_s) * variants as f64);
        }
        Ok(SearchTiming {
            window_s,
            step_s,
            at_limit_s,
            overload_s,
            window_least_s,
            beside_s,
            blocks: design
                .blocks
                .map_or(blocks as u32, |most| most.min(blocks as u32)),
        })
    }

    /// Length of the step below the window, in seconds.
    pub(crate) fn lower_s(&self) -> f64 {
        (self.window_s * LOWER_SHARE).max(self.step_s)
    }

    /// Seconds that a block with this number of variants takes.
    pub(crate) fn block_s(&self, variants: usize) -> f64 {
        variants as f64 * (self.beside_s + self.window_s * OF_WINDOW)
    }

    /// The timing of the next block, with windows short enough for the remaining ones. `last` is the block
    /// that has just ended.
    pub(crate) fn next(
        self,
        last: &Block,
        variants: usize,
        kept: u32,
        left_s: f64,
    ) -> SearchTiming {
        let (variants, to_come) = (
            variants.max(1) as f64,
            f64::from(self.blocks.saturating_sub(kept)),
        );
        let Some(seconds) = last.seconds.filter(|_| to_come > 0.0) else {
            return self;
        };
        // The first block that counts, and dropped blocks before it, had the overload.
        let overload_s = match self.overload_s {
            Some((_, all_s)) if kept == u32::from(last.dropped.is_none()) => all_s,
            Some(_) | None => 0.0,
        };
        let beside_s = (seconds / variants - overload_s - self.window_s * OF_WINDOW).max(0.0);
        let room_s = left_s * SLACK / variants / to_come - beside_s;
        let window_s = (room_s / OF_WINDOW)
            .max(self.window_least_s)
            .min(self.window_s);
        SearchTiming {
            beside_s,
            window_s,
            ..self
        }
    }
}

/// Timing of the search for one variant's rate before the first block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PilotTiming {
    /// Length of the warm-up in seconds.
    pub warm_up_s: f64,
    /// Length of the closed loop in seconds.
    pub at_limit_s: f64,
    /// Length of a step in seconds.
    pub step_s: f64,
    /// Time in seconds after which a search ends once it has a range.
    pub most_s: f64,
}

impl PilotTiming {
    /// The timing of a plan with this number of variants.
    pub(crate) fn of(design: &Design, variants: usize) -> PilotTiming {
        let limit_s = limit_s(design);
        PilotTiming {
            warm_up_s: AT_LIMIT_S / 2.0,
            at_limit_s: at_limit_s(limit_s),
            step_s: step_s(limit_s),
            most_s: design.budget.as_secs_f64() * PILOT_SHARE / variants as f64,
        }
    }
}

/// Estimated duration of a run with this design and number of variants.
pub(crate) fn seconds_guess(design: &Design, variants: usize) -> SecondsGuess {
    let (pilot, budget_s) = (
        PilotTiming::of(design, variants),
        design.budget.as_secs_f64(),
    );
    let search_s = TRIAL_S + pilot.at_limit_s + pilot.warm_up_s + PILOT_STEPS_GUESS * pilot.step_s;
    let before_s = (variants as f64 * search_s).min(budget_s * PILOT_SHARE);
    let left_s = budget_s - before_s;
    let block_s = match SearchTiming::first(design, left_s, variants, WARM_UP_MAX_S) {
        Ok(search) => search.block_s(variants),
        Err(blocks_s) => blocks_s / f64::from(BLOCKS_MIN),
    };
    SecondsGuess {
        before_s,
        first_s: block_s,
        block_s,
    }
}

fn step_s(limit_s: f64) -> f64 {
    (STEP_LIMITS * limit_s).max(STEP_S)
}

fn at_limit_s(limit_s: f64) -> f64 {
    (AT_LIMIT_LIMITS * limit_s).max(AT_LIMIT_S)
}
