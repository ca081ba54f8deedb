//! Duration of steps, and the number of steps that fit into the budget.

use stats::{MeasuredPoint, ScreenLooks};

use super::{ALPHA, LOOKS, SettingState, TunePhase, Tuning};
use crate::tune::screening::{RACE_BLOCKS_MIN, latency_pairs};
use crate::tune::step::{TooShort, TuneStep};

/// After this number of pairs, a confirmation of full length has priority over further pairs.
const PAIRS_ENOUGH: u32 = 9;
/// Planned pairs relative to the number that fits with all settings. Decided settings leave, which makes
/// later pairs shorter. In simulations 1.25 and 2 found less.
const PAIRS_PLANNED: f64 = 1.5;
/// Below this number of pairs hardly any setting leaves in time.
const PAIRS_PLANNED_FROM: f64 = 6.0;
/// Blocks of the confirmation: the reserved number, and the maximum if there is time left.
const CONFIRM_BLOCKS: (u32, u32) = (6, 12);
/// Reserved number once the pairs that fit with all settings are done.
const CONFIRM_BLOCKS_LATE: u32 = 8;
/// Maximum number of blocks for confirming response times, which vary more between processes.
const CONFIRM_LATENCY_BLOCKS_MAX: u32 = 30;
/// Reserved time for the confirmation, relative to its expected duration.
const ROOM: f64 = 1.2;
/// Maximum duration of a step, relative to its expected duration. Disturbed blocks are repeated.
const STEP_ROOM: f64 = 2.5;
/// Minimum of that maximum, in seconds.
const STEP_MOST_MIN_S: f64 = 60.0;
/// Room in a suggested budget. The next run may measure a warm-up half as long again, and trials then take a
/// quarter longer.
const ASKED_ROOM: f64 = 1.3;
/// Number of settings for which open-loop pairs are reserved. More rarely help.
const HELPFUL_MAX: usize = 4;

impl Tuning {
    /// Remaining time of the budget, in seconds.
    pub fn left_s(&self) -> f64 {
        (self.spec.budget_s - self.spent_s).max(0.0)
    }

    /// Approximate additional seconds of a screening that decides this setting.
    pub fn more_s(&self, of: usize) -> Option<f64> {
        let (
            MeasuredPoint {
                value: log,
                standard_error,
            },
            critical_t,
        ) = self.screen.effect(of, self.spec.metric)?;
        let margin = self.spec.margin.ln_1p();
        // Either the interval excludes 1, or it is entirely within the margin.
        let wanted = log.abs().max(margin - log.abs()).max(margin / 4.0);
        let factor = (critical_t * standard_error / wanted).powi(2);
        let pairs = f64::from(self.screen.pairs);
        let rows = self
            .screen
            .blocks
            .values()
            .next()?
            .iter()
            .map(Vec::len)
            .sum::<usize>();
        let rows = rows as f64 / pairs.max(1.0);
        Some((factor - 1.0).max(0.5) * pairs * 2.0 * rows * self.trial_s)
    }

    /// Learns from the duration of a block with this number of trials.
    pub(super) fn learn(&mut self, block_s: f64, trials: usize) {
        let each = block_s / trials as f64;
        // The latest trials count most, because warm-ups of settings differ.
        self.trial_s = if self.trial_s > 0.0 {
            0.5 * (self.trial_s + each)
        } else {
            each
        };
    }

    /// Reserved time for confirmations. There are two if response times have limits.
    pub(super) fn confirm_s(&self) -> f64 {
        self.confirmations_s(CONFIRM_BLOCKS.0, CONFIRM_BLOCKS.0)
    }

    /// Duration of the confirmations with these numbers of blocks, in closed loop and for response times.
    fn confirmations_s(&self, blocks: u32, latency_blocks: u32) -> f64 {
        let blocks = blocks
            + if self.keeps_latency() {
                latency_blocks
            } else {
                0
            };
        2.0 * f64::from(blocks) * self.trial_s * ROOM
    }

    /// Remaining time for the next confirmation, in seconds.
    fn confirmation_left_s(&self) -> f64 {
        let to_come = if self.keeps_latency() && self.confirmed.is_none() {
            2.0
        } else {
            1.0
        };
        self.left_s() / to_come
    }

    /// Maximum duration of a step, in seconds. A confirmation gets at most the remaining time, and earlier
    /// steps leave enough.
    pub(super) fn most_s(&self, step: &TuneStep) -> f64 {
        let most_s = (step.seconds * STEP_ROOM).max(STEP_MOST_MIN_S);
        if step.confirms() {
            most_s
                .min(self.confirmation_left_s())
                .max(step.seconds * ROOM)
        } else {
            most_s
        }
    }

