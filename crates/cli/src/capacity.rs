//! `proofload capacity`: the highest request rate at which services keep their SLO. Flags define the
//! experiment, which then runs like any other.

use std::path::Path;

use clap::Args;
use plan::{FlagSetting, Limit};

use crate::compare::{self, Aim, CompareArgs};
use crate::exit::CliError;
use crate::experiment::{self, Experiment};
use crate::job::ExperimentJob;

const AFTER_HELP: &str = "\
Examples:
  How much can it take?
    proofload capacity 'node server.js' --slo 'p99 < 50ms' --slo 'failed < 0.1%' --path /orders
  Two versions, and the code here against that of another commit:
    proofload capacity './old' './new' --slo 'p99 < 50ms'
    proofload capacity --against main 'node server.js' --slo 'p99 < 50ms' --limit 'capacity > -5%'
  A running service:
    proofload capacity http://127.0.0.1:3000 --slo 'p99 < 100ms'

Response times count from when a request was due; a failed request counts as never answered. Short limits give narrow intervals sooner: each process is measured for 350 times the limit, if the budget allows (docs/capacity.md).";

/// Flags of `capacity`.
#[derive(Debug, Args)]
#[command(
    after_help = AFTER_HELP,
    mut_arg("connections", |arg| arg.help("Connections, each with one request at a time [default: chosen, twice as many as the time limit has use for]")),
    mut_arg("budget", |arg| arg.help("Time the whole run may take, for example 90s or 10m [default: 3m, or the file's]")),
    mut_arg("seed", |arg| arg.help("Seed of every random choice [default: the file's, or a new one]")),
    mut_arg("metric", |arg| arg.hide(true)),
    mut_arg("rate", |arg| arg.hide(true)),
    mut_arg("quick", |arg| arg.hide(true)),
    mut_arg("what", |arg| arg.help(
        "Commands that start a service (one argument each), URLs, or an experiment file. The first is the baseline"
    ))
)]
pub struct CapacityArgs {
    /// Service level objective: p50, p90, p99 or p99.9 below a time, or failed below a share. May be repeated
    #[arg(long, value_name = "LIMIT", required = true)]
    slo: Vec<String>,
    #[command(flatten)]
    compare: CompareArgs,
}

pub fn run(args: &CapacityArgs) -> anyhow::Result<u8> {
    let limits = args.slo.iter().map(|text| {
        plan::slo(text).map_err(|why| {
            CliError::usage(format!("--slo '{text}': {why}")).hint("--slo 'p99 < 50ms'")
        })
    });
    let limits: Vec<Limit> = limits.collect::<Result<_, _>>()?;
    if let [file] = args.compare.what.as_slice()
        && experiment::is_named(file)
    {
        return of_file(Path::new(file), args, &limits);
    }
    let typed: Vec<String> = args
        .slo
        .iter()
        .map(|text| format!("--slo '{text}'"))
        .collect();
    let slo: Vec<String> = limits.iter().map(ToString::to_string).collect();
    let question = Some(format!(
        "How many requests a second within {}?",
        slo.join(" and ")
    ));
    let settings = vec![FlagSetting::new(&["design", "slo"], slo, typed.join(" "))];
    compare::carry(
        &args.compare,
        &Aim {
            least: 1,
            settings,
            name: "capacity",
            question,
        },
    )
}

fn of_file(file: &Path, args: &CapacityArgs, slo: &[Limit]) -> anyhow::Result<u8> {
    args.compare.check_file(file)?;
    ExperimentJob {
        experiment: &Experiment::file(Some(file))?,
        flags: &args.compare.flags,
        limits: args.compare.limits.asked(),
        against: &args.compare.against,
        slo,
    }
    .run()
}
