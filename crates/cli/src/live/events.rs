//! A run as events for other programs: one JSON object a line, versioned, as docs/events.md tells.
//!
//! What the record keeps is told in its own types where they fit a line. Lines go out from a thread of their own: whoever reads slowly, or
//! not any more, holds nothing up.

use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use analysis::{Comparison, Conclusion, Outcome};
use lab::{Connecting, Doing, News, Progress, Update};
use plan::{Metric, Plan};
use record::{
    EndReason, Event, Generator, GeneratorLost, Header, Prepared, RateChosen, Record, Slice, SliceKind,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use services::Preparing;

use super::{Figures, SliceQuantile, State};

/// Version of this form; events and fields may be added within a version, never renamed or removed.
const VERSION: u32 = 1;

/// One line.
#[derive(Serialize, JsonSchema)]
pub struct Line {
    /// Version of this form, in the first line.
    #[serde(skip_serializing_if = "Option::is_none")]
    events_version: Option<u32>,
    /// What happened.
    #[serde(flatten)]
    what: What,
    /// Seconds since the run began.
    elapsed_s: f64,
}

/// What happened. Ratios are candidate over baseline, shares are parts of 1.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum What {
    /// The run begins; always the first line.
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
        margin_share: f64,
        /// Metrics that get a verdict, the first deciding how much is measured.
        metrics: Vec<Metric>,
        /// Whether requests are due at a rate (`open`), or follow each other (`closed`).
        #[serde(rename = "loop")]
        load_loop: Loop,
        /// Whether figures that tell who is ahead are withheld until the end, because the experiment looks once.
        withheld: bool,
        /// The variants' names.
        variants: Vec<String>,
        /// What is compared.
        comparisons: Vec<Asked>,
    },
    /// Generators are being connected: told as it begins, and about once a second.
    Connecting {
        /// Those that are waited for, in words.
        waiting: Vec<String>,
        /// For how long so far.
        for_s: f64,
    },
    /// All generators are there, for the first time or once more.
    Connected {
        /// Who they are, in their order.
        generators: Vec<Generator>,
    },
    /// A generator is gone.
    GeneratorLost(GeneratorLost),
    /// Data that services need is not there yet: told as it begins, and about once a second.
    Preparing {
        /// Its name in the experiment.
        name: String,
        /// What is being done about it.
        doing: PreparingNow,
        /// For how long it has been made.
        for_s: f64,
    },
    /// Data that services need is there.
    Prepared {
        /// Its name in the experiment.
        name: String,
        /// Whether it was made just now; otherwise it was found.
        made: bool,
        /// How long that took.
        took_s: f64,
        /// Size of its files.
        size_bytes: u64,
    },
    /// The rate that all variants get in open loop is settled.
    RateChosen {
        /// Requests due per second.
        rate_per_s: f64,
        /// The share of the slowest variant's capacity that was asked for; null where it was a rate.
        capacity_share: Option<f64>,
    },
    /// A block begins.
    BlockStarted {
        /// Its number, from 1.
        block: u32,
        /// The variants in the order in which they are started.
        order: Vec<String>,
    },
    /// Work on a trial begins.
    Trial {
        /// Number of the block; 0 before the first.
        block: u32,
        /// The variant; of those that take turns, the one whose turn is first.
        variant: String,
        /// What is done.
        doing: Doing,
    },
    /// A slice ended.
    Slice {
        /// Number of the block; 0 before the first.
        block: u32,
        /// The variant.
        variant: String,
        /// Whether it counts.
        kind: SliceKind,
        /// Length of its window, of all its turns together.
        window_s: f64,
        /// Windows that it is the sum of.
        turns: u32,
        /// Successful responses per second; null where figures are withheld.
        rate_per_s: Option<f64>,
        /// Response times in open loop, in closed loop service times: the quantiles that rest on enough requests. Empty where figures are
        /// withheld.
        quantiles: Vec<SliceQuantile>,
        /// Requests that there were to send; null where figures are withheld.
        requests: Option<u64>,
        /// Requests that did not end in an expected response.
        failed: u64,
        /// CPU steal meanwhile, as a share of the CPU time.
        steal_share: f64,
    },
    /// A block is complete and counts.
    BlockEnded {
        /// Its number.
        block: u32,
        /// Blocks that count so far.
        blocks: u32,
        /// Blocks that were dropped so far.
        blocks_dropped: u32,
        /// Blocks that count in all at the most; null until that is settled.
        blocks_planned: Option<u32>,
        /// Seconds that the run may still take at the most.
        left_s: f64,
    },
    /// What is known of a comparison after a block that counts.
    Estimate {
        /// Number of the block after which that is known.
        block: u32,
        /// Reads as "candidate vs baseline".
        comparison: String,
        /// The metric.
        metric: Metric,
        /// Blocks that it rests on.
        blocks: u32,
        /// Whether figures are withheld until the end, because the experiment looks once. Then there are none.
        withheld: bool,
        /// Candidate over baseline; null where there is nothing to compare.
        ratio: Option<f64>,
        /// Ends of the interval; null where there are too few blocks for one, or no spread between them.
        low: Option<f64>,
        /// The upper end.
        high: Option<f64>,
        /// What it would be called if the run ended now; null before there is an interval.
        outcome: Option<Outcome>,
        /// Blocks in all that would decide it, where that can be told.
        blocks_needed: Option<u32>,
        /// What became of the side that never succeeded, in words.
        no_success: Option<String>,
    },
    /// A block counts for nothing. Another takes its place.
    BlockDropped {
        /// Its number.
        block: u32,
        /// Why, in words with figures.
        why: String,
    },
    /// Captures of what explains the result begin.
    Explaining {
        /// Variants that are explained.
        variants: usize,
        /// Passes over them.
        rounds: u32,
        /// About how long that takes.
        about_s: f64,
    },
    /// A window of load begins in which something is captured.
    Capturing {
        /// Number of the round, from 1.
        round: u32,
        /// The variant.
        variant: String,
        /// What is captured.
        what: String,
    },
    /// Something that people are told in a sentence.
    Notice {
        /// The sentence.
        text: String,
    },
    /// The run is over, and its record closed.
    Ended {
        /// Why: as in the record: `decided`, `interrupted` and so on; `record_failed` where the record could not be written.
        reason: String,
        /// The same in words, where there is more to say.
        text: Option<String>,
        /// Of a budget that was too small: one that is enough.
        needed_s: Option<u64>,
    },
    /// The report; the last line unless there is a gate.
    Report {
        /// What `proofload report --json` prints of the record.
        report: Value,
    },
    /// What the limits came to, where the run has a gate; the last line then.
    Gate {
        /// What `proofload gate --json` prints of the record.
        gate: Value,
    },
}

