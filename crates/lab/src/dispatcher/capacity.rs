//! Capacity: the rates at which each variant is measured. Before the first block, a search on a process that
//! does not count. In each block, one long window near the crossing, placed by the earlier blocks, with steps
//! beside it that show the slope.
//!
//! This module does not place a window by its own result.

use std::time::Duration;

use analysis::capacity::{Pilot, at_limit_per_s, connections_wanted, limit_s, next_rates};
use model::quantity::rate as shown_rate;
use model::{ConnectionsChosen, Rate, SliceRequest};
use plan::{Design, LimitFigure};
use record::{Block, Event, SliceKind};

use super::Dispatcher;
use crate::environment::{Failure, Result, elapsed};
use crate::tuning::{BLOCKS_MIN, SecondsGuess};

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
/// Parts of a window, an even number for its halves.
const PARTS: usize = 2;
/// Length of the step below the window relative to the window.
const LOWER_SHARE: f64 = 0.15;
/// Length of both relative to the window.
const OF_WINDOW: f64 = 1.0 + LOWER_SHARE;
/// Share of the remaining time that the remaining blocks may fill: each may take a little longer than the
/// last.
const ROOM: f64 = 0.97;
/// Shares of the window's rate at which the points of the curve are measured, one in each block.
const CURVE: [f64; 4] = [0.5, 0.75, 0.25, 0.9];
/// Overload as a multiple of the capacity in closed loop, and the rate to which it falls, as a share of the
/// window's rate.
const OVERLOAD: f64 = 2.0;
const RECOVERY: f64 = 0.8;
/// Length of the fall in seconds and in multiples of the limit, and total length relative to it: the queue at
/// the end of the fall takes twice the fall to drain.
const OVERLOAD_S: f64 = 2.0;
const OVERLOAD_LIMITS: f64 = 20.0;
const OVERLOAD_TIMES: f64 = 4.5;
/// Assumed length of its warm-up, in seconds.
const WARM_UP_S: f64 = 1.5;
/// Required time for a variant, as a multiple of the overload's length.
const OVERLOAD_ROOM: f64 = 10.0;
/// Assumed time of a trial beside load, in seconds.
const TRIAL_S: f64 = 1.5;

/// Initial and maximum number of connections of a search, if the plan sets none.
const CONNECTIONS_FIRST: u32 = 256;
const CONNECTIONS_MOST: u32 = 8192;
/// Factor over the wanted number of connections: a service's maximum rate varies between processes.
const CONNECTIONS_SPARE: f64 = 1.25;

/// How trials are measured.
#[derive(Debug, Clone, Copy)]
pub(super) struct Search {
    /// Length of the window near the crossing, in seconds.
    window_s: f64,
    /// Length of a step of the curve, in seconds.
    step_s: f64,
    /// Limit of the response time, in seconds.
    limit_s: f64,
    /// Whether one trial of each variant is overloaded.
    overloads: bool,
    /// Time of a trial beside its window and the step below it, in seconds. Assumed until a block has ended.
    beside_s: f64,
    /// Planned number of blocks.
    pub blocks: u32,
}

impl Search {
    /// The longest warm-up that leaves most of a trial to the measurement.
    pub(super) fn warm_up_room_s(&self) -> f64 {
        (self.window_s * 0.25).max(1.0)
    }

    /// Plans as many blocks as fit into the remaining time with the desired windows, or fewer with shorter
    /// ones. `Err` is a sufficient time.
    fn of(left_s: f64, variants: usize, warm_up_s: f64, limit_s: f64) -> Result<Search, f64> {
        let step_s = step_s(limit_s);
        let whole_s = left_s / variants.max(1) as f64;
        let beside_s = TRIAL_S + warm_up_s + at_limit_s(limit_s) + step_s + limit_s;
        let overload_s = overload_s(limit_s) * OVERLOAD_TIMES;
        // A short run has no time for parts that do not contribute to the estimate.
        let overloads = whole_s > overload_s * OVERLOAD_ROOM;
        let overload_s = if overloads { overload_s } else { 0.0 };
        let room_s = whole_s - overload_s;
        let aim_s = (WINDOW_LIMITS * limit_s).max(WINDOW_LEAST_S);
        let fit = (room_s / (beside_s + aim_s * OF_WINDOW)).floor();
        let blocks = fit.clamp(f64::from(BLOCKS_MIN), f64::from(BLOCKS_MOST));
        let window_s = (room_s / blocks - beside_s) / OF_WINDOW;
        let least_s = window_least_s(limit_s);
        if window_s < least_s {
            let block_s = beside_s + least_s * OF_WINDOW;
            return Err((f64::from(BLOCKS_MIN) * block_s + overload_s) * variants as f64);
        }
        Ok(Search {
            window_s,
            step_s,
            limit_s,
            overloads,
            beside_s,
            blocks: blocks as u32,
        })
    }

