//! `proofload load`: loads one URL, as with wrk, or several requests of it, and prints what came of it.
//!
//! Its flags make a plan with one variant that is measured and compared with nothing; the lab runs it, `analysis` judges it and `report`
//! shows it, as with every plan.

mod asked;
mod flags;
mod hdr;
mod retype;
mod watch;

use std::process::ExitCode;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use foreign::{Difference, Tool};
use lab::{Helpers, LabError, RealEnvironment};
use plan::Plan;
use record::{Record, Writer};
use report::{Form, Gated, Loaded, Measured, Report};

use crate::{REMOTE_AGENT, WARDEN, elsewhere, exit, gate, print, records, run, signals};
use hdr::Clocks;
use watch::Watch;

/// What is told when a signal asks to stop.
const STOPPING: &str = "stopping; once more to leave at once";

/// The tools whose command lines are understood, by their names.
fn compatible() -> impl TypedValueParser<Value = Tool> {
    PossibleValuesParser::new(Tool::compatible().map(Tool::name)).try_map(|name| {
        Tool::compatible().find(|tool| tool.name() == name).ok_or("not a tool whose command lines are known")
    })
}

/// Flags of `load`.
#[derive(Debug, Args)]
#[command(after_help = flags::EXAMPLES)]
pub struct LoadArgs {
    /// What to request: http://HOST:PORT/PATH or https://HOST:PORT/PATH
    #[arg(required_unless_present = "tool")]
    url: Option<String>,
    #[command(flatten)]
    pace: flags::Pace,
    #[command(flatten)]
    asking: flags::Asking,
    #[command(flatten)]
    expect: flags::Expect,
    #[command(flatten)]
    connection: flags::Connection,
    #[command(flatten)]
    output: flags::Output,
    /// Load a host that may be another machine without asking
    #[arg(long)]
    yes: bool,
    /// Do what a command line of another tool means, and say what differs: --as wrk -- -t2 -c64 URL
    #[arg(long = "as", value_parser = compatible(), value_name = "TOOL", help_heading = "Other tools")]
    tool: Option<Tool>,
    /// With --as: that tool's command line, just as it is
    #[arg(last = true, requires = "tool", value_name = "ARGUMENTS", help_heading = "Other tools")]
    theirs: Vec<String>,
}

/// Runs the load and prints the result.
///
/// # Errors
/// If the flags make no request that can be sent, the host has no address, or the engine cannot start.
pub fn run(args: &LoadArgs) -> anyhow::Result<ExitCode> {
    args.output.amount.settle();
    let Some(tool) = args.tool else { return carry_out(args, &[]) };
    let (args, differences) = retype::retype(args, tool)?;
    carry_out(&args, &differences)
}

fn carry_out(args: &LoadArgs, differences: &[Difference]) -> anyhow::Result<ExitCode> {
    let clocks = Clocks::read();
    let mut plan = asked::plan(args)?;
    let limits = gate::Flags::of(&args.output.limits);
    if !args.output.limits.is_empty() {
        gate::prepare(&mut plan, &limits)?;
    }
    let (form, hdr) = (args.output.form(), args.output.hdr()?);
    let (record, result) = measured(plan, args)?;
    if let Some(file) = hdr {
        hdr::write(file, clocks, &record)?;
    }
    let code = shown(&record, args, form, differences)?;
    run::end(result, code)
}

/// Has the plan run, and leaves its record in a new folder; with reports where that is kept.
fn measured(plan: Plan, args: &LoadArgs) -> anyhow::Result<(Record, Result<(), LabError>)> {
    // Where nobody asks for the record it goes with this function.
    let temporary = tempfile::tempdir().or_else(|_| tempfile::tempdir_in("/tmp"))?;
    let kept = args.output.out.as_ref();
    let folder = kept.map_or_else(|| temporary.path().join("record"), Clone::clone);
    let deployed = elsewhere::deployed(&plan, args.yes)?;
    let text = format!("# Made by: {}\n", print::shown_command());
    let header = run::header("proofload load", plan.clone(), &folder);
    let writer = Writer::create(&folder, header, &text).map_err(run::unwritable)?;
    let directory = writer.record().directory.clone();
    let stop = signals::stop_on_first(STOPPING)?;
    let mut watch = Watch::begin(&plan, stop.clone());
    let helpers = Helpers { warden: services::Warden::of_this_program(WARDEN), generate: &[REMOTE_AGENT] };
    let environment = RealEnvironment::new(plan, helpers, directory, stop);
    let mut environment = environment.loading(deployed).driven_by(args.pace.driver.into());
    let (mut record, result) = lab::run(writer, &mut environment, &mut |update| watch.show(update));
    watch.end();
    if kept.is_some() {
        run::keep_reports(&record, None);
        print::talk(&format!("record: {}", records::typed(&record.directory).display()));
    } else {
        record.directory.clear();
    }
    Ok((record, result))
}

/// Prints the report, and below it what its limits came to.
fn shown(
    record: &Record,
    args: &LoadArgs,
    form: &Form,
    differences: &[Difference],
) -> anyhow::Result<ExitCode> {
    let conclusion = analysis::conclude(record);
    let windows = analysis::measurement(record).map(|measured| measured.windows).unwrap_or_default();
    let differences = retype::mattering(differences, &windows);
    let measured = Measured::new(record, &conclusion, None);
    let loaded = Loaded { measured, distribution: args.output.latency, differences: &differences };
    if record.header.plan.gate.is_empty() {
        print::result(&loaded, form, args.output.amount)?;
        return Ok(exit::of_record(record, &conclusion));
    }
    let gate = analysis::gated(record, &conclusion, &record.header.plan.gate);
    let gated = Gated { record, gate: &gate, allow_open: false };
    if *form == report::JSON {
        let mut document = loaded.data();
        document["gate"] = gated.data();
        print::data(&format!("{document:#}\n"))?;
    } else {
        print::result(&loaded, form, args.output.amount)?;
        if *form == report::TEXT || *form == report::MARKDOWN {
            print::data("\n")?;
            print::report(&gated, form, None)?;
        }
    }
    Ok(gate::code(&gated, &conclusion))
}
