//! A run as lines of JSON for other programs, as documented in docs/events.md: the events of the record as in
//! its events.jsonl, and between them the current activity.
//!
//! A separate thread writes the lines, so that a slow or closed reader blocks nothing.

use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use lab::{Progress, Update, UpdateNews};
use plan::{Metric, Plan};
use record::{Event, Header, Record};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// One line.
#[derive(Serialize, JsonSchema)]
pub struct EventLine<'a> {
    /// Seconds since the start of the run.
    elapsed_s: f64,
    /// Maximum remaining seconds of the run.
    left_s: f64,
    #[serde(flatten)]
    news: LineNews<'a>,
}

/// The content of a line: an event as in events.jsonl, an activity, or what only this output has.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum LineNews<'a> {
    Event(&'a Event),
    Progress(Progress<'a>),
    Frame(StreamFrame),
}

/// The first and the last lines.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StreamFrame {
    /// The run begins. Always the first line.
    Started(StartedRun),
    /// Output of `proofload report --json` for the record. The last line unless there is a gate.
    Report(Value),
    /// Output of `proofload gate --json` for the record, if the run has a gate. Then the last line.
    Gate(Value),
}

/// Facts of a run that are fixed before its first block.
#[derive(Serialize, JsonSchema)]
pub struct StartedRun {
    /// Format of records, whose events these are.
    format: u32,
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
    /// Whether figures of variants are withheld until the report, because the experiment is analyzed only
    /// once.
    withheld: bool,
    /// The variants' names, in the order of their indices.
    variants: Vec<String>,
    /// The comparisons.
    comparisons: Vec<PlannedComparison>,
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

pub fn started(header: &Header, directory: &Path) -> EventLine<'static> {
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
    let run = StartedRun {
        format: record::VERSION,
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
        elapsed_s: 0.0,
        left_s: run.budget_s,
        news: LineNews::Frame(StreamFrame::Started(run)),
    }
}

/// The line for an update. `None` if it would show which variant leads before the experiment may be looked at.
pub fn of<'a>(plan: &Plan, update: &Update<'a>) -> Option<EventLine<'a>> {
    let withheld = plan.design.looks.waits_for_end();
    let news = match update.news {
        UpdateNews::Event(event) if withheld && has_results(event) => return None,
        UpdateNews::Progress(Progress::Concluded(_)) if withheld => return None,
        UpdateNews::Event(event) => LineNews::Event(event),
        UpdateNews::Progress(progress) => LineNews::Progress(progress),
    };
    Some(EventLine {
        elapsed_s: update.elapsed_s,
        left_s: update.left_s,
        news,
    })
}

/// Whether an event contains figures of variants.
fn has_results(event: &Event) -> bool {
    match event {
        Event::Slice(_)
        | Event::TrialEnded(_)
        | Event::RateChosen(_)
        | Event::CoresChosen(_)
        | Event::Captured(_) => true,
        Event::GeneratorsConnected(_)
        | Event::GeneratorLost(_)
        | Event::Prepared(_)
        | Event::BlockStarted { .. }
        | Event::TrialStarted(_)
        | Event::BlockEnded { .. }
        | Event::BlockDropped { .. }
        | Event::ConnectionsChosen(_)
        | Event::WarmUpChosen(_)
        | Event::SlicesChosen(_)
        | Event::BlocksChosen { .. }
        | Event::Ended(_) => false,
    }
}

/// A line after the end of the run.
pub fn afterwards(record: &Record, frame: StreamFrame) -> EventLine<'static> {
    EventLine {
        elapsed_s: record.ended.as_ref().map_or(0.0, |ended| ended.seconds),
        left_s: 0.0,
        news: LineNews::Frame(frame),
    }
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

    pub fn send(&self, line: &EventLine<'_>) {
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
