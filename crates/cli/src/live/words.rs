//! What is told of a run in words: what is under way, what is said once where it happens, and the lines where nobody has a terminal. Pure.

use std::cmp::Reverse;
use std::time::Duration;

use lab::{Connecting, Doing, News, Progress, Update};
use record::{CaptureKind, EndReason, Event, Generator, Prepared, RateChosen};
use report::{bytes, change, change_alone, factor, rate, seconds, share};
use services::Preparing;

use super::state::{Compared, SoFar, State, Trace};

/// Between two lines that only tell that the run goes on: a log of ten minutes is to stay readable.
const EVERY_S: f64 = 5.0;
/// Variants whose last rates a line has room for.
const VARIANTS_MAX: usize = 6;

/// What is under way from now on; `None` where that stays as it was.
pub fn doing(state: &State, news: News<'_>) -> Option<String> {
    Some(match news {
        News::Event(event) => match event {
            Event::GeneratorsConnected(_) => "the generators are there".to_owned(),
            Event::GeneratorLost(lost) => format!("{} is lost", lost.generator),
            Event::Prepared(prepared) => format!("{} is there", prepared.name),
            Event::RateChosen(_) => "the rate is settled".to_owned(),
            Event::BlockDropped { .. } => "block dropped".to_owned(),
            Event::Ended(_) => "ending".to_owned(),
            _ => return None,
        },
        News::Progress(progress) => match progress {
            Progress::Connecting(generators) => connecting(&generators),
            Progress::Preparing { name, doing } => preparing(name, doing),
            Progress::Trial { doing, variant } => trial(state, doing, variant),
            Progress::Concluded(_) => "block done".to_owned(),
            Progress::Explaining { .. } => "capturing what explains it".to_owned(),
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
            let all = match plan.variants.len() {
                2 => "both".to_owned(),
                many => format!("all {many}"),
            };
            format!("measuring {all} variants turn by turn, slice {}", state.slices_in_block + 1)
        }
        Doing::Measuring => format!("measuring {name}"),
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
pub fn said(news: News<'_>) -> Option<String> {
    match news {
        News::Event(Event::GeneratorsConnected(generators)) => Some(connected(generators)),
        News::Event(Event::GeneratorLost(lost)) => Some(format!("lost: {}", lost.why)),
        News::Event(Event::Prepared(prepared)) if prepared.made => Some(made(prepared)),
        News::Event(Event::RateChosen(chosen)) => Some(rate_line(chosen)),
        News::Event(Event::BlockDropped { block, why }) => {
            Some(format!("block {block} counts for nothing: {why}"))
        }
        News::Event(Event::Paused { seconds: took, .. }) => Some(format!("paused for {}", seconds(*took))),
        News::Event(Event::Ended(ended)) => match &ended.reason {
            EndReason::Void(why) => Some(format!("stopped, because going on is pointless: {why}")),
            _ => None,
        },
        News::Progress(Progress::Explaining { variants, rounds, seconds }) => {
            Some(explaining(variants, rounds, seconds))
        }
        News::Progress(Progress::NotExplained(why)) => Some(format!("not explained: {why}")),
        _ => None,
    }
}

/// Generators that are waited for.
fn connecting(connecting: &Connecting<'_>) -> String {
    let for_now = match connecting.for_now {
        Duration::ZERO => String::new(),
        for_now => format!(", {}", seconds(for_now.as_secs_f64())),
    };
    format!("connecting {}{for_now}", listed(connecting.waiting.iter().map(String::as_str)))
}

fn connected(generators: &[Generator]) -> String {
    let names = listed(generators.iter().map(|generator| generator.name.as_str()));
    let are = if generators.len() == 1 { "generator is" } else { "generators are" };
    format!("{} {are} there: {names}", generators.len())
}

/// Names, of many the first ones.
fn listed<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    const NAMED_MAX: usize = 4;
    let rest = names.len().saturating_sub(NAMED_MAX);
    let named = names.take(NAMED_MAX).collect::<Vec<_>>().join(", ");
    if rest > 0 { format!("{named} and {rest} more") } else { named }
}

fn preparing(name: &str, preparing: Preparing) -> String {
    match preparing {
        Preparing::Waiting => format!("waiting for another run that is making {name}"),
        Preparing::Making(Duration::ZERO) => format!("making {name}"),
        Preparing::Making(for_now) => format!("making {name}, {}", seconds(for_now.as_secs_f64())),
    }
}

/// Where a run is, so many seconds after its last update, in a line: block, time passed, time left.
pub fn position(state: &State, since_s: f64) -> String {
    let (elapsed_s, left_s) = state.times(since_s);
    let dropped = state.record.blocks_dropped();
    // Those that were dropped are replaced, so that there will be as many more.
    let of = state.record.blocks_planned.map(|blocks| format!(" of at most {}", blocks + dropped));
    let dropped = if dropped > 0 { format!(", {dropped} dropped") } else { String::new() };
    let left = if left_s > 0.0 { format!(", at most {} left", seconds(left_s)) } else { String::new() };
    let block = match state.block() {
        0 => "before block 1".to_owned(),
        block => format!("block {block}{}{dropped}", of.unwrap_or_default()),
    };
    format!("{block} · {}{left}", seconds(elapsed_s))
}

/// What is known of a comparison, without its label; `None` where that is nothing.
pub fn so_far(compared: &Compared) -> Option<String> {
    Some(match &compared.so_far {
        SoFar::Nothing => return None,
        SoFar::Withheld => "nothing is shown before the end".to_owned(),
        SoFar::Ratio(ratio) => format!("{} (no interval yet)", change_alone(*ratio, 0)),
        SoFar::Same(ratio) => format!("{} in every block, so no interval", factor(*ratio)),
        SoFar::Interval(estimate) => {
            let (value, interval) = change(estimate);
            format!("{value} ({interval})")
        }
        SoFar::NoSuccess(words) => words.clone(),
        SoFar::Void => "void; the report says why".to_owned(),
    })
}

fn made(prepared: &Prepared) -> String {
    let Prepared { name, bytes: size, seconds: took, .. } = prepared;
    format!("made {name}: {} in {}, kept for the next run", bytes(*size as f64), seconds(*took))
}

fn explaining(variants: usize, rounds: u32, took_s: f64) -> String {
    let variants = if variants == 1 { "1 variant".to_owned() } else { format!("{variants} variants") };
    let plural = if rounds == 1 { "" } else { "s" };
    format!(
        "capturing profiles of {variants} in {rounds} round{plural}, which takes about {}",
        seconds(took_s)
    )
}

fn rate_line(chosen: &RateChosen) -> String {
    let of = chosen.share.map(|part| format!(", {} of the slowest variant's capacity", share(part)));
    format!("open loop at {}{}", rate(chosen.per_s), of.unwrap_or_default())
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
            News::Progress(Progress::Concluded(_)) => {
                self.told(state);
                return Some(block(state));
            }
            News::Event(Event::Slice(_)) => self.news = true,
            // All slices that ended together are known once the next thing begins.
            News::Progress(Progress::Trial { .. })
                if self.news && state.elapsed_s - self.told_s >= EVERY_S =>
            {
                self.told(state);
                return Some(going_on(state));
            }
            _ => {}
        }
        said(update.news)
    }

    fn told(&mut self, state: &State) {
        (self.told_s, self.news) = (state.elapsed_s, false);
    }
}

fn block(state: &State) -> String {
    let estimate = |compared: &Compared| Some(format!("; {}: {}", compared.label, so_far(compared)?));
    let estimates: String = state.comparisons.iter().filter_map(estimate).collect();
    format!("{}{estimates}", position(state, 0.0))
}

fn going_on(state: &State) -> String {
    let last = |trace: &Trace| Some(format!("{} {}", trace.name, rate(trace.slices.back()?.rate_per_s)));
    let mut measured: Vec<&Trace> = state.variants.iter().filter(|trace| trace.touched > 0).collect();
    measured.sort_by_key(|trace| Reverse(trace.touched));
    measured.truncate(VARIANTS_MAX);
    let mut rates: Vec<String> = measured.into_iter().filter_map(last).collect();
    rates.sort();
    // What each gives tells who is ahead.
    let hidden = state.is_withheld() || rates.is_empty();
    let rates = if hidden { String::new() } else { format!(" · {}", rates.join(", ")) };
    let failed = state.failures.failed;
    let failed = if failed > 0 { format!(" · {failed} requests failed so far") } else { String::new() };
    format!("{}{rates}{failed}", position(state, 0.0))
}
