//! The rate of an open loop: determined before the first block, the same for every block, and for every
//! variant without its own rate.
//!
//! If it is a share, each variant's capacity is measured first. This determines how fast variants are, but
//! favours none, because the result is applied to all alike.

use std::time::Duration;

use analysis::capacity;
use model::quantity::{many, micros, rate as shown_rate};
use model::{Ask, AskedOpen, Rate, RateLevel};
use plan::PlannedRate;
use record::{Event, RateChosen, SliceKind};

use super::Dispatcher;
use crate::environment::{Failure, Result};
use crate::timing::{MeasuredTimes, capacity_s};

impl Dispatcher<'_> {
    /// Determines rate and length of trials. Does nothing in closed loop.
    pub(super) fn choose_rate(&mut self) -> Result<()> {
        let Some(rate) = self.plan.design.rate else {
            return Ok(());
        };
        let end = self.plan.design.ramp_to;
        let shares = self.plan.design.rate_needs_capacity();
        let capacities = if shares {
            self.capacities()?
        } else {
            Vec::new()
        };
        let chosen = rate_chosen(rate, &capacities);
        let chosen = match end {
            None => chosen,
            Some(end) => chosen
                .zip(rate_chosen(end, &capacities))
                .map(|(from, to)| RateChosen {
                    per_s: f64::midpoint(from.per_s, to.per_s),
                    ramp_per_s: Some((from.per_s, to.per_s)),
                    share: None,
                    capacities_per_s: capacities.into_iter().flatten().collect(),
                }),
        };
        let Some(chosen) = chosen else {
            let why = "a variant's responses take longer than its saturation was measured, so there is nothing to take a share of; \
                       give design.rate as requests per second";
            return Err(Failure::pointless(why));
        };
        let per_s = chosen.per_s;
        self.update_timing(MeasuredTimes::Rate { per_s });
        self.record(Event::RateChosen(chosen))?;
        self.judge_trial(per_s)
    }

    /// When requests of a slice of a variant's trial are due. Slice 0 is the one that does not count. `None`
    /// in closed loop. All variants of a rate get the same.
    pub(super) fn open_loop(&self, variant: usize, slice: u32) -> Option<AskedOpen> {
        let chosen = self.writer.record().rate.as_ref()?;
        let seed = self.schedule.arrivals_seed(self.block, slice);
        let over = Duration::from_secs_f64(self.timing.slice_s);
        let per_s = self.plan.variants[variant]
            .load
            .rate_per_s
            .unwrap_or(chosen.per_s);
        let rate = chosen
            .ramp_per_s
            .map_or(Rate::Constant(per_s), |(from_per_s, to_per_s)| Rate::Ramp {
                from_per_s,
                to_per_s,
                over,
            });
        Some(self.open_loop_at(rate, seed))
    }

    /// An open loop at this rate.
    pub(super) fn open_loop_at(&self, rate: Rate, seed: u64) -> AskedOpen {
        let ask = match rate {
            Rate::Constant(per_s) => Ask::At(RateLevel::PerSecond(per_s)),
            Rate::Ramp {
                from_per_s,
                to_per_s,
                ..
            } => Ask::Ramp(
                RateLevel::PerSecond(from_per_s),
                RateLevel::PerSecond(to_per_s),
            ),
        };
        AskedOpen {
            ask,
            rate,
            process: self.plan.design.arrivals,
            seed,
        }
    }

    /// Successful responses per second of each variant, measured on fresh processes in sequence, in a block 0
    /// that never ends and so never counts.
    fn capacities(&mut self) -> Result<Vec<Option<f64>>> {
        let order = self.schedule.order(self.block);
        let seconds = capacity_s(&self.plan.design, order.len());
        self.each_alone(order, |this, variant| {
            this.start(variant)?;
            this.load(variant, SliceKind::Capacity, seconds, None)
        })?;
        self.choose_cores_by(&(0..self.plan.variants.len()).collect::<Vec<_>>())?;
        let capacity =
            |variant: usize| capacity::second_half_per_s(self.trial(variant)?.slices.first()?);
        Ok((0..self.plan.variants.len()).map(capacity).collect())
    }

    /// Checks that trials can have the requests that the metric needs, and that the budget is enough for such
    /// trials.
    fn judge_trial(&mut self, per_s: f64) -> Result<()> {
        let left_s = self.left_s();
        let (timing, design) = (self.timing, &self.plan.design);
        let least_s = timing.blocks_least_s(design, self.plan.variants.len());
        if least_s > left_s {
            // Twice that, for starting, stopping, and a warm-up longer than the shortest.
            let needed_s = (self.elapsed_s() + least_s * 2.0).ceil() as u64;
            return Err(Failure::too_small(needed_s));
        }
        if timing.is_short() {
            let (metric, requests) = design.most_wanting();
            return Err(Failure::pointless(format!(
                "{} wants {} in a trial; {} of {} at {} have fewer. Leave out design.slices or design.slice, or choose a lower \
                 quantile or a higher rate",
                metric.name(),
                many(requests as u64, "request"),
                many(timing.slices.into(), "slice"),
                micros(timing.slice_s * 1e6),
                shown_rate(per_s)
            )));
        }
        Ok(())
    }
}

/// The rate of all variants. `None` if it is a share of an unknown capacity. A variant that never succeeds
/// has no capacity that counts: the others are loaded as they would be without it.
fn rate_chosen(rate: PlannedRate, capacities: &[Option<f64>]) -> Option<RateChosen> {
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
