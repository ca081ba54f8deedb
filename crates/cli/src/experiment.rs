//! Finds the experiment: a named file, the file of this folder, or one made from flags. With `--against REF`
//! each variant is compared with its code at another commit. Problems are reported all at once, where they
//! were typed. This module does not know git or blocks.

use std::ops::Range;
use std::path::{Path, PathBuf};

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use clap::Args;
use model::quantity::many;
use plan::{Against, ExperimentDraft, Overrides, Plan, Problem, ReadError, Refused, WrittenFile};
use services::{Cache, CommitSource, Preparing, Worktree};

use crate::exit::CliError;
use crate::{print, records};

/// Name of the command line as the place of a problem.
const COMMAND_LINE: &str = "the command line";
/// The default experiment file of a folder.
pub const FILE: &str = "proofload.toml";

/// Whether an argument is the name of an experiment file, existing or not. A command and a URL may have the
/// same ending.
pub fn is_named(text: &str) -> bool {
    let is_word = !text.contains(char::is_whitespace) && !text.contains("://");
    text.ends_with(".toml") && (is_word || Path::new(text).is_file())
}

/// An experiment: a file, or the text of one made from flags, as if it were in this folder.
#[derive(Debug)]
pub struct Experiment {
    /// Path of the file, current or future, for repeating the run.
    pub file: PathBuf,
    text: ExperimentText,
    /// The file to save it in, after all checks.
    saved_as: Option<PathBuf>,
}

/// Text of the experiment. A file is read once, so that later changes do not affect this run.
#[derive(Debug)]
enum ExperimentText {
    Read(String),
    Made(WrittenFile),
}

impl Experiment {
    /// The named file, or the default file of this folder.
    pub fn file(named: Option<&Path>) -> Result<Experiment, CliError> {
        if named.is_none() && !Path::new(FILE).exists() {
            let message = format!("no experiment file is named, and there is no {FILE} here");
            return Err(CliError::usage(message)
                .hint("`proofload init` makes one; `proofload compare 'COMMAND A' 'COMMAND B'` needs none"));
        }
        let file = named.unwrap_or(Path::new(FILE)).to_owned();
        let text = plan::text(&file).map_err(|error| match error {
            ReadError::Problems { text, problems } => shown(&file, &text, &problems),
            ReadError::Io { .. } => CliError::usage(error),
        })?;
        Ok(Experiment {
            file,
            text: ExperimentText::Read(text),
            saved_as: None,
        })
    }

    /// An experiment made from flags, with its future path. Saved in `saved_as` on request.
    pub fn made(file: PathBuf, written: WrittenFile, saved_as: Option<PathBuf>) -> Experiment {
        Experiment {
            file,
            text: ExperimentText::Made(written),
            saved_as,
        }
    }

    /// Saves it if requested. Call it after all checks: an invalid file would block the next attempt.
    pub fn save(&self) -> Result<(), CliError> {
        let Some(path) = &self.saved_as else {
            return Ok(());
        };
        save(path, &self.text())
    }

    /// The plan with the settings of flags. With a commit, directories of the repository are as they are
    /// there.
    ///
    /// # Errors
    /// If it has problems, which are printed in full.
    pub fn plan(&self, overrides: &Overrides, against: Option<&Against>) -> Result<Plan, CliError> {
        let text = match &self.text {
            ExperimentText::Made(written) => {
                return made(written, Path::new("."), overrides, against);
            }
            ExperimentText::Read(text) => text,
        };
        let folder = records::folder_of(&self.file);
        let plan = plan::parse_with(text, folder, overrides, against).map_err(|problems| {
            if let Some(commit) = against.map(Against::baseline) {
                print::tell!("at {commit} the experiment file has problems that it has not here:");
            }
            shown(&self.file, text, &problems)
        })?;
        print::keep_secrets(&plan.secrets);
        Ok(plan)
    }

    pub fn text(&self) -> String {
        match &self.text {
            ExperimentText::Read(text) => text.clone(),
            ExperimentText::Made(written) => written.text.clone(),
        }
    }

