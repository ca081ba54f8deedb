//! Rule: a folder is named after its job, and a file after a noun. Only names that describe neither are
//! rejected.

use std::collections::BTreeMap;

use super::{SourceTree, TidyFinding};

const BANNED: [&str; 5] = ["utils", "common", "helpers", "misc", "imp"];

pub fn find(tree: &SourceTree) -> Vec<TidyFinding> {
    // A banned folder is reported once, at its first file.
    let mut by_entry = BTreeMap::new();
    for file in tree.files() {
        let ends = file
            .path
            .match_indices('/')
            .map(|(end, _)| end)
            .chain([file.path.len()]);
        for (part, end) in file.path.split('/').zip(ends) {
            let stem = part.split('.').next().unwrap_or(part).to_lowercase();
            if BANNED.contains(&stem.as_str()) {
                by_entry.entry(&file.path[..end]).or_insert((part, file));
            }
        }
    }
    let remedy = "name it after what is in it; what has no one name belongs in several places";
    by_entry
        .into_values()
        .map(|(part, file)| file.finding(1, format!("`{part}` says nothing"), remedy))
        .collect()
}
