//! The result as text: a first screen that someone who knows wrk can read; `ramp` and `steps` have the tables of rates that
//! change. Pure.

mod distribution;
mod endpoints;
mod ramp;
mod steps;

use std::fmt::Write;

use load::{Process, Rate, Until};
use model::{FailureKind, OpenLoop};
use report::{bytes, count, rate, seconds};
use stats::{Latencies, Quantile};

use super::open::{Asked, p99_ns};
use super::outcome::{Outcome, QUANTILES};
use super::rate::Ask;
use super::series::{Capacity, Series};

/// What stands where nothing was measured.
const NOTHING: &str = "-";
const LABEL: usize = 13;
const COLUMN: usize = 10;

/// Renders a run: one slice, or the steps of a rate.
pub fn render(series: &Series) -> String {
    match (series.only(), &series.capacity) {
        (Some(outcome), capacity) => screen(outcome, capacity.as_ref(), &series.caveats()),
        // The capacity could not be measured, and all there is to see is why.
        (None, Some(capacity)) if series.steps.is_empty() => {
            screen(&capacity.outcome, None, &series.caveats())
        }
        _ => steps::render(series),
    }
}

/// One slice.
fn screen(outcome: &Outcome, capacity: Option<&Capacity>, more: &[String]) -> String {
    let mut text = format!("{}\n{}\n\n", requested(outcome), asked(outcome));
    if let Some(void) = outcome.void() {
        let _ = writeln!(text, "{}", lines_of(&void, ""));
    }
    let capacity = capacity.map(|capacity| ("Capacity", self::capacity(capacity)));
    for (name, value) in capacity.into_iter().chain(lines(outcome)) {
        let _ = writeln!(text, "{name:<LABEL$}{value}");
    }
    text += &ramp::render(outcome);
    text += &endpoints::render(outcome);
    text += &notes(outcome.caveats().iter().chain(more));
    text + &notes(outcome.differences.iter())
}

/// What was requested, and below it how, where that is not as usual.
fn requested(outcome: &Outcome) -> String {
    let unusual = outcome.unusual();
    let newline = if unusual.is_empty() { "" } else { "\n" };
    format!("{}{newline}{unusual}", outcome.title())
}

fn notes<'a>(notes: impl Iterator<Item = &'a String>) -> String {
    let list: String = notes.map(|note| wrapped(note)).collect();
    if list.is_empty() { list } else { format!("\n{list}") }
}

fn asked(outcome: &Outcome) -> String {
    let slice = &outcome.slice;
    let window = match outcome.until {
        Until::Elapsed(_) => format!("{:.1} s", slice.window_ns as f64 / 1e9),
        Until::Requests(total) => format!("{} requests", count(total)),
    };
    let kind = match outcome.asked() {
        None => "closed loop".into(),
        Some(asked) => format!("open loop {}, {}", wanted(outcome.ask, asked.rate), spread(asked)),
    };
    format!("{}, {kind}", client(outcome, &window))
}

/// Connections, threads and times; `window` says how long it sends.
fn client(outcome: &Outcome, window: &str) -> String {
    let plural = |number: u32, noun| format!("{number} {noun}{}", if number == 1 { "" } else { "s" });
    let (connections, threads) =
        (plural(outcome.connections, "connection"), plural(outcome.threads, "thread"));
    format!("{connections}, {threads}, {window}, time-out {}", seconds(outcome.timeout.as_secs_f64()))
}

/// The rate, and the share of capacity by which it was asked for.
fn wanted(ask: Option<Ask>, per_s: Rate) -> String {
    let share = ask.filter(|ask| ask.needs_capacity());
    match (per_s, share) {
        (Rate::Constant(_), Some(share)) => format!("at {share} of capacity, {}", of(per_s)),
        (Rate::Constant(_), None) => format!("at {}", of(per_s)),
        (Rate::Ramp { .. }, Some(share)) => format!("from {share} of capacity, {}", of(per_s)),
        (Rate::Ramp { .. }, None) => format!("from {}", of(per_s)),
    }
}

/// The rate itself.
fn of(per_s: Rate) -> String {
    match per_s {
        Rate::Constant(per_s) => rate(per_s),
        Rate::Ramp { from_per_s, to_per_s, .. } => format!("{} to {}", rate(from_per_s), rate(to_per_s)),
    }
}

/// On a ramp `constant` would be said of the rate, which is not.
fn spread(asked: Asked) -> &'static str {
    match (asked.process, asked.rate) {
        (Process::Constant, Rate::Ramp { .. }) => "evenly spread",
        _ => asked.process(),
    }
}