/// A comparison that is asked for.
#[derive(Serialize, JsonSchema)]
pub struct Asked {
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
pub enum Loop {
    /// Each connection sends its next request when the last one is done.
    Closed,
    /// Requests are due at times fixed beforehand.
    Open,
}

/// What is done about data.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PreparingNow {
    /// Another run is making it.
    Waiting,
    /// It is being made.
    Making,
}

pub fn started(header: &Header, directory: &Path) -> Line {
    let Plan { name, question, variants, comparisons, design, measure, .. } = &header.plan;
    let is_open = measure.as_ref().map_or(design.pacing().is_open(), |measure| measure.rates.is_some());
    let called = |index: usize| variants.get(index).map(|variant| variant.name.clone()).unwrap_or_default();
    let asked = |asked: &plan::Comparison| Asked {
        label: asked.label.clone(),
        baseline: called(asked.baseline),
        candidate: called(asked.candidate),
    };
    let what = What::Started {
        proofload: header.proofload.clone(),
        experiment: name.clone(),
        question: question.clone(),
        record: directory.display().to_string(),
        seed: header.seed,
        budget_s: design.budget.as_secs_f64(),
        margin_share: design.margin,
        metrics: design.metrics().collect(),
        load_loop: if is_open { Loop::Open } else { Loop::Closed },
        withheld: design.looks.waits_for_end(),
        variants: (0..variants.len()).map(called).collect(),
        comparisons: comparisons.iter().map(asked).collect(),
    };
    Line { events_version: Some(VERSION), what, elapsed_s: 0.0 }
}

