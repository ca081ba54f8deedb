//! The tables: of what a variant or a profile spends, and of what differs.

use model::document::{Cell, Column, Fit, Table};
use model::quantity::{NONE, Quantity};

use super::{US, called, heading, works};
use crate::label::shown;
use crate::views::{Call, bottom_up, on_behalf_of, top_down};
use crate::{
    Change, Comparison, Explanation, Frame, Interval, Kind, LineCost, Subject, Tree, Unit, WorkerShare,
};

/// Rows of tables in a report.
const FUNCTIONS_MAX: usize = 8;
const PACKAGES_MAX: usize = 5;
/// Rows of tables and trees of one profile.
const ALL_FUNCTIONS_MAX: usize = 20;
const ALL_PACKAGES_MAX: usize = 12;
const LINES_MAX: usize = 12;
const WORKERS_MAX: usize = 24;
const CALLS_MAX: usize = 60;
/// A call below this share of all is left out of the tree.
const CALL_SHARE_MIN: f64 = 0.02;
/// What is below this share of the largest of its table is not worth a row.
const CHANGE_SHARE_MIN: f64 = 0.02;
/// Smaller shares are none.
const SHARE_MIN: f64 = 5e-4;

/// A table of names and figures: the first column is cut at its end where room is short, other names at their beginning.
fn table(heading: impl Into<String>, names: &[&str], figures: &[&str]) -> Table {
    let fit = |place| if place == 0 { Fit::CutEnd } else { Fit::CutStart };
    let names = names.iter().enumerate().map(|(place, name)| Column::text(*name, fit(place)));
    Table::new(heading, names.chain(figures.iter().map(|name| Column::figure(*name))))
}

/// A part of a whole; one that nobody would miss is none.
fn share(part: f64, whole: f64) -> Cell {
    let share = if part < SHARE_MIN * whole { 0.0 } else { part / whole };
    Cell::figure((whole > 0.0).then(|| Quantity::share(share)))
}

fn figure(unit: Unit, value: f64) -> Cell {
    Cell::Figure(unit.quantity(value))
}

fn function(frame: &Frame) -> [Cell; 2] {
    [Cell::Text(frame.name()), Cell::Text(frame.place())]
}

/// By whose code it is, and by function: what a variant spends, where there is nothing to compare it with.
pub(super) fn spent(of: &Subject, called: &str) -> [Table; 2] {
    let titled = |table: Table| Table { heading: format!("{called}: {}", table.heading), ..table };
    [titled(by_kind(of, US)), titled(by_function(of, US, FUNCTIONS_MAX))]
}

/// All of it.
pub(super) fn all_spent(of: &Subject, unit: Unit) -> impl Iterator<Item = Table> {
    let heap = of.heap.as_ref().map(|heap| heaviest(heap, Unit::BytesPerRequest));
    let tables = [
        by_kind(of, unit),
        by_package(of, unit),
        by_function(of, unit, ALL_FUNCTIONS_MAX),
        by_line(of, unit),
        processes(&of.workers),
        between_workers(of, unit),
        heaviest(&of.tree, unit),
        from_the_root(&of.tree, unit),
    ];
    tables.into_iter().chain(heap)
}

/// Rows of names and costs with their share of all; the intervals are left out where none has one.
fn costs<'a>(
    mut table: Table,
    rows: impl Iterator<Item = (Vec<Cell>, &'a Interval, Vec<Cell>)>,
    (unit, whole): (Unit, f64),
) -> Table {
    let rows: Vec<_> = rows.filter(|(_, us, _)| us.value >= unit.least()).collect();
    let ranges = unit.ranges(rows.iter().map(|(_, interval, _)| *interval));
    let known = ranges.iter().any(|range| range != NONE);
    table.columns.retain(|column| known || column.heading != RANGE);
    for ((mut cells, interval, more), range) in rows.into_iter().zip(ranges) {
        cells.push(figure(unit, interval.value));
        cells.extend(known.then_some(Cell::Text(range)));
        cells.push(share(interval.value, whole));
        cells.extend(more);
        table.push(cells);
    }
    table
}

/// Heading of columns of intervals.
const RANGE: &str = "95 %";

fn whole(of: &Subject) -> f64 {
    of.kinds.iter().filter(|cost| works(&cost.what)).map(|cost| cost.us.value).sum()
}