fn capacity(capacity: &Capacity) -> String {
    let window_s = capacity.outcome.slice.window_ns as f64 / 1e9;
    format!(
        "{}, good answers in closed loop for {window_s:.1} s after {:.1} s of warm-up",
        capacity.per_s().map_or(NOTHING.into(), rate),
        capacity.warmup.as_secs_f64()
    )
}

/// The table: a label and what belongs to it.
fn lines(outcome: &Outcome) -> Vec<(&'static str, String)> {
    let slice = &outcome.slice;
    let mut lines = vec![
        ("Requests", requests(outcome)),
        ("Throughput", throughput(outcome)),
        ("Transfer", transfer(outcome)),
    ];
    let paced = outcome.asked().zip(outcome.slice.open.as_ref());
    lines.extend(paced.into_iter().flat_map(|(asked, open)| pace(outcome, asked, open)));
    lines.extend(if outcome.distribution { distribution::lines(outcome) } else { latencies(outcome) });
    lines.extend(handshakes(outcome).map(|made| ("TLS", made)));
    let status = slice.status.iter().map(|(code, number)| format!("{code} × {}", count(*number)));
    let status = status.collect::<Vec<_>>().join("   ");
    lines.push(("Status", if status.is_empty() { NOTHING.into() } else { status }));
    let failures = slice.contract_failures.iter();
    let failures =
        failures.map(|f| format!("{} × {}, for example {}", what(&f.kind), count(f.count), f.example));
    lines.extend(labelled("Not good", failures));
    lines.extend(content(outcome).map(|content| ("Content", content)));
    if slice.errors.is_empty() {
        lines.push(("Errors", "none".into()));
    }
    let errors = slice.errors.iter().map(|e| format!("{} {} × {}", e.phase, e.cause, count(e.count)));
    lines.extend(labelled("Errors", errors));
    // Where there was nothing but this error it stands above all.
    let tls_error = slice.tls_error.iter().filter(|_| slice.responses > 0);
    lines.extend(tls_error.map(|error| ("TLS error", error.clone())));
    lines
}

