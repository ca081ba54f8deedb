//! The dispatcher: a loop over blocks that starts, loads and stops trials, records everything, and decides
//! when to end.
//!
//! It owns all state of a run. It only determines which variant leads at the looks of the stopping rule.

use std::time::Duration;

use analysis::Conclusion;
use model::{AskedOpen, ConnectionsChosen, SliceRequest};
use plan::Plan;
use record::{EndReason, Ended, Event, Record, Slice, SliceKind, Trial, WriteError, Writer};

use crate::environment::{Environment, Failure, Result, SliceSpec, Start, Turn, elapsed};
use crate::explaining::Trials;
use crate::schedule::{BlockSchedule, live_together, take_turns};
use crate::timing::{self, BLOCKS_AIM, BlockTiming, SearchTiming, TrialCosts};

mod around;
mod capacity;
mod capturing;
mod cores;
mod measuring;
mod rate;
mod timing_choices;
mod update;

pub use update::{Doing, Progress, Update, UpdateNews};

/// A run that failed. The record on disk contains everything up to then.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// Something failed that the run needs. The record ends for this reason.
    #[error("{0}")]
    Failed(EndReason),
    /// The record could not be written.
    #[error(transparent)]
    Record(#[from] WriteError),
}

/// Callback for updates as they happen.
pub type UpdateWatch<'a> = &'a mut dyn FnMut(&Update<'_>);

/// Runs the plan of a new record, and returns the record with all events.
///
/// A run that ended early (interrupted, void, budget spent) is not an error: the record contains how it
/// ended.
///
/// # Errors
/// If a service fails or the record cannot be written. All trials are stopped in every case.
pub fn run(
    writer: Writer,
    environment: &mut dyn Environment,
    watch: UpdateWatch<'_>,
) -> (Record, Result<(), LabError>) {
    let mut dispatcher = Dispatcher::new(writer, environment, watch);
    let result = dispatcher.execute();
    (dispatcher.writer.into_record(), result)
}

/// Captures profiles of a plan's variants in a number of rounds, without measuring, to find out where a
/// service spends its time.
///
/// # Errors
/// If data cannot be made, no rate can be determined, a service fails, or the record cannot be written.
/// Captures that a service makes impossible, such as without an agent, are listed as missing in the record,
/// with the reason.
pub fn capture_only(
    writer: Writer,
    environment: &mut dyn Environment,
    rounds: u32,
    trials: Trials,
    watch: UpdateWatch<'_>,
) -> (Record, Result<(), LabError>) {
    let mut dispatcher = Dispatcher::new(writer, environment, watch);
    let result = dispatcher.capture_alone(rounds, trials);
    (dispatcher.writer.into_record(), result)
}

/// Share of the budget by which the current block may exceed it: blocks take a little longer than earlier
/// ones.
const BUDGET_EXCESS_MAX: f64 = 0.05;

struct Dispatcher<'a> {
    plan: Plan,
    schedule: BlockSchedule,
    timing: BlockTiming,
    writer: Writer,
    environment: &'a mut dyn Environment,
    watch: UpdateWatch<'a>,
    began_s: f64,
    /// Number of the current block, from 1.
    block: u32,
    /// Start of the current block, in seconds of the budget.
    block_began_s: f64,
    /// Variants that wait for something other than a processor, judged by the warm-ups of the first block.
    waiting: Vec<usize>,
    /// Costs of trials in the blocks so far. Cached until the next block ends, because each update needs
    /// them.
    costs: Option<TrialCosts>,
    /// Variants with running trials, in starting order.
    running: Vec<usize>,
    /// Variants that are still measured: all, until comparisons are decided.
    measured: Vec<usize>,
    /// Estimated remaining time of the captures. `None` if there are none.
    captures_left_s: Option<f64>,
    /// Timing of the search for capacities. `None` if capacity is not measured.
    search: Option<SearchTiming>,
    /// The number of connections chosen for capacity. `None` if the plan sets it.
    connections: Option<ConnectionsChosen>,
}

