//! A profile that belongs to no record, and two of them against each other: what `proofload profile FILE` and
//! `proofload profile diff` print.

use std::collections::BTreeMap;

use explain::{Comparison, Frame, Kind, Tree};
use serde_json::{Value, json};

use super::columns::beside;
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
    let kinds: Vec<(Kind, f64)> = calls::kinds(tree).into_iter().filter(|(_, value)| *value > 0.0).collect();
    let rows = beside(vec![
        kinds.iter().map(|(kind, _)| kind.name().to_owned()).collect(),
        unit.column(kinds.iter().map(|(_, value)| Some(*value))),
        kinds.iter().map(|(_, value)| percent(*value, worked)).collect(),
    ]);
    Table::new("by whose code it is", 1, &["whose code", "own", "share"]).with(rows)
}

fn by_package(tree: &Tree, unit: Unit) -> Option<Table> {
    let sums = tree.sums(|frame| frame.package.as_ref().map(package));
    let mut sums: Vec<(String, f64)> = sums.into_iter().filter(|(_, value)| *value > 0.0).collect();
    sums.sort_by(|one, other| other.1.total_cmp(&one.1));
    sums.truncate(PACKAGES_MAX);
    let worked = calls::worked(tree);
    let values = unit.column(sums.iter().map(|(_, value)| Some(*value)));
    let (names, shares) = sums.into_iter().map(|(name, value)| (name, percent(value, worked))).unzip();
    Table::new("by package", 1, &["package", "own", "share"]).with(beside(vec![names, values, shares]))
}

fn by_function(tree: &Tree, unit: Unit) -> Option<Table> {
    let worked = calls::worked(tree);
    let functions = calls::functions(tree);
    let known = |of: &calls::Function| Some((of.clone(), tree.frames.get(of.frame)?));
    let told: Vec<(calls::Function, &Frame)> =
        functions.iter().filter(|of| of.self_value > 0.0).take(FUNCTIONS_MAX).filter_map(known).collect();
    let rows = beside(vec![
        told.iter().map(|(_, frame)| function(frame)).collect(),
        told.iter().map(|(_, frame)| place(frame)).collect(),
        unit.column(told.iter().map(|(of, _)| Some(of.self_value))),
        told.iter().map(|(of, _)| percent(of.self_value, worked)).collect(),
        unit.column(told.iter().map(|(of, _)| Some(of.total))),
    ]);
    Table::new("by function", 2, &["function", "where", "own", "share", "with calls"]).with(rows)
}

fn by_line(tree: &Tree, unit: Unit) -> Option<Table> {
    let known = |(frame, line, value): (usize, u32, f64)| Some((tree.frames.get(frame)?, line, value));
    let told: Vec<(&Frame, u32, f64)> = calls::lines(tree, LINES_MAX).into_iter().filter_map(known).collect();
    let rows = beside(vec![
        told.iter().map(|(frame, ..)| function(frame)).collect(),
        told.iter().map(|(frame, line, _)| at_line(frame, *line)).collect(),
        unit.column(told.iter().map(|(.., value)| Some(*value))),
    ]);
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
    let (value, interval) = unit.changes(std::iter::once(&comparison.profiled_us)).swap_remove(0);
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
