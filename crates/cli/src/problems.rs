//! Shows all problems of an experiment file, or a mix file, at once, each at its place.

use std::path::Path;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use plan::{Against, Plan, Problem, ReadError};

use crate::exit::Failed;
use crate::print;

/// Reads a plan; problems are shown in full before the error that sums them up.
///
/// # Errors
/// If the file cannot be read or has problems.
pub fn read_plan(path: &Path) -> anyhow::Result<Plan> {
    or_shown(path, plan::read(path))
}

/// Reads the same file with the directories that it names as they are at a commit.
///
/// # Errors
/// As [`read_plan`], and where something that the file names is not there at the commit.
pub fn read_plan_at(path: &Path, against: &Against) -> anyhow::Result<Plan> {
    let read = plan::read_at(path, against);
    if read.is_err() {
        print::talk(&format!(
            "at {} the experiment file has problems that it has not here:",
            against.baseline()
        ));
    }
    or_shown(path, read)
}

fn or_shown(path: &Path, read: Result<Plan, ReadError>) -> anyhow::Result<Plan> {
    match read {
        Ok(plan) => Ok(plan),
        Err(ReadError::Problems(problems)) => Err(shown(path, &problems.text, &problems.problems).into()),
        Err(error) => Err(Failed::usage(error.to_string()).into()),
    }
}

/// Shows all problems of a file and gives the error that sums them up.
pub fn shown(path: &Path, text: &str, problems: &[Problem]) -> Failed {
    print::talk(&render(&path.display().to_string(), text, problems));
    let count = problems.len();
    let noun = if count == 1 { "problem" } else { "problems" };
    Failed::usage(format!("{}: {count} {noun}, nothing was started", path.display()))
}

fn render(path: &str, text: &str, problems: &[Problem]) -> String {
    let renderer = Renderer::styled();
    let one = |problem: &Problem| {
        let place = AnnotationKind::Primary.span(problem.span.clone()).label(problem.label.as_str());
        let snippet = Snippet::source(text).path(path).annotation(place);
        let mut group = Level::ERROR.primary_title(problem.message.as_str()).element(snippet);
        if let Some(hint) = &problem.hint {
            group = group.element(Level::HELP.message(hint.as_str()));
        }
        renderer.render(&[group])
    };
    problems.iter().map(one).collect::<Vec<_>>().join("\n\n")
}
