//! A profile that belongs to no record, and two of them against each other: what `proofload profile FILE` and
//! `proofload profile diff` print.

use std::collections::BTreeMap;

use profile::{Comparison, Frame, Kind, Tree};
use serde_json::{Value, json};

use super::long::{heavy, top_down};
use super::name::{at_line, function, harmless, package, place};
use super::text::table_text;
use super::unit::percent;
use super::words::{changes, functions, table};
use super::{Table, Unit, calls};
use crate::drawing::BOLD;

/// Version of the JSON forms; fields may be added within a version, never renamed or removed.
const VERSION: u32 = 1;
const FUNCTIONS_MAX: usize = 20;
const PACKAGES_MAX: usize = 12;
const LINES_MAX: usize = 12;

/// One profile: by kind, package, function and line, bottom up and top down.
pub fn of_tree(title: &str, tree: &Tree, unit: Unit, width: usize) -> String {
    let worked = calls::worked(tree);
    let waited = calls::waited(tree);
    let waited = if waited > 0.0 { format!(", and {} of waiting", unit.show(waited)) } else { String::new() };
    let mut out =
        format!("{BOLD}{}{BOLD:#}: {} of {}{waited}\n\n", harmless(title), unit.show(worked), unit.of_what());
    let tables = [by_kind(tree, unit), by_package(tree, unit), by_function(tree, unit), by_line(tree, unit)];
    out.extend(tables.iter().flatten().map(|table| table_text(table, width)));
    out + &heavy(tree, unit, width) + &top_down(tree, unit, width)
}

fn by_kind(tree: &Tree, unit: Unit) -> Option<Table> {
    let worked = calls::worked(tree);
    let row =
        |(kind, value): (Kind, f64)| vec![kind.name().to_owned(), unit.show(value), percent(value, worked)];
    let rows = calls::kinds(tree).into_iter().filter(|(_, value)| *value > 0.0).map(row).collect();
    Table::new("by whose code it is", 1, &["whose code", "own", "share"]).with(rows)
}

fn by_package(tree: &Tree, unit: Unit) -> Option<Table> {
    let mut sums: BTreeMap<String, f64> = BTreeMap::new();
    for of in calls::functions(tree) {
        if let Some(of_package) = tree.frames.get(of.frame).and_then(|frame| frame.package.as_ref()) {
            *sums.entry(package(of_package)).or_default() += of.self_value;
        }
    }
    let mut sums: Vec<(String, f64)> = sums.into_iter().filter(|(_, value)| *value > 0.0).collect();
    sums.sort_by(|one, other| other.1.total_cmp(&one.1));
    let worked = calls::worked(tree);
    let row = |(name, value): (String, f64)| vec![name, unit.show(value), percent(value, worked)];
    Table::new("by package", 1, &["package", "own", "share"])
        .with(sums.into_iter().take(PACKAGES_MAX).map(row).collect())
}

fn by_function(tree: &Tree, unit: Unit) -> Option<Table> {
    let worked = calls::worked(tree);
    let row = |of: calls::Function| {
        let frame = tree.frames.get(of.frame)?;
        let figures = [unit.show(of.self_value), percent(of.self_value, worked), unit.show(of.total)];
        Some([function(frame), place(frame)].into_iter().chain(figures).collect::<Vec<String>>())
    };
    let told = calls::functions(tree).into_iter().filter(|of| of.self_value > 0.0).take(FUNCTIONS_MAX);
    Table::new("by function", 2, &["function", "where", "own", "share", "with calls"])
        .with(told.filter_map(row).collect())
}

fn by_line(tree: &Tree, unit: Unit) -> Option<Table> {
    let row = |(frame, line, value): (usize, u32, f64)| {
        let frame = tree.frames.get(frame)?;
        Some(vec![function(frame), at_line(frame, line), unit.show(value)])
    };
    let rows = calls::lines(tree, LINES_MAX).into_iter().filter_map(row).collect();
    Table::new("by line", 2, &["function", "line", "own"]).with(rows)
}

/// One profile for programs: everything that [`of_tree`] tells, without leaving anything out.
pub fn of_tree_json(title: &str, tree: &Tree, unit: Unit) -> Value {
    let frame = |index: usize| tree.frames.get(index).map(frame_json);
    let functions = calls::functions(tree).into_iter();
    let functions = functions.filter_map(|of| {
        let (own, total) = (of.self_value, of.total);
        Some(json!({ "frame": frame(of.frame)?, "self": own, "total": total }))
    });
    let kinds: BTreeMap<Kind, f64> = calls::kinds(tree).into_iter().collect();
    json!({
        "profile_version": VERSION,
        "profile": title,
        "unit": unit.name(),
        "worked": calls::worked(tree),
        "waited": calls::waited(tree),
        "kinds": kinds,
        "functions": functions.collect::<Vec<Value>>(),
        "tree": tree,
    })
}

fn frame_json(frame: &Frame) -> Value {
    serde_json::to_value(frame).unwrap_or(Value::Null)
}

/// One profile against another: by kind, package and function.
pub fn difference(comparison: &Comparison, unit: Unit, width: usize) -> String {
    let named = |kind: &Kind| vec![kind.name().to_owned()];
    let of_kind: Vec<_> =
        comparison.kinds.iter().filter(|change| change.what != Kind::Waiting).cloned().collect();
    let tables = [
        table(comparison, &format!("{}, by whose code it is", unit.of_what()), 1, "whose code")
            .with(changes(&of_kind, Kind::ALL.len(), unit, named)),
        table(comparison, "by package", 1, "package").with(changes(
            &comparison.packages,
            PACKAGES_MAX,
            unit,
            |of| vec![harmless(of)],
        )),
        table(comparison, "by function, the largest changes of its own", 2, "function").with(functions(
            &comparison.functions,
            FUNCTIONS_MAX,
            unit,
            |_| None,
        )),
    ];
    let (value, interval) = unit.change(&comparison.profiled_us);
    let interval = interval.map(|interval| format!(" ({interval})")).unwrap_or_default();
    let heading = format!("{} against {}", harmless(&comparison.variant), harmless(&comparison.baseline));
    let mut out = format!("{BOLD}{heading}{BOLD:#}: {value}{interval} of {}\n\n", unit.of_what());
    out.extend(tables.iter().flatten().map(|table| table_text(table, width)));
    if tables.iter().all(Option::is_none) {
        out += "no function differs\n";
    }
    out
}

/// The same for programs.
pub fn difference_json(comparison: &Comparison, unit: Unit) -> Value {
    json!({ "profile_version": VERSION, "unit": unit.name(), "difference": comparison })
}
