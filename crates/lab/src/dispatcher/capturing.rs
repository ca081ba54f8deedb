//! Captures after a run, to explain it: separate trials in rounds, in an order drawn from the seed.
//!
//! The record already has its end, and captures change neither the measurements nor the end of the run.
//! Failed captures are recorded as missing, with the reason.

use model::{Absence, AskedOpen, CaptureKind, EndKind, EndReason, Event, Missing, Rate, SliceKind};

use super::{Dispatcher, Doing, LabError, Progress, UpdateNews};
use crate::environment::{CaptureSpec, Failure, Result, SliceSpec, Start, elapsed};
use crate::explaining::{self, CapturePlan, ROUNDS, TRIALS, Trials};
use crate::schedule::BlockSchedule;

/// A trial of a round.
#[derive(Debug, Clone, Copy)]
struct CapturedTrial {
    round: u32,
    variant: usize,
    /// Its number in the round, from 1.
    number: u32,
}

impl Dispatcher<'_> {
    /// Captures profiles to explain a run that ended for this reason, if requested and possible.
    pub(super) fn explain(&mut self, reason: &EndReason) {
        if !self.plan.design.explain {
            return;
        }
        let outcome = match self.unexplainable(reason) {
            Some(why) => Err(why),
            None => self
                .capture_rounds(ROUNDS, &TRIALS)
                .map_err(|failure| match failure {
                    Failure::End(EndReason::Interrupted) => {
                        "interrupted; what was captured before is kept".to_owned()
                    }
                    failure => failure.to_string(),
                }),
        };
        self.captures_left_s = None;
        if let Err(why) = outcome {
            self.report(UpdateNews::Progress(Progress::NotExplained(&why)));
        }
    }

    /// Why there is nothing to explain, and how to get profiles without a result. `None` if there is.
    fn unexplainable(&self, reason: &EndReason) -> Option<String> {
        let experiment = &self.writer.record().header.experiment;
        let all_the_same = |why: &str| {
            format!(
                "{why}; proofload profile {experiment} shows where each variant spends its time all the same"
            )
        };
        match reason.kind() {
            EndKind::Decided | EndKind::Planned => {}
            EndKind::Interrupted => return Some("the run was interrupted".to_owned()),
            EndKind::BudgetTooSmall => {
                return Some(all_the_same("the budget holds too few blocks for a result"));
            }
            EndKind::Void | EndKind::Failed(_) => {
                return Some("the run came to no result".to_owned());
            }
        }
        let conclusion = analysis::conclude(self.writer.record());
        let without_result = match &conclusion.comparisons[..] {
            [] => conclusion.is_void(),
            asked => asked.iter().all(|comparison| comparison.estimate.is_none()),
        };
        without_result.then(|| all_the_same("there is no estimate to explain"))
    }

    /// Captures a number of rounds without a measurement before. The end of the captures is the end of the
    /// run.
    pub(super) fn capture_alone(&mut self, rounds: u32, trials: Trials) -> Result<(), LabError> {
        let outcome = self
            .connect()
            .and_then(|()| self.prepare())
            .and_then(|()| self.choose_rate());
        let outcome = outcome.and_then(|()| self.capture_rounds(rounds, trials));
        self.close(outcome.map(|()| EndReason::Measured))?.1
    }

    fn capture_rounds(&mut self, rounds: u32, trials: Trials) -> Result<()> {
        let trial_s = self.costs.map(|costs| costs.trial_s);
        let captures = CapturePlan::of(self.writer.record(), trials, trial_s);
        let mut left_s = captures.seconds(rounds);
        self.captures_left_s = Some(left_s);
        let variants = captures.variants.len();
        self.report(UpdateNews::Progress(Progress::Explaining {
            variants,
            rounds,
            seconds: left_s,
        }));
        for round in 1..=rounds {
            let order = self.schedule.order(BlockSchedule::block_of_round(round));
            for variant in order
                .into_iter()
                .filter(|variant| captures.variants.contains(variant))
            {
                for (number, kinds) in (1..).zip(trials.iter().copied()) {
                    self.capture_trial(
                        CapturedTrial {
                            round,
                            variant,
                            number,
                        },
                        kinds,
                        &captures,
                    )?;
                    left_s -= captures.trial_s(kinds);
                    self.captures_left_s = Some(left_s.max(0.0));
                }
            }
        }
        Ok(())
    }

    /// Runs one trial. Captures that it could not make are recorded as missing, unless the record fails or
    /// the user stops.
    fn capture_trial(
        &mut self,
        at: CapturedTrial,
        kinds: &[CaptureKind],
        captures: &CapturePlan,
    ) -> Result<()> {
        let mut left = kinds;
        let outcome = self.capture_windows(at, &mut left, captures);
        // Nothing is left behind. The end of such a trial is not part of any figure.
        self.environment.stop(at.variant);
        let why = match outcome {
            Ok(()) => return Ok(()),
            Err(failure @ (Failure::End(EndReason::Interrupted) | Failure::Record(_))) => {
                return Err(failure);
            }
            // The next trial would fail likewise.
            Err(failure) if captures.alone => return Err(failure),
            Err(failure) => failure.to_string(),
        };
        for kind in left {
            let missing = Missing::new(Absence::Other, &*why);
            let capture = explaining::without(&self.plan, (at.round, at.variant, *kind), missing);
            self.record(Event::Captured(Box::new(capture)))?;
        }
        Ok(())
    }

    /// Captures the windows in `left`, and removes those that are done.
    fn capture_windows(
        &mut self,
        at: CapturedTrial,
        left: &mut &[CaptureKind],
        captures: &CapturePlan,
    ) -> Result<()> {
        let CapturedTrial {
            round,
            variant,
            number,
        } = at;
        let block = BlockSchedule::block_of_round(round);
        let padding_bytes = self.schedule.padding_bytes(block)[variant];
        let requests_seed = self.schedule.requests_seed(block);
        self.connect()?;
        self.report_trial(Doing::Starting, variant);
        self.environment.start(Start {
            patience: None,
            block: round,
            variant,
            padding_bytes,
            requests_seed,
            capture: Some(number),
        })?;
        self.report_trial(Doing::WarmingUp, variant);
        let warm_up = |seconds, open| SliceSpec {
            kind: SliceKind::WarmUp,
            until: elapsed(seconds),
            open,
        };
        if captures.warm_up_s > 0.0 {
            self.environment
                .load(variant, warm_up(captures.warm_up_s, None))?;
        }
        if let Some(open) = self.open_of_round(variant, round, 0) {
            self.environment
                .load(variant, warm_up(self.timing.settle_s, Some(open)))?;
        }
        let mut window = 0;
        while let Some((kind, rest)) = left.split_first() {
            window += 1;
            self.report(UpdateNews::Progress(Progress::Capturing {
                round,
                kind: *kind,
                variant,
            }));
            let open = self.open_of_round(variant, round, number * 100 + window);
            let spec = CaptureSpec {
                round,
                kind: *kind,
                seconds: captures.window_s(*kind),
                open,
            };
            let capture = self.environment.capture(variant, spec)?;
            self.record(Event::Captured(Box::new(capture)))?;
            *left = rest;
        }
        Ok(())
    }

    /// When requests of a window are due, the same for every variant with its rate in the round. `None` in
    /// closed loop.
    fn open_of_round(&self, variant: usize, round: u32, window: u32) -> Option<AskedOpen> {
        let common_per_s = self.common_per_s()?;
        let rate_per_s = self.plan.variants[variant]
            .load
            .rate_per_s
            .unwrap_or(common_per_s);
        let seed = self
            .schedule
            .arrivals_seed(BlockSchedule::block_of_round(round), window);
        Some(self.open_loop_at(Rate::Constant(rate_per_s), seed))
    }

    /// The rate of an experiment, or the highest rate among a measurement's slices. `None` in closed loop.
    fn common_per_s(&self) -> Option<f64> {
        let record = self.writer.record();
        let highest = |rate: Rate| {
            rate.ramp()
                .map_or(rate.at(0.0), |(from, to, _)| from.max(to))
        };
        let measured = record.trials().flat_map(|trial| trial.measured());
        let rates = measured.filter_map(|slice| Some(highest(slice.asked?.open?.rate)));
        record
            .rate
            .as_ref()
            .map(|rate| rate.per_s)
            .or_else(|| rates.reduce(f64::max))
    }
}
