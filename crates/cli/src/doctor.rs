//! `proofload doctor`: hazards of this machine for measurements, and the smallest difference it can show. It
//! checks that required permissions are available, and prints. `machine` does the judging, `report` the layout.

use std::path::PathBuf;
use std::time::Duration;

use analysis::{Calibration, NoiseCounters, Sensitivity};
use clap::{Args, Subcommand};
use machine::{Facts, Granted, Probed, Storage};
use plan::{Overrides, Plan};
use record::{Record, Repeat};
use report::{CSV, Calibrated, Form, JUNIT, SVG, Surveyed};

use crate::execution::{self, LabJob};
use crate::exit::{self, CliError};
use crate::experiment::Experiment;
use crate::flags::{OutFlag, SeedFlag, YesFlag};
use crate::preflight;
use crate::print::{self, AmountArgs, FormArgs};
use crate::records::{claim, newest_named, root};

/// Programs that the shipped experiments start.
const PROGRAMS: [&str; 2] = ["node", "nginx"];
/// Forms that neither a survey nor a calibration has.
static LACKING: [&Form; 3] = [&CSV, &SVG, &JUNIT];

/// Flags of `doctor`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = AFTER_HELP)]
pub struct DoctorArgs {
    #[command(subcommand)]
    what: Option<DoctorCommand>,
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    amount: AmountArgs,
}

#[derive(Debug, Subcommand)]
enum DoctorCommand {
    /// Compare a variant with itself to measure the noise, and the smallest difference a run can detect
    ///
    /// The two copies are equal, so any difference between them is noise. Prints what runs of 1, 5 and 30
    /// minutes would detect. `run --dry-run` then prints how long your margin takes.
    Calibrate(CalibrateArgs),
}

const AFTER_HELP: &str = "\
The first line is the difference in throughput that comparisons of two variants find in 8 of 10 runs: from a calibration or earlier records of this machine, or else estimated from its counters. Below is what can be improved; -v lists all checks.

For one second it is idle and sees what other programs use; for another it repeats the same work and sees how evenly that goes. Leave the machine alone meanwhile. The commands that it shows are for you to run (most as root); a restart undoes most of them.

warning: disturbs measurements; fix it first, or expect wrong figures and wide intervals
note: limits what you can measure here, or how far a result applies elsewhere

To measure the smallest detectable difference: proofload doctor calibrate experiment.toml

Exit code: 0; this is advice. Whether a run was disturbed, the findings of its report say.";

pub fn run(args: &DoctorArgs) -> anyhow::Result<u8> {
    if let Some(DoctorCommand::Calibrate(args)) = &args.what {
        return calibrate(args);
    }
    print::fits(args.form.form(), &LACKING)?;
    let mut facts = Facts::look();
    facts.watched = Some(machine::watch());
    // Asked afterwards, because running programs for their versions would show up as load.
    facts.asked = ask(&facts);
    let hazards = machine::hazards(&facts);
    let calibration = calibration(&facts);
    let calibration = calibration
        .as_ref()
        .map(|(record, calibration)| (record, calibration));
    let surveyed = Surveyed {
        facts: &facts,
        hazards: &hazards,
        calibration,
        sensitivity: sensitivity(&facts, calibration.map(|(_, calibration)| calibration)),
    };
    print::result(&surveyed, args.form.form(), args.amount)?;
    Ok(0)
}

fn ask(facts: &Facts) -> Probed {
    let records = if root().is_dir() {
        root().to_string_lossy()
    } else {
        ".".into()
    };
    let version = |name: &&str| ((*name).to_owned(), machine::version_of(name));
    Probed {
        io_uring: Some(Granted::of(load::grants_completion())),
        link: Some(Granted::of(services::networks_can_be_made())),
        stacks: Some(Granted::of(explain::perf::allowed().map_err(
            |error| match error.hint() {
                Some(hint) => format!("{error}; {hint}"),
                None => error.to_string(),
            },
        ))),
        group_writable: Some(facts.processors.group.can_account()),
        storage: Storage::of(&records),
        programs: PROGRAMS.iter().map(version).collect(),
    }
}

/// The difference that this machine can show: from the calibration, or else from the newest records, or else
/// from the counters.
fn sensitivity(facts: &Facts, calibration: Option<&Calibration>) -> Sensitivity {
    let records: Vec<Record> = newest_named(|_| true)
        .map(|(_, record)| record)
        .filter(|record| calibration.is_none() && is_here(record, facts))
        .filter(|record| !analysis::conclude(record).is_void())
        .collect();
    let measured = calibration.and_then(Sensitivity::of_calibration);
    measured
        .or_else(|| Sensitivity::of_records(&records))
        .unwrap_or_else(|| Sensitivity::of_counters(counters(facts)))
}