impl<'a> Dispatcher<'a> {
    fn new(
        writer: Writer,
        environment: &'a mut dyn Environment,
        watch: UpdateWatch<'a>,
    ) -> Dispatcher<'a> {
        let plan = writer.record().header.plan.clone();
        let schedule = BlockSchedule::new(writer.record().header.seed, plan.variants.len());
        let timing = BlockTiming::first(&plan);
        let began_s = environment.now_s();
        Dispatcher {
            measured: (0..plan.variants.len()).collect(),
            plan,
            schedule,
            timing,
            writer,
            environment,
            watch,
            began_s,
            block: 0,
            block_began_s: 0.0,
            waiting: Vec::new(),
            costs: None,
            running: Vec::new(),
            captures_left_s: None,
            search: None,
            connections: None,
        }
    }

    fn execute(&mut self) -> Result<(), LabError> {
        let outcome = self.blocks().or_else(|failure| match failure {
            Failure::GeneratorsLost(lost) => Err(self.lost_for_good(&lost)?),
            Failure::OutOfBudget => Ok(self.end_out_of_budget()),
            failure => Err(failure),
        });
        let (reason, result) = self.close(outcome)?;
        // Only now, so that the record has its end in any case.
        self.explain(&reason);
        result
    }

    /// Stops all trials, and records how the run ended. Returns the end, and the result for the caller
    /// without secrets.
    ///
    /// # Errors
    /// If the record itself cannot be written, so that it cannot contain the end.
    fn close(
        &mut self,
        outcome: Result<EndReason>,
    ) -> Result<(EndReason, Result<(), LabError>), WriteError> {
        // Nothing is left behind after an error. A second failure must not hide the first.
        let stopped = self.stop_all();
        let outcome = outcome.and_then(|reason| stopped.map(|()| reason));
        let reason = outcome.or_else(Failure::into_end)?;
        let seconds = self.elapsed_s();
        let ended = self.plan.secrets.hidden(Ended { reason, seconds });
        let reason = ended.reason.clone();
        let ended = Event::Ended(ended);
        self.report(UpdateNews::Event(&ended));
        self.writer.append(ended)?;
        let result = match reason.failure() {
            Some(_) => Err(LabError::Failed(reason.clone())),
            None => Ok(()),
        };
        Ok((reason, result))
    }

    fn blocks(&mut self) -> Result<EndReason> {
        self.connect()?;
        self.prepare()?;
        if let Some(measure) = self.plan.measure.clone() {
            return self.measure(&measure);
        }
        self.find_ports()?;
        self.choose_rate()?;
        self.prepare_search()?;
        loop {
            self.connect()?;
            self.block += 1;
            let is_whole = match self.run_block() {
                Err(Failure::GeneratorsLost(lost)) => self.abandon_block(&lost).map(|()| false)?,
                outcome => outcome.map(|()| true)?,
            };
            let counts = is_whole && !self.drop_if_disturbed()?;
            if is_whole {
                self.choose_timing(counts)?;
            }
            let measured = self.measured.len();
            // A dropped block adds no information either.
            let reason = if counts {
                self.judge_block()
            } else {
                self.out_of_time()
            };
            if let Some(reason) = reason {
                return Ok(reason);
            }
            if self.measured.len() < measured {
                self.choose_blocks()?;
            }
        }
    }

    /// Concludes from all blocks so far, and reports the conclusion. Returns why the run ends, if it does: by
    /// the stopping rule at a look, or because the time is over.
    fn judge_block(&mut self) -> Option<EndReason> {
        let conclusion = analysis::conclude(self.writer.record());
        self.report(UpdateNews::Progress(Progress::Concluded(&conclusion)));
        self.end_by(&conclusion)
    }

    fn end_by(&mut self, conclusion: &Conclusion) -> Option<EndReason> {
        if let Some(why) = analysis::void_for_good(conclusion) {
            return Some(EndReason::Void(why));
        }
        let kept = self.blocks_kept();
        let rule = analysis::rule(self.writer.record());
        let last = self.last_block();
        if self.plan.comparisons.is_empty() {
            return (kept >= last)
                .then_some(EndReason::Measured)
                .or_else(|| self.out_of_time());
        }
        if rule.is_some_and(|rule| rule.is_look(kept)) {
            if conclusion.is_decided() && analysis::limits_settled(self.writer.record(), conclusion)
            {
                return Some(EndReason::Decided);
            }
            self.stop_decided_variants(conclusion);
        }
        if kept >= last {
            return Some(EndReason::LastLook);
        }
        self.out_of_time()
    }

    /// Stops measuring decided variants, and leaves their time to the others. Not if variants are judged
    /// together: by effects of factors, by limits, or against a copy. Nor if later blocks of the baseline
    /// would change the verdict, as with a quantile over all of its blocks.
    fn stop_decided_variants(&mut self, conclusion: &Conclusion) {
        let plan = &self.plan;
        let together = !conclusion.effects.is_empty()
            || !plan.gate.is_empty()
            || plan.aa.is_some()
            || plan.design.pooled;
        if !together && self.search.is_none() {
            self.measured.retain(|variant| conclusion.wants(*variant));
        }
    }

    /// A block is only started if it will end within the budget with the current timing.
    fn out_of_time(&mut self) -> Option<EndReason> {
        let block_s = self.estimated_block_s().unwrap_or(0.0);
        (self.left_s() < block_s).then_some(EndReason::BudgetSpent)
    }

    fn run_block(&mut self) -> Result<()> {
        let began_s = self.elapsed_s();
        self.block_began_s = began_s;
        let mut order = self.schedule.order(self.block);
        order.retain(|variant| self.measured.contains(variant));
        self.record(Event::BlockStarted {
            block: self.block,
            order: order.clone(),
        })?;
        if live_together(&self.plan) {
            self.run_together(&order)?;
        } else {
            for variant in order {
                self.run_together(&[variant])?;
            }
        }
        let seconds = self.elapsed_s() - began_s;
        self.record(Event::BlockEnded {
            block: self.block,
            seconds,
        })
    }

    /// Starts these variants, warms them up, alternates slices among them, and stops them.
    fn run_together(&mut self, variants: &[usize]) -> Result<()> {
        for &variant in variants {
            self.start(variant)?;
        }
        self.refuse_small_budget()?;
        self.warm_up(variants)?;
        self.choose_cores(variants)?;
        if self.block == 1 {
            self.choose_turns();
        }
        if let Some(search) = self.search {
            for &variant in variants {
                self.search_trial(variant, search)?;
            }
        } else {
            self.warm_up_at_rate(variants)?;
            if variants.len() > 1 && take_turns(&self.plan) {
                self.measure_in_turns()?;
            } else {
                self.measure_in_slices(variants)?;
            }
        }
        self.stop_all()
    }

    /// Loads variants at the common rate before they are measured. Does nothing in closed loop.
    fn warm_up_at_rate(&mut self, variants: &[usize]) -> Result<()> {
        for &variant in variants {
            let Some(open) = self.open_loop(variant, 0) else {
                return Ok(());
            };
            let settle_s = self.timing.settle_s;
            self.load(variant, SliceKind::WarmUp, settle_s, Some(open))?;
        }
        Ok(())
    }

    /// Measures all slices of these variants, alternating among them.
    fn measure_in_slices(&mut self, variants: &[usize]) -> Result<()> {
        let mut order = self.schedule.rounds(self.block, self.timing.slices);
        order.retain(|variant| variants.contains(variant));
        let mut slices_done = vec![0; self.plan.variants.len()];
        for variant in order {
            slices_done[variant] += 1;
            let open = self.open_loop(variant, slices_done[variant]);
            self.load(variant, SliceKind::Measured, self.timing.slice_s, open)?;
        }
        Ok(())
    }

    /// Warms services up in closed loop, because that shows whether they are steady. The first block watches
    /// the warm-up, for no longer than necessary. In later blocks variants that are measured in turns are
    /// also warmed up in turns. Otherwise a variant would be idle while others warm up, and be measured
    /// colder.
    fn warm_up(&mut self, variants: &[usize]) -> Result<()> {
        let most_s = self.timing.warm_up_s;
        // A slice of no length sends nothing, and would look like a service that never responds.
        if most_s <= 0.0 {
            return Ok(());
        }
        if self.block > 1 && variants.len() > 1 && take_turns(&self.plan) {
            let pieces = self.timing.warm_up_pieces();
            let order = variants.repeat(pieces as usize);
            self.begin(Doing::WarmingUp, order[0])?;
            let turn = Turn {
                kind: SliceKind::WarmUp,
                seconds: most_s / f64::from(pieces),
                lead_s: 0.0,
            };
            return self.take_turns(&order, turn);
        }
        let is_watched = self.timing.watched && self.block == 1;
        for &variant in variants {
            let pieces: Vec<f64> = if is_watched {
                self.timing.watch_pieces()
            } else {
                vec![most_s]
            };
            for seconds in pieces {
                self.load(variant, SliceKind::WarmUp, seconds, None)?;
                if is_watched && self.trial(variant).is_some_and(timing::is_warm) {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Measures all slices of a block, each in short turns among all trials.
    fn measure_in_turns(&mut self) -> Result<()> {
        for number in 0..self.timing.slices {
            let mut order = self.schedule.turns(self.block, number, self.timing.turns());
            order.retain(|variant| self.running.contains(variant));
            self.begin(Doing::Measuring, order[0])?;
            let turn_s = self.timing.slice_s / f64::from(self.timing.turns());
            let turn = Turn {
                kind: SliceKind::Measured,
                seconds: turn_s,
                lead_s: self.timing.lead_s,
            };
            self.take_turns(&order, turn)?;
        }
        Ok(())
    }

    fn take_turns(&mut self, order: &[usize], turn: Turn) -> Result<()> {
        self.has_time_to_wait(order)?;
        self.environment
            .take_turns(order, turn)?
            .into_iter()
            .try_for_each(|slice| self.record_slice(slice))
    }

    fn start(&mut self, variant: usize) -> Result<()> {
        self.begin(Doing::Starting, variant)?;
        let padding_bytes = self.schedule.padding_bytes(self.block)[variant];
        let requests_seed = self.schedule.requests_seed(self.block);
        let patience = self
            .has_budget()
            .then(|| Duration::from_secs_f64((self.left_s() + self.excess_max_s()).max(0.0)));
        let wanted = Start {
            block: self.block,
            variant,
            padding_bytes,
            requests_seed,
            capture: None,
            patience,
        };
        let started = self.environment.start(wanted)?;
        self.running.push(variant);
        self.record(Event::TrialStarted(started))
    }

    fn load(
        &mut self,
        variant: usize,
        kind: SliceKind,
        seconds: f64,
        open: Option<AskedOpen>,
    ) -> Result<()> {
        let slice = self.slice(
            variant,
            kind,
            SliceRequest {
                until: elapsed(seconds),
                open,
            },
        )?;
        self.record_slice(slice)
    }

    fn slice(&mut self, variant: usize, kind: SliceKind, asked: SliceRequest) -> Result<Slice> {
        self.begin(doing(kind), variant)?;
        self.has_time_to_wait(&[variant])?;
        let SliceRequest { until, open } = asked;
        self.environment
            .load(variant, SliceSpec { kind, until, open })
    }

    /// Reports the next action.
    ///
    /// # Errors
    /// [`Failure::OutOfBudget`] if the budget is over: a block that takes longer than earlier ones is not
    /// waited for.
    fn begin(&mut self, doing: Doing, variant: usize) -> Result<()> {
        if self.has_budget() && self.left_s() < -self.excess_max_s() {
            return Err(Failure::OutOfBudget);
        }
        self.report_trial(doing, variant);
        Ok(())
    }

    /// Checks that the budget has time to wait for the responses of these windows. After a window with
    /// timeouts, the next window of the variant is expected to take its whole timeout too.
    ///
    /// # Errors
    /// [`Failure::OutOfBudget`] if it has not.
    fn has_time_to_wait(&mut self, windows: &[usize]) -> Result<()> {
        let wait_s: f64 = windows.iter().map(|variant| self.wait_s(*variant)).sum();
        let left_s = self.left_s() + self.excess_max_s();
        if self.has_budget() && wait_s > 0.0 && wait_s > left_s {
            return Err(Failure::OutOfBudget);
        }
        Ok(())
    }

    /// The timeout of a variant whose last slice had timeouts. 0 for others.
    fn wait_s(&self, variant: usize) -> f64 {
        let blocks = self.writer.record().blocks.iter().rev();
        let mut trials = blocks
            .flat_map(|block| &block.trials)
            .filter(|trial| trial.variant() == variant);
        let last = trials.find_map(|trial| trial.slices.last());
        let timeout = self.plan.variants[variant].load.timeout;
        last.filter(|slice| slice.counts.timed_out > 0)
            .map_or(0.0, |_| timeout.as_secs_f64())
    }

    /// Records a slice. Returns an error if failures in it make continuing pointless.
    fn record_slice(&mut self, mut slice: Slice) -> Result<()> {
        slice.waits = slice.kind == SliceKind::Measured && self.waiting.contains(&slice.variant);
        let (variant, fruitless, failing) = (
            slice.variant,
            slice.counts.successful == 0,
            slice.counts.successful < slice.counts.responses,
        );
        self.record(Event::Slice(Box::new(slice)))?;
        let record = self.writer.record();
        // The first reason is more specific than the absence of any success.
        let untreated = if failing {
            analysis::untreated(record, variant)
        } else {
            None
        };
        match untreated.or_else(|| {
            if fruitless {
                analysis::all_fruitless(record)
            } else {
                None
            }
        }) {
            Some(why) => Err(Failure::pointless(why)),
            None => Ok(()),
        }
    }

    /// Runs a job with each of these variants alone, in a block that never ends and so never counts. The
    /// results are in the plan.
    fn each_alone(
        &mut self,
        order: Vec<usize>,
        job: impl Fn(&mut Self, usize) -> Result<()>,
    ) -> Result<()> {
        self.record(Event::BlockStarted {
            block: self.block,
            order: order.clone(),
        })?;
        for variant in order {
            job(self, variant)?;
            self.stop_all()?;
        }
        self.plan = self.writer.record().header.plan.clone();
        Ok(())
    }

    /// A variant's trial in the current block.
    fn trial(&self, variant: usize) -> Option<&Trial> {
        let trials = &self.writer.record().blocks.last()?.trials;
        trials.iter().rev().find(|trial| trial.variant() == variant)
    }

    fn stop_all(&mut self) -> Result<()> {
        let mut result = Ok(());
        while let Some(variant) = self.running.pop() {
            if let Some(ended) = self.environment.stop(variant) {
                // Continues to stop the others even if the disk fails.
                result = result.and(self.record(Event::TrialEnded(ended)));
            }
        }
        result
    }

    /// Seconds that a block takes with the current timing, if that can be estimated.
    fn estimated_block_s(&self) -> Option<f64> {
        if let Some(search) = &self.search {
            return Some(search.block_s(self.plan.variants.len()));
        }
        Some(
            self.timing
                .block_s(self.measured.len(), self.costs.as_ref()?),
        )
    }

    /// Records an event, and reports it.
    fn record(&mut self, event: Event) -> Result<()> {
        let event = self.plan.secrets.hidden(event);
        self.report(UpdateNews::Event(&event));
        let has_new_costs = matches!(event, Event::BlockEnded { .. } | Event::BlockDropped { .. });
        self.writer.append(event)?;
        if has_new_costs {
            self.costs = timing::trial_costs(self.writer.record());
        }
        Ok(())
    }

    fn elapsed_s(&mut self) -> f64 {
        self.environment.now_s() - self.began_s
    }

    /// Whether the budget limits the current activity. It does not limit captures, or a measurement whose
    /// length the plan sets.
    fn has_budget(&self) -> bool {
        self.plan.measure.is_none() && self.captures_left_s.is_none()
    }

    /// Seconds beyond the budget for which the current block may continue.
    fn excess_max_s(&self) -> f64 {
        self.plan.design.budget.as_secs_f64() * BUDGET_EXCESS_MAX
    }

    fn left_s(&mut self) -> f64 {
        self.plan.design.budget.as_secs_f64() - self.elapsed_s()
    }

    fn report_trial(&mut self, doing: Doing, variant: usize) {
        self.report(UpdateNews::Progress(Progress::Trial { doing, variant }));
    }

    fn report(&mut self, news: UpdateNews<'_>) {
        let (elapsed_s, left_s) = (self.elapsed_s(), self.told_left_s());
        (self.watch)(&Update {
            elapsed_s,
            left_s,
            news,
        });
    }

    /// Maximum remaining seconds of the run: by the budget, or by the remaining blocks if their number is
    /// limited. An estimate for captures.
    fn told_left_s(&mut self) -> f64 {
        if let Some(left_s) = self.captures_left_s {
            return left_s;
        }
        let left_s = self.left_s().max(0.0);
        let blocks = self.last_block().saturating_sub(self.blocks_kept());
        // The next ones may take as long as the longest so far.
        let seconds = self
            .writer
            .record()
            .blocks
            .iter()
            .filter_map(|block| block.seconds);
        let longest_s = seconds.skip(1).fold(0.0, f64::max);
        let by_blocks = self
            .estimated_block_s()
            .map(|block_s| f64::from(blocks) * block_s.max(longest_s));
        // Until then the number of slices in a trial may grow.
        let is_settled = self.writer.record().blocks_planned.is_some();
        by_blocks
            .filter(|_| is_settled && blocks > 0)
            .map_or(left_s, |by_blocks| by_blocks.min(left_s))
    }

    /// The number of blocks after which the run ends at the latest.
    fn last_block(&self) -> u32 {
        let searched = self.search.as_ref().map(|search| search.blocks);
        let most = if self.plan.comparisons.is_empty() {
            BLOCKS_AIM
        } else {
            stats::BLOCKS_MAX
        };
        self.plan.design.blocks.or(searched).unwrap_or(most)
    }
}

fn doing(kind: SliceKind) -> Doing {
    match kind {
        SliceKind::WarmUp => Doing::WarmingUp,
        SliceKind::Measured => Doing::Measuring,
        SliceKind::Capacity => Doing::MeasuringCapacity,
        SliceKind::Probe => Doing::Probing,
        SliceKind::Overload => Doing::Overloading,
    }
}
