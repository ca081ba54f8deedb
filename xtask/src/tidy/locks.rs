//! Rule: lock files contain package versions and checksums but no host except Cargo's name for its registry,
//! so that they work on every machine. Funding addresses are ignored, because nothing is fetched from them.

use super::tree::File;
use super::{SourceTree, TidyFinding};

const CARGO_INDEX_LINE: &str = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";
const NPM_FUNDING: [&str; 2] = ["\"url\": ", "\"funding\": "];

pub fn find(tree: &SourceTree) -> Vec<TidyFinding> {
    tree.files().iter().flat_map(foreign_hosts).collect()
}

fn foreign_hosts(file: &File) -> Vec<TidyFinding> {
    let is_public: fn(&str) -> bool = match file.name() {
        "Cargo.lock" => |line| line == CARGO_INDEX_LINE,
        "package-lock.json" => {
            |line| line.starts_with(NPM_FUNDING[0]) || line.starts_with(NPM_FUNDING[1])
        }
        _ => return Vec::new(),
    };
    let lines = (1..).zip(file.text.lines().map(str::trim));
    let foreign = lines.filter(|(_, line)| line.contains("://") && !is_public(line));
    let remedy = "make the lock file anew with omit-lockfile-registry-resolved in .npmrc";
    let finding = |(number, line)| {
        file.finding(
            number,
            format!("`{line}` ties the lock file to a host"),
            remedy,
        )
    };
    foreign.map(finding).collect()
}
