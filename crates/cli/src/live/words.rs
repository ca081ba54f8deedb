//! What is told of a run in words: what is under way, what is said once where it happens, and the lines where nobody has a terminal. Pure.

use std::cmp::Reverse;
use std::time::Duration;

use lab::{Connecting, Doing, News, Progress, Update};
use model::quantity::many;
use record::{CaptureKind, EndReason, Event, Prepared, RateChosen, ServiceStarted, TrialStarted};
use report::{bytes, rate, seconds, share};
use services::Preparing;

use super::state::{State, Trace};

/// Between two lines that only tell that the run goes on: a log of ten minutes is to stay readable.
const EVERY_S: f64 = 5.0;
/// Variants whose last rates a line has room for.
const VARIANTS_MAX: usize = 6;

/// What is under way from now on; `None` where that stays as it was.
pub fn doing(state: &State, news: News<'_>) -> Option<String> {
    Some(match news {
        News::Event(event) => match event {
            Event::GeneratorsConnected(_) => "generators ready".to_owned(),
            Event::GeneratorLost(lost) => format!("{} is lost", lost.generator),
            Event::Prepared(prepared) => format!("{} is ready", prepared.name),
            Event::RateChosen(_) => "rate chosen".to_owned(),
            Event::BlockDropped { .. } => "block dropped".to_owned(),
            Event::Ended(_) => "ending".to_owned(),
            _ => return None,
        },
        News::Progress(progress) => match progress {
            Progress::Connecting(Connecting { waiting, for_now }) => {
                format!("connecting {}{}", listed(waiting.iter().map(String::as_str)), so_long(for_now))
            }
            Progress::Preparing { name, doing: Preparing::Waiting } => {
                format!("waiting for another run that builds {name}")
            }
            Progress::Preparing { name, doing: Preparing::Making(for_now) } => {
                format!("building {name}{}", so_long(for_now))
            }
            Progress::Trial { doing, variant } => trial(state, doing, variant),
            Progress::Concluded(_) => "block done".to_owned(),
            Progress::Explaining { .. } => "profiling".to_owned(),
            Progress::Capturing { round, kind, variant } => {
                format!("round {round}: capturing {} of {}", captured(kind), state.name(variant))
            }
            Progress::NotExplained(_) => "ending".to_owned(),
            Progress::Pausing => return None,
        },
    })
}

fn trial(state: &State, doing: Doing, variant: usize) -> String {
    let (plan, name) = (state.plan(), state.name(variant));
    match doing {
        Doing::Starting => format!("starting {name}"),
        Doing::WarmingUp => format!("warming up {name}"),
        Doing::MeasuringCapacity => format!("measuring the capacity of {name}"),
        Doing::Measuring if plan.variants.len() > 1 && lab::take_turns(plan) => {
            let (many, slice) = (plan.variants.len(), state.slices_in_block + 1);
            let all = if many == 2 { "both".to_owned() } else { format!("all {many}") };
            format!("measuring {all} variants turn by turn, slice {slice}")
        }
        Doing::Measuring => format!("measuring {name}"),
        Doing::Probing => format!("searching the capacity of {name}"),
        Doing::Overloading => format!("overloading {name}, to see whether it recovers"),
    }
}

/// What a kind of capture is called.
pub fn captured(kind: CaptureKind) -> &'static str {
    match kind {
        CaptureKind::Plain => "CPU time by thread",
        CaptureKind::Counters => "counters",
        CaptureKind::Cpu => "a CPU profile",
        CaptureKind::Native => "native stacks",
        CaptureKind::Heap => "allocations",
    }
}

/// What is worth a sentence of its own; `None` for most news.
pub fn said(state: &State, news: News<'_>) -> Option<String> {
    Some(match news {
        News::Event(Event::TrialStarted(started)) => return found(state, started),
        News::Event(Event::GeneratorsConnected(generators)) => {
            let names = listed(generators.iter().map(|generator| generator.name.as_str()));
            format!("{} ready: {names}", many(generators.len() as u64, "generator"))
        }
        News::Event(Event::GeneratorLost(lost)) => format!("lost: {}", lost.why),
        News::Event(Event::Prepared(Prepared { name, made: true, bytes: size, seconds: took, .. })) => {
            format!("built {name}: {} in {}, kept for the next run", bytes(*size as f64), seconds(*took))
        }
        News::Event(Event::RateChosen(chosen)) => rate_line(chosen),
        News::Event(Event::BlockDropped { block, why }) => format!("block {block} dropped: {why}"),
        News::Event(Event::Paused { seconds: took, .. }) => format!("paused for {}", seconds(*took)),
        News::Event(Event::Ended(ended)) => match &ended.reason {
            EndReason::Void(why) => format!("stopped early, as no further block could give an answer: {why}"),
            _ => return None,
        },
        News::Progress(Progress::Explaining { variants, rounds, seconds: took }) => {
            let (variants, rounds) = (many(variants as u64, "variant"), many(rounds.into(), "round"));
            format!("capturing profiles of {variants} in {rounds}, which takes about {}", seconds(took))
        }
        News::Progress(Progress::NotExplained(why)) => format!("not explained: {why}"),
        _ => return None,
    })
}

