//! From what the lab tells to events. Pure.

use std::path::Path;

use analysis::{Comparison, Conclusion, Outcome};
use lab::{Doing, Notice, Progress};
use plan::{LookRule, Plan};
use record::{EndReason, Header, Record, SliceKind};
use serde_json::Value;

use super::form::{
    Asked, Called, Estimated, Event, Kind, Line, Loop, PreparingNow, Reason, SliceEnded, SliceQuantile,
    Started, TrialDoing, VERSION,
};
use crate::live::screen::{Screen, captured};
use crate::live::slice::{Figures, Timed};
use crate::live::words;

/// The first line.
pub fn started(header: &Header, directory: &Path) -> Line {
    let Plan { name, question, variants, comparisons, design, .. } = &header.plan;
    let called = |index: usize| variants.get(index).map(|variant| variant.name.clone()).unwrap_or_default();
    let asked = |asked: &plan::Comparison| Asked {
        label: asked.label.clone(),
        baseline: called(asked.baseline),
        candidate: called(asked.candidate),
    };
    let started = Started {
        proofload: header.proofload.clone(),
        experiment: name.clone(),
        question: question.clone(),
        record: directory.display().to_string(),
        seed: header.seed,
        budget_s: design.budget.as_secs_f64(),
        margin_share: design.margin,
        metrics: design.metrics().collect(),
        load_loop: if design.rate.is_some() { Loop::Open } else { Loop::Closed },
        withheld: design.looks == LookRule::Once,
        variants: (0..variants.len()).map(called).collect(),
        comparisons: comparisons.iter().map(asked).collect(),
    };
    Line { events_version: Some(VERSION), event: Event::Started(started), elapsed_s: 0.0 }
}

/// The lines that follow from a notice, which `screen` has taken in.
pub fn of(screen: &Screen, progress: &Progress<'_>) -> Vec<Line> {
    let line = |event| Line { events_version: None, event, elapsed_s: progress.elapsed_s };
    events(screen, progress).into_iter().map(line).collect()
}

/// How the run ended; of one whose record could not be written, that.
pub fn ended(record: &Record) -> Line {
    let ended = record.ended.as_ref();
    let (reason, text, needed_s) = match ended.map(|ended| &ended.reason) {
        None => (Reason::RecordFailed, None, None),
        Some(EndReason::Decided) => (Reason::Decided, None, None),
        Some(EndReason::LastLook) => (Reason::LastLook, None, None),
        Some(EndReason::BudgetSpent) => (Reason::BudgetSpent, None, None),
        Some(EndReason::BudgetTooSmall { needed_s }) => (Reason::BudgetTooSmall, None, Some(*needed_s)),
        Some(EndReason::Measured) => (Reason::Measured, None, None),
        Some(EndReason::Interrupted) => (Reason::Interrupted, None, None),
        Some(EndReason::Void(why)) => (Reason::Void, Some(why.clone()), None),
        Some(EndReason::GeneratorFailed(why)) => (Reason::GeneratorFailed, Some(why.clone()), None),
        Some(EndReason::ServiceFailed(why)) => (Reason::ServiceFailed, Some(why.clone()), None),
        Some(EndReason::PreparationFailed(why)) => (Reason::PreparationFailed, Some(why.clone()), None),
    };
    let elapsed_s = ended.map_or(0.0, |ended| ended.seconds);
    Line { events_version: None, event: Event::Ended { reason, text, needed_s }, elapsed_s }
}

/// The last line of a run.
pub fn report(record: &Record, report: Value) -> Line {
    afterwards(record, Event::Report { report })
}

/// What follows it where there is a gate.
pub fn gate(record: &Record, gate: Value) -> Line {
    afterwards(record, Event::Gate { gate })
}

fn afterwards(record: &Record, event: Event) -> Line {
    let elapsed_s = record.ended.as_ref().map_or(0.0, |ended| ended.seconds);
    Line { events_version: None, event, elapsed_s }
}

