//! A run as events for other programs: one JSON object per line, versioned, as documented in docs/events.md.
//!
//! Data of the record is sent in its own types if these fit a line. A separate thread writes the lines, so
//! that a slow or closed reader blocks nothing.

use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use analysis::{ComparisonResult, Conclusion, Outcome};
use lab::{Connecting, Doing, Progress, Update, UpdateNews};
use plan::{Metric, Plan};
use record::{
    ConnectedGenerator, EndReason, Event, GeneratorLost, Header, Prepared, RateChosen, Record,
    Slice, SliceKind,
};
use report::LatencyQuantile;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use services::Preparing;

use super::{LiveFigures, LiveState};

/// Version of this format. Events and fields may be added within a version, never renamed or removed.
const VERSION: u32 = 1;

/// One line.
#[derive(Serialize, JsonSchema)]
pub struct EventLine {
    /// Version of this format, in the first line.
    #[serde(skip_serializing_if = "Option::is_none")]
    events_version: Option<u32>,
    /// The event.
    #[serde(flatten)]
    what: EventKind,
    /// Seconds since the start of the run.
    elapsed_s: f64,
}

/// The event. Ratios are candidate over baseline, shares are parts of 1.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    /// The run begins. Always the first line.
    Started {
        /// Version of Proofload.
        proofload: String,
        /// The experiment's name.
        experiment: String,
        /// Its question.
        question: Option<String>,
        /// The record's folder.
        record: String,
        /// Seed of every random choice.
        seed: u64,
        /// Time that the run may take.
        budget_s: f64,
        /// The smallest relative difference that matters.
        margin: f64,
        /// Metrics that get a verdict. The first one determines how much is measured.
        metrics: Vec<Metric>,
        /// Whether requests are due at a rate (`open`), or follow each other (`closed`).
        #[serde(rename = "loop")]
        load_loop: EventLoop,
        /// Whether figures that show which variant leads are withheld until the end, because the experiment
        /// is analyzed only once.
        withheld: bool,
        /// The variants' names.
        variants: Vec<String>,
        /// The comparisons.
        comparisons: Vec<PlannedComparison>,
    },
    /// Generators are being connected. Sent at the beginning, and about once a second.
    Connecting {
        /// Generators that are waited for, in words.
        waiting: Vec<String>,
        /// Waiting time so far.
        for_s: f64,
    },
    /// All generators are connected, for the first time or again.
    Connected {
        /// The generators, in their order.
        generators: Vec<ConnectedGenerator>,
    },
    /// The connection to a generator was lost.
    GeneratorLost(GeneratorLost),
    /// Data that services need is not available yet. Sent at the beginning, and about once a second.
    Preparing {
        /// Its name in the experiment.
        name: String,
        /// The current activity.
        doing: PreparingNow,
        /// Duration so far.
        for_s: f64,
    },
    /// Data that services need is available.
    Prepared {
        /// Its name in the experiment.
        name: String,
        /// Whether it was made just now, and not found in the cache.
        made: bool,
        /// Duration.
        took_s: f64,
        /// Size of its files.
        size_bytes: u64,
    },
    /// The rate of all variants in open loop has been determined.
    RateChosen {
        /// Requests due per second.
        rate_per_s: f64,
        /// The requested share of the slowest variant's capacity. Null if a rate was requested.
        capacity_share: Option<f64>,
    },
    /// A block begins.
    BlockStarted {
        /// Its number, from 1.
        block: u32,
        /// The variants in starting order.
        order: Vec<String>,
    },
    /// Work on a trial begins.
    Trial {
        /// Number of the block. 0 before the first.
        block: u32,
        /// The variant. If variants take turns, the first one.
        variant: String,
        /// The activity.
        doing: Doing,
    },
    /// A slice ended.
    Slice {
        /// Number of the block. 0 before the first.
        block: u32,
        /// The variant.
        variant: String,
        /// Whether it counts.
        kind: SliceKind,
        /// Length of its window, over all its turns.
        window_s: f64,
        /// Number of windows that it sums up.
        turns: u32,
        /// Successful responses per second. Null if figures are withheld.
        rate_per_s: Option<f64>,
        /// The quantiles with enough requests: response times in open loop, service times in closed loop.
        /// Empty if figures are withheld.
        quantiles: Vec<LatencyQuantile>,
        /// Number of requests due. Null if figures are withheld.
        requests: Option<u64>,
        /// Requests that did not end in an expected response.
        failed: u64,
        /// CPU steal during the slice, as a share of the CPU time.
        steal_share: f64,
    },
    /// A block is complete and counts.
    BlockEnded {
        /// Its number.
        block: u32,
        /// Number of blocks that count so far.
        blocks: u32,
        /// Number of blocks dropped so far.
        blocks_dropped: u32,
        /// Maximum number of blocks that count. Null until it is determined.
        blocks_planned: Option<u32>,
        /// Maximum remaining seconds.
        left_s: f64,
    },
    /// State of a comparison after a block that counts.
    Estimate {
        /// Number of the last block that is included.
        block: u32,
        /// Reads as "candidate vs baseline".
        comparison: String,
        /// The metric.
        metric: Metric,
        /// Number of blocks that are included.
        blocks: u32,
        /// Whether figures are withheld until the end, because the experiment is analyzed only once. Then
        /// there are none.
        withheld: bool,
        /// Candidate over baseline. Null if there is nothing to compare.
        ratio: Option<f64>,
        /// Lower end of the interval. Null if there are too few blocks for one, or no spread between them.
        low: Option<f64>,
        /// Upper end of the interval.
        high: Option<f64>,
        /// Outcome if the run ended now. Null before there is an interval.
        outcome: Option<Outcome>,
        /// Total number of blocks until a decision, if it can be estimated.
        blocks_needed: Option<u32>,
        /// Description of the side without any success.
        no_success: Option<String>,
    },
    /// A block was dropped and will be replaced.
    BlockDropped {
        /// Its number.
        block: u32,
        /// The reason, in words with figures.
        why: String,
    },
    /// Captures for explaining the result begin.
    Explaining {
        /// Variants that are explained.
        variants: usize,
        /// Number of passes over them.
        rounds: u32,
        /// Estimated duration.
        about_s: f64,
    },
    /// A window of load with a capture begins.
    Capturing {
        /// Number of the round, from 1.
        round: u32,
        /// The variant.
        variant: String,
        /// Kind of capture.
        what: String,
    },
    /// A notice for the user.
    Notice {
        /// The sentence.
        text: String,
    },
    /// The run is over, and its record is closed.
    Ended {
        /// Reason as in the record: `decided`, `interrupted` and so on. `record_failed` if the record could
        /// not be written.
        reason: String,
        /// Details in words, if there are any.
        text: Option<String>,
        /// If the budget was too small: a sufficient one.
        needed_s: Option<u64>,
    },
    /// The report. The last line unless there is a gate.
    Report {
        /// Output of `proofload report --json` for the record.
        report: Value,
    },
    /// Results of the limits, if the run has a gate. Then the last line.
    Gate {
        /// Output of `proofload gate --json` for the record.
        gate: Value,
    },
}

