//! A row of the screening does not start, though each of its settings does alone: which of them is left out, so that the rest goes on.

use super::{Phase, State, Tuning};
use crate::tune::step::{Outcome, Purpose, Row, Step};

/// The search for the first setting that does not work with those before it, by halves.
#[derive(Debug, Clone)]
pub(super) struct Clash {
    /// The settings of the row.
    on: Vec<usize>,
    /// So many of the first work together.
    works: usize,
    /// So many do not, and why; `None` until the row has failed again, for once may be chance.
    fails: Option<(usize, String)>,
}

impl Clash {
    /// How many of the first are tried next.
    fn tried(&self) -> usize {
        self.fails.as_ref().map_or(self.on.len(), |(fails, _)| (self.works + fails) / 2)
    }
}

impl Tuning {
    /// This row did not start.
    pub(super) fn begin_clash(&mut self, row: &Row) {
        let on: Vec<usize> = (0..row.len()).filter(|of| row[*of] > 0).collect();
        self.clash = Some(Clash { works: on.len().min(1), fails: None, on });
        self.phase = Phase::Clash;
    }

    /// The next try.
    pub(super) fn clash_step(&self) -> Option<Step> {
        let clash = self.clash.as_ref()?;
        let on = &clash.on[..clash.tried()];
        let row = (0..self.chosen.len()).map(|of| if on.contains(&of) { self.screened_level(of) } else { 0 });
        Some(self.step(Purpose::Together, vec![row.collect()], 1))
    }

    /// Takes in whether those that were tried work together.
    pub(super) fn take_clash(&mut self, outcome: Outcome) {
        self.phase = Phase::Screen;
        let Some(mut clash) = self.clash.take() else { return };
        let tried = clash.tried();
        match outcome {
            Outcome::Failed(why) | Outcome::NotStarted(_, why) => clash.fails = Some((tried, why)),
            Outcome::Measured(..) | Outcome::Confirmed(..) if clash.fails.is_none() => {
                return self.take_half(Outcome::Failed("once it did not start".to_owned()));
            }
            Outcome::Measured(..) | Outcome::Confirmed(..) => clash.works = tried,
        }
        match &clash.fails {
            Some((fails, why)) if *fails <= clash.works + 1 => self.leave_out(&clash.on[..*fails], why),
            _ => (self.clash, self.phase) = (Some(clash), Phase::Clash),
        }
    }

    /// Leaves out the last of these; the pair under way begins anew without it.
    fn leave_out(&mut self, on: &[usize], why: &str) {
        let Some((of, beside)) = on.split_last() else {
            return self.take_half(Outcome::Failed(why.to_owned()));
        };
        let settings = &self.spec.settings;
        let beside: Vec<&str> =
            beside.iter().map(|of| settings[*of].level(self.screened_level(*of))).collect();
        let why = match beside.is_empty() {
            true => why.to_owned(),
            false => format!("not together with {}: {why}", beside.join(", ")),
        };
        self.states[*of] = State::Failed(why);
        self.chosen[*of] = 0;
        self.screen.wanted.clear();
        self.screen.halves.clear();
    }
}
