//! What a run has shown so far, as a value: a fold over the events that a record is a fold over, and over what is under way.
//!
//! The live view, plain lines and events for other programs are all drawn from it. Must not: read a clock, or conclude anything.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

use analysis::{Comparison, Conclusion, Outcome};
use lab::{News, Progress, Update};
use plan::{LookRule, Plan};
use record::{Cause, Event, Header, Phase, Record, Slice, SliceKind};
use stats::{Estimate, Latencies, Quantile};

use super::words;

/// Slices of a variant that are kept: more than the widest sparkline has room for.
const KEPT_MAX: usize = 240;

/// Everything that is shown of a run.
#[derive(Debug, Clone)]
pub struct State {
    /// What the record has by now, without slices and captures: there are thousands of the ones, and nobody looks at the others here.
    pub record: Record,
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
    /// Each comparison with what is known of it.
    pub comparisons: Vec<Compared>,
    /// Each variant with what its slices gave.
    pub variants: Vec<Trace>,
    /// What failed so far.
    pub failures: Failures,
    /// CPU steal in the last slice, 0 to 1.
    pub steal_share: f64,
    /// Slices folded in, to tell which variants were measured last.
    slices: u64,
}

/// A comparison, once for each metric that gets a verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// Reads as "candidate against baseline", with the metric where there are several.
    pub label: String,
    /// What is known of it.
    pub so_far: SoFar,
    /// What it would be called if the run ended now.
    pub outcome: Outcome,
    /// Blocks in all that would decide it, where that can be told.
    pub blocks_needed: Option<u32>,
}

/// What is known of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub enum SoFar {
    /// No block is complete yet.
    Nothing,
    /// The experiment looks once: nothing is shown before the end.
    Withheld,
    /// A ratio without an interval: there are too few blocks for one.
    Ratio(f64),
    /// Every block gave the same ratio, so that there is no interval.
    Same(f64),
    /// A ratio with its interval.
    Interval(Estimate),
    /// One side never succeeded, in words.
    NoSuccess(String),
    /// A finding forbids any number.
    Void,
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
        let record = Record::new(PathBuf::new(), header);
        let Plan { design, comparisons, variants, .. } = &record.header.plan;
        let so_far = if design.looks == LookRule::Once { SoFar::Withheld } else { SoFar::Nothing };
        let several = !design.co_primary.is_empty();
        let compared = |asked: &plan::Comparison, metric| Compared {
            label: label(&asked.label, several.then_some(metric)),
            so_far: so_far.clone(),
            outcome: Outcome::Inconclusive,
            blocks_needed: None,
        };
        let each = |asked| design.metrics().map(move |metric| (asked, metric));
        let comparisons = comparisons.iter().flat_map(each);
        let trace = |name: &String| Trace { name: name.clone(), slices: VecDeque::new(), touched: 0 };
        State {
            elapsed_s: 0.0,
            left_s: design.budget.as_secs_f64(),
            slices_in_block: 0,
            doing: "beginning".to_owned(),
            paused: false,
            comparisons: comparisons.map(|(asked, metric)| compared(asked, metric)).collect(),
            variants: variants.iter().map(|variant| trace(&variant.name)).collect(),
            failures: Failures::default(),
            steal_share: 0.0,
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
            News::Progress(Progress::Concluded(conclusion)) => self.conclude(conclusion),
            News::Progress(Progress::Pausing) => self.paused = true,
            News::Progress(_) => {}
        }
        if let Some(doing) = words::doing(self, update.news) {
            self.doing = doing;
        }
    }

    fn slice(&mut self, slice: &Slice) {
        self.failures.count(slice);
        self.steal_share = slice.machine.steal_share_max();
        if slice.kind != SliceKind::Measured {
            return;
        }
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

    fn conclude(&mut self, conclusion: &Conclusion) {
        let several =
            conclusion.comparisons.iter().any(|other| other.metric != conclusion.comparisons[0].metric);
        let withheld = conclusion.awaits_look;
        self.comparisons = conclusion
            .comparisons
            .iter()
            .map(|comparison| Compared {
                label: label(&comparison.label, several.then_some(comparison.metric)),
                so_far: so_far(comparison, withheld),
                outcome: if withheld { Outcome::Inconclusive } else { comparison.outcome },
                blocks_needed: comparison.blocks_needed,
            })
            .collect();
    }
}

