//! What is told of a run in sentences, above the live view or as plain lines: each is said once, where it happens. Pure.

use std::time::Duration;

use lab::{Connecting, Notice, Progress};
use record::{Generator, Prepared, RateChosen};
use report::{bytes, change, change_alone, factor, rate, seconds, share};
use services::Preparing;

use super::screen::{Compared, Place, SoFar};

/// What this notice is worth a sentence of its own; `None` for most.
pub fn said(progress: &Progress<'_>) -> Option<String> {
    match progress.notice {
        Notice::Connected(generators) => Some(connected(generators)),
        Notice::GeneratorLost(lost) => Some(format!("lost: {}", lost.why)),
        Notice::Prepared(prepared) if prepared.made => Some(made(prepared)),
        Notice::RateChosen(chosen) => Some(rate_line(chosen)),
        Notice::BlockDropped(why) => Some(format!("block {} counts for nothing: {why}", progress.block)),
        Notice::Pointless(why) => Some(format!("stopped, because going on is pointless: {why}")),
        Notice::Explaining { variants, rounds, seconds } => Some(explaining(*variants, *rounds, *seconds)),
        Notice::NotExplained(why) => Some(format!("not explained: {why}")),
        Notice::Resumed { seconds: took } => Some(format!("paused for {}", seconds(*took))),
        _ => None,
    }
}

/// Generators that are waited for.
pub fn connecting(connecting: &Connecting<'_>) -> String {
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

/// What is done about some data.
pub fn preparing(name: &str, preparing: &Preparing) -> String {
    match preparing {
        Preparing::Waiting => format!("waiting for another run that is making {name}"),
        Preparing::Making(Duration::ZERO) => format!("making {name}"),
        Preparing::Making(for_now) => format!("making {name}, {}", seconds(for_now.as_secs_f64())),
    }
}

/// Where a run is, in a line: block, time passed, time left.
pub fn position(place: &Place) -> String {
    let dropped = if place.dropped > 0 { format!(", {} dropped", place.dropped) } else { String::new() };
    // Those that were dropped are replaced, so that there will be as many more.
    let of = place.planned.map(|blocks| format!(" of at most {}", blocks + place.dropped));
    let left =
        if place.left_s > 0.0 { format!(", at most {} left", seconds(place.left_s)) } else { String::new() };
    let block = match place.block {
        0 => "before block 1".to_owned(),
        block => format!("block {block}{}{dropped}", of.unwrap_or_default()),
    };
    format!("{block} · {}{left}", seconds(place.elapsed_s))
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