fn counters(facts: &Facts) -> NoiseCounters {
    let watched = facts.watched.as_ref();
    let processors = facts.processors.online.unwrap_or(1) as f64;
    NoiseCounters {
        work_cv: watched.and_then(|of| of.spin).map_or(0.0, |spin| spin.cv),
        steal_share: watched.map_or(0.0, |of| of.steal_share),
        others_share: watched.map_or(0.0, |of| of.others / processors),
    }
}

/// Whether a record was measured on this machine.
fn is_here(record: &Record, facts: &Facts) -> bool {
    let then = &record.header.environment;
    then.cpu_model == facts.processors.model && then.kernel == facts.host.kernel
}

/// The newest valid calibration among the records of this machine.
fn calibration(facts: &Facts) -> Option<(Record, Calibration)> {
    newest_named(|name| name.contains("-calibration-")).find_map(|(_, record)| {
        let plan = &record.header.plan;
        // Only a calibration has two variants without factors.
        let is_one = is_here(&record, facts) && plan.factors.is_empty() && plan.variants.len() == 2;
        let is_sound = is_one && !analysis::conclude(&record).is_void();
        let calibration = Calibration::of(&record).filter(|_| is_sound)?;
        Some((record, calibration))
    })
}

/// Flags of `doctor calibrate`.
#[derive(Debug, Args)]
#[command(mut_arg("out", |arg| arg.help("New folder for the record [default: records/NAME-calibration-TIME]")))]
pub struct CalibrateArgs {
    /// The experiment file [default: proofload.toml]
    file: Option<PathBuf>,
    /// The variant to copy [default: the baseline of the first comparison]
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Time limit of the whole run, for example 90s or 10m
    #[arg(long, value_parser = plan::budget, default_value = "3m")]
    budget: Duration,
    #[command(flatten)]
    seed: SeedFlag,
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    yes: YesFlag,
    #[command(flatten)]
    out: OutFlag,
}

/// Runs a variant against a copy of itself, and reports which differences can be found in how much time.
fn calibrate(args: &CalibrateArgs) -> anyhow::Result<u8> {
    print::fits(args.form.form(), &LACKING)?;
    args.out.out.as_deref().map_or(Ok(()), preflight::record)?;
    let file = Experiment::file(args.file.as_deref())?;
    let experiment = file.plan(&Overrides::default(), None)?;
    let name = file.name();
    let no_variant = || CliError::usage(format!("{name}: there is no variant to copy"));
    let index = variant(&experiment, args.variant.as_deref())?;
    let plan = experiment
        .calibration(index, args.budget, args.seed.seed)
        .ok_or_else(no_variant)?;
    let directory = args
        .out
        .out
        .clone()
        .unwrap_or_else(|| claim(&format!("{}-calibration", plan.name)));
    let repeat = [
        "doctor",
        "calibrate",
        &name,
        "--variant",
        &plan.variants[0].name,
        "--budget",
        &plan::duration_text(args.budget),
    ];
    let repeat = Repeat::Command(repeat.map(str::to_owned).to_vec());
    let job = LabJob::new(&name, file.text(), plan, Some(&directory))?;
    let job = LabJob {
        repeat,
        yes: args.yes.yes,
        ..job
    };
    let (record, result) = execution::execute(job)?;
    let conclusion = analysis::conclude(&record);
    // A void calibration is printed without figures.
    let calibration = Calibration::of(&record).filter(|_| !conclusion.is_void());
    let (record, conclusion) = (&record, &conclusion);
    let calibrated = Calibrated {
        record,
        conclusion,
        calibration,
        experiment: &experiment,
    };
    print::report(&calibrated, args.form.form(), None)?;
    execution::end(result, exit::of_record(record, conclusion))
}

fn variant(plan: &Plan, name: Option<&str>) -> Result<usize, CliError> {
    let Some(name) = name else {
        return Ok(plan
            .comparisons
            .first()
            .map_or(0, |comparison| comparison.baseline));
    };
    // The copy of the A/A check cannot be requested.
    let own = &plan.variants[..plan.variants.len() - usize::from(plan.aa.is_some())];
    own.iter()
        .position(|variant| variant.name == name)
        .ok_or_else(|| {
            let names: Vec<&str> = own.iter().map(|variant| variant.name.as_str()).collect();
            CliError::usage(format!("--variant: there is no variant `{name}`"))
                .hint(plan::did_you_mean(name, "the variants are", names))
        })
}