/// The lines that follow from an update, which `state` has taken in.
pub fn of(state: &State, update: &Update<'_>) -> Vec<Line> {
    let told = match update.news {
        News::Progress(Progress::Concluded(conclusion)) => concluded(state, conclusion),
        News::Progress(progress) => under_way(state, progress).into_iter().collect(),
        News::Event(event) => happened(state, event).into_iter().collect(),
    };
    let line = |what| Line { events_version: None, what, elapsed_s: update.elapsed_s };
    told.into_iter().map(line).collect()
}

/// How the run ended; of one whose record could not be written, that.
pub fn ended(record: &Record) -> Line {
    let reason = record.end();
    let (text, needed_s) = match reason {
        Some(
            EndReason::Void(why)
            | EndReason::LoadRefused(why)
            | EndReason::GeneratorFailed(why)
            | EndReason::ServiceFailed(why)
            | EndReason::PreparationFailed(why),
        ) => (Some(why.clone()), None),
        Some(EndReason::BudgetTooSmall { needed_s }) => (None, Some(*needed_s)),
        Some(
            EndReason::Decided
            | EndReason::LastLook
            | EndReason::BudgetSpent
            | EndReason::Measured
            | EndReason::Interrupted,
        )
        | None => (None, None),
    };
    let reason = reason.map_or("record_failed", EndReason::name).to_owned();
    afterwards(record, What::Ended { reason, text, needed_s })
}

/// A line that follows the run.
pub fn afterwards(record: &Record, what: What) -> Line {
    let elapsed_s = record.ended.as_ref().map_or(0.0, |ended| ended.seconds);
    Line { events_version: None, what, elapsed_s }
}

