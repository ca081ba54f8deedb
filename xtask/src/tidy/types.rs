//! Rule: a name stands for one type in the whole workspace, so that a reader never has to ask which one is
//! meant. Types of tests and of macros do not count.

use std::collections::BTreeMap;

use super::{SourceTree, TidyFinding};

/// Names that several crates have by convention: `ThisCrate::Error`.
const ALLOWED: [&str; 1] = ["Error"];

pub fn find(tree: &SourceTree) -> Vec<TidyFinding> {
    let mut first: BTreeMap<&str, &str> = BTreeMap::new();
    let mut findings = Vec::new();
    let files = tree.files().iter();
    for file in files.filter(|file| file.path.contains("/src/") && !file.is_test) {
        if let Some(code) = file.parsed() {
            for (name, start) in &code.types {
                if ALLOWED.contains(&name.as_str()) || code.is_test_at(*start) {
                    continue;
                }
                let path = *first.entry(name).or_insert(&file.path);
                if path != file.path {
                    let what = format!("`{name}` is another type in {path}");
                    let remedy = "give it a name that says which of the two it is";
                    findings.push(file.finding(start.line, what, remedy));
                }
            }
        }
    }
    findings
}
