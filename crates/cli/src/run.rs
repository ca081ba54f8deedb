//! `proofload run`: carries an experiment through and prints its report.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ::explain::Explanation;
use clap::Args;
use lab::{LabError, RealEnvironment, Stop, Update};
use plan::{Limit, Metric, Plan};
use record::{Header, MachineFingerprint, MadeBy, Record, WriteError, Writer};
use report::{MeasuredRecord, Report};

use crate::compare::BUDGET;
use crate::exit::{self, CliError};
use crate::experiment::{self, AgainstArgs, Experiment};
use crate::live::Live;
use crate::print::{self, AmountArgs, FormArgs};
use crate::prometheus::Exporter;
use crate::{
    REMOTE_AGENT, WARDEN, dry_run, elsewhere, explanation, gate, history, preflight, prometheus,
    records, signals,
};

/// What is told when a signal asks to stop.
pub const STOPPING: &str =
    "stopping: the services are ended and the record is closed; once more to leave at once";
const AFTER_HELP: &str = "\
On a terminal the run is shown as it goes on: q stops early with what there is, l shows the services' logs, ? helps.

Without a terminal there are plain lines on stderr. With --events, stdout has one event per line, then the report as in `proofload report --json`, then with --gate the gate's result (docs/events.md).";
/// Shortest budget that `--quick` sets.
const QUICK_MIN_S: u64 = 90;
/// Seconds that `--quick` gives each variant: four blocks of a slow service on a busy machine. Clear differences end sooner.
const QUICK_VARIANT_S: u64 = 45;
/// The same in open loop, where capacity is measured first and each trial settles at its rate.
const QUICK_VARIANT_OPEN_S: u64 = 60;

/// Flags of `run`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct RunArgs {
    /// The experiment file [default: proofload.toml]
    file: Option<PathBuf>,
    #[command(flatten)]
    flags: RunFlags,
    /// Check the limits of [gate] and of flags, and exit with their result
    #[arg(long, help_heading = "With --gate")]
    gate: bool,
    // The heading holds for all that comes after it.
    #[command(flatten, next_help_heading = "With --gate")]
    limits: gate::Flags,
    #[command(flatten, next_help_heading = "Against another commit")]
    against: AgainstArgs,
}

/// How an experiment is run, and what comes out: flags of `run` and `compare`.
#[derive(Debug, Clone, Args)]
pub struct RunFlags {
    /// A first answer: the shortest budget that allows a verdict, about a minute where the difference is clear
    #[arg(long, conflicts_with = "budget")]
    pub quick: bool,
    /// Time the whole run may take, for example 90s or 10m, instead of the file's
    #[arg(long, value_parser = plan::budget)]
    pub budget: Option<Duration>,
    /// Seed of every random choice, instead of the file's or a new one
    #[arg(long, value_parser = clap::value_parser!(u64).range(..=plan::SEED_MAX))]
    pub seed: Option<u64>,
    /// Afterwards profile every variant, and say which functions cost more
    #[arg(long)]
    pub explain: bool,
    /// Start nothing: say what would run and for how long; with --format json print the checked plan
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub form: FormArgs,
    /// Print events as JSON lines on stdout while it runs, the report last (docs/events.md)
    #[arg(long, conflicts_with_all = ["format", "json", "dry_run"])]
    pub events: bool,
    #[command(flatten)]
    pub amount: AmountArgs,
    /// Do not ask before loading a host that may be another machine
    #[arg(long)]
    pub yes: bool,
    /// Serve progress to Prometheus at /metrics of this address (docs/while-it-runs.md)
    #[arg(long, value_name = "HOST:PORT", value_parser = prometheus::address)]
    pub prometheus: Option<SocketAddr>,
    /// New folder for the record [default: records/NAME-TIME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// What users bear, where capacity is measured in place of what the file says.
    #[arg(skip)]
    pub slo: Vec<Limit>,
}

pub fn run(args: &RunArgs) -> anyhow::Result<u8> {
    if let Some(flag) = args.limits.given().filter(|_| !args.gate) {
        return Err(CliError::usage(format!("{flag} goes with --gate")).into());
    }
    let limits = args.gate.then_some(&args.limits);
    perform(
        &Experiment::file(args.file.as_deref())?,
        &args.flags,
        limits,
        &args.against,
    )
}

