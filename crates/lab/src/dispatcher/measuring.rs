//! Measures one variant without a comparison: one trial with a slice for each rate, in sequence.
//!
//! A measurement that the user stops early counts up to then. This module chooses nothing that the plan does
//! not set.

use model::{AskedOpen, SliceRequest, Until};
use plan::Measure;
use record::{EndReason, Event, SliceKind};

use super::Dispatcher;
use crate::environment::{Failure, Result};

impl Dispatcher<'_> {
    /// The whole measurement, in one block that counts.
    pub(super) fn measure(&mut self, measure: &Measure) -> Result<EndReason> {
        let began_s = self.elapsed_s();
        self.block = 1;
        self.record(Event::BlockStarted {
            block: self.block,
            order: vec![0],
        })?;
        self.start(0)?;
        let ended = self.measure_slices(measure);
        if !matches!(ended, Ok(()) | Err(Failure::End(EndReason::Interrupted))) {
            return ended.map(|()| EndReason::Measured);
        }
        self.stop_all()?;
        let seconds = self.elapsed_s() - began_s;
        self.record(Event::BlockEnded {
            block: self.block,
            seconds,
        })?;
        ended.map(|()| EndReason::Measured)
    }

    fn measure_slices(&mut self, measure: &Measure) -> Result<()> {
        let closed = |until| SliceRequest { until, open: None };
        if !measure.warmup.is_zero() {
            self.slice_as(SliceKind::WarmUp, closed(Until::Elapsed(measure.warmup)))?;
        }
        let Some(rates) = &measure.rates else {
            return self.slice_as(SliceKind::Measured, closed(measure.until));
        };
        let mut capacity_per_s = 0.0;
        if let Some((warmup, length)) = measure.capacity() {
            self.slice_as(SliceKind::WarmUp, closed(Until::Elapsed(warmup)))?;
            self.slice_as(SliceKind::Capacity, closed(Until::Elapsed(length)))?;
            capacity_per_s = self.capacity_per_s()?;
            // Nothing succeeded, which the counts show. Shares of capacity are impossible.
            if capacity_per_s <= 0.0 {
                return Ok(());
            }
        }
        for (&ask, step) in rates.asks().iter().zip(0..) {
            let rate = ask.rate(capacity_per_s, measure.length());
            // With the same arrivals, an unlucky minute would occur at every rate, and look like a property
            // of the service.
            let seed = self.schedule.arrivals_seed(self.block, step);
            let open = AskedOpen {
                ask,
                rate,
                process: measure.arrivals,
                seed,
            };
            self.slice_as(
                SliceKind::Measured,
                SliceRequest {
                    until: measure.until,
                    open: Some(open),
                },
            )?;
        }
        Ok(())
    }

    /// Successful responses per second of the last recorded slice. 0 if there was none.
    fn capacity_per_s(&self) -> Result<f64> {
        let counts = self
            .trial(0)
            .and_then(|trial| trial.slices.last())
            .map(|slice| &slice.counts);
        let Some(counts) = counts else { return Ok(0.0) };
        if counts.successful_in_window == 0 && counts.successful > 0 {
            let why = "responses take longer than saturation was measured, so there is nothing to take a share of; give the rate as \
                       requests per second";
            return Err(Failure::pointless(why));
        }
        Ok(counts.successful_in_window as f64 * 1e9 / counts.window_ns.max(1) as f64)
    }

    /// Measures a slice, and records it with its target.
    fn slice_as(&mut self, kind: SliceKind, asked: SliceRequest) -> Result<()> {
        let mut slice = self.slice(0, kind, asked)?;
        slice.asked = Some(asked);
        self.record(Event::Slice(Box::new(slice)))?;
        if self.environment.is_stop_wanted() {
            Err(Failure::INTERRUPTED)
        } else {
            Ok(())
        }
    }
}
