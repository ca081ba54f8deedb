//! `proofload run`: carries an experiment through and prints its report.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ::explain::Explanation;
use clap::Args;
use lab::{LabError, RealEnvironment, Stop, Update};
use plan::{FlagSetting, GateEntry, Limit, Metric, Overrides, Pacing, Plan};
use record::{Header, MachineFingerprint, Record, Repeat, WriteError, Writer};
use report::{MeasuredRecord, Report};

use crate::compare::BUDGET;
use crate::exit::{self, CliError};
use crate::experiment::{self, AgainstArgs, Experiment};
use crate::gate::KnownLimits;
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
}

pub fn run(args: &RunArgs) -> anyhow::Result<u8> {
    if let Some(flag) = args.limits.given().filter(|_| !args.gate) {
        return Err(CliError::usage(format!("{flag} goes with --gate")).into());
    }
    ExperimentJob {
        experiment: &Experiment::file(args.file.as_deref())?,
        flags: &args.flags,
        limits: args.gate.then_some(&args.limits),
        against: &args.against,
        slo: &[],
    }
    .run()
}

/// An experiment with the flags of its command.
#[derive(Debug)]
pub struct ExperimentJob<'a> {
    pub experiment: &'a Experiment,
    pub flags: &'a RunFlags,
    /// Limits of a gate after the run. `None` without a gate.
    pub limits: Option<&'a gate::Flags>,
    pub against: &'a AgainstArgs,
    /// Limits of a capacity that is searched instead of what the file measures.
    pub slo: &'a [Limit],
}

impl ExperimentJob<'_> {
    /// Runs the experiment, prints its report, and returns the exit code.
    pub fn run(&self) -> anyhow::Result<u8> {
        let ExperimentJob {
            experiment,
            flags,
            limits,
            against,
            slo: _,
        } = self;
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
        // Checked before a commit is checked out and built.
        if !flags.dry_run {
            flags.out.as_deref().map_or(Ok(()), preflight::record)?;
        }
        let prometheus = flags
            .prometheus
            .filter(|_| !flags.dry_run)
            .map(prometheus::listen)
            .transpose()?;
        let file = experiment.plan(&Overrides::default(), None)?;
        self.check_time(&file)?;
        let overrides = self.overrides(&file)?;
        // The worktree is kept until the services have ended.
        let (plan, _worktree) = experiment::plan(experiment, &overrides, against, flags.dry_run)?;
        self.report_dropped_limits(&file, &plan);
        if limits.is_some() {
            gate::check(&plan)?;
        }
        if flags.dry_run {
            experiment.save()?;
            return dry_run::run(&plan, json);
        }
        dry_run::warn_of_budget(&plan);
        let directory = flags
            .out
            .clone()
            .unwrap_or_else(|| records::claim(&plan.name));
        let (name, repeat) = (experiment.name(), self.repeat(&file, &plan));
        let course = Course::new(&name, experiment.text(), plan, Some(&directory))?;
        experiment.save()?;
        let (events, yes) = (flags.events, flags.yes);
        let (record, result) = carry(Course {
            repeat,
            events,
            yes,
            prometheus,
            ..course
        })?;
        // If no service ran, the error is the whole result.
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

    fn searches_capacity(&self) -> bool {
        !self.slo.is_empty()
    }

    /// Rejects flags about the budget if the experiment compares nothing.
    fn check_time(&self, file: &Plan) -> Result<(), CliError> {
        let given = exit::given(&[
            (self.flags.quick, "--quick"),
            (self.flags.budget.is_some(), "--budget"),
        ]);
        match given {
            Some(flag) if file.measure.is_some() && !self.searches_capacity() => {
                let message =
                    format!("{flag}: the experiment has [measure], and takes as long as that says");
                Err(CliError::usage(message).hint("say it there, as `duration` or `requests`"))
            }
            _ => Ok(()),
        }
    }

    /// The settings of all flags. `file` is the plan without them.
    fn overrides(&self, file: &Plan) -> Result<Overrides, CliError> {
        let mut limits = KnownLimits::of(file);
        limits.is_compared |= self.against.against.is_some();
        let mut overrides = Overrides::default();
        if self.searches_capacity() {
            limits.metrics = vec![Metric::Capacity];
            limits
                .entries
                .retain(|entry| entry.limit.figure.exists_in(Pacing::Search));
            overrides = capacity_overrides(self.slo);
        }
        let RunFlags {
            seed,
            explain,
            quick: _,
            budget: _,
            // About the output, the record, or this process.
            dry_run: _,
            form: _,
            events: _,
            amount: _,
            yes: _,
            prometheus: _,
            out: _,
        } = self.flags;
        overrides.settings.extend(self.budget(file));
        overrides.settings.extend(seed.map(seed_setting));
        if *explain {
            overrides.settings.push(explain_setting());
        }
        if let Some(flags) = self.limits {
            overrides.settings.extend(limits.settings(flags)?);
        }
        Ok(overrides)
    }

    /// The budget, if it is not the file's.
    fn budget(&self, file: &Plan) -> Option<FlagSetting> {
        // The length of a measurement is no budget of a search.
        let is_lacking = self.searches_capacity() && file.measure.is_some();
        let own = if is_lacking {
            BUDGET
        } else {
            file.design.budget
        };
        let quick = || quick_budget(file.variants.len(), file.design.rate.is_some());
        let (budget, flag) = match self.flags.budget {
            Some(budget) => (budget, "--budget"),
            None if self.flags.quick => (own.min(quick()), "--quick"),
            None if is_lacking => (own, "--slo"),
            None => return None,
        };
        let budget = plan::duration_text(budget);
        let from = match flag {
            "--budget" => format!("{flag} {budget}"),
            _ => flag.to_owned(),
        };
        Some(FlagSetting::new(&["design", "budget"], budget, from))
    }

    /// Prints which limits of the file are not judged because capacity is searched.
    fn report_dropped_limits(&self, file: &Plan, plan: &Plan) {
        let dropped = |entry: &&GateEntry| !entry.limit.figure.exists_in(Pacing::Search);
        let entries = file.gate.iter().filter(|_| self.searches_capacity());
        for entry in entries.filter(dropped) {
            let (why, _) = plan.why_never(entry.limit.figure);
            print::tell!(
                "note: the file's limit {} is not judged: {why}",
                entry.limit
            );
        }
    }

    /// The command that repeats the run. Limits from flags are in it as they are judged.
    fn repeat(&self, file: &Plan, plan: &Plan) -> Repeat {
        let mut words = vec!["run".to_owned(), self.experiment.name()];
        let limits = plan.gate.iter().filter(|entry| entry.line.is_none());
        let limits: Vec<String> = limits
            .flat_map(|entry| ["--limit".to_owned(), entry.limit.to_string()])
            .collect();
        if self.searches_capacity() {
            "capacity".clone_into(&mut words[0]);
            let slo = self.slo.iter();
            words.extend(slo.flat_map(|limit| ["--slo".to_owned(), limit.to_string()]));
        } else if !limits.is_empty() {
            // A limit from a flag does not require limits in the file.
            words.push("--gate".to_owned());
        }
        if self.flags.explain {
            words.push("--explain".to_owned());
        }
        words.extend(limits);
        words.extend(self.against.again());
        if plan.design.budget != file.design.budget {
            let budget = plan::duration_text(plan.design.budget);
            words.extend(["--budget".to_owned(), budget]);
        }
        Repeat::Command(words)
    }
}

