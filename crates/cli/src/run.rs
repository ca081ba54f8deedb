//! `proofload run`: carries an experiment through and prints its report.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use std::{env, fs};

use ::explain::Explanation;
use clap::Args;
use lab::{Helpers, LabError, RealEnvironment, Stop, Update};
use plan::Plan;
use record::{Environment, Header, Record, WriteError, Writer};
use report::{Measured, REPORT_PAGE, Report};
use serde_json::Value;

use crate::against::{self, AgainstArgs};
use crate::exit::{self, Failed};
use crate::live::Live;
use crate::{REMOTE_AGENT, WARDEN, elsewhere, explain, gate, history, print, problems, records, signals};

/// What is told when a signal asks to stop.
const STOPPING: &str =
    "stopping: the services are ended and the record is closed; once more to leave at once";
const AFTER_HELP: &str = "\
On a terminal the run is shown as it goes on, with keys:
  q, s   stop early with what there is, as Ctrl-C does; once more leaves at once
  p      pause before the next slice, and go on: the budget does not run meanwhile
  l      show or hide what the services said last
  ?      show or hide what the keys do

Without a terminal there are plain lines on stderr. With --json stdout has one event a line, the first {\"event\":\"started\",…},
the last {\"event\":\"report\",\"report\":{…}} with what `proofload report --json` prints, and behind it with --gate what the
limits came to: docs/events.md.";
/// Shortest budget that `--quick` sets.
const QUICK_MIN_S: u64 = 60;
/// Seconds that `--quick` gives each variant: eight blocks of the shortest trial there is.
const QUICK_VARIANT_S: u64 = 30;
/// The same in open loop, where capacity is measured first and each trial settles at its rate.
const QUICK_VARIANT_OPEN_S: u64 = 45;

/// Flags of `run`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct RunArgs {
    /// The experiment file
    file: PathBuf,
    /// A first answer: the shortest budget that allows a verdict, about a minute
    #[arg(long, conflicts_with = "budget")]
    quick: bool,
    /// Time the whole run may take, for example 90s or 10m, instead of the file's
    #[arg(long, value_parser = plan::duration)]
    budget: Option<Duration>,
    /// Seed of every random choice, instead of the file's or a new one
    #[arg(long)]
    seed: Option<u64>,
    /// Afterwards capture profiles of every variant in trials of their own, and say where the difference is spent
    #[arg(long)]
    explain: bool,
    /// Hold the limits of the file's [gate], and those of flags, against the result, and end with their exit code
    #[arg(long)]
    gate: bool,
    /// Print what happens as JSON lines on stdout while it goes on, the report last (docs/events.md)
    #[arg(long)]
    json: bool,
    /// Folder of the record, made new [default: records/NAME-TIME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    // The heading holds for all that comes after it.
    #[command(flatten, next_help_heading = "With --gate")]
    limits: gate::Flags,
    #[command(flatten, next_help_heading = "Against another commit")]
    against: AgainstArgs,
}

/// Runs the experiment.
///
/// # Errors
/// If the file has problems, a service fails, or the record cannot be written.
pub fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    // The worktree stays ours until the services have ended.
    let (mut plan, _worktree) =
        against::checked_out(&args.file, problems::read_plan(&args.file)?, &args.against)?;
    adjust(&mut plan, args);
    match args.limits.given() {
        _ if args.gate => gate::prepare(&mut plan, &args.limits)?,
        Some(flag) => return Err(Failed::usage(format!("{flag} goes with --gate")).into()),
        None => {}
    }
    let directory = args.out.clone().unwrap_or_else(|| free_directory(&plan.name));
    let text = fs::read_to_string(&args.file)?;
    let experiment = args.file.display().to_string();
    let (how, events) = (How::Measured, args.json);
    let course = Course { experiment: &experiment, text, plan, directory: &directory, how, events };
    let (record, result) = carry(course)?;
    let code = if args.gate {
        gate::after_run(&record, &args.limits, args.json)?
    } else if args.json {
        // The last event was the report.
        exit::of_record(&record, &analysis::conclude(&record))
    } else {
        crate::report::print(&record)?
    };
    end(result, code)
}

