//! Reports as people and programs read them.

use proofload_report::{Report, text};

mod across;
mod brief;
mod conclusions;
mod csv;
#[path = "../../../explain/tests/explained/mod.rs"]
#[allow(dead_code, reason = "tests of flame graphs use all of it")]
mod explained;
mod foreign;
mod forms;
mod gate;
mod history;
mod page;
mod parts;
mod plot;
mod records;
mod schema;
mod survey;
mod versions;
mod why;

/// The text of a report, without colours.
fn plain(report: &dyn Report, width: usize) -> String {
    anstream::adapter::strip_str(&text(&report.document(), width)).to_string()
}
