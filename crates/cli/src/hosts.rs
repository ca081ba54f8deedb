//! `proofload doctor hosts`: other machines, looked at over SSH; the program put there or taken away. `remote` reaches them and compares clocks.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use model::quantity::many;
use model::text::{self, shown};
use remote::generators::{ClockOffset, Fleet, FleetError};
use remote::ssh::{Copied, Facts, Kept, Login, Removed, State};
use remote::{Error, Program};
use report::{bytes, micros, seconds};
use serde_json::{Value, json};

use crate::REMOTE_AGENT;
use crate::exit::{Failed, SELF};
use crate::print::{self, FormArgs};

/// The hidden subcommand under which this binary tells its own hash: for machines without any command that could.
pub const SHA256: &str = "__sha256";
/// Machines that are looked at together.
const TOGETHER: usize = 32;
/// Columns; those after the fourth are figures.
const COLUMNS: [&str; 7] = ["host", "user", "kernel", "program", "processors", "clock", "round trip"];
const NAMES: usize = 4;
const NOTHING: &str = "–";
/// A calendar that is as far off as this gets a line: the figure has the time of a message in it, and whole seconds alone.
const CALENDAR_OFF_S: u64 = 5;
/// Before that nothing is shown.
const COPY_SHOWN_AFTER: Duration = Duration::from_secs(2);
/// Time between two lines.
const COPY_SHOWN_EVERY: Duration = Duration::from_secs(5);

/// Flags of `doctor hosts`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct HostsArgs {
    /// Machines as ssh takes them: a name of ~/.ssh/config, user@host, or ssh://user@host:port
    #[arg(required = true, value_name = "HOST")]
    destinations: Vec<String>,
    /// Copy the program there if it is missing
    #[arg(long, conflicts_with = "remove")]
    put: bool,
    /// Remove every version of the program
    #[arg(long)]
    remove: bool,
    /// The program for machines that cannot run this one
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    #[command(flatten)]
    form: FormArgs,
}

const AFTER_HELP: &str = "\
Examples:
  proofload doctor hosts bench-1 me@bench-2        look; nothing is changed there
  proofload doctor hosts --put bench-1             copy the program there, as a run would
  proofload doctor hosts --remove bench-1 bench-2  remove all versions of it

This system's ssh reaches them, with your keys, agents, jump hosts and ~/.ssh/config, and asks for no password. The program goes to ~/.cache/proofload/bin there (XDG_CACHE_HOME moves it), named by its SHA-256. Nothing else is left there, nothing listens on a port, and root is not needed.

Columns:
  program      there: this version, byte for byte; absent; another: only other versions; damaged: it will be copied anew
  clock        how far it is ahead of ours, known where the program is. It counts from boot: any offset is fine.
               Two machines may begin a window as far apart as ± says
  round trip   of a line over the connection

Exit codes: 0 all well; 2 a HOST that is none, or a FILE that is no program; 6 a machine was not reached, or cannot have or run the program.";

pub fn run(args: &HostsArgs) -> anyhow::Result<u8> {
    let is_json = args.form.is_json()?;
    let program = args.program.as_deref().map_or_else(Program::own, Program::at)?;
    let all = looked_at(args, &program);
    let text = if is_json {
        text::json(json!({
            "program": { "sha256": program.sha256, "bytes": program.bytes },
            "hosts": all.iter().map(json_of).collect::<Vec<_>>(),
        }))
    } else if args.remove {
        removed(&all)
    } else {
        table(&all)
    };
    print::data(&text)?;
    let failed: Vec<Failed> = all.into_iter().filter_map(|seen| seen.there.err()).map(Failed::from).collect();
    failed.iter().for_each(Failed::tell);
    Ok(failed.iter().map(|failed| failed.code).min().unwrap_or(0))
}

pub fn print_own_sha256() -> u8 {
    let printed = Program::own().map(|program| writeln!(io::stdout(), "{}", program.sha256));
    if matches!(printed, Ok(Ok(()))) { 0 } else { SELF }
}

/// Many at once: most of the time is spent waiting for them.
fn looked_at(args: &HostsArgs, program: &Program) -> Vec<Seen> {
    let look = |destination: &String| Seen {
        destination: destination.clone(),
        there: visit(destination, args, program),
    };
    let together = |some: &[String]| {
        std::thread::scope(|scope| {
            let looks: Vec<_> = some.iter().map(|one| scope.spawn(move || look(one))).collect();
            looks.into_iter().filter_map(|look| look.join().ok()).collect::<Vec<Seen>>()
        })
    };
    args.destinations.chunks(TOGETHER).flat_map(together).collect()
}

struct Seen {
    destination: String,
    there: Result<There, Error>,
}

struct There {
    /// What its shell says.
    facts: Facts,
    /// Round trip of a line; `None` where something was only taken away.
    round_trip: Option<Duration>,
    /// Its clock against ours; `None` where the program is not.
    clock: Option<ClockOffset>,
    copied: bool,
    /// What was taken away, where that was asked for.
    removed: Option<Removed>,
}

fn visit(destination: &str, args: &HostsArgs, program: &Program) -> Result<There, Error> {
    let mut login = Login::to(destination, program)?;
    if args.remove {
        let facts = login.facts.clone();
        let removed = Some(login.remove()?);
        return Ok(There { facts, round_trip: None, clock: None, copied: false, removed });
    }
    let round_trip = Some(login.round_trip()?);
    let mut watch = CopyWatch::default();
    let copied = args.put && login.put(&mut |copied| watch.show(copied))?;
    let facts = login.facts.clone();
    let clock = if facts.state == State::There { clock_of(login)? } else { None };
    Ok(There { facts, round_trip, clock, copied, removed: None })
}