/// A requested comparison.
#[derive(Serialize, JsonSchema)]
pub struct PlannedComparison {
    /// Reads as "candidate vs baseline".
    label: String,
    /// The baseline's name.
    baseline: String,
    /// The candidate's name.
    candidate: String,
}

/// How requests follow each other.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventLoop {
    /// Each connection sends its next request after the last response.
    Closed,
    /// Requests are due at times fixed in advance.
    Open,
}

/// State of the preparation of data.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PreparingNow {
    /// Another run is making it.
    Waiting,
    /// It is being made.
    Making,
}

pub fn started(header: &Header, directory: &Path) -> EventLine {
    let Plan {
        name,
        question,
        variants,
        comparisons,
        design,
        measure,
        ..
    } = &header.plan;
    let is_open = measure
        .as_ref()
        .map_or(design.pacing().is_open(), |measure| measure.rates.is_some());
    let called = |index: usize| {
        variants
            .get(index)
            .map(|variant| variant.name.clone())
            .unwrap_or_default()
    };
    let asked = |asked: &plan::Comparison| PlannedComparison {
        label: asked.label.clone(),
        baseline: called(asked.baseline),
        candidate: called(asked.candidate),
    };
    let what = EventKind::Started {
        proofload: header.proofload.clone(),
        experiment: name.clone(),
        question: question.clone(),
        record: directory.display().to_string(),
        seed: header.seed,
        budget_s: design.budget.as_secs_f64(),
        margin: design.margin,
        metrics: design.metrics().collect(),
        load_loop: if is_open {
            EventLoop::Open
        } else {
            EventLoop::Closed
        },
        withheld: design.looks.waits_for_end(),
        variants: (0..variants.len()).map(called).collect(),
        comparisons: comparisons.iter().map(asked).collect(),
    };
    EventLine {
        events_version: Some(VERSION),
        what,
        elapsed_s: 0.0,
    }
}

