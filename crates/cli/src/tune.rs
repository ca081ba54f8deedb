//! `proofload tune`: finds the settings that make a service faster. It runs the steps that the tuning
//! requests, and prints the settings to apply.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use analysis::tune::{
    self, Catalogue, Chosen, Keep, Purpose, Runtime, ServiceFacts, Setting, SettingChange,
    StepConditions, StepOutcome, StepTimes, TuneSpec, TuneStep, Tuning, Wish,
};
use analysis::{Check, Conclusion};
use clap::Args;
use lab::{LabError, RealEnvironment, Stop};
use model::quantity::{many, rate, span};
use model::text::slug;
use model::{Finding, Grade, MetricLoop};
use plan::{FlagSetting, Overrides, Plan};
use record::{EndReason, Record, Repeat, Writer};

use crate::compare::CompareFlags;
use crate::execution::{self, LabJob};
use crate::exit::{self, CliError};
use crate::experiment;
use crate::failure::failed;
use crate::flags::{OutFlag, SeedFlag};
use crate::print::{self, AmountArgs, FormArgs};
use crate::{preflight, records, signals};

mod service;

use service::{Base, compresses, logs};

const AFTER_HELP: &str = "\
Examples:
  All advice that applies, in ten minutes:
    proofload tune 'node server.js' --path /orders
  Settings of your own too, and limits to keep:
    proofload tune './server' --try 'GOGC=200' --try 'POOL=4|8|16' --try 'flag: --workers 4' \\
      --keep 'memory < +20%'
  What would be tried, and why not the rest:
    proofload tune 'node server.js' --list

Settings are screened together: each is on in half of the trials (docs/tuning.md).

Exit codes: 0 advice, also if nothing helps; 2 usage, or a budget that is too small; 3 the service does not start; 4 the service as it is, or the confirmation, is invalid; 130 interrupted.";

const BUDGET: &str = "10m";
/// From this budget on, a profile is taken first.
const PROFILE_FROM: Duration = Duration::from_secs(180);
/// Time limit for the first run of the unchanged service, in seconds: long enough to observe a warm-up.
const AS_IT_IS_MOST_S: f64 = 150.0;
/// Up to this number of processors, the generator gets none exclusively if numbers of processes are tried.
const SHARED_CORES_MAX: usize = 3;

/// Flags of `tune`.
#[derive(Debug, Args)]
#[command(
    after_help = AFTER_HELP,
    mut_arg("metric", |arg| {
        arg.help("The figure that is judged: throughput, cpu_per_request or peak_memory [default: throughput]")
    }),
    mut_arg("rate", |arg| arg.hide(true)),
    mut_arg("seed", |arg| arg.help("Seed of every random choice")),
    mut_arg("out", |arg| {
        arg.help("New folder for the records [default: records/tune-NAME-TIME]")
    })
)]
pub struct TuneArgs {
    /// The command that starts the service, as one argument, or an experiment file without factors [default:
    /// proofload.toml]
    what: Option<String>,
    /// An additional setting to try: NAME=value, NAME=a|b|c, `flag: WORDS` after the command, `before: WORDS`
    /// in front. May be repeated
    #[arg(long = "try", value_name = "SETTING", help_heading = "Settings")]
    tries: Vec<String>,
    /// Try only these settings of the catalogue (docs/tuning.md), by name, separated by commas. `none` for
    /// --try alone
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        help_heading = "Settings"
    )]
    only: Vec<String>,
    /// Leave out these settings of the catalogue
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        help_heading = "Settings"
    )]
    without: Vec<String>,
    /// A limit that the advised settings must keep, such as 'memory < +20%'. May be repeated
    #[arg(long, value_name = "LIMIT", help_heading = "Settings")]
    keep: Vec<String>,
    /// Start nothing: print the settings to try, and why others are skipped
    #[arg(long, conflicts_with_all = ["format", "json"], help_heading = "Settings")]
    list: bool,
    /// Time limit of the whole run, for example 90s or 10m
    #[arg(long, value_parser = plan::budget, default_value = BUDGET)]
    budget: Duration,
    #[command(flatten)]
    seed: SeedFlag,
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    amount: AmountArgs,
    #[command(flatten)]
    out: OutFlag,
    /// Write an experiment file that compares the chosen settings with the current ones. Never overwrites
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    #[command(flatten)]
    asked: CompareFlags,
}