/// Runs an experiment from its text to its exit code, held against limits if there are to be any.
pub fn perform(
    experiment: &Experiment,
    flags: &RunFlags,
    limits: Option<&gate::Flags>,
    against: &AgainstArgs,
) -> anyhow::Result<u8> {
    flags.amount.settle();
    let form = flags.form.form();
    let json = flags.dry_run && flags.form.is_json()?;
    print::fits(
        form,
        if limits.is_some() {
            &[]
        } else {
            &print::UNLIMITED
        },
    )?;
    // Before a commit is checked out and built for nothing.
    if !flags.dry_run {
        flags.out.as_deref().map_or(Ok(()), preflight::record)?;
    }
    let prometheus = flags
        .prometheus
        .filter(|_| !flags.dry_run)
        .map(prometheus::listen)
        .transpose()?;
    // The worktree stays ours until the services have ended.
    let (mut plan, _worktree) = experiment::plan(experiment, against, flags.dry_run)?;
    check_time(&plan, flags)?;
    let own = plan.design.budget;
    adjust(&mut plan, flags);
    let budget_typed = plan.design.budget != own;
    limits.map_or(Ok(()), |limits| gate::prepare(&mut plan, limits))?;
    if flags.dry_run {
        experiment.save()?;
        return dry_run::run(&plan, json);
    }
    dry_run::warn_of_budget(&plan);
    let directory = flags
        .out
        .clone()
        .unwrap_or_else(|| records::claim(&plan.name));
    let name = experiment.name();
    let course = Course::new(&name, experiment.text(), plan, Some(&directory))?;
    experiment.save()?;
    let made_by = if flags.slo.is_empty() {
        MadeBy::Run
    } else {
        MadeBy::CapacityOfFile
    };
    let (events, yes) = (flags.events, flags.yes);
    let (record, result) = carry(Course {
        made_by,
        budget_typed,
        events,
        yes,
        prometheus,
        ..course
    })?;
    // Of services that never ran there is nothing to report: the error says it all.
    let nothing = result.is_err() && record.trials().all(|trial| trial.slices.is_empty());
    let code = if nothing && !flags.events && *form == report::TEXT {
        0
    } else if let Some(limits) = limits {
        gate::after_run(&record, limits, flags)?
    } else if flags.events {
        // The last event was the report.
        exit::of_record(&record, &analysis::conclude(&record))
    } else {
        crate::report::print(&record, form, flags.amount)?
    };
    end(result, code)
}

/// What is to be carried through, and where it is kept.
#[derive(Debug)]
pub struct Course<'a> {
    /// What the record says was asked: the path of an experiment file, or a command.
    pub experiment: &'a str,
    /// Which command repeats it.
    pub made_by: MadeBy,
    /// Whether its budget is not that of the text.
    pub budget_typed: bool,
    /// The experiment's text.
    pub text: String,
    /// The plan made of it.
    pub plan: Plan,
    /// The record's folder, made new; `None` keeps no record.
    pub directory: Option<&'a Path>,
    /// Passes over all variants that capture alone: no block, no verdict, and so no report. `None` measures, and captures behind that where
    /// the plan asks for it.
    pub captures_alone: Option<u32>,
    /// Whether what happens is told on stdout, as JSON lines.
    pub events: bool,
    /// Whether other machines may be loaded without asking.
    pub yes: bool,
    /// What may be loaded, where somebody was asked already.
    pub agreed: Option<elsewhere::Agreed>,
    /// Where a Prometheus may ask.
    pub prometheus: Option<TcpListener>,
}

impl<'a> Course<'a> {
    /// One that `run` repeats, measured and told to nobody else, on this machine unless somebody says otherwise.
    ///
    /// # Errors
    /// What [`preflight`] refuses: nothing has been started then, nor written.
    pub fn new(
        experiment: &'a str,
        text: String,
        plan: Plan,
        directory: Option<&'a Path>,
    ) -> Result<Course<'a>, CliError> {
        preflight::plan(&plan, directory)?;
        Ok(Course {
            experiment,
            made_by: MadeBy::Run,
            budget_typed: false,
            text,
            plan,
            directory,
            captures_alone: None,
            events: false,
            yes: false,
            agreed: None,
            prometheus: None,
        })
    }
}

