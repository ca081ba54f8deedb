//! Everything of an explanation that text can tell, variant by variant: what `proofload profile RECORD` prints.

use explain::{Explanation, LineCost, Row, Subject, Tree, WorkerShare};

use super::columns::beside;
use super::name::{at_line, both, function, harmless, place};
use super::text::{doubts, method, reason_text, table_text};
use super::unit::percent;
use super::words::{US, called, costs, function_rows, several_services};
use super::{Table, Unit, Why, calls};
use model::quantity::{count, micros};

use crate::document::Fit;
use crate::drawing::{BOLD, FAINT, wrapped};
use crate::text::table::cut;

/// Rows of tables and trees.
const FUNCTIONS_MAX: usize = 20;
const PACKAGES_MAX: usize = 12;
const HEAVY_MAX: usize = 12;
const LINES_MAX: usize = 12;
const WORKERS_MAX: usize = 24;
const CALLS_MAX: usize = 60;
/// A call below this share of all is left out of the tree.
const CALL_SHARE_MIN: f64 = 0.02;

/// Each subject with its tables and trees, then the comparisons and doubts; in lines of at most `width` columns where that can be.
pub fn subjects(explanation: &Explanation, width: usize) -> String {
    let several = several_services(explanation);
    let mut out: String = explanation.subjects.iter().map(|of| subject(of, several, width)).collect();
    let why = Why::new(explanation);
    out.extend(why.reasons.iter().map(|reason| reason_text(reason, width)));
    out.extend(why.waiting.iter().map(|table| table_text(table, width)));
    out + &method(&why.method, width) + &doubts(&why, width)
}

fn subject(of: &Subject, several: bool, width: usize) -> String {
    let cpu = match US.ranges(std::iter::once(&of.cpu_us)).concat().as_str() {
        "–" => micros(of.cpu_us.value),
        range => format!("{} ({range})", micros(of.cpu_us.value)),
    };
    let line = format!(
        "{} requests under the profiler; without it {cpu} of CPU time per request",
        count(of.requests)
    );
    let mut out =
        format!("{BOLD}{}{BOLD:#}\n{}\n", called(of, several), wrapped(&line, "    ", "    ", width));
    let tables = [
        Table::new("by whose code it is", 1, &["whose code", "CPU/request", "95 %", "share"]).with(costs(of)),
        Table::new("by package", 1, &["package", "CPU/request", "95 %"]).with(package_rows(of)),
        Table::new("by function", 2, &["function", "where", "own", "95 %", "with calls"])
            .with(function_rows(of, FUNCTIONS_MAX)),
        by_line(of),
        workers(&of.workers),
        spread(of),
    ];
    out.extend(tables.iter().flatten().map(|table| table_text(table, width)));
    out += &heavy(&of.tree, US, width);
    out += &top_down(&of.tree, US, width);
    if let Some(heap) = of.heap.as_ref().filter(|heap| heap.total() > 0.0) {
        out += &heavy(heap, Unit::BytesPerRequest, width);
    }
    out
}

fn package_rows(of: &Subject) -> Vec<Vec<String>> {
    let told = || of.packages.iter().take(PACKAGES_MAX);
    beside(vec![
        told().map(|cost| harmless(&cost.what)).collect(),
        US.column(told().map(|cost| Some(cost.us.value))),
        US.ranges(told().map(|cost| &cost.us)),
    ])
}

/// The most expensive lines of all functions.
fn by_line(of: &Subject) -> Option<Table> {
    let lines = |row: &Row| -> Vec<(f64, String, String)> {
        let line = |line: &LineCost| (line.us, at_line(&row.frame, line.line), function(&row.frame));
        row.lines.iter().map(line).collect()
    };
    let mut lines: Vec<(f64, String, String)> = of.functions.iter().flat_map(lines).collect();
    lines.sort_by(|one, other| other.0.total_cmp(&one.0));
    lines.truncate(LINES_MAX);
    lines.retain(|(us, ..)| *us > 0.0);
    let own = US.column(lines.iter().map(|(us, ..)| Some(*us)));
    let (places, functions) = lines.into_iter().map(|(_, place, function)| (place, function)).unzip();
    Table::new("by line", 2, &["function", "line", "own"]).with(beside(vec![functions, places, own]))
}