pub fn run(args: &TuneArgs) -> anyhow::Result<u8> {
    args.amount.settle();
    print::fits(args.form.form(), &[&report::CSV, &report::JUNIT])?;
    let base = Base::of(args)?;
    let read = |text: &String| {
        Keep::read(text).map_err(|why| CliError::usage(format!("--keep {text}: {why}")))
    };
    let keep = base
        .plan
        .tune
        .keep
        .iter()
        .map(read)
        .collect::<Result<Vec<Keep>, _>>()?;
    check_metrics(&base.plan, &keep)?;
    if !base.plan.design.co_primary.is_empty() {
        let metric = base.plan.design.metric.name();
        print::tell!("note: tune judges by one metric, the first: {metric}; --keep limits others");
    }
    let facts = base.facts();
    // Also without --list, because problems are reported before anything starts.
    let chosen = chosen(&base.plan.tune, &facts, Path::new("…"))?;
    base.plan
        .tune
        .tries
        .iter()
        .try_for_each(|text| base.check(text))?;
    if args.list {
        return list(&chosen);
    }
    something_to_try(&self::chosen(
        &base.plan.tune,
        &facts.at_most(),
        Path::new("…"),
    )?)?;
    args.write.iter().try_for_each(|path| print::absent(path))?;
    let folder = args
        .out
        .out
        .clone()
        .unwrap_or_else(|| records::claim(&format!("tune-{}", base.plan.name)));
    // Our files are written to it, whose names might already be in use.
    preflight::record(&folder)?;
    preflight::plan(&base.plan, None)?;
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)
        .map_err(|error| {
            CliError::new(
                exit::SELF,
                format!("{}: cannot be made: {error}", folder.display()),
            )
            .hint("name a folder that you may write to with --out")
        })?;
    let folder = folder.canonicalize()?;
    let stop = Stop::default();
    signals::stop_on_first(stop.clone(), execution::STOPPING)?;
    let seed = args.seed.seed.unwrap_or_else(lab::draw_seed);
    TuneRun {
        args,
        base,
        keep,
        folder,
        stop,
        seed,
        began: Instant::now(),
        created: record::now(),
        number: 0,
        before: None,
        proposals: Vec::new(),
    }
    .carry(facts)
}

fn check_metrics(plan: &Plan, keep: &[Keep]) -> Result<(), CliError> {
    if plan.design.pacing().is_open() || plan.design.metric.quantile().is_some() {
        let message = "tune judges services at their limit, in closed loop: throughput, cpu_per_request or peak_memory";
        let hint =
            "leave out --rate, latencies and capacity; compare the choice with --rate afterwards";
        return Err(CliError::usage(message).hint(hint));
    }
    let is_had = |keep: &&Keep| {
        keep.figure
            .metric()
            .is_some_and(|metric| keep.is_latency() || metric.row().loops != MetricLoop::Search)
    };
    match keep.iter().find(|keep| !is_had(keep)) {
        Some(keep) => Err(CliError::usage(format!(
            "--keep '{}': there is no such figure here",
            keep.text
        ))
        .hint("limits are on memory, cpu_per_request, throughput, p50, p90, p99 and p99.9")),
        None => Ok(()),
    }
}

impl TuneArgs {
    /// The settings of flags that extend the file's `[tune]`.
    fn overrides(&self) -> Overrides {
        let list = |key: &str, flag: &str, values: &[String]| {
            let from = values.iter().map(|value| format!("{flag} '{value}'"));
            let from = from.collect::<Vec<_>>().join(" ");
            FlagSetting::new(&["tune", key], values.to_vec(), from)
        };
        let settings = [
            list("only", "--only", &self.only),
            list("try", "--try", &self.tries).added(),
            list("without", "--without", &self.without).added(),
            list("keep", "--keep", &self.keep).added(),
        ];
        let is_given = |setting: &FlagSetting| !setting.from.is_empty();
        Overrides {
            settings: settings.into_iter().filter(is_given).collect(),
            ..Overrides::default()
        }
    }
}

