//! Parts of an explanation for a terminal.

use analysis::Grade;

use super::{Reason, Table, Why};
use crate::drawing::{BOLD, FAINT, named, remark, wrapped};
use crate::text::table::drawn;

/// A comparison's reason: words first, figures below.
pub(super) fn reason_text(reason: &Reason, width: usize) -> String {
    let indented = |text: &str| wrapped(text, "    ", "    ", width);
    let mut out = format!("{BOLD}{}{BOLD:#}\n", reason.heading);
    out += &indented(&reason.reconciliation);
    out.extend(reason.story.iter().chain(&reason.waiting).map(|text| indented(text)));
    out.push('\n');
    out.extend(reason.tables.iter().map(|table| table_text(table, width)));
    out
}

/// A table below its heading, with an empty line after it.
pub(super) fn table_text(table: &Table, width: usize) -> String {
    drawn(&table.typed(), width) + "\n"
}

/// Lines with their names in the margin.
pub(super) fn method(lines: &[(String, String)], width: usize) -> String {
    lines.iter().map(|(name, line)| named(FAINT, name, line, width)).collect()
}

/// What makes it doubtful, as notes.
pub(super) fn doubts(why: &Why, width: usize) -> String {
    let note = |(evidence, remedy): &(String, String)| remark(Grade::Note, None, evidence, remedy, width);
    why.doubts.iter().map(note).collect()
}
