//! `proofload doctor calibrate`: runs a variant against a copy of itself, and tells what can be found here in how much time.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use analysis::Calibration;
use clap::Args;
use plan::Plan;
use report::Calibrated;

use crate::exit::{self, Failed};
use crate::experiment::Experiment;
use crate::print::{self, FormArgs};
use crate::run::{self, Course};

/// Flags of `doctor calibrate`.
#[derive(Debug, Args)]
pub struct CalibrateArgs {
    /// The experiment file [default: proofload.toml]
    file: Option<PathBuf>,
    /// The variant to copy [default: the baseline of the first comparison]
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Time the whole run may take, for example 90s or 10m
    #[arg(long, value_parser = plan::duration, default_value = "3m")]
    budget: Duration,
    /// Seed of every random choice, instead of the file's or a new one
    #[arg(long)]
    seed: Option<u64>,
    #[command(flatten)]
    form: FormArgs,
    /// Load a host that may be another machine without asking
    #[arg(long)]
    yes: bool,
    /// Folder of the record, made new [default: records/NAME-calibration-TIME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Runs the two copies.
///
/// # Errors
/// If the file has problems or no such variant, a service fails, or the record cannot be written.
pub fn run(args: &CalibrateArgs) -> anyhow::Result<ExitCode> {
    let file = Experiment::file(args.file.as_deref())?;
    let experiment = file.plan(None)?;
    let index = variant(&experiment, args.variant.as_deref())?;
    let no_variant = || Failed::usage(format!("{}: there is no variant to copy", file.name()));
    let mut plan = experiment.calibration(index).ok_or_else(no_variant)?;
    plan.design.budget = args.budget;
    plan.design.seed = args.seed.or(plan.design.seed);
    // A variant against its own copy differs in nothing that could be explained.
    plan.design.explain = false;
    let directory =
        args.out.clone().unwrap_or_else(|| crate::records::claim(&format!("{}-calibration", plan.name)));
    let name = file.name();
    let course = Course::new(&name, file.text()?, plan, &directory);
    let (record, result) = run::carry(Course { yes: args.yes, ..course })?;

    let conclusion = analysis::conclude(&record);
    let calibrated = Calibrated {
        record: &record,
        conclusion: &conclusion,
        // What is void prints instead of figures, never beside them.
        calibration: Calibration::of(&record).filter(|_| !conclusion.is_void()),
        experiment: &experiment,
    };
    print::report(&calibrated, args.form.form(), None)?;
    run::end(result, exit::of_record(&record, &conclusion))
}

/// Index of the variant to copy.
fn variant(plan: &Plan, name: Option<&str>) -> Result<usize, Failed> {
    let Some(name) = name else {
        return Ok(plan.comparisons.first().map_or(0, |comparison| comparison.baseline));
    };
    // The check's own copy is none that could be asked for.
    let copies = usize::from(plan.aa.is_some());
    let own = &plan.variants[..plan.variants.len() - copies];
    let names: Vec<String> = own.iter().map(|variant| format!("`{}`", variant.name)).collect();
    let unknown = || {
        let message = format!("--variant: there is no variant `{name}`");
        Failed::usage(message).hint(format!("the variants are {}", names.join(", ")))
    };
    own.iter().position(|variant| variant.name == name).ok_or_else(unknown)
}
