//! The rule: a Rust file begins by saying what it is for and what it must not do. Only that the header is there can
//! be checked; whether it is true cannot.

use super::{Finding, Tree};

pub fn find(tree: &Tree) -> Vec<Finding> {
    let headless =
        |file: &&super::tree::File| file.extension() == Some("rs") && !file.text.starts_with("//!");
    let finding = |file: &super::tree::File| Finding {
        path: file.path.clone(),
        line: 1,
        what: "no `//!` header".to_string(),
        remedy: "begin with the file's purpose and what it must not do",
    };
    tree.files().iter().filter(headless).map(finding).collect()
}
