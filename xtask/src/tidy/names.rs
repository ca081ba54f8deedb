//! The rule: a folder is a job and a file a noun. It bans the names that say neither; it must not judge any other.

use std::collections::BTreeMap;

use super::{Finding, Tree};

const BANNED: [&str; 5] = ["utils", "common", "helpers", "misc", "imp"];

pub fn find(tree: &Tree) -> Vec<Finding> {
    // A banned folder is reported once, at the first file in it, not again for each file.
    let mut by_entry = BTreeMap::new();
    for file in tree.files() {
        for (end, part) in parts(&file.path) {
            let stem = part.split('.').next().unwrap_or(part).to_lowercase();
            if BANNED.contains(&stem.as_str()) {
                by_entry.entry(&file.path[..end]).or_insert((part, file));
            }
        }
    }
    by_entry
        .into_values()
        .map(|(part, file)| Finding {
            path: file.path.clone(),
            line: 1,
            what: format!("`{part}` says nothing"),
            remedy: "name it after what is in it; what has no one name belongs in several places",
        })
        .collect()
}

/// The parts of a path, each with the place in the path where it ends.
fn parts(path: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut end = 0;
    path.split('/').map(move |part| {
        let start = end;
        end = start + part.len() + 1;
        (end - 1, part)
    })
}
