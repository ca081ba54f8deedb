//! The binary `proofload`: flags, what is printed, exit codes. Everything else is the other crates' work.

mod audit;
mod calibrate;
mod capacity;
mod check;
mod compare;
mod elsewhere;
mod env;
mod exit;
mod experiment;
mod explain;
mod gate;
mod history;
mod hosts;
mod init;
mod live;
mod load;
mod open;
mod print;
mod profile;
mod records;
mod remote_agent;
mod report;
mod run;
mod schema;
mod signals;
mod tune;
mod validity;

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The hidden subcommand under which this binary guards a service; see [`services::warden_main`].
pub const WARDEN: &str = "__warden";
/// The subcommand under which this binary works for another one elsewhere; see [`remote_agent`].
pub const REMOTE_AGENT: &str = "remote-agent";

/// An HTTP performance lab.
///
/// Starts a web service in every configuration you ask about, loads it, and says which is faster, by how
/// much, with an interval; and says so when the experiment allows no conclusion.
#[derive(Debug, Parser)]
#[command(name = "proofload", version, after_help = AFTER_HELP)]
struct Cli {
    /// Folder in which records are made and found, instead of ./records or what PROOFLOAD_RECORDS says
    #[arg(long, global = true, value_name = "DIR", help_heading = "Everywhere")]
    records: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Begin with:
  proofload compare 'node old.js' 'node new.js'   which is faster, by how much: two commands, no file
  proofload load http://127.0.0.1:3000/        one load test, as with wrk
  proofload init                               an experiment file for the service of this folder
  proofload env                                what about this machine will hurt a measurement, and what helps
  proofload tune 'node server.js'              which settings make it faster: tried, and confirmed
  proofload check experiment.toml              what an experiment will do, and how long it takes
  proofload calibrate experiment.toml          how small a difference this machine can show, in how much time
  proofload run experiment.toml --quick        a first answer in about a minute
  proofload run experiment.toml --explain      the same, and where the difference is spent
  proofload run experiment.toml --against main the code here against that of another commit, interleaved
  proofload report latest                      the last report again
  proofload gate latest --max-regression 3%    pass or fail, by the interval and not by the point
  proofload history                            all records; over time: history trend NAME; two of them: history compare OLD NEW
  proofload open                               the last report in a browser
  proofload profile latest                     where the CPU time goes: by package, function and line
  proofload audit notes.md                     what wrk, ab and others printed, and what it is worth
  proofload validity V8                        what a finding of a report means, and what to do
  proofload hosts bench-1 bench-2              other machines for the load, reached by SSH: are they fit for it

Exit codes: 0 all well; 1 a limit of a gate fails; 2 usage or experiment file; 3 a service failed;
4 the measurement is invalid; 5 no limit of a gate fails, and one is inconclusive; 6 Proofload could not do its own part (record not writable, too few descriptors, no right to make a link, a generator that cannot be had);
130 interrupted.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run an experiment and print the verdicts
    Run(run::RunArgs),
    /// Compare services by the commands that start them, without a file
    ///
    /// The same experiment, the same statistics and the same report as of a file, which --save writes.
    Compare(Box<compare::CompareArgs>),
    /// Find out how many requests a second services bear within what users bear
    ///
    /// Open loop on fresh processes, with an interval, the curve of response times over the rate, and what the limit is.
    Capacity(Box<capacity::CapacityArgs>),
    /// Look at this folder, start what is found in it once, and write proofload.toml
    ///
    /// Reads package.json, Procfile, Dockerfile, compose.yaml, go.mod, pyproject.toml, requirements.txt and Cargo.toml. The file asks a first
    /// question that fits, with comments; `run`, `check` and `calibrate` take it where no other is named.
    Init(init::InitArgs),
    /// Check an experiment file and print what it would do
    Check(check::CheckArgs),
    /// Measure how far apart two equal copies of a variant come out here, and so what a run can find
    ///
    /// Runs the variant against a copy of itself. Whatever the two differ by is the machine's doing, and
    /// no experiment on it can find less. Tells what one of 1, 5 and 30 minutes would find; `check` then
    /// tells how long your margin takes.
    Calibrate(calibrate::CalibrateArgs),
    /// Load one URL and print what it did
    Load(Box<load::LoadArgs>),
    /// Print the report of a record again
    Report(report::ReportArgs),
    /// Judge a record by limits: pass, fail or inconclusive, as an exit code for CI
    ///
    /// The limits of the experiment file's [gate], and those of flags. A limit passes or fails where the whole interval
    /// says so: 0 all pass, 1 one fails, 5 none fails and one is inconclusive, 4 the measurement is invalid.
    Gate(gate::GateArgs),
    /// List the records, show one in short, or an experiment over time with the changes of its level
    ///
    /// Found below ./records, or where --records says. The file summary.json in each only saves time.
    History(history::HistoryArgs),
    /// Open a record's report page in the browser, or tell where it is where there is no desktop
    Open(open::OpenArgs),
    /// Tell where the CPU time goes: by kind, package, function and line, of every worker, per request
    ///
    /// Of a record whose run was explained, of services that are started for it, or of profiles that node, V8 and
    /// DevTools left; `proofload profile diff A B` sets two of them against each other.
    Profile(Box<profile::ProfileArgs>),
    /// Read what other load generators printed and say what may be concluded of it
    ///
    /// Output of wrk, wrk2, ab, oha, autocannon, hey, h2load, k6 and vegeta, as it is or pasted into notes, Markdown or a shell
    /// transcript; JSON of oha, autocannon, k6 and vegeta too. Exit code 4 where a finding makes a conclusion invalid.
    Audit(audit::AuditArgs),
    /// Explain the findings of a report: what was seen, why it matters for the result, what to do
    ///
    /// Each finding has a number, such as V8. Without one, all checks are listed.
    Validity(validity::ValidityArgs),
    /// Tell what about this machine will hurt a measurement, and what to do about it
    ///
    /// Processors, frequency, steal, clock, memory, limits, rights and what else is running, the worst first, each with its figures
    /// and the command that helps. Changes nothing, takes two seconds.
    Env(env::EnvArgs),
    /// Generate load or run services for a Proofload on another machine
    ///
    /// Proofload starts it there. Messages go over stdin and stdout, as docs/formats.md has them. It ends with stdin, and whatever runs
    /// with it.
    #[command(hide = true, alias = "generate")]
    RemoteAgent(remote_agent::RemoteAgentArgs),
    /// Look at other machines that load may come from, by SSH: who is reached, what is there, how well clocks agree
    ///
    /// Changes nothing there unless asked to: --put puts this program there, --remove takes every version of it away.
    Hosts(hosts::HostsArgs),
    /// Find out which settings make a service faster, by experiment on it
    ///
    /// Takes the advice that applies to it (versions, processes, memory, allocators, …) and what --try names, tries all of it in a
    /// screening design of fresh processes, and confirms the best choice on further fresh runs. Nothing of yours is changed.
    Tune(Box<tune::TuneArgs>),
    /// Print the JSON Schema of the experiment file, for editors, or of the report as JSON
    Schema(schema::SchemaArgs),
}

