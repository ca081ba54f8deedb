//! Rule: the modules of a crate do not import each other in a circle that leaves one folder. A parent and its
//! children belong together. The table below lists the allowed circles.

use std::collections::{BTreeMap, BTreeSet};

use super::tree::File;
use super::{SourceTree, TidyFinding};

/// Allowed circles: the crate, its modules, and the reason.
const ALLOWED: [(&str, &[&str], &str); 1] = [(
    "report",
    &[
        "experiment",
        "experiment/answer",
        "experiment/capacity",
        "experiment/headline",
        "experiment/method",
        "experiment/tables",
        "form",
        "html",
        "measurement",
        "page",
        "plot",
        "plot/drawing",
        "validity",
    ],
    "a report has a page, and the page shows the report's sentences",
)];

/// A module: its components below the crate, none for the root.
type ModulePath = Vec<String>;

pub fn find(tree: &SourceTree) -> Vec<TidyFinding> {
    let mut crates: BTreeMap<&str, BTreeMap<ModulePath, &File>> = BTreeMap::new();
    for file in tree.files().iter().filter(|file| !file.is_test) {
        if let Some((name, module)) = module_of(&file.path) {
            crates.entry(name).or_default().insert(module, file);
        }
    }
    let circles = |(name, modules): (&str, BTreeMap<ModulePath, &File>)| {
        let found = circles(&modules).into_iter();
        let found = found.filter(|circle| !is_allowed(name, circle));
        let finding = |circle: BTreeSet<ModulePath>| {
            let names: Vec<String> = circle.iter().map(title).collect();
            let what = format!("a circle of imports: {}", names.join(", "));
            let remedy = "move what both use below both, or to the one that owns it";
            let first = circle.first().and_then(|module| modules.get(module));
            first.map(|file| file.finding(1, what, remedy))
        };
        found.filter_map(finding).collect::<Vec<_>>()
    };
    crates.into_iter().flat_map(circles).collect()
}

/// The crate's folder and the module of a file in `src`.
fn module_of(path: &str) -> Option<(&str, ModulePath)> {
    let (name, rest) = path.strip_prefix("crates/")?.split_once("/src/")?;
    let parts = rest.strip_suffix(".rs")?.split('/');
    let is_root = |part: &&str| ["lib", "main", "mod"].contains(part);
    Some((
        name,
        parts
            .filter(|part| !is_root(part))
            .map(str::to_owned)
            .collect(),
    ))
}

fn title(module: &ModulePath) -> String {
    if module.is_empty() {
        "the root".to_owned()
    } else {
        module.join("/")
    }
}

fn is_allowed(name: &str, circle: &BTreeSet<ModulePath>) -> bool {
    ALLOWED.iter().any(|(of, modules, _)| {
        *of == name
            && circle
                .iter()
                .all(|module| modules.contains(&title(module).as_str()))
    })
}

/// Returns sets of modules that import each other in a circle and are not all in one folder.
fn circles(modules: &BTreeMap<ModulePath, &File>) -> Vec<BTreeSet<ModulePath>> {
    let used = |module: &ModulePath, file: &File| {
        let paths = file.parsed().into_iter().flat_map(|code| {
            let paths = code.paths.iter();
            paths.filter(|(_, start)| !code.is_test_at(*start))
        });
        let used = paths.filter_map(|(path, _)| target(module, path, modules));
        used.filter(|used| used != module).collect()
    };
    let edges: BTreeMap<&ModulePath, BTreeSet<ModulePath>> = modules
        .iter()
        .map(|(module, file)| (module, used(module, file)))
        .collect();
    let reached: BTreeMap<&ModulePath, BTreeSet<ModulePath>> = edges
        .keys()
        .map(|module| (*module, reached(module, &edges)))
        .collect();
    let mutual = |module: &&ModulePath| {
        let back = reached[module].iter();
        let back = back.filter(|other| reached[other].contains(*module));
        back.cloned().collect::<BTreeSet<_>>()
    };
    let found: BTreeSet<BTreeSet<ModulePath>> = reached.keys().map(mutual).collect();
    let leaves_folder = |circle: &BTreeSet<ModulePath>| {
        let folders: BTreeSet<_> = circle.iter().map(|module| module.first()).collect();
        folders.len() > 1
    };
    found.into_iter().filter(leaves_folder).collect()
}

/// Returns the module of a path, which is its longest prefix that is a module.
fn target(
    from: &ModulePath,
    path: &[String],
    modules: &BTreeMap<ModulePath, &File>,
) -> Option<ModulePath> {
    let supers = path.iter().take_while(|part| *part == "super").count();
    let (base, rest) = match path.first()?.as_str() {
        "crate" => (0, &path[1..]),
        "self" => (from.len(), &path[1..]),
        _ => (from.len().saturating_sub(supers), &path[supers..]),
    };
    let full: ModulePath = from[..base].iter().chain(rest).cloned().collect();
    let beginnings = (1..=full.len()).rev().map(|length| full[..length].to_vec());
    beginnings
        .into_iter()
        .find(|module| modules.contains_key(module))
}

fn reached(
    from: &ModulePath,
    edges: &BTreeMap<&ModulePath, BTreeSet<ModulePath>>,
) -> BTreeSet<ModulePath> {
    let mut seen = BTreeSet::new();
    let mut open: Vec<&ModulePath> = edges[from].iter().collect();
    while let Some(next) = open.pop() {
        if seen.insert(next.clone()) {
            open.extend(edges.get(next).into_iter().flatten());
        }
    }
    seen
}