    /// Seconds that a block with this number of variants takes.
    pub(super) fn block_s(&self, variants: usize) -> f64 {
        variants as f64 * (self.beside_s + self.window_s * OF_WINDOW)
    }

    /// Shortens windows so that the remaining blocks fit, once a block has shown how long trials take.
    fn fitted(self, block: &Block, variants: usize, kept: u32, left_s: f64) -> Search {
        let (variants, to_come) = (
            variants.max(1) as f64,
            f64::from(self.blocks.saturating_sub(kept)),
        );
        // The first block that counts, and dropped blocks before it, had the overload.
        let overloaded = self.overloads && kept == u32::from(block.dropped.is_none());
        let overload_s = if overloaded {
            overload_s(self.limit_s) * OVERLOAD_TIMES
        } else {
            0.0
        };
        let Some(seconds) = block.seconds.filter(|_| to_come > 0.0) else {
            return self;
        };
        let beside_s = (seconds / variants - overload_s - self.window_s * OF_WINDOW).max(0.0);
        let room_s = left_s * ROOM / variants / to_come - beside_s;
        let window_s = (room_s / OF_WINDOW)
            .max(window_least_s(self.limit_s))
            .min(self.window_s);
        Search {
            beside_s,
            window_s,
            ..self
        }
    }
}

/// Estimated duration of a run with this design and number of variants.
pub(crate) fn seconds_guess(design: &Design, variants: usize) -> SecondsGuess {
    let (limit_s, budget_s) = (limit_s(design), design.budget.as_secs_f64());
    let search_s =
        TRIAL_S + at_limit_s(limit_s) + AT_LIMIT_S / 2.0 + PILOT_STEPS_GUESS * step_s(limit_s);
    let before_s = (variants as f64 * search_s).min(budget_s * PILOT_SHARE);
    let left_s = budget_s - before_s;
    let block_s = match Search::of(left_s, variants, WARM_UP_S, limit_s) {
        Ok(search) => search.block_s(variants),
        Err(blocks_s) => blocks_s / f64::from(BLOCKS_MIN),
    };
    SecondsGuess {
        before_s,
        first_s: block_s,
        block_s,
    }
}

fn window_least_s(limit_s: f64) -> f64 {
    (WINDOW_LEAST_LIMITS * limit_s).max(WINDOW_LEAST_S)
}

fn step_s(limit_s: f64) -> f64 {
    (STEP_LIMITS * limit_s).max(STEP_S)
}

fn at_limit_s(limit_s: f64) -> f64 {
    (AT_LIMIT_LIMITS * limit_s).max(AT_LIMIT_S)
}

fn overload_s(limit_s: f64) -> f64 {
    (OVERLOAD_LIMITS * limit_s).max(OVERLOAD_S)
}

