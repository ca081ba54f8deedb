//! `--against REF`: the services' code here against that of another commit, each variant both ways.
//!
//! It ties together what finds and checks out the commit and what doubles the plan; it knows neither git nor blocks.

use std::path::Path;

use clap::Args;
use plan::{Building, NotDoubled, Plan};
use services::{Baseline, Cache, PrepareError, Preparing, Source, SourceError, Worktree};

use crate::exit::{self, Failed};
use crate::{print, problems};

/// Flags of `run` and `check`.
#[derive(Debug, Args)]
pub struct AgainstArgs {
    /// Compare the code here with another git ref: each variant runs both ways, interleaved
    ///
    /// The ref (a branch, a tag, a commit) is checked out in a worktree of its own, built there, and every variant of the file is
    /// compared with itself as it was then. The experiment file is that of the working tree for both.
    #[arg(long, value_name = "REF")]
    against: Option<String>,
    /// Shell command that builds at that ref, in the directory of each service there [default: the file's, or npm ci]
    #[arg(long, value_name = "COMMAND", requires = "against")]
    build: Option<String>,
}

/// The plan as it would be run, without a worktree: the commit is only looked at.
///
/// # Errors
/// If the services cannot be compared with that commit.
pub fn planned(plan: Plan, args: &AgainstArgs) -> anyhow::Result<Plan> {
    let Some(source) = found(&plan, args)? else { return Ok(plan) };
    let base = plan.moved(&source.against);
    doubled(&plan, &base, source)
}

/// The plan to be run, and the worktree that must be kept for as long.
///
/// # Errors
/// If the services cannot be compared with that commit, or it cannot be checked out.
pub fn checked_out(file: &Path, plan: Plan, args: &AgainstArgs) -> anyhow::Result<(Plan, Option<Worktree>)> {
    let Some(source) = found(&plan, args)? else { return Ok((plan, None)) };
    let name = source.against.baseline();
    let mut watch = |doing| match doing {
        Preparing::Waiting => {
            print::talk(&format!("waiting for another run that uses the worktree of {name}"))
        }
        Preparing::Making(_) => print::talk(&format!("checking out {name}")),
    };
    let worktree = source.check_out(&cache()?, &mut watch).map_err(failed)?;
    print::talk(&format!("against {}", source.against.describe()));
    source.against.notes.iter().for_each(|note| print::talk(&format!("  note: {note}")));
    let base = problems::read_plan_at(file, &source.against)?;
    Ok((doubled(&plan, &base, source)?, Some(worktree)))
}

fn found(plan: &Plan, args: &AgainstArgs) -> anyhow::Result<Option<Source>> {
    let Some(reference) = &args.against else { return Ok(None) };
    plan.check_here().map_err(|error| refused(reference, &error))?;
    let building = match &args.build {
        Some(script) => Building {
            command: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
            timeout: plan.building.timeout,
        },
        None => plan.building.clone(),
    };
    let wanted = Baseline { reference, building: &building };
    let mut source = Source::find(plan, wanted, &cache()?).map_err(failed)?;
    source.against.build.clone_from(&args.build);
    Ok(Some(source))
}

fn doubled(plan: &Plan, base: &Plan, source: Source) -> anyhow::Result<Plan> {
    let name = source.against.baseline();
    let Source { against, builds, .. } = source;
    let doubled = plan.against(base, against, builds);
    Ok(doubled.map_err(|error| refused(&name, &error))?)
}

fn refused(name: &str, error: &NotDoubled) -> Failed {
    Failed::usage(format!("--against {name}: {error}")).hint(error.hint())
}

fn cache() -> Result<Cache, Failed> {
    Cache::of_this_user().map_err(|error: PrepareError| failed(error.into()))
}

fn failed(error: SourceError) -> Failed {
    let code = if error.is_usage() { exit::USAGE } else { exit::SELF };
    Failed { message: error.to_string(), hint: error.hint(), code }
}