/// Turns a file's experiment into a search for the capacity within these limits.
fn capacity_overrides(slo: &[Limit]) -> Overrides {
    let texts: Vec<String> = slo.iter().map(ToString::to_string).collect();
    let flags = texts.iter().map(|text| format!("--slo '{text}'"));
    let flags = flags.collect::<Vec<_>>().join(" ");
    let rates = [
        &["load", "rate"][..],
        &["factors", "*", "*", "load", "rate"],
    ];
    let design = ["metric", "endpoint", "rate", "pooled", "slice", "slices"];
    let unmeasured = plan::LimitFigure::all().filter(|figure| !figure.exists_in(Pacing::Search));
    let limits = unmeasured.flat_map(|figure| {
        let name = figure.name();
        [vec!["gate", name], vec!["gate", "of", "*", name]]
    });
    let removed = std::iter::once(vec!["measure"])
        .chain(rates.map(<[_]>::to_vec))
        .chain(design.map(|key| vec!["design", key]))
        .chain(limits);
    Overrides {
        settings: vec![FlagSetting::new(&["design", "slo"], texts, flags)],
        removed: removed.collect(),
        requests: None,
    }
}

pub fn seed_setting(seed: u64) -> FlagSetting {
    let value = i64::try_from(seed).unwrap_or(i64::MAX);
    FlagSetting::new(&["design", "seed"], value, format!("--seed {seed}"))
}

pub fn explain_setting() -> FlagSetting {
    FlagSetting::new(&["design", "explain"], true, "--explain")
}

/// What is to be carried through, and where it is kept.
#[derive(Debug)]
pub struct Course<'a> {
    /// What the record says was asked: the path of an experiment file, or a command.
    pub experiment: &'a str,
    /// How to repeat the run.
    pub repeat: Repeat,
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
            repeat: Repeat::Command(vec!["run".to_owned(), experiment.to_owned()]),
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
        repeat: course.repeat,
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
        LabError::Failed(reason) => CliError::new(reason.exit_code().unwrap_or(exit::SELF), reason),
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
