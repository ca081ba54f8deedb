//! Code and configuration pasted beside results: what it lacks to be what people deploy.

use super::{Case, Sight};
use model::{Grade, evidence};

/// What lines around runs say of how a service was set up; line numbers count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Pasted {
    /// The first line in which nginx passes requests on.
    proxy_pass: Option<u64>,
    /// Whether connections to a service behind it are kept.
    keepalive: bool,
    /// The first line of code that uses Express.
    express: Option<u64>,
    /// Whether NODE_ENV is spoken of.
    node_env: bool,
}

impl Pasted {
    /// Takes a line that is none of a tool's.
    pub fn note(&mut self, text: &str, number: u64) {
        let directive = |name: &str| {
            text.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '\t']) && rest.contains(';'))
        };
        if directive("proxy_pass") || text.contains("{ proxy_pass ") {
            self.proxy_pass.get_or_insert(number);
        }
        let code = ["require('express')", "require(\"express\")", "from 'express'", "from \"express\""];
        if code.iter().any(|code| text.contains(code)) {
            self.express.get_or_insert(number);
        }
        self.keepalive |= directive("keepalive");
        self.node_env |= text.contains("NODE_ENV");
    }
}

/// An nginx that passes requests on, and nothing that keeps its connections.
pub fn proxy_pass(of: &Sight<'_>) -> Vec<(Grade, Case)> {
    let kept = of.files.iter().any(|file| file.pasted.keepalive);
    cases(of, |pasted| pasted.proxy_pass.filter(|_| !kept))
}

/// Express without a word of NODE_ENV, neither around the runs nor in what started them.
pub fn express(of: &Sight<'_>) -> Vec<(Grade, Case)> {
    let named = of.files.iter().any(|file| file.pasted.node_env)
        || of.runs.iter().any(|run| run.label.contains("NODE_ENV"));
    cases(of, |pasted| pasted.express.filter(|_| !named))
}

/// A note for each file with runs in which it was found.
fn cases(of: &Sight<'_>, line: impl Fn(&Pasted) -> Option<u64>) -> Vec<(Grade, Case)> {
    let found = of.files.iter().filter_map(|file| Some((file, line(&file.pasted)?)));
    let cases = found.map(|(file, line)| {
        let its = of.runs.iter().enumerate().filter(|(_, run)| run.file == file.file);
        let runs: Vec<usize> = its.map(|(at, _)| at).collect();
        Case { label: file.file.clone(), runs, evidence: evidence!("line {line}") }
    });
    cases.filter(|case| !case.runs.is_empty()).map(|case| (Grade::Note, case)).collect()
}
