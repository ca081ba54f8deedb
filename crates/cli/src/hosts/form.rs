//! What was seen of machines, as a table and as JSON.

use std::fmt::Write as _;

use remote::Program;
use remote::generators::ClockOffset;
use remote::ssh::{Kept, State};
use report::{bytes, micros, seconds};
use serde_json::{Value, json};

use super::seen::{Seen, There};

/// Columns; those after the fourth are figures.
const COLUMNS: [&str; 7] = ["host", "user", "kernel", "program", "processors", "clock", "round trip"];
const NAMES: usize = 4;
const NOTHING: &str = "–";
/// A calendar that is as far off as this gets a line: the figure has the time of a message in it, and whole seconds alone.
const CALENDAR_OFF_S: u64 = 5;

/// A row for each machine, and below it what else should be known.
pub fn table(all: &[Seen]) -> String {
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    let mut text = report::table(&COLUMNS.map(str::to_owned), rows.iter(), NAMES);
    text.push('\n');
    for seen in all {
        let Ok(there) = &seen.there else { continue };
        remarks(&seen.destination, there, &mut text);
    }
    text
}

fn row(seen: &Seen) -> Vec<String> {
    let Ok(there) = &seen.there else {
        let mut row = vec![NOTHING.to_owned(); COLUMNS.len()];
        row[0].clone_from(&seen.destination);
        row[3] = "see below".into();
        return row;
    };
    let facts = &there.facts;
    let named = if facts.host == seen.destination {
        seen.destination.clone()
    } else {
        format!("{} ({})", seen.destination, facts.host)
    };
    let or_nothing = |text: Option<String>| text.unwrap_or_else(|| NOTHING.into());
    vec![
        named,
        facts.user.clone(),
        facts.kernel.clone(),
        program(there).into(),
        or_nothing(facts.processors.map(|count| count.to_string())),
        or_nothing(there.clock.map(clock)),
        or_nothing(there.round_trip.map(|trip| micros(trip.as_secs_f64() * 1e6))),
    ]
}

fn program(there: &There) -> &'static str {
    match there.facts.state {
        State::There if there.copied => "copied",
        State::There => "there",
        State::Damaged => "damaged",
        State::Absent if there.facts.others.is_empty() => "absent",
        State::Absent => "another",
    }
}

/// `+3600.000012 s ± 45 µs`, with a digit for each microsecond of the error's own size.
fn clock(offset: ClockOffset) -> String {
    format!("{:+.6} s ± {}", offset.ns as f64 / 1e9, micros(offset.error_ns as f64 / 1e3))
}

fn remarks(destination: &str, there: &There, text: &mut String) {
    let facts = &there.facts;
    let others = facts.others.len();
    if others > 0 {
        let sum = bytes(total(&facts.others));
        let (what, takes) = if others == 1 { ("version", "takes") } else { ("versions", "take") };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{destination}: {others} other {what} of the program {takes} {sum} in {}; \
             proofload hosts --remove {destination} takes all away",
            facts.folder
        );
    }
    if let Some(ahead_s) = facts.calendar_ahead_s.filter(|s| s.unsigned_abs() >= CALENDAR_OFF_S) {
        let by = seconds(ahead_s.unsigned_abs() as f64);
        let way = if ahead_s > 0 { "ahead of" } else { "behind" };
        let _ = writeln!(
            text,
            "{destination}: its calendar is {by} {way} ours; only the times in its own logs depend on that"
        );
    }
}

/// A line for each file that was taken away, or was not.
pub fn removed(all: &[Seen]) -> String {
    let mut text = String::new();
    for seen in all {
        let Ok(There { facts, removed: Some(removed), .. }) = &seen.there else { continue };
        let destination = &seen.destination;
        for Kept { path, bytes: size } in &removed.gone {
            let _ = writeln!(text, "{destination}: removed {path}, {}", bytes(*size as f64));
        }
        for Kept { path, .. } in &removed.kept {
            let _ = writeln!(text, "{destination}: left {path}: it runs, or is not ours to remove");
        }
        if removed.gone.is_empty() && removed.kept.is_empty() {
            let _ = writeln!(text, "{destination}: nothing of ours in {}", facts.folder);
        }
    }
    text
}

/// Everything, for other programs.
pub fn json(program: &Program, all: &[Seen]) -> Value {
    json!({
        "program": { "sha256": program.sha256(), "bytes": program.bytes() },
        "hosts": all.iter().map(one).collect::<Vec<_>>(),
    })
}

fn one(seen: &Seen) -> Value {
    let there = match &seen.there {
        Ok(there) => there,
        Err(error) => {
            let (error, hint) = (error.to_string(), error.hint());
            return json!({ "destination": seen.destination, "error": error, "hint": hint });
        }
    };
    let facts = &there.facts;
    let clock = there.clock.map(|clock| json!({ "ahead_ns": clock.ns as i64, "error_ns": clock.error_ns }));
    let removed = there.removed.as_ref();
    json!({
        "destination": seen.destination,
        "host": facts.host,
        "user": facts.user,
        "kernel": facts.kernel,
        "machine": facts.machine,
        "processors": facts.processors,
        "folder": facts.folder,
        "program": state(facts.state),
        "copied": there.copied,
        "others": files(&facts.others),
        "calendar_ahead_s": facts.calendar_ahead_s,
        "round_trip_ns": there.round_trip.map(|trip| trip.as_nanos() as u64),
        "clock": clock,
        "removed": removed.map(|removed| files(&removed.gone)),
        "kept": removed.map(|removed| files(&removed.kept)),
    })
}

fn state(state: State) -> &'static str {
    match state {
        State::There => "there",
        State::Damaged => "damaged",
        State::Absent => "absent",
    }
}

fn files(files: &[Kept]) -> Value {
    files.iter().map(|file| json!({ "path": file.path, "bytes": file.bytes })).collect()
}

fn total(files: &[Kept]) -> f64 {
    files.iter().map(|file| file.bytes as f64).sum()
}
