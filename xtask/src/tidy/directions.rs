//! Rule: crates depend on each other only as shown in docs/architecture.md. The table below has the same
//! content. Only manifests are read, because cargo ensures that code uses nothing else.

use std::collections::{BTreeMap, BTreeSet};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::tree::File;
use super::{SourceTree, TidyFinding};

/// Each crate, and the crates that its code may use. Its tests may use others, unless that forms a cycle.
const MAY_USE: [(&str, &[&str]); 14] = [
    ("stats", &[]),
    ("model", &["stats"]),
    ("plan", &["model"]),
    ("load", &["model", "stats"]),
    ("services", &["model", "machine", "plan"]),
    ("machine", &["model"]),
    ("remote", &["model", "machine", "plan", "load", "services"]),
    ("record", &["model", "plan", "stats", "machine"]),
    ("analysis", &["model", "record", "stats", "plan"]),
    (
        "explain",
        &[
            "model", "machine", "plan", "record", "stats", "analysis", "services",
        ],
    ),
    (
        "lab",
        &[
            "model", "machine", "plan", "stats", "load", "remote", "services", "explain", "record",
            "analysis",
        ],
    ),
    ("foreign", &["model", "stats"]),
    (
        "report",
        &[
            "model", "record", "analysis", "stats", "plan", "explain", "foreign", "machine",
        ],
    ),
    (
        "cli",
        &[
            "model", "plan", "stats", "load", "remote", "services", "machine", "record",
            "analysis", "explain", "lab", "foreign", "report",
        ],
    ),
];

const PICTURE: &str = "add it to the picture in docs/architecture.md and to the table in xtask/src/tidy/directions.rs";

/// A workspace crate: its folder, its manifest, and its dependencies with their byte offsets in the manifest.
struct Crate<'t> {
    folder: &'t str,
    manifest: &'t File,
    uses: Vec<(String, usize)>,
    tests_use: Vec<(String, usize)>,
}

pub fn find(tree: &SourceTree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    let ours = workspace_crates(tree);
    let crates: Vec<Crate> = tree
        .files()
        .iter()
        .filter_map(|file| read_crate(file, &ours, &mut findings))
        .collect();
    let edges = all_edges(&crates);
    for one in &crates {
        match MAY_USE.iter().find(|(folder, _)| *folder == one.folder) {
            None => {
                let what = "a crate that the picture does not have".to_string();
                findings.push(one.manifest.finding(1, what, PICTURE));
            }
            Some((_, allowed)) => findings.extend(one.against(allowed)),
        }
        findings.extend(one.rings(&edges));
    }
    findings
}

impl Crate<'_> {
    fn against(&self, allowed: &[&str]) -> Vec<TidyFinding> {
        let forbidden = self
            .uses
            .iter()
            .filter(|(used, _)| !allowed.contains(&used.as_str()));
        let remedy = "move the code to where it may be used, or change the picture for all to see";
        let what = |used| format!("{} may not use {used}", self.folder);
        forbidden
            .map(|(used, at)| self.manifest.finding_at(*at, what(used), remedy))
            .collect()
    }

    /// Finds dependencies of its tests that lead back to this crate.
    fn rings(&self, edges: &BTreeMap<&str, BTreeSet<&str>>) -> Vec<TidyFinding> {
        let ring = self
            .tests_use
            .iter()
            .filter(|(used, _)| reaches(used, self.folder, edges));
        let what = |used| {
            format!(
                "tests of {} use {used}, which comes back to {0}",
                self.folder
            )
        };
        let remedy = "move the test to the crate that uses both";
        ring.map(|(used, at)| self.manifest.finding_at(*at, what(used), remedy))
            .collect()
    }
}

fn all_edges<'c>(crates: &'c [Crate]) -> BTreeMap<&'c str, BTreeSet<&'c str>> {
    let used = |one: &'c Crate| {
        one.uses
            .iter()
            .chain(&one.tests_use)
            .map(|(used, _)| used.as_str())
            .collect()
    };
    crates.iter().map(|one| (one.folder, used(one))).collect()
}

fn reaches(from: &str, goal: &str, edges: &BTreeMap<&str, BTreeSet<&str>>) -> bool {
    let mut seen = BTreeSet::new();
    let mut open = vec![from];
    while let Some(next) = open.pop() {
        if next == goal {
            return true;
        }
        if seen.insert(next) {
            open.extend(edges.get(next).into_iter().flatten());
        }
    }
    false
}

/// Maps dependency names in manifests to workspace crates: `[workspace.dependencies]` with a path.
fn workspace_crates(tree: &SourceTree) -> BTreeMap<String, String> {
    let root = tree
        .file("Cargo.toml")
        .and_then(|file| DeTable::parse(&file.text).ok());
    let Some(root) = root else {
        return BTreeMap::new();
    };
    let dependencies = root
        .get_ref()
        .get("workspace")
        .and_then(|workspace| workspace.get_ref().get("dependencies"));
    let entries = dependencies
        .and_then(|table| table.get_ref().as_table())
        .into_iter()
        .flatten();
    entries
        .filter_map(|(name, value)| Some((name.get_ref().to_string(), folder_of(value)?)))
        .collect()
}

/// The crate folder that a dependency's `path` leads to.
fn folder_of(dependency: &Spanned<DeValue>) -> Option<String> {
    let path = dependency.get_ref().get("path")?.get_ref().as_str()?;
    path.trim_end_matches('/')
        .rsplit('/')
        .next()
        .map(str::to_string)
}

fn read_crate<'t>(
    manifest: &'t File,
    ours: &BTreeMap<String, String>,
    findings: &mut Vec<TidyFinding>,
) -> Option<Crate<'t>> {
    let folder = manifest
        .path
        .strip_prefix("crates/")?
        .strip_suffix("/Cargo.toml")?;
    let mut one = Crate {
        folder,
        manifest,
        uses: Vec::new(),
        tests_use: Vec::new(),
    };
    match DeTable::parse(&manifest.text) {
        Ok(table) => collect_uses(table.get_ref(), ours, &mut one),
        Err(error) => findings.push(manifest.finding(
            1,
            format!("not TOML: {}", error.message()),
            "see cargo check",
        )),
    }
    Some(one)
}

/// Reads the dependency tables of a manifest, including those below `[target.'cfg(...)']`.
fn collect_uses(table: &DeTable, ours: &BTreeMap<String, String>, one: &mut Crate) {
    for (key, value) in table {
        let Some(entries) = value.get_ref().as_table() else {
            continue;
        };
        let into = match key.get_ref().as_ref() {
            "dependencies" | "build-dependencies" => &mut one.uses,
            "dev-dependencies" => &mut one.tests_use,
            "target" => {
                let platforms = entries
                    .values()
                    .filter_map(|platform| platform.get_ref().as_table());
                platforms.for_each(|platform| collect_uses(platform, ours, one));
                continue;
            }
            _ => continue,
        };
        for (name, dependency) in entries {
            let folder =
                folder_of(dependency).or_else(|| ours.get(name.get_ref().as_ref()).cloned());
            into.extend(folder.map(|folder| (folder, name.span().start)));
        }
    }
}