/// The settings to try, from the catalogue and from the user.
fn chosen(tune: &plan::Tune, facts: &ServiceFacts, folder: &Path) -> Result<Chosen, CliError> {
    let catalogue = Catalogue::built_in();
    let names: Vec<&str> = catalogue.names().collect();
    let is_unknown = |name: &&String| *name != "none" && !names.contains(&name.as_str());
    if let Some(name) = tune.only.iter().chain(&tune.without).find(is_unknown) {
        let hint = plan::did_you_mean(name, "it has", names);
        return Err(CliError::usage(format!("the catalogue has no `{name}`")).hint(hint));
    }
    let wish = Wish {
        only: tune.only.clone(),
        without: tune.without.clone(),
    };
    let mut chosen = catalogue.chosen(facts, &wish, folder);
    let mut own: Vec<Setting> = Vec::new();
    for text in &tune.tries {
        let refused =
            |why: String| CliError::usage(format!("--try '{}': {why}", plan::quotable(text)));
        let setting = tune::tried(text).map_err(refused)?;
        // Two equal rows cannot be distinguished.
        if let Some((name, value)) = setting
            .variables()
            .find(|(name, value)| facts.env.get(*name).is_some_and(|is| is == value))
        {
            return Err(refused(format!("{name} is {value} already")));
        }
        if let Some(why) = own.iter().find_map(|other| setting.clash(other)) {
            return Err(refused(why).hint("several values of one variable: --try 'NAME=a|b'"));
        }
        let Chosen { settings, skipped } = &mut chosen;
        settings.retain(|of_catalogue| {
            let why = of_catalogue.clash(&setting);
            let other = why.iter().filter(|_| of_catalogue.name != setting.name);
            skipped.extend(other.map(|why| (of_catalogue.name.clone(), why.clone())));
            why.is_none()
        });
        own.push(setting);
    }
    chosen.settings.extend(own);
    let most = stats::SETTINGS_MAX;
    if chosen.settings.len() > most {
        let message = format!(
            "{} settings are more than a screening can hold, {most}",
            chosen.settings.len()
        );
        return Err(CliError::usage(message)
            .hint("name those that matter with --only, or leave some out with --without"));
    }
    Ok(chosen)
}

fn something_to_try(chosen: &Chosen) -> Result<(), CliError> {
    if chosen.settings.is_empty() {
        let hint = "--list says why; --try names a setting of your own";
        return Err(CliError::usage("there is nothing to try").hint(hint));
    }
    Ok(())
}

fn list(chosen: &Chosen) -> anyhow::Result<u8> {
    let mut out = String::new();
    for setting in &chosen.settings {
        let levels: Vec<&str> = setting
            .levels
            .iter()
            .map(|level| level.name.as_str())
            .collect();
        let tries = plan::masked(None, &levels.join(", "));
        out += &format!(
            "{}\n    tries   {tries}\n",
            plan::masked(None, &setting.name)
        );
        let told = [
            ("price", &setting.cost),
            ("seen", &setting.seen),
            ("source", &setting.source),
        ];
        for (what, text) in told.into_iter().filter(|(_, text)| !text.is_empty()) {
            out += &format!("    {what:<7} {text}\n");
        }
    }
    for (name, why) in &chosen.skipped {
        out += &format!("not tried: {name}: {why}\n");
    }
    print::data(&out)?;
    Ok(0)
}

/// A tuning in progress.
struct TuneRun<'a> {
    args: &'a TuneArgs,
    base: Base,
    keep: Vec<Keep>,
    folder: PathBuf,
    stop: Stop,
    seed: u64,
    began: Instant,
    /// When it began, RFC 3339 in UTC.
    created: String,
    /// Number of records so far.
    number: usize,
    /// The record of the unchanged service.
    before: Option<Record>,
    /// Changes to the code that a profile suggests.
    proposals: Vec<String>,
}

/// The record of a step's experiment, and whether it could be run.
type StepRun = (Record, Result<(), LabError>);

