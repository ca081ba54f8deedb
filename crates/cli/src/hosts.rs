//! `proofload hosts`: other machines, looked at over SSH; the program put there or taken away. `remote` reaches them and compares clocks.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use ::remote::ssh::{Fault, Login};
use ::remote::{HostError, Program};
use clap::Args;

use crate::exit::{Failed, SELF, USAGE};
use crate::print;

mod form;
mod seen;
mod watch;

use seen::{Seen, There};
pub use watch::CopyWatch;

/// The hidden subcommand under which this binary tells its own hash: for machines without any command that could.
pub const SHA256: &str = "__sha256";
/// Machines that are looked at together.
const TOGETHER: usize = 32;

/// Flags of `hosts`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct HostsArgs {
    /// Machines as ssh takes them: a name of ~/.ssh/config, user@host, or ssh://user@host:port
    #[arg(required = true, value_name = "HOST")]
    destinations: Vec<String>,
    /// Put the program there where it is not
    #[arg(long, conflicts_with = "remove")]
    put: bool,
    /// Take away every version of the program that was put there
    #[arg(long)]
    remove: bool,
    /// The program for these machines, where this one would not run there
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// For other programs
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
  proofload hosts bench-1 me@bench-2             look; nothing is changed there
  proofload hosts --put bench-1                  put the program there beforehand; a run does it by itself, too
  proofload hosts --remove bench-1 bench-2       take it away again, all versions of it

Machines are reached by this system's ssh, so that keys, agents, jump hosts and ~/.ssh/config work as they do with ssh. Nobody is
asked for a password. The program goes to ~/.cache/proofload/bin there (XDG_CACHE_HOME moves it), is named by its SHA-256, and is
copied once. Nothing else is left there, nothing listens on a port, and root is not needed.

Columns:
  program      there: this version, byte for byte; absent; another: only other versions; damaged: it will be copied anew
  clock        how far its clock is ahead of ours. It counts from the machine's start, so that any offset is well;
               after ± stands how wrong that may be, and so how far apart two machines may begin a window. Known where the program is.
  round trip   of a line over the connection

Exit codes: 0 all well; 2 a HOST that is none, or a FILE that is no program; 6 a machine was not reached, or cannot have or run the program.";

/// Looks at each machine, and prints.
///
/// # Errors
/// If there is no program to put anywhere, or stdout cannot be written.
pub fn run(args: &HostsArgs) -> anyhow::Result<ExitCode> {
    let program = match &args.program {
        Some(path) => Program::at(path),
        None => Program::own(),
    };
    let program = program.map_err(|error| failed(&error))?;
    let all = looked_at(args, &program);
    let text = if args.json {
        format!("{:#}\n", form::json(&program, &all))
    } else if args.remove {
        form::removed(&all)
    } else {
        form::table(&all)
    };
    print::data(&text)?;
    let errors: Vec<&HostError> = all.iter().filter_map(|seen| seen.there.as_ref().err()).collect();
    for error in &errors {
        print::error(&error.to_string());
        if let Some(hint) = error.hint() {
            print::hint(&hint);
        }
    }
    Ok(ExitCode::from(errors.iter().map(|error| code(error)).min().unwrap_or(0)))
}

/// What an error about a machine ends in.
pub fn failed(error: &HostError) -> Failed {
    Failed { message: error.to_string(), hint: error.hint(), code: code(error) }
}

/// Prints the hash of this program's own file.
pub fn print_own_sha256() -> ExitCode {
    let printed = Program::own().map(|program| writeln!(io::stdout(), "{}", program.sha256()));
    if matches!(printed, Ok(Ok(()))) { ExitCode::SUCCESS } else { ExitCode::from(SELF) }
}

fn code(error: &HostError) -> u8 {
    match error {
        HostError::Ssh { fault, .. } if matches!(**fault, Fault::Destination { .. }) => USAGE,
        HostError::Program { .. } => USAGE,
        _ => SELF,
    }
}

/// Many at once: most of the time is spent waiting for them.
fn looked_at(args: &HostsArgs, program: &Program) -> Vec<Seen> {
    let mut all = Vec::new();
    for some in args.destinations.chunks(TOGETHER) {
        std::thread::scope(|scope| {
            let look = |destination: &String| Seen {
                destination: destination.clone(),
                there: visit(destination, args, program),
            };
            let looks: Vec<_> =
                some.iter().map(|destination| scope.spawn(move || look(destination))).collect();
            all.extend(looks.into_iter().filter_map(|look| look.join().ok()));
        });
    }
    all
}

fn visit(destination: &str, args: &HostsArgs, program: &Program) -> Result<There, HostError> {
    let mut login = Login::to(destination, program)?;
    if args.remove {
        let facts = login.facts().clone();
        return Ok(There { removed: Some(login.remove()?), ..There::of(facts) });
    }
    let round_trip = login.round_trip()?;
    let mut watch = CopyWatch::default();
    let copied = args.put && login.put(&mut |copied| watch.show(copied))?;
    let there = There { round_trip: Some(round_trip), copied, ..There::of(login.facts().clone()) };
    there.with_clock(login)
}
