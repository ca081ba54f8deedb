//! Estimated duration of a run, before anything is measured.

use plan::{Pacing, Plan};

use super::{BlockTiming, TRIAL_GUESS_S, TrialCosts, capacity_seconds_guess, search};

/// Assumed warm-up of blocks after the first, until it is measured.
const WARM_UP_GUESS_S: f64 = 3.0;

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
            return search::seconds_guess(design, variants);
        }
        let first = BlockTiming::first(plan);
        let (trial_s, gap_s) = (TRIAL_GUESS_S, first.gap_s);
        let costs = TrialCosts {
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