/// How far its clock is ahead of ours, by the program there.
fn clock_of(login: Login) -> Result<Option<ClockOffset>, Error> {
    let lost =
        |errors: Vec<FleetError>| Error::new(errors.iter().map(FleetError::to_string).collect::<String>());
    let mut fleet = Fleet::connect(vec![login.start(&[REMOTE_AGENT])?]).map_err(lost)?;
    fleet.compare_clocks().map_err(lost)?;
    Ok(fleet.clocks().next())
}

/// Tells on stderr how far a copy to another machine is, a line now and then: several may go on at once. Nothing, unless it takes long enough
/// to wonder.
#[derive(Debug, Default)]
pub struct CopyWatch {
    next: Duration,
}

impl CopyWatch {
    /// Takes in that another piece was sent.
    pub fn show(&mut self, copied: Copied<'_>) {
        if copied.elapsed < self.next.max(COPY_SHOWN_AFTER) || copied.bytes >= copied.of {
            return;
        }
        self.next = copied.elapsed + COPY_SHOWN_EVERY;
        let (done, of) = (copied.bytes as f64, copied.of as f64);
        let left = seconds((copied.elapsed.as_secs_f64() * (of - done) / done.max(1.0)).max(1.0));
        let (done, of) = (bytes(done), bytes(of));
        print::tell!("{}: copying the program: {done} of {of}, about {left} left", copied.host);
    }
}

/// A row for each machine, and below it what else should be known.
fn table(all: &[Seen]) -> String {
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    let mut text = report::table(&COLUMNS.map(str::to_owned), rows.iter(), NAMES);
    text.push('\n');
    for Seen { destination, there } in all {
        there.iter().for_each(|there| remarks(destination, &there.facts, &mut text));
    }
    text
}

fn row(Seen { destination, there }: &Seen) -> Vec<String> {
    let Ok(there) = there else {
        let nothing = NOTHING.to_owned();
        let mut row = vec![destination.clone(), nothing.clone(), nothing.clone(), "see below".to_owned()];
        row.resize(COLUMNS.len(), nothing);
        return row;
    };
    let facts = &there.facts;
    let also = if facts.host == *destination { String::new() } else { format!(" ({})", shown(&facts.host)) };
    let program = match facts.state {
        State::There if there.copied => "copied",
        State::There => "there",
        State::Damaged => "damaged",
        State::Absent if facts.others.is_empty() => "absent",
        State::Absent => "another",
    };
    let or_nothing = |text: Option<String>| text.unwrap_or_else(|| NOTHING.into());
    vec![
        format!("{destination}{also}"),
        shown(&facts.user),
        shown(&facts.kernel),
        program.to_owned(),
        or_nothing(facts.processors.map(|count| count.to_string())),
        or_nothing(there.clock.map(clock)),
        or_nothing(there.round_trip.map(|trip| micros(trip.as_secs_f64() * 1e6))),
    ]
}

/// `+3600.000012 s ± 45 µs`, with a digit for each microsecond of the error's own size.
fn clock(offset: ClockOffset) -> String {
    let (seconds, rest_us) = (offset.ns / 1_000_000_000, offset.ns % 1_000_000_000 / 1_000);
    let sign = if offset.ns < 0 { '−' } else { '+' };
    let error = micros(offset.error_ns as f64 / 1e3);
    format!("{sign}{}.{:06} s ± {error}", seconds.abs(), rest_us.abs())
}

fn remarks(destination: &str, facts: &Facts, text: &mut String) {
    if !facts.others.is_empty() {
        let sum = bytes(facts.others.iter().map(|file| file.bytes as f64).sum());
        let others = many(facts.others.len() as u64, "other version");
        let folder = shown(&facts.folder);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{destination}: {others} of the program, {sum} in {folder}; \
             proofload doctor hosts --remove {destination} takes all away"
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
fn removed(all: &[Seen]) -> String {
    let mut text = String::new();
    for Seen { destination, there } in all {
        let Ok(There { facts, removed: Some(removed), .. }) = there else { continue };
        for Kept { path, bytes: size } in &removed.gone {
            let _ = writeln!(text, "{destination}: removed {}, {}", shown(path), bytes(*size as f64));
        }
        for Kept { path, .. } in &removed.kept {
            let _ = writeln!(text, "{destination}: left {}: it runs, or is not ours to remove", shown(path));
        }
        if removed.gone.is_empty() && removed.kept.is_empty() {
            let _ = writeln!(text, "{destination}: nothing of ours in {}", shown(&facts.folder));
        }
    }
    text
}

fn json_of(seen: &Seen) -> Value {
    let there = match &seen.there {
        Ok(there) => there,
        Err(error) => {
            return json!({ "destination": seen.destination, "error": error.to_string(), "hint": error.hint() });
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
        "program": facts.state,
        "copied": there.copied,
        "others": facts.others,
        "calendar_ahead_s": facts.calendar_ahead_s,
        "round_trip_ns": there.round_trip.map(|trip| trip.as_nanos() as u64),
        "clock": clock,
        "removed": removed.map(|removed| &removed.gone),
        "kept": removed.map(|removed| &removed.kept),
    })
}
