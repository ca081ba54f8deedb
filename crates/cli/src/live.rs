//! Live output of a running experiment: a self-updating view on a terminal, plain lines elsewhere, events for
//! other programs.
//!
//! All three are drawn from one fold over the lab's updates ([`State`]). This module must not block the lab,
//! or take time within a slice that could be taken between two.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::Duration;

use analysis::{ComparisonResult, Conclusion};
use anstream::{AutoStream, ColorChoice};
use events::{EventStream, StreamFrame};
use lab::{Connecting, Doing, Progress, Update, UpdateNews};
use model::RequestOutcome;
use model::quantity::many;
use plan::Plan;
use record::{
    CaptureKind, Cause, EndReason, Event, Header, Phase, Prepared, RateChosen, Record,
    ServiceStarted, Slice, TrialStarted,
};
use report::{LatencyQuantile, bytes, quantiles, rate, seconds, share};
use screen::Screen;
use serde_json::Value;
use services::Preparing;

use crate::print;

pub use terminal::leave;

mod drawing;
mod events;
mod screen;
mod terminal;

/// Display of a run: a view, lines, or neither if events go to the terminal.
pub struct Live {
    screen: Screen,
    view: Option<JoinHandle<()>>,
    plain: Option<PlainView>,
    events: Option<EventStream>,
}

impl Live {
    /// Starts the display: on stderr depending on its type, and as `events` on stdout on request.
    pub fn begin(header: &Header, record: PathBuf, events: bool) -> io::Result<Live> {
        let (screen, woken) = Screen::new(LiveState::of(header.clone()))?;
        let events = events.then(EventStream::begin).transpose()?;
        if let Some(stream) = &events {
            stream.send(&events::started(header, &record));
        }
        // If both go to one terminal, a view would be mixed with the events.
        let shared = events.is_some() && io::stdout().is_terminal();
        let renews = !shared && !print::is_quiet() && can_renew();
        let styled = AutoStream::choice(&io::stderr()) != ColorChoice::Never;
        let view = renews
            .then(|| screen.view(woken, record.join("logs"), styled))
            .transpose()?;
        let plain = (!shared && !renews && !print::is_quiet()).then(PlainView::default);
        Ok(Live {
            screen,
            view,
            plain,
            events,
        })
    }

    pub fn show(&mut self, update: &Update<'_>) {
        let Live {
            screen,
            view,
            plain,
            events,
        } = self;
        let (line, event) = screen.take_in(update, |state| {
            let line = match plain {
                Some(plain) => plain.line(state, update),
                None => view.as_ref().and_then(|_| said(state, update.news)),
            };
            let event = events
                .as_ref()
                .and_then(|_| events::of(state.plan(), update));
            (line, event)
        });
        line.iter().for_each(|line| screen.say(line));
        if let (Some(stream), Some(event)) = (events, event) {
            stream.send(&event);
        }
    }

    /// Prints messages above the view, from any thread.
    pub fn screen(&self) -> Screen {
        self.screen.clone()
    }

    /// Removes the view and restores the terminal, so that only the report remains. Later messages are
    /// printed directly.
    pub fn clear(&mut self) {
        let Some(view) = self.view.take() else { return };
        self.screen.end();
        // A thread that panicked has already restored the terminal.
        let _ = view.join();
    }

    /// Sends the report as the last line.
    ///
    /// # Errors
    /// If stdout could not be written, except for a closed pipe.
    pub fn finish(mut self, record: &Record, report: impl FnOnce() -> Value) -> io::Result<()> {
        let Some(stream) = self.events.take() else {
            return Ok(());
        };
        stream.send(&events::afterwards(record, StreamFrame::Report(report())));
        stream.finish()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.clear();
    }
}

/// The last line of a run with a gate.
pub fn gate_event(record: &Record, gate: Value) -> String {
    // As with every event, plain structs always convert to JSON.
    let line = events::afterwards(record, StreamFrame::Gate(gate));
    let line = serde_json::to_string(&line).unwrap_or_default();
    model::text::inert(line) + "\n"
}

/// Whether stderr is a terminal that supports updating lines.
fn can_renew() -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    io::stderr().is_terminal() && !dumb && terminal::size().is_some()
}

// The state of a run so far: a fold over the record's events, and over the current activity.
//
// The live view, plain lines and events for other programs are all drawn from it. This module does not read a
// clock or judge anything.

/// Number of stored slices of a variant: more than the widest sparkline shows.
const KEPT_MAX: usize = 240;

