//! Code and configuration pasted beside results, and the settings they lack for deployment.

use super::{CheckInput, FindingCase};
use crate::pasted::Pasted;
use model::{Grade, evidence};

/// An nginx that passes requests on without keeping its connections open.
pub fn proxy_pass(of: &CheckInput<'_>) -> Vec<(Grade, FindingCase)> {
    let kept = of.files.iter().any(|file| file.pasted.keepalive);
    cases(of, |pasted| pasted.proxy_pass.filter(|_| !kept))
}

/// Express without NODE_ENV, neither around the runs nor in the commands that started them.
pub fn express(of: &CheckInput<'_>) -> Vec<(Grade, FindingCase)> {
    let named = of.files.iter().any(|file| file.pasted.node_env)
        || of.runs.iter().any(|run| run.label.contains("NODE_ENV"));
    cases(of, |pasted| pasted.express.filter(|_| !named))
}

/// A note for each file with runs in which it was found.
fn cases(of: &CheckInput<'_>, line: impl Fn(&Pasted) -> Option<u64>) -> Vec<(Grade, FindingCase)> {
    let found = of
        .files
        .iter()
        .filter_map(|file| Some((file, line(&file.pasted)?)));
    let cases = found.map(|(file, line)| {
        let its = of
            .runs
            .iter()
            .enumerate()
            .filter(|(_, run)| run.file == file.file);
        let runs: Vec<usize> = its.map(|(at, _)| at).collect();
        FindingCase {
            label: file.file.clone(),
            runs,
            evidence: evidence!("line {line}"),
        }
    });
    cases
        .filter(|case| !case.runs.is_empty())
        .map(|case| (Grade::Note, case))
        .collect()
}
