//! The rule: what is left to do is done or filed, not marked in the tree. It reads every text, comments above all.

use super::{Finding, Tree};

// In halves, so that this file does not break its own rule.
const MARKS: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];
const LOCK_FILES: [&str; 2] = ["Cargo.lock", "package-lock.json"];

pub fn find(tree: &Tree) -> Vec<Finding> {
    let ours =
        tree.files().iter().filter(|file| !file.is_below("vendor") && !LOCK_FILES.contains(&file.name()));
    ours.flat_map(|file| {
        file.text.lines().enumerate().filter_map(|(index, line)| {
            let mark = MARKS.iter().find(|mark| has_word(line, mark))?;
            Some(Finding {
                path: file.path.clone(),
                line: index + 1,
                what: format!("`{mark}`"),
                remedy: "do it now, or write down elsewhere that it is not done",
            })
        })
    })
    .collect()
}

/// Whether the word stands in the line with no letter, digit or underscore touching it.
fn has_word(line: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}