/// Displayed state of a run.
pub struct LiveState {
    /// The record so far, without slices and captures: there are thousands of slices, and captures are not
    /// shown.
    pub record: Record,
    /// Conclusion from the blocks that count, also before the first one.
    pub conclusion: Conclusion,
    /// Seconds since the start of the run.
    pub elapsed_s: f64,
    /// Maximum remaining seconds.
    pub left_s: f64,
    /// Number of slices in this block that every variant has so far.
    pub slices_in_block: u32,
    /// Current activity, in words.
    pub doing: String,
    /// Each variant with the results of its slices.
    pub variants: Vec<Trace>,
    /// Number of requests due in measured slices.
    pub requests: u64,
    /// Number of these that did not end in an expected response.
    pub failed: u64,
    /// CPU steal in the last slice, 0 to 1.
    pub steal_share: f64,
    /// Number of failed requests by kind of failure.
    ways: BTreeMap<String, u64>,
    /// Indices of all variants, the most recently measured first.
    pub latest: Vec<usize>,
}

/// A variant and the results of its measured slices, in order.
pub struct Trace {
    pub name: String,
    /// The figures of the last slices.
    pub slices: VecDeque<LiveFigures>,
}

impl LiveState {
    /// The initial state of a run.
    pub fn of(header: Header) -> LiveState {
        let variants = header.plan.variants.iter();
        let trace = |of: &plan::Variant| Trace {
            name: of.name.clone(),
            slices: VecDeque::new(),
        };
        let variants: Vec<Trace> = variants.map(trace).collect();
        let left_s = header.plan.design.budget.as_secs_f64();
        let record = Record::new(PathBuf::new(), header);
        LiveState {
            conclusion: analysis::conclude(&record),
            elapsed_s: 0.0,
            left_s,
            slices_in_block: 0,
            doing: "beginning".to_owned(),
            latest: (0..variants.len()).collect(),
            variants,
            requests: 0,
            failed: 0,
            steal_share: 0.0,
            ways: BTreeMap::new(),
            record,
        }
    }

    pub fn plan(&self) -> &Plan {
        &self.record.header.plan
    }

    /// Whether figures that show which variant leads are withheld until the end.
    pub fn is_withheld(&self) -> bool {
        self.plan().design.looks.waits_for_end()
    }

    /// Number of the current block, from 1. 0 before the first.
    pub fn block(&self) -> u32 {
        self.record.blocks.last().map_or(0, |block| block.number)
    }

    /// The variants of the current block, in starting order.
    fn order(&self) -> &[usize] {
        self.record
            .blocks
            .last()
            .map(|block| block.order.as_slice())
            .unwrap_or_default()
    }

    /// Seconds since the start of the run, and maximum remaining seconds, `since_s` after the last update.
    pub fn times(&self, since_s: f64) -> (f64, f64) {
        (self.elapsed_s + since_s, (self.left_s - since_s).max(0.0))
    }

    pub fn name(&self, variant: usize) -> &str {
        self.variants
            .get(variant)
            .map(|trace| trace.name.as_str())
            .unwrap_or_default()
    }

    /// Each comparison with its name, once for each metric that gets a verdict.
    pub fn comparisons(&self) -> impl Iterator<Item = (String, &ComparisonResult)> {
        let comparisons = self.conclusion.comparisons.iter();
        comparisons.map(|one| (report::compared_as(&self.conclusion, one), one))
    }

    /// The most frequent kind of failure, with its count.
    pub fn most_frequent_failure(&self) -> Option<(&str, u64)> {
        let (way, count) = self.ways.iter().max_by_key(|(_, count)| **count)?;
        Some((way, *count))
    }

    pub fn take_in(&mut self, update: &Update<'_>) {
        (self.elapsed_s, self.left_s) = (update.elapsed_s, update.left_s);
        match update.news {
            UpdateNews::Event(Event::Slice(slice)) => self.slice(slice),
            UpdateNews::Event(Event::Captured(_)) => {}
            UpdateNews::Event(event) => {
                if matches!(event, Event::BlockStarted { .. }) {
                    self.slices_in_block = 0;
                }
                self.record.apply(event.clone());
            }
            UpdateNews::Progress(Progress::Concluded(conclusion)) => {
                self.conclusion = conclusion.clone()
            }
            UpdateNews::Progress(_) => {}
        }
        if let Some(doing) = doing(self, update.news) {
            self.doing = doing;
        }
    }