/// What is to be carried through, and where it is kept.
#[derive(Debug)]
pub struct Course<'a> {
    /// What the record says was asked: the path of an experiment file, or a command.
    pub experiment: &'a str,
    /// The experiment's text.
    pub text: String,
    /// The plan made of it.
    pub plan: Plan,
    /// The record's folder, made new.
    pub directory: &'a Path,
    /// What is done of it.
    pub how: How,
    /// Whether what happens is told on stdout, as JSON lines.
    pub events: bool,
}

/// What is done of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Blocks are measured, and captures made behind them where the plan asks for it.
    Measured,
    /// Captures alone: no block, no verdict, and so no report.
    CapturesOnly {
        /// Passes over all variants.
        rounds: u32,
    },
}

/// Carries a plan made from an experiment file through, and leaves its record in a new folder, reports included.
///
/// # Errors
/// If the file cannot be read again, or the record cannot be begun. What goes wrong later stands beside the record.
pub fn carry_through(
    file: &Path,
    plan: Plan,
    directory: &Path,
) -> anyhow::Result<(Record, Result<(), LabError>)> {
    let text = fs::read_to_string(file)?;
    let experiment = file.display().to_string();
    carry(Course { experiment: &experiment, text, plan, directory, how: How::Measured, events: false })
}

/// Carries a course through, and leaves its record in a new folder with what explains it and, where blocks were measured, reports.
///
/// # Errors
/// If the record cannot be begun, or events cannot be written. What goes wrong later stands beside the record.
pub fn carry(course: Course<'_>) -> anyhow::Result<(Record, Result<(), LabError>)> {
    check_networks(&course.plan)?;
    check_address(&course.plan)?;
    let deployed = elsewhere::deployed(&course.plan)?;
    let remote_hosts = elsewhere::open(&course.plan)?;
    let mut header = header(course.experiment, course.plan);
    header.environment.hosts = remote_hosts.environments();
    let writer = Writer::create(course.directory, header, &course.text).map_err(unwritable)?;
    let directory = writer.record().directory.clone();
    print::talk(&format!("record: {}", records::typed(&directory).display()));
    let plan = writer.record().header.plan.clone();
    end_orphans();
    let helpers = Helpers { warden: services::Warden::of_this_program(WARDEN), generate: &[REMOTE_AGENT] };
    let stop = Stop::default();
    let mut live = Live::begin(&writer.record().header, directory.clone(), stop.clone(), course.events)?;
    let (wish, teller) = (stop.clone(), live.teller());
    signals::on_first(move || {
        wish.request();
        teller.stopping(STOPPING);
    })?;
    let mut environment =
        RealEnvironment::new(plan, helpers, directory, stop).with(remote_hosts).loading(deployed);
    let mut watch = |update: &Update<'_>| live.show(update);
    let (mut record, result) = match course.how {
        How::Measured => lab::run(writer, &mut environment, &mut watch),
        How::CapturesOnly { rounds } => lab::capture_only(writer, &mut environment, rounds, &mut watch),
    };
    live.clear();
    let explanation = explain::keep(&record);
    if course.how == How::Measured {
        keep_reports(&record, explanation.as_ref());
    }
    live.finish(&record, || report_as_json(&record, explanation.as_ref()))?;
    record.directory = records::typed(&record.directory);
    Ok((record, result))
}

/// The end of a run whose result is printed: what went wrong comes last, where people look.
///
/// # Errors
/// If a service failed, the load generator could not work, or the record could not be written.
pub fn end(result: Result<(), LabError>, code: ExitCode) -> anyhow::Result<ExitCode> {
    result.map(|()| code).map_err(|error| failed(error).into())
}

/// What went wrong in the lab, with its exit code.
pub fn failed(error: LabError) -> Failed {
    match error {
        LabError::Record(error) => unwritable(error),
        error => Failed { code: exit::of_lab_error(&error), message: error.to_string(), hint: None },
    }
}