/// Whether the load was what was asked for.
fn pace(outcome: &Outcome, asked: Asked, open: &OpenLoop) -> [(&'static str, String); 3] {
    let mut sent = outcome.sent_per_s().map_or(NOTHING.into(), rate) + " sent";
    if let (Rate::Ramp { .. }, Some(due)) = (asked.rate, outcome.per_second(open.intended as f64)) {
        let _ = write!(sent, " of {} due on average", rate(due));
    }
    let lag = p99_ns(&open.schedule_lag).map_or(NOTHING.into(), duration);
    [
        ("Rate", format!("{sent}, {} asked for", of(asked.rate))),
        ("Queue", format!("{} of {} found no connection free", count(open.queued), count(open.intended))),
        ("Client", format!("{lag} late at p99, where one was free")),
    ]
}

/// In open loop response time first: it is what a user waits.
fn latencies(outcome: &Outcome) -> Vec<(&'static str, String)> {
    let slice = &outcome.slice;
    let mut lines = vec![("Latency", quantile_names())];
    match &slice.open {
        None => lines.push(("  complete", quantiles(&slice.latency))),
        Some(open) => {
            lines.push(("  response", quantiles(&open.response)));
            lines.push(("  service", quantiles(&slice.latency)));
        }
    }
    lines.push(("  first byte", quantiles(&slice.first_byte)));
    for (name, latencies) in [("  connect", &slice.connect), ("  handshake", &slice.handshake)] {
        if !latencies.is_empty() {
            lines.push((name, quantiles(latencies)));
        }
    }
    lines
}

/// How many TLS handshakes there were.
fn handshakes(outcome: &Outcome) -> Option<String> {
    let slice = &outcome.slice;
    let made = slice.handshake.count() - slice.handshake.censored();
    (made > 0).then(|| format!("{} handshakes, {} of them resumed", count(made), count(slice.tls_resumed)))
}

/// What the sampled answers contained.
fn content(outcome: &Outcome) -> Option<String> {
    let sampled = outcome.sampled();
    let mean = |all: u64| bytes(all as f64 / sampled.count as f64);
    let forms = match sampled.forms {
        0 => return None,
        1 => "all the same".to_owned(),
        many => format!("{} different", count(many as u64)),
    };
    let (decoded, encoded) = (mean(sampled.decoded_bytes), mean(sampled.encoded_bytes));
    let size = if sampled.decoded_bytes == sampled.encoded_bytes {
        format!("{decoded} each")
    } else {
        format!("{decoded} each, sent as {encoded}")
    };
    Some(match (sampled.count, sampled.forms) {
        (1, _) => format!("1 sampled: {}", size.replacen(" each", "", 1)),
        (several, 1) => format!("{} sampled: {forms}, {size}", count(several)),
        (several, _) => {
            format!("{} sampled: {forms}, {}", count(several), size.replacen("each", "on average", 1))
        }
    })
}

/// The label stands before the first line only.
fn labelled(
    label: &'static str,
    lines: impl Iterator<Item = String>,
) -> impl Iterator<Item = (&'static str, String)> {
    lines.enumerate().map(move |(index, line)| (if index == 0 { label } else { "" }, line))
}

fn throughput(outcome: &Outcome) -> String {
    let measured = outcome.throughput_per_s().filter(|_| outcome.void().is_none());
    measured.map_or(NOTHING.into(), |per_s| format!("{}, good answers", rate(per_s)))
}

fn requests(outcome: &Outcome) -> String {
    let slice = &outcome.slice;
    let due = outcome.asked().map_or(String::new(), |_| format!("{} due, ", count(slice.due())));
    let (sent, answered, ok) = (count(slice.sent), count(slice.responses), count(slice.successful));
    let mut text = format!("{due}{sent} sent, {answered} answered, {ok} good");
    let rest = [
        (slice.timed_out, "timed out"),
        (slice.broken, "broken"),
        (slice.unfinished, "unfinished"),
        (slice.open.as_ref().map_or(0, |open| open.unsent), "never sent"),
    ];
    for (number, what) in rest {
        if number > 0 {
            let _ = write!(text, ", {} {what}", count(number));
        }
    }
    text
}

fn transfer(outcome: &Outcome) -> String {
    match (outcome.transfer_per_s(), outcome.bytes_per_answer()) {
        (Some(per_s), Some(each)) => {
            let sampled = outcome.sampled();
            let differ = sampled.decoded_bytes != sampled.encoded_bytes;
            let decoded = sampled.decoded_bytes as f64 / sampled.count as f64;
            let decoded = if differ { format!(", {} when decoded", bytes(decoded)) } else { String::new() };
            format!("{}/s, {} an answer{decoded}", bytes(per_s), bytes(each))
        }
        _ => NOTHING.into(),
    }
}

fn quantile_names() -> String {
    let names = QUANTILES.iter().map(|(name, _)| *name).chain(["max"]);
    names.map(|name| format!("{name:>COLUMN$}")).collect()
}

fn quantiles(latencies: &Latencies) -> String {
    let all = QUANTILES.iter().map(|(_, q)| *q).chain([1.0]);
    all.map(|q| format!("{:>COLUMN$}", shown(latencies, q).map_or(NOTHING.into(), quantile))).collect()
}

/// Quantiles for which there are too few samples are not shown.
pub fn shown(latencies: &Latencies, q: f64) -> Option<Quantile> {
    latencies.quantile(q).filter(|_| q == 1.0 || latencies.resolves(q))
}

/// A quantile, or what it is at least.
pub fn quantile(quantile: Quantile) -> String {
    let sign = if quantile.is_exact() { "" } else { "≥ " };
    format!("{sign}{}", duration(quantile.ns()))
}

/// Three digits and a unit: `704 µs`, `1.02 ms`, `2.00 s`.
pub fn duration(ns: u64) -> String {
    let (value, unit) = match ns as f64 {
        ns if ns < 999.5e3 => (ns / 1e3, "µs"),
        ns if ns < 999.5e6 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    let decimals = match value {
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {unit}")
}

/// A kind of contract failure by name.
pub fn what(kind: &FailureKind) -> String {
    kind.to_string()
}

/// A note as a list item of at most 80 columns.
fn wrapped(text: &str) -> String {
    lines_of(text, "- ")
}

/// Text in lines of at most 80 columns, the first behind a mark, the others as far in.
fn lines_of(text: &str, mark: &str) -> String {
    const WIDTH: usize = 80;
    let mut lines = vec![mark.to_owned()];
    for (index, word) in text.split_whitespace().enumerate() {
        let last = lines.len() - 1;
        if index > 0 && lines[last].chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(format!("{:indent$}{word}", "", indent = mark.len()));
        } else {
            lines[last].push_str(if index > 0 { " " } else { "" });
            lines[last].push_str(word);
        }
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests;
