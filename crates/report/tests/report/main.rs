//! Reports for people and programs.

use proofload_report::{Document, Report, text};
use textwrap::core::display_width;

mod across;
mod brief;
mod capacity;
mod conclusions;
mod csv;
#[path = "../../../explain/tests/explained/mod.rs"]
#[allow(dead_code, reason = "tests of flame graphs use all of it")]
mod explained;
mod foreign;
mod forms;
mod gate;
mod history;
mod kept;
mod page;
mod parts;
mod plot;
mod records;
mod schema;
mod screens;
mod survey;
mod why;

/// The text of a report, without colours.
fn plain(report: &dyn Report, width: usize) -> String {
    drawn(&report.document(), width)
}

fn drawn(document: &Document, width: usize) -> String {
    anstream::adapter::strip_str(&text(document, width)).to_string()
}

fn fits(text: &str, width: usize) {
    for line in text.lines() {
        assert!(
            display_width(line) <= width,
            "{} of {width} columns: {line}",
            display_width(line)
        );
    }
}