/// Begins the record of a course, and finds what it loads that runs already.
pub fn ready(course: Course<'_>, stop: Stop) -> anyhow::Result<(Writer, RealEnvironment)> {
    tell_untyped_body(&course.plan);
    elsewhere::check_profiles(&course.plan)?;
    let agreed = course
        .agreed
        .map_or_else(|| elsewhere::agree(&course.plan, course.yes), Ok)?;
    elsewhere::check(&course.plan, &agreed)?;
    let plan = course.plan.clone();
    let created = record::now();
    let header = Header {
        version: record::VERSION,
        proofload: env!("CARGO_PKG_VERSION").to_owned(),
        order: course
            .directory
            .and_then(|directory| records::order(directory, &created)),
        created,
        experiment: course.experiment.to_owned(),
        command: print::typed_command(),
        made_by: course.made_by,
        budget_typed: course.budget_typed,
        seed: plan.design.seed.unwrap_or_else(lab::draw_seed),
        environment: MachineFingerprint::look(&plan),
        files: plan::digests(&course.plan),
        plan: course.plan,
    };
    let writer = match course.directory {
        Some(directory) => Writer::create(directory, header, &course.text).map_err(unwritable)?,
        None => Writer::nowhere(header, &course.text),
    };
    let directory = writer.record().directory.clone();
    let warden = services::Warden::of_this_program(WARDEN);
    let mut environment = RealEnvironment::new(plan, warden, &[REMOTE_AGENT], directory, stop);
    (environment.destinations, environment.deployed) = (agreed.destinations, agreed.deployed);
    Ok((writer, environment))
}

/// Carries a course through, and leaves its record in a new folder with what explains it and, where blocks were measured, reports.
///
/// # Errors
/// If the record cannot be begun, or events cannot be written. What goes wrong later stands beside the record.
pub fn carry(mut course: Course<'_>) -> anyhow::Result<(Record, Result<(), LabError>)> {
    let Course {
        captures_alone,
        events,
        ..
    } = course;
    let prometheus = course.prometheus.take();
    let stop = Stop::default();
    let (writer, mut environment) = ready(course, stop.clone())?;
    let directory = writer.record().directory.clone();
    print::tell!("record: {}", records::typed(&directory).display());
    let plan = &writer.record().header.plan;
    let exporter = prometheus
        .map(|at| Exporter::begin(at, plan, stop.clone()))
        .transpose()?;
    let mut live = Live::begin(&writer.record().header, directory, events)?;
    let screen = live.screen();
    signals::on_first(move || {
        stop.request();
        screen.stopping(STOPPING);
    })?;
    let mut watch = |update: &Update<'_>| {
        live.show(update);
        exporter
            .iter()
            .for_each(|exporter| exporter.take_in(update));
    };
    let (mut record, result) = match captures_alone {
        None => lab::run(writer, &mut environment, &mut watch),
        Some(rounds) => {
            lab::capture_only(writer, &mut environment, rounds, &lab::TRIALS, &mut watch)
        }
    };
    live.clear();
    let explanation = explanation::keep(&record);
    if captures_alone.is_none() {
        keep_reports(&record, explanation.as_ref());
    }
    let report = || {
        let conclusion = analysis::conclude(&record);
        report::with_format(MeasuredRecord::new(&record, &conclusion, explanation.as_ref()).data())
    };
    live.finish(&record, report)?;
    record.directory = records::typed(&record.directory);
    Ok((record, result))
}

/// The end of a run whose result is printed: what went wrong comes last, where people look.
pub fn end(result: Result<(), LabError>, code: u8) -> anyhow::Result<u8> {
    result.map(|()| code).map_err(|error| failed(error).into())
}

/// What went wrong in the lab, with its exit code.
pub fn failed(error: LabError) -> CliError {
    match error {
        LabError::Record(error) => unwritable(error),
        LabError::Service(_) => CliError::new(exit::SERVICE, error),
        LabError::Refused(_) => CliError::usage(error),
        LabError::Generator(_) => CliError::new(exit::SELF, error),
    }
}