fn by_kind(of: &Subject, unit: Unit) -> Table {
    let told = of.kinds.iter().filter(|cost| works(&cost.what));
    let row = told.map(|cost| (vec![Cell::text(cost.what.name())], &cost.us, Vec::new()));
    let heading = format!("{}, by whose code it is", unit.of_what());
    costs(table(heading, &["whose code"], &["own", RANGE, "share"]), row, (unit, whole(of)))
}

fn by_package(of: &Subject, unit: Unit) -> Table {
    let told = of.packages.iter().take(ALL_PACKAGES_MAX);
    let row = told.map(|cost| (vec![Cell::Text(shown(&cost.what))], &cost.us, Vec::new()));
    costs(table("by package", &["package"], &["own", RANGE, "share"]), row, (unit, whole(of)))
}

fn by_function(of: &Subject, unit: Unit, most: usize) -> Table {
    let told = of.functions.iter().take(most);
    let row = told.map(|row| (function(&row.frame).to_vec(), &row.self_us, vec![figure(unit, row.total_us)]));
    let figures = ["own", RANGE, "share", "with calls"];
    costs(table("by function", &["function", "where"], &figures), row, (unit, whole(of)))
}

/// The most expensive lines of all functions.
fn by_line(of: &Subject, unit: Unit) -> Table {
    let lines = of.functions.iter().flat_map(|row| row.lines.iter().map(|line| (&row.frame, line)));
    let mut told: Vec<_> = lines.filter(|(_, line)| line.us >= unit.least()).collect();
    told.sort_by(|one, other| other.1.us.total_cmp(&one.1.us));
    let mut table = table("by line", &["function", "line"], &["own"]);
    for (frame, LineCost { line, us }) in told.into_iter().take(LINES_MAX) {
        table.push(vec![Cell::Text(frame.name()), Cell::Text(frame.place_at(*line)), figure(unit, *us)]);
    }
    table
}

/// The processes and how the requests were spread over them.
fn processes(shares: &[WorkerShare]) -> Table {
    let mut table =
        table("processes", &["round"], &["process", "requests", "share", "share of CPU", "profile"]);
    for of in shares.iter().take(WORKERS_MAX) {
        let round = || shares.iter().filter(|other| other.round == of.round);
        let all: u64 = round().filter_map(|other| other.requests).sum();
        let cpu: u64 = round().map(|other| other.cpu_ns).sum();
        table.push(vec![
            Cell::text(of.round.to_string()),
            Cell::text(of.pid.to_string()),
            Cell::figure(of.requests.map(Quantity::count)),
            of.requests.map_or(Cell::Missing, |requests| share(requests as f64, all as f64)),
            share(of.cpu_ns as f64, cpu as f64),
            Cell::text(if of.profiled { "yes" } else { "no" }),
        ]);
    }
    table
}

/// Functions whose cost per request differs from worker to worker.
fn between_workers(of: &Subject, unit: Unit) -> Table {
    let mut table = table("spread between workers", &["function", "where"], &["least", "most"]);
    for row in of.functions.iter().take(LINES_MAX / 2).filter(|row| row.workers_us.1 > row.workers_us.0) {
        let [name, place] = function(&row.frame);
        let (least, most) = row.workers_us;
        table.push(vec![name, place, figure(unit, least), figure(unit, most)]);
    }
    table
}

/// Functions by their own value, below each who calls it: as `node --prof-process` prints it.
fn heaviest(tree: &Tree, unit: Unit) -> Table {
    let (turned, calls) = bottom_up(tree, LINES_MAX);
    let heading = format!(
        "bottom up, {}: a function's own, and below it who calls it, with the share of the line it belongs to",
        unit.of_what()
    );
    let own = |call: &Call| match call.depth {
        0 => figure(unit, call.total),
        _ => Cell::text(""),
    };
    let row = |call: &Call| vec![own(call), share(call.total, call.of), indented(&turned, call)];
    of_calls(heading, ["own", "share"], calls.iter().map(row))
}