/// The lines for an update that `state` has taken in.
pub fn of(state: &LiveState, update: &Update<'_>) -> Vec<EventLine> {
    let told = match update.news {
        UpdateNews::Progress(Progress::Concluded(conclusion)) => concluded(state, conclusion),
        UpdateNews::Progress(progress) => under_way(state, progress).into_iter().collect(),
        UpdateNews::Event(event) => happened(state, event).into_iter().collect(),
    };
    let line = |what| EventLine {
        events_version: None,
        what,
        elapsed_s: update.elapsed_s,
    };
    told.into_iter().map(line).collect()
}

/// How the run ended. Also reports a record that could not be written.
pub fn ended(record: &Record) -> EventLine {
    let reason = record.end();
    let text = reason.and_then(EndReason::text).map(str::to_owned);
    let needed_s = reason.and_then(EndReason::needed_s);
    let reason = reason.map_or("record_failed", EndReason::name).to_owned();
    afterwards(
        record,
        EventKind::Ended {
            reason,
            text,
            needed_s,
        },
    )
}

/// A line that follows the run.
pub fn afterwards(record: &Record, what: EventKind) -> EventLine {
    let elapsed_s = record.ended.as_ref().map_or(0.0, |ended| ended.seconds);
    EventLine {
        events_version: None,
        what,
        elapsed_s,
    }
}

/// The line of an event. `None` for events that are only in the record.
fn happened(state: &LiveState, event: &Event) -> Option<EventKind> {
    Some(match event {
        Event::GeneratorsConnected(generators) => EventKind::Connected {
            generators: generators.clone(),
        },
        Event::GeneratorLost(lost) => EventKind::GeneratorLost(lost.clone()),
        Event::Prepared(Prepared {
            name,
            made,
            seconds: took_s,
            bytes: size_bytes,
            ..
        }) => EventKind::Prepared {
            name: name.clone(),
            made: *made,
            took_s: *took_s,
            size_bytes: *size_bytes,
        },
        Event::RateChosen(RateChosen {
            per_s: rate_per_s,
            share: capacity_share,
            ..
        }) => EventKind::RateChosen {
            rate_per_s: *rate_per_s,
            capacity_share: *capacity_share,
        },
        Event::BlockStarted { block, order } => {
            let order = order
                .iter()
                .map(|index| state.name(*index).to_owned())
                .collect();
            EventKind::BlockStarted {
                block: *block,
                order,
            }
        }
        Event::Slice(slice) => slice_ended(state, slice),
        Event::BlockDropped { block, why } => EventKind::BlockDropped {
            block: *block,
            why: why.clone(),
        },
        Event::Ended(_) | Event::TrialStarted(_) => EventKind::Notice {
            text: super::said(state, UpdateNews::Event(event))?,
        },
        Event::TrialEnded(_)
        | Event::BlockEnded { .. }
        | Event::ConnectionsChosen(_)
        | Event::WarmUpChosen(_)
        | Event::CoresChosen(_)
        | Event::SlicesChosen(_)
        | Event::BlocksChosen { .. }
        | Event::Captured(_) => return None,
    })
}