impl TuneRun<'_> {
    fn carry(mut self, mut facts: ServiceFacts) -> anyhow::Result<u8> {
        let service = &self.base.plan.variants[0].entry;
        for (name, text) in [
            (tune::SERVER_FILE, tune::SERVER_SCRIPT.to_owned()),
            ("nginx.conf.tmpl", tune::nginx(service, false)),
            ("nginx-gzip.conf.tmpl", tune::nginx(service, true)),
        ] {
            fs::write(self.folder.join(name), text)?;
        }
        // Logging and compression are only visible in a run.
        let first = self.step_alone()?;
        (facts.logs, facts.compresses) = (Some(logs(&first)), Some(compresses(&first)));
        let times = StepTimes::of(&first);
        if facts.runtime == Some(Runtime::Node) && self.args.budget >= PROFILE_FROM {
            self.profile(times, &mut facts)?;
        }
        let chosen = chosen(&self.base.plan.tune, &facts, &self.folder)?;
        something_to_try(&chosen)?;
        let shares = self.args.asked.cpus.is_none() && shares_cores(&chosen.settings, &facts);
        let spec = TuneSpec {
            settings: chosen.settings.clone(),
            metric: self.base.plan.design.metric,
            margin: self.base.plan.design.margin,
            keep: self.keep.clone(),
            budget_s: self.args.budget.as_secs_f64(),
            seed: self.seed,
        };
        let mut tuning = Tuning::new(spec);
        let (mut experiment, mut unwritten) = (None, None);
        let names: Vec<&str> = chosen
            .settings
            .iter()
            .map(|setting| setting.name.as_str())
            .collect();
        let (settings, budget) = (
            many(names.len() as u64, "setting"),
            span(self.args.budget.as_secs_f64()),
        );
        print::tell!("{settings} to try, {budget} at most: {}", names.join(", "));
        let mut first = Some(first);
        while let Some(step) = tuning.next_step().map_err(|short| too_short(&short))? {
            if self.stop.is_requested() {
                break;
            }
            let ran = match first.take().filter(|_| step.purpose == Purpose::Baseline) {
                Some(first) => Ok((first, Ok(()))),
                None => self.step(&step, &tuning, times, shares),
            };
            if step.purpose == Purpose::Confirm
                && let Ok((record, _)) = &ran
            {
                // The result is printed nevertheless.
                match self.kept(record) {
                    Ok(path) => experiment = Some(path),
                    Err(error) => unwritten = Some(error),
                }
            }
            let outcome = self.outcome(&step, ran)?;
            tuning.take(outcome, self.began.elapsed().as_secs_f64());
        }
        let interrupted = self.stop.is_requested();
        let advice = self.advice(&tuning, &chosen, interrupted, experiment, shares);
        self.print(&advice)?;
        unwritten.map_or(Ok(()), Err)?;
        Ok(advice.exit_code())
    }

    /// Runs the unchanged service: whether it works at all, and how long it warms up.
    fn step_alone(&mut self) -> anyhow::Result<Record> {
        print::tell!("records: {}", records::typed(&self.folder).display());
        print::tell!("the service as it is: does it work, how long does it warm up?");
        let step = TuneStep {
            purpose: Purpose::Baseline,
            rows: vec![Vec::new()],
            blocks: 1,
            seconds: AS_IT_IS_MOST_S,
            most_s: AS_IT_IS_MOST_S,
            rate_per_s: None,
        };
        let (record, result) = self.experiment(&step, &[], "as-it-is", None)?;
        result.map_err(failed)?;
        if let Some(finding) = invalid(&analysis::conclude(&record)) {
            let mark = model::FindingCode::mark(&finding.check).unwrap_or_default();
            let message = format!("the service as it is: {mark} {}", finding.evidence);
            return Err(CliError::new(exit::VOID, message)
                .hint(finding.remedy.to_string())
                .into());
        }
        self.before = Some(record.clone());
        Ok(record)
    }

    /// The record of the next experiment, opened, and its context.
    fn ready(
        &mut self,
        text: String,
        plan: Plan,
        name: &str,
    ) -> anyhow::Result<(Writer, RealEnvironment)> {
        let plan = match &self.before {
            Some(before) => tune::on_ports_of(plan, before),
            None => plan,
        };
        self.number += 1;
        let directory = self.folder.join(format!("{:02}-{name}", self.number));
        let job = LabJob::new(&self.base.name, text, plan, Some(&directory))?;
        // The service runs on this machine, so no confirmation is needed.
        let job = LabJob {
            repeat: Repeat::SavedFile,
            ..job
        };
        execution::prepare(job, self.stop.clone())
    }

    fn step(
        &mut self,
        step: &TuneStep,
        tuning: &Tuning,
        times: StepTimes,
        shares: bool,
    ) -> anyhow::Result<StepRun> {
        let settings = &tuning.spec.settings;
        let (name, told) = words(step, settings);
        let left_s = self.args.budget.as_secs_f64() - self.began.elapsed().as_secs_f64();
        print::tell!(
            "{told}: about {}; {} left at most",
            span(step.seconds.max(1.0)),
            span(left_s.max(0.0))
        );
        let latency = self.keep.iter().find(|keep| keep.is_latency());
        let conditions = StepConditions {
            times,
            shares_cores: shares,
            per_core: tuning.per_core(),
            latency: latency.and_then(|keep| keep.figure.metric()),
        };
        self.experiment(step, settings, &name, Some(&conditions))
    }

    fn experiment(
        &mut self,
        step: &TuneStep,
        settings: &[Setting],
        name: &str,
        conditions: Option<&StepConditions>,
    ) -> anyhow::Result<StepRun> {
        let (text, names) = tune::experiment(
            &self.base.text,
            &self.base.plan.variants[0],
            settings,
            &step.rows,
        );
        let plan = plan::parse(&text, &self.base.directory).map_err(|problems| {
            match (step.purpose, &problems[..]) {
                // This is the result for the setting, and not an error of the whole tuning.
                (Purpose::Smoke(_), [problem, ..]) => anyhow::anyhow!("{}", problem.message),
                _ => experiment::shown(Path::new(&self.base.name), &text, &problems).into(),
            }
        })?;
        let seed = self.seed.wrapping_add(self.number as u64) & plan::SEED_MAX;
        let plan = tune::step_plan(plan, step, (seed, &names), conditions);
        let (writer, mut environment) = self.ready(text, plan, name)?;
        let (record, result) = lab::run(writer, &mut environment, &mut |_| {});
        if step.confirms() {
            execution::keep_reports(&record, None);
        }
        Ok((record, result))
    }

    /// The meaning of a step's experiment for the tuning.
    ///
    /// # Errors
    /// If nothing more can be measured: the record cannot be written, or the load generator does not work.
    fn outcome(
        &self,
        step: &TuneStep,
        ran: anyhow::Result<StepRun>,
    ) -> anyhow::Result<StepOutcome> {
        let (record, result) = match ran {
            // A missing program or an unreadable file: the tuning continues without this setting.
            Err(error) if matches!(step.purpose, Purpose::Smoke(_)) => {
                return Ok(StepOutcome::Failed(format!("{error:#}")));
            }
            ran => ran?,
        };
        match result {
            Ok(()) => {}
            Err(LabError::Failed(
                EndReason::ServiceFailed(what) | EndReason::PreparationFailed(what),
            )) => {
                return Ok(match not_started(&record) {
                    Some(row) => StepOutcome::NotStarted(row, what),
                    None => StepOutcome::Failed(what),
                });
            }
            Err(error) => return Err(failed(error).into()),
        }
        let conclusion = analysis::conclude(&record);
        if step.confirms() {
            return Ok(StepOutcome::Confirmed(tune::confirmed(&conclusion)));
        }
        if matches!(step.purpose, Purpose::Smoke(_))
            && let Some(why) = self.spoilt(&record, &conclusion)
        {
            return Ok(StepOutcome::Failed(why));
        }
        let block_s = record
            .complete_blocks()
            .last()
            .and_then(|block| block.seconds);
        Ok(StepOutcome::Measured(
            tune::figures(&record, &conclusion),
            block_s.unwrap_or(step.seconds),
        ))
    }

    /// Why a setting alone cannot be combined with others.
    fn spoilt(&self, record: &Record, conclusion: &Conclusion) -> Option<String> {
        if let Some(EndReason::Void(why)) = record.end() {
            return Some(why.clone());
        }
        let found = invalid(conclusion).map(|finding| finding.evidence.to_string());
        found.or_else(|| tune::same_work(self.before.as_ref()?, record).err())
    }

    /// The path of the confirmation's experiment file, for repeating it.
    fn kept(&self, record: &Record) -> anyhow::Result<String> {
        let path = match &self.args.write {
            None => records::typed(&record.directory).join("experiment.toml"),
            Some(path) => {
                experiment::save(path, record.experiment_text.as_deref().unwrap_or_default())?;
                path.clone()
            }
        };
        let whole = |folder: &Path| fs::canonicalize(folder).ok();
        let is_elsewhere = whole(records::folder_of(&path)) != whole(&self.base.directory);
        // For a command from flags, folders are absolute.
        if is_elsewhere && Path::new(&self.base.name).is_file() {
            let (path, folder) = (path.display(), self.base.directory.display());
            print::tell!(
                "note: folders in {path} are relative to {folder}: copy it there to run it"
            );
        }
        Ok(path.display().to_string())
    }

    fn advice(
        &self,
        tuning: &Tuning,
        chosen: &Chosen,
        interrupted: bool,
        experiment: Option<String>,
        shares: bool,
    ) -> report::Advice {
        let notes = [
            (
                tuning.per_core(),
                "throughput is judged per core-second, for all services had their cores busy",
            ),
            (
                shares,
                "services and load generator share the processors, because processes were tried: what those gain is a lower bound",
            ),
        ];
        let notes = notes
            .into_iter()
            .filter(|(holds, _)| *holds)
            .map(|(_, note)| note.to_owned());
        let command = self.base.plan.variants[0]
            .entry_service()
            .and_then(plan::Service::command);
        let words = command.map_or(Vec::new(), |it| plan::masked_words(&it.command));
        report::Advice {
            service: plan::command_line(words.clone()),
            experiment_name: self.base.plan.name.clone(),
            created: self.created.clone(),
            command: print::shown_command(),
            ended: interrupted.then(|| "it was interrupted".to_owned()),
            seconds: self.began.elapsed().as_secs_f64(),
            folder: records::typed(&self.folder).display().to_string(),
            experiment,
            notes: notes.collect(),
            proposals: self.proposals.clone(),
            ..report::Advice::of(tuning, &words, &chosen.skipped)
        }
    }

    /// Prints the advice, and writes it to the folder too.
    fn print(&self, advice: &report::Advice) -> anyhow::Result<()> {
        print::keep(&self.folder, "advice", |form, path| {
            print::write(advice, form, path)
        });
        print::result(advice, self.args.form.form(), self.args.amount)
    }
}