fn label(label: &str, metric: Option<plan::Metric>) -> String {
    metric.map_or_else(|| label.to_owned(), |metric| format!("{label}, {}", metric.row().title))
}

fn so_far(comparison: &Comparison, withheld: bool) -> SoFar {
    match (&comparison.no_success, &comparison.estimate, comparison.without_spread) {
        (Some(words), ..) => SoFar::NoSuccess(words.clone()),
        _ if comparison.outcome == Outcome::Void => SoFar::Void,
        // Even a ratio would be a look.
        _ if withheld => SoFar::Withheld,
        (_, Some(estimate), _) => SoFar::Interval(*estimate),
        (_, _, Some(ratio)) => SoFar::Same(ratio),
        _ => comparison.ratio_so_far.map_or(SoFar::Nothing, SoFar::Ratio),
    }
}

/// The quantiles that are told of a slice, in per cent.
pub const PERCENT: [f64; 3] = [50.0, 90.0, 99.0];

/// A quantile of the times of a slice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timed {
    /// Which, in per cent.
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
    /// At each of [`PERCENT`], where that rests on enough requests: response times in open loop, in closed loop service times.
    pub times: [Option<Timed>; PERCENT.len()],
    /// Requests that there were to send.
    pub requests: u64,
    /// Requests among them that did not end in an expected response.
    pub failed: u64,
}

impl Figures {
    /// The figures of a slice.
    pub fn of(slice: &Slice) -> Figures {
        let window_s = slice.counts.window_ns as f64 / 1e9;
        let latencies = slice.counts.open.as_ref().map_or(&slice.counts.latency, |open| &open.response);
        Figures {
            rate_per_s: if window_s > 0.0 {
                slice.counts.successful_in_window as f64 / window_s
            } else {
                0.0
            },
            times: PERCENT.map(|percent| timed(latencies, percent)),
            requests: slice.counts.due(),
            failed: slice.counts.failed(),
        }
    }

    /// The time at this quantile in microseconds; `None` where the slice has too few requests for it.
    pub fn us(&self, percent: f64) -> Option<f64> {
        self.times.iter().flatten().find(|timed| timed.percent == percent).map(|timed| timed.us)
    }
}

fn timed(latencies: &Latencies, percent: f64) -> Option<Timed> {
    if !latencies.resolves(percent / 100.0) {
        return None;
    }
    let (ns, at_least) = match latencies.quantile(percent / 100.0)? {
        Quantile::Exact(ns) => (ns, false),
        Quantile::AtLeast(ns) => (ns, true),
    };
    Some(Timed { percent, us: ns as f64 / 1e3, at_least })
}

/// Requests that failed so far in measured slices, and in which ways.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Failures {
    /// Requests that there were to send.
    pub requests: u64,
    /// Those among them that did not end in an expected response.
    pub failed: u64,
    ways: BTreeMap<String, u64>,
}

impl Failures {
    /// Counts one more slice; warm-ups are no part of any figure.
    pub fn count(&mut self, slice: &Slice) {
        if slice.kind != SliceKind::Measured {
            return;
        }
        self.requests += slice.counts.due();
        self.failed += slice.counts.failed();
        let unsent = slice.counts.open.as_ref().map_or(0, |open| open.unsent);
        self.add("no response in time", slice.counts.timed_out + slice.counts.unfinished + unsent);
        for failure in &slice.counts.contract_failures {
            self.add(&format!("{} {}", failure.kind, failure.example), failure.count);
        }
        // A request that was given up is counted above.
        for error in slice
            .counts
            .errors
            .iter()
            .filter(|error| error.cause != Cause::Timeout || error.phase == Phase::Connect)
        {
            self.add(&format!("{} {}", error.phase, error.cause), error.count);
        }
    }

    /// The most frequent way, and how often.
    pub fn most_frequent(&self) -> Option<(&str, u64)> {
        let most = self.ways.iter().max_by_key(|(_, count)| **count)?;
        Some((most.0.as_str(), *most.1))
    }

    fn add(&mut self, way: &str, count: u64) {
        if count > 0 {
            *self.ways.entry(way.to_owned()).or_default() += count;
        }
    }
}
