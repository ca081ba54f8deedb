//! What came of all slices of a run together: the capacity that shares were taken of, the steps, and the caveats that
//! belong to no step alone. Pure.

use std::time::Duration;

use report::rate;

use super::outcome::{CAVEATS, Outcome};

/// How far a step may exceed the capacity that was measured before that capacity is in doubt.
const CAPACITY_EXCEEDED: f64 = 1.05;

/// What came of it: a capacity, a step, or both.
#[derive(Debug)]
pub struct Series {
    pub capacity: Option<Capacity>,
    /// One for each slice that was begun.
    pub steps: Vec<Outcome>,
    /// How many slices there were to be, without the capacity's.
    pub planned: usize,
    pub interrupted: bool,
}

/// The good answers per second in closed loop over the same number of connections.
#[derive(Debug)]
pub struct Capacity {
    /// Loaded before and left out.
    pub warmup: Duration,
    /// The slice in which it was measured.
    pub outcome: Outcome,
}

impl Capacity {
    /// Good answers per second; `None` if there was none.
    pub fn per_s(&self) -> Option<f64> {
        self.outcome.throughput_per_s().filter(|_| self.outcome.void().is_none())
    }
}

impl Series {
    /// Why there is nothing to measure, if so: no slice had a good answer.
    pub fn void(&self) -> Option<String> {
        let capacity = self.capacity.iter().map(|capacity| &capacity.outcome);
        let reasons: Option<Vec<String>> = match self.steps.len() {
            0 => capacity.map(Outcome::void).collect(),
            _ => self.steps.iter().map(Outcome::void).collect(),
        };
        reasons.and_then(|reasons| reasons.into_iter().next())
    }

    /// The slice that is alone; `None` where there was to be more than one, or none came about.
    pub fn only(&self) -> Option<&Outcome> {
        self.steps.first().filter(|_| self.planned == 1)
    }

    /// What a reader must know that belongs to no step alone.
    pub fn caveats(&self) -> Vec<String> {
        let own = [self.not_begun(), self.capacity_exceeded()];
        own.into_iter().flatten().chain(self.capacity_caveats()).collect()
    }

    /// The caveats of the steps, each kind once: how the first step has it, and which others have the like.
    pub fn caveats_of_steps(&self) -> Vec<String> {
        let by_step: Vec<_> = self.steps.iter().map(|step| (name(step), step.caveats_by_kind())).collect();
        let kind = |kind: usize| {
            let mut steps = by_step.iter().filter_map(|(name, kinds)| Some((name, kinds[kind].as_ref()?)));
            let (first, text) = steps.next()?;
            let others: Vec<&str> = steps.map(|(name, _)| name.as_str()).collect();
            Some(match others.join(", ") {
                none if none.is_empty() => format!("At {first}: {text}"),
                others => format!("At {first}, similarly at {others}: {text}"),
            })
        };
        (0..CAVEATS).filter_map(kind).collect()
    }

    /// What another tool would have done or shown otherwise in any step, once each.
    pub fn differences(&self) -> Vec<&String> {
        let mut told: Vec<&String> = Vec::new();
        for text in self.steps.iter().flat_map(|step| &step.differences) {
            if !told.contains(&text) {
                told.push(text);
            }
        }
        told
    }

    fn not_begun(&self) -> Option<String> {
        let (begun, planned) = (self.steps.len(), self.planned);
        match planned - begun {
            0 => None,
            _ if begun > 0 => {
                Some(format!("Stopped early: {} of {planned} steps did not begin.", planned - begun))
            }
            _ => {
                Some("This was the measurement of capacity; the load at a share of it did not begin.".into())
            }
        }
    }

    fn capacity_exceeded(&self) -> Option<String> {
        let capacity_per_s = self.capacity.as_ref()?.per_s()?;
        let best = self.steps.iter().filter_map(Outcome::throughput_per_s).reduce(f64::max)?;
        (best > CAPACITY_EXCEEDED * capacity_per_s).then(|| {
            format!(
                "Capacity was underestimated: at a rate the service gave {}, more than the {} of closed loop. It was not warm \
                 then, or needs more connections (-c) to be busy.",
                rate(best),
                rate(capacity_per_s)
            )
        })
    }

    /// Closed loop is what measures capacity, and no caveat then.
    fn capacity_caveats(&self) -> Vec<String> {
        let Some(capacity) = self.capacity.as_ref().filter(|_| !self.steps.is_empty()) else {
            return Vec::new();
        };
        let closed = capacity.outcome.closed_loop();
        let others = capacity.outcome.caveats().into_iter().filter(|caveat| Some(caveat) != closed.as_ref());
        others.map(|caveat| format!("While capacity was measured: {caveat}")).collect()
    }
}

fn name(step: &Outcome) -> String {
    step.ask.map_or(String::new(), |ask| ask.to_string())
}