/// Leaves the report in the record's folder too. Where the disk is full the report on stdout must do.
fn keep_reports(record: &Record, explanation: Option<&Explanation>) {
    let conclusion = analysis::conclude(record);
    history::keep(record, &conclusion);
    // The page first: the text says where it lies.
    for (name, form) in [
        (REPORT_PAGE, &::report::HTML),
        ("report.txt", &::report::TEXT),
        ("report.md", &::report::MARKDOWN),
        ("report.json", &::report::JSON),
    ] {
        let path = record.directory.join(name);
        if let Err(error) = crate::report::write((record, &conclusion, explanation), form, &path) {
            print::talk(&format!("{}: not written: {error}", path.display()));
        }
    }
}

/// What `report --json` prints of a record.
fn report_as_json(record: &Record, explanation: Option<&Explanation>) -> Value {
    Measured::new(record, &analysis::conclude(record), explanation).data()
}

fn adjust(plan: &mut Plan, args: &RunArgs) {
    let variants = plan.variants.len() as u64;
    let design = &mut plan.design;
    let variant_s = if design.rate.is_some() { QUICK_VARIANT_OPEN_S } else { QUICK_VARIANT_S };
    let quick = Duration::from_secs(QUICK_MIN_S.max(variant_s * variants));
    design.budget = match args.budget {
        Some(budget) => budget,
        None if args.quick => design.budget.min(quick),
        None => design.budget,
    };
    design.seed = args.seed.or(design.seed);
    design.explain |= args.explain;
}

fn header(experiment: &str, plan: Plan) -> Header {
    Header {
        version: record::VERSION,
        proofload: env!("CARGO_PKG_VERSION").to_owned(),
        created: record::now(),
        experiment: experiment.to_owned(),
        command: env::args().collect(),
        seed: plan.design.seed.unwrap_or_else(lab::draw_seed),
        environment: Environment::look(&plan),
        plan,
    }
}

/// A folder that there is not yet: `records/NAME-TIME`.
pub fn free_directory(name: &str) -> PathBuf {
    let free = |number: u32| {
        let suffix = if number < 2 { String::new() } else { format!("-{number}") };
        records::root().join(format!("{name}-{}{suffix}", record::stamp()))
    };
    (1..).map(free).find(|path| !path.exists()).unwrap_or_else(|| free(1))
}

/// Makes each link that a variant asks for once, so that what is missing is told before anything starts.
fn check_networks(plan: &Plan) -> Result<(), Failed> {
    let mut links: Vec<_> = Vec::new();
    for link in plan.variants.iter().filter_map(|variant| variant.load.network.as_ref()) {
        if !links.contains(&link) {
            links.push(link);
        }
    }
    for link in links {
        services::Network::make(link, &[]).map_err(|error| Failed {
            hint: error.hint().map(str::to_owned),
            message: error.to_string(),
            code: exit::SELF,
        })?;
    }
    Ok(())
}

/// Whether services of this machine can listen where generators elsewhere look for them.
fn check_address(plan: &Plan) -> Result<(), Failed> {
    let Some(address) = plan.generators.address else { return Ok(()) };
    let Err(error) = TcpListener::bind((address, 0)) else { return Ok(()) };
    Err(Failed {
        message: format!("generators.address: nothing can listen on {address} here: {error}"),
        hint: Some("`ip -brief address` lists the addresses that this machine has".to_owned()),
        code: exit::SELF,
    })
}

/// Ends what a run left that was killed together with its wardens: it would be measured along with this one.
fn end_orphans() {
    let orphans = services::orphans();
    for orphan in &orphans {
        print::talk(&format!(
            "ending {} (pid {}), left by a run that was killed",
            orphan.argv.join(" "),
            orphan.id.pid
        ));
    }
    for id in services::end_orphans(&orphans) {
        print::talk(&format!("pid {} could not be ended; it disturbs what is measured", id.pid));
    }
}

fn unwritable(error: WriteError) -> Failed {
    let (hint, code) = match &error {
        WriteError::Occupied { .. } => ("name another folder with --out", exit::USAGE),
        _ if error.is_disk_full() => {
            ("the disk is full; what was kept up to then still opens with `proofload report`", exit::SELF)
        }
        _ => ("choose a folder you may write to with --out", exit::SELF),
    };
    Failed { message: error.to_string(), hint: Some(hint.to_owned()), code }
}
