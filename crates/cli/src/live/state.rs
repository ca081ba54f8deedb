//! What a run has shown so far, as a value: a fold over the events that a record is a fold over, and over what is under way.
//!
//! The live view, plain lines and events for other programs are all drawn from it. Must not: read a clock, or judge anything.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

use analysis::{Comparison, Conclusion};
use lab::{News, Progress, Update};
use plan::{LookRule, Plan};
use record::{Cause, Event, Header, Phase, Record, Slice, SliceKind};
use schemars::JsonSchema;
use serde::Serialize;
use stats::Quantile;

use super::words;

/// Slices of a variant that are kept: more than the widest sparkline has room for.
const KEPT_MAX: usize = 240;

/// Everything that is shown of a run.
#[derive(Debug, Clone)]
pub struct State {
    /// What the record has by now, without slices and captures: there are thousands of the ones, and nobody looks at the others here.
    pub record: Record,
    /// What follows from the blocks that count; before there is one, from none.
    pub conclusion: Conclusion,
    /// Seconds since the run began, pauses not counted.
    pub elapsed_s: f64,
    /// Seconds that it may still take at the most.
    pub left_s: f64,
    /// Slices in this block that every variant has by now.
    pub slices_in_block: u32,
    /// What is under way, in words.
    pub doing: String,
    /// Whether the run waits, because the user wants it to.
    pub paused: bool,
    /// Each variant with what its slices gave.
    pub variants: Vec<Trace>,
    /// Requests that there were to send in measured slices.
    pub requests: u64,
    /// Those among them that did not end in an expected response.
    pub failed: u64,
    /// CPU steal in the last slice, 0 to 1.
    pub steal_share: f64,
    /// In which ways requests failed, and how often.
    ways: BTreeMap<String, u64>,
    /// Slices folded in, to tell which variants were measured last.
    slices: u64,
}

/// A variant and what its measured slices gave, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// Its name.
    pub name: String,
    /// The figures of the last slices.
    pub slices: VecDeque<Figures>,
    /// When it was measured last, in slices of the run; 0 for never.
    pub touched: u64,
}

impl State {
    /// The state of a run in which nothing has happened yet.
    pub fn of(header: Header) -> State {
        let trace = |name: &String| Trace { name: name.clone(), slices: VecDeque::new(), touched: 0 };
        let variants = header.plan.variants.iter().map(|variant| trace(&variant.name)).collect();
        let left_s = header.plan.design.budget.as_secs_f64();
        let record = Record::new(PathBuf::new(), header);
        State {
            conclusion: analysis::conclude(&record),
            elapsed_s: 0.0,
            left_s,
            slices_in_block: 0,
            doing: "beginning".to_owned(),
            paused: false,
            variants,
            requests: 0,
            failed: 0,
            steal_share: 0.0,
            ways: BTreeMap::new(),
            slices: 0,
            record,
        }
    }

    /// What is measured, and how.
    pub fn plan(&self) -> &Plan {
        &self.record.header.plan
    }

    /// Whether nothing that tells who is ahead may be shown before the end.
    pub fn is_withheld(&self) -> bool {
        self.plan().design.looks == LookRule::Once
    }

    /// Number of the block under way, from 1; 0 before the first.
    pub fn block(&self) -> u32 {
        self.record.blocks.last().map_or(0, |block| block.number)
    }

    /// Seconds since the run began, and those that it may still take, so many after the last update.
    pub fn times(&self, since_s: f64) -> (f64, f64) {
        let since_s = if self.paused { 0.0 } else { since_s };
        (self.elapsed_s + since_s, (self.left_s - since_s).max(0.0))
    }

    /// Name of a variant, by its index.
    pub fn name(&self, variant: usize) -> &str {
        self.variants.get(variant).map(|trace| trace.name.as_str()).unwrap_or_default()
    }

    /// Each comparison, once for each metric that gets a verdict, with what it is called.
    pub fn comparisons(&self) -> impl Iterator<Item = (String, &Comparison)> {
        let comparisons = self.conclusion.comparisons.iter();
        comparisons.map(|one| (report::compared_as(&self.conclusion, one), one))
    }

    /// The most frequent way in which requests failed, and how often.
    pub fn most_frequent_failure(&self) -> Option<(&str, u64)> {
        let (way, count) = self.ways.iter().max_by_key(|(_, count)| **count)?;
        Some((way, *count))
    }

