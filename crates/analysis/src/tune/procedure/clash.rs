//! Handles a row of the screening that does not start, though each of its settings starts alone. Finds the
//! setting to leave out, so that the screening can continue.

use super::{SettingState, TunePhase, Tuning};
use crate::tune::step::{LevelRow, Purpose, StepOutcome, TuneStep};

/// Bisection for the first setting that does not work together with the earlier ones.
#[derive(Debug, Clone)]
pub(super) struct Clash {
    /// The settings of the row.
    on: Vec<usize>,
    /// Number of leading settings known to work together.
    works: usize,
    /// Number of leading settings known to fail, and why. `None` until the row has failed again, because the
    /// first failure may be chance.
    fails: Option<(usize, String)>,
}

impl Clash {
    /// Number of leading settings to try next.
    fn tried(&self) -> usize {
        self.fails
            .as_ref()
            .map_or(self.on.len(), |(fails, _)| (self.works + fails) / 2)
    }
}

impl Tuning {
    /// Starts the search for a row that did not start.
    pub(super) fn begin_clash(&mut self, row: &LevelRow) {
        let on: Vec<usize> = (0..row.len()).filter(|of| row[*of] > 0).collect();
        self.clash = Some(Clash {
            works: on.len().min(1),
            fails: None,
            on,
        });
        self.phase = TunePhase::Clash;
    }

    /// The next step of the search.
    pub(super) fn clash_step(&self) -> Option<TuneStep> {
        let clash = self.clash.as_ref()?;
        let on = &clash.on[..clash.tried()];
        let row = (0..self.chosen.len()).map(|of| {
            if on.contains(&of) {
                self.screened_level(of)
            } else {
                0
            }
        });
        Some(self.step(Purpose::Together, vec![row.collect()], 1))
    }

    /// Records whether the tried settings work together.
    pub(super) fn take_clash(&mut self, outcome: StepOutcome) {
        self.phase = TunePhase::Screen;
        let Some(mut clash) = self.clash.take() else {
            return;
        };
        let tried = clash.tried();
        match outcome {
            StepOutcome::Failed(why) | StepOutcome::NotStarted(_, why) => {
                clash.fails = Some((tried, why))
            }
            StepOutcome::Measured(..) | StepOutcome::Confirmed(..) if clash.fails.is_none() => {
                return self.take_half(StepOutcome::Failed("once it did not start".to_owned()));
            }
            StepOutcome::Measured(..) | StepOutcome::Confirmed(..) => clash.works = tried,
        }
        match &clash.fails {
            Some((fails, why)) if *fails <= clash.works + 1 => {
                self.leave_out(&clash.on[..*fails], why)
            }
            _ => (self.clash, self.phase) = (Some(clash), TunePhase::Clash),
        }
    }

    /// Leaves out the last of these settings. The current pair starts again without it.
    fn leave_out(&mut self, on: &[usize], why: &str) {
        let Some((of, beside)) = on.split_last() else {
            return self.take_half(StepOutcome::Failed(why.to_owned()));
        };
        let settings = &self.spec.settings;
        let beside: Vec<&str> = beside
            .iter()
            .map(|of| settings[*of].level(self.screened_level(*of)))
            .collect();
        let why = match beside.is_empty() {
            true => why.to_owned(),
            false => format!("not together with {}: {why}", beside.join(", ")),
        };
        self.states[*of] = SettingState::Failed(why);
        self.chosen[*of] = 0;
        self.screen.wanted.clear();
        self.screen.halves.clear();
    }
}