/// The tree from its roots, without what is small and without the middle of chains.
fn from_the_root(tree: &Tree, unit: Unit) -> Table {
    let calls = top_down(tree, CALL_SHARE_MIN, CALLS_MAX);
    let heading = format!(
        "top down, {}: without what is below {}, and without the middle of chains (+ frames)",
        unit.of_what(),
        Quantity::share(CALL_SHARE_MIN)
    );
    let row =
        |call: &Call| vec![figure(unit, call.total), figure(unit, call.self_value), indented(tree, call)];
    of_calls(heading, ["with calls", "own"], calls.iter().map(row))
}

fn of_calls(heading: String, figures: [&str; 2], rows: impl Iterator<Item = Vec<Cell>>) -> Table {
    let columns = figures.map(Column::figure).into_iter();
    let mut table = Table::new(heading, columns.chain([Column::text("function", Fit::CutEnd)]));
    rows.for_each(|row| table.push(row));
    table
}

fn indented(tree: &Tree, call: &Call) -> Cell {
    let chain = if call.left_out > 0 { format!("+{} ", call.left_out) } else { String::new() };
    let name = tree.frames[call.frame].name_and_place();
    Cell::Text(format!("{}{chain}{name}", "  ".repeat(call.depth)))
}

/// One profile vs another.
pub(super) fn compared(of: &Comparison, unit: Unit) -> Vec<Table> {
    vec![
        kinds(of, unit, Vec::new()),
        packages(of, unit, ALL_PACKAGES_MAX),
        functions(of, &of.functions, (ALL_FUNCTIONS_MAX, unit), |_| None),
    ]
}

/// One variant vs another: what profiles saw, beside what was measured without them.
pub(super) fn explained(explanation: &Explanation, of: &Comparison) -> Vec<Table> {
    let sum = |value: fn(&Change<Kind>) -> f64| of.kinds.iter().filter(|of| works(&of.what)).map(value).sum();
    let cpu_us = |variant: &str| {
        let subjects = explanation.subjects.iter().filter(|of| of.variant == variant);
        subjects.map(|of| of.cpu_us.value).sum()
    };
    let sums = vec![
        ("all that profiles saw", sum(|of| of.baseline), sum(|of| of.variant), of.profiled_us),
        ("measured without them", cpu_us(&of.baseline), cpu_us(&of.variant), of.measured_us),
    ];
    let behalf = |change: &Change<Frame>| on_behalf(explanation, of, change);
    let memory = Table {
        heading: "memory kept per request, by function that allocates".to_owned(),
        ..functions(of, &of.heap, (PACKAGES_MAX, Unit::BytesPerRequest), |_| None)
    };
    let tables = [
        kinds(of, US, sums),
        packages(of, US, PACKAGES_MAX),
        functions(of, &of.functions, (FUNCTIONS_MAX, US), behalf),
        memory,
    ];
    let titled = |table: Table| Table { heading: format!("{}: {}", heading(of), table.heading), ..table };
    tables.into_iter().map(titled).collect()
}

