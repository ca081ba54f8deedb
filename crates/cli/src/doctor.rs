//! `proofload doctor`: what about this machine will hurt a measurement, how small a difference it can show, and other machines. It asks those who will need a thing whether they get it, and
//! prints; the judgement is `machine`'s, the layout `report`'s.

use std::process::ExitCode;

use analysis::Calibration;
use clap::{Args, Subcommand};
use machine::{Asked, Facts, Granted, Storage};
use record::Record;
use report::Surveyed;

use crate::print::{self, FormArgs};
use crate::records::{newest_named, root};
use crate::{calibrate, hosts};

/// Programs that the shipped experiments start.
const PROGRAMS: [&str; 2] = ["node", "nginx"];

/// Flags of `doctor`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = AFTER_HELP)]
pub struct DoctorArgs {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    form: FormArgs,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Compare a variant with itself to measure the noise, and the smallest difference a run can detect
    ///
    /// The two copies are equal, so whatever they differ by is noise. Prints what runs of 1, 5 and 30 minutes would
    /// detect. `run --dry-run` then prints how long your margin takes.
    Calibrate(calibrate::CalibrateArgs),
    /// Look at other machines that load may come from, by SSH: who is reached, what is there, how well clocks agree
    ///
    /// Changes nothing there unless asked to: --put puts this program there, --remove takes every version of it away.
    Hosts(hosts::HostsArgs),
}

const AFTER_HELP: &str = "\
It watches for two seconds: one in which it is quiet and sees what others use, and one in which it does the same work
over and over and sees how evenly that goes. Leave the machine alone meanwhile. Nothing is changed: commands that are
shown are for you to run (most as root), and a restart undoes most of them.

warning: disturbs measurements; fix it first, or expect wrong figures and wide intervals
note: limits what you can measure here, or how far a result applies elsewhere

To measure the smallest detectable difference: proofload doctor calibrate experiment.toml

Exit code: 0. It is advice; whether a run was hurt is told by the findings of its report.";

/// Looks, watches and prints.
///
/// # Errors
/// If stdout cannot be written.
pub fn run(args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    match &args.what {
        Some(What::Calibrate(args)) => return calibrate::run(args),
        Some(What::Hosts(args)) => return hosts::run(args),
        None => {}
    }
    let mut facts = Facts::look();
    facts.watched = Some(machine::watch());
    // Programs that are asked for their version would have been seen at work.
    facts.asked = ask(&facts);
    let hazards = machine::hazards(&facts);
    let calibration = calibration(&facts);
    let surveyed = Surveyed {
        facts: &facts,
        hazards: &hazards,
        calibration: calibration.as_ref().map(|(record, calibration)| (record, calibration)),
    };
    print::report(&surveyed, args.form.form(), None)?;
    Ok(ExitCode::SUCCESS)
}

fn ask(facts: &Facts) -> Asked {
    let records = if root().is_dir() { root().to_string_lossy() } else { ".".into() };
    let version = |name: &&str| ((*name).to_owned(), machine::version_of(name));
    Asked {
        io_uring: Some(Granted::of(load::grants_completion())),
        link: Some(Granted::of(services::networks_can_be_made())),
        stacks: Some(Granted::of(explain::perf::allowed().map_err(|error| match error.hint() {
            Some(hint) => format!("{error}; {hint}"),
            None => error.to_string(),
        }))),
        group_writable: Some(facts.processors.group.can_account()),
        storage: Storage::of(&records),
        programs: PROGRAMS.iter().map(version).collect(),
    }
}

/// The newest calibration among the records that was made on this machine and is not void.
fn calibration(facts: &Facts) -> Option<(Record, Calibration)> {
    newest_named(|name| name.contains("-calibration-")).find_map(|(_, record)| {
        let sound =
            is_here(&record, facts) && is_of_copies(&record) && !analysis::conclude(&record).is_void();
        let calibration = Calibration::of(&record).filter(|_| sound)?;
        Some((record, calibration))
    })
}

fn is_here(record: &Record, facts: &Facts) -> bool {
    let then = &record.header.environment;
    then.cpu_model == facts.processors.model && then.kernel == facts.host.kernel
}

/// Only a calibration has two variants and nothing that is varied.
fn is_of_copies(record: &Record) -> bool {
    record.header.plan.factors.is_empty() && record.header.plan.variants.len() == 2
}
