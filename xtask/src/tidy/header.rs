//! Rule: a Rust file begins with a header that states its purpose and its limits. Only the presence of the
//! header is checked.

use super::tree::File;
use super::{SourceTree, TidyFinding};

pub fn find(tree: &SourceTree) -> Vec<TidyFinding> {
    let headless = |file: &&File| file.extension() == Some("rs") && !file.text.starts_with("//!");
    let remedy = "begin with the file's purpose and what it must not do";
    let finding = |file: &File| file.finding(1, "no `//!` header".to_string(), remedy);
    tree.files().iter().filter(headless).map(finding).collect()
}