/// The processes and how the requests were spread over them.
fn workers(shares: &[WorkerShare]) -> Option<Table> {
    let row = |share: &WorkerShare| {
        let of_round = |of: fn(&WorkerShare) -> f64| {
            shares.iter().filter(|other| other.round == share.round).map(of).sum::<f64>()
        };
        let all = of_round(|other| other.requests.unwrap_or(0) as f64);
        let cpu = of_round(|other| other.cpu_ns as f64);
        let dash = || "–".to_owned();
        vec![
            format!("{}", share.round),
            format!("{}", share.pid),
            share.requests.map_or_else(dash, count),
            share.requests.map_or_else(dash, |requests| percent(requests as f64, all)),
            percent(share.cpu_ns as f64, cpu),
            if share.profiled { "yes" } else { "no" }.to_owned(),
        ]
    };
    let rows = shares.iter().take(WORKERS_MAX).map(row).collect();
    Table::new("processes", 1, &["round", "process", "requests", "share", "share of CPU", "profile"])
        .with(rows)
}

/// Functions whose cost per request differs from worker to worker.
fn spread(of: &Subject) -> Option<Table> {
    let differs = |row: &&Row| row.workers_us.1 > row.workers_us.0;
    let told = || of.functions.iter().take(HEAVY_MAX / 2).filter(differs);
    let rows = beside(vec![
        told().map(|row| function(&row.frame)).collect(),
        told().map(|row| place(&row.frame)).collect(),
        US.column(told().map(|row| Some(row.workers_us.0))),
        US.column(told().map(|row| Some(row.workers_us.1))),
    ]);
    Table::new("spread between workers", 2, &["function", "where", "least", "most"]).with(rows)
}

/// Functions by their own value, below each who calls it: as `node --prof-process` prints it.
pub(super) fn heavy(tree: &Tree, unit: Unit, width: usize) -> String {
    let whole = calls::worked(tree);
    let heavy = calls::heavy(tree, HEAVY_MAX);
    if heavy.is_empty() {
        return String::new();
    }
    let mut out = format!(
        "{FAINT}bottom up (heavy), {}: a function's own, and below it who calls it, with the share of the line it belongs to{FAINT:#}\n",
        unit.of_what()
    );
    let values = unit.column(heavy.iter().map(|function| Some(function.value)));
    for (function, value) in heavy.iter().zip(&values) {
        caller_lines(tree, function, (value, whole, 0, width), &mut out);
    }
    out + "\n"
}

fn caller_lines(
    tree: &Tree,
    of: &calls::Caller,
    (value, whole, depth, width): (&str, f64, usize, usize),
    out: &mut String,
) {
    let Some(frame) = tree.frames.get(of.frame) else { return };
    let line = format!("{value:>11} {:>7}  {}{}", percent(of.value, whole), "  ".repeat(depth), both(frame));
    *out += &(cut(&line, width, Fit::CutEnd) + "\n");
    for caller in &of.callers {
        caller_lines(tree, caller, ("", of.value, depth + 1, width), out);
    }
}

/// The tree from its roots, without what is small and without the middle of chains.
pub(super) fn top_down(tree: &Tree, unit: Unit, width: usize) -> String {
    let whole = calls::worked(tree);
    let calls = calls::top_down(tree, whole * CALL_SHARE_MIN, CALLS_MAX);
    if calls.is_empty() {
        return String::new();
    }
    let mut out = format!(
        "{FAINT}top down, {}: with what is called, and of its own; below {:.0} % left out, and the middle of chains (+ frames){FAINT:#}\n",
        unit.of_what(),
        CALL_SHARE_MIN * 100.0
    );
    let totals = unit.column(calls.iter().map(|call| Some(call.total)));
    let own = unit.column(calls.iter().map(|call| Some(call.self_value)));
    for (call, (total, own)) in calls.iter().zip(totals.iter().zip(&own)) {
        let Some(frame) = tree.frames.get(call.frame) else { continue };
        let chain = if call.left_out > 0 { format!("+{} ", call.left_out) } else { String::new() };
        let line = format!("{total:>11} {own:>11}  {}{chain}{}", "  ".repeat(call.depth), both(frame));
        out += &(cut(&line, width, Fit::CutEnd) + "\n");
    }
    out + "\n"
}