/// Services that do not listen where they were told to; told once, for from then on they are expected there.
pub fn found(state: &State, started: &TrialStarted) -> Option<String> {
    let variant = state.name(started.variant);
    let line = |service: &ServiceStarted| {
        let found = service.found.as_ref()?;
        let (name, port, given) = (&service.service, service.port, found.given);
        let address = found.address.map(|address| format!(" of {address}")).unwrap_or_default();
        let others: Vec<String> = found.others.iter().map(u16::to_string).collect();
        let others = match others.as_slice() {
            [] => String::new(),
            others => format!(", and on {}; {port} is the lowest that responds", others.join(", ")),
        };
        Some(format!(
            "{variant}: {name} listens on port {port}{address}, not on the PORT {given} that it was given{others}"
        ))
    };
    let mut lines: Vec<String> = started.services.iter().filter_map(line).collect();
    let shared = lab::shared_port(state.plan()).filter(|_| !lines.is_empty());
    lines.extend(shared.map(|port| {
        format!("several variants need port {port}, so they run one after the other and not in turns")
    }));
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// For how long something has gone on; nothing as it begins.
fn so_long(for_now: Duration) -> String {
    if for_now.is_zero() { String::new() } else { format!(", {}", seconds(for_now.as_secs_f64())) }
}

/// Names, of many the first ones.
fn listed<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    const NAMED_MAX: usize = 4;
    let rest = names.len().saturating_sub(NAMED_MAX);
    let named = names.take(NAMED_MAX).collect::<Vec<_>>().join(", ");
    if rest > 0 { format!("{named} and {rest} more") } else { named }
}

/// Where a run is, so many seconds after its last update, in a line: block, time passed, time left.
pub fn position(state: &State, since_s: f64) -> String {
    let (elapsed_s, left_s) = state.times(since_s);
    let dropped = state.record.blocks_dropped();
    // Those that were dropped are replaced, so that there will be as many more.
    let of = state.record.blocks_planned.map(|blocks| format!(" of about {}", blocks + dropped));
    let dropped = if dropped > 0 { format!(", {dropped} dropped") } else { String::new() };
    let left = if left_s > 0.0 { format!(", at most {} left", seconds(left_s)) } else { String::new() };
    let block = match state.block() {
        0 => "before block 1".to_owned(),
        block => format!("block {block}{}{dropped}", of.unwrap_or_default()),
    };
    format!("{block} · {}{left}", seconds(elapsed_s))
}

fn rate_line(chosen: &RateChosen) -> String {
    let of = chosen.share.map(|part| format!(", {} of the slowest variant's capacity", share(part)));
    match chosen.ramp_per_s {
        None => format!("open loop at {}{}", rate(chosen.per_s), of.unwrap_or_default()),
        Some((from, to)) => format!("open loop from {} to {} over each slice", rate(from), rate(to)),
    }
}

/// The run as lines, where nobody has a terminal: one a block, and between them one now and then.
#[derive(Debug, Default)]
pub struct Plain {
    /// When the last line was told, in seconds of the run.
    told_s: f64,
    /// Whether slices have ended since then.
    news: bool,
}

impl Plain {
    /// The line that follows from an update which `state` has taken in; `None` for most.
    pub fn line(&mut self, state: &State, update: &Update<'_>) -> Option<String> {
        match update.news {
            // As they begin only: how long they take is told when they are done.
            News::Progress(Progress::Preparing { doing: Preparing::Making(for_now), .. })
            | News::Progress(Progress::Connecting(Connecting { for_now, .. })) => {
                return for_now.is_zero().then(|| state.doing.clone());
            }
            News::Progress(Progress::Preparing { .. }) => return Some(state.doing.clone()),
            News::Progress(Progress::Pausing) => return Some("paused: nothing is measured".to_owned()),
            News::Progress(Progress::Concluded(conclusion)) => {
                (self.told_s, self.news) = (state.elapsed_s, false);
                let estimates = report::so_far(conclusion).into_iter().map(|line| format!("; {line}"));
                return Some(position(state, 0.0) + &estimates.collect::<String>());
            }
            News::Event(Event::Slice(_)) => self.news = true,
            // All slices that ended together are known once the next thing begins.
            News::Progress(Progress::Trial { .. })
                if self.news && state.elapsed_s - self.told_s >= EVERY_S =>
            {
                (self.told_s, self.news) = (state.elapsed_s, false);
                return Some(going_on(state));
            }
            _ => {}
        }
        said(state, update.news)
    }
}

fn going_on(state: &State) -> String {
    let last = |trace: &Trace| Some(format!("{} {}", trace.name, rate(trace.slices.back()?.rate_per_s)));
    let mut measured: Vec<&Trace> = state.variants.iter().collect();
    measured.sort_by_key(|trace| Reverse(trace.touched));
    let mut rates: Vec<String> = measured.into_iter().filter_map(last).take(VARIANTS_MAX).collect();
    rates.sort();
    // What each gives tells who is ahead.
    let hidden = state.is_withheld() || rates.is_empty();
    let rates = if hidden { String::new() } else { format!(" · {}", rates.join(", ")) };
    let failed = match state.failed {
        0 => String::new(),
        failed => format!(" · {failed} requests failed so far"),
    };
    format!("{}{rates}{failed}", position(state, 0.0))
}