    /// Number of blocks that fit into the time, decided before the first of them is measured.
    pub(super) fn confirm_blocks(&self) -> u32 {
        let fit = self.confirmation_left_s() / (2.0 * self.trial_s * ROOM).max(1e-9);
        let at_rate = self.phase == TunePhase::ConfirmLatency;
        let most = if at_rate {
            CONFIRM_LATENCY_BLOCKS_MAX
        } else {
            CONFIRM_BLOCKS.1
        };
        (fit as u32).clamp(CONFIRM_BLOCKS.0, most)
    }

    /// Reserved time for open-loop pairs with this number of settings.
    pub(super) fn latency_s(&self, settings: usize) -> f64 {
        let wanted = settings > 1 && self.keeps_latency();
        if wanted {
            f64::from(latency_pairs(settings)) * self.pair_s(settings)
        } else {
            0.0
        }
    }

    /// Approximate duration of a block of a race with this number of levels. Limits compare with the
    /// unchanged service, which then runs in the same block.
    pub(super) fn race_block_s(&self, levels: usize) -> f64 {
        (levels + usize::from(self.has_limits())) as f64 * self.trial_s
    }

    /// Approximate duration of a race with this number of levels.
    pub(super) fn race_s(&self, levels: usize) -> f64 {
        f64::from(RACE_BLOCKS_MIN) * self.race_block_s(levels)
    }

    /// Approximate duration of the races of these settings, one after the other.
    fn races_s(&self, of: &[usize]) -> f64 {
        let levels = of.iter().map(|of| self.spec.settings[*of].levels.len());
        levels
            .filter(|levels| *levels > 1)
            .map(|levels| self.race_s(levels))
            .sum()
    }

    /// Decides the number of pairs and the looks.
    ///
    /// # Errors
    /// If there is no room for two pairs.
    pub(super) fn plan_pairs(&mut self) -> Result<(), TooShort> {
        let open = self.open().len();
        let pair_s = self.pair_s(open);
        let behind_s = self.confirm_s() + self.latency_s(open.min(HELPFUL_MAX));
        let room = |races_s: f64| (self.left_s() - behind_s - races_s) / pair_s.max(1e-9);
        // A race is worthwhile only if the screening still has enough time.
        let races_s = self.races_s(&(0..self.states.len()).collect::<Vec<_>>());
        let races = room(races_s) >= 3.0;
        let pairs = room(if races { races_s } else { 0.0 });
        let least = f64::from(LOOKS[0]);
        if open > 0 && pairs < least {
            return Err(TooShort {
                needed_s: (self.spent_s + behind_s + least * pair_s) * ASKED_ROOM,
            });
        }
        self.races = races;
        self.screen.pairs_fit = pairs as u32;
        let has_leavers = pairs >= PAIRS_PLANNED_FROM && !self.keeps_latency();
        let planned = if has_leavers {
            PAIRS_PLANNED * pairs
        } else {
            pairs
        };
        self.screen.pairs_max = (planned as u32).min(LOOKS[LOOKS.len() - 1]);
        let before_last = LOOKS
            .into_iter()
            .filter(|look| *look < self.screen.pairs_max);
        let looks: Vec<u32> = before_last.chain([self.screen.pairs_max]).collect();
        self.screen.looks = ScreenLooks::new(&looks, open, ALPHA);
        Ok(())
    }

    /// Whether there is time for another pair of these settings. Delays cost pairs, never the confirmation.
    pub(super) fn has_room_for_pair(&self, open: &[usize]) -> bool {
        let confirm_s = match self.screen.pairs {
            pairs if pairs >= PAIRS_ENOUGH => {
                self.confirmations_s(CONFIRM_BLOCKS.1, CONFIRM_LATENCY_BLOCKS_MAX)
            }
            pairs if pairs >= self.screen.pairs_fit => {
                self.confirmations_s(CONFIRM_BLOCKS_LATE, CONFIRM_BLOCKS_LATE)
            }
            _ => self.confirm_s(),
        };
        let helpful = [self.in_state(SettingState::Better), open.to_vec()].concat();
        let races_s = if self.races {
            self.races_s(&helpful)
        } else {
            0.0
        };
        let behind_s = confirm_s + races_s + self.latency_s(helpful.len().min(HELPFUL_MAX));
        self.left_s() >= self.pair_s(open.len()) + behind_s
    }

    /// Approximate duration of a mirrored pair with this number of settings.
    pub(super) fn pair_s(&self, open: usize) -> f64 {
        let design = stats::designs(open.max(1), 0);
        let rows: usize = design.map_or(0, |blocks| blocks.iter().map(Vec::len).sum());
        2.0 * rows as f64 * self.trial_s
    }
}
