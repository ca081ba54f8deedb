//! Shows all problems of an experiment file, or a mix file, at once, each at its place.

use std::path::Path;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use plan::{Plan, Problem, ReadError};

use crate::exit::Failed;
use crate::print;

/// Reads a plan; problems are shown in full before the error that sums them up.
///
/// # Errors
/// If the file cannot be read or has problems.
pub fn read_plan(path: &Path) -> anyhow::Result<Plan> {
    match plan::read(path) {
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