/// Rows of changes: names, the figures of both sides, and behind each what else is told of it.
fn changes<'a>(
    of: &Comparison,
    (heading, names): (String, &[&str]),
    rows: impl Iterator<Item = (Vec<Cell>, (f64, f64, &'a Interval), Vec<Vec<Cell>>)>,
    unit: Unit,
) -> Table {
    let (baseline, variant) = (shown(&of.baseline), shown(&of.variant));
    let mut table = table(heading, names, &[&baseline, &variant, "difference", RANGE]);
    let rows: Vec<_> = rows.collect();
    let differences = unit.differences(rows.iter().map(|(_, (.., difference), _)| *difference));
    for ((mut cells, (baseline, variant, _), below), (value, ends)) in rows.into_iter().zip(differences) {
        cells.extend([figure(unit, baseline), figure(unit, variant)]);
        cells.extend([Cell::Text(value), Cell::optional(ends)]);
        table.push(cells);
        below.into_iter().for_each(|cells| table.push(cells));
    }
    table
}

/// The least change that is worth a row, beside the largest of these.
fn least<'a, T: 'a>(changes: impl Iterator<Item = &'a Change<T>>, unit: Unit) -> f64 {
    changes.map(|of| of.difference.value.abs() * CHANGE_SHARE_MIN).fold(unit.least(), f64::max)
}

fn kinds(of: &Comparison, unit: Unit, sums: Vec<(&str, f64, f64, Interval)>) -> Table {
    let told = |change: &&Change<Kind>| {
        works(&change.what) && change.baseline.abs().max(change.variant.abs()) >= 10.0 * unit.least()
    };
    let row = |name: &str, baseline, variant, difference| {
        (vec![Cell::text(name)], (baseline, variant, difference), Vec::new())
    };
    let kinds = of.kinds.iter().filter(told);
    let kinds = kinds.map(|of| row(of.what.name(), of.baseline, of.variant, &of.difference));
    let sums = sums.iter().map(|(name, baseline, variant, us)| row(name, *baseline, *variant, us));
    let heading = format!("{}, by whose code it is", unit.of_what());
    changes(of, (heading, &["whose code"]), kinds.chain(sums), unit)
}

fn packages(of: &Comparison, unit: Unit, most: usize) -> Table {
    // Beside all that changed: a package is a part of it.
    let least = least(of.kinds.iter().filter(|of| works(&of.what)), unit);
    let told = of.packages.iter().filter(|of| of.difference.value.abs() >= least).take(most);
    let name = |of: &Change<String>| vec![Cell::Text(shown(&of.what))];
    let rows = told.map(|of| (name(of), (of.baseline, of.variant, &of.difference), Vec::new()));
    changes(of, ("by package".to_owned(), &["package"]), rows, unit)
}

/// By function, each with a line below it that says where it stood in the baseline, where that was elsewhere, and one that says on whose
/// behalf it worked, where `behalf` tells.
fn functions(
    of: &Comparison,
    all: &[Change<Frame>],
    (most, unit): (usize, Unit),
    behalf: impl Fn(&Change<Frame>) -> Option<Vec<Cell>>,
) -> Table {
    let moved = |was: &Frame| below("moved from".to_owned(), was.place(), Cell::text(""));
    let least = least(all.iter(), unit);
    let told = all.iter().filter(|of| of.difference.value.abs() >= least).take(most);
    let rows = told.map(|of| {
        let more = of.was.as_ref().map(moved).into_iter().chain(behalf(of)).collect();
        (function(&of.what).to_vec(), (of.baseline, of.variant, &of.difference), more)
    });
    let heading = "by function, the largest changes of its own".to_owned();
    changes(of, (heading, &["function", "where"]), rows, unit)
}

/// A row below one of a function, with something below its difference, for that is what it is a part of.
fn below(name: String, place: String, part: Cell) -> Vec<Cell> {
    let none = || Cell::text("");
    vec![Cell::Text(format!("  {name}")), Cell::Text(place), none(), none(), part, none()]
}

/// Who had a function work, in the variant where it costs more.
fn on_behalf(explanation: &Explanation, of: &Comparison, change: &Change<Frame>) -> Option<Vec<Cell>> {
    let (variant, frame) = match change.variant >= change.baseline {
        true => (&of.variant, &change.what),
        false => (&of.baseline, change.was.as_ref().unwrap_or(&change.what)),
    };
    let caller = |subject: &'_ Subject| {
        // Where several services are compared their files carry the service's name; in its own tree they do not.
        let named = format!("{}: ", subject.service);
        let file = frame.file.strip_prefix(&named).unwrap_or(&frame.file).to_owned();
        let (caller, share) = on_behalf_of(&subject.tree, &Frame { file, ..frame.clone() })?;
        let part = Cell::Text(format!("{} of it", Quantity::share(share)));
        Some(below(format!("← {}", caller.name()), caller.place(), part))
    };
    explanation.subjects.iter().filter(|subject| subject.variant == *variant).find_map(caller)
}

/// Where requests wait.
pub(super) fn waiting(explanation: &Explanation, several: bool) -> Option<Table> {
    let figures =
        ["event loop busy", "timers late, p99", "for a pool thread", "GC pauses", "for a processor"];
    let mut table = table("where requests wait: each service's busiest worker", &["variant"], &figures);
    for of in &explanation.subjects {
        let Some(waiting) = &of.waiting else { continue };
        table.push(vec![
            Cell::Text(called(of, several)),
            share(waiting.loop_utilisation, 1.0),
            figure(US, waiting.loop_delay_p99_ms * 1e3),
            Cell::figure(waiting.pool_wait_us.map(Quantity::us)),
            share(waiting.gc_share, 1.0),
            share(waiting.run_delay_share, 1.0),
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}
