//! The binary `proofload`: flags, output, exit codes. Other crates do the rest.

mod capacity;
mod compare;
mod doctor;
mod dry_run;
mod elsewhere;
mod execution;
mod exit;
mod experiment;
mod explain;
mod explanation;
mod failure;
mod flags;
mod gate;
mod history;
mod init;
mod job;
mod live;
mod load;
mod mix;
mod preflight;
mod print;
mod profile;
mod prometheus;
mod records;
mod remote_agent;
mod report;
mod run;
mod signals;
mod surface;
mod tune;
mod tunings;

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The hidden subcommand with which this binary supervises a service. See [`services::warden_main`].
pub const WARDEN: &str = "__warden";
/// The subcommand with which this binary works for another machine's Proofload. See [`remote_agent`].
pub const REMOTE_AGENT: &str = "remote-agent";

/// Says which web service is faster, by how much, and when the experiment allows no conclusion.
#[derive(Debug, Parser)]
#[command(name = "proofload", version)]
pub struct Cli {
    /// Folder for records [default: PROOFLOAD_RECORDS, or ./records]
    #[arg(long, global = true, value_name = "DIR", help_heading = "Everywhere")]
    records: Option<PathBuf>,
    #[command(subcommand)]
    command: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Compare services by the commands that start them, without a file
    ///
    /// Measures and reports as `run` does. --save writes the experiment file.
    Compare(Box<compare::CompareArgs>),
    /// Run an experiment file and print the verdicts. --dry-run only describes it
    Run(run::RunArgs),
    /// Find the highest request rate at which services keep an SLO
    ///
    /// In open loop, on fresh processes. Prints the rate with an interval, response times over the rate, and what limits the service.
    Capacity(Box<capacity::CapacityArgs>),
    /// Load one URL and print throughput and latency
    Load(Box<load::LoadArgs>),
    /// Find the settings that make a service faster, by experiment
    ///
    /// Tries the applicable advice (versions, processes, memory, allocators, …) and the settings of --try,
    /// and confirms the best choice on fresh runs that had no part in choosing it. None of your files are
    /// changed.
    Tune(Box<tune::TuneArgs>),
    /// Write an experiment file for the service in this folder
    ///
    /// Reads package.json, Procfile, Dockerfile, compose.yaml, go.mod, pyproject.toml, requirements.txt and
    /// Cargo.toml, starts the detected service once, and writes proofload.toml, the default file of `run`.
    /// The file has comments and a suitable first question.
    Init(init::InitArgs),
    /// Print or open the report of a record, or of the output of wrk, ab, k6 and others
    Report(report::ReportArgs),
    /// List records, compare two, or show an experiment over time
    History(history::HistoryArgs),
    /// Show where the CPU time goes: by package, function and line
    ///
    /// From a record made with --explain, services that it starts, or profiles of node, V8 and DevTools.
    /// `proofload profile diff A B` compares two.
    Profile(Box<profile::ProfileArgs>),
    /// Explain findings by number, such as V20: the observation, why it matters, what to do
    Explain(explain::ExplainArgs),
    /// Judge a record by limits: pass, fail or inconclusive, as an exit code
    ///
    /// Limits come from [gate] in the experiment file and from flags. A limit passes or fails only if the
    /// whole interval is on one side of it. Exit codes: 0 all pass, 1 one fails, 4 the measurement is
    /// invalid, 5 none fails, but one is inconclusive.
    Gate(gate::GateArgs),
    /// List what disturbs measurements on this machine, and how to fix it
    ///
    /// Processors, frequency, steal, clock, memory, limits, permissions and other running programs, most
    /// severe first, each with its figures and a command that helps. Changes nothing, takes two seconds.
    Doctor(doctor::DoctorArgs),
    /// Generate load for a Proofload on another machine
    ///
    /// Proofload starts it there. Messages use stdin and stdout. It ends when stdin is closed.
    #[command(hide = true)]
    RemoteAgent(remote_agent::RemoteAgentArgs),
    /// Write a mix file from the requests in access logs or HAR files
    #[command(hide = true)]
    Mix(mix::MixArgs),
    /// Print the JSON Schema of the experiment file, for editors, or of the report as JSON
    #[command(hide = true)]
    Schema(surface::SchemaArgs),
    /// Print a shell's completions
    #[command(hide = true)]
    Completions(surface::CompletionsArgs),
    /// Write man pages into a folder
    #[command(hide = true)]
    Man(surface::ManArgs),
}

fn main() -> ExitCode {
    signals::outlive_file_limit();
    // Before clap: a warden must start fast and has no flags.
    let first = std::env::args_os().nth(1);
    if first.as_deref() == Some(OsStr::new(WARDEN)) {
        return services::warden_main();
    }
    if first.as_deref() == Some(OsStr::new(remote_agent::SHA256)) {
        return ExitCode::from(remote_agent::print_own_sha256());
    }
    signals::stop_with_parent();
    signals::end_as_first_process();
    let cli = match surface::parsed(std::env::args_os()) {
        Ok(cli) => cli,
        Err(told) => return ExitCode::from(print::usage(&told)),
    };
    if services::give_up_real_time() {
        print::talk(
            "real-time scheduling is given up: services would inherit it and starve this machine",
        );
    }
    records::settle(cli.records);
    let result = match cli.command {
        Verb::Capacity(args) => capacity::run(&args),
        Verb::Compare(args) => compare::run(&args),
        Verb::Run(args) => run::run(&args),
        Verb::Load(args) => load::run(&args),
        Verb::Tune(args) => tune::run(&args),
        Verb::Init(args) => init::run(&args),
        Verb::Report(args) => report::run(&args),
        Verb::History(args) => history::run(&args),
        Verb::Profile(args) => profile::run(&args),
        Verb::Explain(args) => explain::run(&args),
        Verb::Gate(args) => gate::run(&args),
        Verb::Doctor(args) => doctor::run(&args),
        Verb::RemoteAgent(args) => remote_agent::run(&args),
        Verb::Mix(args) => mix::run(&args),
        Verb::Schema(args) => surface::schema(&args),
        Verb::Completions(args) => surface::completions(&args),
        Verb::Man(args) => surface::man(&args),
    };
    records::release();
    ExitCode::from(result.unwrap_or_else(print::fail))
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
            &[
                "--path",
                "/a",
                "--connections",
                "4",
                "--",
                "node",
                "server.js",
                "--inspect",
            ],
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