fn main() -> ExitCode {
    signals::outlive_file_limit();
    // Before clap: a warden must start fast and knows no flags.
    let first = std::env::args_os().nth(1);
    if first.as_deref() == Some(OsStr::new(WARDEN)) {
        return services::warden_main();
    }
    if first.as_deref() == Some(OsStr::new(hosts::SHA256)) {
        return hosts::print_own_sha256();
    }
    signals::end_as_first_process();
    let cli = Cli::parse();
    records::settle(cli.records);
    let result = match cli.command {
        Command::Run(args) => run::run(&args),
        Command::Capacity(args) => capacity::run(&args),
        Command::Init(args) => init::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Calibrate(args) => calibrate::run(&args),
        Command::Load(args) => load::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Gate(args) => gate::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::History(args) => history::run(&args),
        Command::Open(args) => open::run(&args),
        Command::Profile(args) => profile::run(&args),
        Command::Audit(args) => audit::run(&args),
        Command::Validity(args) => validity::run(&args),
        Command::Env(args) => env::run(&args),
        Command::RemoteAgent(args) => remote_agent::run(&args),
        Command::Hosts(args) => hosts::run(&args),
        Command::Tune(args) => tune::run(&args),
        Command::Schema(args) => schema::run(&args),
    };
    records::release();
    result.unwrap_or_else(|error| exit::fail(&error))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn flags_do_not_contradict_each_other_and_a_word_after_profile_may_be_a_file() {
        super::Cli::command().debug_assert();
        let parses = |words: &[&str]| {
            let words = [&["proofload", "profile"], words].concat();
            super::Cli::command().try_get_matches_from(words).is_ok()
        };
        for words in [
            &["latest", "--variant", "a", "--format", "html"][..],
            &["--path", "/a", "--connections", "4", "--", "node", "server.js", "--inspect"],
            &["experiment.toml", "--rounds", "1"],
            &["diff", "a", "b", "--requests", "1", "2"],
            &["./diff"],
        ] {
            assert!(parses(words), "{words:?}");
        }
        for words in [
            &["diff", "a"][..],
            &["latest", "--path", "/a"],
            &["latest", "--", "node"],
            &["x", "--rounds", "0"],
        ] {
            assert!(!parses(words), "{words:?}");
        }
    }
}
