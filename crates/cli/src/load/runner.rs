//! One slice after the other: the capacity where shares of it are asked for, then each rate.
//!
//! Each rate has a generator of its own, for the arrivals of one are fixed for its life; connections are opened before a
//! window begins. A signal ends the slice that runs and all that would follow, and what was measured until then is kept.
//! What it amounts to is judged in `outcome` and `kept`.

use std::time::Duration;

use foreign::Difference;
use load::{Arrivals, Generator, LoadSpec, Process, Until};
use report::{rate, seconds};

use super::outcome::Outcome;
use super::rate::{Ask, Rates};
use super::refused;
use super::retype;
use super::series::{Capacity, Series};
use super::setup::Setup;
use super::text::{quantile, shown};
use super::watch::{Part, Watch};
use crate::print;

/// How long capacity is loaded before it is measured: connections, caches and compilers warm up a first time.
const WARMUP: Duration = Duration::from_secs(1);
/// How long capacity is measured.
const MEASURED: Duration = Duration::from_secs(3);

/// What is to be run.
#[derive(Debug)]
pub struct Runner {
    /// Without a path where there is a mix.
    pub url: String,
    /// The file with several requests.
    pub mix: Option<String>,
    /// Of all slices; its arrivals are those of closed loop.
    pub spec: LoadSpec,
    /// How long each slice is.
    pub until: Until,
    /// `None`: one slice in closed loop.
    pub rates: Option<Rates>,
    pub process: Process,
    /// Whether text shows more of the latency distribution.
    pub distribution: bool,
    /// From the tool whose command line was given.
    pub differences: Vec<Difference>,
}

impl Runner {
    /// Runs all of it, with progress on stderr. Ends early on a signal.
    ///
    /// # Errors
    /// If the engine cannot start, or signals cannot be listened to.
    pub fn run(&self) -> anyhow::Result<Series> {
        let watch = Watch::start()?;
        let mut series = Series { capacity: None, steps: Vec::new(), planned: 1, interrupted: false };
        match &self.rates {
            None => series.steps.push(self.slice(&watch, (Arrivals::Closed, None), &Part::default())?),
            Some(rates) => self.run_rates(&watch, rates.asks(), &mut series)?,
        }
        series.interrupted = watch.interrupted();
        Ok(series)
    }

    fn run_rates(&self, watch: &Watch, asks: &[Ask], series: &mut Series) -> anyhow::Result<()> {
        series.planned = asks.len();
        if asks.iter().any(|ask| ask.needs_capacity()) {
            series.capacity = Some(self.measure_capacity(watch, asks.len())?);
        }
        // Without a capacity to take a share of there is nothing to ask for.
        match series.capacity.as_ref().map_or(Some(0.0), Capacity::per_s) {
            Some(capacity_per_s) => self.run_steps(watch, asks, capacity_per_s, series),
            None => Ok(()),
        }
    }

    fn run_steps(
        &self,
        watch: &Watch,
        asks: &[Ask],
        capacity_per_s: f64,
        series: &mut Series,
    ) -> anyhow::Result<()> {
        for (index, &ask) in asks.iter().enumerate() {
            // Of what was interrupted before there was anything to show, the slice at least says so.
            if watch.interrupted() && (index > 0 || series.capacity.is_some()) {
                break;
            }
            let rate = ask.rate(capacity_per_s, self.length());
            let arrivals = Arrivals::Open { rate, process: self.process, seed: self.spec.seed };
            let part = self.part(index, ask, asks.len(), series.capacity.is_some());
            let outcome = self.slice(watch, (arrivals, Some(ask)), &part)?;
            if asks.len() > 1 {
                tell(index, asks.len(), &outcome);
            }
            series.steps.push(outcome);
        }
        Ok(())
    }

    /// Loads a while in closed loop and says how many good answers there were.
    fn measure_capacity(&self, watch: &Watch, steps: usize) -> anyhow::Result<Capacity> {
        print::talk(&format!(
            "measuring capacity: closed loop, {} connections, {} of warm-up, then {}",
            self.spec.connections,
            seconds(WARMUP.as_secs_f64()),
            seconds(MEASURED.as_secs_f64()),
        ));
        let mut generator = Generator::start(self.spec.clone()).map_err(refused)?;
        let after = self.length().saturating_mul(u32::try_from(steps).unwrap_or(u32::MAX));
        let name = "capacity: ".to_owned();
        let warming =
            Part { name: name.clone(), before: Duration::ZERO, after: after.saturating_add(MEASURED) };
        watch.run(&mut generator, Until::Elapsed(WARMUP), &warming);
        let until = Until::Elapsed(MEASURED);
        let slice = watch.run(&mut generator, until, &Part { name, before: WARMUP, after });
        let outcome = self.outcome((Arrivals::Closed, None), until, watch.interrupted(), slice);
        let capacity = Capacity { warmup: WARMUP, outcome };
        if let Some(per_s) = capacity.per_s() {
            print::talk(&format!("capacity: {}", rate(per_s)));
        }
        Ok(capacity)
    }

    fn slice(
        &self,
        watch: &Watch,
        (arrivals, ask): (Arrivals, Option<Ask>),
        part: &Part,
    ) -> anyhow::Result<Outcome> {
        let spec = LoadSpec { arrivals, ..self.spec.clone() };
        let mut generator = Generator::start(spec).map_err(refused)?;
        let slice = watch.run(&mut generator, self.until, part);
        Ok(self.outcome((arrivals, ask), self.until, watch.interrupted(), slice))
    }

    fn outcome(
        &self,
        (arrivals, ask): (Arrivals, Option<Ask>),
        until: Until,
        interrupted: bool,
        slice: model::Counts,
    ) -> Outcome {
        Outcome {
            url: self.url.clone(),
            method: self.spec.requests[0].method.clone(),
            setup: Setup::of(&self.spec, self.mix.clone()),
            address: self.spec.address.clone(),
            arrivals,
            ask,
            connections: self.spec.connections,
            threads: self.spec.threads,
            timeout: self.spec.timeout,
            until,
            interrupted,
            distribution: self.distribution,
            differences: retype::mattering(&self.differences, &slice),
            slice,
        }
    }

    /// How long a slice is; nothing where a count ends it.
    fn length(&self) -> Duration {
        match self.until {
            Until::Elapsed(length) => length,
            Until::Requests(_) => Duration::ZERO,
        }
    }

    fn part(&self, index: usize, ask: Ask, of: usize, after_capacity: bool) -> Part {
        let times = |slices: usize| self.length().saturating_mul(u32::try_from(slices).unwrap_or(u32::MAX));
        let capacity = if after_capacity { WARMUP + MEASURED } else { Duration::ZERO };
        let name = if of > 1 { format!("step {} of {of}, {ask}: ", index + 1) } else { String::new() };
        Part { name, before: capacity.saturating_add(times(index)), after: times(of - index - 1) }
    }
}

/// A step is over: whoever waits for the others sees how it went.
fn tell(index: usize, of: usize, outcome: &Outcome) {
    let ask = outcome.ask.map_or(String::new(), |ask| format!(", {ask}"));
    let kept = outcome.kept().map_or(String::new(), |kept| format!(": {}", kept.words()));
    let p99 = outcome.slice.open.as_ref().and_then(|open| shown(&open.response, 0.99));
    let p99 = p99.map_or(String::new(), |p99| format!(", p99 {}", quantile(p99)));
    print::talk(&format!("step {} of {of}{ask}{kept}{p99}", index + 1));
}