fn events(screen: &Screen, progress: &Progress<'_>) -> Vec<Event> {
    let block = progress.block;
    let name = |index: usize| screen.variants.get(index).map(|trace| trace.name.clone()).unwrap_or_default();
    let event = match progress.notice {
        Notice::Connecting(connecting) => Event::Connecting {
            waiting: connecting.waiting.to_vec(),
            for_s: connecting.for_now.as_secs_f64(),
        },
        Notice::Connected(generators) => Event::Connected { generators: generators.to_vec() },
        Notice::GeneratorLost(lost) => {
            Event::GeneratorLost { block, generator: lost.generator.clone(), why: lost.why.clone() }
        }
        Notice::Preparing(name, preparing) => self::preparing(name, preparing),
        Notice::Prepared(prepared) => Event::Prepared {
            name: prepared.name.clone(),
            made: prepared.made,
            took_s: prepared.seconds,
            size_bytes: prepared.bytes,
        },
        Notice::RateChosen(chosen) => {
            Event::RateChosen { rate_per_s: chosen.per_s, capacity_share: chosen.share }
        }
        Notice::BlockStarted(order) => {
            Event::BlockStarted { block, order: order.iter().map(|index| name(*index)).collect() }
        }
        Notice::Trial(doing, variant) => {
            Event::Trial { block, variant: (*variant).to_owned(), doing: trial(*doing) }
        }
        Notice::SliceDone(slice) => Event::Slice(ended_slice(slice, name(slice.variant), screen.withheld)),
        Notice::BlockDone(conclusion) => return block_done(progress, conclusion),
        Notice::BlockDropped(why) => Event::BlockDropped { block, why: (*why).to_owned() },
        Notice::Paused => Event::Paused { block },
        Notice::Resumed { seconds } => Event::Resumed { block, paused_s: *seconds },
        Notice::Explaining { variants, rounds, seconds } => {
            Event::Explaining { variants: *variants, rounds: *rounds, about_s: *seconds }
        }
        Notice::Capturing { round, kind, variant } => Event::Capturing {
            round: *round,
            variant: (*variant).to_owned(),
            what: captured(*kind).to_owned(),
        },
        Notice::Pointless(_) | Notice::NotExplained(_) => {
            return words::said(progress).map(|text| Event::Notice { text }).into_iter().collect();
        }
    };
    vec![event]
}

fn preparing(name: &str, preparing: &services::Preparing) -> Event {
    let (doing, for_s) = match preparing {
        services::Preparing::Waiting => (PreparingNow::Waiting, 0.0),
        services::Preparing::Making(for_now) => (PreparingNow::Making, for_now.as_secs_f64()),
    };
    Event::Preparing { name: name.to_owned(), doing, for_s }
}

fn trial(doing: Doing) -> TrialDoing {
    match doing {
        Doing::Starting => TrialDoing::Starting,
        Doing::MeasuringCapacity => TrialDoing::MeasuringCapacity,
        Doing::WarmingUp => TrialDoing::WarmingUp,
        Doing::Measuring => TrialDoing::Measuring,
    }
}

fn ended_slice(slice: &record::Slice, variant: String, withheld: bool) -> SliceEnded {
    let Figures { rate_per_s, times, requests, failed } = Figures::of(slice);
    let quantile =
        |timed: Timed| SliceQuantile { percent: timed.percent, us: timed.us, at_least: timed.at_least };
    SliceEnded {
        block: slice.block,
        variant,
        kind: match slice.kind {
            SliceKind::WarmUp => Kind::WarmUp,
            SliceKind::Measured => Kind::Measured,
            SliceKind::Capacity => Kind::Capacity,
        },
        window_s: slice.counts.window_ns as f64 / 1e9,
        turns: slice.turns,
        rate_per_s: (!withheld).then_some(rate_per_s),
        quantiles: times.into_iter().flatten().filter(|_| !withheld).map(quantile).collect(),
        // How many there were tells the rate of a closed loop.
        requests: (!withheld).then_some(requests),
        failed,
        steal_share: slice.machine.steal_share_max(),
    }
}

fn block_done(progress: &Progress<'_>, conclusion: &Conclusion) -> Vec<Event> {
    let ended = Event::BlockEnded {
        block: progress.block,
        blocks: conclusion.blocks,
        blocks_dropped: progress.dropped,
        blocks_planned: progress.blocks_planned,
        left_s: progress.left_s,
    };
    let estimate = |comparison| Event::Estimate(estimated(progress.block, conclusion, comparison));
    std::iter::once(ended).chain(conclusion.comparisons.iter().map(estimate)).collect()
}

fn estimated(block: u32, conclusion: &Conclusion, comparison: &Comparison) -> Estimated {
    let estimate = comparison.estimate.as_ref();
    let known = estimate.is_some() || matches!(comparison.outcome, Outcome::NoSuccess | Outcome::Void);
    let ratio = estimate.map(|estimate| estimate.ratio);
    Estimated {
        block,
        comparison: comparison.label.clone(),
        metric: comparison.metric,
        blocks: conclusion.blocks,
        withheld: conclusion.awaits_look,
        ratio: ratio.or(comparison.without_spread).or(comparison.ratio_so_far),
        low: estimate.map(|estimate| estimate.low),
        high: estimate.map(|estimate| estimate.high),
        outcome: known.then(|| called(comparison.outcome)),
        blocks_needed: comparison.blocks_needed,
        no_success: comparison.no_success.clone(),
    }
}

fn called(outcome: Outcome) -> Called {
    match outcome {
        Outcome::Better => Called::Better,
        Outcome::Worse => Called::Worse,
        Outcome::Equivalent => Called::Equivalent,
        Outcome::Inconclusive => Called::Inconclusive,
        Outcome::NoSuccess => Called::NoSuccess,
        Outcome::Void => Called::Void,
    }
}
