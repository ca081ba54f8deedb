//! Results of a plan that compares nothing: each slice on its own, whether its rate was kept, and its
//! findings. Pure.

use model::{Finding, Grade};
use record::{EndReason, Record, SliceKind};

use crate::checks::Check;
use crate::checks::{runner, v39_drift::capacity_exceeded};
use crate::window::MeasuredWindow;

mod kept;
#[cfg(test)]
mod tests;

pub use kept::{Bend, RateKept, WindowPart};

/// A measurement of one variant.
#[derive(Debug)]
pub struct Measurement<'a> {
    /// The closed-loop slice that rates as shares refer to.
    pub capacity: Option<MeasuredWindow<'a>>,
    /// The slices that were started, in order.
    pub windows: Vec<MeasuredWindow<'a>>,
    /// Number of planned slices.
    pub planned: usize,
    /// Whether the user interrupted the measurement.
    pub interrupted: bool,
    /// Findings that belong to no single slice.
    pub findings: Vec<Finding<Check>>,
}

/// Returns the measurement of a record whose plan requests one.
pub fn measurement(record: &Record) -> Option<Measurement<'_>> {
    let plan = &record.header.plan;
    let planned = plan.measure.as_ref()?.slices();
    let trial = record.blocks.last().and_then(|block| block.trials.last());
    let slices = || trial.into_iter().flat_map(|trial| &trial.slices);
    let of = |kind| slices().filter(move |slice| slice.kind == kind);
    let interrupted = record.end() == Some(&EndReason::Interrupted);
    let window = |slice| {
        let mut window = MeasuredWindow::of(plan, slice, planned > 1, interrupted);
        window.findings = runner::of_window(record, trial?, &window);
        Some(window)
    };
    let capacity = of(SliceKind::Capacity).next().and_then(window);
    let windows: Vec<MeasuredWindow<'_>> = of(SliceKind::Measured).filter_map(window).collect();
    let mut findings: Vec<Finding<Check>> = capacity_exceeded(capacity.as_ref(), &windows)
        .into_iter()
        .collect();
    if windows.is_empty() && capacity.is_none() {
        findings.extend(
            runner::all(record, &[])
                .into_iter()
                .filter(|of| of.grade == Grade::Invalid),
        );
    }
    Some(Measurement {
        capacity,
        windows,
        planned,
        interrupted,
        findings,
    })
}

impl Measurement<'_> {
    /// All findings, most severe first, without repetitions.
    pub fn all_findings(&self) -> Vec<Finding<Check>> {
        let of_windows = self
            .capacity
            .iter()
            .chain(&self.windows)
            .flat_map(|window| &window.findings);
        // Findings about the run occur in each of its slices.
        let mut all = model::distinct(self.findings.iter().chain(of_windows).cloned());
        // If other slices have results, a slice without success is only a warning.
        if self.windows.iter().any(MeasuredWindow::has_success) {
            let soft =
                |finding: &mut Finding<Check>| finding.grade = finding.grade.max(Grade::Warning);
            all.iter_mut()
                .filter(|finding| finding.check == Check::NoSuccess)
                .for_each(soft);
        }
        all.sort_by_key(|finding| (finding.grade, finding.check));
        all
    }

    /// The finding that makes all of the measurement invalid: one about the whole run, or one in every slice.
    pub fn void(&self) -> Option<&Finding<Check>> {
        let of_run = self.findings.iter().find(|of| of.grade == Grade::Invalid);
        if of_run.is_some() {
            return of_run;
        }
        let shown = if self.windows.is_empty() {
            self.capacity.as_slice()
        } else {
            &self.windows
        };
        let voids: Option<Vec<&Finding<Check>>> = shown.iter().map(MeasuredWindow::void).collect();
        voids?.first().copied()
    }

    /// The only slice. `None` if several were planned, or none was started.
    pub fn only(&self) -> Option<&MeasuredWindow<'_>> {
        self.windows.first().filter(|_| self.planned == 1)
    }
}