    /// The experiment's name in a record.
    pub fn name(&self) -> String {
        self.file.display().to_string()
    }
}

/// Writes the experiment file to the path of a flag.
pub fn save(path: &Path, text: &str) -> Result<(), CliError> {
    print::create(path, text.as_bytes(), print::PRIVATE)?;
    print::tell!("written: {}", path.display());
    print::warn_of_secrets(path, text);
    Ok(())
}

/// The name of a folder as part of an experiment's name. `None` if no character of it is permitted.
pub fn folder_slug(folder: &Path) -> Option<String> {
    let folder = folder.canonicalize().ok()?;
    Some(model::text::slug(
        &folder.file_name()?.to_string_lossy(),
        40,
    ))
    .filter(|name| !name.is_empty())
}

/// Flags of `run`, `compare` and `capacity`.
#[derive(Debug, Args)]
pub struct AgainstArgs {
    /// Compare the code here with that of a git ref, interleaved
    ///
    /// The ref (a branch, a tag, a commit) is checked out and built in a separate worktree. Each variant is
    /// compared with itself at that ref. Both sides use the experiment file of the working tree.
    #[arg(long, value_name = "REF")]
    pub against: Option<String>,
    /// Shell command that builds the ref, run in the directory of each service [default: the file's, or npm
    /// ci]
    #[arg(long, value_name = "COMMAND", requires = "against")]
    pub build: Option<String>,
    /// File or folder outside git that the services read, copied to the ref. May be repeated [default: the
    /// file's, or .env and other files that look like configuration]
    #[arg(long, value_name = "PATH", requires = "against")]
    pub copy: Vec<String>,
}

impl AgainstArgs {
    /// Flags for the same comparison.
    pub fn again(&self) -> Vec<String> {
        let AgainstArgs {
            against,
            build,
            copy,
        } = self;
        against
            .iter()
            .flat_map(|reference| plan::against_flags(reference, build.as_deref(), copy))
            .collect()
    }
}

/// The plan to run, and the worktree that must be kept during the run. With `dry` there is no worktree, and
/// the commit is only resolved.
pub fn plan(
    experiment: &Experiment,
    overrides: &Overrides,
    args: &AgainstArgs,
    dry: bool,
) -> anyhow::Result<(Plan, Option<Worktree>)> {
    let plan = experiment.plan(overrides, None)?;
    let Some(source) = found(&plan, args)? else {
        return Ok((plan, None));
    };
    let name = source.against.baseline();
    let (base, worktree) = if dry {
        (plan.moved(&source.against), None)
    } else {
        let worktree = checked_out(&source, &name)?;
        let there = experiment.plan(overrides, Some(&source.against))?;
        (there, Some(worktree))
    };
    let CommitSource {
        against, builds, ..
    } = source;
    let doubled = plan
        .against(&base, against, builds)
        .map_err(|error| refused(&name, error))?;
    Ok((doubled, worktree))
}

fn checked_out(source: &CommitSource, name: &str) -> Result<Worktree, CliError> {
    let mut watch = |doing| match doing {
        Preparing::Waiting => {
            print::tell!("waiting for another run that uses the worktree of {name}")
        }
        Preparing::Making(_) => print::tell!("checking out {name}"),
    };
    let worktree = source.check_out(&Cache::of_this_user()?, &mut watch)?;
    print::tell!("against {}", source.against.describe());
    source
        .against
        .notes
        .iter()
        .for_each(|note| print::tell!("  note: {note}"));
    Ok(worktree)
}

fn found(plan: &Plan, args: &AgainstArgs) -> anyhow::Result<Option<CommitSource>> {
    let Some(reference) = &args.against else {
        return Ok(None);
    };
    plan.check_here()
        .map_err(|error| refused(reference, error))?;
    let mut building = plan.building.clone();
    if let Some(script) = &args.build {
        building.command = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
    }
    if !args.copy.is_empty() {
        let here = std::env::current_dir()?;
        building.copy = Some(args.copy.iter().map(|path| here.join(path)).collect());
    }
    let mut source = CommitSource::find(plan, reference, &building, &Cache::of_this_user()?)?;
    source.against.build.clone_from(&args.build);
    source.against.copy.clone_from(&args.copy);
    Ok(Some(source))
}

