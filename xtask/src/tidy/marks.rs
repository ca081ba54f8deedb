//! Rule: no to-do marks in the tree. Open work is done or filed. Checks all text files, including comments.

use super::tree::File;
use super::{SourceTree, TidyFinding};

// Split, so that this file does not violate the rule.
const MARKS: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];
const LOCK_FILES: [&str; 2] = ["Cargo.lock", "package-lock.json"];

pub fn find(tree: &SourceTree) -> Vec<TidyFinding> {
    let is_ours = |file: &&File| !file.is_below("vendor") && !LOCK_FILES.contains(&file.name());
    tree.files()
        .iter()
        .filter(is_ours)
        .flat_map(marks)
        .collect()
}

fn marks(file: &File) -> Vec<TidyFinding> {
    let remedy = "do it now, or write down elsewhere that it is not done";
    let found = (1..).zip(file.text.lines()).filter_map(|(number, line)| {
        let mark = MARKS.iter().find(|mark| has_word(line, mark))?;
        Some(file.finding(number, format!("`{mark}`"), remedy))
    });
    found.collect()
}

/// Whether the line contains the word without an adjacent letter, digit or underscore.
fn has_word(line: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}