    fn slice(&mut self, slice: &Slice) {
        self.steal_share = slice.machine.steal_share;
        // Warm-ups are not part of any figure.
        if !slice.kind.counts() {
            return;
        }
        self.count_failures(slice);
        let Some(trace) = self.variants.get_mut(slice.variant) else {
            return;
        };
        self.latest.retain(|variant| *variant != slice.variant);
        self.latest.insert(0, slice.variant);
        trace.slices.push_back(LiveFigures::of(slice));
        if trace.slices.len() > KEPT_MAX {
            trace.slices.pop_front();
        }
        // Slices of one pass are reported together. Decided variants are in no further block.
        self.slices_in_block += u32::from(self.order().first() == Some(&slice.variant));
    }

    fn count_failures(&mut self, slice: &Slice) {
        let counts = &slice.counts;
        let RequestOutcome { due, failed } = counts.outcome();
        (self.requests, self.failed) = (self.requests + due, self.failed + failed);
        let unsent = counts.open.as_ref().map_or(0, |open| open.unsent);
        let late = counts.timed_out + counts.unfinished + unsent;
        let of_contract = counts.contract_failures.iter();
        let of_contract =
            of_contract.map(|one| (format!("{} {}", one.kind, one.example), one.count));
        // A request that was given up is counted above.
        let is_new = |cause, phase| cause != Cause::Timeout || phase == Phase::Connect;
        let errors = counts
            .errors
            .iter()
            .filter(|error| is_new(error.cause, error.phase));
        let errors = errors.map(|error| (format!("{} {}", error.phase, error.cause), error.count));
        let ways = std::iter::once(("no response in time".to_owned(), late))
            .chain(of_contract)
            .chain(errors);
        for (way, count) in ways.filter(|(_, count)| *count > 0) {
            *self.ways.entry(way).or_default() += count;
        }
    }
}

/// The quantiles of a slice that are shown, in per cent.
pub const PERCENT: [f64; 3] = [50.0, 90.0, 99.0];

/// Displayed figures of a slice.
pub struct LiveFigures {
    /// Successful responses per second of its window.
    pub rate_per_s: f64,
    /// The quantiles of [`PERCENT`] with enough requests: response times in open loop, service times in
    /// closed loop.
    pub times: Vec<LatencyQuantile>,
    /// Number of requests due.
    pub requests: u64,
}

impl LiveFigures {
    pub fn of(slice: &Slice) -> LiveFigures {
        let latencies = slice
            .counts
            .open
            .as_ref()
            .map_or(&slice.counts.latency, |open| &open.response);
        LiveFigures {
            rate_per_s: analysis::throughput_per_s(slice).unwrap_or(0.0),
            times: quantiles(latencies, &PERCENT),
            requests: slice.counts.due(),
        }
    }

    /// The time at this quantile in microseconds. `None` if the slice has too few requests for it.
    pub fn us(&self, percent: f64) -> Option<f64> {
        self.times
            .iter()
            .find(|timed| timed.percent == percent)
            .map(|timed| timed.us)
    }
}

// Texts about a run: the current activity, notices when something happens, and lines without a terminal.
// Pure.

/// The activity that starts now. `None` if it does not change.
pub fn doing(state: &LiveState, news: UpdateNews<'_>) -> Option<String> {
    Some(match news {
        UpdateNews::Event(event) => match event {
            Event::GeneratorsConnected(_) => "generators ready".to_owned(),
            Event::GeneratorLost(lost) => format!("{} is lost", lost.generator),
            Event::Prepared(prepared) => format!("{} is ready", prepared.name),
            Event::RateChosen(_) => "rate chosen".to_owned(),
            Event::BlockDropped { .. } => "block dropped".to_owned(),
            Event::Ended(_) => "ending".to_owned(),
            _ => return None,
        },
        UpdateNews::Progress(progress) => match progress {
            Progress::Connecting(Connecting { waiting, for_now }) => {
                format!(
                    "connecting {}{}",
                    listed(waiting.iter().map(String::as_str)),
                    so_long(for_now)
                )
            }
            Progress::Preparing {
                name,
                doing: Preparing::Waiting,
            } => {
                format!("waiting for another run that builds {name}")
            }
            Progress::Preparing {
                name,
                doing: Preparing::Making(for_now),
            } => {
                format!("building {name}{}", so_long(for_now))
            }
            Progress::Trial { doing, variant } => trial(state, doing, variant),
            Progress::Concluded(_) => "block done".to_owned(),
            Progress::Explaining { .. } => "profiling".to_owned(),
            Progress::Capturing {
                round,
                kind,
                variant,
            } => {
                format!(
                    "round {round}: capturing {} of {}",
                    captured(kind),
                    state.name(variant)
                )
            }
            Progress::NotExplained(_) => "ending".to_owned(),
        },
    })
}