    /// Takes in what is new.
    pub fn take_in(&mut self, update: &Update<'_>) {
        (self.elapsed_s, self.left_s) = (update.elapsed_s, update.left_s);
        match update.news {
            News::Event(Event::Slice(slice)) => self.slice(slice),
            News::Event(Event::Captured(_)) => {}
            News::Event(event) => {
                match event {
                    Event::BlockStarted { .. } => self.slices_in_block = 0,
                    Event::Paused { .. } => self.paused = false,
                    _ => {}
                }
                self.record.apply(event.clone());
            }
            News::Progress(Progress::Concluded(conclusion)) => self.conclusion = conclusion.clone(),
            News::Progress(Progress::Pausing) => self.paused = true,
            News::Progress(_) => {}
        }
        if let Some(doing) = words::doing(self, update.news) {
            self.doing = doing;
        }
    }

    fn slice(&mut self, slice: &Slice) {
        self.steal_share = slice.machine.steal_share_max();
        // Warm-ups are no part of any figure.
        if slice.kind != SliceKind::Measured {
            return;
        }
        self.count_failures(slice);
        self.slices += 1;
        let Some(trace) = self.variants.get_mut(slice.variant) else { return };
        trace.touched = self.slices;
        trace.slices.push_back(Figures::of(slice));
        if trace.slices.len() > KEPT_MAX {
            trace.slices.pop_front();
        }
        // Of a pass the first variant's slice is told first.
        self.slices_in_block += u32::from(slice.variant == 0);
    }

    fn count_failures(&mut self, slice: &Slice) {
        let counts = &slice.counts;
        self.requests += counts.due();
        self.failed += counts.failed();
        let unsent = counts.open.as_ref().map_or(0, |open| open.unsent);
        let late = counts.timed_out + counts.unfinished + unsent;
        let of_contract = counts.contract_failures.iter();
        let of_contract = of_contract.map(|one| (format!("{} {}", one.kind, one.example), one.count));
        // A request that was given up is counted above.
        let is_new = |cause, phase| cause != Cause::Timeout || phase == Phase::Connect;
        let errors = counts.errors.iter().filter(|error| is_new(error.cause, error.phase));
        let errors = errors.map(|error| (format!("{} {}", error.phase, error.cause), error.count));
        let ways = std::iter::once(("no response in time".to_owned(), late)).chain(of_contract).chain(errors);
        for (way, count) in ways.filter(|(_, count)| *count > 0) {
            *self.ways.entry(way).or_default() += count;
        }
    }
}

/// The quantiles that are told of a slice, in per cent.
pub const PERCENT: [f64; 3] = [50.0, 90.0, 99.0];

/// A quantile of the times of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct SliceQuantile {
    /// Which.
    pub percent: f64,
    /// Microseconds.
    pub us: f64,
    /// Whether that is a lower bound, because requests got no response.
    pub at_least: bool,
}

/// What is shown of a slice.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    /// Successful responses per second of its window.
    pub rate_per_s: f64,
    /// Of [`PERCENT`] those that rest on enough requests: response times in open loop, in closed loop service times.
    pub times: Vec<SliceQuantile>,
    /// Requests that there were to send.
    pub requests: u64,
}

impl Figures {
    /// The figures of a slice.
    pub fn of(slice: &Slice) -> Figures {
        let latencies = slice.counts.open.as_ref().map_or(&slice.counts.latency, |open| &open.response);
        let resolved = PERCENT.into_iter().filter(|percent| latencies.resolves(percent / 100.0));
        let timed = |percent| {
            let quantile = latencies.quantile(percent / 100.0)?;
            let at_least = matches!(quantile, Quantile::AtLeast(_));
            Some(SliceQuantile { percent, us: quantile.ns() as f64 / 1e3, at_least })
        };
        Figures {
            rate_per_s: slice.per_s().unwrap_or(0.0),
            times: resolved.filter_map(timed).collect(),
            requests: slice.counts.due(),
        }
    }

    /// The time at this quantile in microseconds; `None` where the slice has too few requests for it.
    pub fn us(&self, percent: f64) -> Option<f64> {
        self.times.iter().find(|timed| timed.percent == percent).map(|timed| timed.us)
    }
}