fn refused(name: &str, error: Refused) -> CliError {
    CliError::usage(format!("--against {name}: {error}")).hint(error.hint)
}

/// The file made from flags, as if it were in this folder, and its plan.
///
/// # Errors
/// If it has problems, which are printed in full, each at its flag.
pub fn drafted(
    draft: &ExperimentDraft,
    folder: &Path,
    overrides: &Overrides,
) -> Result<(WrittenFile, Plan), CliError> {
    let written = draft.write();
    let plan = made(&written, folder, overrides, None)?;
    Ok((written, plan))
}

fn made(
    written: &WrittenFile,
    folder: &Path,
    overrides: &Overrides,
    against: Option<&Against>,
) -> Result<Plan, CliError> {
    let plan = plan::parse_with(&written.text, folder, overrides, against).map_err(|problems| {
        for problem in &problems {
            let place = written
                .origin(problem)
                .map(|(from, part)| (COMMAND_LINE, from, part));
            print::coloured(&one(place, problem));
        }
        CliError::usage(format!(
            "{}, nothing was started",
            many(problems.len() as u64, "problem")
        ))
    })?;
    print::keep_secrets(&plan.secrets);
    Ok(plan)
}

/// Prints all problems of a file and returns an error that summarizes them.
pub fn shown(path: &Path, text: &str, problems: &[Problem]) -> CliError {
    let path = path.display().to_string();
    let one = |problem: &Problem| {
        let (name, text) = match &problem.flag {
            Some(flag) => (COMMAND_LINE, flag.as_str()),
            None => (path.as_str(), text),
        };
        one(Some((name, text, problem.span.clone())), problem)
    };
    print::coloured(&problems.iter().map(one).collect::<Vec<_>>().join("\n\n"));
    CliError::usage(format!(
        "{path}: {}, nothing was started",
        many(problems.len() as u64, "problem")
    ))
}

/// A problem at its place: the name of a text, the text, and the byte range.
fn one(place: Option<(&str, &str, Range<usize>)>, problem: &Problem) -> String {
    let title = Level::ERROR.primary_title(problem.message.as_str());
    let mut group = match place {
        Some((path, text, part)) => {
            let part = AnnotationKind::Primary
                .span(part)
                .label(problem.label.as_str());
            title.element(
                Snippet::source(plan::veiled(text))
                    .path(path)
                    .annotation(part),
            )
        }
        None => Group::with_title(title),
    };
    if let Some(hint) = &problem.hint {
        group = group.element(Level::HELP.message(hint.as_str()));
    }
    Renderer::styled().render(&[group])
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_is_saved_meanwhile_is_of_another_run() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE);
        let text = |name: &str| format!("name = \"{name}\"\n[services.api]\ncommand = [\"x\"]\n");
        fs::write(&file, text("first")).unwrap();
        let experiment = Experiment::file(Some(&file)).unwrap();
        fs::write(&file, text("second")).unwrap();
        let plan = experiment.plan(&Overrides::default(), None).unwrap();
        assert_eq!(
            (plan.name.as_str(), experiment.text()),
            ("first", text("first"))
        );
    }

    #[test]
    fn a_comparison_is_repeated_with_all_flags() {
        let copy = vec![".env".to_owned()];
        let args = AgainstArgs {
            against: Some("main".to_owned()),
            build: Some("make x".to_owned()),
            copy,
        };
        assert_eq!(
            args.again().join(" "),
            "--against main --build make x --copy .env"
        );
        assert!(
            AgainstArgs {
                against: None,
                ..args
            }
            .again()
            .is_empty()
        );
    }
}
