//! Capacity: the rates at which each variant is measured. Before the first block, a search on a process that
//! does not count. In each block, one long window near the crossing, placed by the earlier blocks, with steps
//! beside it that show the slope.
//!
//! This module does not place a window by its own result.

use std::time::Duration;

use analysis::capacity::{Pilot, at_limit_per_s, connections_wanted, figures_at, next_rates};
use model::quantity::{Quantity, rate as shown_rate};
use model::{ConnectionsChosen, Rate, SliceRequest};
use plan::{Limit, LimitFigure};
use record::{Event, SliceKind};

use super::Dispatcher;
use crate::environment::{Failure, Result, elapsed};
use crate::timing::{PilotTiming, SearchTiming};

/// Parts of a window, an even number for its halves.
const PARTS: usize = 2;
/// Shares of the window's rate at which the points of the curve are measured, one in each block.
const CURVE: [f64; 4] = [0.5, 0.75, 0.25, 0.9];
/// Overload as a multiple of the capacity in closed loop, and the rate to which it falls, as a share of the
/// window's rate.
const OVERLOAD: f64 = 2.0;
const RECOVERY: f64 = 0.8;
/// Initial and maximum number of connections of a search, if the plan sets none.
const CONNECTIONS_FIRST: u32 = 256;
const CONNECTIONS_MOST: u32 = 8192;
/// Factor over the wanted number of connections: a service's maximum rate varies between processes.
const CONNECTIONS_SPARE: f64 = 1.25;

impl Dispatcher<'_> {
    /// Searches for the rate of every variant, and determines the length of windows. Does nothing if capacity
    /// is not measured.
    pub(super) fn prepare_search(&mut self) -> Result<()> {
        if self.plan.design.slo.is_empty() {
            return Ok(());
        }
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
        let pilot = PilotTiming::of(&self.plan.design, order.len());
        self.each_alone(order, |this, variant| this.search_once(variant, pilot))?;
        self.choose_cores_by(&(0..self.plan.variants.len()).collect::<Vec<_>>())?;
        if let Some(chosen) = self.connections.clone() {
            self.record(Event::ConnectionsChosen(chosen))?;
        }
        let (left_s, variants) = (self.left_s(), self.plan.variants.len());
        let search =
            SearchTiming::first(&self.plan.design, left_s, variants, self.timing.warm_up_s);
        let search = search.map_err(|more_s| {
            // A fifth more, because the time for starts and drains is an estimate.
            Failure::too_small(((self.elapsed_s() + more_s) * 1.2).ceil() as u64)
        })?;
        self.search = Some(search);
        self.record(Event::BlocksChosen {
            blocks: search.blocks,
        })
    }

    /// Shortens windows if blocks take longer than planned.
    pub(super) fn choose_windows(&mut self) {
        let (kept, left_s, variants) =
            (self.blocks_kept(), self.left_s(), self.plan.variants.len());
        let last = self.writer.record().blocks.last();
        self.search = self
            .search
            .zip(last)
            .map(|(search, block)| search.next(block, variants, kept, left_s));
    }

    /// Searches on one fresh process: increases the rate until a limit breaks, then narrows the range.
    fn search_once(&mut self, variant: usize, pilot: PilotTiming) -> Result<()> {
        let began_s = self.elapsed_s();
        // Without time for a step the budget is too small, whatever the result would be.
        let is_over = |this: &mut Self| this.left_s() < pilot.step_s;
        if is_over(self) {
            return Ok(());
        }
        self.start(variant)?;
        self.load(variant, SliceKind::WarmUp, pilot.warm_up_s, None)?;
        let at_limit = self.choose_connections(variant, pilot)?;
        let mut step = 0;
        while let Some(rate) = Pilot::of(self.writer.record(), variant)
            .unwrap_or_default()
            .next(at_limit)
        {
            self.load_at(
                variant,
                SliceKind::Probe,
                Rate::Constant(rate),
                pilot.step_s,
                step,
            )?;
            step += 1;
            let tried = Pilot::of(self.writer.record(), variant).unwrap_or_default();
            // Stops with the current range, which must have both ends.
            if self.elapsed_s() - began_s > pilot.most_s && tried.crossing().is_some() {
                break;
            }
            if is_over(self) {
                return Ok(());
            }
        }
        self.judge_search(variant)
    }

    /// Repeats the closed loop with more connections until there are enough, or the maximum is reached.
    fn choose_connections(&mut self, variant: usize, pilot: PilotTiming) -> Result<f64> {
        loop {
            self.load(variant, SliceKind::Capacity, pilot.at_limit_s, None)?;
            let at_limit = self.at_limit_per_s(variant)?;
            let Some(chosen) = self.more_connections(variant, at_limit) else {
                return Ok(at_limit);
            };
            let used = self.connections.as_ref().map_or(0, |used| used.connections);
            let is_more = chosen.connections > used;
            self.connect_over(chosen);
            if !is_more || self.left_s() < pilot.step_s {
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
        let (slo, name) = (
            slo.join(" and "),
            match self.plan.variants.as_slice() {
                [_] => "the service",
                several => &several[variant].name,
            },
        );
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
            [None, Some(rate)] => {
                let figures = figures_at(record, variant, rate).into_iter();
                let told = |(Limit { figure, .. }, value)| {
                    let unit = figure.unit();
                    format!(", {} {}", figure.name(), Quantity { value, unit })
                };
                format!(
                    "no rate keeps {slo}: {name} breaks it even at {}{}; allow more than that, or make the service faster",
                    shown_rate(rate),
                    figures.map(told).collect::<String>()
                )
            }
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
    pub(super) fn search_trial(&mut self, variant: usize, search: SearchTiming) -> Result<()> {
        // Only the placement of the window depends on this.
        self.load(variant, SliceKind::Capacity, search.at_limit_s, None)?;
        let at_limit = self.at_limit_per_s(variant)?;
        let Some([rate, lower]) = next_rates(self.writer.record(), variant, at_limit) else {
            return Err(Failure::pointless("no rate was found to measure at"));
        };
        let of_curve = rate * CURVE[(self.block as usize - 1) % CURVE.len()];
        let part = (SliceKind::Measured, rate, search.window_s / PARTS as f64);
        let mut steps = vec![part; PARTS];
        steps.push((SliceKind::Probe, lower, search.lower_s()));
        steps.push((SliceKind::Probe, of_curve, search.step_s));
        for index in self.schedule.steps(self.block, steps.len()) {
            let (kind, rate, seconds) = steps[index];
            self.load_at(variant, kind, Rate::Constant(rate), seconds, index as u32)?;
        }
        let Some((fall_s, all_s)) = search.overload_s.filter(|_| self.blocks_kept() == 0) else {
            return Ok(());
        };
        let fall = Rate::Ramp {
            from_per_s: at_limit * OVERLOAD,
            to_per_s: rate * RECOVERY,
            over: Duration::from_secs_f64(fall_s),
        };
        self.load_at(
            variant,
            SliceKind::Overload,
            fall,
            all_s,
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
        let open = Some(self.open_loop_at(rate, self.schedule.arrivals_seed(self.block, step)));
        let asked = SliceRequest {
            until: elapsed(seconds),
            open,
        };
        let mut slice = self.slice(variant, kind, asked)?;
        slice.asked = Some(asked);
        match kind {
            SliceKind::Measured => self.record_slice(slice),
            // Limits are expected to break there.
            SliceKind::Probe | SliceKind::Overload | SliceKind::WarmUp | SliceKind::Capacity => {
                self.record(Event::Slice(Box::new(slice)))
            }
        }
    }
}