fn under_way(state: &LiveState, progress: Progress<'_>) -> Option<EventKind> {
    let (block, named) = (state.block(), |variant| state.name(variant).to_owned());
    Some(match progress {
        Progress::Connecting(Connecting { waiting, for_now }) => EventKind::Connecting {
            waiting: waiting.to_vec(),
            for_s: for_now.as_secs_f64(),
        },
        Progress::Preparing { name, doing } => {
            let (doing, for_s) = match doing {
                Preparing::Waiting => (PreparingNow::Waiting, 0.0),
                Preparing::Making(for_now) => (PreparingNow::Making, for_now.as_secs_f64()),
            };
            EventKind::Preparing {
                name: name.to_owned(),
                doing,
                for_s,
            }
        }
        Progress::Trial { doing, variant } => EventKind::Trial {
            block,
            variant: named(variant),
            doing,
        },
        Progress::Explaining {
            variants,
            rounds,
            seconds,
        } => EventKind::Explaining {
            variants,
            rounds,
            about_s: seconds,
        },
        Progress::Capturing {
            round,
            kind,
            variant,
        } => EventKind::Capturing {
            round,
            variant: named(variant),
            what: super::captured(kind).to_owned(),
        },
        Progress::NotExplained(_) => EventKind::Notice {
            text: super::said(state, UpdateNews::Progress(progress))?,
        },
        Progress::Concluded(_) => return None,
    })
}

fn slice_ended(state: &LiveState, slice: &Slice) -> EventKind {
    // The number of requests would show the rate of a closed loop.
    let shown = Some(LiveFigures::of(slice)).filter(|_| !state.is_withheld());
    EventKind::Slice {
        block: slice.block,
        variant: state.name(slice.variant).to_owned(),
        kind: slice.kind,
        window_s: slice.counts.window_ns as f64 / 1e9,
        turns: slice.turns,
        rate_per_s: shown.as_ref().map(|figures| figures.rate_per_s),
        requests: shown.as_ref().map(|figures| figures.requests),
        quantiles: shown.map(|figures| figures.times).unwrap_or_default(),
        failed: slice.counts.failed(),
        steal_share: slice.machine.steal_share,
    }
}

fn concluded(state: &LiveState, conclusion: &Conclusion) -> Vec<EventKind> {
    let (block, blocks) = (state.block(), conclusion.blocks);
    let ended = EventKind::BlockEnded {
        block,
        blocks,
        blocks_dropped: state.record.blocks_dropped(),
        blocks_planned: state.record.blocks_planned,
        left_s: state.left_s,
    };
    let estimate = |comparison: &ComparisonResult| {
        let estimate = comparison.estimate.as_ref();
        let known = estimate.is_some() || comparison.outcome != Outcome::Inconclusive;
        let ratio = estimate.map(|estimate| estimate.ratio);
        EventKind::Estimate {
            block,
            comparison: comparison.label.clone(),
            metric: comparison.metric,
            blocks: estimate.map_or(blocks, |estimate| estimate.blocks),
            withheld: conclusion.awaits_look,
            ratio: ratio
                .or(comparison.without_spread)
                .or(comparison.ratio_so_far),
            low: estimate.map(|estimate| estimate.low),
            high: estimate.map(|estimate| estimate.high),
            outcome: known.then_some(comparison.outcome),
            blocks_needed: comparison.blocks_needed,
            no_success: comparison.no_success.clone(),
        }
    };
    std::iter::once(ended)
        .chain(conclusion.comparisons.iter().map(estimate))
        .collect()
}

/// Writes events to stdout.
pub struct EventStream {
    lines: Sender<Vec<u8>>,
    thread: JoinHandle<io::Result<()>>,
}

impl EventStream {
    pub fn begin() -> io::Result<EventStream> {
        let (lines, received) = channel::<Vec<u8>>();
        let write = move || {
            let mut out = io::stdout();
            received
                .into_iter()
                .try_for_each(|line| out.write_all(&line).and_then(|()| out.flush()))
        };
        Ok(EventStream {
            lines,
            thread: thread::Builder::new().name("events".into()).spawn(write)?,
        })
    }

    pub fn send(&self, line: &EventLine) {
        // Plain structs with string keys and finite numbers always convert to JSON.
        let text = serde_json::to_string(line).unwrap_or_default() + "\n";
        // If the writer has ended, its error is reported at the end.
        let _ = self.lines.send(model::text::inert(text).into_bytes());
    }

    /// Waits until everything is written.
    ///
    /// # Errors
    /// If stdout could not be written. A closed pipe, as with `| head`, is not an error.
    pub fn finish(self) -> io::Result<()> {
        drop(self.lines);
        match self.thread.join() {
            Ok(Err(error)) if error.kind() != ErrorKind::BrokenPipe => Err(error),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