impl Dispatcher<'_> {
    /// Searches for the rate of every variant, and determines the length of windows. Does nothing if capacity
    /// is not measured.
    pub(super) fn settle_capacity(&mut self) -> Result<()> {
        if self.plan.design.slo.is_empty() {
            return Ok(());
        }
        let limit_s = limit_s(&self.plan.design);
        if !self
            .plan
            .variants
            .iter()
            .any(|variant| variant.load.connections_typed)
        {
            self.connect_over(ConnectionsChosen {
                connections: CONNECTIONS_FIRST,
                bound: None,
            });
        }
        let order = self.schedule.order(self.block);
        let most_s = self.plan.design.budget.as_secs_f64() * PILOT_SHARE / order.len() as f64;
        self.one_by_one(order, |this, variant| {
            this.search_once(variant, limit_s, most_s)
        })?;
        self.choose_cores_by(&(0..self.plan.variants.len()).collect::<Vec<_>>())?;
        if let Some(chosen) = self.connections.clone() {
            self.keep(Event::ConnectionsChosen(chosen))?;
        }
        let variants = self.plan.variants.len();
        let search = Search::of(
            self.left_s(),
            variants,
            self.settings.warm_up_s.min(WARM_UP_S),
            limit_s,
        );
        let mut search = search.map_err(|more_s| {
            // A fifth more, because the time for starts and drains is an estimate.
            Failure::too_small(((self.elapsed_s() + more_s) * 1.2).ceil() as u64)
        })?;
        search.blocks = self
            .plan
            .design
            .blocks
            .map_or(search.blocks, |most| most.min(search.blocks));
        self.search = Some(search);
        self.keep(Event::BlocksChosen {
            blocks: search.blocks,
        })
    }

    /// Shortens windows if blocks take longer than planned.
    pub(super) fn fit_windows(&mut self) {
        let (kept, left_s, variants) =
            (self.blocks_kept(), self.left_s(), self.plan.variants.len());
        let last = self.writer.record().blocks.last();
        self.search = self
            .search
            .zip(last)
            .map(|(search, block)| search.fitted(block, variants, kept, left_s));
    }

    /// Searches on one fresh process: increases the rate until a limit breaks, then narrows the range.
    fn search_once(&mut self, variant: usize, limit_s: f64, most_s: f64) -> Result<()> {
        let began_s = self.elapsed_s();
        // Without time for a step the budget is too small, whatever the result would be.
        let is_over = |this: &mut Self| this.left_s() < step_s(limit_s);
        if is_over(self) {
            return Ok(());
        }
        self.start(variant)?;
        self.load(variant, SliceKind::WarmUp, AT_LIMIT_S / 2.0, None)?;
        let at_limit = self.settle_connections(variant, limit_s)?;
        let mut step = 0;
        while let Some(rate) = Pilot::of(self.writer.record(), variant)
            .unwrap_or_default()
            .next(at_limit)
        {
            self.load_at(
                variant,
                SliceKind::Probe,
                Rate::Constant(rate),
                step_s(limit_s),
                step,
            )?;
            step += 1;
            let pilot = Pilot::of(self.writer.record(), variant).unwrap_or_default();
            // Stops with the current range, which must have both ends.
            if self.elapsed_s() - began_s > most_s && pilot.crossing().is_some() {
                break;
            }
            if is_over(self) {
                return Ok(());
            }
        }
        self.judge_search(variant)
    }

    /// Repeats the closed loop with more connections until there are enough, or the maximum is reached.
    fn settle_connections(&mut self, variant: usize, limit_s: f64) -> Result<f64> {
        loop {
            self.load(variant, SliceKind::Capacity, at_limit_s(limit_s), None)?;
            let at_limit = self.at_limit_per_s(variant)?;
            let Some(chosen) = self.more_connections(variant, at_limit) else {
                return Ok(at_limit);
            };
            let used = self.connections.as_ref().map_or(0, |used| used.connections);
            let is_more = chosen.connections > used;
            self.connect_over(chosen);
            if !is_more || self.left_s() < step_s(limit_s) {
                return Ok(at_limit);
            }
        }
    }

    /// The next number of connections, for a service with this rate at its limit. `None` if there are enough,
    /// or the plan sets the number.
    fn more_connections(
        &mut self,
        variant: usize,
        at_limit_per_s: f64,
    ) -> Option<ConnectionsChosen> {
        let used = self.connections.as_ref()?.connections;
        let wanted = connections_wanted(self.writer.record(), variant, at_limit_per_s)?;
        if wanted <= used {
            return None;
        }
        let own = (
            CONNECTIONS_MOST,
            format!("no more than {CONNECTIONS_MOST} are opened unless -c asks for them"),
        );
        let bound = self.environment.connections_most(variant).into_iter();
        let (most, why) = bound.fold(
            own,
            |least, other| if other.0 < least.0 { other } else { least },
        );
        let spare = (f64::from(wanted) * CONNECTIONS_SPARE) as u32;
        Some(ConnectionsChosen {
            connections: spare.min(most).max(used),
            bound: (wanted > most).then_some(why),
        })
    }

    fn connect_over(&mut self, chosen: ConnectionsChosen) {
        self.environment.set_connections(chosen.connections);
        self.connections = Some(chosen);
    }

    /// Checks that there is a rate at which all limits hold, and one at which they do not.
    fn judge_search(&self, variant: usize) -> Result<()> {
        let record = self.writer.record();
        let ends = Pilot::of(record, variant).unwrap_or_default().bracket();
        let slo: Vec<String> = self
            .plan
            .design
            .slo
            .iter()
            .map(ToString::to_string)
            .collect();
        let (slo, name) = (slo.join(" and "), &self.plan.variants[variant].name);
        let why = match ends.map(|end| end.map(|tried| tried.rate)) {
            [Some(_), Some(_)] => return Ok(()),
            // If only failures are limited, and there are none, that is the result.
            [Some(_), None]
                if self
                    .plan
                    .design
                    .slo
                    .iter()
                    .all(|limit| limit.figure == LimitFigure::Failed) =>
            {
                return Ok(());
            }
            [None, Some(rate)] => format!(
                "{name} does not keep {slo} even at {}: it has no capacity within these limits; look at what it \
                 does with `proofload load`, or allow more",
                shown_rate(rate)
            ),
            [Some(rate), None] => format!(
                "{name} keeps {slo} at {} still, more than three times what its connections could do in closed loop: it is \
                 the connections that limit it; {}",
                shown_rate(rate),
                self.why_no_more_connections()
            ),
            [None, None] => format!("{name} was not loaded at all"),
        };
        Err(Failure::pointless(why))
    }

    /// Why there are no more connections, and what to change.
    fn why_no_more_connections(&self) -> String {
        match self
            .connections
            .as_ref()
            .and_then(|chosen| chosen.bound.as_ref())
        {
            Some(bound) => format!("{bound}; raise that"),
            None => "set load.connections (-c) higher, or leave it out".to_owned(),
        }
    }

    fn at_limit_per_s(&self, variant: usize) -> Result<f64> {
        let name = &self.plan.variants[variant].name;
        let why = "had no successful response in the second half of a closed loop, so there is no rate to begin with; look at what it does \
                   with `proofload load`, lower load.connections, or allow a longer response time";
        let none = || Failure::pointless(format!("{name} {why}"));
        self.trial(variant)
            .and_then(at_limit_per_s)
            .ok_or_else(none)
    }

    /// Measures the part of a trial that counts, in random order with the steps beside it. Once for each
    /// variant an overload follows.
    pub(super) fn search_trial(&mut self, variant: usize, search: Search) -> Result<()> {
        // Only the placement of the window depends on this.
        self.load(
            variant,
            SliceKind::Capacity,
            at_limit_s(search.limit_s),
            None,
        )?;
        let at_limit = self.at_limit_per_s(variant)?;
        let Some([rate, lower]) = next_rates(self.writer.record(), variant, at_limit) else {
            return Err(Failure::pointless("no rate was found to measure at"));
        };
        let of_curve = rate * CURVE[(self.block as usize - 1) % CURVE.len()];
        let part = (SliceKind::Measured, rate, search.window_s / PARTS as f64);
        let mut steps = vec![part; PARTS];
        steps.push((
            SliceKind::Probe,
            lower,
            (search.window_s * LOWER_SHARE).max(search.step_s),
        ));
        steps.push((SliceKind::Probe, of_curve, search.step_s));
        for index in self.schedule.steps(self.block, steps.len()) {
            let (kind, rate, seconds) = steps[index];
            self.load_at(variant, kind, Rate::Constant(rate), seconds, index as u32)?;
        }
        if self.blocks_kept() > 0 || !search.overloads {
            return Ok(());
        }
        let over = overload_s(search.limit_s);
        let fall = Rate::Ramp {
            from_per_s: at_limit * OVERLOAD,
            to_per_s: rate * RECOVERY,
            over: Duration::from_secs_f64(over),
        };
        self.load_at(
            variant,
            SliceKind::Overload,
            fall,
            over * OVERLOAD_TIMES,
            steps.len() as u32,
        )
    }

    /// Loads a trial at a rate. Two variants get the same arrivals in the same step of a block, as far as
    /// their rates are equal.
    fn load_at(
        &mut self,
        variant: usize,
        kind: SliceKind,
        rate: Rate,
        seconds: f64,
        step: u32,
    ) -> Result<()> {
        if let Some(problem) = rate.problem() {
            return Err(Failure::pointless(format!(
                "a rate was found that cannot be asked for: {problem}"
            )));
        }
        let open = Some(self.asked(rate, self.schedule.arrivals_seed(self.block, step)));
        let asked = SliceRequest {
            until: elapsed(seconds),
            open,
        };
        let mut slice = self.slice(variant, kind, asked)?;
        slice.asked = Some(asked);
        match kind {
            SliceKind::Measured => self.keep_slice(slice),
            // Limits are expected to break there.
            SliceKind::Probe | SliceKind::Overload | SliceKind::WarmUp | SliceKind::Capacity => {
                self.keep(Event::Slice(Box::new(slice)))
            }
        }
    }
}
