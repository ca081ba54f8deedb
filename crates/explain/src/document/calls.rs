//! Tables of calls: the heaviest functions with their callers, and the tree from its roots.

use model::document::{Cell, Column, ColumnFit, Table};
use model::quantity::Quantity;

use super::{LINES_MAX, figure, filled, share};
use crate::views::{Call, bottom_up, top_down};
use crate::{Tree, TreeUnit};

const CALLS_MAX: usize = 60;
/// A call below this share of the total is omitted from the tree.
const CALL_SHARE_MIN: f64 = 0.02;

/// Functions by self time, each followed by its callers, as `node --prof-process` prints it.
pub(super) fn heaviest(tree: &Tree, unit: TreeUnit) -> Table {
    let (turned, calls) = bottom_up(tree, LINES_MAX);
    let heading = format!(
        "bottom up, {}: a function's own, and below it who calls it, with the share of the line it belongs to",
        unit.of_what()
    );
    let own = |call: &Call| match call.depth {
        0 => figure(unit, call.total),
        _ => Cell::text(""),
    };
    let row = |call: &Call| {
        vec![
            own(call),
            share(call.total, call.of),
            indented(&turned, call),
        ]
    };
    of_calls(heading, ["own", "share"], calls.iter().map(row))
}

/// The tree from its roots, without small calls and without the middle of chains.
pub(super) fn from_the_root(tree: &Tree, unit: TreeUnit) -> Table {
    let calls = top_down(tree, CALL_SHARE_MIN, CALLS_MAX);
    let heading = format!(
        "top down, {}: without what is below {}, and without the middle of chains (+ frames)",
        unit.of_what(),
        Quantity::share(CALL_SHARE_MIN)
    );
    let row = |call: &Call| {
        vec![
            figure(unit, call.total),
            figure(unit, call.self_value),
            indented(tree, call),
        ]
    };
    of_calls(heading, ["with calls", "own"], calls.iter().map(row))
}

fn of_calls(heading: String, figures: [&str; 2], rows: impl Iterator<Item = Vec<Cell>>) -> Table {
    let columns = figures.map(Column::figure).into_iter();
    filled(
        Table::new(
            heading,
            columns.chain([Column::text("function", ColumnFit::CutEnd)]),
        ),
        rows,
    )
}

fn indented(tree: &Tree, call: &Call) -> Cell {
    let chain = if call.left_out > 0 {
        format!("+{} ", call.left_out)
    } else {
        String::new()
    };
    let name = tree.frames[call.frame].name_and_place();
    Cell::Text(format!("{}{chain}{name}", "  ".repeat(call.depth)))
}