/// The line of an event; `None` of those that only the record has.
fn happened(state: &State, event: &Event) -> Option<What> {
    Some(match event {
        Event::GeneratorsConnected(generators) => What::Connected { generators: generators.clone() },
        Event::GeneratorLost(lost) => What::GeneratorLost(lost.clone()),
        Event::Prepared(Prepared { name, made, seconds: took_s, bytes: size_bytes, .. }) => {
            What::Prepared { name: name.clone(), made: *made, took_s: *took_s, size_bytes: *size_bytes }
        }
        Event::RateChosen(RateChosen { per_s: rate_per_s, share: capacity_share, .. }) => {
            What::RateChosen { rate_per_s: *rate_per_s, capacity_share: *capacity_share }
        }
        Event::BlockStarted { block, order } => {
            let order = order.iter().map(|index| state.name(*index).to_owned()).collect();
            What::BlockStarted { block: *block, order }
        }
        Event::Slice(slice) => slice_ended(state, slice),
        Event::BlockDropped { block, why } => What::BlockDropped { block: *block, why: why.clone() },
        Event::Ended(_) | Event::TrialStarted(_) => {
            What::Notice { text: super::said(state, News::Event(event))? }
        }
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

fn under_way(state: &State, progress: Progress<'_>) -> Option<What> {
    let (block, named) = (state.block(), |variant| state.name(variant).to_owned());
    Some(match progress {
        Progress::Connecting(Connecting { waiting, for_now }) => {
            What::Connecting { waiting: waiting.to_vec(), for_s: for_now.as_secs_f64() }
        }
        Progress::Preparing { name, doing } => {
            let (doing, for_s) = match doing {
                Preparing::Waiting => (PreparingNow::Waiting, 0.0),
                Preparing::Making(for_now) => (PreparingNow::Making, for_now.as_secs_f64()),
            };
            What::Preparing { name: name.to_owned(), doing, for_s }
        }
        Progress::Trial { doing, variant } => What::Trial { block, variant: named(variant), doing },
        Progress::Explaining { variants, rounds, seconds } => {
            What::Explaining { variants, rounds, about_s: seconds }
        }
        Progress::Capturing { round, kind, variant } => {
            What::Capturing { round, variant: named(variant), what: super::captured(kind).to_owned() }
        }
        Progress::NotExplained(_) => What::Notice { text: super::said(state, News::Progress(progress))? },
        Progress::Concluded(_) => return None,
    })
}

fn slice_ended(state: &State, slice: &Slice) -> What {
    // How many requests there were tells the rate of a closed loop.
    let shown = Some(Figures::of(slice)).filter(|_| !state.is_withheld());
    What::Slice {
        block: slice.block,
        variant: state.name(slice.variant).to_owned(),
        kind: slice.kind,
        window_s: slice.counts.window_ns as f64 / 1e9,
        turns: slice.turns,
        rate_per_s: shown.as_ref().map(|figures| figures.rate_per_s),
        requests: shown.as_ref().map(|figures| figures.requests),
        quantiles: shown.map(|figures| figures.times).unwrap_or_default(),
        failed: slice.counts.failed(),
        steal_share: slice.machine.steal_share_max(),
    }
}

fn concluded(state: &State, conclusion: &Conclusion) -> Vec<What> {
    let (block, blocks) = (state.block(), conclusion.blocks);
    let ended = What::BlockEnded {
        block,
        blocks,
        blocks_dropped: state.record.blocks_dropped(),
        blocks_planned: state.record.blocks_planned,
        left_s: state.left_s,
    };
    let estimate = |comparison: &Comparison| {
        let estimate = comparison.estimate.as_ref();
        let known = estimate.is_some() || comparison.outcome != Outcome::Inconclusive;
        let ratio = estimate.map(|estimate| estimate.ratio);
        What::Estimate {
            block,
            comparison: comparison.label.clone(),
            metric: comparison.metric,
            blocks: estimate.map_or(blocks, |estimate| estimate.blocks),
            withheld: conclusion.awaits_look,
            ratio: ratio.or(comparison.without_spread).or(comparison.ratio_so_far),
            low: estimate.map(|estimate| estimate.low),
            high: estimate.map(|estimate| estimate.high),
            outcome: known.then_some(comparison.outcome),
            blocks_needed: comparison.blocks_needed,
            no_success: comparison.no_success.clone(),
        }
    };
    std::iter::once(ended).chain(conclusion.comparisons.iter().map(estimate)).collect()
}

/// Events on their way out.
pub struct Stream {
    lines: Sender<Vec<u8>>,
    thread: JoinHandle<io::Result<()>>,
}

impl Stream {
    pub fn begin() -> io::Result<Stream> {
        let (lines, received) = channel::<Vec<u8>>();
        let write = move || {
            let mut out = io::stdout();
            received.into_iter().try_for_each(|line| out.write_all(&line).and_then(|()| out.flush()))
        };
        Ok(Stream { lines, thread: thread::Builder::new().name("events".into()).spawn(write)? })
    }

    pub fn send(&self, line: &Line) {
        // Plain structs with text keys and finite numbers cannot fail to become JSON.
        let text = serde_json::to_string(line).unwrap_or_default() + "\n";
        // A writer that has ended tells why at the end.
        let _ = self.lines.send(model::text::inert(text).into_bytes());
    }

    /// Waits until all is written.
    ///
    /// # Errors
    /// If stdout could not be written, but for a reader that went away: `| head` is no error.
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
