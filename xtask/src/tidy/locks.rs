//! The rule: lock files name packages by version and checksum, and no host but Cargo's own name for its registry, so
//! that they work on every machine. Addresses for funding are left alone; nothing is fetched from them.

use super::tree::File;
use super::{Finding, Tree};

const CARGO_INDEX_LINE: &str = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";
const NPM_FUNDING: &str = "\"url\": ";

pub fn find(tree: &Tree) -> Vec<Finding> {
    tree.files().iter().flat_map(foreign_hosts).collect()
}

fn foreign_hosts(file: &File) -> Vec<Finding> {
    let is_public: fn(&str) -> bool = match file.name() {
        "Cargo.lock" => |line| line == CARGO_INDEX_LINE,
        "package-lock.json" => {
            |line| [NPM_FUNDING, "\"funding\": "].iter().any(|start| line.starts_with(start))
        }
        _ => return Vec::new(),
    };
    let lines = file.text.lines().enumerate();
    lines
        .filter(|(_, line)| line.contains("://") && !is_public(line.trim()))
        .map(|(index, line)| Finding {
            path: file.path.clone(),
            line: index + 1,
            what: format!("`{}` ties the lock file to a host", line.trim()),
            remedy: "make the lock file anew with omit-lockfile-registry-resolved in .npmrc",
        })
        .collect()
}