fn trial(state: &LiveState, doing: Doing, variant: usize) -> String {
    let (plan, name) = (state.plan(), state.name(variant));
    match doing {
        Doing::Starting => format!("starting {name}"),
        Doing::WarmingUp => format!("warming up {name}"),
        Doing::MeasuringCapacity => format!("measuring the saturation throughput of {name}"),
        Doing::Measuring if state.order().len() > 1 && lab::take_turns(plan) => {
            let (many, slice) = (state.order().len(), state.slices_in_block + 1);
            let all = match plan.variants.len() {
                2 => "both".to_owned(),
                all if all == many => format!("all {many}"),
                _ => many.to_string(),
            };
            format!("measuring {all} variants turn by turn, slice {slice}")
        }
        Doing::Measuring => format!("measuring {name}"),
        Doing::Probing => format!("searching the capacity of {name}"),
        Doing::Overloading => format!("overloading {name}, to see whether it recovers"),
    }
}

pub fn captured(kind: CaptureKind) -> &'static str {
    match kind {
        CaptureKind::Plain => "CPU time by thread",
        CaptureKind::Counters => "counters",
        CaptureKind::Cpu => "a CPU profile",
        CaptureKind::Native => "native stacks",
        CaptureKind::Heap => "allocations",
    }
}

/// A notice for news that deserves one. `None` for most news.
pub fn said(state: &LiveState, news: UpdateNews<'_>) -> Option<String> {
    Some(match news {
        UpdateNews::Event(Event::TrialStarted(started)) => return found(state, started),
        UpdateNews::Event(Event::GeneratorsConnected(generators)) => {
            let names = listed(generators.iter().map(|generator| generator.name.as_str()));
            format!(
                "{} ready: {names}",
                many(generators.len() as u64, "generator")
            )
        }
        UpdateNews::Event(Event::GeneratorLost(lost)) => format!("lost: {}", lost.why),
        UpdateNews::Event(Event::Prepared(Prepared {
            name,
            made: true,
            bytes: size,
            seconds: took,
            ..
        })) => {
            format!(
                "built {name}: {} in {}, kept for the next run",
                bytes(*size as f64),
                seconds(*took)
            )
        }
        UpdateNews::Event(Event::RateChosen(_))
            if state
                .plan()
                .variants
                .iter()
                .any(|variant| variant.load.rate_per_s.is_some()) =>
        {
            "open loop at each variant's own rate".to_owned()
        }
        UpdateNews::Event(Event::RateChosen(chosen)) => rate_line(chosen),
        UpdateNews::Event(Event::ConnectionsChosen(chosen)) => {
            let bound = chosen
                .bound
                .as_ref()
                .map(|why| format!(", and no more: {why}"))
                .unwrap_or_default();
            format!("{}{bound}", many(chosen.connections.into(), "connection"))
        }
        UpdateNews::Event(Event::BlockDropped { block, why }) => {
            format!("block {block} dropped: {why}")
        }
        UpdateNews::Event(Event::Ended(ended)) => {
            // The report that follows begins with the other ends.
            let EndReason::Void(why) = &ended.reason else {
                return None;
            };
            format!("stopped early, as no further block could give an answer: {why}")
        }
        UpdateNews::Progress(Progress::Explaining {
            variants,
            rounds,
            seconds: took,
        }) => {
            let (variants, rounds) = (
                many(variants as u64, "variant"),
                many(rounds.into(), "round"),
            );
            format!(
                "capturing profiles of {variants} in {rounds}, which takes about {}",
                seconds(took)
            )
        }
        UpdateNews::Progress(Progress::NotExplained(why)) => format!("not explained: {why}"),
        _ => return None,
    })
}