/// Leaves the report in the record's folder too. Where the disk is full the report on stdout must do.
pub fn keep_reports(record: &Record, explanation: Option<&Explanation>) {
    let conclusion = analysis::conclude(record);
    history::keep(record, &conclusion);
    let of = (record, &conclusion, explanation);
    print::keep(&record.directory, "report", |form, path| {
        crate::report::write(of, form, path)
    });
}

/// Refuses flags about the time that a comparison may take, where nothing is compared.
fn check_time(plan: &Plan, flags: &RunFlags) -> Result<(), CliError> {
    match exit::given(&[
        (flags.quick, "--quick"),
        (flags.budget.is_some(), "--budget"),
    ]) {
        Some(flag) if plan.measure.is_some() && flags.slo.is_empty() => {
            let message =
                format!("{flag}: the experiment has [measure], and takes as long as that says");
            Err(CliError::usage(message).hint("say it there, as `duration` or `requests`"))
        }
        _ => Ok(()),
    }
}

fn adjust(plan: &mut Plan, flags: &RunFlags) {
    if !flags.slo.is_empty() && plan.measure.take().is_some() {
        // The length of the measurement stands in place of one.
        plan.design.budget = BUDGET;
    }
    let quick = quick_budget(plan.variants.len(), plan.design.rate.is_some());
    let design = &mut plan.design;
    let given = if flags.quick {
        design.budget.min(quick)
    } else {
        design.budget
    };
    design.budget = flags.budget.unwrap_or(given);
    design.seed = flags.seed.or(design.seed);
    design.explain |= flags.explain;
    if !flags.slo.is_empty() {
        (design.metric, design.co_primary, design.endpoint) = (Metric::Capacity, Vec::new(), None);
        (design.rate, design.ramp_to, design.slo) = (None, None, flags.slo.clone());
        plan.variants
            .iter_mut()
            .for_each(|variant| variant.load.rate_per_s = None);
        drop_unmeasured(plan);
    }
}

/// Takes away limits of the file that are about what is not measured, and tells of each.
fn drop_unmeasured(plan: &mut Plan) {
    let limits = std::mem::take(&mut plan.gate).into_iter();
    let (kept, others): (Vec<_>, Vec<_>) =
        limits.partition(|entry| plan.measures(entry.limit.figure));
    plan.gate = kept;
    for entry in others {
        let (why, _) = plan.why_never(entry.limit.figure);
        print::tell!(
            "note: the file's limit {} is not judged: {why}",
            entry.limit
        );
    }
}

/// The budget of `--quick` for so many variants, in open loop or not.
pub fn quick_budget(variants: usize, open: bool) -> Duration {
    let variant_s = if open {
        QUICK_VARIANT_OPEN_S
    } else {
        QUICK_VARIANT_S
    };
    Duration::from_secs(QUICK_MIN_S.max(variant_s * variants as u64))
}

/// Prints a note where a body is sent without its type: many services then do not read it.
fn tell_untyped_body(plan: &Plan) {
    if let Some(request) = plan
        .variants
        .iter()
        .find_map(|variant| variant.load.untyped_body())
    {
        let body = request.body.trim_start();
        let kind = if body.starts_with(['{', '[']) {
            "application/json"
        } else {
            "TYPE"
        };
        print::tell!(
            "note: the body of {} {} has no Content-Type, and a service may not read it: -H 'content-type: {kind}'",
            request.method,
            plan::masked(None, &request.path)
        );
    }
}

/// The name of a folder as the name of an experiment has it; `None` where nothing is left of it.
pub fn slug(folder: &Path) -> Option<String> {
    let folder = folder.canonicalize().ok()?;
    Some(model::text::slug(
        &folder.file_name()?.to_string_lossy(),
        40,
    ))
    .filter(|name| !name.is_empty())
}

pub fn unwritable(error: WriteError) -> CliError {
    let is_occupied = matches!(error, WriteError::Occupied { .. });
    let code = if is_occupied { exit::USAGE } else { exit::SELF };
    let hint = if is_occupied {
        "name another folder with --out, or with --record of `proofload profile`"
    } else if error.is_disk_full() {
        "the disk is full, or a limit of file sizes is reached (ulimit -f); a record that was begun opens \
         with `proofload report`"
    } else {
        "choose a folder you may write to with --out, or with --record of `proofload profile`"
    };
    CliError::new(code, &error).hint(hint)
}
