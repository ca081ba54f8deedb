//! Which experiment is meant: a file, the file of this folder, or one made from flags; with `--against REF`, the services' code here against
//! that of another commit, each variant both ways. It reads; what is wrong is told where it was typed, all at once. It knows neither git nor
//! blocks.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::{fs, io};

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use clap::Args;
use model::quantity::many;
use plan::{Against, Building, Plan, Problem, ReadError, Refused, Written};
use services::{Baseline, Cache, Preparing, Source, Worktree};

use crate::exit::Failed;
use crate::print;

/// The experiment of a folder, where none is named.
pub const FILE: &str = "proofload.toml";

/// An experiment's text, and where it comes from.
#[derive(Debug)]
pub enum Experiment {
    /// A file.
    File(PathBuf),
    /// Made from flags, as if it lay in this folder.
    Made {
        /// Where the file will be, for whoever wants to run it again.
        file: PathBuf,
        /// Its text.
        written: Written,
    },
}

impl Experiment {
    /// The file that is named, or that of this folder.
    ///
    /// # Errors
    /// If none is named and none is there.
    pub fn file(named: Option<&Path>) -> Result<Experiment, Failed> {
        match named {
            Some(path) => Ok(Experiment::File(path.to_owned())),
            None if Path::new(FILE).exists() => Ok(Experiment::File(FILE.into())),
            None => Err(Failed::usage(format!("no experiment file is named, and there is no {FILE} here"))
                .hint("`proofload init` makes one; `proofload compare 'COMMAND A' 'COMMAND B'` needs none")),
        }
    }

    /// The plan; with directories of the repository as they are at a commit, if one is given.
    ///
    /// # Errors
    /// If it cannot be read or has problems, which are shown in full.
    pub fn plan(&self, against: Option<&Against>) -> anyhow::Result<Plan> {
        let path = match self {
            Experiment::File(path) => path,
            Experiment::Made { written, .. } => {
                let plan = written.plan(Path::new("."), against);
                return plan.map_err(|found| shown_made(written, &found).into());
            }
        };
        let read = match against {
            None => plan::read(path),
            Some(against) => plan::read_at(path, against).inspect_err(|_| {
                let commit = against.baseline();
                print::tell!("at {commit} the experiment file has problems that it has not here:");
            }),
        };
        read.map_err(|error| match error {
            ReadError::Problems(problems) => shown(path, &problems.text, &problems.problems).into(),
            error => Failed::usage(error).into(),
        })
    }

    /// Its text, for the record.
    ///
    /// # Errors
    /// If the file cannot be read again.
    pub fn text(&self) -> io::Result<String> {
        match self {
            Experiment::File(path) => fs::read_to_string(path),
            Experiment::Made { written, .. } => Ok(written.text.clone()),
        }
    }

    /// What a record says was asked.
    pub fn name(&self) -> String {
        match self {
            Experiment::File(path) | Experiment::Made { file: path, .. } => path.display().to_string(),
        }
    }
}

/// Flags of `run`, `compare` and `check`.
#[derive(Debug, Args)]
pub struct AgainstArgs {
    /// Compare the code here with another git ref: each variant runs both ways, interleaved
    ///
    /// The ref (a branch, a tag, a commit) is checked out in a worktree of its own, built there, and every variant of the file is
    /// compared with itself as it was then. The experiment file is that of the working tree for both.
    #[arg(long, value_name = "REF")]
    pub against: Option<String>,
    /// Shell command that builds at that ref, in the directory of each service there [default: the file's, or npm ci]
    #[arg(long, value_name = "COMMAND", requires = "against")]
    pub build: Option<String>,
}

/// The plan as it would be run, without a worktree: the commit is only looked at.
///
/// # Errors
/// If the services cannot be compared with that commit.
pub fn planned(experiment: &Experiment, args: &AgainstArgs) -> anyhow::Result<Plan> {
    let plan = experiment.plan(None)?;
    let Some(source) = found(&plan, args)? else { return Ok(plan) };
    let base = plan.moved(&source.against);
    doubled(&plan, &base, source)
}