/// Services that do not listen on the assigned port. Reported once, because later starts expect them there.
pub fn found(state: &LiveState, started: &TrialStarted) -> Option<String> {
    let variant = state.name(started.variant);
    let line = |service: &ServiceStarted| {
        let found = service.found.as_ref()?;
        let (name, port, given) = (&service.service, service.port, found.given);
        let address = found
            .address
            .map(|address| format!(" of {address}"))
            .unwrap_or_default();
        let others: Vec<String> = service.other_ports.iter().map(u16::to_string).collect();
        let others = match others.as_slice() {
            [] => String::new(),
            others => format!(
                ", and on {}, where nothing responds to the request",
                others.join(", ")
            ),
        };
        Some(format!(
            "{variant}: {name} listens on port {port}{address}, not on the PORT {given} that it was given{others}"
        ))
    };
    let mut lines: Vec<String> = started.services.iter().filter_map(line).collect();
    // Block 0 searches for ports.
    let is_search = started.block == 0
        && started
            .services
            .iter()
            .any(|service| !service.other_ports.is_empty());
    let shared = lab::shared_port(state.plan()).filter(|_| is_search || !lines.is_empty());
    lines.extend(shared.map(|port| {
        format!(
            "several variants need port {port}, so they run one after the other and not in turns"
        )
    }));
    let coding = started
        .witnesses
        .iter()
        .find_map(|seen| seen.coding_on_request.as_deref());
    lines.extend(coding.map(|coding| {
        format!(
            "{variant}: responses are compressed only for clients that accept it, and these requests do not say so: \
             -H 'accept-encoding: {coding}' measures compression"
        )
    }));
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// The duration of an activity so far. Empty when it begins.
fn so_long(for_now: Duration) -> String {
    if for_now.is_zero() {
        String::new()
    } else {
        format!(", {}", seconds(for_now.as_secs_f64()))
    }
}

/// The first few names.
fn listed<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    const NAMED_MAX: usize = 4;
    let rest = names.len().saturating_sub(NAMED_MAX);
    let named = names.take(NAMED_MAX).collect::<Vec<_>>().join(", ");
    if rest > 0 {
        format!("{named} and {rest} more")
    } else {
        named
    }
}

/// Position of the run `since_s` after its last update, in a line: block, time passed, time left.
pub fn position(state: &LiveState, since_s: f64) -> String {
    let (elapsed_s, left_s) = state.times(since_s);
    let dropped = state.record.blocks_dropped();
    // Dropped blocks are replaced, so the total grows.
    let of = state
        .record
        .blocks_planned
        .map(|blocks| format!(" of about {}", blocks + dropped));
    let dropped = if dropped > 0 {
        format!(", {dropped} dropped")
    } else {
        String::new()
    };
    let left = if left_s > 0.0 {
        format!(", at most {} left", seconds(left_s))
    } else {
        String::new()
    };
    let block = match state.block() {
        0 => "before block 1".to_owned(),
        block => format!("block {block}{}{dropped}", of.unwrap_or_default()),
    };
    format!("{block} · {}{left}", seconds(elapsed_s))
}

fn rate_line(chosen: &RateChosen) -> String {
    let of = chosen.share.map(|part| {
        format!(
            ", {} of the slowest variant's saturation throughput",
            share(part)
        )
    });
    match chosen.ramp_per_s {
        None => format!(
            "open loop at {}{}",
            rate(chosen.per_s),
            of.unwrap_or_default()
        ),
        Some((from, to)) => format!(
            "open loop from {} to {} over each slice",
            rate(from),
            rate(to)
        ),
    }
}

/// Output as lines, without a terminal: exactly one for each block, and notices.
#[derive(Default)]
pub struct PlainView;

impl PlainView {
    /// The line for an update that `state` has taken in. `None` for most updates.
    pub fn line(&self, state: &LiveState, update: &Update<'_>) -> Option<String> {
        match update.news {
            // Only their start. Their duration is reported at the end.
            UpdateNews::Progress(Progress::Preparing {
                doing: Preparing::Making(for_now),
                ..
            })
            | UpdateNews::Progress(Progress::Connecting(Connecting { for_now, .. })) => {
                for_now.is_zero().then(|| state.doing.clone())
            }
            UpdateNews::Progress(Progress::Preparing { .. }) => Some(state.doing.clone()),
            UpdateNews::Progress(Progress::Concluded(conclusion)) => {
                let failed = match state.failed {
                    0 => String::new(),
                    failed => format!("; {} failed so far", many(failed, "request")),
                };
                let estimates = report::so_far(conclusion)
                    .into_iter()
                    .map(|line| format!("; {line}"));
                Some(position(state, 0.0) + &estimates.collect::<String>() + &failed)
            }
            _ => said(state, update.news),
        }
    }
}

#[cfg(test)]
mod tests;