/// Name and description of a step's record.
fn words(step: &TuneStep, settings: &[Setting]) -> (String, String) {
    let (rows, blocks, at) = (
        step.rows.len(),
        step.blocks,
        rate(step.rate_per_s.unwrap_or_default()),
    );
    match step.purpose {
        Purpose::Baseline => ("as-it-is".to_owned(), "the service as it is".to_owned()),
        Purpose::Smoke(of) => {
            let (of, level) = (&settings[of], step.rows[0][of]);
            (
                format!("alone-{}", slug(&of.name, 30)),
                format!("alone: {}", of.level(level)),
            )
        }
        Purpose::Together => {
            let on = step.rows[0]
                .iter()
                .zip(settings)
                .filter(|(level, _)| **level > 0);
            let on: Vec<&str> = on.map(|(level, of)| of.level(*level)).collect();
            (
                "together".to_owned(),
                format!("a trial did not start: trying again with {}", on.join(", ")),
            )
        }
        Purpose::Screen { pair, of } => (
            format!("screen-{pair}"),
            format!(
                "screening: pair {pair} of {of}, {}",
                many(rows as u64, "row")
            ),
        ),
        Purpose::Race(of) => {
            let levels: Vec<&str> = step
                .rows
                .iter()
                .map(|row| settings[of].level(row[of]))
                .collect();
            (
                format!("race-{}", slug(&settings[of].name, 30)),
                format!("which level: {}", levels.join(", ")),
            )
        }
        Purpose::Latency { pair } => (
            format!("at-a-rate-{pair}"),
            format!("what helps, at {at}: pair {pair}"),
        ),
        Purpose::Confirm => (
            "confirm".to_owned(),
            format!(
                "confirming the choice on {}",
                many(blocks.into(), "fresh block")
            ),
        ),
        Purpose::ConfirmLatency => (
            "confirm-at-a-rate".to_owned(),
            format!("and at {at}, on {}", many(blocks.into(), "more block")),
        ),
    }
}

/// The first finding that forbids a conclusion.
fn invalid(conclusion: &Conclusion) -> Option<&Finding<Check>> {
    conclusion
        .findings
        .iter()
        .find(|finding| finding.grade == Grade::Invalid)
}

/// The row that did not start. `None` if all did.
fn not_started(record: &Record) -> Option<usize> {
    let block = record.blocks.last()?;
    block.order.get(block.trials.len()).copied()
}

fn too_short(short: &tune::TooShort) -> CliError {
    let minutes = (short.needed_s / 60.0).ceil();
    CliError::usage(short).hint(format!(
        "--budget {minutes}m, or fewer settings with --only and --without"
    ))
}

/// Whether numbers of processes are tried with too few processors to reserve some for the generator.
fn shares_cores(settings: &[Setting], facts: &ServiceFacts) -> bool {
    let mut changes = settings
        .iter()
        .flat_map(|setting| &setting.levels)
        .flat_map(|level| &level.changes);
    facts.cores <= SHARED_CORES_MAX
        && changes
            .any(|change| matches!(change, SettingChange::Cluster(_) | SettingChange::Nginx(_)))
}