/// The plan to be run, and the worktree that must be kept for as long.
///
/// # Errors
/// If the services cannot be compared with that commit, or it cannot be checked out.
pub fn checked_out(experiment: &Experiment, args: &AgainstArgs) -> anyhow::Result<(Plan, Option<Worktree>)> {
    let plan = experiment.plan(None)?;
    let Some(source) = found(&plan, args)? else { return Ok((plan, None)) };
    let name = source.against.baseline();
    let mut watch = |doing| match doing {
        Preparing::Waiting => {
            print::tell!("waiting for another run that uses the worktree of {name}")
        }
        Preparing::Making(_) => print::tell!("checking out {name}"),
    };
    let worktree = source.check_out(&cache()?, &mut watch).map_err(Failed::from)?;
    print::tell!("against {}", source.against.describe());
    source.against.notes.iter().for_each(|note| print::tell!("  note: {note}"));
    let base = experiment.plan(Some(&source.against))?;
    Ok((doubled(&plan, &base, source)?, Some(worktree)))
}

fn found(plan: &Plan, args: &AgainstArgs) -> anyhow::Result<Option<Source>> {
    let Some(reference) = &args.against else { return Ok(None) };
    plan.check_here().map_err(|error| refused(reference, error))?;
    let building = match &args.build {
        Some(script) => Building {
            command: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
            timeout: plan.building.timeout,
        },
        None => plan.building.clone(),
    };
    let wanted = Baseline { reference, building: &building };
    let mut source = Source::find(plan, wanted, &cache()?).map_err(Failed::from)?;
    source.against.build.clone_from(&args.build);
    Ok(Some(source))
}

fn doubled(plan: &Plan, base: &Plan, source: Source) -> anyhow::Result<Plan> {
    let name = source.against.baseline();
    let Source { against, builds, .. } = source;
    let doubled = plan.against(base, against, builds);
    Ok(doubled.map_err(|error| refused(&name, error))?)
}

fn refused(name: &str, error: Refused) -> Failed {
    Failed::usage(format!("--against {name}: {error}")).hint(error.hint)
}

fn cache() -> Result<Cache, Failed> {
    Ok(Cache::of_this_user()?)
}

/// Shows all problems of a file and gives the error that sums them up.
pub fn shown(path: &Path, text: &str, problems: &[Problem]) -> Failed {
    let path = path.display().to_string();
    let one = |problem: &Problem| one(Some((&path, text, problem.span.clone())), problem);
    print::coloured(&problems.iter().map(one).collect::<Vec<_>>().join("\n\n"));
    Failed::usage(format!("{path}: {}, nothing was started", many(problems.len() as u64, "problem")))
}

/// The same of a file that flags make: each problem stands at its flag.
pub fn shown_made(written: &Written, problems: &[Problem]) -> Failed {
    for problem in problems {
        let place = written.origin(problem).map(|(from, part)| ("the command line", from, part));
        print::coloured(&one(place, problem));
    }
    Failed::usage(format!("{}, nothing was started", many(problems.len() as u64, "problem")))
}

/// A problem at its place: the name of a text, the text, and the bytes of it that it is about.
fn one(place: Option<(&str, &str, Range<usize>)>, problem: &Problem) -> String {
    let title = Level::ERROR.primary_title(problem.message.as_str());
    let mut group = match place {
        Some((path, text, part)) => {
            let part = AnnotationKind::Primary.span(part).label(problem.label.as_str());
            title.element(Snippet::source(plan::veiled(text)).path(path).annotation(part))
        }
        None => Group::with_title(title),
    };
    if let Some(hint) = &problem.hint {
        group = group.element(Level::HELP.message(hint.as_str()));
    }
    Renderer::styled().render(&[group])
}
